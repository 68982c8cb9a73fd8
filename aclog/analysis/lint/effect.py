"""The effect of each ACL: whether the policy needs it, and if not, why."""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from attrs import evolve, field
from numpy.typing import NDArray

from aclog.analysis.engine.host_classes import is_address
from aclog.analysis.lint.finding import PLAIN_HOST, NamePlaces, RuleTable, texts_among, texts_matching
from aclog.analysis.regions import REQUESTED
from aclog.authorizer.acl import address_number, cidr_range
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL
from aclog.authorizer.index.layout import expanded, mask_table
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import define, frozen

# The hosts of a table as a tree: `*` above ranges, ranges above narrower ones and addresses.


_MAPPED = (0xFFFF << 32, (0x10000 << 32) - 1)
"""IPv6 addresses of clients that Kafka shows as IPv4: no client has one."""


class _Range(NamedTuple):
    version: int
    first: int
    last: int


@frozen(eq=False, kw_only=True)
class HostTree:
    """Hosts by number, those of the table first. Two texts of one range are one host."""

    of_text: Int64s
    """By host of the table: its number in the tree; -1 for a text that matches no client."""
    parents: Int64s
    """By number: the narrowest host that contains it; -1 for `*`."""
    anywhere: int
    """The number of `*`."""
    parts: dict[int, tuple[int, ...]]
    """Ranges whose addresses are all in narrower hosts, and those hosts; each of them has an address of its own."""
    inner: Bools
    """By number: whether it contains another host."""

    @classmethod
    def of(cls, table: RuleTable) -> "HostTree":
        """Return the tree of the hosts of a table; ranges match if the settings enable them."""
        count = len(table.hosts)
        of_text = np.arange(count, dtype=np.int64)
        parents = np.full(count + 1, count, np.int64)
        parents[count] = -1
        ranges: dict[_Range, int] = {}
        for number in np.flatnonzero(~texts_matching(table.hosts, PLAIN_HOST)).tolist():
            text = table.hosts[number]
            block = cidr_range(text) if table.settings.cidr else None
            if block is not None and (block.version, block.last) != (4, 0):
                key = _Range(block.version, block.first, block.last)
                of_text[number] = ranges.setdefault(key, number)
            elif not is_address(text):
                of_text[number] = -1
        for number in np.flatnonzero(texts_among(table.hosts, (WILDCARD,))).tolist():
            of_text[number] = count
        parts: dict[int, tuple[int, ...]] = {}
        if ranges:
            _nest(table, of_text, parents, ranges)
            parts = _parts(ranges, parents, _addresses(table, of_text, ranges))
        inner = np.zeros(count + 1, np.bool_)
        inner[parents[of_text[of_text >= 0]]] = True
        inner[count] = True
        return cls(of_text=of_text, parents=parents, anywhere=count, parts=parts, inner=inner)

    def chain(self, hosts: Int64s) -> Iterator[Int64s]:
        """Yield the hosts, then their parents, up to `*`; -1 after that."""
        while (hosts >= 0).any():
            yield hosts
            hosts = np.where(hosts >= 0, self.parents[hosts], -1)

    def around(self, outer: Int64s, inner: Int64s) -> Bools:
        """Return where the first host contains, or equals, the second."""
        matches = np.zeros(len(outer), np.bool_)
        for hosts in self.chain(inner):
            matches |= hosts == outer
        return matches


def _addresses(table: RuleTable, of_text: Int64s, ranges: dict[_Range, int]) -> dict[int, _Range]:
    """Return the addresses by number; the range of each has one member."""
    of_ranges = set(ranges.values())
    addresses = {}
    for number in np.flatnonzero(of_text == np.arange(len(of_text))).tolist():
        text = table.hosts[number]
        if number not in of_ranges and text != WILDCARD:
            address = address_number(text)
            if address is not None:
                addresses[number] = _Range(address.version, address.number, address.number)
    return addresses


def _nest(table: RuleTable, of_text: Int64s, parents: Int64s, ranges: dict[_Range, int]) -> None:
    """Set the parent of each range and address to the narrowest range that contains it."""
    entries = [(span.version, span.first, -span.last, 0, number) for span, number in ranges.items()]
    for number, span in _addresses(table, of_text, ranges).items():
        if span != (4, 0, 0):  # no range contains it
            entries.append((span.version, span.first, -span.last, 1, number))
    stack: list[tuple[int, int, int]] = []
    for version, first, negative, is_address_, number in sorted(entries):
        while stack and (stack[-1][0] != version or stack[-1][1] < first):
            stack.pop()
        if stack:
            parents[number] = stack[-1][2]
        if not is_address_:
            stack.append((version, -negative, number))


