"""Rows by cause, where the exact ones would be too many: they say whose requests on what changed, and count them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Self

from attrs import define, evolve

from aclog.analysis.deciding import deciding
from aclog.analysis.policy import Policy
from aclog.analysis.regions.names import NamePart
from aclog.analysis.regions.principals import EVERYONE, Principals, only
from aclog.analysis.regions.region import Difference, Direction, Request
from aclog.analysis.regions.witness import has_legal_name
from aclog.analysis.rows.causes import Candidate
from aclog.analysis.rows.exact_rows import CLAUSES
from aclog.analysis.rows.extent import Extent, extent_of
from aclog.analysis.rows.extent_index import index_of_extents, near_region
from aclog.analysis.rows.intersection import common_request
from aclog.analysis.rows.row import Cause, Row, Setting, Summary
from aclog.analysis.rows.summary_reach import summary_reach
from aclog.authorizer.acl import (
    WILDCARD_PRINCIPAL,
    AclBindingFilter,
    AclPermissionType,
    ResourceType,
)

_FEW_EXTENTS = 8
"""Up to so many extents are compared with each rule one by one."""
_LOOKED_AT = 100
"""So many differences are looked at for one with a legal topic name."""


@define(eq=False)
class _Draft:
    """A row in the making: what it is about, and what changed there."""

    members: Sequence[Candidate]
    hull: Sequence[Extent]
    touched: Sequence[Difference]
    rules: int = 0

    @classmethod
    def of(cls, members: Sequence[Candidate]) -> Self:
        """Return the draft of causes with the same who and where."""
        extents = dict.fromkeys(extent for member in members for extent in member.extents)
        principals = _principals_of(extents)
        hull = [evolve(extent, principals=principals) for extent in extents]
        return cls(members, hull, [each for member in members for found in member.touched.values() for each in found])

    @property
    def setting(self) -> Setting | None:
        """The setting that changed, if it is no rule."""
        return self.members[0].setting

    @property
    def directions(self) -> tuple[Direction, ...]:
        """What the row tells of."""
        found = {difference.direction for difference in self.touched}
        return tuple(direction for direction in Direction if direction in found)


def summary_rows(candidates: Iterable[Candidate], old: Policy, new: Policy) -> Iterator[Row]:
    """Yield a row for each cause that changed a request; causes with the same who and where share one."""
    together: dict[tuple[object, ...], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.touched:
            together[_kind(candidate)].append(candidate)
    drafts = [
        _Draft.of(members[start : start + CLAUSES])
        for members in together.values()
        for start in range(0, len(members), CLAUSES)
    ]
    for policy, lost in ((old, True), (new, False)):
        _count_rules([each for each in drafts if (Direction.LOST in each.directions) is lost], policy)
    known = _known(old, new) if any(draft.hull[0].principals.complement for draft in drafts) else set()
    for draft in drafts:
        request = _witness(draft)
        if request is not None:
            yield _row(draft, request, known, old, new)


def _kind(candidate: Candidate) -> tuple[object, ...]:
    permissions = frozenset(rule.permission_type for rule in candidate.rules)
    directions = frozenset(effect.direction for effect in candidate.touched)
    extents = candidate.extents
    return candidate.is_added, candidate.setting, permissions, directions, _principals_of(extents), extents[0].hosts


def _principals_of(extents: Iterable[Extent]) -> Principals:
    sets = {extent.principals for extent in extents}
    if EVERYONE in sets:
        return EVERYONE
    return only(*(name for each in sets for name in each.named))


def _row(draft: _Draft, request: Request, known: set[str], old: Policy, new: Policy) -> Row:
    members = draft.members
    reach = summary_reach(draft.hull, draft.touched, partial(_denied_names, draft.hull[0].principals, old, new))
    rules = tuple(rule for member in members for rule in member.rules)
    named, everyone_else = _affected(reach.differences, reach.principals, known)
    return Row(
        directions=draft.directions,
        principals=reach.principals,
        hosts=reach.hosts,
        clauses=reach.clauses,
        witness=request,
        before=deciding(old, request),
        after=deciding(new, request),
        legal=any(has_legal_name(difference.region) for difference in draft.touched),
        summary=Summary(
            cause=Cause(is_added=members[0].is_added, rules=rules, setting=draft.setting),
            bound=reach.bound,
            principals=named,
            everyone_else=everyone_else,
            rules=draft.rules,
        ),
    )


def _denied_names(principals: Principals, old: Policy, new: Policy, kind: ResourceType) -> Iterator[NamePart]:
    """Yield the names of a type that DENY rules of either policy are about, for all of some principals."""
    wanted = AclBindingFilter(resource_type=kind, permission_type=AclPermissionType.DENY)
    for policy in (old, new):
        for entry in policy.acls.matching(wanted):
            extent = extent_of(entry.acl, policy.settings)
            if extent.principals in (EVERYONE, principals):
                yield from extent.names


def _witness(draft: _Draft) -> Request | None:
    """Return a request that changed and that the row is about, with a legal name if one is soon found."""
    hull = index_of_extents(draft.hull)
    legal_first = sorted(islice(draft.touched, _LOOKED_AT), key=lambda each: not has_legal_name(each.region))
    found = (
        common_request(extent.region(), each.region)
        for each in chain(legal_first, draft.touched)
        for extent, _ in near_region(hull, each.region)
    )
    return next((request for request in found if request is not None), None)


def _affected(differences: Iterable[Difference], principals: Principals, known: set[str]) -> tuple[int, bool]:
    """Return how many named principals of a row have a request that changed, and whether the unnamed ones have."""
    named: set[str] = set()
    left_out: set[str] | None = None
    for region in (each.region for each in differences):
        if not region.principals.complement:
            named.update(region.principals.named)
        elif left_out is None:
            left_out = set(region.principals.named)
        else:
            left_out.intersection_update(region.principals.named)
    if not principals.complement:
        rest = set() if left_out is None else set(principals.named) - left_out
        return len(named.intersection(principals.named) | rest), False
    return len(named if left_out is None else named | (known - left_out)), left_out is not None


def _known(old: Policy, new: Policy) -> set[str]:
    """Return every principal that rules or settings name."""
    named = old.acls.principals() | new.acls.principals() | old.settings.super_users | new.settings.super_users
    return {name for name in named if ":" in name and name != WILDCARD_PRINCIPAL}


def _count_rules(drafts: Sequence[_Draft], policy: Policy) -> None:
    """Count for each row how many ALLOW rules of a policy are about some of its requests; a setting's has no count."""
    holders: dict[Extent, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        for extent in draft.hull if draft.setting is None else ():
            holders[extent].append(draft)
    hull = index_of_extents(holders) if len(holders) > _FEW_EXTENTS else None
    for kind in sorted({extent.resource_type for extent in holders}):
        wanted = AclBindingFilter(resource_type=kind, permission_type=AclPermissionType.ALLOW)
        for entry in policy.acls.matching(wanted):
            region = extent_of(entry.acl, policy.settings).region()
            met = (
                {extent for extent in holders if extent.meets(region)}
                if hull is None
                else {extent for extent, part in near_region(hull, region) if extent.meets(region, (part,))}
            )
            for draft in {id(draft): draft for extent in met for draft in holders[extent]}.values():
                draft.rules += 1
