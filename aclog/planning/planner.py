"""The changes, and their order, that make a target match its source of ACLs; only managed ACLs are deleted."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import chain, groupby

from attrs import evolve

from aclog.analysis.policy import generation_object, merged, only_on
from aclog.analysis.regions import JsonObject, Region, region_object
from aclog.authorizer.acl import NO_ORIGINS, Origins, ResourcePattern, StandardAcl, acl_text, places_text, resource_of
from aclog.authorizer.acls_image import Action, RuleChange, acl_of_content, content_of, ranges_among
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, PatternType
from aclog.authorizer.control import malformed
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.errors import ConfigError, EncodeError
from aclog.metalog.values import frozen
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

# The order of a change, and the batches in which it becomes visible.
#
# DENY ACLs are added first and removed last, so that no request is allowed on the way that is denied before and after.
# Where a resource without ACLs is open to everyone (allow.everyone.if.no.acl.found), the first ACL on it closes it. So
# the widest pattern comes first, with its widest ACL: only the requests that it does not allow are denied meanwhile.
# Removal is the mirror image.


def ordered(changes: Iterable[RuleChange], batching: Batching) -> tuple[Step, ...]:
    """Return the steps that make these changes of distinct ACLs, in a target with this batching.

    The result depends only on the set of changes, not on their order.
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
    """Yield batches of one resource each: the whole change of a resource that overlaps no other one, else one stage."""
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
    """Return a sort key that puts the widest pattern first, its ACLs together, and of these the widest first."""
    narrow = (acl.principal != WILDCARD_PRINCIPAL, acl.host != WILDCARD, acl.operation != AclOperation.ALL)
    rest = (acl.principal, acl.host, acl.operation, acl.permission_type)
    return (acl.resource_type, *_narrowness(acl), acl.pattern_type, sum(narrow), narrow, rest)


def _narrowness(acl: StandardAcl) -> tuple[int, int, str]:
    """Return the sort key of a name and its pattern type; every pattern type except LITERAL counts as a prefix."""
    name = acl.resource_name
    if acl.pattern_type != PatternType.LITERAL:
        return 1 if name else -1, len(name), name
    return 0 if name == WILDCARD else 2, 0, name


# The number of deletes above which a plan needs an explicit limit.


_LEAST = 20
_PERCENT = 10.0


@frozen(kw_only=True)
class DeleteLimit:
    """A number of deletes, or a share of the managed ACLs; by default the larger of 20 and 10%."""

    number: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str | None) -> "DeleteLimit":
        """Return the limit in the value of --max-deletes: N, or N%. Raises ConfigError: it is neither."""
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
        """Return the largest number of deletes if so many ACLs are managed; None: any number."""
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
        return f"the larger of {_LEAST} and {_PERCENT:g}% of managed ACLs"


# The changes that make a target hold the desired ACLs, without touching those of other sources.


_NAMED = 3
"""How many ACLs an error lists."""


@frozen(kw_only=True)
class PlannedChange:
    """A change, compared with the target; each tuple is sorted by the contents of its ACLs."""

    added: tuple[StandardAcl, ...] = ()
    removed: tuple[StandardAcl, ...] = ()
    """Managed and no longer desired; or requested explicitly (`unowned`)."""
    adopted: tuple[StandardAcl, ...] = ()
    """Desired, existing, unmanaged: managed from now on."""
    released: tuple[StandardAcl, ...] = ()
    """Managed, no longer desired, and already gone or also managed by another journal."""
    present: tuple[StandardAcl, ...] = ()
    """Desired, existing, unmanaged: left as they are."""
    unowned: tuple[StandardAcl, ...] = ()
    """Those of `removed` that are not managed."""
    absent: tuple[StandardAcl, ...] = ()
    """Requested to be removed, but not existing."""
    shared: tuple[StandardAcl, ...] = ()
    """Desired, existing, and also managed by another journal."""
    foreign: int = 0
    """The number of other existing ACLs, neither desired nor managed."""
    owned: int = 0
    """The number of managed ACLs before the change."""

    @property
    def changes(self) -> list[RuleChange]:
        """The changes of the target."""
        return [
            *(RuleChange(added=True, acl=acl) for acl in self.added),
            *(RuleChange(added=False, acl=acl) for acl in self.removed),
        ]

    def check(self, limit: DeleteLimit, generations: Collection[Generation], *, origins: Origins = NO_ORIGINS) -> None:
        """Check that every ACL to add can be created, and that the number of deletes is within the limit.

        `generations`: the generations of Kafka, each of which must accept the ACL. `origins` has the locations of the
        desired ACLs.

        Raises:
            RefusedError: an ACL cannot be created, or there are too many deletes.

        """
        for acl in self.added:
            for each in generations:
                why = malformed(acl, cidr=each.has_ranges)
                if why is not None:
                    by = f" of {each}" if len(generations) > 1 else ""
                    raise RefusedError(f"{acl_text(acl)}{places_text(acl, origins)}: CreateAcls{by} refuses it: {why}")
        most = limit.most(self.owned)
        if most is not None and len(self.removed) > most:
            raise RefusedError(
                f"{len(self.removed):,} deletes of {self.owned:,} managed ACLs exceed --max-deletes ({limit}): review "
                f"them, and pass --max-deletes {len(self.removed)} if they are intended"
            )


