"""Columns that only filters and byResourceType need: made when first asked for, and kept with the base."""

from bisect import bisect_left

import numpy as np
import pyarrow.compute as pc
from attrs import frozen

from authorizer.index.arrays import Int32s
from authorizer.index.base import Base
from authorizer.index.keys import compact
from metalog.vectors import Bytes, Int64s


@frozen(eq=False, kw_only=True)
class RowColumns:
    """What each row is about, and the rows of each pair."""

    resource_of: Int32s
    pair_of: Int32s
    operations: Bytes
    permissions: Bytes
    types: Bytes
    """By row: the resource type, 0..7."""
    by_pair: Int32s
    """Rows ordered by pair, then by resource."""
    pair_starts: Int64s
    pair_order: Int32s
    """Pairs ordered by key: those of one principal lie together."""

    def of_pair(self, pair: int) -> Int32s:
        """The rows of a pair; none of -1."""
        return self.by_pair[self.pair_starts[pair] : self.pair_starts[pair + 1]] if pair >= 0 else self.by_pair[:0]


def row_columns(base: Base) -> RowColumns:
    """The columns of a base."""
    known = base.memo.columns
    if not isinstance(known, RowColumns):
        known = base.memo.columns = _make(base)
    return known


def row_keys(base: Base) -> tuple[Int32s, Int32s]:
    """The resource and the pair of each row."""
    cell_resources = np.repeat(np.arange(len(base.resources), dtype=np.int32), np.diff(np.asarray(base.cell_starts)))
    cell_pairs = np.asarray(base.cell_pairs)
    if isinstance(base.cell_rows, range):
        return cell_resources, cell_pairs
    counts = np.diff(np.asarray(base.cell_rows))
    return np.repeat(cell_resources, counts), np.repeat(cell_pairs, counts)


def _make(base: Base) -> RowColumns:
    resource_of, pair_of = row_keys(base)
    starts = np.zeros(len(base.pairs) + 1, np.int64)
    np.cumsum(np.bincount(pair_of, minlength=len(base.pairs)), out=starts[1:])
    key_data = np.frombuffer(base.resources.data, np.uint8)
    return RowColumns(
        resource_of=resource_of,
        pair_of=pair_of,
        operations=np.frombuffer(base.operations, np.uint8),
        permissions=np.frombuffer(base.permissions, np.uint8),
        types=key_data[np.asarray(base.resources.offsets)[:-1]][resource_of],
        by_pair=np.argsort(pair_of, kind="stable").astype(np.int32),
        pair_starts=starts,
        pair_order=np.asarray(pc.array_sort_indices(base.pairs.array())).astype(np.int32),
    )


def pairs_of(base: Base, principal: str) -> list[int]:
    """The pairs of a principal, with any host."""
    wanted = compact(principal)
    order, key = row_columns(base).pair_order, base.pairs.key
    at = bisect_left(order, wanted, key=key)
    found = []
    while at < len(order) and key(order[at]).startswith(wanted):
        found.append(int(order[at]))
        at += 1
    return found
