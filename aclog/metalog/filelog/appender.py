"""Write batches to the end of the last segment, and roll to a new one when it is full.

The batches between two calls of fsync are one run: they go to one segment with one write. A segment is rolled only
when everything in the one before is durable and published, so a torn tail can only be in the last segment.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.file_names import SegmentFile, segment_name
from aclog.metalog.filelog.filesystem import FILE_MODE, fsync_directory, log_error, write_all
from aclog.metalog.group_commit import MAX_BATCH_BYTES

SEGMENT_BYTES = MAX_BATCH_BYTES
"""Where a segment is rolled unless another size is asked for: the smallest metadata.log.segment.bytes of a Kafka."""

Fsync = Callable[[int], None]
"""Make a file durable: os.fsync, or what a test or a benchmark puts in its place."""


@define(eq=False)
class Appender:
    """The open last segment; `_size` counts the bytes that are durable. Owned by one thread at a time."""

    directory: Path
    segment_bytes: int
    _fsync: Fsync
    _path: Path
    _fd: int
    _size: int

    @classmethod
    def open(cls, path: Path, size: int, *, segment_bytes: int, fsync: Fsync) -> "Appender":
        """Go on at `size` of a segment, cutting what lies beyond (a torn tail), and make all of it durable.

        Raises:
            LogError: the disk refuses.

        """
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            try:
                os.ftruncate(fd, size)
                fsync(fd)
            except OSError:
                os.close(fd)
                raise
        except OSError as error:
            raise log_error(error, path, "cannot open for writing") from error
        return cls(path.parent, segment_bytes, fsync, path, fd, size)

    def fits(self, batches: Sequence[bytes]) -> int:
        """How many of `batches` still go into this segment: 0 means that it must be rolled first."""
        size = self._size
        for number, batch in enumerate(batches):
            size += len(batch)
            if size > self.segment_bytes and (number or self._size):
                return number
        return len(batches)

    def write(self, batches: Sequence[bytes]) -> None:
        """Write a run of batches and make it durable.

        Raises:
            LogError: the disk is full, or refuses, or another writer was here. The segment must not be written again
                then: after a failed fsync nobody knows what is on the disk, and a second fsync may claim success for
                pages that were dropped.

        """
        data = b"".join(batches)
        try:
            there = os.fstat(self._fd).st_size
            if there != self._size:
                what = f"{there} bytes long where this writer left it at {self._size}: somebody else writes to it"
                raise LogError(f"{self._path}: {what}; nothing is appended")
            self._write_durably(data)
        except OSError as error:
            raise log_error(error, self._path, "cannot append") from error
        self._size += len(data)

    def _write_durably(self, data: bytes) -> None:
        """Write and fsync; where that fails, cut what was written, so that it is never taken for committed."""
        try:
            write_all(self._fd, data)
            self._fsync(self._fd)
        except BaseException as error:
            try:
                os.ftruncate(self._fd, self._size)
            except OSError as again:
                what = f"{error}; what was written may be found again, since it cannot be cut: {again.strerror}"
                raise LogError(f"{self._path}: cannot append: {what}") from error
            raise

    def roll(self, base_offset: int) -> SegmentFile:
        """Begin the segment whose first record is `base_offset`.

        Raises:
            LogError: the disk is full, or refuses.

        """
        file = SegmentFile(base_offset=base_offset, path=self.directory / segment_name(base_offset))
        fd = create_segment(file)
        os.close(self._fd)
        self._fd, self._path, self._size = fd, file.path, 0
        return file

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def create_segment(file: SegmentFile) -> int:
    """Create an empty segment, its name durable; returns the open file.

    Raises:
        LogError: the disk is full, or refuses; or there is such a file.

    """
    try:
        fd = os.open(file.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            fsync_directory(file.path.parent)
        except OSError:
            os.close(fd)
            raise
    except OSError as error:
        raise log_error(error, file.path, "cannot create") from error
    return fd
