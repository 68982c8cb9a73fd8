"""Every ACL that matches, for many requests at a time: two columns (request, row of the base).

Which ACL determines each decision follows from the matches and aclog.authorizer.index.scan_rank; so does what a
decision depends on: which ACLs could be removed without changing it.
"""

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL
from aclog.authorizer.index.arrays import Int32s, expanded
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.masks import ALLOWED, DENIED, Masks, mask_table
from aclog.authorizer.index.ranges import RangePairs, SubjectPairs
from aclog.authorizer.index.tables import PairedTable, Tables, numbers_of, tables_of
from aclog.metalog.vectors import Bools, Int64s

_CHUNK = 1 << 17
"""Requests processed at a time; bounds the memory for intermediate columns."""

_FEW_REQUESTS = 4
"""With fewer than one request per this many pairs of the base, pairs are looked up one by one."""

_EVERYBODY = WILDCARD_PRINCIPAL, WILDCARD

_MASKS = mask_table().ravel()


@frozen(eq=False, kw_only=True)
class RequestCodes:
    """Requests without operations, dictionary-encoded: the distinct values, and per request an index into them."""

    principals: Sequence[str]
    principal_of: Int32s
    hosts: Sequence[str]
    host_of: Int32s
    types: Sequence[int]
    """0..7; `types` and `names` together are the distinct resources."""
    names: Sequence[str]
    name_of: Int32s
    """Index into `types` and `names`."""


@frozen(eq=False, kw_only=True)
class Matches:
    """Pairs of a request (its index) and a row of the base that matches it, sorted by request."""

    request: Int64s
    row: Int64s


@frozen(eq=False, kw_only=True)
class NameResources:
    """The patterns that cover each requested name: for name n, `resources[starts[n]:starts[n + 1]]`."""

    starts: Int64s
    resources: Int32s

    @classmethod
    def of(cls, base: Base, types: list[int], names: list[str], *, documented: bool) -> Self:
        """Look up each name once; a type is 0..7."""
        counts = np.empty(len(names), np.int64)
        found: list[int] = []
        for number, (kind, name) in enumerate(zip(types, names, strict=True)):
            before = len(found)
            found += _resources_on(base, kind, name, documented=documented)
            counts[number] = len(found) - before
        return cls(starts=np.concatenate(([0], np.cumsum(counts))), resources=np.array(found, np.int32))

    def of_requests(self, name_of: Int32s) -> tuple[Int64s, Int32s]:
        """Return (request, resource) for every pattern that covers the name of each request."""
        request, at = expanded(self.starts[name_of], self.starts[name_of.astype(np.int64) + 1])
        return request, self.resources[at]


def _resources_on(base: Base, kind: int, name: str, *, documented: bool) -> Iterator[int]:
    # The same rules as AclIndex.levels, without an overlay.
    literal = base.resource(kind, name, literal=True)
    if literal >= 0:
        yield literal
    prefixes = base.prefixes
    for node in prefixes.chain(kind, name.encode("utf-8", "surrogatepass")):
        yield prefixes.resources[node]
    wildcard = base.wildcard_resources[kind]
    if wildcard >= 0 and name != WILDCARD and (documented or name[:1] != WILDCARD):
        yield wildcard


