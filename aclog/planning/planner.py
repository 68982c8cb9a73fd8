"""What has to change so that a target holds what its source of ACLs states, and in which order."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import chain, groupby

from attrs import evolve, frozen

from aclog.analysis.policy import generation_object, merged, only_on
from aclog.analysis.regions import JsonObject, Region, region_object
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourcePattern,
    StandardAcl,
    acl_text,
    resource_of,
)
from aclog.authorizer.acls_image import Action, RuleChange, acl_of_content, content_of, ranges_among
from aclog.authorizer.control import refusal
from aclog.authorizer.origin import NO_ORIGINS, Origins, places_text
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.errors import ConfigError, EncodeError
from aclog.planning.effect import transient_denials
from aclog.planning.journal import EntryKind, Journal, JournalAction, fold, owned_after
from aclog.planning.plan import (
    Base,
    Batching,
    JournalError,
    JournalMark,
    Origin,
    PlaceState,
    Plan,
    PlanPlace,
    RefusedError,
    Stage,
    Step,
    TouchedRegion,
    overlapping,
    stage_of,
    touched,
)
from aclog.snapshots.deciding_kafka import DecidingKafka

# The order in which a change is made, and what of it becomes visible together.
#
# Denies are added first and removed last, so that no request is allowed on the way that both ends deny. Where a
# resource without ACLs is open to everyone (allow.everyone.if.no.acl.found), the first ACL on it closes it. So the
# widest pattern comes first, with its widest rule: what it does not let in is all that waits for the rest. Removal is
# the mirror image.


def ordered(changes: Iterable[RuleChange], batching: Batching) -> tuple[Step, ...]:
    """Return the steps that make these changes, of distinct ACLs, in a place that shows so much at once.

    They depend on the set of the changes alone, not on how they were listed.
    """
    by_stage: dict[Stage, list[StandardAcl]] = {stage: [] for stage in Stage}
    for change in changes:
        by_stage[stage_of(change.acl, added=change.added)].append(change.acl)
    staged = [(stage, acl) for stage, acls in by_stage.items() for acl in _in_order(stage, acls)]
    batches = _by_resource(staged) if batching is Batching.RESOURCE else groupby(staged)
    return tuple(
        Step(
            action=Action.ADD if stage <= Stage.ADD_ALLOW else Action.REMOVE,
            acl=acl,
            batch=0 if batching is Batching.ALL else number,
        )
        for number, (_, batch) in enumerate(batches)
        for stage, acl in batch
    )


def _in_order(stage: Stage, acls: Iterable[StandardAcl]) -> list[StandardAcl]:
    return sorted(acls, key=_widest_first, reverse=stage >= Stage.REMOVE_ALLOW)


def _by_resource(
    staged: list[tuple[Stage, StandardAcl]],
) -> Iterator[tuple[object, Iterable[tuple[Stage, StandardAcl]]]]:
    """Yield batches of one resource each: all that changes on one that overlaps no other that changes, else a stage."""
    resources = [resource_of(acl) for _, acl in staged]
    shared = overlapping(set(resources))
    together: dict[tuple[Stage, ResourcePattern], list[tuple[Stage, StandardAcl]]] = {}
    alone: dict[ResourcePattern, list[tuple[Stage, StandardAcl]]] = {}
    for each, resource in zip(staged, resources, strict=True):
        if resource in shared:
            together.setdefault((each[0], resource), []).append(each)
        else:
            alone.setdefault(resource, []).append(each)
    return chain(together.items(), alone.items())


def _widest_first(acl: StandardAcl) -> tuple[object, ...]:
    """Return the key by which the widest pattern comes first, with its rules together, and of these the widest."""
    narrow = (acl.principal != WILDCARD_PRINCIPAL, acl.host != WILDCARD, acl.operation != AclOperation.ALL)
    rest = (acl.principal, acl.host, acl.operation, acl.permission_type)
    return (acl.resource_type, *_narrowness(acl), acl.pattern_type, sum(narrow), narrow, rest)


def _narrowness(acl: StandardAcl) -> tuple[int, int, str]:
    """Return the key of a name and its pattern type; whatever is not LITERAL is compared as a prefix."""
    name = acl.resource_name
    if acl.pattern_type != PatternType.LITERAL:
        return 1 if name else -1, len(name), name
    return 0 if name == WILDCARD else 2, 0, name


# How many deletes a plan may hold before somebody has to say how many are meant.


_LEAST = 20
_PERCENT = 10.0


@frozen(kw_only=True)
class DeleteLimit:
    """A number of deletes, or a share of what the journal owns; by default the larger of 20 and 10%."""

    number: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str | None) -> "DeleteLimit":
        """Return the limit in the value of --max-deletes: N, or N%. Raises ConfigError: neither."""
        if text is None:
            return cls()
        digits = text.strip()
        try:
            if digits.endswith("%"):
                percent = float(digits[:-1])
                if 0 <= percent <= 100:  # False for NaN
                    return cls(percent=percent)
            elif digits.isascii() and digits.isdecimal():
                return cls(number=int(digits))
        except ValueError:
            pass
        raise ConfigError(f"--max-deletes {text[:40]!r}: expected a number such as 50, or a share such as 25%")

    def most(self, owned: int) -> int | None:
        """Return how many deletes pass if so many ACLs are owned; None: any number."""
        if self.number is not None:
            return self.number
        if self.percent is not None:
            return None if self.percent >= 100 else int(owned * self.percent / 100)
        return max(_LEAST, int(owned * _PERCENT / 100))

    def __str__(self) -> str:
        if self.number is not None:
            return str(self.number)
        if self.percent is not None:
            return f"{self.percent:g}%"
        return f"the larger of {_LEAST} and {_PERCENT:g}% of what is owned"


# What has to change so that a place holds what its source of rules wants, and nothing of others is touched.


_NAMED = 3
"""How many ACLs an error names."""


@frozen(kw_only=True)
class PlannedChange:
    """A change, and how it stands to what is there; each tuple is sorted by the contents of its ACLs."""

    added: tuple[StandardAcl, ...] = ()
    removed: tuple[StandardAcl, ...] = ()
    """Owned and no longer wanted; or asked for one by one (`unowned`)."""
    adopted: tuple[StandardAcl, ...] = ()
    """Wanted, there, not owned: owned from now on."""
    released: tuple[StandardAcl, ...] = ()
    """Owned, no longer wanted, and gone or owned by another journal too."""
    present: tuple[StandardAcl, ...] = ()
    """Wanted, there, not owned: left as they are."""
    unowned: tuple[StandardAcl, ...] = ()
    """Those of `removed` that are not owned."""
    absent: tuple[StandardAcl, ...] = ()
    """Asked to be removed, and not there."""
    shared: tuple[StandardAcl, ...] = ()
    """Wanted, there, and owned by another journal: wanted by two."""
    foreign: int = 0
    """How many others are there, neither wanted nor owned."""
    owned: int = 0
    """How many are owned before the change."""

    @property
    def changes(self) -> list[RuleChange]:
        """What changes in the place."""
        return [
            *(RuleChange(added=True, acl=acl) for acl in self.added),
            *(RuleChange(added=False, acl=acl) for acl in self.removed),
        ]

    def check(self, limit: DeleteLimit, generations: Collection[Generation], *, origins: Origins = NO_ORIGINS) -> None:
        """Check that every ACL to add can be created, and that no more are deleted than the limit lets pass.

        `generations`: of Kafka, each of which must create it. `origins` tell where what is wanted stands.

        Raises:
            RefusedError: one cannot, or too many are deleted.

        """
        for acl in self.added:
            for each in generations:
                why = refusal(acl, cidr=each.has_ranges)
                if why is not None:
                    by = f" of {each}" if len(generations) > 1 else ""
                    raise RefusedError(f"{acl_text(acl)}{places_text(acl, origins)}: CreateAcls{by} refuses it: {why}")
        most = limit.most(self.owned)
        if most is not None and len(self.removed) > most:
            raise RefusedError(
                f"{len(self.removed):,} deletes, of {self.owned:,} owned rules: more than --max-deletes lets pass "
                f"({limit}): look at them, and give --max-deletes {len(self.removed)} if they are meant"
            )


@frozen(kw_only=True)
class Holdings:
    """What a place has, and who owns what of it."""

    there: AbstractSet[bytes]
    owned: AbstractSet[bytes]
    """By the journal of the plan."""
    others: AbstractSet[bytes] = frozenset()
    """By other journals."""


def change_to_want(holdings: Holdings, desired: AbstractSet[bytes], *, adopt: bool) -> PlannedChange:
    """Return what makes the place hold all that is wanted, and nothing that is owned and no longer wanted.

    Deletes are what is owned minus what is wanted, never what is there minus what is wanted.
    """
    dropped = holdings.owned - desired
    kept_for_others = dropped & holdings.others
    present = (desired & holdings.there) - holdings.owned
    return PlannedChange(
        added=_acls(desired - holdings.there),
        removed=_acls((dropped & holdings.there) - kept_for_others),
        adopted=_acls(present) if adopt else (),
        released=_acls((dropped - holdings.there) | kept_for_others),
        present=() if adopt else _acls(present),
        shared=_acls(desired & holdings.there & holdings.others),
        foreign=len(holdings.there - desired - holdings.owned),
        owned=len(holdings.owned),
    )


def change_as_asked(holdings: Holdings, changes: Iterable[RuleChange], *, adopt: bool) -> PlannedChange:
    """Return what makes the changes of a file, in order; those that are made already are left out.

    Raises:
        RefusedError: it removes ACLs that the journal does not own, without `adopt`; or that another journal owns; or
            a text is longer than a record can hold.

    """
    added, removed = _net_contents(changes)
    present, there = (added & holdings.there) - holdings.owned, removed & holdings.there
    unowned = there - holdings.owned
    if unowned & holdings.others:
        raise RefusedError(
            f"{_rules_text(_acls(unowned & holdings.others))}: owned by another journal, and not by this one: expected "
            "its source to remove them"
        )
    if unowned and not adopt:
        raise _not_owned(_acls(unowned))
    kept_for_others = there & holdings.others & holdings.owned
    return PlannedChange(
        added=_acls(added - holdings.there),
        removed=_acls(there - kept_for_others),
        adopted=_acls(present) if adopt else (),
        released=_acls(((removed & holdings.owned) - holdings.there) | kept_for_others),
        present=() if adopt else _acls(present),
        unowned=_acls(unowned),
        absent=_acls(removed - holdings.there - holdings.owned),
        shared=_acls(added & holdings.there & holdings.others),
        foreign=len(holdings.there - added - removed - holdings.owned),
        owned=len(holdings.owned),
    )


def _net_contents(changes: Iterable[RuleChange]) -> tuple[set[bytes], set[bytes]]:
    """Return what is to be there, and what is not: of several changes of an ACL the last one counts."""
    last = {_content(change): change.added for change in changes}
    return {each for each, is_added in last.items() if is_added}, {
        each for each, is_added in last.items() if not is_added
    }


def _content(change: RuleChange) -> bytes:
    try:
        return content_of(change.acl)
    except EncodeError as error:
        raise RefusedError(f"{change.where}: {error}") from error


def _not_owned(acls: Sequence[StandardAcl]) -> RefusedError:
    return RefusedError(
        f"{len(acls):,} rules to remove are not owned by the journal, so somebody else may need them: "
        f"{_rules_text(acls)}: expected --adopt if they are to be removed nevertheless"
    )


def _rules_text(acls: Sequence[StandardAcl]) -> str:
    """Return the first of some rules, and how many more there are."""
    more = f"; and {len(acls) - _NAMED:,} more" if len(acls) > _NAMED else ""
    return "; ".join(acl_text(acl) for acl in acls[:_NAMED]) + more


def _acls(contents: Iterable[bytes]) -> tuple[StandardAcl, ...]:
    return tuple(acl_of_content(content) for content in sorted(contents))


# Making a plan of a change: its order, what it touches, and what it denies for a moment.


@frozen(kw_only=True)
class Circumstances:
    """All that a plan says besides its change."""

    place: PlanPlace
    state: PlaceState
    settings: Settings
    settings_known: bool
    settings_by_place: bool
    origin: Origin
    journal: JournalMark | None
    others: tuple[JournalMark, ...] = ()
    """The journals of other sources."""
    kafka: DecidingKafka | None = None
    """What may decide, as the place states; None: who makes the plan names it, and `settings` has it."""


def make_plan(change: PlannedChange, circumstances: Circumstances) -> Plan:
    """Return the plan that makes a change."""
    steps = ordered(change.changes, circumstances.place.batching)
    acls = (*(step.acl for step in steps), *change.adopted, *change.released)
    region = TouchedRegion.of(acls, allow_everyone=circumstances.settings.allow_everyone)
    near = region.among(circumstances.state.contents)
    plan = Plan(
        place=circumstances.place,
        base=Base(
            rules=len(circumstances.state.contents),
            end_offset=circumstances.state.end_offset,
            exists=circumstances.state.exists,
            touched=touched(near),
        ),
        settings=circumstances.settings,
        settings_known=circumstances.settings_known,
        settings_by_place=circumstances.settings_by_place,
        origin=circumstances.origin,
        steps=steps,
        journal=circumstances.journal,
        others=circumstances.others,
        adopt=change.adopted,
        release=change.released,
        unowned=change.unowned,
        generations=_generations(circumstances.kafka, (*near, *(content_of(step.acl) for step in steps))),
    )
    denied = {each: transient_denials(steps, near, settings) for each, settings in plan.each_settings.items()}
    return evolve(plan, transient=tuple(_object(*each) for each in merged(denied)))


def _generations(kafka: DecidingKafka | None, contents: Iterable[bytes]) -> tuple[Generation, ...] | None:
    """Return the generations of Kafka that may decide on a change of these ACLs; None: all that may decide alike."""
    if kafka is None or next(ranges_among(contents), None) is None:
        return None
    return kafka.generations


def _object(region: Region, only: Generation | None) -> JsonObject:
    return {**region_object(region), "text": f"{region}{only_on(only)}", **generation_object(only)}


# How a place differs from what a source of rules wants, and from what its journal says.


class DriftKind(StrEnum):
    """What is wrong with a rule."""

    MISSING = "MISSING"
    """Wanted, and not there."""
    LEFTOVER = "LEFTOVER"
    """Owned, no longer wanted, and still there."""


@frozen(kw_only=True, order=True)
class Drift:
    """One rule that is not as it should be; `content` as aclog.authorizer.acls_image has it."""

    kind: DriftKind
    content: bytes
    owned: bool
    """Whether the journal owns it: if it is missing, somebody else deleted it, else it was never applied."""


def drift_of(holdings: Holdings, desired: frozenset[bytes]) -> list[Drift]:
    """Return every rule that is not as it should be, sorted; what is neither wanted nor owned is nobody's drift."""
    missing, leftover = desired - holdings.there, (holdings.owned - desired - holdings.others) & holdings.there
    return sorted(
        Drift(kind=kind, content=content, owned=content in holdings.owned)
        for kind, contents in ((DriftKind.MISSING, missing), (DriftKind.LEFTOVER, leftover))
        for content in contents
    )


