"""Rows of a byte range of a log, as Arrow batches; every batch and its place in the log are checked.

Memory is bounded by a window of the file and by the largest batch of a metadata log. Damage is an error or is set
aside: then one row of type DAMAGED stands for it, and reading continues at the next trustworthy place.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from attrs import define, evolve, field, frozen

from aclog.metalog.batch_scan import BatchColumns, scan_batches
from aclog.metalog.batches import read_header
from aclog.metalog.control_records import SnapshotFooter, decode_control_batch
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.batch_walk import checked_batches
from aclog.metalog.filelog.filesystem import read_at
from aclog.metalog.log import EpochStart
from aclog.metalog.vectors import Bools
from aclog.pipeline.source.ranges import FileRange, OffsetPosition
from aclog.pipeline.source.record_table import arrow_batches, take_batches
from aclog.pipeline.source.resync import LARGEST_BATCH, next_trusted
from aclog.pipeline.source.row_selection import RowSelection
from aclog.pipeline.source.schema import DAMAGED, LOG_SCHEMA, damage_row

WINDOW = 4 << 20
"""Bytes to read at a time."""

MOST_DAMAGED = 1000
"""Places set aside in one range before the rest of it is: crafted bytes must not make a search of every position."""


@frozen(kw_only=True, eq=False)
class Query:
    """What to read of every range: which rows and columns, and whether damage is set aside."""

    selection: RowSelection = field(factory=RowSelection)
    schema: pa.Schema = LOG_SCHEMA
    set_aside: bool = False

    @property
    def thorough(self) -> bool:
        """Whether to decode everything: the same batches are set aside for any selection of rows and columns."""
        return self.set_aside and (self.selection != RowSelection() or self.schema != LOG_SCHEMA)


def read_range(file_range: FileRange, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, in the order of the log.

    Raises:
        DecodeError: damage (unless it is set aside), with path, byte position and offset.
        LogError: the file cannot be read, or retention has removed it.

    """
    with _opened(file_range.path) as fd:
        start = OffsetPosition(position=file_range.position, offset=file_range.offset)
        reader = _RangeReader(fd=fd, range=file_range, query=query, at=start)
        for batch in reader.batches():
            if batch.num_rows:
                yield batch


@contextmanager
def _opened(path: str) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise LogError(f"{path}: removed since the read was planned (retention?)") from None
    except OSError as error:
        raise LogError(f"{path}: cannot open: {error.strerror}") from error
    try:
        yield fd
    except OSError as error:
        raise LogError(f"{path}: cannot read: {error.strerror or error}") from error
    finally:
        os.close(fd)


