"""The segments of a log directory: locating an offset in them, and reading whole batches.

Does the work of Kafka's `LogSegments`, `OffsetIndex` and `FileRecords.slice`. A file is opened for each read, so that
no descriptor keeps the space of a segment that retention removes.
"""

import os
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from attrs import define, field

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.batches import HEADER_SIZE, read_header
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.batch_walk import Epochs, checked_batches, epoch_span, walk_batches
from aclog.metalog.filelog.file_names import SegmentFile, list_segments
from aclog.metalog.filelog.filesystem import log_error, read_at

_INDEX_INTERVAL = 4096
_BULK = 4096


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
    _guard: threading.Lock = field(init=False, factory=threading.Lock)

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
            known = {segment.file.base_offset: segment for segment in self._segments}
            listed = list_segments(self.directory)
            if not listed:
                raise LogError(f"{self.directory}: no segments (any more): not a metadata log")
            self._segments = [known.get(file.base_offset) or Segment(file) for file in listed]

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
        with self._guard:
            number = bisect_right(self._segments, offset, key=lambda segment: segment.file.base_offset) - 1
            if number < 0:
                first = self._segments[0].file.base_offset
                raise LogError(f"{self.directory}: offset {offset} is below the log start offset {first}")
            segment = self._segments[number]
            with _opened(segment.file.path) as fd:
                base, position = self._locate(fd, segment, offset)
                first, there = _first_size(fd, segment.file.path, base, position)
                data = read_at(fd, position, min(max(max_bytes, first), there))
            try:
                checked = _checked(data, base, end, self.epochs)
            except DecodeError as error:
                raise error.at(path=str(segment.file.path), base=position, offset=base) from error
            # Who reads on begins behind the last batch, and who looks at it again begins at it: neither needs a walk.
            segment.learn(checked.last, position + checked.at)
            segment.learn(checked.end, position + checked.size)
        return data[: checked.size]

    def _locate(self, fd: int, segment: Segment, offset: int) -> tuple[int, int]:
        """Return (base offset, position) of the batch that contains `offset`."""
        base, position = segment.floor(offset)
        if base == offset:
            return base, position
        batches = walk_batches(fd, segment.file.path, position=position, offset=base, epochs=self.epochs)
        for found, header in batches:
            if header.end_offset > offset:
                return header.base_offset, found
            segment.learn(header.end_offset, found + header.size)
        what = "the segment ends here, below the high-water mark, and no other segment contains this offset"
        raise DecodeError(what, path=str(segment.file.path), offset=offset, position=os.fstat(fd).st_size)


def _first_size(fd: int, path: Path, base: int, position: int) -> tuple[int, int]:
    """Return the size of the batch at `position`, and how many bytes the file has from there on."""
    there = os.fstat(fd).st_size - position
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
    found = _Checked(0, base, base, 0)
    try:
        for position, header in checked_batches(data, base, epochs):
            if header.end_offset > end:
                break
            found = _Checked(position + header.size, header.end_offset, header.base_offset, position)
            if found.end == end:
                break
    except DecodeError:
        # Damage after good batches is reported by the next read, which begins there.
        if not found.size:
            raise
    if not found.size:
        raise DecodeError(f"this batch reaches beyond {end}: the high-water mark is not from this log", position=0)
    return found


def _bulk_checked(data: bytes, base: int, end: int, epochs: Epochs) -> _Checked | None:
    """Do the same if all batches have the expected offsets and one expected epoch; None otherwise."""
    batches, _ = scan_batches(data)
    ends = batches.base_offset + batches.record_count
    below = int(np.searchsorted(ends, end, side="right"))
    if not below or batches.base_offset[0] != base or (batches.base_offset[1:below] != ends[: below - 1]).any():
        return None
    low, high, until = epoch_span(epochs, base, 0)
    if low != high or ends[below - 1] > until or (batches.leader_epoch[:below] != low).any():
        return None
    last = below - 1
    return _Checked(
        size=int(batches.end[last]),
        end=int(ends[last]),
        last=int(batches.base_offset[last]),
        at=int(batches.position[last]),
    )


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise LogError(f"{path}: removed by retention: its offsets are now below the log start offset") from None
    except OSError as error:
        raise log_error(error, path, "cannot open") from error
    try:
        yield fd
    except OSError as error:
        raise log_error(error, path, "cannot read") from error
    finally:
        os.close(fd)
