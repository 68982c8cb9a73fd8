"""The rows that a query's filters select, decided from batch headers and offsets before records are decoded."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from attrs import evolve, frozen

from aclog.metalog.batch_scan import BatchColumns
from aclog.metalog.vectors import Bools, Int64s

MAX_OFFSET = (1 << 63) - 1
_MAX_MICROS = (1 << 63) - 1
_MIN_MICROS = -(1 << 63)
_MAX_MILLIS = _MAX_MICROS // 1000

_T = TypeVar("_T")

NO_TIME = -1
"""The timestamp (ms) of a batch without one."""


@frozen(kw_only=True)
class RowSelection:
    """Rows that meet all of these conditions: bounds are inclusive, None is no condition, times are us since 1970.

    As in SQL, a batch without a timestamp meets no condition on it.
    """

    first_offset: int = 0
    last_offset: int = MAX_OFFSET
    offsets: frozenset[int] | None = None
    first_time: int = _MIN_MICROS
    last_time: int = _MAX_MICROS
    times: frozenset[int] | None = None
    timed: bool = False
    """Whether rows must have a timestamp."""
    types: frozenset[str] | None = None

    def with_offsets(
        self, first: int = 0, last: int = MAX_OFFSET, among: Iterable[int] | None = None
    ) -> "RowSelection":
        """Narrow the selection to offsets from `first` to `last`, and to those in `among`."""
        return evolve(
            self,
            first_offset=max(self.first_offset, first),
            last_offset=min(self.last_offset, last),
            offsets=_both(self.offsets, among),
        )

    def with_times(
        self, first: int = _MIN_MICROS, last: int = _MAX_MICROS, among: Iterable[int] | None = None
    ) -> "RowSelection":
        """Narrow the selection to timestamps from `first` to `last`, and to those in `among`."""
        return evolve(
            self,
            first_time=max(self.first_time, first),
            last_time=min(self.last_time, last),
            times=_both(self.times, among),
            timed=True,
        )

    def with_types(self, types: Iterable[str]) -> "RowSelection":
        """Narrow the selection to records of these types."""
        return evolve(self, types=_both(self.types, types))

    def between(self, offset: int, end: int) -> bool:
        """Return whether an offset from `offset` to before `end` may be selected."""
        if max(offset, self.first_offset) > min(end - 1, self.last_offset):
            return False
        return self.offsets is None or any(offset <= each < end for each in self.offsets)

    def batches(self, batches: BatchColumns) -> Bools:
        """Return which batches may hold a selected row."""
        first, end = batches.base_offset, batches.base_offset + batches.record_count
        kept: Bools = (first <= self.last_offset) & (end > self.first_offset)
        if self.offsets is not None:
            among = _sorted(self.offsets)
            kept &= np.searchsorted(among, first) < np.searchsorted(among, end)
        if self.timed:
            micros, known = micros_of(batches.max_timestamp)
            kept &= known & (micros >= self.first_time) & (micros <= self.last_time)
            if self.times is not None:
                kept &= np.isin(micros, _sorted(self.times))
        return kept

    def rows(self, offsets: Int64s) -> Bools:
        """Return which of these offsets are selected."""
        kept: Bools = (offsets >= self.first_offset) & (offsets <= self.last_offset)
        if self.offsets is not None:
            kept &= np.isin(offsets, _sorted(self.offsets))
        return kept

    def untimed(self, offset: int, record_type: str) -> bool:
        """Return whether a row with this offset and type and without a timestamp is selected."""
        return (
            not self.timed
            and self.first_offset <= offset <= self.last_offset
            and (self.offsets is None or offset in self.offsets)
            and (self.types is None or record_type in self.types)
        )


def micros_of(millis: Int64s) -> tuple[Int64s, Bools]:
    """Return (microseconds, which rows have a time); -1 and what a Spark timestamp cannot hold count as no time."""
    known: Bools = (millis != NO_TIME) & (millis <= _MAX_MILLIS) & (millis >= -_MAX_MILLIS)
    return np.where(known, millis, 0) * 1000, known


def _both(kept: frozenset[_T] | None, among: Iterable[_T] | None) -> frozenset[_T] | None:
    if among is None:
        return kept
    return frozenset(among) if kept is None else kept & frozenset(among)


def _sorted(numbers: frozenset[int]) -> Int64s:
    return np.array(sorted(each for each in numbers if _MIN_MICROS <= each <= _MAX_MICROS), np.int64)
