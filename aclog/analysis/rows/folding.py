"""Folding of exact differences into as few rows as possible; summaries by cause where there would be too many."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from heapq import nsmallest
from itertools import chain, islice
from typing import Self, TypeAlias

from attrs import evolve, field

from aclog.analysis.policy import Policy, deciding
from aclog.analysis.regions import (
    EVERYONE,
    EVERYWHERE,
    Difference,
    Direction,
    Hosts,
    Literal,
    NamePart,
    Names,
    Principals,
    Region,
    Request,
    Subtree,
    common_part,
    everyone_but,
    has_legal_name,
    only,
    witness,
)
from aclog.analysis.rows.report import Candidate, candidates_of
from aclog.analysis.rows.row import (
    Bound,
    Cause,
    Clause,
    Extent,
    NameIndex,
    Row,
    Setting,
    Summary,
    clauses_of,
    common_request,
    extent_of,
    folds_to_more,
    hosts_meet,
    index_of_extents,
    index_of_region,
    names_meet,
    near_region,
    place,
    principals_meet,
)
from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclPermissionType, ResourceType
from aclog.metalog.values import define, frozen

# Groups exact differences into few rows: regions with the same principals, or principals with the same regions.


CLAUSES = 6
"""The most clauses of a row; further clauses go to another row."""
MOST = 20_000
"""The second grouping is not tried if it takes more steps: so many rows are not shown anyway."""


@define(eq=False, slots=False)
class ExactRow:
    """Regions with the same principals and hosts that changed in one direction: one row, or a few if there are many."""

    direction: Direction
    principals: Principals
    hosts: Hosts
    regions: Sequence[Region]
    by_kafka: bool = False
    """As Difference.by_kafka, of all regions."""

    @cached_property
    def clauses(self) -> Sequence[tuple[Clause, ...]]:
        """The clauses of each row."""
        clauses = clauses_of(self.regions)
        return [clauses[start : start + CLAUSES] for start in range(0, len(clauses), CLAUSES)]

    def differences(self) -> Iterator[Difference]:
        """Yield the regions as differences."""
        return (Difference(direction=self.direction, region=region, by_kafka=self.by_kafka) for region in self.regions)


def exact_rows(differences: Iterable[Difference]) -> list[ExactRow]:
    """Return rows that contain exactly the differences."""
    placed: dict[tuple[Direction, bool, Hosts], dict[Principals, list[Region]]] = defaultdict(lambda: defaultdict(list))
    for each in differences:
        placed[each.direction, each.by_kafka, each.region.hosts][each.region.principals].append(each.region)
    exact: list[ExactRow] = []
    for (direction, by_kafka, hosts), of_principals in placed.items():
        for part in _connected(of_principals):
            exact += (ExactRow(direction, who, hosts, regions, by_kafka) for who, regions in _shorter(part).items())
    return exact


def _shorter(part: dict[Principals, list[Region]]) -> dict[Principals, list[Region]]:
    """Return the regions as they are, or grouped by principals with the same regions if that gives fewer rows."""
    named = {name for principals in part for name in principals.named}
    wide = sum(principals.complement for principals in part)
    if len(part) == 1 or len(named) * (1 + wide) > MOST:
        return part
    other = _by_principal(part)
    if len(other) >= len(part) or sum(map(len, other.values())) > MOST:
        return part
    return min(part, other, key=_length)


def _length(rows: dict[Principals, list[Region]]) -> tuple[int, int]:
    counts = [len(clauses_of(regions)) for regions in rows.values()]
    return sum(-(-count // CLAUSES) for count in counts), sum(counts)


def _connected(of_principals: dict[Principals, list[Region]]) -> Iterator[dict[Principals, list[Region]]]:
    """Yield parts without a common principal; complements are all in one part."""
    group: dict[str, int] = {}
    parts: dict[int, list[Principals]] = {}
    for number, principals in enumerate(of_principals):
        joined = {group[name] for name in _members(principals) if name in group}
        target = max(joined, key=lambda each: len(parts[each]), default=number)
        moved = [principals]
        for other in joined - {target}:
            moved += parts.pop(other)
        parts.setdefault(target, []).extend(moved)
        for each in moved:
            group.update(dict.fromkeys(_members(each), target))
    for part in parts.values():
        yield {principals: of_principals[principals] for principals in part}


def _members(principals: Principals) -> tuple[str, ...]:
    """Return the named principals; the first member of a complement represents all that are not named."""
    return ("", *principals.named) if principals.complement else principals.named


def _by_principal(of_principals: dict[Principals, list[Region]]) -> dict[Principals, list[Region]]:
    """Return the same regions, by the sets of principals that share them."""
    numbered = list(of_principals.items())
    wide = frozenset(number for number, (principals, _) in enumerate(numbered) if principals.complement)
    named = sorted({name for principals, _ in numbered for name in principals.named})
    profiles: dict[str, set[int]] = {name: set(wide) for name in named}
    for number, (principals, _) in enumerate(numbered):
        for name in principals.named:
            (profiles[name].discard if principals.complement else profiles[name].add)(number)
    same: dict[frozenset[int], list[str]] = defaultdict(list)
    for name, profile in profiles.items():
        if profile:
            same[frozenset(profile)].append(name)
    by_principals: dict[Principals, list[Region]] = {}
    for members, names in same.items():
        if members != wide:
            by_principals[only(*names)] = [region for number in sorted(members) for region in numbered[number][1]]
    if wide:
        others = (name for name, profile in profiles.items() if profile != wide)
        by_principals[everyone_but(*others)] = [region for number in sorted(wide) for region in numbered[number][1]]
    return by_principals


# The reach of a summary: the smallest sets of principals, hosts, operations and names that cover all changes.


FEW_NAMES = 16
"""The most parts of changed names of a type that are listed, unless the changed ACLs name more."""
_FEW_CLAUSES = 3
_FEW_PRINCIPALS = 5
"""The most principals that are named instead of everyone, if only they are affected."""
_FEW_HOSTS = 20
_FEW_PARTS = 8
"""The most parts of names that are compared one by one."""
_EXCEPTIONS = 1_000
"""The most unchanged names that are searched for among names that are too many to list."""

_STAR = Literal(name=WILDCARD)
"""No topic has this name, but LITERAL `*` covers it and is written with it."""

Parts: TypeAlias = Mapping[int, Iterable[NamePart]]
"""By operations that changed together, as a mask: the names on which they changed."""
_Near: TypeAlias = Callable[[int, NamePart], Iterable[tuple[int, NamePart]]]
"""Returns the operations and names of extents of a resource type that may have names in common with a part."""
DeniedNames: TypeAlias = Callable[[ResourceType], Iterable[NamePart]]
"""Returns the names of a type that ACLs of either policy deny to all principals of the summary."""


@frozen(kw_only=True)
class SummaryReach:
    """The claim of a summary, and how far it may exceed the changes."""

    principals: Principals
    hosts: Hosts
    clauses: tuple[Clause, ...]
    bound: Bound
    differences: Sequence[Difference]
    """The differences that the summary covers."""


@frozen(eq=False, kw_only=True)
class _Changed:
    """The changes within extents."""

    differences: Sequence[Difference]
    parts: Mapping[ResourceType, Parts]
    is_sure: bool
    """Whether each difference has requests in the extents; unknown for overlapping ranges of addresses."""


def summary_reach(hull: Sequence[Extent], touched: Iterable[Difference], denied: DeniedNames) -> SummaryReach:
    """Return the claim of a summary; `hull`: the extents, with the same principals and hosts, of all its causes.

    For each resource type the claim has exactly the operations and names that changed for some of the principals from
    some of the hosts, if these are few. Otherwise it has the names of the extents, without those that `denied` returns
    and that no difference touches.
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
    """Return clauses with exactly the operations and names that changed; None if there are too many."""
    most = max(FEW_NAMES, _count(widest))
    if folds_to_more((part for some in parts.values() for part in some), most):
        return None
    clauses = clauses_of(
        Region(resource_type=kind, operations=mask, principals=EVERYONE, hosts=EVERYWHERE, names=tuple(some))
        for mask, some in parts.items()
    )
    return clauses if len(clauses) <= max(len(widest), _FEW_CLAUSES) and _count(clauses) <= most else None


