"""Counts the lines of an access log by broker and hour."""

from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field

from aclog.metalog.vectors import Int64s
from aclog.usage.coverage import Coverage

_MOST_PARTS = 64


@define(eq=False)
class CoverageCounter:
    """Counts the lines of one task."""

    _parts: list[Coverage] = field(factory=list, init=False)

    def add(self, times: Int64s, brokers: Any) -> None:
        """Count lines: their times in us since 1970, and their brokers, an Arrow array of text, null for none."""
        if not len(times):
            return
        if isinstance(brokers, pa.ChunkedArray):
            brokers = brokers.combine_chunks()
        if not pa.types.is_dictionary(brokers.type):
            brokers = brokers.dictionary_encode()
        names: tuple[str | None, ...] = (*brokers.dictionary.to_pylist(), None)
        broker = np.asarray(brokers.indices.fill_null(len(names) - 1)).astype(np.int64)
        self._parts.append(Coverage.of_lines(times, broker, names))
        if len(self._parts) > _MOST_PARTS:
            self._parts = [Coverage.sum(self._parts)]

    def add_timed(self, timestamps: Any, brokers: Any) -> None:
        """Count the lines with a time, given as an Arrow array of TIMESTAMPs in us."""
        timed = timestamps.is_valid()
        self.add(np.asarray(timestamps.filter(timed).cast(pa.int64())), brokers.filter(timed))

    def coverage(self) -> Coverage:
        """Return what was counted."""
        return Coverage.sum(self._parts)