def _parts(ranges: dict[_Range, int], parents: Int64s, addresses: dict[int, _Range]) -> dict[int, tuple[int, ...]]:
    children: dict[int, list[tuple[int, _Range]]] = {}
    for number, span in (*((n, s) for s, n in ranges.items()), *addresses.items()):
        children.setdefault(int(parents[number]), []).append((number, span))
    parts: dict[int, tuple[int, ...]] = {}
    narrowest_first = sorted(ranges.items(), key=lambda item: item[0].last - item[0].first)
    for span, number in narrowest_first:
        inside = children.get(number, [])
        if _members(span) == sum(_members(each) for n, each in inside if _counts(n, each, addresses)):
            parts[number] = tuple(_flat(inside, parts))
    return parts


def _counts(number: int, span: _Range, addresses: dict[int, _Range]) -> bool:
    """Return whether a host matches all addresses of its span: a rule on an IPv6 address matches no other scope."""
    return span.version == 4 or number not in addresses


def _flat(inside: Sequence[tuple[int, _Range]], parts: dict[int, tuple[int, ...]]) -> Iterator[int]:
    for number, _ in inside:
        yield from parts.get(number, (number,))


def _members(span: _Range) -> int:
    """Return the number of addresses in a span that clients can have."""
    size = span.last - span.first + 1
    if span.version == 4:
        return size - (span.first == 0)
    return size - max(0, min(span.last, _MAPPED[1]) - max(span.first, _MAPPED[0]) + 1)


# States of requests as numbers: the operations that rules allow and deny, and those that more than one rule does.
#
# Four planes of 16 bits, by the codes of AclOperation: allowed by a rule, denied by a rule, allowed by two or more,
# denied by two or more. So one number shows whether a rule is needed: an operation that is denied, and not by two
# rules, depends on the one rule that denies it.


States: TypeAlias = NDArray[np.uint64]

_LANE = np.uint64(0xFFFF)
_ONCE = np.uint64(0xFFFFFFFF)
_TO_TWICE = np.uint64(32)
DENIED_TO_ALL = np.uint64(0xFFFF_0000_FFFF_0000)
"""Every operation denied, independently of any single rule."""


def combined(one: States, other: States) -> States:
    """Return the state of the rules of both states."""
    return one | other | (one & other & _ONCE) << _TO_TWICE


def allowed(states: States) -> States:
    """Return the operations that some rule allows."""
    return states & _LANE


def denied(states: States) -> States:
    """Return the operations that some rule denies."""
    return states >> np.uint64(16) & _LANE


def allowed_twice(states: States) -> States:
    """Return the operations that several rules allow."""
    return states >> np.uint64(32) & _LANE


def denied_twice(states: States) -> States:
    """Return the operations that several rules deny."""
    return states >> np.uint64(48)


# The cells of a table: all rules of one principal and host on one resource pattern, if any request matches them.


_REQUEST_BITS = np.uint64(REQUESTED << 16 | REQUESTED)
_MASKS = mask_table().astype(np.uint64) & _REQUEST_BITS


@frozen(eq=False, kw_only=True)
class Points:
    """Representatives of all requests with the same decision: a place of names, a principal, a host."""

    places: Int64s
    principals: Int64s
    hosts: Int64s

    def __len__(self) -> int:
        return len(self.places)

    def select(self, which: Bools | Int64s | slice) -> "Points":
        """Return the selected points."""
        return Points(places=self.places[which], principals=self.principals[which], hosts=self.hosts[which])