def _count(clauses: Iterable[Clause]) -> int:
    return sum(len(clause.names) for clause in clauses)


def _changed(hull: Sequence[Extent], touched: Iterable[Difference]) -> _Changed:
    near = _near(hull)
    principals, hosts = hull[0].principals, hull[0].hosts
    parts: dict[ResourceType, dict[int, dict[NamePart, None]]] = {}
    changed: list[Difference] = []
    cache: dict[tuple[ResourceType, int, Names], bool] = {}
    is_sure = True
    for difference in touched:
        region = difference.region
        if not principals_meet(principals, region.principals) or not hosts_meet(hosts, region.hosts):
            continue
        key = region.resource_type, region.operations, region.names
        is_in = cache.get(key)
        if is_in is None:  # many principals have the same loss
            is_in = cache[key] = _add(parts.setdefault(region.resource_type, {}), region, near)
        if is_in:
            changed.append(difference)
            is_sure = is_sure and _surely_meet(hosts, region.hosts)
    return _Changed(differences=changed, parts={kind: each for kind, each in parts.items() if each}, is_sure=is_sure)


def _near(hull: Sequence[Extent]) -> _Near:
    """Return a lookup of the operations and names of extents that may share names with a part."""
    entries = [(each.resource_type, part, (each.operations, part)) for each in hull for part in each.names]
    if len(entries) > _FEW_PARTS:
        return NameIndex.of(entries).near
    by_kind: dict[int, list[tuple[int, NamePart]]] = {}
    for kind, _, own in entries:
        by_kind.setdefault(kind, []).append(own)
    return lambda kind, _: by_kind.get(kind, ())


