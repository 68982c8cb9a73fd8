"""Every rule that matches, for many requests at once: (request, rule) in two columns.

What decides and what is named follows from these (authorizer.index.scan_rank has the order), and so does what a
decision
hangs on: which rules could be taken away without changing it.
"""

from collections.abc import Iterator
from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.batch import Askings
from aclog.authorizer.index.keys import pair_key
from aclog.authorizer.index.masks import ALLOWED, DENIED, Masks, mask_table
from aclog.authorizer.index.tables import PairedTable, Tables, numbers_of, tables_of
from aclog.metalog.vectors import Bools, Int64s

_CHUNK = 1 << 17
"""Requests looked at together: it bounds what is held beside them."""

_MANY = 4
"""Pairs are looked up all together where there are more requests than one for so many pairs of rules."""

_EVERYBODY = WILDCARD_PRINCIPAL, WILDCARD

_MASKS = mask_table().ravel()


@frozen(eq=False, kw_only=True)
class Matches:
    """Pairs of a request (its index) and a row of the base that matches it, in the order of the requests."""

    request: Int64s
    row: Int64s


@frozen(eq=False, kw_only=True)
class Places:
    """Which resources are on each name asked about: for name n, `resources[starts[n]:starts[n + 1]]`."""

    starts: Int64s
    resources: Int32s

    @classmethod
    def of(cls, base: Base, types: list[int], names: list[str], *, star_always: bool) -> Self:
        """Looked up once a name; a type is 0..7."""
        counts = np.empty(len(names), np.int64)
        found: list[int] = []
        for place, (kind, name) in enumerate(zip(types, names, strict=True)):
            before = len(found)
            found += _resources_on(base, kind, name, star_always=star_always)
            counts[place] = len(found) - before
        return cls(starts=np.concatenate(([0], np.cumsum(counts))), resources=np.array(found, np.int32))

    def of_requests(self, place_of: Int32s) -> tuple[Int64s, Int32s]:
        """(Request, resource) for every resource on the name of each request."""
        request, at = expanded(self.starts[place_of], self.starts[place_of.astype(np.int64) + 1])
        return request, self.resources[at]


def _resources_on(base: Base, kind: int, name: str, *, star_always: bool) -> Iterator[int]:
    literal = base.resource(kind, name, literal=True)
    if literal >= 0:
        yield literal
    prefixes = base.prefixes[kind]
    for node in prefixes.chain(name):
        yield prefixes.resources[node]
    star = base.stars[kind]
    if star >= 0 and name != WILDCARD and (star_always or name[:1] != WILDCARD):
        yield star


def expanded(starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """For each i, and each position in [starts[i], ends[i]): (i, position)."""
    counts = ends - starts
    owner = np.repeat(np.arange(len(starts)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - first[owner] + starts[owner]


@frozen(eq=False, kw_only=True)
class Matcher:
    """Finds matches in a base. It is made once for many calls: about 30 bytes a rule beside the base."""

    base: Base
    star_always: bool
    masks: Masks
    """By row: what the rule says (aclog.authorizer.index.masks)."""
    _tables: Tables
    _cells: PairedTable
    _cell_rows: Int64s

    @classmethod
    def of(cls, base: Base, *, star_always: bool = False) -> Self:
        """For a base; `star_always` for documented semantics."""
        resources = np.repeat(np.arange(len(base.resources)), np.diff(np.asarray(base.cell_starts)))
        cell_pairs = np.asarray(base.cell_pairs).astype(np.int64)
        numbers = np.arange(1, len(cell_pairs) + 1, dtype=np.uint32)
        codes = np.frombuffer(base.permissions, np.uint8).astype(np.int64) << 8
        return cls(
            base=base,
            star_always=star_always,
            masks=_MASKS[codes | np.frombuffer(base.operations, np.uint8)],
            tables=tables_of(base),
            cells=PairedTable.of(resources, cell_pairs, numbers),
            cell_rows=np.asarray(base.cell_rows).astype(np.int64),
        )

    def places(self, asked: Askings) -> Places:
        """The resources on the names asked about."""
        return Places.of(self.base, list(asked.types), list(asked.names), star_always=self.star_always)

    def matches(self, asked: Askings, operations: NDArray[np.uint8], places: Places) -> Matches:
        """What matches each request. No principal is `User:*`, and no host `*`: that is nobody who asks."""
        pairs = self._pairs(asked)
        found = [
            self._chunk(asked, operations, places, pairs, start) for start in range(0, max(len(operations), 1), _CHUNK)
        ]
        return Matches(
            request=np.concatenate([matches.request for matches in found]),
            row=np.concatenate([matches.row for matches in found]),
        )

    def _pairs(self, asked: Askings) -> list[Int32s]:
        """The pairs of rules that are for each request: everybody from anywhere, and so on; -1 where there is none."""
        if len(asked.place_of) * _MANY < len(self.base.pairs):
            return self._pairs_one_by_one(asked)
        tables = self._tables
        principals, hosts = numbers_of(asked.principals, tables.principals), numbers_of(asked.hosts, tables.hosts)
        (anybody,) = numbers_of([WILDCARD_PRINCIPAL], tables.principals).tolist()
        (anywhere,) = numbers_of([WILDCARD], tables.hosts).tolist()
        who, where = principals[asked.principal_of], hosts[asked.host_of]
        every_who, every_where = np.full_like(who, anybody), np.full_like(where, anywhere)
        askers = ((who, where), (who, every_where), (every_who, where), (every_who, every_where))
        return [tables.pair(*asker) for asker in askers]

    def _pairs_one_by_one(self, asked: Askings) -> list[Int32s]:
        """The same for few requests: through the tables every principal that has rules would be hashed."""
        find, known = self.base.pairs.find, dict[tuple[str, str], int]()
        found = []
        for who, where in zip(asked.principal_of.tolist(), asked.host_of.tolist(), strict=True):
            principal, host = asked.principals[who], asked.hosts[where]
            for pair in (principal, host), (principal, WILDCARD), (WILDCARD_PRINCIPAL, host), _EVERYBODY:
                number = known.get(pair)
                if number is None:
                    number = known[pair] = find(pair_key(*pair))
                found.append(number)
        return list(np.array(found, np.int32).reshape(-1, 4).T)

    def _chunk(
        self, asked: Askings, operations: NDArray[np.uint8], places: Places, pairs: list[Int32s], start: int
    ) -> Matches:
        rows = slice(start, start + _CHUNK)
        request, resource = places.of_requests(asked.place_of[rows])
        owners, cells = [], []
        for pair in pairs:
            cell = self._cells.get(resource, pair[rows][request]).astype(np.int64) - 1
            hit = np.flatnonzero(cell >= 0)
            owners.append(request[hit])
            cells.append(cell[hit])
        owner, cell = np.concatenate(owners), np.concatenate(cells)
        at, row = expanded(self._cell_rows[cell], self._cell_rows[cell + 1])
        request = owner[at] + start
        says = self.masks[row] >> operations[request] & np.uint32(ALLOWED | DENIED)
        kept: Bools = says != 0
        request, row = request[kept], row[kept]
        order = np.argsort(request, kind="stable")
        return Matches(request=request[order], row=row[order])
