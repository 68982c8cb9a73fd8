"""Why requests changed: the changed ACLs, and the rows behind which they stand."""

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

# Folds changed rules as such: rules that differ in their principal only are one group.


class _Kind(NamedTuple):
    is_added: bool
    host: str
    resource_type: int
    operation: int
    permission_type: int


@frozen(kw_only=True)
class NaiveRow:
    """Rules that were added, or removed, with one host, resource type, operation, permission and set of patterns."""

    is_added: bool
    principals: tuple[str, ...]
    """Sorted. Each has a rule on each pattern."""
    rules: tuple[StandardAcl, ...]


def naive_rows(changed: Iterable[tuple[bool, StandardAcl]]) -> list[NaiveRow]:
    """Return the groups of changed rules; `changed` says of each rule whether it was added."""
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


# Why requests changed: the changed rules, folded naively, and the changed settings; and which regions they touch.


class Part(Enum):
    """What part an effect can have in a difference."""

    NONE = 0
    SOME = 1
    ENOUGH = 2
    """It is about all principals, hosts and operations of it."""


@define(eq=False, kw_only=True, slots=False)
class Effect:
    """What one cause can do: in one direction, to the requests of these extents, which belong together."""

    direction: Direction
    extents: tuple[Extent, ...]

    @cached_property
    def _index(self) -> NameIndex[Extent]:
        return index_of_extents(self.extents)

    @cached_property
    def _parts(self) -> int:
        return sum(len(extent.names) for extent in self.extents)

    def part_in(self, difference: Difference, names: NameIndex[NamePart]) -> Part:
        """Return what part the effect can have in a difference; `names` are those of its region."""
        widest = Part.NONE
        if difference.direction is self.direction:
            for extent, part in self._near(difference.region, names):
                if extent.meets(difference.region, (part,)):
                    if extent.spans(difference.region):
                        return Part.ENOUGH
                    widest = Part.SOME
        return widest

    def _near(self, region: Region, names: NameIndex[NamePart]) -> Iterator[tuple[Extent, NamePart]]:
        """Yield extents with the part of a region with which they have names in common, or may have."""
        kind = region.resource_type
        if self._parts < len(region.names):  # a cause often is one rule, and there may be thousands of each
            for extent in self.extents:
                if extent.resource_type == kind:
                    yield from ((extent, part) for own in extent.names for part in names.near(kind, own))
            return
        yield from near_region(self._index, region)


@define(eq=False)
class Candidate:
    """A cause that may have had effects: rules of one naive row, or a setting; and what it touches."""

    is_added: bool
    rules: tuple[StandardAcl, ...]
    setting: Setting | None
    effects: tuple[Effect, ...]
    """The wider after the narrower."""
    is_exact: bool = False
    """Whether no summary may stand for it: its effects are bounded by its rules."""
    touched: dict[Effect, list[Difference]] = field(factory=dict)
    """By effect: the differences in which it has a part."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Those of the widest effect that touched anything; none if nothing was touched."""
        return next((effect.extents for effect in reversed(self.effects) if effect in self.touched), ())

    def touch(self, difference: Difference, names: NameIndex[NamePart]) -> bool:
        """Keep a difference under the effects that can have a part in it, the narrowest first, until one is enough.

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
    """Return a candidate for each naive row of changed rules, and for each changed setting."""
    rules = [_of_rules(row, old.settings, new.settings) for row in naive_rows(changed)]
    return [*rules, *_of_ranges(old, new, changed), *_of_settings(old.settings, new.settings)]


def _of_ranges(old: Policy, new: Policy, changed: Sequence[tuple[bool, StandardAcl]]) -> Iterator[Candidate]:
    """Yield the candidates of another generation of Kafka: the rules with a range that both policies have.

    They are as good as added where ranges begin to match, or removed where they end to. Their resource has had a rule
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
        # The first rule on a resource closes it to all that no rule allows; the last one that goes opens it.
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


# The changed rules behind a row, and where they stand.


_MOST = 10
"""Rules behind one row whose places are told."""


@define(eq=False)
class ChangedRules:
    """The rules that only one of two states has, and where they stand."""

    _changes: Sequence[RuleChange]
    _origins: TwoOrigins
    _by_rule: dict[tuple[bool, StandardAcl], RuleChange] = field(init=False)
    _on: dict[tuple[int, str, bool], list[int]] = field(init=False)
    """By resource type, name and whether it is LITERAL: places in `_changes`."""

    def __attrs_post_init__(self) -> None:
        self._by_rule = {(change.added, change.acl): change for change in self._changes}
        self._on = {}
        for at, change in enumerate(self._changes):
            acl = change.acl
            key = (acl.resource_type, acl.resource_name, acl.pattern_type == PatternType.LITERAL)
            self._on.setdefault(key, []).append(at)

    def places(self, row: Row) -> Iterator[FileOrigin]:
        """Yield the files and lines of the changed rules behind a row, those of the second state first."""
        changes = sorted(self._behind(row), key=lambda change: not change.added)
        for change in changes[:_MOST]:
            yield from (place for place in self._places(change) if isinstance(place, FileOrigin))

    def _places(self, change: RuleChange) -> Sequence[Origin]:
        """Return the line of a file of changes, or the lines that state the rule."""
        if change.origin is not None:
            return (change.origin,)
        return (self._origins.new if change.added else self._origins.old).of(change.acl)

    def _behind(self, row: Row) -> list[RuleChange]:
        """Return those that a summary tells of, else those that decide the example, else those on its resource.

        A request may change because of a rule that does not match it: the first one on a resource, or the last, closes
        or opens it with allow.everyone.if.no.acl.found.
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