@frozen(kw_only=True)
class Holdings:
    """The ACLs of a target, and the journals that manage them."""

    there: AbstractSet[bytes]
    owned: AbstractSet[bytes]
    """Managed by the journal of the plan."""
    others: AbstractSet[bytes] = frozenset()
    """Managed by other journals."""


def change_to_want(holdings: Holdings, desired: AbstractSet[bytes], *, adopt: bool) -> PlannedChange:
    """Return the change after which the target holds all desired ACLs, and no managed ACL that is no longer desired.

    The deletes are the managed ACLs minus the desired ones, never the existing ACLs minus the desired ones.
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
    """Return the change that makes the changes of a file, in order; those made already are left out.

    Raises:
        RefusedError: without `adopt`, it removes ACLs that the journal does not manage; it removes ACLs that another
            journal manages; or a text is too long for a record.

    """
    added, removed = _net_contents(changes)
    present, there = (added & holdings.there) - holdings.owned, removed & holdings.there
    unowned = there - holdings.owned
    if unowned & holdings.others:
        raise RefusedError(
            f"{_rules_text(_acls(unowned & holdings.others))}: managed by another journal: remove them with its source"
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
    """Return the contents that should exist, and those that should not: the last change of an ACL counts."""
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
        f"{len(acls):,} ACL{'s' * (len(acls) != 1)} to remove not managed by the journal, so others may need them: "
        f"{_rules_text(acls)}: "
        "pass --adopt to remove them nevertheless"
    )


def _rules_text(acls: Sequence[StandardAcl]) -> str:
    """Return the texts of the first few ACLs, and how many more there are."""
    more = f"; and {len(acls) - _NAMED:,} more" if len(acls) > _NAMED else ""
    return "; ".join(acl_text(acl) for acl in acls[:_NAMED]) + more


def _acls(contents: Iterable[bytes]) -> tuple[StandardAcl, ...]:
    return tuple(acl_of_content(content) for content in sorted(contents))


# Making a plan from a change: its order, its touched region, and its transient denials.


@frozen(kw_only=True)
class Circumstances:
    """Everything in a plan besides its change."""

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
    """The generations of Kafka that may decide, as read from the target; None: `settings` has that of the user."""


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
    """Return the generations of Kafka that may decide on a change of these ACLs; None: all decide alike."""
    if kafka is None or next(ranges_among(contents), None) is None:
        return None
    return kafka.generations


def _object(region: Region, only: Generation | None) -> JsonObject:
    return {**region_object(region), "text": f"{region}{only_on(only)}", **generation_object(only)}


# Drift: the differences between a target, the desired ACLs of its source, and its journal.


class DriftKind(StrEnum):
    """The kind of drift of an ACL."""

    MISSING = "MISSING"
    """Desired, but missing."""
    LEFTOVER = "LEFTOVER"
    """Managed, no longer desired, but still existing."""


@frozen(kw_only=True, order=True)
class Drift:
    """An ACL that has drifted; `content` as aclog.authorizer.acls_image has it."""

    kind: DriftKind
    content: bytes
    owned: bool
    """Whether the journal manages it: a missing ACL was then deleted by another writer, otherwise never applied."""


def drift_of(holdings: Holdings, desired: frozenset[bytes]) -> list[Drift]:
    """Return every ACL that has drifted, sorted; an ACL that is neither desired nor managed is no drift."""
    missing, leftover = desired - holdings.there, (holdings.owned - desired - holdings.others) & holdings.there
    return sorted(
        Drift(kind=kind, content=content, owned=content in holdings.owned)
        for kind, contents in ((DriftKind.MISSING, missing), (DriftKind.LEFTOVER, leftover))
        for content in contents
    )


# Rollback: the changes after which a target and its journal are as they were before an apply.


_LEAST_PREFIX = 4
"""The least number of characters that identify an apply."""


def change_back(journal: Journal, holdings: Holdings, apply: str | None = None) -> PlannedChange:
    """Return the change that undoes an apply and all later ones of this journal; by default the newest apply.

    `apply` is an id, or a prefix of an id. Changes by others since then stay: an ACL that exists again though this
    journal had removed it, or is gone though the journal had added it, is left as it is, and so is one that another
    journal also manages. An ACL that exists independently of this journal is not managed again: another source may
    manage it now. Every apply of the journal must have ended (aclog.planning.journal).

    Raises:
        JournalError: no such apply, or an ambiguous prefix.

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
        added=_acls(to_add),
        removed=_acls(to_remove),
        released=_acls(((owned | to_add) - to_remove) - own_after),
        foreign=len(there - owned),
        owned=len(owned),
    )


def _place_of(journal: Journal, apply: str | None) -> int:
    """Return the position of the BEGIN of an apply among the entries."""
    begun = [(at, entry.apply) for at, entry in enumerate(journal.entries) if entry.kind is EntryKind.BEGIN]
    if not begun:
        raise JournalError(f"{journal.path}: nothing to roll back: no plan was applied with this journal")
    if apply is None:
        return begun[-1][0]
    positions = [at for at, each in begun if each == apply or (len(apply) >= _LEAST_PREFIX and each.startswith(apply))]
    if len(positions) != 1:
        what = "no apply has the id" if not positions else f"{len(positions)} applies have ids that begin with"
        raise JournalError(f"{journal.path}: {what} {apply[:40]}: expected one of its {len(begun):,} applies")
    return positions[0]
