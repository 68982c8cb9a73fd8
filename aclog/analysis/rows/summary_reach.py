"""What a summary claims: the least principals, hosts, operations and names that hold all that changed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from aclog.analysis.regions.hosts import EVERYWHERE, Hosts
from aclog.analysis.regions.name_sets import common_part
from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree
from aclog.analysis.regions.principals import EVERYONE, Principals, only
from aclog.analysis.regions.region import Difference, Region
from aclog.analysis.rows.clauses import clauses_of
from aclog.analysis.rows.extent import Extent, hosts_meet, names_meet, principals_meet
from aclog.analysis.rows.extent_index import NameIndex
from aclog.analysis.rows.name_folding import folds_to_more
from aclog.analysis.rows.row import Bound, Clause
from aclog.authorizer.acl import WILDCARD, ResourceType

FEW_NAMES = 16
"""Names of one resource type that changed are listed up to so many parts, or as many as the changed rules name."""
_FEW_CLAUSES = 3
_FEW_PRINCIPALS = 5
"""So many are named instead of everyone, if nobody else is affected."""
_FEW_HOSTS = 20
_FEW_PARTS = 8
"""Up to so many parts of names are compared one by one."""
_EXCEPTIONS = 1_000
"""Names without any change that are looked for among names that are too many to list."""

_STAR = Literal(name=WILDCARD)
"""No topic has this name, but LITERAL `*` covers it, and is written by it."""

Parts: TypeAlias = Mapping[int, Iterable[NamePart]]
"""By operations that changed together, as a mask: the names on which they did."""
_Near: TypeAlias = Callable[[int, NamePart], Iterable[tuple[int, NamePart]]]
"""Returns the operations and names of extents of a resource type that may have names in common with a part."""
DeniedNames: TypeAlias = Callable[[ResourceType], Iterable[NamePart]]
"""Returns the names of a type that rules deny to all whom the summary is about, in either policy."""


@frozen(kw_only=True)
class SummaryReach:
    """What a summary claims, and by how much it may be too much."""

    principals: Principals
    hosts: Hosts
    clauses: tuple[Clause, ...]
    bound: Bound
    differences: Sequence[Difference]
    """Those that it is about."""


@frozen(eq=False, kw_only=True)
class _Changed:
    """What changed within extents."""

    differences: Sequence[Difference]
    parts: Mapping[ResourceType, Parts]
    is_sure: bool
    """Whether each difference has requests in the extents: of overlapping ranges of addresses that is not known."""


def summary_reach(hull: Sequence[Extent], touched: Iterable[Difference], denied: DeniedNames) -> SummaryReach:
    """Return what a summary claims of differences; `hull`: extents of the same principals and hosts, all of its causes.

    Of each resource type that is exactly the operations and names that changed for some of the principals from some of
    the hosts, if these are few; else the names of the extents, less those that `denied` returns and that no difference
    touches.
    """
    changed = _changed(hull, touched)
    principals = _affected(hull[0].principals, changed.differences)
    hosts = _hosts(hull[0].hosts, changed.differences)
    clauses: list[Clause] = []
    bound = _bound(changed, principals, hosts)
    for kind in sorted(changed.parts):
        widest = clauses_of(extent.region() for extent in hull if extent.resource_type == kind)
        exact = _few_clauses(kind, changed.parts[kind], widest)
        if exact is None:
            clauses += _narrowed(widest, changed.parts[kind], list(denied(kind)))
            bound = bound if bound is Bound.ALL else Bound.NAMES
        else:
            clauses += exact
    return SummaryReach(
        principals=principals,
        hosts=hosts,
        clauses=tuple(clauses),
        bound=bound,
        differences=changed.differences,
    )


def _few_clauses(kind: ResourceType, parts: Parts, widest: Sequence[Clause]) -> Sequence[Clause] | None:
    """Return clauses with exactly the operations and names that changed; None if they are many."""
    most = max(FEW_NAMES, _count(widest))
    if folds_to_more((part for some in parts.values() for part in some), most):
        return None
    found = clauses_of(
        Region(resource_type=kind, operations=mask, principals=EVERYONE, hosts=EVERYWHERE, names=tuple(some))
        for mask, some in parts.items()
    )
    return found if len(found) <= max(len(widest), _FEW_CLAUSES) and _count(found) <= most else None


def _count(clauses: Iterable[Clause]) -> int:
    return sum(len(clause.names) for clause in clauses)


def _changed(hull: Sequence[Extent], touched: Iterable[Difference]) -> _Changed:
    near = _near(hull)
    principals, hosts = hull[0].principals, hull[0].hosts
    parts: dict[ResourceType, dict[int, dict[NamePart, None]]] = {}
    found: list[Difference] = []
    known: dict[tuple[ResourceType, int, Names], bool] = {}
    is_sure = True
    for difference in touched:
        region = difference.region
        if not principals_meet(principals, region.principals) or not hosts_meet(hosts, region.hosts):
            continue
        key = region.resource_type, region.operations, region.names
        is_in = known.get(key)
        if is_in is None:  # many principals lose the same
            is_in = known[key] = _add(parts.setdefault(region.resource_type, {}), region, near)
        if is_in:
            found.append(difference)
            is_sure = is_sure and _surely_meet(hosts, region.hosts)
    return _Changed(differences=found, parts={kind: each for kind, each in parts.items() if each}, is_sure=is_sure)


def _near(hull: Sequence[Extent]) -> _Near:
    """Return what finds the operations and names of extents that may have names in common with a part."""
    held = [(each.resource_type, part, (each.operations, part)) for each in hull for part in each.names]
    if len(held) > _FEW_PARTS:
        return NameIndex.of(held).near
    by_kind: dict[int, list[tuple[int, NamePart]]] = {}
    for kind, _, own in held:
        by_kind.setdefault(kind, []).append(own)
    return lambda kind, _: by_kind.get(kind, ())


def _add(parts: dict[int, dict[NamePart, None]], region: Region, near: _Near) -> bool:
    """Add what a region has in common with extents, by their names; return whether that is something."""
    found = False
    for part in region.names:
        for operations, own in near(region.resource_type, part):
            mask = operations & region.operations
            common = common_part(own, part) if mask else None
            if common is not None:
                parts.setdefault(mask, {})[common] = None
                found = True
    return found


def _surely_meet(one: Hosts, other: Hosts) -> bool:
    """Return whether two sets of addresses that are said to meet do."""
    if EVERYWHERE in (one, other) or one == other:
        return True
    return not any("/" in entry for entry in (*one.entries, *other.entries))


def _affected(principals: Principals, differences: Sequence[Difference]) -> Principals:
    """Return those of some principals that differences are about, if they are all named, or are few."""
    named: set[str] = set()
    for each in (difference.region.principals for difference in differences):
        if each.complement and principals.complement:
            return principals
        named.update((name for name in principals.named if name in each) if each.complement else each.named)
    if principals.complement:
        return only(*named) if len(named) <= _FEW_PRINCIPALS else principals
    return only(*named.intersection(principals.named))


def _hosts(hosts: Hosts, differences: Sequence[Difference]) -> Hosts:
    """Return the hosts that differences are about, if they are few and the row is about any."""
    if hosts != EVERYWHERE:
        return hosts
    found: set[str] = set()
    for each in {difference.region.hosts for difference in differences}:
        found.update(each.entries)
        if each.complement or each.except_addresses or len(found) > _FEW_HOSTS:
            return hosts
    return Hosts(entries=tuple(sorted(found)))


def _bound(changed: _Changed, principals: Principals, hosts: Hosts) -> Bound:
    """Return how much is too much in a claim whose operations and names changed for some of the principals."""
    if not changed.is_sure:
        return Bound.ALL
    one_way = len({difference.direction for difference in changed.differences}) == 1
    regions = (difference.region for difference in changed.differences)
    return Bound.NONE if one_way and all(_is_for_all(each, principals, hosts) for each in regions) else Bound.WHO


def _is_for_all(region: Region, principals: Principals, hosts: Hosts) -> bool:
    """Return whether a region is about all of some principals and hosts."""
    if region.hosts not in (hosts, EVERYWHERE):
        return False
    if principals.complement:
        return region.principals in (principals, EVERYONE)
    return all(name in region.principals for name in principals.named)


def _narrowed(widest: Iterable[Clause], parts: Parts, denied: Sequence[NamePart]) -> Iterator[Clause]:
    """Yield clauses with the operations that changed in them, less names that are known to have none."""
    for clause in widest:
        held = ((mask & clause.operations, part) for mask, some in parts.items() for part in some)
        near = [(mask, part) for mask, part in held if mask and names_meet((part,), clause.names)]
        operations = 0
        for mask, _ in near:
            operations |= mask
        is_touched = _Touched(clause.resource_type, [part for _, part in near])
        names = tuple(
            _without(part, (*denied, *_exceptions(near, part)), is_touched) if isinstance(part, Subtree) else part
            for part in clause.names
            if is_touched(part) or part == _STAR
        )
        if operations and names:
            yield evolve(clause, operations=operations, names=names)


@define(eq=False)
class _Touched:
    """Tells whether a part has names in common with one of many; they are indexed when it is not soon found."""

    kind: int
    parts: Sequence[NamePart]
    _index: NameIndex[NamePart] | None = field(default=None, init=False)

    def __call__(self, part: NamePart) -> bool:
        """Return whether it has."""
        if any(names_meet((part,), (other,)) for other in self.parts[:_FEW_PARTS]):
            return True
        if len(self.parts) <= _FEW_PARTS:
            return False
        if self._index is None:
            self._index = NameIndex.of((self.kind, each, each) for each in self.parts)
        return any(names_meet((part,), (other,)) for other in self._index.near(self.kind, part))


def _exceptions(parts: Iterable[tuple[int, NamePart]], within: Subtree) -> Iterator[NamePart]:
    """Yield what the parts leave out that begin as another one does."""
    for _, part in parts:
        if isinstance(part, Subtree) and part.prefix == within.prefix:
            yield from (Subtree(prefix=prefix) for prefix in part.except_prefixes)
            yield from (Literal(name=name) for name in part.except_literals)


def _without(part: Subtree, candidates: Iterable[NamePart], is_touched: Callable[[NamePart], bool]) -> Subtree:
    """Return a part less those of some names that nothing touches, the widest first."""
    inside = (each for each in set(candidates) if _lies_in(each, part))
    prefixes, literals = list(part.except_prefixes), list(part.except_literals)
    for each in nsmallest(_EXCEPTIONS, inside, key=_width):
        name = each.name if isinstance(each, Literal) else each.prefix
        if name.startswith(tuple(prefixes)) or is_touched(each):
            continue
        (literals if isinstance(each, Literal) else prefixes).append(name)
    literals = [name for name in dict.fromkeys(literals) if not name.startswith(tuple(prefixes))]
    return evolve(part, except_prefixes=tuple(sorted(prefixes)), except_literals=tuple(sorted(literals)))


def _lies_in(part: NamePart, outer: Subtree) -> bool:
    if isinstance(part, Literal):
        return part.name in outer
    return len(part.prefix) > len(outer.prefix) and part.prefix.startswith(outer.prefix)


def _width(part: NamePart) -> tuple[bool, int, str]:
    return (True, len(part.name), part.name) if isinstance(part, Literal) else (False, len(part.prefix), part.prefix)
