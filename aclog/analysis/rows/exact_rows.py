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
"""Differences of more principals, all counted, are grouped in the first way only."""


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
        if sum(len(principals.named) for principals in of_principals) > MOST:
            parts: Iterable[dict[Principals, list[Region]]] = [of_principals]
        else:
            parts = _connected(of_principals)
        for part in parts:
            ways = [part] if part is of_principals else [part, _by_principal(part)]
            rows = [[ExactRow(direction, who, hosts, regions) for who, regions in way.items()] for way in ways]
            found += rows[0] if len(rows) == 1 else min(rows[0], rows[1], key=_length)
    return found


def _length(rows: Iterable[ExactRow]) -> tuple[int, int]:
    chunks = [clauses for row in rows for clauses in row.clauses]
    return len(chunks), sum(map(len, chunks))


def _connected(of_principals: dict[Principals, list[Region]]) -> Iterator[dict[Principals, list[Region]]]:
    """Yield parts that have no principal in common; what is about all but some is one part."""
    group: dict[str, int] = {}
    parts: dict[int, list[Principals]] = {}
    for number, principals in enumerate(of_principals):
        # The first member stands for everyone that is not named.
        members = ("", *principals.named) if principals.complement else principals.named
        joined = {group[name] for name in members if name in group}
        target = max(joined, key=lambda each: len(parts[each]), default=number)
        parts.setdefault(target, []).append(principals)
        for other in joined - {target}:
            parts[target] += parts.pop(other)
        for who in parts[target] if len(joined) > 1 else [principals]:
            group.update(dict.fromkeys(("", *who.named) if who.complement else who.named, target))
    for part in parts.values():
        yield {principals: of_principals[principals] for principals in part}


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
