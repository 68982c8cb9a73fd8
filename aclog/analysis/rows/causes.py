"""The causes of changed decisions: changed ACLs and settings, and the rows that they explain."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from attrs import define, evolve, field, frozen

from aclog.analysis.policy import Policy, range_rules
from aclog.analysis.regions import (
    ANY_NAME,
    EVERYONE,
    EVERYWHERE,
    REQUESTED,
    RESOURCE_TYPES,
    Difference,
    Direction,
    NamePart,
    Principals,
    Region,
    only,
)
from aclog.analysis.rows.row import Extent, NameIndex, Row, Setting, extent_of, index_of_extents, is_allow, near_region
from aclog.authorizer.acl import WILDCARD, PatternType, StandardAcl
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.origin import FileOrigin, Origin, TwoOrigins
from aclog.authorizer.settings import Settings

# Naive folding of changed ACLs: those that differ only in their principal form one group.


class _Kind(NamedTuple):
    is_added: bool
    host: str
    resource_type: int
    operation: int
    permission_type: int


@frozen(kw_only=True)
class NaiveRow:
    """ACLs, added or removed, with one host, resource type, operation, permission and set of patterns."""

    is_added: bool
    principals: tuple[str, ...]
    """Sorted. Each has an ACL on each pattern."""
    rules: tuple[StandardAcl, ...]


def naive_rows(changed: Iterable[tuple[bool, StandardAcl]]) -> list[NaiveRow]:
    """Return the groups of changed ACLs; `changed` has for each ACL whether it was added."""
    of_kind: dict[_Kind, dict[str, dict[tuple[str, int], StandardAcl]]] = defaultdict(lambda: defaultdict(dict))
    for is_added, rule in changed:
        kind = _Kind(is_added, rule.host, rule.resource_type, rule.operation, rule.permission_type)
        of_kind[kind][rule.principal][rule.resource_name, rule.pattern_type] = rule
    rows = []
    for kind, of_principal in of_kind.items():
        same: dict[frozenset[tuple[str, int]], list[str]] = defaultdict(list)
        for principal, patterns in of_principal.items():
            same[frozenset(patterns)].append(principal)
        for principals in same.values():
            rules = tuple(rule for principal in principals for rule in of_principal[principal].values())
            rows.append(NaiveRow(is_added=kind.is_added, principals=tuple(sorted(principals)), rules=rules))
    return rows


# Causes: naively folded ACLs and changed settings, and the regions that they affect.


class Part(Enum):
    """The part that an effect can have in a difference."""

    NONE = 0
    SOME = 1
    ENOUGH = 2
    """The effect covers all its principals, hosts and operations."""


@define(eq=False, kw_only=True, slots=False)
class Effect:
    """A possible effect of a cause: in one direction, on the requests of these extents, which belong together."""

    direction: Direction
    extents: tuple[Extent, ...]

    @cached_property
    def _index(self) -> NameIndex[Extent]:
        return index_of_extents(self.extents)

    @cached_property
    def _parts(self) -> int:
        return sum(len(extent.names) for extent in self.extents)

    def part_in(self, difference: Difference, names: NameIndex[NamePart]) -> Part:
        """Return the part that the effect can have in a difference; `names` are those of its region."""
        widest = Part.NONE
        if difference.direction is self.direction:
            for extent, part in self._near(difference.region, names):
                if extent.meets(difference.region, (part,)):
                    if extent.spans(difference.region):
                        return Part.ENOUGH
                    widest = Part.SOME
        return widest

    def _near(self, region: Region, names: NameIndex[NamePart]) -> Iterator[tuple[Extent, NamePart]]:
        """Yield extents with a part of a region that shares names with them, or may."""
        kind = region.resource_type
        if self._parts < len(region.names):  # a cause is often one ACL, and there may be thousands of each
            for extent in self.extents:
                if extent.resource_type == kind:
                    yield from ((extent, part) for own in extent.names for part in names.near(kind, own))
            return
        yield from near_region(self._index, region)


@define(eq=False)
class Candidate:
    """A possible cause: the ACLs of one naive row, or a setting; and the differences that it affects."""

    is_added: bool
    rules: tuple[StandardAcl, ...]
    setting: Setting | None
    effects: tuple[Effect, ...]
    """From the narrowest to the widest."""
    is_exact: bool = False
    """Whether a summary must not replace its exact rows: its effects are bounded by its ACLs."""
    touched: dict[Effect, list[Difference]] = field(factory=dict)
    """The differences in which each effect has a part."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The extents of the widest effect that affected anything; empty if nothing was affected."""
        return next((effect.extents for effect in reversed(self.effects) if effect in self.touched), ())

    def touch(self, difference: Difference, names: NameIndex[NamePart]) -> bool:
        """Add a difference to the effects that can have a part in it, the narrowest first, until one is enough.

        Returns whether there is one.
        """
        touches = False
        for effect in self.effects:
            part = effect.part_in(difference, names)
            if part is not Part.NONE:
                self.touched.setdefault(effect, []).append(difference)
                touches = True
            if part is Part.ENOUGH:
                break
        return touches


def candidates_of(old: Policy, new: Policy, changed: Sequence[tuple[bool, StandardAcl]]) -> list[Candidate]:
    """Return a candidate for each naive row of changed ACLs, and for each changed setting."""
    rules = [_of_rules(row, old.settings, new.settings) for row in naive_rows(changed)]
    return [*rules, *_of_ranges(old, new, changed), *_of_settings(old.settings, new.settings)]


