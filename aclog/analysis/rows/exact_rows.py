"""Groups exact differences into as few rows: by what has the same principals, or by principals that have the same."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from attrs import define

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.principals import Principals, everyone_but, only
from aclog.analysis.regions.region import Difference, Direction, Region
from aclog.analysis.rows.clauses import clauses_of
from aclog.analysis.rows.row import Clause

CLAUSES = 6
"""A row says no more than this; what is more is said in another row."""
MOST = 20_000
"""The second way is not tried if it takes more steps than this: so many rows are not shown anyway."""


@define(eq=False, slots=False)
class ExactRow:
    """Regions of one who and where that changed in one direction: one row, or a few if there are many clauses."""

    direction: Direction
    principals: Principals
    hosts: Hosts
    regions: Sequence[Region]

    @cached_property
    def clauses(self) -> Sequence[tuple[Clause, ...]]:
        """What each row says."""
        found = clauses_of(self.regions)
        return [found[start : start + CLAUSES] for start in range(0, len(found), CLAUSES)]

    def differences(self) -> Iterator[Difference]:
        """Yield the regions as differences."""
        return (Difference(direction=self.direction, region=region) for region in self.regions)


def exact_rows(differences: Iterable[Difference]) -> list[ExactRow]:
    """Return rows that hold exactly the differences."""
    placed: dict[tuple[Direction, Hosts], dict[Principals, list[Region]]] = defaultdict(lambda: defaultdict(list))
    for each in differences:
        placed[each.direction, each.region.hosts][each.region.principals].append(each.region)
    found: list[ExactRow] = []
    for (direction, hosts), of_principals in placed.items():
        for part in _connected(of_principals):
            found += (ExactRow(direction, who, hosts, regions) for who, regions in _shorter(part).items())
    return found


def _shorter(part: dict[Principals, list[Region]]) -> dict[Principals, list[Region]]:
    """Return the regions as they are grouped, or by principals that have the same if these are fewer rows."""
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
    """Yield parts that have no principal in common; what is about all but some is one part."""
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
    """Return those named; the first member of all but some stands for everyone that is not named."""
    return ("", *principals.named) if principals.complement else principals.named


def _by_principal(of_principals: dict[Principals, list[Region]]) -> dict[Principals, list[Region]]:
    """Return the same regions by sets of principals that are in the same of them."""
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
    found: dict[Principals, list[Region]] = {}
    for members, names in same.items():
        if members != wide:
            found[only(*names)] = [region for number in sorted(members) for region in numbered[number][1]]
    if wide:
        others = (name for name, profile in profiles.items() if profile != wide)
        found[everyone_but(*others)] = [region for number in sorted(wide) for region in numbered[number][1]]
    return found
