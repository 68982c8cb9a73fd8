"""Which DENY rules are needed against ALLOWs from other hosts: those that deny_search.py leaves."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from attrs import define, field, frozen

from aclog.analysis.lint.effect.cells import Points
from aclog.analysis.lint.effect.chains import Chains
from aclog.analysis.lint.effect.deny_search import BITS, DenySearch, Spans, has
from aclog.analysis.lint.effect.lanes import States, allowed, denied, denied_twice
from aclog.analysis.lint.effect.nesting import nested
from aclog.analysis.lint.effect.ranges import Standing
from aclog.metalog.vectors import Bools, Int64s

MOST_POINTS = 20_000_000
"""Points that are looked at before the search gives up: tens of seconds."""
_FIRST, _MORE = 64, 16
"""Candidates that are looked at first, and how many times more each time after that."""


def settle_mixed(search: DenySearch, most: int = MOST_POINTS) -> Bools:
    """Find the needed rules among those that are left; return those that the search gave up on, which may be needed."""
    possible = np.zeros(len(search.needed), np.bool_)
    for bit in BITS:
        spans = search.left(bit)
        for specific in True, False:
            some = spans.chosen((spans.hosts == search.decider.cells.hosts.anywhere) == specific)
            if len(some.denies):
                possible[_Allows.of(search, bit, specific=specific).meeting(search, some)] = True
    left = np.flatnonzero(possible & ~search.needed)
    given_up = np.zeros(len(search.needed), np.bool_)
    if len(left):
        given_up[_Candidates.of(search).settle(left.tolist(), most)] = True
    return given_up


@frozen(eq=False, kw_only=True)
class _Allows:
    """The cells that allow one operation: where they stand, and what they cover."""

    which: Bools
    """By cell."""
    below: Standing
    below_all: Standing

    @classmethod
    def of(cls, search: DenySearch, bit: int, *, specific: bool) -> "_Allows":
        """Take all cells, or only those that are not from any host."""
        cells = search.decider.cells
        which = has(allowed(cells.states), bit)
        if specific:
            which &= cells.host_numbers != cells.hosts.anywhere
        points = search.points.chosen(which[search.point_cells])
        return cls(
            which=which,
            below=Standing.of(points.principals, points.places),
            below_all=Standing.of(points.places * 0, points.places),
        )

    def meeting(self, search: DenySearch, spans: Spans) -> Int64s:
        """Return the DENY rules that may meet one of them."""
        everyone = search.decider.cells.everyone
        for_all = spans.principals == everyone
        found = np.where(
            for_all,
            self.below_all.any(spans.starts * 0, spans.starts, spans.ends),
            self.below.any(spans.principals, spans.starts, spans.ends)
            | self.below.any(np.full(len(spans.starts), everyone), spans.starts, spans.ends),
        )
        left = np.setdiff1d(spans.denies, spans.denies[found])
        above = left[self._above(search, left)] if len(left) and self.which.any() else left[:0]
        return np.union1d(spans.denies[found], above)

    def _above(self, search: DenySearch, denies: Int64s) -> Bools:
        """Return which DENY rules have one of them on a wider name."""
        cells, intervals = search.decider.cells, search.decider.intervals
        chosen = self.which[intervals.cells]
        numbers, starts, ends = intervals.cells[chosen], intervals.starts[chosen], intervals.ends[chosen]
        ones = np.ones(len(numbers), np.uint64)
        by_principal = Chains.of(cells.principals[numbers], starts, ends, ones)
        of_all = Chains.of(numbers * 0, starts, ends, ones)
        points, found = search.points, np.zeros(len(cells), np.bool_)
        everyone = np.full(len(points), cells.everyone)
        for_all = points.principals == cells.everyone
        any_of_all = of_all.at(points.places * 0, points.places) > 0
        any_of_two = by_principal.at(points.principals, points.places) | by_principal.at(everyone, points.places)
        found[search.point_cells[np.where(for_all, any_of_all, any_of_two > 0)]] = True
        return found[search.cells[denies]]


@define(eq=False, kw_only=True)
class _Candidates:
    """Points of cells that allow something, to be looked at for one DENY rule after the other."""

    _search: DenySearch
    _by_place: Points
    _by_principal: Points
    """Sorted by place; by principal and place."""
    _principal_keys: Int64s
    _around: Int64s
    """By interval of a pattern: the one around it; -1 for none."""
    _looked_at: int = field(default=0, init=False)

    @classmethod
    def of(cls, search: DenySearch) -> "_Candidates":
        """Return the candidates of a search."""
        cells, names = search.decider.cells, search.decider.cells.names
        points = search.points.chosen((allowed(cells.states) > 0)[search.point_cells])
        by_place = points.chosen(np.argsort(points.places, kind="stable"))
        by_principal = by_place.chosen(np.argsort(by_place.principals, kind="stable"))
        around = np.full(len(names.starts), -1, np.int64)
        for here, above in nested(names.starts, names.ends):
            around[here] = above
        return cls(
            search=search,
            by_place=by_place,
            by_principal=by_principal,
            principal_keys=by_principal.principals << 31 | by_principal.places,
            around=around,
        )

    def settle(self, denies: list[int], most: int) -> list[int]:
        """Look for a point that shows that each rule is needed; return the rules that were not looked at to the end."""
        for at, deny in enumerate(denies):
            if self._looked_at > most:
                return denies[at:]
            self._search.needed[deny] = self._is_needed(deny)
        return []

    def _is_needed(self, deny: int) -> bool:
        cells = self._search.decider.cells
        cell = int(self._search.cells[deny])
        operations, principal = self._search.operations[deny], int(cells.principals[cell])
        host = int(cells.host_numbers[cell])
        candidates = list(chain(self._below(cell, principal), self._above(cell, principal)))
        return any(
            self._shows(operations, principal, part, candidate)
            for part in cells.hosts.parts.get(host, (host,))
            for candidate in _in_chunks(candidates)
        )

    def _shows(self, operations: np.uint64, principal: int, host: int, points: Points) -> bool:
        """Return whether the DENY alone denies something where it meets some ALLOWs."""
        cells = self._search.decider.cells
        hosts = np.full(len(points), host)
        inside, outside = cells.hosts.around(hosts, points.hosts), cells.hosts.around(points.hosts, hosts)
        met = Points(
            places=points.places,
            principals=points.principals if principal == cells.everyone else np.full(len(points), principal),
            hosts=np.where(inside, points.hosts, hosts),
        ).chosen(inside | outside)
        self._looked_at += len(points)
        states: States = self._search.decider.states(met)
        return bool((allowed(states) & denied(states) & ~denied_twice(states) & operations).any())

    def _below(self, cell: int, principal: int) -> Iterator[Points]:
        intervals, cells = self._search.decider.intervals, self._search.decider.cells
        low, high = np.searchsorted(intervals.cells, [cell, cell + 1])
        for at in range(low, high):
            bounds = np.array([intervals.starts[at], intervals.ends[at]])
            if principal == cells.everyone:
                yield self._by_place.chosen(slice(*np.searchsorted(self._by_place.places, bounds)))
                continue
            for one in principal, cells.everyone:
                yield self._by_principal.chosen(slice(*np.searchsorted(self._principal_keys, one << 31 | bounds)))

    def _above(self, cell: int, principal: int) -> Iterator[Points]:
        cells, names = self._search.decider.cells, self._search.decider.cells.names
        resource = cells.resources[cell]
        tops = names.tops[slice(*np.searchsorted(names.top_resource_of, [resource, resource + 1]))]
        for top in tops.tolist():
            at = int(np.searchsorted(names.starts, top, side="right")) - 1
            while at >= 0:
                if names.ends[at] > top and names.resource_of[at] != resource:
                    yield self._cells_on(int(names.resource_of[at]), top, principal)
                at = int(self._around[at])

    def _cells_on(self, resource: int, top: int, principal: int) -> Points:
        cells = self._search.decider.cells
        low, high = np.searchsorted(cells.resources, [resource, resource + 1])
        numbers = np.arange(low, high)
        numbers = numbers[allowed(cells.states[numbers]) > 0]
        if principal != cells.everyone:
            numbers = numbers[np.isin(cells.principals[numbers], (principal, cells.everyone))]
        return Points(
            places=np.full(len(numbers), top),
            principals=cells.principals[numbers],
            hosts=cells.host_numbers[numbers],
        )


def _in_chunks(candidates: list[Points]) -> Iterator[Points]:
    """Yield the candidates, few at first: the first one mostly shows it."""
    for points in candidates:
        at, size = 0, _FIRST
        while at < len(points):
            yield points.chosen(slice(at, at + size))
            at, size = at + size, size * _MORE