def _add(parts: dict[int, dict[NamePart, None]], region: Region, near: _Near) -> bool:
    """Add the intersection of a region with extents, by their names; return whether it is non-empty."""
    is_common = False
    for part in region.names:
        for operations, own in near(region.resource_type, part):
            mask = operations & region.operations
            common = common_part(own, part) if mask else None
            if common is not None:
                parts.setdefault(mask, {})[common] = None
                is_common = True
    return is_common


def _surely_meet(one: Hosts, other: Hosts) -> bool:
    """Return whether two sets of addresses that may intersect do so for certain."""
    if EVERYWHERE in (one, other) or one == other:
        return True
    return not any("/" in entry for entry in (*one.entries, *other.entries))


def _affected(principals: Principals, differences: Sequence[Difference]) -> Principals:
    """Return the affected ones of some principals, if all of them are named or there are few."""
    named: set[str] = set()
    for each in (difference.region.principals for difference in differences):
        if each.complement and principals.complement:
            return principals
        named.update((name for name in principals.named if name in each) if each.complement else each.named)
    if principals.complement:
        return only(*named) if len(named) <= _FEW_PRINCIPALS else principals
    return only(*named.intersection(principals.named))


def _hosts(hosts: Hosts, differences: Sequence[Difference]) -> Hosts:
    """Return the hosts of the differences, if there are few and the row covers any host."""
    if hosts != EVERYWHERE:
        return hosts
    entries: set[str] = set()
    for each in {difference.region.hosts for difference in differences}:
        entries.update(each.entries)
        if each.complement or each.except_addresses or len(entries) > _FEW_HOSTS:
            return hosts
    return Hosts(entries=tuple(sorted(entries)))


def _bound(changed: _Changed, principals: Principals, hosts: Hosts) -> Bound:
    """Return the bound of a claim whose operations and names changed for some of the principals."""
    if not changed.is_sure:
        return Bound.ALL
    one_way = len({difference.direction for difference in changed.differences}) == 1
    regions = (difference.region for difference in changed.differences)
    return Bound.NONE if one_way and all(_is_for_all(each, principals, hosts) for each in regions) else Bound.WHO


def _is_for_all(region: Region, principals: Principals, hosts: Hosts) -> bool:
    """Return whether a region covers all of some principals and hosts."""
    if region.hosts not in (hosts, EVERYWHERE):
        return False
    if principals.complement:
        return region.principals in (principals, EVERYONE)
    return all(name in region.principals for name in principals.named)


