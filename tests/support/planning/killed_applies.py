"""Applies that are killed at a point and then ended in one of the ways that a user has, on a journal in a file."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from random import Random
from unittest.mock import patch

from attrs import define, evolve, field, frozen

from aclog.analysis.regions import Region, region_object
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import acl_of_content, content_of
from aclog.authorizer.settings import Generation
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.files import write_all
from aclog.planning import journal as journal_module
from aclog.planning.applying import Applying, ApplyOptions, Outcome
from aclog.planning.effect import transient_denials
from aclog.planning.journal import (
    Entry,
    EntryKind,
    Journal,
    JournalAction,
    JournalStep,
    checksum_of,
    entry_line,
    head_line,
    open_journal,
    read_journal,
    settle,
)
from aclog.planning.plan import (
    JournalMark,
    Origin,
    PlaceAddress,
    PlaceKind,
    Plan,
    PlanPlace,
    RefusedError,
    parse_plan,
    plan_lines,
)
from aclog.planning.planner import Circumstances, DeleteLimit, make_plan
from tests.support.planning.cases import Case
from tests.support.planning.memory_place import Fuse, Killed, MemoryPlace

ADDRESS = PlaceAddress(kind=PlaceKind.LOG, value="/nowhere")
BEFORE = Origin(at="2026-01-01T00:00:00.000Z", who="earlier@host")


class Recovery(StrEnum):
    """What a user does after a kill."""

    AGAIN = "apply"
    RESUME = "apply --resume"
    REPLAN = "plan, apply"


@frozen(kw_only=True)
class Ended:
    """How a case came out."""

    visible: tuple[frozenset[StandardAcl], ...]
    """What was to be seen in the place, one after another."""
    killed_at: int
    """How many of these were there when it was killed."""
    owned: frozenset[StandardAcl]
    points: int
    """How many points were passed until the end, or until the kill, that one included."""


@define(eq=False, kw_only=True)
class KilledApply:
    """One case in a directory of its own, from plan to end."""

    case: Case
    home: Path
    random: Random
    place: MemoryPlace = field(init=False)
    fuse: Fuse = field(factory=Fuse)
    notices: list[str] = field(factory=list)
    """What the applies told."""
    _applies: int = 0

    def __attrs_post_init__(self) -> None:
        self.place = MemoryPlace(
            batching=self.case.batching,
            rules=self.case.there,
            allow_everyone=self.case.settings.allow_everyone,
            point=self._point,
            random=self.random,
        )
        self.journal.unlink(missing_ok=True)
        if self.case.owned:
            lines = [head_line("journal-1")]
            for entry in _history(self.case):
                lines.append(entry_line(entry, checksum_of(lines[-1])))
            self.journal.write_bytes(b"".join(lines))

    def _point(self) -> None:
        self.fuse.point()

    @property
    def journal(self) -> Path:
        return self.home / "journal"

    def plan(self) -> Plan:
        """What `plan` writes into its file, read again."""
        journal = read_journal(self.journal, lambda: "journal-1", lambda _: None)
        state = self.place.read()
        case = evolve(
            self.case, there=self.place.rules, owned=frozenset(map(acl_of_content, self.owned(journal, state.contents)))
        )
        change = case.change()
        change.check(DeleteLimit.parse("100%"), (Generation.V4_4 if case.settings.cidr else Generation.V4_3,))
        mark = JournalMark(
            path=str(self.journal), id=journal.id, entries=len(journal.entries), checksum=journal.checksum
        )
        circumstances = Circumstances(
            place=PlanPlace(address=ADDRESS, identity=self.place.identity(), batching=case.batching),
            state=state,
            settings=case.settings,
            settings_known=True,
            settings_by_place=False,
            origin=BEFORE,
            journal=mark,
        )
        original = make_plan(change, circumstances)
        plan = parse_plan([line.encode() for line in plan_lines(original)], "PLAN")
        assert plan == original
        return plan

    def owned(self, journal: Journal, contents: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Return what is owned, an apply that has not ended settled."""
        return settle(journal, contents, self.place.completion).journal.owned

    def apply(self, plan: Plan, *, resume: bool = False) -> Outcome | None:
        """What `apply` does with a plan, if it is not empty."""
        if plan.is_empty:
            return None
        self._applies += 1
        options = ApplyOptions(
            apply=f"apply-{self._applies}", at=BEFORE.at, who="me@host", accept_transient=True, resume=resume
        )
        mark = plan.journal
        assert mark is not None
        with (
            _fragile_journal(self.fuse),
            open_journal(self.journal, mark.id, lambda _: None, is_new=mark.entries == 0) as journal,
        ):
            applying = Applying(
                plan=plan, place=self.place, journal=journal, options=options, notify=self.notices.append
            )
            return applying.make(applying.check(), lambda _done, _all: None)

    def run(
        self,
        kill: int | None,
        recovery: Recovery,
        second: int | None = None,
        *,
        error: type[BaseException] = Killed,
    ) -> Ended:
        """Plan and apply; killed, or failed, at a point, and killed in the recovery at another one; till it is done."""
        plan = self.plan()
        self.fuse = Fuse(kill, error)
        killed_at = 0
        try:
            self.apply(plan)
            passed = self.fuse.passed
        except (error, MetadataError):
            passed, killed_at = self.fuse.passed, len(self.place.visible)
            self.fuse = Fuse(second)
            try:
                self._recover(plan, recovery)
            except Killed:
                self.fuse = Fuse()
                self._recover(plan, Recovery.AGAIN if recovery is Recovery.RESUME else recovery)
        self.fuse = Fuse()
        journal = read_journal(self.journal, lambda: "journal-1", lambda _: None)
        owned = self.owned(journal, self.place.read().contents)
        return Ended(
            visible=tuple(self.place.visible),
            killed_at=killed_at,
            owned=frozenset(map(acl_of_content, owned)),
            points=passed,
        )

    def _recover(self, plan: Plan, recovery: Recovery) -> None:
        if recovery is Recovery.REPLAN and not self.case.asks_for_shared:
            self.apply(self.plan())
            return
        if recovery is Recovery.RESUME and not self._has_begun(plan):
            there, entries = self.place.rules, self.entries()
            try:
                self.apply(plan, resume=True)
            except RefusedError:
                assert self.place.rules == there
                assert self.entries() == entries
            else:
                raise AssertionError("--resume went on with what had not begun")
            recovery = Recovery.AGAIN
        self.apply(plan, resume=recovery is Recovery.RESUME)

    def entries(self) -> tuple[Entry, ...]:
        """Return the whole lines of the journal."""
        return read_journal(self.journal, lambda: "journal-1", lambda _: None).entries

    def is_done(self, plan: Plan) -> bool:
        """Whether the journal has the end of an apply of this plan."""
        entries, mark = self.entries(), plan.journal
        return mark is not None and len(entries) > mark.entries and entries[-1].kind is EntryKind.DONE

    def _has_begun(self, plan: Plan) -> bool:
        """Whether a whole BEGIN of this plan is in the journal."""
        mark = plan.journal
        return mark is not None and len(self.entries()) > mark.entries


def listed_denials(plan: Plan, case: Case) -> list[Region]:
    """The transient denials that a plan lists, as regions."""
    regions = transient_denials(plan.steps, map(content_of, case.there), case.settings)
    assert tuple({**region_object(region), "text": str(region)} for region in regions) == plan.transient
    return regions


def _history(case: Case) -> Iterator[Entry]:
    """What an earlier apply wrote into the journal, so that it owns what it does."""
    steps = tuple(
        JournalStep(action=JournalAction.ADD, content=content_of(rule)) for rule in sorted(case.owned, key=str)
    )
    for kind in EntryKind.BEGIN, EntryKind.DONE:
        yield Entry(
            kind=kind, apply="apply-0", at=BEFORE.at, who=BEFORE.who, plan="0", place="memory-1", git=None, steps=steps
        )


@contextmanager
def _fragile_journal(fuse: Fuse) -> Iterator[None]:
    """Pass a point before each line of the journal, in the midst of it and behind it."""

    def write(fd: int, data: bytes) -> None:
        half = len(data) // 2
        fuse.point()
        write_all(fd, data[:half])
        fuse.point()
        write_all(fd, data[half:])
        fuse.point()

    with patch.object(journal_module, "write_all", write):
        yield
