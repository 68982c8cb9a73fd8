"""Why requests changed: the changed rules, folded naively, and the changed settings; and which regions they touch."""

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property

from attrs import define, evolve, field

from aclog.analysis.policy import Policy
from aclog.analysis.range_rules import range_rules
from aclog.analysis.regions.hosts import EVERYWHERE
from aclog.analysis.regions.names import ANY_NAME, NamePart
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.principals import EVERYONE, Principals, only
from aclog.analysis.regions.query import RESOURCE_TYPES
from aclog.analysis.regions.region import Difference, Direction, Region
from aclog.analysis.rows.extent import Extent, extent_of, is_allow
from aclog.analysis.rows.extent_index import NameIndex, index_of_extents, near_region
from aclog.analysis.rows.naive_rows import NaiveRow, naive_rows
from aclog.analysis.rows.row import Setting
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.settings import Settings


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
        found = Part.NONE
        if difference.direction is self.direction:
            for extent, part in self._near(difference.region, names):
                if extent.meets(difference.region, (part,)):
                    if extent.spans(difference.region):
                        return Part.ENOUGH
                    found = Part.SOME
        return found

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
        found = False
        for effect in self.effects:
            part = effect.part_in(difference, names)
            if part is not Part.NONE:
                self.touched.setdefault(effect, []).append(difference)
                found = True
            if part is Part.ENOUGH:
                break
        return found


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
