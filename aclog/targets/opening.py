"""Targets by their flags: opened, read for a plan, and applied to."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path

from attrs import evolve

from aclog.authorizer.acl import NO_ORIGINS, Origins, StandardAcl
from aclog.authorizer.acls_image import ranges_among
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Generation, Settings
from aclog.authorizer.standard import ALL_KNOWN, AUTHORIZER_CLASS_NAME_CONFIG, SETTLED, Premise, Premises
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.machine import randomness
from aclog.metalog.primitives import random_uuid, uuid_text
from aclog.metalog.values import frozen
from aclog.planning.applying import Applying, ApplyOptions, Outcome, Progress, Remaining
from aclog.planning.journal import Journal, JournalWriter, open_journal, read_journal, settle, unsure_texts
from aclog.planning.plan import (
    Batching,
    JournalError,
    JournalMark,
    Origin,
    Place,
    PlaceAddress,
    PlaceKind,
    PlaceState,
    Plan,
    PlanPlace,
    RefusedError,
    Step,
    WritablePlace,
)
from aclog.planning.planner import Circumstances, DeleteLimit, Holdings, PlannedChange
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.targets.applies import check_applied, check_others

# The choice of a target by its address. The modules of a target are imported when one is opened.


@contextmanager
def open_place(
    address: PlaceAddress, notify: Callable[[str], None], *, write: bool, force: bool = False
) -> Iterator[WritablePlace]:
    """Open a target; with `write` for an apply. `force` permits a log that belongs to a Kafka node.

    Raises:
        ConfigError: an address or a property that cannot be used.
        MetadataError: it cannot be opened.

    """
    with _opened(address, notify, write=write, force=force) as place:
        yield place


def _opened(
    address: PlaceAddress, notify: Callable[[str], None], *, write: bool, force: bool
) -> AbstractContextManager[WritablePlace]:
    if address.kind is PlaceKind.LOG:
        from aclog.targets.log import open_log_place

        return open_log_place(Path(address.value), notify, write=write, force=force)
    if address.kind is PlaceKind.ZOOKEEPER:
        from aclog.targets.zookeeper import open_zookeeper_place

        return open_zookeeper_place(address.properties, notify)
    from aclog.client.connection import Role
    from aclog.sources.server_flags import client_security, parse_servers
    from aclog.targets.cluster import open_server_place

    role = Role.BROKER if address.kind is PlaceKind.BOOTSTRAP_SERVER else Role.CONTROLLER
    config = None if address.command_config is None else Path(address.command_config)
    return open_server_place(parse_servers(f"--{address.kind}", address.value), client_security(config), role, notify)


# A target as read when a plan was made for it.


COUNTS_AS_OPEN = Premise(
    name=ALLOW_EVERYONE_CONFIG,
    problem="allow.everyone.if.no.acl.found is unknown, by the flags and the target: names without ACLs count as open",
    unless="names without ACLs are not open",
    settled_by="--allow-everyone-if-no-acl-found or --no-allow-everyone-if-no-acl-found",
    allows=False,
    denies=True,
)
"""The premise where that is unknown."""


@frozen(kw_only=True)
class PlaceSettings:
    """Settings that the flags state for a target; None where they do not."""

    super_users: frozenset[str] | None = None
    allow_everyone: bool | None = None
    documented: bool = False
    generation: Generation | None = None
    """The version of Kafka that decides there."""

    @property
    def properties(self) -> frozenset[str]:
        """The broker properties with a stated value."""
        values = {SUPER_USERS_CONFIG: self.super_users, ALLOW_EVERYONE_CONFIG: self.allow_everyone}
        return frozenset(name for name, value in values.items() if value is not None)


_OLD_KAFKA = DecidingKafka(generations=(Generation.V4_3,))
"""Represents any version, where all decide alike."""


@frozen(eq=False, kw_only=True)
class FoundPlace:
    """The ACLs of a target, its settings, and its managed ACLs."""

    name: str
    address: PlaceAddress
    identity: str | None
    fingerprint: str | None
    """Identifies a target without an id."""
    batching: Batching
    state: PlaceState
    settings: Settings
    """Where several generations of Kafka may decide, those of the oldest one."""
    settings_known: bool
    settings_by_place: bool
    """See Plan."""
    kafka: DecidingKafka = _OLD_KAFKA
    """The versions of Kafka that may decide there."""
    kafka_given: bool = True
    """Whether the version is stated, or all versions that may decide there decide alike."""
    premises: Premises = ALL_KNOWN
    """Unknown premises; unknown super users count as none."""
    _check: Callable[[Sequence[Step]], None]
    journal: Journal | None
    """The journal as in its file."""
    settled: Journal | None
    """The same with every apply settled, as in aclog.planning.journal."""
    owned_by_others: AbstractSet[bytes]
    others: tuple[Journal, ...] = ()
    """The journals of other sources, as in their files."""

    @property
    def holdings(self) -> Holdings:
        """The ACLs of the target, and their owners."""
        owned = frozenset[bytes]() if self.settled is None else self.settled.owned
        return Holdings(there=self.state.contents, owned=owned, others=self.owned_by_others)

    def check_plan(
        self, change: PlannedChange, steps: Sequence[Step], limit: DeleteLimit, *, origins: Origins = NO_ORIGINS
    ) -> None:
        """Check a change, and that the target can hold the ACLs to add; `origins` as for PlannedChange.check.

        Raises:
            RefusedError: it cannot, or as PlannedChange.check.

        """
        change.check(limit, self.kafka.generations, origins=origins)
        try:
            self._check(steps)
        except ConfigError as error:
            raise RefusedError(f"{self.name}: {error}") from error

    def circumstances(self, origin: Origin) -> Circumstances:
        """Return the target as a plan records it."""
        return Circumstances(
            place=PlanPlace(
                address=self.address, identity=self.identity, batching=self.batching, fingerprint=self.fingerprint
            ),
            state=self.state,
            settings=self.settings,
            settings_known=self.settings_known,
            settings_by_place=self.settings_by_place,
            kafka=None if self.kafka_given else self.kafka,
            origin=origin,
            journal=None if self.journal is None else _mark(self.journal),
            others=tuple(map(_mark, self.others)),
        )


def find_place(
    address: PlaceAddress,
    stated: PlaceSettings | None,
    journal: Path | None,
    notify: Callable[[str], None],
    others: Sequence[Path] = (),
    *,
    ranges: Iterable[StandardAcl] = (),
) -> FoundPlace:
    """Read a target, and its journals; unknown settings are noted.

    `stated`: None if nothing is decided, so that the settings do not matter. `ranges` are rules that may be added
    and whose hosts are ranges.

    Raises:
        RefusedError: it returns no ACLs, though the journal manages some there.
        JournalError: a journal is damaged, or of another target.
        MetadataError: the target cannot be read.

    """
    own = None if journal is None else read_own_journal(journal, notify)
    foreign = [other_journal(path, own, notify) for path in others]
    with open_place(address, notify, write=False) as place:
        identity, state, by_place = place.identity(), place.read(), place.settings()
        if own is not None and not state.exists:
            _check_beside(own, Path(address.value))
        for each in (own, *foreign):
            if each is not None:
                check_journal(each, address, identity, place.name)
        settled = None if own is None else settle(own, state.contents, place.completion)
        if own is not None and settled is not None:
            settled.journal.check_rules_there(state.contents, place.name)
            for text in unsure_texts(own, settled.unsure):
                notify(text)
        owned_by_others = (settle(each, state.contents, place.completion).journal.owned for each in foreign)
        settings, settings_known = _settings(stated or PlaceSettings(), by_place, address.kind)
        all_ranges = chain(ranges, ranges_among(state.contents), _ranges_of(own))
        kafka = _OLD_KAFKA if stated is None else _kafka(stated, place, all_ranges)
        settings = evolve(settings, cidr=kafka.generations[0].has_ranges)
        premises = _premises(place, stated, settings_known=settings_known)
        for premise in premises.unknown:
            if premise is not COUNTS_AS_OPEN:  # which is in the plan itself
                notify(premise.note())
        return FoundPlace(
            name=place.name,
            address=address,
            identity=identity,
            fingerprint=place.fingerprint(state.end_offset or 0) if identity is None else None,
            batching=place.batching,
            state=state,
            settings=settings,
            settings_known=settings_known,
            settings_by_place=by_place is not None and (stated is None or stated.allow_everyone is None),
            kafka=kafka,
            kafka_given=kafka is _OLD_KAFKA or (stated is not None and stated.generation is not None),
            premises=premises,
            check=place.check,
            journal=own,
            settled=None if settled is None else settled.journal,
            owned_by_others=frozenset[bytes]().union(*owned_by_others),
            others=tuple(foreign),
        )


def _kafka(stated: PlaceSettings, place: Place, ranges: Iterable[StandardAcl]) -> DecidingKafka:
    """Return the versions that may decide in a target; only needed if a host is a range, as otherwise all decide alike.

    `ranges` are only read where no generation is named: to look for them takes a pass over all ACLs.
    """
    if stated.generation is not None:
        return DecidingKafka(generations=(stated.generation,), stated=stated.generation)
    rules = set(ranges)
    return place.kafka(rules) if rules else _OLD_KAFKA


def _ranges_of(journal: Journal | None) -> Iterable[StandardAcl]:
    """Return the rules that a journal has and whose hosts are ranges: a revert may restore them."""
    if journal is None:
        return ()
    return ranges_among(step.content for entry in journal.entries for step in entry.steps)


def _premises(place: Place, stated: PlaceSettings | None, *, settings_known: bool) -> Premises:
    """Return the unknown premises of a target; `settings_known`: whether allow.everyone.if.no.acl.found is known."""
    if stated is None:
        return place.premises(SETTLED).without({AUTHORIZER_CLASS_NAME_CONFIG})
    premises = place.premises(stated.properties).without({ALLOW_EVERYONE_CONFIG})
    return premises if settings_known else premises.also(Premises((COUNTS_AS_OPEN,)))


def _mark(journal: Journal) -> JournalMark:
    return JournalMark(
        path=str(Path(journal.path).absolute()),
        id=journal.id,
        entries=len(journal.entries),
        checksum=journal.checksum,
    )


def check_journal(journal: Journal, address: PlaceAddress, identity: str | None, name: str) -> None:
    """Check that a journal is of a target, and neither of them an older copy. Raises JournalError."""
    journal.check_place(identity, name)
    if address.kind is PlaceKind.LOG:
        check_applied(Path(address.value), identity, journal)


def read_own_journal(path: Path, notify: Callable[[str], None]) -> Journal:
    """Return the journal of a source. Raises as read_journal."""
    return read_journal(path, _new_id, notify)


def other_journal(path: Path, own: Journal | None, notify: Callable[[str], None]) -> Journal:
    """Return the journal of another source. Raises JournalError: missing, or this source's own."""
    journal = read_journal(path, _new_id, notify)
    if journal.is_new:
        raise JournalError(
            f"--other-journal {path}: no such journal: the ACLs that its source manages would be deleted"
        )
    if own is not None and journal.id == own.id:
        raise JournalError(f"--other-journal {path}: the same as --journal {own.path}: expected another source's")
    return journal


