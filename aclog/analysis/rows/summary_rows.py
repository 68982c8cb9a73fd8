"""Rows by cause, where the exact ones would be too many: they say whose requests on what changed, and count them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from aclog.analysis.deciding import deciding
from aclog.analysis.policy import Policy
from aclog.analysis.regions.principals import EVERYONE, Principals, only
from aclog.analysis.regions.region import Difference, Direction, Region, Request
from aclog.analysis.regions.witness import has_legal_name
from aclog.analysis.rows.causes import Candidate
from aclog.analysis.rows.clauses import clauses_of
from aclog.analysis.rows.exact_rows import CLAUSES
from aclog.analysis.rows.extent import Extent, extent_of
from aclog.analysis.rows.intersection import common_request
from aclog.analysis.rows.row import Cause, Row, Summary
from aclog.authorizer.acl import (
    WILDCARD_PRINCIPAL,
    AclBindingFilter,
    AclPermissionType,
)

_LOOKED_AT = 100
"""So many differences are looked at for one with a legal topic name."""


def summary_rows(candidates: Iterable[Candidate], old: Policy, new: Policy) -> Iterator[Row]:
    """Yield a row for each cause that changed a request; causes with the same who and where share one."""
    together: dict[tuple[object, ...], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.touched:
            together[_kind(candidate)].append(candidate)
    for members in together.values():
        for start in range(0, len(members), CLAUSES):
            row = _row(members[start : start + CLAUSES], old, new)
            if row is not None:
                yield row


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


def _row(members: Sequence[Candidate], old: Policy, new: Policy) -> Row | None:
    extents = list(dict.fromkeys(extent for member in members for extent in member.extents))
    principals, hosts = _principals_of(extents), extents[0].hosts
    hull = [extent.region(principals, hosts) for extent in extents]
    touched = [each for member in members for found in member.touched.values() for each in found]
    directions = tuple(each for each in Direction if any(difference.direction is each for difference in touched))
    request = _witness(touched, hull)
    if request is None:
        return None
    cause = Cause(
        is_added=members[0].is_added,
        rules=tuple(rule for member in members for rule in member.rules),
        setting=members[0].setting,
    )
    named, everyone_else = _affected(touched, principals, old, new)
    judged = old if Direction.LOST in directions else new
    return Row(
        directions=directions,
        principals=principals,
        hosts=hosts,
        clauses=clauses_of(hull),
        witness=request,
        before=deciding(old, request),
        after=deciding(new, request),
        legal=any(has_legal_name(difference.region) for difference in touched),
        summary=Summary(
            cause=cause,
            principals=len(named),
            everyone_else=everyone_else,
            rules=0 if cause.setting else _count_rules(judged, hull),
        ),
    )


def _witness(touched: Sequence[Difference], hull: Sequence[Region]) -> Request | None:
    """Return a request that changed and that the row is about, with a legal name if one is soon found."""
    legal_first = sorted(islice(touched, _LOOKED_AT), key=lambda each: not has_legal_name(each.region))
    found = (common_request(region, each.region) for each in chain(legal_first, touched) for region in hull)
    return next((request for request in found if request is not None), None)


def _affected(touched: Iterable[Difference], principals: Principals, old: Policy, new: Policy) -> tuple[set[str], bool]:
    """Return the named principals of the row that have a request that changed, and whether the unnamed ones have."""
    named: set[str] = set()
    left_out: set[str] | None = None
    for region in (each.region for each in touched):
        if not region.principals.complement:
            named.update(region.principals.named)
        elif left_out is None:
            left_out = set(region.principals.named)
        else:
            left_out.intersection_update(region.principals.named)
    if left_out is not None:
        named |= _known(old, new) - left_out
    if not principals.complement:
        return named.intersection(principals.named), False
    return named, left_out is not None


def _known(old: Policy, new: Policy) -> set[str]:
    """Return every principal that rules or settings name."""
    named = old.acls.principals() | new.acls.principals() | old.settings.super_users | new.settings.super_users
    return {name for name in named if ":" in name and name != WILDCARD_PRINCIPAL}


def _count_rules(policy: Policy, hull: Sequence[Region]) -> int:
    """Return how many ALLOW rules of a policy are about some request of these regions."""
    found = 0
    for kind in sorted({region.resource_type for region in hull}):
        regions = [region for region in hull if region.resource_type == kind]
        wanted = AclBindingFilter(resource_type=kind, permission_type=AclPermissionType.ALLOW)
        for entry in policy.acls.matching(wanted):
            extent = extent_of(entry.acl, policy.settings)
            found += any(extent.meets(region) for region in regions)
    return found
