"""The segments of a log directory: which file holds an offset, and reading whole batches out of it.

Mirrors what Kafka's `LogSegments`, `OffsetIndex` and `FileRecords.slice` are for. Files are opened for one read at a
time, so that nothing is held of a segment that retention removes.
"""

import os
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

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
    """One segment file, and the positions of some of its batches (at least 4 KiB apart), filled by what is read."""

    file: SegmentFile
    _offsets: list[int] = field(init=False)
    _positions: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._offsets, self._positions = [self.file.base_offset], [0]

    def floor(self, offset: int) -> tuple[int, int]:
        """Offset and position of the last known batch that begins at or below `offset`."""
        number = bisect_right(self._offsets, offset) - 1
        return self._offsets[number], self._positions[number]

    def learn(self, offset: int, position: int) -> None:
        """A batch begins here; kept if it is far enough from the last one known."""
        if position - self._positions[-1] >= _INDEX_INTERVAL:
            self._offsets.append(offset)
            self._positions.append(position)


@define(eq=False)
class Segments:
    """All segments of a directory, by base offset. Safe for many threads; it knows nothing of the high-water mark."""

    directory: Path
    epochs: Epochs
    _segments: list[Segment] = field(init=False, factory=list)
    _guard: threading.Lock = field(init=False, factory=threading.Lock)

    @classmethod
    def open(cls, directory: Path, epochs: Epochs) -> Self:
        """The segments that are there now.

        Raises:
            LogError: the directory cannot be listed.

        """
        segments = cls(directory, epochs)
        segments.refresh()
        return segments

    def refresh(self) -> None:
        """See what another process has added or removed.

        Raises:
            LogError: the directory cannot be listed, or is empty of segments.

        """
        with self._guard:
            known = {segment.file.base_offset: segment for segment in self._segments}
            listed = list_segments(self.directory)
            if not listed:
                raise LogError(f"{self.directory}: no segment is there (any more): not a metadata log")
            self._segments = [known.get(file.base_offset) or Segment(file) for file in listed]

    def files(self) -> tuple[SegmentFile, ...]:
        """The files, by base offset."""
        with self._guard:
            return tuple(segment.file for segment in self._segments)

    def add(self, file: SegmentFile) -> None:
        """A new last segment, created by this process."""
        with self._guard:
            self._segments.append(Segment(file))

    def remove_first(self, count: int) -> None:
        """The first `count` segments are gone, removed by this process."""
        with self._guard:
            del self._segments[:count]

    def start_offset(self) -> int:
        """The first offset that is there."""
        with self._guard:
            return self._segments[0].file.base_offset

    def read(self, offset: int, end: int, max_bytes: int) -> bytes:
        """Whole checked batches from the one that holds `offset`, none at or beyond `end`; at least one, of one file.

        At most `max_bytes` together, unless the first alone is larger. `offset` is below `end`.

        Raises:
            LogError: `offset` lies below the first segment (also one removed just now).
            DecodeError: the bytes are damaged, or the segment ends below `end` and the next does not continue it.

        """
        with self._guard:
            number = bisect_right(self._segments, offset, key=lambda segment: segment.file.base_offset) - 1
            if number < 0:
                first = self._segments[0].file.base_offset
                raise LogError(f"{self.directory}: offset {offset} is below the log's start, {first}")
            segment = self._segments[number]
            with _opened(segment.file.path) as fd:
                base, position = self._locate(fd, segment, offset)
                first, there = _first_size(fd, segment.file.path, base, position)
                data = read_at(fd, position, min(max(max_bytes, first), there))
            try:
                taken, last = _checked_size(data, base, end, self.epochs)
            except DecodeError as error:
                raise error.at(path=str(segment.file.path), base=position, offset=base) from error
            segment.learn(last, position + taken)
        return data[:taken]

    def _locate(self, fd: int, segment: Segment, offset: int) -> tuple[int, int]:
        """Base offset and position of the batch that holds `offset`."""
        base, position = segment.floor(offset)
        if base == offset:
            return base, position
        batches = walk_batches(fd, segment.file.path, position=position, offset=base, epochs=self.epochs)
        for found, header in batches:
            if header.end_offset > offset:
                return header.base_offset, found
            segment.learn(header.end_offset, found + header.size)
        what = "the segment ends here, below the high-water mark, and no other segment has this offset"
        raise DecodeError(what, path=str(segment.file.path), offset=offset, position=os.fstat(fd).st_size)


def _first_size(fd: int, path: Path, base: int, position: int) -> tuple[int, int]:
    """How many bytes the batch at `position` has, if the file has them all, and how many the file has there."""
    there = os.fstat(fd).st_size - position
    try:
        size = read_header(read_at(fd, position, HEADER_SIZE)).size
    except DecodeError as error:
        raise error.at(path=str(path), base=position, offset=base) from error
    if size > there:
        what = f"the file ends inside a batch: {size} bytes announced, {there} there"
        raise DecodeError(what, path=str(path), position=position, offset=base)
    return size, there


def _checked_size(data: bytes, base: int, end: int, epochs: Epochs) -> tuple[int, int]:
    """How many bytes of `data` are whole, sound batches below `end`, and the offset after them.

    What lies at or beyond `end` is not looked at: a writer may be at work there. Large reads are proved in bulk first;
    what that does not prove is left to the exact check, which also says what is wrong.
    """
    if len(data) > _BULK and (proved := _bulk_checked_size(data, base, end, epochs)):
        return proved
    taken, last = 0, base
    try:
        for position, header in checked_batches(data, base, epochs):
            if header.end_offset > end:
                break
            taken, last = position + header.size, header.end_offset
            if last == end:
                break
    except DecodeError:
        if not taken:
            raise
    if not taken:
        raise DecodeError(f"this batch reaches beyond {end}, a high-water mark that is not this log's", position=0)
    return taken, last


def _bulk_checked_size(data: bytes, base: int, end: int, epochs: Epochs) -> tuple[int, int] | None:
    """The same, where offsets and epochs of all batches are those that are expected; None where they are not."""
    batches, _ = scan_batches(data)
    ends = batches.base_offset + batches.record_count
    below = int(np.searchsorted(ends, end, side="right"))
    if not below or batches.base_offset[0] != base or (batches.base_offset[1:below] != ends[: below - 1]).any():
        return None
    low, high, until = epoch_span(epochs, base, 0)
    if low != high or ends[below - 1] > until or (batches.leader_epoch[:below] != low).any():
        return None
    return int(batches.end[below - 1]), int(ends[below - 1])


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise LogError(f"{path}: removed by retention: its offsets are below the log's start now") from None
    except OSError as error:
        raise log_error(error, path, "cannot open") from error
    try:
        yield fd
    except OSError as error:
        raise log_error(error, path, "cannot read") from error
    finally:
        os.close(fd)
