"""Columns by row that only filters and byResourceType need; built on first use and kept with the base."""

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.byte_strings import sorted_rows
from aclog.authorizer.index.masks import Masks
from aclog.metalog.vectors import Bytes, Int64s


@frozen(eq=False, kw_only=True)
class RowColumns:
    """The fields of each row, and the rows of each pair."""

    resource_of: Int32s
    pair_of: Int32s
    operations: Bytes
    permissions: Bytes
    types: Bytes
    """By row: the resource type, 0..7."""
    masks: Masks
    """By row: the mask of its cell."""
    by_pair: Int32s
    """Rows sorted by pair, resource type, operation and permission."""
    keys: NDArray[np.uint64]
    """By position in `by_pair`: these four as one number, for bisection."""
    pair_starts: Int64s
    pair_order: Int32s
    """Pairs sorted by key, so that the pairs of one principal are adjacent."""

    def of_pair(self, pair: int) -> Int32s:
        """Return the rows of a pair; none for -1."""
        return self.by_pair[self.pair_starts[pair] : self.pair_starts[pair + 1]] if pair >= 0 else self.by_pair[:0]

    def of(self, pair: int, resource_type: int, operation: int, permission: int) -> Int32s:
        """Return the rows of a pair with this resource type, operation and permission."""
        # The same layout as `keys`: pair, then one byte each for type, operation and permission.
        key = pair << 24 | resource_type << 16 | operation << 8 | permission
        low, high = np.searchsorted(self.keys, np.array([key, key + 1], np.uint64)).tolist()
        return self.by_pair[low:high]


def row_columns(base: Base) -> RowColumns:
    """Return the columns of a base."""
    known = base.memo.columns
    if not isinstance(known, RowColumns):
        known = base.memo.columns = _make(base)
    return known


def row_keys(base: Base) -> tuple[Int32s, Int32s]:
    """Return the resource and the pair of each row."""
    cell_resources = np.repeat(np.arange(len(base.resources), dtype=np.int32), np.diff(np.asarray(base.cell_starts)))
    return cell_resources[_cell_of(base)], np.asarray(base.cell_pairs)[_cell_of(base)]


def _cell_of(base: Base) -> Int64s | slice:
    """Return the cell of each row."""
    if isinstance(base.cell_rows, range):
        return slice(None)
    return np.repeat(np.arange(len(base.cell_pairs)), np.diff(np.asarray(base.cell_rows)))


def _make(base: Base) -> RowColumns:
    resource_of, pair_of = row_keys(base)
    starts = np.zeros(len(base.pairs) + 1, np.int64)
    np.cumsum(np.bincount(pair_of, minlength=len(base.pairs)), out=starts[1:])
    key_data = np.frombuffer(base.resources.data, np.uint8)
    types = key_data[np.asarray(base.resources.offsets)[:-1]][resource_of]
    operations, permissions = np.frombuffer(base.operations, np.uint8), np.frombuffer(base.permissions, np.uint8)
    keys = pair_of.astype(np.uint64)
    for column in (types, operations, permissions):
        keys = keys << np.uint64(8) | column
    by_pair = np.argsort(keys)
    pair_offsets = np.asarray(base.pairs.offsets).astype(np.int64)
    return RowColumns(
        resource_of=resource_of,
        pair_of=pair_of,
        operations=operations,
        permissions=permissions,
        masks=np.asarray(base.cell_masks)[_cell_of(base)],
        types=types,
        by_pair=by_pair.astype(np.int32),
        keys=keys[by_pair],
        pair_starts=starts,
        pair_order=sorted_rows(np.frombuffer(base.pairs.data, np.uint8), pair_offsets[:-1], pair_offsets[1:]),
    )


def pairs_of(base: Base, principal: str) -> list[int]:
    """Return the pairs of a principal with any host."""
    return base.pairs_of(principal, row_columns(base).pair_order.data)
