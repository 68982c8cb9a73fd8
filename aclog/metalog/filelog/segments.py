"""The segments of a log directory: their batches, locating an offset, and finding the end of the log."""

import os
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from attrs import field

from aclog.metalog.batches import (
    HEADER_SIZE,
    BatchColumns,
    BatchHeader,
    ValueColumns,
    check_crc,
    iter_batches,
    read_header,
    scan_batches,
    scan_values,
)
from aclog.metalog.codec import decode_record, decode_values
from aclog.metalog.columns import acl_records, read_acls
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.control_records import decode_control_batch
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog.files import SegmentFile, list_segments, log_error, read_at
from aclog.metalog.machine import disk, threads
from aclog.metalog.values import define, frozen

# Walks the batches of a segment file and checks each: completeness, CRC, offset continuity, leader epoch.
#
# The CRC of a batch does not cover its first 21 bytes: a wrong length or magic shows up in the CRC or the structure,
# a wrong base offset breaks continuity, and a wrong epoch disagrees with leader-epoch-checkpoint. Memory is bounded
# by the larger of the window and the largest batch that is really present.


WINDOW = 1 << 20
_FOREVER = 1 << 63
_NO_END = (1 << 63) - 1
_NEWEST = (1 << 31) - 1

Epochs = Sequence[EpochStart] | None
"""The content of leader-epoch-checkpoint; None if there is no such file and only epoch order can be checked."""


