"""Which DENY rules are needed: those that deny, alone, a request that some rule allows.

Where a DENY meets an ALLOW, the request has the longer of both names, and the narrower of both principals and hosts. If
the DENY is the wider one in all three, that is a point of the ALLOW's cell; if in none, one of its own. What is mixed
is looked at here: rules from any host, exactly and all at once. mixed_hosts.py looks at the others.
"""

import numpy as np
from attrs import define, frozen

from aclog.analysis.lint.effect.cells import Points
from aclog.analysis.lint.effect.decider import Decider
from aclog.analysis.lint.effect.lanes import States, allowed, denied, denied_twice
from aclog.analysis.lint.effect.ranges import Standing
from aclog.analysis.regions.operations import REQUESTED
from aclog.authorizer.index.arrays import expanded
from aclog.metalog.vectors import Bools, Int64s

BITS = tuple(bit for bit in range(16) if REQUESTED >> bit & 1)


@frozen(eq=False, kw_only=True)
class Spans:
    """The intervals of DENY rules that deny one operation; a rule on LITERAL `*` has several."""

    denies: Int64s
    starts: Int64s
    ends: Int64s
    principals: Int64s
    hosts: Int64s

    def chosen(self, which: Bools) -> "Spans":
        """Return some of them."""
        return Spans(
            denies=self.denies[which],
            starts=self.starts[which],
            ends=self.ends[which],
            principals=self.principals[which],
            hosts=self.hosts[which],
        )


@define(eq=False, kw_only=True)
class DenySearch:
    """DENY rules, and what is known of them."""

    decider: Decider
    points: Points
    point_cells: Int64s
    """By point: the cell that it stands for, ascending."""
    states: States
    """By point."""
    cells: Int64s
    """By DENY rule: its cell."""
    operations: States
    """By DENY rule: what it denies."""
    needed: Bools
    """By DENY rule: whether it is known to be needed."""

    def settle(self) -> None:
        """Find the needed ones but for those that only meet ALLOWs on other hosts than `*` or their own."""
        critical = allowed(self.states) & self._once()
        for bit in BITS:
            self._by_points(self.left(bit), self.points.chosen(has(critical, bit)))
            self._for_everyone(bit)
            self._below_everyone(self.left(bit), bit)

    def left(self, bit: int) -> Spans:
        """Return the intervals of the rules that deny an operation and are not known to be needed."""
        cells, intervals = self.decider.cells, self.decider.intervals
        which = np.flatnonzero(~self.needed & has(self.operations, bit))
        of_cell = self.cells[which]
        low = np.searchsorted(intervals.cells, of_cell)
        number, at = expanded(low, np.searchsorted(intervals.cells, of_cell, side="right"))
        return Spans(
            denies=which[number],
            starts=intervals.starts[at],
            ends=intervals.ends[at],
            principals=cells.principals[of_cell[number]],
            hosts=cells.host_numbers[of_cell[number]],
        )

    def _once(self) -> States:
        return denied(self.states) & ~denied_twice(self.states)

    def _by_points(self, spans: Spans, points: Points) -> None:
        """Settle those that cover a point at which one rule alone denies what is allowed: they are that rule."""
        cells = self.decider.cells
        if not len(spans.denies) or not len(points):
            return
        width = len(cells.hosts.parents)
        anywhere, for_all = spans.hosts == cells.hosts.anywhere, spans.principals == cells.everyone
        # Hosts inside of a range are left to the search.
        leaf = ~cells.hosts.inner[spans.hosts]
        for which, of_span, of_point in (
            (anywhere & for_all, spans.hosts * 0, points.hosts * 0),
            (anywhere & ~for_all, spans.principals, points.principals),
            (leaf & for_all, spans.hosts, points.hosts),
            (leaf & ~for_all, spans.principals * width + spans.hosts, points.principals * width + points.hosts),
        ):
            if which.any():
                groups, group_of = np.unique(of_point, return_inverse=True)
                at = np.minimum(np.searchsorted(groups, of_span), len(groups) - 1)
                chosen = which & (groups[at] == of_span)
                some, standing = spans.chosen(chosen), Standing.of(group_of.astype(np.int64), points.places)
                self.needed[some.denies[standing.any(at[chosen], some.starts, some.ends)]] = True

    def _for_everyone(self, bit: int) -> None:
        """Settle DENYs for everyone where somebody is allowed more by wider names."""
        cells, chains = self.decider.cells, self.decider.chains
        which = ~self.needed & has(self.operations, bit) & (cells.principals[self.cells] == cells.everyone)
        which &= cells.host_numbers[self.cells] == cells.hosts.anywhere
        if not which.any():
            return
        subjects = chains.subjects()
        free = has(allowed(chains.states), bit) & ~has(denied(chains.states), bit) & self.decider.single[subjects]
        before = np.append(False, free[:-1]) & np.append(False, subjects[1:] == subjects[:-1])[: len(free)]
        changes = np.flatnonzero(free != before)
        places = chains.places()[changes]
        order = np.argsort(places, kind="stable")
        holders = np.append(0, np.cumsum(np.where(free[changes], 1, -1)[order]))
        held = holders[np.searchsorted(places[order], self.points.places, side="right")] > 0
        own = (self.points.principals == cells.everyone) & (self.points.hosts == cells.hosts.anywhere)
        found = np.zeros(len(cells), np.bool_)
        found[self.point_cells[own & held & has(self._once(), bit)]] = True
        self.needed |= which & found[self.cells]

    def _below_everyone(self, spans: Spans, bit: int) -> None:
        """Settle DENYs for one principal where everyone is allowed something by longer names."""
        cells, chains = self.decider.cells, self.decider.chains
        spans = spans.chosen((spans.hosts == cells.hosts.anywhere) & (spans.principals != cells.everyone))
        if not len(spans.denies):
            return
        of_all = (self.points.principals == cells.everyone) & (self.points.hosts == cells.hosts.anywhere)
        of_all &= has(allowed(self.states), bit) & ~has(denied(self.states), bit)
        free = Standing.of(np.zeros(int(of_all.sum()), np.int64), self.points.places[of_all])
        alone = np.flatnonzero(has(denied(chains.states) & ~denied_twice(chains.states), bit))
        alone = alone[self.decider.single[chains.subjects()[alone]]]
        starts, ends = chains.places()[alone], chains.places()[alone + 1]  # each chain ends with nothing
        alone = alone[free.any(starts * 0, starts, ends)]
        principals = self.decider.principals(chains.subjects()[alone])
        standing = Standing.of(principals, chains.places()[alone])
        self.needed[spans.denies[standing.any(spans.principals, spans.starts, spans.ends)]] = True


def has(states: States, bit: int) -> Bools:
    """Return where an operation is among those of a mask."""
    found: Bools = (states >> np.uint64(bit) & np.uint64(1)).astype(np.bool_)
    return found