@frozen(eq=False, kw_only=True)
class Cells:
    """Cells by number, without rules that no request matches, and those of super users and of colonless principals."""

    table: RuleTable
    hosts: HostTree
    names: NamePlaces
    everyone: int
    """The number of `User:*` among principals."""
    is_super: Bools
    """By principal."""
    colonless: Bools
    """By principal: Kafka's authorizer throws when it reaches a rule of one."""
    throwing: Int64s
    """Resources with a rule of a colonless principal: every request on them is denied."""
    of_row: Int64s
    """By row of the table; -1 for a row without a cell."""
    row_states: States
    """By row of the table: the operations of requests that it allows and denies."""
    states: States
    resources: Int64s
    principals: Int64s
    host_numbers: Int64s

    @classmethod
    def of(cls, table: RuleTable) -> "Cells":
        """Return the cells of a table."""
        hosts, names = HostTree.of(table), table.derived(NamePlaces.of)
        everyone = next(
            iter(np.flatnonzero(texts_among(table.principals, (WILDCARD_PRINCIPAL,))).tolist()), len(table.principals)
        )
        is_super = np.append(texts_among(table.principals, table.settings.super_users), False)
        is_super[everyone] = False  # as a super user it is an ordinary name
        colonless = np.append(~texts_matching(table.principals, ":"), False)
        has_place = np.zeros(len(table.names), np.bool_)
        has_place[names.resource_of] = True
        principals, where = table.principal_of, hosts.of_text[table.host_of]
        placed = has_place[table.resource_of]
        live = placed & (where >= 0) & ~is_super[principals] & ~colonless[principals]
        rows = np.flatnonzero(live)
        begins = np.append(True, (np.diff(table.resource_of[rows]) != 0) | (np.diff(table.pair_of[rows]) != 0))[
            : len(rows)
        ]
        of_row = np.full(len(table), -1, np.int64)
        of_row[rows] = np.cumsum(begins) - 1
        row_states = _MASKS[
            np.frombuffer(table.base.permissions, np.uint8), np.frombuffer(table.base.operations, np.uint8)
        ]
        first = rows[begins]
        return cls(
            table=table,
            hosts=hosts,
            names=names,
            everyone=everyone,
            is_super=is_super,
            colonless=colonless,
            throwing=np.unique(table.resource_of[placed & colonless[principals]]).astype(np.int64),
            of_row=of_row,
            row_states=row_states,
            states=_summed(row_states[rows], np.flatnonzero(begins)),
            resources=table.resource_of[first].astype(np.int64),
            principals=principals[first].astype(np.int64),
            host_numbers=where[first],
        )

    def __len__(self) -> int:
        return len(self.states)

    def points(self) -> tuple[Int64s, Points]:
        """Return the points that represent the cells, with the cell of each, ascending.

        A pattern that covers all points of a cell covers the cell; where two cells overlap there is a point with the
        place, the principal and the host of one of them each.
        """
        names = self.names
        low = np.searchsorted(names.top_resource_of, self.resources)
        high = np.searchsorted(names.top_resource_of, self.resources, side="right")
        cells, at = expanded(low, high)
        places, hosts = names.tops[at], self.host_numbers[cells]
        if self.hosts.parts:
            cells, places, hosts = self._in_parts(cells, places, hosts)
        return cells, Points(places=places, principals=self.principals[cells], hosts=hosts)

    def _in_parts(self, cells: Int64s, places: Int64s, hosts: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return the points with each range replaced by the narrower hosts that make it up."""
        counts = np.ones(len(self.hosts.parents), np.int64)
        for number, parts in self.hosts.parts.items():
            counts[number] = len(parts)
        parts_of = {number: np.array(parts, np.int64) for number, parts in self.hosts.parts.items()}
        times = counts[hosts]
        pieces = [parts_of.get(host, np.array([host], np.int64)) for host in hosts.tolist()]
        return np.repeat(cells, times), np.repeat(places, times), np.concatenate([*pieces, np.zeros(0, np.int64)])


def _summed(states: States, starts: Int64s) -> States:
    """Return the state of each run of rows."""
    counts = np.diff(np.append(starts, len(states)))
    sums = states[starts] if len(starts) else states
    step = 1
    while (remaining := np.flatnonzero(counts > step)).size:
        sums[remaining] = combined(sums[remaining], states[starts[remaining] + step])
        step += 1
    return sums


# Intervals that are nested or disjoint.


def nested(opens: Int64s, closes: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the nested intervals with the narrowest one around each: those at depth one, at depth two, and so on.

    Intervals are numbered by their start, ascending; of two with one start the wider one is first.
    """
    depths = np.arange(len(opens)) - np.searchsorted(np.sort(closes), opens, side="right")
    by_depth = np.argsort(depths, kind="stable")
    bounds = np.searchsorted(depths[by_depth], np.arange(depths.max(initial=0) + 2)).tolist()
    for depth in range(1, len(bounds) - 1):
        above, here = by_depth[bounds[depth - 1] : bounds[depth]], by_depth[bounds[depth] : bounds[depth + 1]]
        yield here, above[np.searchsorted(above, here) - 1]


# The state of one subject at a place: of its rules on all patterns that cover the place.


_PLACE_BITS = 31


@frozen(eq=False, kw_only=True)
class Chains:
    """States by subject and place: each applies from its place up to the next one of the subject."""

    keys: Int64s
    """subject << 31 | place, ascending."""
    states: States

    @classmethod
    def of(cls, subjects: Int64s, starts: Int64s, ends: Int64s, states: States) -> "Chains":
        """Combine intervals [start, end): those of one subject are nested or disjoint."""
        order = np.lexsort((-ends, starts, subjects))
        subjects, starts, ends, states = subjects[order], starts[order], ends[order], states[order]
        opens, closes = subjects << _PLACE_BITS | starts, subjects << _PLACE_BITS | ends
        sums, outside = states.copy(), np.zeros(len(order), np.uint64)
        for here, around in nested(opens, closes):
            outside[here] = sums[around]
            sums[here] = combined(sums[around], states[here])
        # Of several intervals that begin or end at a place the last one counts: the outermost end, the innermost begin.
        keys = np.concatenate((closes[::-1], opens))
        sequence = np.argsort(keys, kind="stable")
        keys = keys[sequence]
        last = np.append(keys[1:] != keys[:-1], True) if len(keys) else np.zeros(0, np.bool_)
        return cls(keys=keys[last], states=np.concatenate((outside[::-1], sums))[sequence[last]])

    def subjects(self) -> Int64s:
        """Return the subject of each key."""
        return self.keys >> _PLACE_BITS

    def places(self) -> Int64s:
        """Return the place of each key."""
        return self.keys & (1 << _PLACE_BITS) - 1

    def at(self, subjects: Int64s, places: Int64s) -> States:
        """Return the state of each subject at each place; 0 for subject -1."""
        states = np.zeros(len(subjects), np.uint64)
        rows = np.flatnonzero(subjects >= 0)
        if not len(self.keys) or not len(rows):
            return states
        keys = subjects[rows] << _PLACE_BITS | places[rows]
        at = np.searchsorted(self.keys, keys, side="right") - 1
        hits = (at >= 0) & (self.keys[at] >> _PLACE_BITS == subjects[rows])
        states[rows[hits]] = self.states[at[hits]]
        return states


# Decides points: the state of all rules that match.


@frozen(eq=False, kw_only=True)
class Intervals:
    """The intervals of places that cells cover."""

    cells: Int64s
    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, cells: Cells, resources: Int64s) -> "Intervals":
        """Return the intervals of patterns: `cells` are positions in `resources`."""
        names = cells.names
        order = np.argsort(names.resource_of, kind="stable")
        sorted_resources = names.resource_of[order]
        low = np.searchsorted(sorted_resources, resources)
        numbers, at = expanded(low, np.searchsorted(sorted_resources, resources, side="right"))
        return cls(cells=numbers, starts=names.starts[order[at]], ends=names.ends[order[at]])