# What has to change so that a place, and who owns what of it, is as it was before an apply.


_LEAST_PREFIX = 4
"""Of an apply's id, characters that name it."""


def change_back(journal: Journal, holdings: Holdings, apply: str | None = None) -> PlannedChange:
    """Return what undoes an apply, and all later ones of this journal; by default the newest one.

    `apply` is its id, or how that begins. What others did meanwhile stays: a rule that is there again though this
    journal had removed it, or gone though it had added it, is left as it is; and so is what another journal owns, too.
    Nothing is owned again that is there without this journal: it may be somebody else's by now.

    Every apply of the journal has ended (aclog.planning.journal).

    Raises:
        JournalError: there is no such apply, or several begin so.

    """
    at, there = _place_of(journal, apply), holdings.there
    before, undone = journal.entries[:at], [each for each in journal.entries[at:] if each.kind is EntryKind.DONE]
    owned_before, owned = owned_after(before), set(owned_after(before))
    added: dict[bytes, bool] = {}
    for entry in undone:
        fold(owned, entry.steps)
        for step in entry.steps:
            if step.action in (JournalAction.ADD, JournalAction.REMOVE):
                added.setdefault(step.content, step.action is JournalAction.ADD)
    to_add = {content for content, was_added in added.items() if not was_added} - there
    to_remove = {content for content, was_added in added.items() if was_added and content in owned} & there
    to_remove -= holdings.others
    own_after = ((owned | to_add) - to_remove) & owned_before
    return PlannedChange(
        added=_rolled_back_acls(to_add),
        removed=_rolled_back_acls(to_remove),
        released=_rolled_back_acls(((owned | to_add) - to_remove) - own_after),
        foreign=len(there - owned),
        owned=len(owned),
    )


def _place_of(journal: Journal, apply: str | None) -> int:
    """Return where the BEGIN of an apply is among the entries."""
    begun = [(at, entry.apply) for at, entry in enumerate(journal.entries) if entry.kind is EntryKind.BEGIN]
    if not begun:
        raise JournalError(f"{journal.path}: nothing was applied with this journal: there is nothing to go back from")
    if apply is None:
        return begun[-1][0]
    positions = [at for at, each in begun if each == apply or (len(apply) >= _LEAST_PREFIX and each.startswith(apply))]
    if len(positions) != 1:
        what = "no apply has the id" if not positions else f"{len(positions)} applies have ids that begin with"
        raise JournalError(f"{journal.path}: {what} {apply[:40]}: expected one of its {len(begun):,} applies")
    return positions[0]


def _rolled_back_acls(contents: AbstractSet[bytes]) -> tuple[StandardAcl, ...]:
    return tuple(acl_of_content(content) for content in sorted(contents))