def _check_beside(journal: Journal, directory: Path) -> None:
    """Raise JournalError if the journal would be in the directory of a log that is yet to be made."""
    if directory.resolve() in Path(journal.path).resolve().parents:
        raise JournalError(
            f"--journal {journal.path}: in the directory of the log, which is made by the first apply: expected "
            "another directory"
        )


def _settings(stated: PlaceSettings, by_place: Settings | None, kind: PlaceKind) -> tuple[Settings, bool]:
    """Return the settings: those of the flags, then those of the target; and whether allow.everyone is known at all.

    An unknown value counts as open: then a plan that seems safe is safe.
    """
    told_users = by_place.super_users if by_place is not None else frozenset[str]()
    settings = Settings(
        super_users=told_users if stated.super_users is None else stated.super_users,
        documented=stated.documented or kind is PlaceKind.ZOOKEEPER,  # AclAuthorizer: `*` covers names that begin so
    )
    if stated.allow_everyone is not None:
        return evolve(settings, allow_everyone=stated.allow_everyone), True
    if by_place is not None:
        return evolve(settings, allow_everyone=by_place.allow_everyone), True
    return evolve(settings, allow_everyone=True), False


def _new_id() -> str:
    return uuid_text(random_uuid(randomness.token_bytes))


# Applies a plan to its target: both are opened, checked, and written only after confirmation.