@frozen(eq=False, kw_only=True)
class Decider:
    """Subjects, each a principal and a host with cells, and the state of each at each place."""

    cells: Cells
    intervals: Intervals
    """Of the cells."""
    subjects: Int64s
    """`_code` of each, ascending."""
    chains: Chains
    single: Bools
    """By subject: whether it is one principal, from any host."""

    @classmethod
    def of(cls, cells: Cells) -> "Decider":
        """Return the decider of all cells."""
        width = len(cells.hosts.parents)
        codes = cells.principals * width + cells.host_numbers
        anyone = cells.everyone * width + cells.hosts.anywhere
        subjects = np.unique(np.append(codes, anyone))
        subject_of = np.searchsorted(subjects, codes)
        own, throwing = Intervals.of(cells, cells.resources), Intervals.of(cells, cells.throwing)
        chains = Chains.of(
            np.concatenate((subject_of[own.cells], np.full(len(throwing.cells), np.searchsorted(subjects, anyone)))),
            np.concatenate((own.starts, throwing.starts)),
            np.concatenate((own.ends, throwing.ends)),
            np.concatenate((cells.states[own.cells], np.full(len(throwing.cells), DENIED_TO_ALL))),
        )
        single = (subjects % width == cells.hosts.anywhere) & (subjects != anyone)
        return cls(cells=cells, intervals=own, subjects=subjects, chains=chains, single=single)

    def states(self, points: Points) -> States:
        """Return the state of the rules that match each point."""
        states = np.zeros(len(points), np.uint64)
        everyone = np.full(len(points), self.cells.everyone, np.int64)
        other = points.principals != self.cells.everyone
        for hosts in self.cells.hosts.chain(points.hosts):
            states = combined(states, self.chains.at(self._subjects(everyone, hosts), points.places))
            own = np.where(other, self._subjects(points.principals, hosts), -1)
            states = combined(states, self.chains.at(own, points.places))
        return states

    def principals(self, subjects: Int64s) -> Int64s:
        """Return the principal of each subject."""
        return self.subjects[subjects] // len(self.cells.hosts.parents)

    def _subjects(self, principals: Int64s, hosts: Int64s) -> Int64s:
        """Return the number of each subject; -1 for one without cells, and for no host."""
        codes = principals * len(self.cells.hosts.parents) + hosts
        at = np.minimum(np.searchsorted(self.subjects, codes), len(self.subjects) - 1)
        return np.where((self.subjects[at] == codes) & (hosts >= 0), at, -1)


# Whether an interval of places contains one of a set.