def _of_ranges(old: Policy, new: Policy, changed: Sequence[tuple[bool, StandardAcl]]) -> Iterator[Candidate]:
    """Yield the candidates for a change of Kafka's generation: the ACLs with a range that both policies have.

    They count as added where ranges begin to match, and as removed where ranges cease to. Their resource had an ACL
    before, so none of them closes it to others.
    """
    if old.settings.cidr is new.settings.cidr:
        return
    on_one_side = {rule for _, rule in changed}
    both = [(new.settings.cidr, rule) for rule in range_rules(new.acls) if rule not in on_one_side]
    settings = evolve(old.settings, allow_everyone=False), evolve(new.settings, allow_everyone=False)
    for row in naive_rows(both):
        candidate = _of_rules(row, *settings)
        candidate.is_exact = True
        yield candidate


def _of_rules(row: NaiveRow, old: Settings, new: Settings) -> Candidate:
    settings = new if row.is_added else old
    extents = {rule: extent_of(rule, settings) for rule in row.rules if rule.resource_type in RESOURCE_TYPES}
    effects = []
    for allows in True, False:
        direct = (extent for rule, extent in extents.items() if is_allow(rule) is allows and extent.operations)
        effects.append(Effect(direction=_direction(gains=allows is row.is_added), extents=tuple(direct)))
    if (old if row.is_added else new).allow_everyone:
        # The first ACL on a resource closes it to requests that no ACL allows; the removal of the last one opens it.
        opened = tuple(dict.fromkeys(map(_whole, extents.values())))
        effects.append(Effect(direction=_direction(gains=not row.is_added), extents=opened))
    return Candidate(row.is_added, row.rules, None, tuple(effect for effect in effects if effect.extents))


def _direction(*, gains: bool) -> Direction:
    return Direction.GAINED if gains else Direction.LOST


def _whole(extent: Extent) -> Extent:
    return Extent(
        resource_type=extent.resource_type,
        operations=REQUESTED,
        principals=EVERYONE,
        hosts=EVERYWHERE,
        names=extent.names,
    )


def _of_settings(old: Settings, new: Settings) -> Iterator[Candidate]:
    for users, come in ((new.super_users - old.super_users, True), (old.super_users - new.super_users, False)):
        if users:
            yield _of_setting(Setting.SUPER_USERS, come, _direction(gains=come), principals=only(*users))
    if old.allow_everyone is not new.allow_everyone:
        come = new.allow_everyone
        yield _of_setting(Setting.ALLOW_EVERYONE, come, _direction(gains=come))
    if old.documented is not new.documented:
        yield _of_setting(Setting.SEMANTICS, new.documented, *Direction)


def _of_setting(
    setting: Setting, is_added: bool, *directions: Direction, principals: Principals = EVERYONE
) -> Candidate:
    extents = tuple(
        Extent(resource_type=kind, operations=REQUESTED, principals=principals, hosts=EVERYWHERE, names=ANY_NAME)
        for kind in RESOURCE_TYPES
    )
    effects = tuple(Effect(direction=direction, extents=extents) for direction in directions)
    return Candidate(is_added, (), setting, effects)


# The changed ACLs behind a row, and their locations.


_MOST = 10
"""How many ACLs behind one row are shown with their locations."""


@define(eq=False)
class ChangedRules:
    """The ACLs that only one of two states has, and their locations."""

    _changes: Sequence[RuleChange]
    _origins: TwoOrigins
    _by_rule: dict[tuple[bool, StandardAcl], RuleChange] = field(init=False)
    _on: dict[tuple[int, str, bool], list[int]] = field(init=False)
    """By resource type, name and whether it is LITERAL: positions in `_changes`."""

    def __attrs_post_init__(self) -> None:
        self._by_rule = {(change.added, change.acl): change for change in self._changes}
        self._on = {}
        for at, change in enumerate(self._changes):
            acl = change.acl
            key = (acl.resource_type, acl.resource_name, acl.pattern_type == PatternType.LITERAL)
            self._on.setdefault(key, []).append(at)

    def places(self, row: Row) -> Iterator[FileOrigin]:
        """Yield the files and lines of the changed ACLs behind a row, those of the second state first."""
        changes = sorted(self._behind(row), key=lambda change: not change.added)
        for change in changes[:_MOST]:
            yield from (place for place in self._places(change) if isinstance(place, FileOrigin))

    def _places(self, change: RuleChange) -> Sequence[Origin]:
        """Return the line of a file of changes, or the lines that state the ACL."""
        if change.origin is not None:
            return (change.origin,)
        return (self._origins.new if change.added else self._origins.old).of(change.acl)

    def _behind(self, row: Row) -> list[RuleChange]:
        """Return the ACLs of a summary's cause, or those that decide the example, or those on its resource.

        A request may change because of an ACL that does not match it: the first ACL on a resource closes it, and the
        removal of the last one opens it, with allow.everyone.if.no.acl.found.
        """
        if row.summary is not None:
            cause = row.summary.cause
            return self._changes_of((cause.is_added, rule) for rule in cause.rules)
        decided = ((False, row.before), (True, row.after))
        deciding = self._changes_of((added, rule) for added, rule in decided if isinstance(rule, StandardAcl))
        return deciding or self._covering(row)

    def _covering(self, row: Row) -> list[RuleChange]:
        kind, name = row.witness.resource_type, row.witness.resource_name
        literal = ((kind, each, True) for each in dict.fromkeys((name, WILDCARD)))
        prefixes = ((kind, name[:end], False) for end in range(len(name) + 1))
        positions = (at for key in (*literal, *prefixes) for at in self._on.get(key, ()))
        return [self._changes[at] for at in sorted(positions)]

    def _changes_of(self, rules: Iterator[tuple[bool, StandardAcl]]) -> list[RuleChange]:
        return [self._by_rule[rule] for rule in rules if rule in self._by_rule]