@define(kw_only=True, eq=False)
class _RangeReader:
    """The reading of one range: where the next batch must begin, and the epoch of the previous one."""

    fd: int
    range: FileRange
    query: Query
    at: OffsetPosition
    _epoch: int = field(init=False, default=0)
    _last: bytes = field(init=False, default=b"")
    _damaged: int = field(init=False, default=0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the range."""
        while self._has_more():
            data = self._window()
            found, _ = scan_batches(data)
            good = take_batches(found, slice(0, self._in_place(found)))
            if len(good):
                yield from self._rows(data, good)
                self._advance(data, good)
            else:
                yield from self._damage(self._problem(data))
        if self.range.end_offset is not None and self.at.offset < self.range.end_offset:
            what = f"the records end here: expected records up to offset {self.range.end_offset}"
            yield from self._damage(self._error(what))
        elif self.range.footer and not self._ends_with_footer():
            yield from self._damage(self._error("the checkpoint does not end with a SnapshotFooter: truncated?"))

    def _has_more(self) -> bool:
        file_range = self.range
        has_offsets = file_range.end_offset is None or self.at.offset < file_range.end_offset
        return self.at.position < file_range.end and has_offsets

    def _window(self) -> bytes:
        left = self.range.end - self.at.position
        data = read_at(self.fd, self.at.position, min(WINDOW, left))
        needed = int.from_bytes(data[8:12], signed=True) + 12
        # the first batch may be larger than a window; a length beyond the limit is damage, which `_problem` reports
        if len(data) < needed <= min(LARGEST_BATCH, left):
            data = read_at(self.fd, self.at.position, needed)
        return data

    def _in_place(self, found: BatchColumns) -> int:
        """Return how many of these batches, from the first on, have the expected offsets and epochs."""
        end = found.base_offset + found.record_count
        expected = np.concatenate(([self.at.offset], end[:-1]))[: len(found)]
        good = (found.base_offset == expected) & _in_epoch(found, self.range.epochs, self._epoch)
        if self.range.end_offset is not None:
            good &= end <= self.range.end_offset
        return len(good) if good.all() else int(good.argmin())

    def _problem(self, data: bytes) -> DecodeError:
        """Return what is wrong with the batch that should begin here, found by the batch-wise check."""
        base, position = self.at.offset, self.at.position
        size = int.from_bytes(data[8:12], signed=True) + 12
        try:
            for _, header in checked_batches(data, base, self.range.epochs, self._epoch):
                end, most = header.end_offset, self.range.end_offset
                return self._error(f"a batch up to offset {end}: expected its end at or before {most}")
        except DecodeError as error:
            return error.at(path=self.range.path, base=position, offset=base)
        if size > LARGEST_BATCH:
            return self._error(f"a batch of {size} bytes: expected at most {LARGEST_BATCH}")
        return self._error(f"a truncated batch: only {len(data)} of its bytes are present")

    def _error(self, what: str) -> DecodeError:
        return DecodeError(what, path=self.range.path, position=self.at.position, offset=self.at.offset)

    def _rows(self, data: bytes, batches: BatchColumns) -> Iterator[pa.RecordBatch]:
        query = evolve(self.query, selection=self.query.selection.with_offsets(first=self.range.first_offset))
        try:
            rows = arrow_batches(data, batches, query.selection, query.schema, thorough=query.thorough)
            # set aside: no row of a batch may be out before all of it has decoded
            yield from list(rows) if query.set_aside else rows
        except DecodeError as error:
            if not query.set_aside:
                raise error.at(path=self.range.path, base=self.at.position) from None
            yield from self._sound_rows(data, batches, error)

    def _sound_rows(self, data: bytes, batches: BatchColumns, error: DecodeError) -> Iterator[pa.RecordBatch]:
        """Yield the rows of batches of which at least one does not decode, which is found by bisection."""
        if len(batches) > 1:
            half = len(batches) // 2
            yield from self._rows(data, take_batches(batches, slice(0, half)))
            yield from self._rows(data, take_batches(batches, slice(half, None)))
        else:
            start, end = (
                OffsetPosition(position=self.at.position + int(position), offset=int(offset))
                for position, offset in (
                    (batches.position[0], batches.base_offset[0]),
                    (batches.end[0], batches.base_offset[0] + batches.record_count[0]),
                )
            )
            yield from self._damaged_rows(start, end, error.at(base=self.at.position))

    def _advance(self, data: bytes, batches: BatchColumns) -> None:
        end = int(batches.base_offset[-1] + batches.record_count[-1])
        if self.range.footer:  # the last batch is checked at the end
            self._last = data[batches.position[-1] : batches.end[-1]]
        self.at = OffsetPosition(position=self.at.position + int(batches.end[-1]), offset=end)
        self._epoch = int(batches.leader_epoch[-1])

    def _damage(self, error: DecodeError) -> Iterator[pa.RecordBatch]:
        """Raise the error, or set aside the bytes before the next trustworthy place and continue there."""
        if not self.query.set_aside:
            raise error
        self._damaged += 1
        end = OffsetPosition(position=self.range.end, offset=self.range.end_offset or self.at.offset)
        if self._damaged < MOST_DAMAGED and self.at.position < self.range.end:
            end = next_trusted(self.fd, self.at, end)
        start, self.at, self._last = self.at, end, b""
        yield from self._damaged_rows(start, end, error)

    def _damaged_rows(self, start: OffsetPosition, end: OffsetPosition, error: DecodeError) -> Iterator[pa.RecordBatch]:
        first = max(start.offset, self.range.first_offset)
        if start.offset < end.offset <= self.range.first_offset or not self.query.selection.untimed(first, DAMAGED):
            return
        where = f"bytes {start.position} to {end.position}, offsets {start.offset} to {end.offset}"
        detail = error.what if error.position == start.position else f"{error.what} (byte {error.position})"
        yield damage_row(self.query.schema, first, f"{self.range.path}: {where}: {detail}")

    def _ends_with_footer(self) -> bool:
        if not self._last:
            return self._damaged > 0  # if the end was set aside, it is reported already
        header = read_header(self._last)
        return header.is_control and isinstance(decode_control_batch(self._last, 0, header)[-1], SnapshotFooter)


def _in_epoch(found: BatchColumns, epochs: tuple[EpochStart, ...] | None, before: int) -> Bools:
    """Return which batches have a possible epoch: `batch_walk.epoch_span` for all of them at once."""
    epoch = found.leader_epoch
    if epochs is None:
        not_decreasing: Bools = epoch >= np.concatenate(([before], epoch[:-1]))[: len(epoch)]
        return not_decreasing
    starts = np.array([start.start_offset for start in epochs], np.int64)
    number = np.searchsorted(starts, found.base_offset, side="right")
    last = np.searchsorted(starts, found.base_offset + found.record_count - 1, side="right")
    known = np.array([epochs[0].epoch if epochs else -1, *(start.epoch for start in epochs)], np.int64)[number]
    good: Bools = (number == last) & ((epoch == known) | ((number == 0) & (epoch <= known)))
    return good