@frozen(eq=False)
class Standing:
    """Places of groups, sorted by group and place."""

    _keys: Int64s

    @classmethod
    def of(cls, groups: Int64s, places: Int64s) -> "Standing":
        """Return the index of places, each of a group."""
        return cls(np.sort(groups << _PLACE_BITS | places))

    def any(self, groups: Int64s, starts: Int64s, ends: Int64s) -> Bools:
        """Return whether a group has a place in each [start, end)."""
        low = np.searchsorted(self._keys, groups << _PLACE_BITS | starts)
        overlaps: Bools = np.searchsorted(self._keys, groups << _PLACE_BITS | ends) > low
        return overlaps


# Which DENY rules are needed: those that deny, alone, a request that some rule allows.
#
# Where a DENY and an ALLOW overlap, the request has the longer of both names, and the narrower of both principals and
# hosts. If the DENY is the wider one in all three, that is a point of the ALLOW's cell; if in none, one of its own.
# The mixed cases of rules for any host are settled here, exactly and all at once; those of other hosts further below.


BITS = tuple(bit for bit in range(16) if REQUESTED >> bit & 1)


@frozen(eq=False, kw_only=True)
class Spans:
    """The intervals of DENY rules that deny one operation; a rule on LITERAL `*` has several."""

    denies: Int64s
    starts: Int64s
    ends: Int64s
    principals: Int64s
    hosts: Int64s

    def select(self, which: Bools) -> "Spans":
        """Return the selected spans."""
        return Spans(
            denies=self.denies[which],
            starts=self.starts[which],
            ends=self.ends[which],
            principals=self.principals[which],
            hosts=self.hosts[which],
        )


@define(eq=False, kw_only=True)
class DenySearch:
    """A search for the needed ones of some DENY rules."""

    decider: Decider
    points: Points
    point_cells: Int64s
    """By point: the cell that it represents, ascending."""
    states: States
    """By point."""
    cells: Int64s
    """By DENY rule: its cell."""
    operations: States
    """By DENY rule: the operations that it denies."""
    needed: Bools
    """By DENY rule: whether the search has shown that it is needed."""

    def settle(self) -> None:
        """Mark the needed ones, except those that overlap only ALLOWs for other hosts than `*` or their own."""
        critical = allowed(self.states) & self._once()
        for bit in BITS:
            self._by_points(self.unsettled(bit), self.points.select(has(critical, bit)))
            self._for_everyone(bit)
            self._below_everyone(self.unsettled(bit), bit)

    def unsettled(self, bit: int) -> Spans:
        """Return the intervals of the rules that deny an operation and are not yet marked as needed."""
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
        """Settle the rules that cover a point at which only one rule denies what is allowed: it is that rule."""
        cells = self.decider.cells
        if not len(spans.denies) or not len(points):
            return
        width = len(cells.hosts.parents)
        anywhere, for_all = spans.hosts == cells.hosts.anywhere, spans.principals == cells.everyone
        # The search below settles hosts inside of a range.
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
                matching = which & (groups[at] == of_span)
                some, standing = spans.select(matching), Standing.of(group_of.astype(np.int64), points.places)
                self.needed[some.denies[standing.any(at[matching], some.starts, some.ends)]] = True

    def _for_everyone(self, bit: int) -> None:
        """Settle DENYs for everyone where wider names allow a principal more."""
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
        covered = holders[np.searchsorted(places[order], self.points.places, side="right")] > 0
        own = (self.points.principals == cells.everyone) & (self.points.hosts == cells.hosts.anywhere)
        decisive = np.zeros(len(cells), np.bool_)
        decisive[self.point_cells[own & covered & has(self._once(), bit)]] = True
        self.needed |= which & decisive[self.cells]

    def _below_everyone(self, spans: Spans, bit: int) -> None:
        """Settle DENYs for one principal where longer names allow everyone something."""
        cells, chains = self.decider.cells, self.decider.chains
        spans = spans.select((spans.hosts == cells.hosts.anywhere) & (spans.principals != cells.everyone))
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
    present: Bools = (states >> np.uint64(bit) & np.uint64(1)).astype(np.bool_)
    return present


# Which DENY rules are needed against ALLOWs for other hosts: those that DenySearch.settle does not mark.


MOST_POINTS = 20_000_000
"""Points that the search examines before it gives up: seconds."""
_FIRST, _MORE = 64, 16
"""The size of the first chunk of candidates, and the growth of the following ones."""
_OVERHEAD = 5_000
"""The fixed cost of examining a chunk of points, in points."""
_LEVELS = 4
"""Levels of wider names that are examined for many rules at once."""


