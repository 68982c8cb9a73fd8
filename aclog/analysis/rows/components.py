"""Parts of a change that have nothing to do with each other: rows, and the causes that touch them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from aclog.analysis.rows.causes import Candidate
from aclog.analysis.rows.exact_rows import ExactRow
from aclog.analysis.rows.extent import Extent
from aclog.analysis.rows.extent_index import index_of_extents, index_of_region, near_region
from aclog.analysis.rows.row import Setting

_EXACT_ROWS: Mapping[Setting | None, int] = {Setting.SEMANTICS: 4}
"""Exact rows in which a changed setting may be told: this one changes what some rules say. The others are told best as
a whole, and so are rules that changed, in no more rows than their own number."""


@define(eq=False)
class Component:
    """Exact rows, and all the causes that touch any of them."""

    rows: list[ExactRow] = field(factory=list)
    candidates: list[Candidate] = field(factory=list)

    def is_short(self) -> bool:
        """Return whether the exact rows are few enough for their causes; without a known cause they stand anyway."""
        if any(candidate.is_exact for candidate in self.candidates):
            return True
        most = sum(_EXACT_ROWS.get(candidate.setting, 1) for candidate in self.candidates)
        return not most or (len(self.rows) <= most and sum(len(row.clauses) for row in self.rows) <= most)


def components(rows: Sequence[ExactRow], candidates: Sequence[Candidate]) -> Iterator[Component]:
    """Yield the parts; each row is in one of them."""
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
    found: dict[int, Component] = defaultdict(Component)
    for row, numbers in zip(rows, touching, strict=True):
        if numbers:
            found[_root(parent, numbers[0])].rows.append(row)
        else:
            yield Component([row])
    for number, candidate in enumerate(candidates):
        if _root(parent, number) in found:
            found[_root(parent, number)].candidates.append(candidate)
    yield from found.values()


def _root(parent: list[int], number: int) -> int:
    """Return the number that stands for all that are joined with this one."""
    while parent[number] != number:
        parent[number] = number = parent[parent[number]]
    return number


def _touching(rows: Sequence[ExactRow], candidates: Sequence[Candidate]) -> list[list[int]]:
    """Return for each row the numbers of the candidates that touch one of its regions."""
    holders: dict[Extent, set[int]] = defaultdict(set)
    named: dict[tuple[int, str], set[int]] = defaultdict(set)
    for number, candidate in enumerate(candidates):
        for extent in (extent for effect in candidate.effects for extent in effect.extents):
            holders[extent].add(number)
            for name in extent.principals.named:
                named[extent.resource_type, name].add(number)
    index, found = index_of_extents(holders), []
    of_everyone = index_of_extents(extent for extent in holders if extent.principals.complement)
    for row in rows:
        numbers: set[int] = set()
        for difference in row.differences():
            # By names. Of extents that name principals there may be many on these names, and few of these principals.
            by_name = index if row.principals.complement else of_everyone
            extents = {extent for extent, _ in near_region(by_name, difference.region)}
            near = set().union(*(holders[extent] for extent in extents))
            if not row.principals.complement:
                kind, who = difference.region.resource_type, row.principals.named
                near.update(*(named[kind, name] for name in who if (kind, name) in named))
            parts = index_of_region(difference.region)
            numbers.update(number for number in near if candidates[number].touch(difference, parts))
        found.append(sorted(numbers))
    return found
