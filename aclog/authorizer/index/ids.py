"""Rows by the uuid of their ACL: rows sorted by uuid, in buckets by the leading bits."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.index.arrays import Int32s, starts_of
from aclog.authorizer.index.keys import bucket_count


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
        """Return the row of the uuid with this integer value; -1 if there is none."""
        bucket = number >> self._shift
        low, high = self._starts[bucket], self._starts[bucket + 1]
        if low == high:  # most ids that are added are new
            return -1
        ids, order = self.ids, self._order
        wanted = number.to_bytes(16)
        # Buckets hold one row on average. Only uuids that are not random, such as numbered ones, crowd into a bucket.
        if high - low > 4:
            low = bisect_left(order, number, low, high, key=self.number)
            high = min(high, low + 1)
        for at in range(low, high):
            row = order[at]
            if ids[16 * row : 16 * row + 16] == wanted:
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
    # Random uuids hardly ever share their high halves; only if two do are the low halves sorted as well.
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((halves[:, 1], high))
        ordered, low = high[order], halves[:, 1][order]
        repeated = bool(((ordered[1:] == ordered[:-1]) & (low[1:] == low[:-1])).any())
    bits = bucket_count(n).bit_length() - 1
    bucket_of = (ordered >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(n, np.int64)
    return order.astype(np.int32), starts_of(bucket_of, 1 << bits), repeated