def settle_mixed(search: DenySearch, most: int) -> Bools:
    """Mark the needed ones among the remaining rules; return the undecided ones, on which the search gave up."""
    possible = np.zeros(len(search.needed), np.bool_)
    for bit in BITS:
        spans = search.unsettled(bit)
        for specific in True, False:
            some = spans.select((spans.hosts == search.decider.cells.hosts.anywhere) == specific)
            if len(some.denies):
                _Allows.of(search, bit, specific=specific).mark(search, some, possible)
    remaining = np.flatnonzero(possible & ~search.needed)
    given_up = np.zeros(len(search.needed), np.bool_)
    if len(remaining):
        given_up[_Candidates.of(search).settle(remaining, most)] = True
    return given_up


@frozen(eq=False, kw_only=True)
class _Allows:
    """The cells that allow one operation: their places, and the places that they cover."""

    which: Bools
    """By cell."""
    below: Standing
    below_all: Standing

    @classmethod
    def of(cls, search: DenySearch, bit: int, *, specific: bool) -> "_Allows":
        """Return all such cells; with `specific` only those that are not for any host."""
        cells = search.decider.cells
        which = has(allowed(cells.states), bit)
        if specific:
            which &= cells.host_numbers != cells.hosts.anywhere
        points = search.points.select(which[search.point_cells])
        return cls(
            which=which,
            below=Standing.of(points.principals, points.places),
            below_all=Standing.of(points.places * 0, points.places),
        )

    def mark(self, search: DenySearch, spans: Spans, possible: Bools) -> None:
        """Mark the DENY rules that may overlap one of these cells."""
        if not self.which.any():
            return
        everyone = search.decider.cells.everyone
        for_all = spans.principals == everyone
        meets = np.where(
            for_all,
            self.below_all.any(spans.starts * 0, spans.starts, spans.ends),
            self.below.any(spans.principals, spans.starts, spans.ends)
            | self.below.any(np.full(len(spans.starts), everyone), spans.starts, spans.ends),
        )
        possible[spans.denies[meets]] = True
        denies = spans.denies[~possible[spans.denies]]
        if len(denies):
            possible[denies[self._above(search, denies)]] = True

    def _above(self, search: DenySearch, denies: Int64s) -> Bools:
        """Return which DENY rules have one of them on a wider name."""
        cells, intervals = search.decider.cells, search.decider.intervals
        allowing = self.which[intervals.cells]
        numbers, starts, ends = intervals.cells[allowing], intervals.starts[allowing], intervals.ends[allowing]
        ones = np.ones(len(numbers), np.uint64)
        by_principal = Chains.of(cells.principals[numbers], starts, ends, ones)
        of_all = Chains.of(numbers * 0, starts, ends, ones)
        points, above = search.points, np.zeros(len(cells), np.bool_)
        everyone = np.full(len(points), cells.everyone)
        for_all = points.principals == cells.everyone
        any_of_all = of_all.at(points.places * 0, points.places) > 0
        any_of_two = by_principal.at(points.principals, points.places) | by_principal.at(everyone, points.places)
        above[search.point_cells[np.where(for_all, any_of_all, any_of_two > 0)]] = True
        return above[search.cells[denies]]


