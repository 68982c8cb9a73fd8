"""Which DENY rules are needed against ALLOWs from other hosts: those that deny_search.py leaves."""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from attrs import define, evolve, field, frozen

from aclog.analysis.lint.effect.cells import Points
from aclog.analysis.lint.effect.chains import Chains
from aclog.analysis.lint.effect.deny_search import BITS, DenySearch, Spans, has
from aclog.analysis.lint.effect.lanes import allowed, denied, denied_twice
from aclog.analysis.lint.effect.nesting import nested
from aclog.analysis.lint.effect.ranges import Standing
from aclog.metalog.vectors import Bools, Int64s

MOST_POINTS = 20_000_000
"""Points that are looked at before the search gives up: seconds."""
_FIRST, _MORE = 64, 16
"""Candidates that are looked at first, and how many times more each time after that."""
_OVERHEAD = 5_000
"""What looking at any number of points costs besides, in points."""
_LEVELS = 4
"""Wider names that are looked at for many rules at once."""


def settle_mixed(search: DenySearch, most: int) -> Bools:
    """Find the needed rules among those that are left; return those that the search gave up on, which may be needed."""
    possible = np.zeros(len(search.needed), np.bool_)
    for bit in BITS:
        spans = search.left(bit)
        for specific in True, False:
            some = spans.chosen((spans.hosts == search.decider.cells.hosts.anywhere) == specific)
            if len(some.denies):
                _Allows.of(search, bit, specific=specific).mark(search, some, possible)
    left = np.flatnonzero(possible & ~search.needed)
    given_up = np.zeros(len(search.needed), np.bool_)
    if len(left):
        given_up[_Candidates.of(search).settle(left, most)] = True
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

    def mark(self, search: DenySearch, spans: Spans, possible: Bools) -> None:
        """Mark the DENY rules that may meet one of them."""
        if not self.which.any():
            return
        everyone = search.decider.cells.everyone
        for_all = spans.principals == everyone
        found = np.where(
            for_all,
            self.below_all.any(spans.starts * 0, spans.starts, spans.ends),
            self.below.any(spans.principals, spans.starts, spans.ends)
            | self.below.any(np.full(len(spans.starts), everyone), spans.starts, spans.ends),
        )
        possible[spans.denies[found]] = True
        denies = spans.denies[~possible[spans.denies]]
        if len(denies):
            possible[denies[self._above(search, denies)]] = True

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
    _allowing: Points
    """Of cells that allow something."""
    _resources: Int64s
    """By point of these: the pattern of its cell, ascending."""
    _by_place: Points
    _by_principal: Points
    """The same, sorted by place; by principal and place."""
    _principal_keys: Int64s
    _around: Int64s
    """By interval of a pattern: the one around it; -1 for none."""
    _looked_at: int = field(default=0, init=False)

    @classmethod
    def of(cls, search: DenySearch) -> "_Candidates":
        """Return the candidates of a search."""
        cells, names = search.decider.cells, search.decider.cells.names
        allowing = (allowed(cells.states) > 0)[search.point_cells]
        points = search.points.chosen(allowing)
        by_place = points.chosen(np.argsort(points.places, kind="stable"))
        by_principal = by_place.chosen(np.argsort(by_place.principals, kind="stable"))
        around = np.full(len(names.starts), -1, np.int64)
        for here, above in nested(names.starts, names.ends):
            around[here] = above
        return cls(
            search=search,
            allowing=points,
            resources=cells.resources[search.point_cells[allowing]],
            by_place=by_place,
            by_principal=by_principal,
            principal_keys=by_principal.principals << 31 | by_principal.places,
            around=around,
        )

    def settle(self, denies: Int64s, most: int) -> Int64s:
        """Look for a point that shows that each rule is needed; return the rules that were not looked at to the end."""
        needed = self._search.needed
        for each, points in self._samples(denies):
            open_ = np.flatnonzero(~needed[each])
            needed[each[open_][self._shows(each[open_], points.chosen(open_))]] = True
        left = denies[~needed[denies]]
        for at, deny in enumerate(left.tolist()):
            if self._looked_at > most:
                return left[at:]
            needed[deny] = self._is_needed(deny)
        return left[:0]

    def _is_needed(self, deny: int) -> bool:
        cells = self._search.decider.cells
        cell = int(self._search.cells[deny])
        principal = int(cells.principals[cell])
        candidates = chain(self._below(cell, principal), self._above(cell, principal))
        return any(self._shows(np.full(len(some), deny), some).any() for some in _in_chunks(candidates))

    def _shows(self, denies: Int64s, points: Points) -> Bools:
        """Return which DENYs alone deny something where they meet the ALLOWs of these points, one each."""
        search, cells = self._search, self._search.decider.cells
        self._looked_at += len(points) + _OVERHEAD
        of_deny = search.cells[denies]
        principals, hosts = cells.principals[of_deny], cells.host_numbers[of_deny]
        found = np.zeros(len(points), np.bool_)
        for part in self._parts(hosts):
            inside, outside = cells.hosts.around(part, points.hosts), cells.hosts.around(points.hosts, part)
            met = np.flatnonzero(inside | outside)
            at = Points(
                places=points.places,
                principals=np.where(principals == cells.everyone, points.principals, principals),
                hosts=np.where(inside, points.hosts, part),
            ).chosen(met)
            states = search.decider.states(at)
            alone = allowed(states) & denied(states) & ~denied_twice(states) & search.operations[denies[met]]
            found[met] |= alone != 0
        return found

    def _parts(self, hosts: Int64s) -> Iterator[Int64s]:
        """Yield the hosts, or those that a range consists of, one of each at a time."""
        parts = self._search.decider.cells.hosts.parts
        if not parts:
            yield hosts
            return
        of_each = [parts.get(host, (host,)) for host in hosts.tolist()]
        for at in range(max(map(len, of_each), default=0)):
            yield np.array([each[min(at, len(each) - 1)] for each in of_each], np.int64)

    def _samples(self, denies: Int64s) -> Iterator[tuple[Int64s, Points]]:
        """Yield a few candidates for many rules at once: mostly the first one shows that a rule is needed."""
        cells, intervals = self._search.decider.cells, self._search.decider.intervals
        of_deny = self._search.cells[denies]
        first = np.searchsorted(intervals.cells, of_deny)
        for last in False, True:  # a rule on LITERAL `*` has several intervals
            at = np.searchsorted(intervals.cells, of_deny, side="right") - 1 if last else first
            starts, ends = intervals.starts[at], intervals.ends[at]
            for_all = cells.principals[of_deny] == cells.everyone
            yield from self._sampled(denies, for_all, self._by_place, self._by_place.places, starts, ends)
            for one in cells.principals[of_deny], np.full(len(denies), cells.everyone):
                low, high = one << 31 | starts, one << 31 | ends
                yield from self._sampled(denies, ~for_all, self._by_principal, self._principal_keys, low, high)
        yield from self._sampled_above(denies)

    def _sampled(
        self, denies: Int64s, which: Bools, points: Points, keys: Int64s, starts: Int64s, ends: Int64s
    ) -> Iterator[tuple[Int64s, Points]]:
        low, high = np.searchsorted(keys, starts), np.searchsorted(keys, ends)
        some = np.flatnonzero(which & (low < high))
        if len(some):
            for at in low, (low + high) // 2, high - 1:
                yield denies[some], points.chosen(at[some])

    def _sampled_above(self, denies: Int64s) -> Iterator[tuple[Int64s, Points]]:
        cells, names = self._search.decider.cells, self._search.decider.cells.names
        resources = cells.resources[self._search.cells[denies]]
        tops = names.tops[np.searchsorted(names.top_resource_of, resources)]
        interval = np.searchsorted(names.starts, tops, side="right") - 1
        # Points have single hosts and parts of ranges; their order is that of the cells, by resource.
        points = self._allowing
        for _ in range(_LEVELS):
            low = np.searchsorted(self._resources, names.resource_of[interval])
            high = np.searchsorted(self._resources, names.resource_of[interval], side="right")
            some = np.flatnonzero((interval >= 0) & (names.ends[interval] > tops) & (low < high))
            for at in low[some], high[some] - 1:
                if len(some):
                    yield denies[some], evolve(points.chosen(at), places=tops[some])
            interval = np.where(interval >= 0, self._around[interval], -1)

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
                    yield self._on(int(names.resource_of[at]), top, principal)
                at = int(self._around[at])

    def _on(self, resource: int, top: int, principal: int) -> Points:
        """Return the points of the cells on a pattern that concern a principal, moved to a place of longer names."""
        cells = self._search.decider.cells
        bounds = np.searchsorted(self._resources, [resource, resource + 1])
        found = self._allowing.chosen(slice(*bounds))
        if principal != cells.everyone:
            found = found.chosen(np.isin(found.principals, (principal, cells.everyone)))
        return evolve(found, places=np.full(len(found), top))


def _in_chunks(candidates: Iterable[Points]) -> Iterator[Points]:
    """Yield the candidates, few at first: the first one mostly shows it."""
    for points in candidates:
        at, size = 0, _FIRST
        while at < len(points):
            yield points.chosen(slice(at, at + size))
            at, size = at + size, size * _MORE