@frozen(eq=False, kw_only=True)
class PlanApply:
    """How a plan is applied."""

    plan: Plan
    address: PlaceAddress
    """The address of the target from here."""
    options: ApplyOptions
    notify: Callable[[str], None]
    journal: Path | None = None
    """The path of its journal; None: as recorded in the plan."""
    other_journals: Sequence[Path] = ()
    """The paths of the journals of other sources, if they differ from those in the plan."""
    force: bool = False
    """Whether a log may be written that belongs to a Kafka node."""

    def run(
        self,
        confirm: Callable[[str, Remaining], None] | None,
        progress: Callable[[str], AbstractContextManager[Progress]],
    ) -> tuple[str, Outcome]:
        """Apply the plan; return the name of the target, and a summary.

        `confirm` is called before the first write, with the name of the target and a summary of the changes, and raises
        to refuse; None: no confirmation. `progress` shows the steps in the target of a name.

        Raises:
            RefusedError, JournalError: nothing was changed.
            StoppedError: interrupted part way.
            MetadataError, OSError: the target or the journal cannot be read or written.

        """
        with (
            self._opened_journal() as journal,
            open_place(self.address, self.notify, write=True, force=self.force) as place,
        ):
            applying = Applying(plan=self.plan, place=place, journal=journal, options=self.options, notify=self.notify)
            ready = applying.check()
            if journal is not None and self.address.kind is PlaceKind.LOG:
                check_applied(Path(self.address.value), place.identity(), journal.journal)
            check_others(self.plan, ready, place, self.other_journals, self.notify)
            if confirm is not None and not ready.is_done:
                confirm(place.name, ready.remaining)
                ready = applying.check()  # the confirmation may have taken long
                check_others(self.plan, ready, place, self.other_journals, self.notify)
            with progress(place.name) as advance:
                return place.name, applying.make(ready, advance)

    def _opened_journal(self) -> AbstractContextManager[JournalWriter | None]:
        path, mark = self._journal_path(), self.plan.journal
        if path is None or mark is None:
            return nullcontext()
        return open_journal(path, mark.id, self.notify, is_new=mark.entries == 0)

    def _journal_path(self) -> Path | None:
        """Return the file of the journal. Raises JournalError: one is given, and the plan was made without."""
        if self.plan.journal is None:
            if self.journal is not None:
                raise JournalError(f"{self.journal}: the plan was made without a journal: make it again with --journal")
            return None
        return self.journal or Path(self.plan.journal.path)


def told_outcome(plan: Plan, outcome: Outcome, name: str) -> str:
    """Return a summary in one line."""
    if outcome.was_done:
        return f"{name}: this plan is applied already (apply {outcome.apply}); nothing was changed"
    added = sum(step.adds for step in plan.steps)
    before = f" ({outcome.completed_before:,} steps were already done)" if outcome.completed_before else ""
    existing = plural(len(plan.adopt), "existing rule")
    adopted = f", {existing} recorded as managed (adopted)" if plan.adopt else ""
    deleted = len(plan.steps) - added
    return f"{name}: {plural(added, 'rule')} added, {deleted:,} deleted{adopted}{before}; apply id: {outcome.apply}"