@define(eq=False, kw_only=True)
class _Candidates:
    """Points of cells that allow something, to be examined for one DENY rule at a time."""

    _search: DenySearch
    _allowing: Points
    """Of cells that allow something."""
    _resources: Int64s
    """By allowing point: the pattern of its cell, ascending."""
    _by_place: Points
    _by_principal: Points
    """The allowing points sorted by place; by principal and place."""
    _principal_keys: Int64s
    _around: Int64s
    """By interval of a pattern: the one around it; -1 for none."""
    _looked_at: int = field(default=0, init=False)

    @classmethod
    def of(cls, search: DenySearch) -> "_Candidates":
        """Return the candidates of a search."""
        cells, names = search.decider.cells, search.decider.cells.names
        allowing = (allowed(cells.states) > 0)[search.point_cells]
        points = search.points.select(allowing)
        by_place = points.select(np.argsort(points.places, kind="stable"))
        by_principal = by_place.select(np.argsort(by_place.principals, kind="stable"))
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
        """Search a point for each rule that shows that it is needed; return the rules whose search was not finished."""
        needed = self._search.needed
        for each, points in self._samples(denies):
            open_ = np.flatnonzero(~needed[each])
            needed[each[open_][self._shows(each[open_], points.select(open_))]] = True
        remaining = denies[~needed[denies]]
        for at, deny in enumerate(remaining.tolist()):
            if self._looked_at > most:
                return remaining[at:]
            needed[deny] = self._is_needed(deny)
        return remaining[:0]

    def _is_needed(self, deny: int) -> bool:
        cells = self._search.decider.cells
        cell = int(self._search.cells[deny])
        principal = int(cells.principals[cell])
        candidates = chain(self._below(cell, principal), self._above(cell, principal))
        return any(self._shows(np.full(len(some), deny), some).any() for some in _in_chunks(candidates))

    def _shows(self, denies: Int64s, points: Points) -> Bools:
        """Return which DENYs alone deny something where they overlap the ALLOWs of these points, one each."""
        search, cells = self._search, self._search.decider.cells
        self._looked_at += len(points) + _OVERHEAD
        of_deny = search.cells[denies]
        principals, hosts = cells.principals[of_deny], cells.host_numbers[of_deny]
        decisive = np.zeros(len(points), np.bool_)
        for part in self._parts(hosts):
            inside, outside = cells.hosts.around(part, points.hosts), cells.hosts.around(points.hosts, part)
            met = np.flatnonzero(inside | outside)
            at = Points(
                places=points.places,
                principals=np.where(principals == cells.everyone, points.principals, principals),
                hosts=np.where(inside, points.hosts, part),
            ).select(met)
            states = search.decider.states(at)
            alone = allowed(states) & denied(states) & ~denied_twice(states) & search.operations[denies[met]]
            decisive[met] |= alone != 0
        return decisive

    def _parts(self, hosts: Int64s) -> Iterator[Int64s]:
        """Yield the hosts, or the narrower hosts that make up a range, one of each at a time."""
        parts = self._search.decider.cells.hosts.parts
        if not parts:
            yield hosts
            return
        of_each = [parts.get(host, (host,)) for host in hosts.tolist()]
        for at in range(max(map(len, of_each), default=0)):
            yield np.array([each[min(at, len(each) - 1)] for each in of_each], np.int64)

    def _samples(self, denies: Int64s) -> Iterator[tuple[Int64s, Points]]:
        """Yield a few candidates for many rules at once: usually the first one shows that a rule is needed."""
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
                yield denies[some], points.select(at[some])

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
                    yield denies[some], evolve(points.select(at), places=tops[some])
            interval = np.where(interval >= 0, self._around[interval], -1)

    def _below(self, cell: int, principal: int) -> Iterator[Points]:
        intervals, cells = self._search.decider.intervals, self._search.decider.cells
        low, high = np.searchsorted(intervals.cells, [cell, cell + 1])
        for at in range(low, high):
            bounds = np.array([intervals.starts[at], intervals.ends[at]])
            if principal == cells.everyone:
                yield self._by_place.select(slice(*np.searchsorted(self._by_place.places, bounds)))
                continue
            for one in principal, cells.everyone:
                yield self._by_principal.select(slice(*np.searchsorted(self._principal_keys, one << 31 | bounds)))

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
        """Return the points of the cells on a pattern that match a principal, moved to a place of longer names."""
        cells = self._search.decider.cells
        bounds = np.searchsorted(self._resources, [resource, resource + 1])
        points = self._allowing.select(slice(*bounds))
        if principal != cells.everyone:
            points = points.select(np.isin(points.principals, (principal, cells.everyone)))
        return evolve(points, places=np.full(len(points), top))


def _in_chunks(candidates: Iterable[Points]) -> Iterator[Points]:
    """Yield the candidates in growing chunks: usually the first one suffices."""
    for points in candidates:
        at, size = 0, _FIRST
        while at < len(points):
            yield points.select(slice(at, at + size))
            at, size = at + size, size * _MORE


# Rules that close names which would be open without them (allow.everyone.if.no.acl.found).


def closing(cells: Cells) -> Bools:
    """Return the rows without which some names have no rule at all."""
    table, names = cells.table, cells.names
    alone = np.bincount(table.resource_of, minlength=len(table.names)) == 1
    opens = np.zeros(len(table.names), np.bool_)
    opens[names.top_resource_of[_covering(cells) == 1]] = True
    closes: Bools = (alone & opens)[table.resource_of]
    return closes


def open_anyway(cells: Cells, decider: Decider, rows: Bools) -> Bools:
    """Return the redundant ones of some closing rows: ALLOWs of everything to everyone that no longer name needs."""
    table, names = cells.table, cells.names
    to_all: Bools = rows & (allowed(cells.row_states) == REQUESTED) & (table.principal_of == cells.everyone)
    to_all &= cells.hosts.of_text[table.host_of] == cells.hosts.anywhere
    candidates = np.flatnonzero(to_all)
    if not len(candidates):
        return to_all
    # Names with other rules are closed without this one: principals without a rule of their own must not need it there.
    places = names.tops[_covering(cells) > 1]
    states = decider.states(
        Points(
            places=places,
            principals=np.full(len(places), cells.everyone),
            hosts=np.full(len(places), cells.hosts.anywhere),
        )
    )
    needing = places[np.uint64(REQUESTED) & ~allowed_twice(states) & ~denied(states) != 0]
    standing = Standing.of(needing * 0, needing)
    below = Intervals.of(cells, table.resource_of[candidates].astype(np.int64))
    needed = standing.any(below.starts * 0, below.starts, below.ends)
    to_all[candidates[below.cells[needed]]] = False
    return to_all