def _narrowed(widest: Iterable[Clause], parts: Parts, denied: Sequence[NamePart]) -> Iterator[Clause]:
    """Yield clauses with the operations that changed in them, without names known to have no change."""
    for clause in widest:
        overlaps = ((mask & clause.operations, part) for mask, some in parts.items() for part in some)
        near = [(mask, part) for mask, part in overlaps if mask and names_meet((part,), clause.names)]
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
    """Returns whether a part shares names with one of many parts, which are indexed if a scan takes too long."""

    kind: int
    parts: Sequence[NamePart]
    _index: NameIndex[NamePart] | None = field(default=None, init=False)

    def __call__(self, part: NamePart) -> bool:
        """Return whether a part shares names with any of the parts."""
        if any(names_meet((part,), (other,)) for other in self.parts[:_FEW_PARTS]):
            return True
        if len(self.parts) <= _FEW_PARTS:
            return False
        if self._index is None:
            self._index = NameIndex.of((self.kind, each, each) for each in self.parts)
        return any(names_meet((part,), (other,)) for other in self._index.near(self.kind, part))


def _exceptions(parts: Iterable[tuple[int, NamePart]], within: Subtree) -> Iterator[NamePart]:
    """Yield the exceptions of the parts that lie inside another part."""
    for _, part in parts:
        if isinstance(part, Subtree) and part.prefix == within.prefix:
            yield from (Subtree(prefix=prefix) for prefix in part.except_prefixes)
            yield from (Literal(name=name) for name in part.except_literals)


def _without(part: Subtree, candidates: Iterable[NamePart], is_touched: Callable[[NamePart], bool]) -> Subtree:
    """Return a part without those of some names that nothing touches, the widest first."""
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


# Summaries, used where there would be too many exact rows: rows by cause, with counts of principals and ACLs.


_FEW_EXTENTS = 8
"""The most extents that are compared with each ACL one by one."""
_LOOKED_AT = 100
"""The most differences that are searched for a legal topic name."""


@define(eq=False)
class _Draft:
    """A row under construction: its cause, and the changes that it covers."""

    members: Sequence[Candidate]
    hull: Sequence[Extent]
    touched: Sequence[Difference]
    rules: int = 0

    @classmethod
    def of(cls, members: Sequence[Candidate]) -> Self:
        """Return the draft of causes with the same principals and hosts."""
        extents = dict.fromkeys(extent for member in members for extent in member.extents)
        principals = _principals_of(extents)
        hull = [evolve(extent, principals=principals) for extent in extents]
        return cls(
            members,
            hull,
            [each for member in members for differences in member.touched.values() for each in differences],
        )

    @property
    def setting(self) -> Setting | None:
        """The changed setting; None if ACLs changed."""
        return self.members[0].setting

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of the row's changes."""
        directions = {difference.direction for difference in self.touched}
        return tuple(direction for direction in Direction if direction in directions)


def summary_rows(candidates: Iterable[Candidate], old: Policy, new: Policy) -> Iterator[Row]:
    """Yield a row for each cause that changed a request; causes with the same principals and hosts share a row."""
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
    all_principals = (
        _all_principals(old, new) if any(draft.hull[0].principals.complement for draft in drafts) else set()
    )
    for draft in drafts:
        request = _witness(draft)
        if request is not None:
            yield _row(draft, request, all_principals, old, new)


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


def _row(draft: _Draft, request: Request, all_principals: set[str], old: Policy, new: Policy) -> Row:
    members = draft.members
    reach = summary_reach(draft.hull, draft.touched, partial(_denied_names, draft.hull[0].principals, old, new))
    rules = tuple(rule for member in members for rule in member.rules)
    named, everyone_else = _affected_rows(reach.differences, reach.principals, all_principals)
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
        by_kafka=all(difference.by_kafka for difference in draft.touched),
    )