@frozen(eq=False, kw_only=True)
class Matcher:
    """Finds matches in a base. Built once for many calls; takes about 30 bytes per ACL on top of the base."""

    base: Base
    documented: bool
    masks: Masks
    """By row: the ACL's mask (aclog.authorizer.index.masks)."""
    _tables: Tables
    _cells: PairedTable
    """(resource, pair) -> cell + 1."""
    _cell_rows: Int64s
    _ranges: RangePairs | None
    """None unless the host of an ACL may be a CIDR range."""

    @classmethod
    def of(cls, base: Base, *, documented: bool = False, cidr: bool = False) -> Self:
        """Build the tables; `documented` and `cidr` as in AclsImage."""
        resources = np.repeat(np.arange(len(base.resources)), np.diff(np.asarray(base.cell_starts)))
        cell_pairs = np.asarray(base.cell_pairs).astype(np.int64)
        numbers = np.arange(1, len(cell_pairs) + 1, dtype=np.uint32)
        codes = np.frombuffer(base.permissions, np.uint8).astype(np.int64) << 8
        return cls(
            base=base,
            documented=documented,
            masks=_MASKS[codes | np.frombuffer(base.operations, np.uint8)],
            tables=tables_of(base),
            cells=PairedTable.of(resources, cell_pairs, numbers),
            cell_rows=np.asarray(base.cell_rows).astype(np.int64),
            ranges=RangePairs.of(base) if cidr else None,
        )

    def resources_on(self, requests: RequestCodes) -> NameResources:
        """Return the patterns that cover the requested names."""
        return NameResources.of(self.base, list(requests.types), list(requests.names), documented=self.documented)

    def matches(self, requests: RequestCodes, operations: NDArray[np.uint8], resources: NameResources) -> Matches:
        """Return what matches each request. No principal may be `User:*` and no host `*`."""
        pairs = self._pairs(requests)
        ranges: list[SubjectPairs] = []
        if self._ranges is not None:
            ranges = self._ranges.subject_pairs(
                requests.principals, requests.principal_of, requests.hosts, requests.host_of
            )
        found = [
            self._chunk(
                operations=operations[rows],
                covering=resources.of_requests(requests.name_of[rows]),
                pairs=[pair[rows] for pair in pairs],
                ranges=[each.of_rows(rows) for each in ranges],
                start=rows.start,
            )
            for rows in (slice(start, start + _CHUNK) for start in range(0, max(len(operations), 1), _CHUNK))
        ]
        return Matches(
            request=np.concatenate([matches.request for matches in found]),
            row=np.concatenate([matches.row for matches in found]),
        )

    def _pairs(self, requests: RequestCodes) -> list[Int32s]:
        """Return the four pairs that match each request (own and wildcard principal and host); -1 for absent ones."""
        if len(requests.name_of) * _FEW_REQUESTS < len(self.base.pairs):
            return self._pairs_one_by_one(requests)
        tables = self._tables
        principals = numbers_of(requests.principals, tables.principals)
        hosts = numbers_of(requests.hosts, tables.hosts)
        (anybody,) = numbers_of([WILDCARD_PRINCIPAL], tables.principals).tolist()
        (anywhere,) = numbers_of([WILDCARD], tables.hosts).tolist()
        who, where = principals[requests.principal_of], hosts[requests.host_of]
        every_who, every_where = np.full_like(who, anybody), np.full_like(where, anywhere)
        subjects = ((who, where), (who, every_where), (every_who, where), (every_who, every_where))
        return [tables.pair(*subject) for subject in subjects]

    def _pairs_one_by_one(self, requests: RequestCodes) -> list[Int32s]:
        """Return the same for few requests: `numbers_of` would hash every principal that has ACLs, at each call."""
        find, known = self.base.pair, dict[tuple[str, str], int]()
        found = []
        for who, where in zip(requests.principal_of.tolist(), requests.host_of.tolist(), strict=True):
            principal, host = requests.principals[who], requests.hosts[where]
            for pair in (principal, host), (principal, WILDCARD), (WILDCARD_PRINCIPAL, host), _EVERYBODY:
                number = known.get(pair)
                if number is None:
                    number = known[pair] = find(*pair)
                found.append(number)
        return list(np.array(found, np.int32).reshape(-1, 4).T)

    def _chunk(
        self,
        *,
        operations: NDArray[np.uint8],
        covering: tuple[Int64s, Int32s],
        pairs: list[Int32s],
        ranges: Sequence[SubjectPairs],
        start: int,
    ) -> Matches:
        """Return the matches of the requests from `start` on; all columns are cut to these requests."""
        request, resource = covering
        owners, cells = [], []
        # Pairs differ, so a cell is hit through one of them only and no match is found twice.
        for pair in pairs:
            cell = self._cells.get(resource, pair[request]).astype(np.int64) - 1
            hit = np.flatnonzero(cell >= 0)
            owners.append(request[hit])
            cells.append(cell[hit])
        for each in ranges:
            at, pair = each.of_requests(request)
            cell = self._cells.get(resource[at], pair).astype(np.int64) - 1
            hit = np.flatnonzero(cell >= 0)
            owners.append(request[at][hit])
            cells.append(cell[hit])
        owner, cell = np.concatenate(owners), np.concatenate(cells)
        at, row = expanded(self._cell_rows[cell], self._cell_rows[cell + 1])
        request = owner[at]
        bits = self.masks[row] >> operations[request] & np.uint32(ALLOWED | DENIED)
        kept: Bools = bits != 0
        request, row = request[kept], row[kept]
        order = np.argsort(request, kind="stable")
        return Matches(request=request[order] + start, row=row[order])