def checked_batches(data: bytes, offset: int, epochs: Epochs, before: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield each whole batch of `data`, checked, as (its position, its header); the first must begin at `offset`.

    `before` is the epoch of the preceding batch, if known. A batch truncated by the end of `data` is not yielded.

    Raises:
        DecodeError: a damaged batch, with the position in `data`.
        ReplayError: a batch that does not continue the offsets, or has the wrong epoch for its offset.

    """
    low, high, until = before, _NEWEST, offset
    for position, header in iter_batches(data):
        check_crc(data, position, header)
        if header.base_offset != offset:
            raise ReplayError(
                f"a batch of offset {header.base_offset}: expected {offset}", position=position, offset=offset
            )
        # Looked up only where an epoch ends: nearly all batches are in the same epoch as the one before.
        if offset >= until:
            low, high, until = epoch_span(epochs, offset, low)
        _check_epoch(header, position, epochs=(low, high), until=until)
        low, offset = header.leader_epoch, header.end_offset
        yield position, header


def epoch_span(epochs: Epochs, offset: int, before: int) -> tuple[int, int, int]:
    """Return the lowest and highest valid epoch at `offset`, and the offset up to which they apply.

    `before` is the epoch of the preceding record. The two differ only without a file, and before its first entry: when
    retention raises the log start into the middle of a segment, Kafka moves the first entry there, although the earlier
    batches of that segment are still in the file.
    """
    if epochs is None:
        return before, _NEWEST, _FOREVER
    number = bisect_right(epochs, offset, key=lambda start: start.start_offset)
    until = epochs[number].start_offset if number < len(epochs) else _FOREVER
    if number:
        return epochs[number - 1].epoch, epochs[number - 1].epoch, until
    return before, epochs[0].epoch if epochs else -1, until


def _check_epoch(header: BatchHeader, position: int, *, epochs: tuple[int, int], until: int) -> None:
    epoch, (low, high) = header.leader_epoch, epochs
    if not low <= epoch <= high:
        expected = f"expected epoch {low}" if low == high else f"expected an epoch from {low} to {high}"
        if high < 0:
            expected = "leader-epoch-checkpoint has none for this offset"
        raise ReplayError(f"a batch of epoch {epoch}: {expected}", position=position, offset=header.base_offset)
    if header.end_offset > until:
        what = (
            f"a batch of epoch {epoch} reaches beyond offset {until}, where leader-epoch-checkpoint begins the next one"
        )
        raise ReplayError(what, position=position, offset=header.base_offset)


def walk_batches(
    fd: int, path: Path, *, position: int, offset: int, epochs: Epochs, before: int = 0, window: int = WINDOW
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield each batch of a segment file from `position` (which must be `offset`) to its end, checked.

    `before` is the epoch of the preceding batch, if known. Batches are yielded as (position, header).

    Raises:
        DecodeError: at the first batch that is damaged or truncated, with path, position and offset.

    """
    while data := _window(fd, position, window):
        consumed = 0
        try:
            for at, header in checked_batches(data, offset, epochs, before):
                offset, before, consumed = header.end_offset, header.leader_epoch, at + header.size
                yield position + at, header
        except DecodeError as error:
            raise error.at(path=str(path), base=position, offset=offset) from error
        # iter_batches stops silently before a truncated batch; `_window` has read all of it that the file has.
        if not consumed:
            what = "the file ends inside a batch"
            raise DecodeError(what, path=str(path), position=position, offset=offset)
        position += consumed


def _window(fd: int, position: int, size: int) -> bytes:
    """Read the next `size` bytes of a file, or more if the first batch is larger and entirely in the file."""
    data = read_at(fd, position, size)
    if len(data) < size or size < HEADER_SIZE:
        return data
    try:
        needed = read_header(data).size
    except DecodeError:
        return data
    # A damaged length must not cause a read of gigabytes: only what the file really contains is read.
    there = disk.fstat(fd).st_size - position
    return read_at(fd, position, needed) if size < needed <= there else data


def check_records(fd: int, path: Path, position: int, header: BatchHeader) -> DecodeError | None:
    """Return what is wrong with the first damaged record of a batch whose CRC is valid; None if every record decodes.

    Of a record type that is not interpreted, only the frame is checked.
    """
    data = read_at(fd, position, header.size)
    try:
        if header.is_control:
            decode_control_batch(data, 0, header)
        else:
            deque(decode_values(data, 0, header), maxlen=0)
    except DecodeError as error:
        return error.at(path=str(path), base=position, offset=header.base_offset)
    return None


class ProvedRun(NamedTuple):
    """Whole valid batches at the beginning of a window: their size in bytes, and the offset and epoch after them."""

    size: int
    offset: int
    epoch: int


def proved_run(
    fd: int, position: int, offset: int, epochs: Epochs, before: int, *, end: int | None, window: int
) -> ProvedRun:
    """Return how many of the next batches of a file a check in bulk proves valid, with their records.

    The size is 0 if it is not even one. Batches that reach beyond the offset `end` are not looked at. At most `window`
    bytes are read, unless the first batch is larger.
    """
    data = _window(fd, position, window)
    batches = _next_batches(data, offset, epochs, before, end=_NO_END if end is None else end)
    if not len(batches):
        return ProvedRun(0, offset, before)
    values, bad = scan_values(data, batches)
    count = min(len(batches) if bad is None else bad, _first_undecodable(data, batches, values))
    if not count:
        return ProvedRun(0, offset, before)
    last = count - 1
    return ProvedRun(int(batches.end[last]), int(batches.end_offset[last]), int(batches.leader_epoch[last]))


def _first_undecodable(data: bytes, batches: BatchColumns, values: ValueColumns) -> int:
    """Return the number of the first batch with a record that is damaged, or how many there are."""
    first = len(batches)
    for number in np.flatnonzero(batches.is_control).tolist():
        position = int(batches.position[number])
        try:
            decode_control_batch(data, position, read_header(data, position))
        except DecodeError:
            first = number
            break
    adds, removes = acl_records(data, values.value_start, values.value_end)
    rows = np.flatnonzero(adds)
    odd = rows[read_acls(data, values.value_start[rows], values.value_end[rows])[1]]
    for row in np.sort(np.concatenate((np.flatnonzero(~(adds | removes)), odd))).tolist():
        if values.batch[row] >= first:
            break
        try:
            decode_record(data[int(values.value_start[row]) : int(values.value_end[row])])
        except DecodeError:
            return int(values.batch[row])
    return first


# The segments of a log directory: locating an offset in them, and reading whole batches.
#
# Does the work of Kafka's `LogSegments`, `OffsetIndex` and `FileRecords.slice`. A file is opened for each read, so
# that no descriptor keeps the space of a segment that retention removes.


_INDEX_INTERVAL = 4096
_BULK = 4096
BULK_WINDOW = 4 << 20
"""Read at once where a file is checked in bulk."""


@define(eq=False)
class Segment:
    """One segment file with a sparse in-memory offset index (an entry per 4 KiB or more), filled while reading."""

    file: SegmentFile
    _offsets: list[int] = field(init=False)
    _positions: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._offsets, self._positions = [self.file.base_offset], [0]

    def floor(self, offset: int) -> tuple[int, int]:
        """Return (offset, position) of the last indexed batch that begins at or below `offset`."""
        number = bisect_right(self._offsets, offset) - 1
        return self._offsets[number], self._positions[number]

    def learn(self, offset: int, position: int) -> None:
        """Add a batch to the index, if it is far enough from the entries beside it."""
        number = bisect_right(self._positions, position)
        is_far = position - self._positions[number - 1] >= _INDEX_INTERVAL
        if is_far and (number == len(self._positions) or self._positions[number] - position >= _INDEX_INTERVAL):
            self._offsets.insert(number, offset)
            self._positions.insert(number, position)


@define(eq=False)
class Segments:
    """All segments of a directory, sorted by base offset. Thread-safe; high-water marks are the caller's business."""

    directory: Path
    epochs: Epochs
    _segments: list[Segment] = field(init=False, factory=list)
    _guard: "threading.Lock" = field(init=False, factory=threads.lock)

    @classmethod
    def open(cls, directory: Path, epochs: Epochs) -> Self:
        """Return the segments that exist now.

        Raises:
            LogError: the directory cannot be listed.

        """
        segments = cls(directory, epochs)
        segments.refresh()
        return segments

    def refresh(self) -> None:
        """List the directory again, to see what another process has added or removed; indexes are kept.

        Raises:
            LogError: the directory cannot be listed, or has no segments.

        """
        with self._guard:
            by_base = {segment.file.base_offset: segment for segment in self._segments}
            listed = list_segments(self.directory)
            if not listed:
                raise LogError(f"{self.directory}: no segments (any more): not a metadata log")
            self._segments = [by_base.get(file.base_offset) or Segment(file) for file in listed]

    def files(self) -> tuple[SegmentFile, ...]:
        """Return the files, sorted by base offset."""
        with self._guard:
            return tuple(segment.file for segment in self._segments)

    def add(self, file: SegmentFile) -> None:
        """Add a new last segment that this process has created."""
        with self._guard:
            self._segments.append(Segment(file))

    def rename_first(self, suffix: str) -> None:
        """Take the first segment out of the log: rename its file, and forget it. Raises OSError."""
        with self._guard:
            path = self._segments[0].file.path
            path.replace(path.with_name(path.name + suffix))
            del self._segments[0]

    def check(self) -> None:
        """Check that all files exist.

        Raises:
            LogError: one was removed, and not by this process.

        """
        with self._guard:
            for segment in self._segments:
                if not segment.file.path.exists():
                    raise LogError(f"{segment.file.path}: removed while the log is open: restore it")

    def start_offset(self) -> int:
        """Return the first offset of the first segment."""
        with self._guard:
            return self._segments[0].file.base_offset

    def read(self, offset: int, end: int, max_bytes: int) -> bytes:
        """Return whole checked batches from the one that contains `offset`, all ending at or below `end`.

        At least one batch, all from one file; at most `max_bytes`, unless the first is larger. `offset` is below `end`.

        Raises:
            LogError: `offset` is below the first segment (perhaps it has just been removed).
            DecodeError: damaged bytes, or the segment ends below `end` and the next one does not continue it.

        """
        # Files are read without the guard, for seconds perhaps: start_offset is called on a node's event loop, and a
        # commit adds segments. What was written below `end` never changes, and an open file outlives its removal.
        with self._guard:
            number = bisect_right(self._segments, offset, key=lambda segment: segment.file.base_offset) - 1
            if number < 0:
                first = self._segments[0].file.base_offset
                raise LogError(f"{self.directory}: offset {offset} is below the log start offset {first}")
            segment = self._segments[number]
            base, position = segment.floor(offset)
        with _opened(segment.file.path) as fd:
            base, position = self._locate(fd, segment, offset, base, position)
            first, there = _first_size(fd, segment.file.path, base, position)
            data = read_at(fd, position, min(max(max_bytes, first), there))
        try:
            checked = _checked(data, base, end, self.epochs)
        except DecodeError as error:
            raise error.at(path=str(segment.file.path), base=position, offset=base) from error
        # Who reads on begins behind the last batch, and who looks at it again begins at it: neither needs a walk.
        self._learn(segment, checked.last, position + checked.at)
        self._learn(segment, checked.end, position + checked.size)
        return data[: checked.size]

    def _learn(self, segment: Segment, offset: int, position: int) -> None:
        with self._guard:
            segment.learn(offset, position)

    def _locate(self, fd: int, segment: Segment, offset: int, base: int, position: int) -> tuple[int, int]:
        """Return (base offset, position) of the batch that contains `offset`, searched from a batch before it."""
        if base == offset:
            return base, position
        while base < offset:  # in bulk, as far as it can prove batches valid
            data = read_at(fd, position, BULK_WINDOW)
            proved = _bulk_checked(data, base, offset, self.epochs) if len(data) > _BULK else None
            if proved is None:
                break
            self._learn(segment, proved.last, position + proved.at)
            base, position = proved.end, position + proved.size
            self._learn(segment, base, position)
        batches = walk_batches(fd, segment.file.path, position=position, offset=base, epochs=self.epochs)
        for start, header in batches:
            if header.end_offset > offset:
                return header.base_offset, start
            self._learn(segment, header.end_offset, start + header.size)
        what = "the segment ends here, below the high-water mark, and no other segment contains this offset"
        raise DecodeError(what, path=str(segment.file.path), offset=offset, position=disk.fstat(fd).st_size)


def _first_size(fd: int, path: Path, base: int, position: int) -> tuple[int, int]:
    """Return the size of the batch at `position`, and how many bytes the file has from there on."""
    there = disk.fstat(fd).st_size - position
    try:
        size = read_header(read_at(fd, position, HEADER_SIZE)).size
    except DecodeError as error:
        raise error.at(path=str(path), base=position, offset=base) from error
    if size > there:
        what = f"the file ends inside a batch: expected {size} bytes, found {there}"
        raise DecodeError(what, path=str(path), position=position, offset=base)
    return size, there


class _Checked(NamedTuple):
    """Whole valid batches: their size and the offset after them; the base offset of the last one, and where it is."""

    size: int
    end: int
    last: int
    at: int


def _checked(data: bytes, base: int, end: int, epochs: Epochs) -> _Checked:
    """Return the whole valid batches in `data` below `end`.

    Bytes at or beyond `end` are not looked at, as a writer may be changing them. Large reads are first checked in bulk;
    what that cannot prove valid is left to the exact check, which also reports what is wrong.
    """
    if len(data) > _BULK and (proved := _bulk_checked(data, base, end, epochs)):
        return proved
    prefix = _Checked(0, base, base, 0)
    try:
        for position, header in checked_batches(data, base, epochs):
            if header.end_offset > end:
                break
            prefix = _Checked(position + header.size, header.end_offset, header.base_offset, position)
            if prefix.end == end:
                break
    except DecodeError:
        # Damage after good batches is reported by the next read, which begins there.
        if not prefix.size:
            raise
    if not prefix.size:
        raise DecodeError(f"this batch reaches beyond {end}: the high-water mark is not from this log", position=0)
    return prefix


def _bulk_checked(data: bytes, base: int, end: int, epochs: Epochs, before: int = 0) -> _Checked | None:
    """Do the same if all batches have the expected offsets and epochs; None otherwise.

    `before` is the epoch of the preceding batch, if known.
    """
    batches = _next_batches(data, base, epochs, before, end=end)
    if not len(batches):
        return None
    return _Checked(
        size=int(batches.end[-1]),
        end=int(batches.end_offset[-1]),
        last=int(batches.base_offset[-1]),
        at=int(batches.position[-1]),
    )


def _next_batches(data: bytes, offset: int, epochs: Epochs, before: int, *, end: int) -> BatchColumns:
    """Return the first batches in `data` that `checked_batches` accepts and that end at or below `end`."""
    # Only what is in order can be searched for `end`: behind it, a damaged base offset may be any number.
    batches = scan_batches(data)[0].in_order(offset, before)
    batches = batches.first(int(np.searchsorted(batches.end_offset, end, side="right")))
    if epochs is None:
        return batches
    starts = np.array([start.start_offset for start in epochs], np.int64)
    number = np.searchsorted(starts, batches.base_offset, side="right")
    # No entry covers what is before the first one: that is rare, and left to the exact check.
    expected = np.array([-1, *(start.epoch for start in epochs)], np.int64)[number]
    until = np.append(starts, _NO_END)[number]
    wrong = (batches.leader_epoch != expected) | (batches.end_offset > until)
    return batches.first(int(wrong.argmax())) if wrong.any() else batches


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        fd = disk.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise LogError(f"{path}: removed by retention: its offsets are now below the log start offset") from None
    except OSError as error:
        raise log_error(error, path, "cannot open") from error
    try:
        yield fd
    except OSError as error:
        raise log_error(error, path, "cannot read") from error
    finally:
        disk.close(fd)


# Finds the end of a log: the end of the last whole batch, and whether what follows is a torn tail or damage.
#
# Mirrors the recovery in Kafka's `LogSegment.recover`, with one difference: Kafka truncates at the first bad batch,
# wherever it is; here only bytes that were never committed may be truncated, anything else is an error.


_CRC_BUDGET = 4
"""Bound on CRC work when searching for a batch after damage, as a multiple of the data's length."""

_SMALLEST_WINDOW = 1 << 16
_LARGEST_WINDOW = 1 << 24
"""Twice the largest batch: with windows that overlap by half, any batch is entirely inside one window."""


@frozen(kw_only=True)
class Tail:
    """The end of the last whole batch: its file, the position and offset after it, and how many bytes follow.

    `last_crc` is that of the last batch; None if the search passed none, because the segments that it read are empty.
    """

    path: Path
    position: int
    end_offset: int
    last_crc: int | None = None
    torn_bytes: int = 0
    problem: str = ""


def find_tail(segments: tuple[SegmentFile, ...], mark: int | None, epochs: Epochs) -> Tail:
    """Return where the log ends; `mark` is the published high-water mark, None in a directory that Kafka wrote.

    Below the mark everything must be valid and segments must be contiguous; above it, anything but a whole batch is a
    torn tail. Without a mark it is a torn tail only if no whole batch follows it.

    Raises:
        DecodeError: damage, with path, position and offset; segments that are not contiguous; a log that ends below
            its mark.
        LogError: a file cannot be read.

    """
    # Only the segment that contains the mark and later ones are read: earlier ones were fsynced before they were
    # rolled, and `verify` checks them.
    first = 0 if mark is None else max((n for n, file in enumerate(segments) if file.base_offset <= mark), default=0)
    if mark is None:
        first = len(segments) - 1
    tail = Tail(path=segments[first].path, position=0, end_offset=segments[first].base_offset)
    for file in segments[first:]:
        if tail.problem:
            raise DecodeError(tail.problem, path=str(tail.path), position=tail.position, offset=tail.end_offset)
        if file.base_offset != tail.end_offset:
            what = f"the previous segment ends at offset {tail.end_offset}, expected {file.base_offset}"
            raise DecodeError(what, path=str(file.path), position=0, offset=tail.end_offset)
        tail = _find_end(file, mark, epochs, tail.last_crc)
    if mark is not None and tail.end_offset < mark:
        what = f"the log ends here, below its high-water mark {mark}: committed records are lost"
        raise DecodeError(what, path=str(tail.path), position=tail.position, offset=tail.end_offset)
    return tail


def _find_end(file: SegmentFile, mark: int | None, epochs: Epochs, last_crc: int | None) -> Tail:
    position, offset = 0, file.base_offset
    torn, problem = 0, ""
    try:
        fd = disk.open(file.path, os.O_RDONLY)
        try:
            position, offset, epoch, last_crc = _skip_proved(fd, offset, epochs, last_crc)
            walk = walk_batches(fd, file.path, position=position, offset=offset, epochs=epochs, before=epoch)
            for at, header in walk:
                position, offset, last_crc = at + header.size, header.end_offset, header.crc
        except ReplayError:
            # The batch is whole and its CRC valid, but it is not the next one: no crash leaves that behind.
            raise
        except DecodeError as error:
            # Damage below the mark is never cut. Without a mark, a whole batch after the damage proves that this is not
            # the end of an interrupted write but damage inside the log.
            if offset < (mark or 0) or (mark is None and next_whole_batch(fd, position, offset)):
                raise
            torn, problem = disk.fstat(fd).st_size - position, error.what
        finally:
            disk.close(fd)
    except OSError as error:
        raise log_error(error, file.path, "cannot read") from error
    return Tail(
        path=file.path, position=position, end_offset=offset, last_crc=last_crc, torn_bytes=torn, problem=problem
    )


def _skip_proved(fd: int, offset: int, epochs: Epochs, last_crc: int | None) -> tuple[int, int, int, int | None]:
    """Return (position, offset, epoch and CRC of the batch before) after the batches that a check in bulk proves valid.

    What follows, if anything, is left to the exact check.
    """
    position, epoch = 0, 0
    while len(data := _window(fd, position, BULK_WINDOW)) > _BULK:
        proved = _bulk_checked(data, offset, _NO_END, epochs, epoch)
        if proved is None:
            break
        header = read_header(data, proved.at)
        position, offset, epoch, last_crc = position + proved.size, proved.end, header.leader_epoch, header.crc
    return position, offset, epoch, last_crc


def next_whole_batch(fd: int, position: int, offset: int) -> tuple[int, int] | None:
    """Return (position, base offset) of the first whole batch after damage at `position` with an offset above `offset`.

    The file is searched in windows: they grow, as the next batch is usually near, and then advance by half their size.
    """
    size, end = _SMALLEST_WINDOW, disk.fstat(fd).st_size
    start = position + 1
    while start < end:
        batch = _next_batch(read_at(fd, start, size), offset, offset + end - position)
        if batch is not None:
            return start + batch[0], batch[1]
        if start + size >= end:
            return None
        if size < _LARGEST_WINDOW:
            size *= 4
        else:
            start += size // 2
    return None


def _next_batch(data: bytes, offset: int, most: int) -> tuple[int, int] | None:
    """Return (position, base offset) of the first whole batch in `data` with `offset` < base offset <= `most`.

    Bytes that merely look like batches cost at most a few times the data's length in CRCs: once that is spent, the next
    plausible header is accepted as a batch, as reporting damage is the safe answer.
    """
    budget = _CRC_BUDGET * len(data)
    # The magic byte is at position 16 of a header: searching for it is what makes this fast.
    magic = data.find(b"\x02", 16)
    while 0 <= magic <= len(data) - HEADER_SIZE + 16:
        start = magic - 16
        try:
            header = read_header(data, start)
            if offset < header.base_offset <= most and start + header.size <= len(data):
                budget -= header.size
                if budget > 0:
                    check_crc(data, start, header)
                return start, header.base_offset
        except DecodeError:
            pass
        magic = data.find(b"\x02", magic + 1)
    return None