def _denied_names(principals: Principals, old: Policy, new: Policy, kind: ResourceType) -> Iterator[NamePart]:
    """Yield the names of a type that DENY rules of either policy cover for all of some principals."""
    deny_filter = AclBindingFilter(resource_type=kind, permission_type=AclPermissionType.DENY)
    for policy in (old, new):
        for entry in policy.acls.matching(deny_filter):
            extent = extent_of(entry.acl, policy.settings)
            if extent.principals in (EVERYONE, principals):
                yield from extent.names


def _witness(draft: _Draft) -> Request | None:
    """Return a changed request of the row, with a legal name if one is found quickly."""
    hull = index_of_extents(draft.hull)
    legal_first = sorted(islice(draft.touched, _LOOKED_AT), key=lambda each: not has_legal_name(each.region))
    requests = (
        common_request(extent.region(), each.region)
        for each in chain(legal_first, draft.touched)
        for extent, _ in near_region(hull, each.region)
    )
    return next((request for request in requests if request is not None), None)


def _affected_rows(
    differences: Iterable[Difference], principals: Principals, all_principals: set[str]
) -> tuple[int, bool]:
    """Return how many named principals of a row have a changed request, and whether the unnamed ones have."""
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
    return len(named if left_out is None else named | (all_principals - left_out)), left_out is not None


def _all_principals(old: Policy, new: Policy) -> set[str]:
    """Return every principal that ACLs or settings name."""
    named = old.acls.principals() | new.acls.principals() | old.settings.super_users | new.settings.super_users
    return {name for name in named if ":" in name and name != WILDCARD_PRINCIPAL}


