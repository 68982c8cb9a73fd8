"""Columns beside the rows of a base: prefixed names, ranges of hosts, and ids."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Self, TypeAlias

import numpy as np
from attrs import Factory, define, frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import WILDCARD, AddressNumber, cidr_range
from aclog.authorizer.index.layout import (
    ByteStrings,
    Int32s,
    KeyTable,
    Pause,
    bucket_count,
    name_bytes,
    no_pause,
    starts_of,
)
from aclog.metalog.vectors import Bools, Bytes, Int64s, unsigned_varints

# The first UTF-16 code unit of resource names, which decides where Kafka's scan jumps (kafka_scan_order).


UnitCounts: TypeAlias = Mapping[tuple[int, int], int]
"""By resource type and first code unit of the name: how many ACLs there are. Those on `*` and on the empty name are
left out."""

_SUPPLEMENTARY, _HIGH_SURROGATES = 0x10000, 0xD800
_UNITS = 1 << 16


def first_unit(name: str) -> int:
    """Return the first UTF-16 code unit; 0 for the empty name."""
    code = ord(name[0]) if name else 0
    return code if code < _SUPPLEMENTARY else _HIGH_SURROGATES + (code - _SUPPLEMENTARY >> 10)


def count_units(kinds: Bytes, data: Bytes, starts: Int64s, ends: Int64s, acls: Int64s) -> dict[tuple[int, int], int]:
    """Return the UnitCounts of resources, given their types, their names as ranges of UTF-8, and their numbers of ACLs.

    A few vector operations, so that no decision has to pass over all resources.
    """
    named: Bools = (ends > starts) & ~((ends - starts == 1) & (data.take(starts, mode="clip") == ord(WILDCARD)))
    key = kinds[named].astype(np.int64) * _UNITS + _units(data, starts[named])
    totals = np.bincount(key, weights=acls[named])
    return {divmod(each, _UNITS): int(totals[each]) for each in np.flatnonzero(totals).tolist()}


def _units(data: Bytes, starts: Int64s) -> Int64s:
    """Return the first code unit of each name, none of which is empty."""
    units = data[starts].astype(np.int64)
    wide = np.flatnonzero(units >= 0x80)
    if len(wide):
        lead = units[wide]
        second, third = (data.take(starts[wide] + step, mode="clip").astype(np.int64) & 0x3F for step in (1, 2))
        supplementary = (lead & 0x07) << 8 | second << 2 | third >> 4  # the code point without its last ten bits
        units[wide] = np.select(
            [lead < 0xE0, lead < 0xF0],
            [(lead & 0x1F) << 6 | second, (lead & 0x0F) << 12 | second << 6 | third],
            _HIGH_SURROGATES + supplementary - (_SUPPLEMENTARY >> 10),
        )
    return units


# Where the names that begin with a prefix stand among sorted ones.


def prefix_range(
    rows: Any, prefix: str, name_of: Callable[[Any], str] = str, *, low: int = 0, high: int | None = None
) -> tuple[int, int]:
    """Return the first place, and the one after the last, of the rows whose names begin with a prefix.

    `rows` is a sequence that is sorted by `name_of`; only those from `low` to `high` are looked at.
    """
    size = len(prefix)

    def head(row: Any) -> str:
        """Return as much of a name as is compared: no text comes after all that begin so."""
        return name_of(row)[:size]

    first = bisect_left(rows, prefix, low, high, key=head)
    return first, bisect_right(rows, prefix, first, high, key=head)


# The PREFIXED names of a base, and the chain of those that are prefixes of a given name.
#
# The names of a type are sorted, and also a forest: the parent of a name is the longest other name that it begins
# with. The prefixes of a given name are ancestors of the last name that sorts at or before it. Walking up parent by
# parent could take a thousand steps in a ladder of nested prefixes, so each node has a jump link to a far ancestor,
# too (skew-binary jump pointers, Myers 1983): the longest prefix is found with O(log n) comparisons on any set of
# names.
#
# Names are compared as UTF-8, whose order is that of code points.


_CHUNK = 2048

_LISTED_AFTER = 64
"""A list of all names is made once there was one search per this many names: by then it costs less than they did."""


@define(eq=False)
class Prefixes:
    """The prefixed names of all types by type and name. A node is an index into these columns, -1 means no node."""

    _keys: KeyTable
    resources: memoryview
    parents: memoryview
    jumps: memoryview
    type_nodes: memoryview
    """Where the nodes of each type begin, and at the end their number."""
    _searches: int = 0
    _names: list[bytes] | None = Factory(lambda: None)
    """All names, once searches have paid for them. Threads may race here: they make the same list."""

    def __len__(self) -> int:
        return len(self.resources)

    def name(self, node: int) -> bytes:
        """Return the name of a node in UTF-8."""
        return name_bytes(self._keys.key(self.resources[node]))

    def longest(self, resource_type: int, name: bytes) -> int:
        """Return the node of the longest name that `name`, in UTF-8, begins with or equals; -1 without one."""
        low, high = self.type_nodes[resource_type], self.type_nodes[resource_type + 1]
        if low == high:
            return -1
        names = self._names
        if names is None:
            names = self._listed()
        if names is None:
            node = bisect_right(range(high), name, low, high, key=self.name) - 1
        else:
            node = bisect_right(names, name, low, high) - 1
        if node < low:
            return -1
        text, parents, jumps = self.name if names is None else names.__getitem__, self.parents, self.jumps
        while node >= 0 and not name.startswith(text(node)):
            # If the jump target is no prefix, nothing between it and this node is: all of them begin with the target.
            jump = jumps[node]
            node = jump if jump >= 0 and not name.startswith(text(jump)) else parents[node]
        return node

    def chain(self, resource_type: int, name: bytes) -> Iterator[int]:
        """Yield the nodes of all prefixes of `name`, in UTF-8, longest first."""
        node = self.longest(resource_type, name)
        while node >= 0:
            yield node
            node = self.parents[node]

    def _listed(self) -> list[bytes] | None:
        self._searches += 1
        if self._searches * _LISTED_AFTER > len(self.resources):
            self._names = self._all_names()
        return self._names

    def _all_names(self) -> list[bytes]:
        data, offsets = np.frombuffer(self._keys.data, np.uint8), np.asarray(self._keys.offsets).astype(np.int64)
        nodes = np.asarray(self.resources)
        _, starts, _ = unsigned_varints(data, offsets[nodes] + 1)
        return ByteStrings.cut(data, starts, offsets[nodes + 1] - 1).values()


def links(names: Sequence[bytes], pause: Pause = no_pause) -> "tuple[array[int], array[int]]":
    """Return the parent and the jump link of each of these sorted names, all of one type."""
    parents, jumps = array("i", [-1]) * len(names), array("i", [-1]) * len(names)
    depths: dict[int, int] = {}
    for node in range(1, len(names)):
        if node % _CHUNK == 0:
            pause()
        # The predecessor in sorted order, or one of its ancestors, is the parent.
        name, parent = names[node], node - 1
        while parent >= 0 and not name.startswith(names[parent]):
            parent = parents[parent]
        if parent < 0:
            continue
        parents[node] = parent
        depths[node] = depths.get(parent, 0) + 1
        # Skew-binary rule: if the parent's last two jumps span equal depths, the new node jumps over both, else to its
        # parent. Jump lengths then grow exponentially towards the root.
        jump = jumps[parent]
        far = jumps[jump] if jump >= 0 else -1
        depth, middle, end = depths.get(parent, 0), depths.get(jump, 0), depths.get(far, 0)
        jumps[node] = far if far >= 0 and depth - middle == middle - end else parent
    return parents, jumps


# The CIDR ranges (KIP-1276) that are hosts of one principal's ACLs, and those that contain an address.


@define(eq=False)
class RangeHosts:
    """Ranges by size, and those of a size by their first address: an address is looked up once per size.

    Ranges may be added at any time, and none is ever removed: one that no ACL has any more matches no cell. Threads
    need no lock: they add the same ranges, and `_overlay` is set when all of its ranges are there.
    """

    _sizes: dict[tuple[int, int], dict[int, list[str]]] = Factory(dict)
    """By version and size - 1."""
    _hosts: set[str] = Factory(set)
    _overlay: tuple[str, ...] = ()
    """The hosts of an overlay that were added last."""

    def add(self, hosts: Iterable[str]) -> None:
        """Add the hosts that are ranges, as written in ACLs."""
        for host in hosts:
            if host not in self._hosts:
                cidr = cidr_range(host)
                if cidr is not None:
                    firsts = self._sizes.setdefault((cidr.version, cidr.last - cidr.first), {})
                    firsts.setdefault(cidr.first, []).append(host)
                self._hosts.add(host)

    def add_overlay(self, hosts: tuple[str, ...]) -> None:
        """Add the hosts of an overlay (Overlay.ranges), which usually has the same as the last time, or one more."""
        last = self._overlay
        if hosts is not last:
            self.add(islice(hosts, len(last), None) if hosts[: len(last)] == last else hosts)
            self._overlay = hosts

    def containing(self, address: AddressNumber) -> Iterator[str]:
        """Yield the hosts that contain an address."""
        version, number = address
        # No IPv4 range contains 0.0.0.0 (CidrRange.contains_number).
        if version == 6 or number:
            for (family, below), firsts in list(self._sizes.items()):  # a copy: another thread may add a size
                if family == version:
                    yield from firsts.get(number & ~below, ())


# Rows by the uuid of their ACL: rows sorted by uuid, in buckets by the leading bits.


@frozen(eq=False)
class IdIndex:
    """Rows sorted by id; 24 bytes per ACL."""

    ids: memoryview
    """16 big-endian bytes per row."""
    _order: memoryview
    _starts: memoryview
    _shift: int

    @classmethod
    def of(cls, ids: memoryview, order: memoryview, starts: memoryview) -> Self:
        """Return the index in these columns; the number of buckets is a power of two."""
        return cls(ids, order, starts, 128 - (len(starts) - 2).bit_length())

    def find(self, number: int) -> int:
        """Return the row of the uuid with this integer value; -1 if not found."""
        bucket = number >> self._shift
        low, high = self._starts[bucket], self._starts[bucket + 1]
        if low == high:  # most ids that are added are new
            return -1
        ids, order = self.ids, self._order
        key = number.to_bytes(16)
        # Buckets hold one row on average. Only uuids that are not random, such as numbered ones, crowd into a bucket.
        if high - low > 4:
            low = bisect_left(order, number, low, high, key=self.number)
            high = min(high, low + 1)
        for at in range(low, high):
            row = order[at]
            if ids[16 * row : 16 * row + 16] == key:
                return int(row)
        return -1

    def rows_from(self, number: int) -> Iterator[int]:
        """Yield the rows whose uuid has this integer value or a higher one, in ascending order of the uuids."""
        order = self._order
        at = bisect_left(order, number, key=self.number)
        while at < len(order):
            yield order[at]
            at += 1

    def number(self, row: int) -> int:
        """Return the integer value of a row's uuid."""
        return int.from_bytes(self.ids[16 * row : 16 * row + 16])


def id_order(ids: NDArray[np.uint8]) -> tuple[Int32s, Int32s, bool]:
    """Return the columns of the index of (n, 16) ids, order and starts, and whether an id occurs twice."""
    n = len(ids)
    halves = np.ascontiguousarray(ids).view(">u8").reshape(n, 2)
    high = halves[:, 0].astype(np.uint64)
    order = np.argsort(high)
    ordered = high[order]
    repeated = False
    # Random uuids almost never share their high halves; only if two do are the low halves sorted as well.
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((halves[:, 1], high))
        ordered, low = high[order], halves[:, 1][order]
        repeated = bool(((ordered[1:] == ordered[:-1]) & (low[1:] == low[:-1])).any())
    bits = bucket_count(n).bit_length() - 1
    bucket_of = (ordered >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(n, np.int64)
    return order.astype(np.int32), starts_of(bucket_of, 1 << bits), repeated
