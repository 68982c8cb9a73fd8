"""The resource patterns that cover many names at a time.

The names of a log with many distinct accesses are as many as its rules. Few names are looked up one by one, as a
decision does; many in columns: their keys in the table of resources together, and their prefixes by one sort of the
names among all prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from aclog.authorizer.codes import WILDCARD, PatternType
from aclog.authorizer.index import layout
from aclog.authorizer.index.base import Base
from aclog.metalog.columns import Bools, Bytes, Int64s, unsigned_varints
from aclog.metalog.native import np
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY: Final = 256
"""From this many names on, they are looked up in columns."""
_FEW: Final = 4
"""With fewer than one name per this many prefixes of the base, names are looked up one by one."""


@frozen(eq=False, kw_only=True, repr=False)
class NameResources:
    """The patterns that cover each requested name: for name n, `resources[starts[n]:starts[n + 1]]`."""

    starts: Int64s
    resources: layout.Int32s
    """Of each name: the LITERAL pattern, the prefixes from the longest on, and LITERAL `*`."""

    @classmethod
    def of(cls, base: Base, types: Sequence[int], names: Sequence[str], *, documented: bool) -> Self:
        """Look up each name once; a type is 0..7."""
        is_many = len(names) >= max(MANY, len(base.prefixes) // _FEW)
        find = in_columns if is_many else one_by_one
        starts, resources = find(base, types, names, documented=documented)
        return cls(starts=starts, resources=resources)

    def of_requests(self, name_of: layout.Int32s) -> tuple[Int64s, layout.Int32s]:
        """Return (request, resource) for every pattern that covers the name of each request."""
        request, at = layout.expanded(self.starts[name_of], self.starts[name_of.astype(np.int64) + 1])
        return request, self.resources[at]


def one_by_one(
    base: Base, types: Sequence[int], names: Sequence[str], *, documented: bool
) -> tuple[Int64s, layout.Int32s]:
    """Return `starts` and `resources` of NameResources."""
    counts = np.empty(len(names), np.int64)
    resources: list[int] = []
    for number, (kind, name) in enumerate(zip(types, names, strict=True)):
        before = len(resources)
        resources += _resources_on(base, kind, name, documented=documented)
        counts[number] = len(resources) - before
    return np.concatenate(([0], np.cumsum(counts))), np.array(resources, np.int32)


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


def in_columns(
    base: Base, types: Sequence[int], names: Sequence[str], *, documented: bool
) -> tuple[Int64s, layout.Int32s]:
    """Return the same as `one_by_one`."""
    texts = layout.ByteStrings.of([name.encode("utf-8", "surrogatepass") for name in names])
    kinds = np.array(types, np.int64)
    literal = _literals(base, kinds, texts)
    owners = [np.flatnonzero(literal >= 0)]
    resources = [literal[owners[0]].astype(np.int32)]
    prefix_resources, parents = np.asarray(base.prefixes.resources), np.asarray(base.prefixes.parents)
    node = _longest(base, kinds, texts)
    owner = np.flatnonzero(node >= 0)
    while len(owner):
        at = node[owner]
        owners.append(owner)
        resources.append(prefix_resources[at].astype(np.int32))
        node[owner] = parents[at]
        owner = owner[node[owner] >= 0]
    wildcards = np.array(base.wildcard_resources, np.int32)[kinds]
    covered = np.flatnonzero((wildcards >= 0) & _may_be_covered(names, documented=documented))
    owners.append(covered)
    resources.append(wildcards[covered])
    all_owners = np.concatenate(owners)
    order = np.argsort(all_owners, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(all_owners, minlength=len(names)))))
    return starts, np.concatenate(resources)[order]


def _may_be_covered(names: Sequence[str], *, documented: bool) -> Bools:
    """Return whether LITERAL `*` covers each name, if there is one."""
    covered = (name != WILDCARD for name in names) if documented else (not name.startswith(WILDCARD) for name in names)
    return np.fromiter(covered, np.bool_, len(names))


# LITERAL patterns: all names are looked up in the table of resources together.


class _Keys(NamedTuple):
    """Keys of resources in columns: their type, and the slice of their name."""

    data: Bytes
    kind: Bytes
    is_literal: Bools
    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, base: Base, numbers: Int64s) -> Self:
        """Return the keys with these numbers."""
        data, offsets = np.frombuffer(base.resources.data, np.uint8), np.asarray(base.resources.offsets)
        if not len(numbers):
            return cls(data, data[:0], np.zeros(0, np.bool_), numbers, numbers)
        begins, ends = offsets[numbers].astype(np.int64), offsets[numbers + 1].astype(np.int64) - 1
        _, starts, _ = unsigned_varints(data, begins + 1)
        return cls(data, data[begins], data[ends] == PatternType.LITERAL, starts, ends)


def _literals(base: Base, kinds: Int64s, texts: layout.ByteStrings) -> Int64s:
    """Return the LITERAL resource on each name; -1 without one."""
    table = base.resources
    literal = np.full(len(texts), -1, np.int64)
    salts = ((2 * kinds + 1) * layout.SALT).astype(np.uint64)
    checksums = layout.crc32s(texts.data, texts.starts, texts.ends).astype(np.uint64)
    hashes = (checksums + salts) * np.uint64(layout.FIBONACCI) & np.uint64(0xFFFFFFFF)
    bucket = (hashes >> np.uint64(table.shift)).astype(np.int64)
    buckets = np.asarray(table.buckets).astype(np.int64)
    low, high = buckets[bucket], buckets[bucket + 1]
    # Names that were picked to collide are found by bisection, as a decision finds them.
    crowded = high - low > layout.CROWDED
    for row in np.flatnonzero(crowded).tolist():
        name = texts.data[texts.offsets[row] : texts.offsets[row + 1]].tobytes().decode("utf-8", "surrogatepass")
        literal[row] = base.resource(int(kinds[row]), name, literal=True)
    rows, number = layout.expanded(low, np.where(crowded, low, high))
    keys = _Keys.of(base, number)
    starts, sizes = texts.starts[rows], texts.ends[rows] - texts.starts[rows]
    same = (keys.kind == kinds[rows]) & keys.is_literal & (keys.ends - keys.starts == sizes)
    rows, number = rows[same], number[same]
    pair = _Words.of(texts.data), _Words.of(keys.data)
    equal = _shared(pair, starts[same], keys.starts[same], sizes[same]) == sizes[same]
    literal[rows[equal]] = number[equal]
    return literal


# Prefixes: sorted among all names, the last prefix before a name, or one that it begins with, is its longest.


def _longest(base: Base, kinds: Int64s, texts: layout.ByteStrings) -> Int64s:
    """Return the node of the longest prefix of each name; -1 if it has none."""
    nodes = np.full(len(texts), -1, np.int64)
    for kind in np.unique(kinds).tolist():
        first, last = base.prefixes.type_nodes[kind], base.prefixes.type_nodes[kind + 1]
        rows = np.flatnonzero(kinds == kind)
        if first < last:
            nodes[rows] = _longest_of_type(base, (first, last), texts.take(rows))
    return nodes


def _longest_of_type(base: Base, bounds: tuple[int, int], texts: layout.ByteStrings) -> Int64s:
    first, last = bounds
    keys = _Keys.of(base, np.asarray(base.prefixes.resources)[first:last].astype(np.int64))
    prefixes = layout.ByteStrings.cut(keys.data, keys.starts, keys.ends)
    both = prefixes.joined(texts)
    order = layout.sorted_rows(both.data, both.starts, both.ends)  # a prefix comes before the name that it equals
    is_prefix = order < len(prefixes)
    node = np.empty(len(order), np.int64)
    node[order] = np.cumsum(is_prefix) - 1
    node = node[len(prefixes) :]
    lengths = np.diff(prefixes.offsets)
    rows = np.flatnonzero(node >= 0)
    shared = np.zeros(len(texts), np.int64)
    words = _Words.of(both.data)
    at = node[rows]
    sizes = np.minimum(lengths[at], np.diff(texts.offsets)[rows])
    shared[rows] = _shared((words, words), both.starts[len(prefixes) + rows], prefixes.starts[at], sizes)
    parents, jumps = (
        np.maximum(np.asarray(column)[first:last].astype(np.int64) - first, -1)
        for column in (base.prefixes.parents, base.prefixes.jumps)
    )
    rows = rows[lengths[node[rows]] > shared[rows]]
    while len(rows):
        # As in Prefixes.longest: if the jump's target is no prefix, nothing between it and this node is.
        at = node[rows]
        jump = jumps[at]
        far = (jump >= 0) & (lengths[jump] > shared[rows])
        node[rows] = np.where(far, jump, parents[at])
        at = node[rows]
        rows = rows[(at >= 0) & (lengths[at] > shared[rows])]
    return np.where(node >= 0, node + first, -1)


_WORD: Final = 8


class _Words(NamedTuple):
    """Bytes as words of eight from any position on."""

    words: NDArray[np.uint64]

    @classmethod
    def of(cls, data: Bytes) -> Self:
        """Return the words of some bytes."""
        padded = np.concatenate((data, np.zeros(_WORD, np.uint8)))
        # Every position is the start of a word: an unaligned view of the same bytes.
        return cls(np.ndarray(len(data) + 1, np.dtype("<u8"), padded, strides=(1,)))


def _shared(pair: tuple[_Words, _Words], some: Int64s, others: Int64s, sizes: Int64s) -> Int64s:
    """Return the number of equal bytes at the beginning of slices of these sizes."""
    (one,), (other,) = pair
    shared = np.zeros(len(sizes), np.int64)
    rows = np.flatnonzero(sizes > 0)
    while len(rows):
        done = shared[rows]
        size = np.minimum(sizes[rows] - done, _WORD)
        differing = (one[some[rows] + done] ^ other[others[rows] + done]) & layout.low_bytes()[size]
        # The lowest bit that differs is in the first byte that does; its number is exact as a power of two.
        lowest = differing & (~differing + np.uint64(1))
        equal = np.where(differing == 0, size, np.log2(np.maximum(lowest, 1)).astype(np.int64) >> 3)
        shared[rows] = done + equal
        rows = rows[(equal == _WORD) & (sizes[rows] > done + _WORD)]
    return shared