def _count_rules(drafts: Sequence[_Draft], policy: Policy) -> None:
    """Count for each row the ALLOW rules of a policy that cover some of its requests; a setting's row has no count."""
    holders: dict[Extent, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        for extent in draft.hull if draft.setting is None else ():
            holders[extent].append(draft)
    hull = index_of_extents(holders) if len(holders) > _FEW_EXTENTS else None
    for kind in sorted({extent.resource_type for extent in holders}):
        allow_filter = AclBindingFilter(resource_type=kind, permission_type=AclPermissionType.ALLOW)
        for entry in policy.acls.matching(allow_filter):
            region = extent_of(entry.acl, policy.settings).region()
            met = (
                {extent for extent in holders if extent.meets(region)}
                if hull is None
                else {extent for extent, part in near_region(hull, region) if extent.meets(region, (part,))}
            )
            for draft in {id(draft): draft for extent in met for draft in holders[extent]}.values():
                draft.rules += 1


# Independent components of a change: rows, and the causes that affect them.


_EXACT_ROWS: Mapping[Setting | None, int] = {Setting.SEMANTICS: 4}
"""The most exact rows for which a changed setting is shown exactly: this one changes the meaning of some ACLs. Other
settings are better summarized as a whole, and so are changed ACLs, in no more rows than ACLs."""


@define(eq=False)
class Component:
    """Exact rows, and all causes that affect any of the rows."""

    rows: list[ExactRow] = field(factory=list)
    candidates: list[Candidate] = field(factory=list)

    def is_short(self) -> bool:
        """Return whether there are few enough exact rows for their causes; without a cause they are used anyway."""
        if any(candidate.is_exact for candidate in self.candidates):
            return True
        most = sum(_EXACT_ROWS.get(candidate.setting, 1) for candidate in self.candidates)
        return not most or (len(self.rows) <= most and sum(len(row.clauses) for row in self.rows) <= most)


def components(rows: Sequence[ExactRow], candidates: Sequence[Candidate]) -> Iterator[Component]:
    """Yield the components; each row is in one component."""
    if len(candidates) == 1 and len(candidates[0].effects) == 1:
        (effect,) = candidates[0].effects
        candidates[0].touched[effect] = [each for row in rows for each in row.differences()]
        yield Component(list(rows), list(candidates))
        return
    touching = _touching(rows, candidates)
    parent = list(range(len(candidates)))
    for numbers in touching:
        for number in numbers:
            parent[_root(parent, number)] = _root(parent, numbers[0])
    by_root: dict[int, Component] = defaultdict(Component)
    for row, numbers in zip(rows, touching, strict=True):
        if numbers:
            by_root[_root(parent, numbers[0])].rows.append(row)
        else:
            yield Component([row])
    for number, candidate in enumerate(candidates):
        if _root(parent, number) in by_root:
            by_root[_root(parent, number)].candidates.append(candidate)
    yield from by_root.values()


def _root(parent: list[int], number: int) -> int:
    """Return the representative of the numbers that are joined with this one."""
    while parent[number] != number:
        parent[number] = number = parent[parent[number]]
    return number


def _touching(rows: Sequence[ExactRow], candidates: Sequence[Candidate]) -> list[list[int]]:
    """Return for each row the numbers of the candidates that affect one of its regions."""
    holders: dict[Extent, set[int]] = defaultdict(set)
    named: dict[tuple[int, str], set[int]] = defaultdict(set)
    for number, candidate in enumerate(candidates):
        for extent in (extent for effect in candidate.effects for extent in effect.extents):
            holders[extent].add(number)
            for name in extent.principals.named:
                named[extent.resource_type, name].add(number)
    index, touching = index_of_extents(holders), []
    of_everyone = index_of_extents(extent for extent in holders if extent.principals.complement)
    for row in rows:
        numbers: set[int] = set()
        for difference in row.differences():
            # By names: many extents may name principals on these names, and few of them these principals.
            by_name = index if row.principals.complement else of_everyone
            extents = {extent for extent, _ in near_region(by_name, difference.region)}
            near = set().union(*(holders[extent] for extent in extents))
            if not row.principals.complement:
                kind, who = difference.region.resource_type, row.principals.named
                near.update(*(named[kind, name] for name in who if (kind, name) in named))
            parts = index_of_region(difference.region)
            numbers.update(number for number in near if candidates[number].touch(difference, parts))
        touching.append(sorted(numbers))
    return touching


# Folds the exact differences of two policies into the fewest verifiable rows.


def rows(
    differences: Iterable[Difference], old: Policy, new: Policy, changed: Iterable[tuple[bool, StandardAcl]]
) -> list[Row]:
    """Return the rows of a report, in a stable order.

    `changed` has every ACL that only one of the policies has, with True if it was added. Principals with the same
    change share a row, and so do operations, types and names with the same principals and hosts. Where there would be
    more exact rows than naive ones (NaiveRow), summaries by cause replace them. So there are never more rows than the
    naive ones plus one for each changed setting (two if super users were both added and removed, four for semantics). A
    change of Kafka's generation counts as a change of the ACLs with a range as host.
    """
    report_rows: list[Row] = []
    for part in components(exact_rows(differences), candidates_of(old, new, list(changed))):
        if part.is_short():
            for row in part.rows:
                report_rows += _rows_of_exact(row, old, new)
        else:
            report_rows += summary_rows(part.candidates, old, new)
    return _ordered(report_rows)


def _rows_of_exact(row: ExactRow, old: Policy, new: Policy) -> Iterator[Row]:
    for clauses in row.clauses:
        regions = [
            Region(
                resource_type=clause.resource_type,
                operations=clause.operations,
                principals=row.principals,
                hosts=row.hosts,
                names=clause.names,
            )
            for clause in clauses
        ]
        legal = next(filter(has_legal_name, regions), None)
        request = witness(legal or regions[0])
        yield Row(
            directions=(row.direction,),
            principals=row.principals,
            hosts=row.hosts,
            clauses=clauses,
            witness=request,
            before=deciding(old, request),
            after=deciding(new, request),
            legal=legal is not None,
            by_kafka=row.by_kafka,
        )


def _ordered(report_rows: list[Row]) -> list[Row]:
    """Return rows sorted by their content, and by their texts where that is equal, as texts take longer to create."""
    places: dict[tuple[object, ...], list[Row]] = {}
    for row in report_rows:
        places.setdefault(_place(row), []).append(row)
    groups = (places[key] for key in sorted(places))
    return [row for group in groups for row in (group if len(group) == 1 else sorted(group, key=str))]


def _place(row: Row) -> tuple[object, ...]:
    first = row.clauses[0]
    return (
        row.directions[0] is not Direction.GAINED,
        first.resource_type,
        place(first.names[0]),
        first.operations,
        row.principals.complement,
        row.principals.named,
    )