def _covering(cells: Cells) -> Int64s:
    """Return the number of patterns that cover each top of the patterns."""
    names = cells.names
    opened = np.searchsorted(np.sort(names.starts), names.tops, side="right")
    counts: Int64s = opened - np.searchsorted(np.sort(names.ends), names.tops, side="right")
    return counts


# The verdict on each rule of a table.


class Verdict(IntEnum):
    """Whether the policy without a rule decides some request differently; if not, why."""

    NEEDED = 0
    COVERED = 1
    """An ALLOW: other rules, or super.users, allow everything that it allows and no rule denies."""
    OVERRIDDEN = 2
    """An ALLOW: rules deny everything that it allows, or no request has it."""
    DEAD = 3
    """A DENY: nothing that it denies would be allowed without it."""
    SET_ASIDE = 4
    """It matches no client by its own text, or makes Kafka's authorizer throw: findings of other lints."""
    UNDECIDED = 5
    """A DENY whose verdict would take too long."""


def verdicts(table: RuleTable, *, most_points: int = MOST_POINTS) -> NDArray[np.uint8]:
    """Return the verdict on each row alone: of two redundant rules each may be redundant because of the other.

    `most_points` bounds the search for what DENY rules deny to other hosts.
    """
    cells = Cells.of(table)
    decider = Decider.of(cells)
    by_row = _without_cell(cells)
    if len(cells):
        point_cells, points = cells.points()
        states = decider.states(points)
        starts = np.searchsorted(point_cells, np.arange(len(cells)))
        _judge_allows(
            by_row,
            cells,
            np.bitwise_or.reduceat(~allowed_twice(states) & ~denied(states), starts),
            np.bitwise_and.reduceat(denied(states), starts),
        )
        critical = allowed(states) & denied(states) & ~denied_twice(states)
        rows = np.flatnonzero((cells.of_row >= 0) & ~table.allows)
        of_row = cells.of_row[rows]
        operations = denied(cells.row_states[rows])
        needed = operations & np.bitwise_or.reduceat(critical, starts)[of_row] != 0
        # What other rules deny at all points of a cell, they deny everywhere in it.
        dead = operations & ~np.bitwise_and.reduceat(denied_twice(states), starts)[of_row] == 0
        search = DenySearch(
            decider=decider,
            points=points,
            point_cells=point_cells,
            states=states,
            cells=of_row[~dead],
            operations=operations[~dead],
            needed=needed[~dead],
        )
        search.settle()
        given_up = settle_mixed(search, most_points)
        by_row[rows] = Verdict.DEAD
        live = rows[~dead]
        by_row[live[given_up]] = Verdict.UNDECIDED
        by_row[live[search.needed]] = Verdict.NEEDED
    if table.settings.allow_everyone:
        closes = closing(cells) & (by_row != Verdict.SET_ASIDE)
        by_row[closes] = np.where(open_anyway(cells, decider, closes)[closes], Verdict.COVERED, Verdict.NEEDED)
    return by_row


def _without_cell(cells: Cells) -> NDArray[np.uint8]:
    """Return the verdicts on rows without a cell, and NEEDED for all others."""
    table, allows = cells.table, cells.table.allows
    by_row = np.full(len(table), Verdict.NEEDED, np.uint8)
    left_out = cells.of_row < 0
    placed = np.zeros(len(table.names), np.bool_)
    placed[cells.names.resource_of] = True
    unplaced = left_out & ~placed[table.resource_of]
    by_row[left_out] = np.where(allows[left_out], Verdict.COVERED, Verdict.DEAD)
    nothing = (allowed(cells.row_states) == 0) & allows
    by_row[left_out & (nothing | unplaced) & allows] = Verdict.OVERRIDDEN
    by_row[(cells.hosts.of_text < 0)[table.host_of] & allows] = Verdict.SET_ASIDE
    by_row[cells.colonless[table.principal_of]] = Verdict.SET_ASIDE
    return by_row


def _judge_allows(by_row: NDArray[np.uint8], cells: Cells, uncovered: Int64s, denied_all: Int64s) -> None:
    """Judge the ALLOW rules of cells: by the operations without another rule, and by those denied everywhere."""
    rows = np.flatnonzero((cells.of_row >= 0) & cells.table.allows)
    of_row, operations = cells.of_row[rows], allowed(cells.row_states[rows])
    overridden = operations & ~denied_all[of_row] == 0
    by_row[rows] = np.where(overridden, Verdict.OVERRIDDEN, Verdict.COVERED)
    by_row[rows[operations & uncovered[of_row] != 0]] = Verdict.NEEDED
