"""Appends batches to the last segment, and rolls to a new segment when it is full.

All batches between two fsyncs go to one segment in one write. A segment is rolled only after everything in the previous
one is durable and published, so only the last segment can have a torn tail.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.file_names import SegmentFile, segment_name
from aclog.metalog.filelog.filesystem import FILE_MODE, fsync_directory, log_error, write_all
from aclog.metalog.filelog.named_file import NamedFile
from aclog.metalog.group_commit import MAX_BATCH_BYTES

SEGMENT_BYTES = MAX_BATCH_BYTES
"""Default size at which a segment is rolled: the smallest metadata.log.segment.bytes that Kafka accepts."""

Fsync = Callable[[int], None]
"""Makes a file durable: os.fsync, or a replacement in tests and benchmarks."""


@define(eq=False)
class Appender:
    """The open last segment; `_size` counts its durable bytes. Not thread-safe."""

    directory: Path
    segment_bytes: int
    _fsync: Fsync
    _path: Path
    _fd: int
    _size: int
    file: NamedFile
    """The segment's identity; replaced as a whole, so that any thread may check it."""

    @classmethod
    def open(cls, path: Path, size: int, *, segment_bytes: int, fsync: Fsync) -> "Appender":
        """Continue a segment at `size`, truncating what follows (a torn tail), and make all of it durable.

        Raises:
            LogError: the disk fails.

        """
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            try:
                # This cuts a torn tail. fsync also covers batches that the crashed writer wrote but did not sync.
                os.ftruncate(fd, size)
                fsync(fd)
                file = NamedFile.of(fd, path)
            except OSError:
                os.close(fd)
                raise
        except OSError as error:
            raise log_error(error, path, "cannot open for writing") from error
        return cls(
            directory=path.parent, segment_bytes=segment_bytes, fsync=fsync, path=path, fd=fd, size=size, file=file
        )

    def fits(self, batches: Sequence[bytes]) -> int:
        """Return how many of `batches` still fit into this segment; 0 means that it must be rolled first."""
        size = self._size
        for number, batch in enumerate(batches):
            size += len(batch)
            # A batch larger than a segment gets a segment of its own.
            if size > self.segment_bytes and (number or self._size):
                return number
        return len(batches)

    def write(self, batches: Sequence[bytes]) -> None:
        """Write batches and make them durable.

        Raises:
            LogError: the disk is full or fails, another writer has written here, or the segment no longer has its name.
                It must not be written to again: after a failed fsync the state on disk is unknown, and a second fsync
                may report success for dropped pages.

        """
        data = b"".join(batches)
        try:
            # O_APPEND writes at the end, wherever it is: if the file no longer has the length that this writer left,
            # the lock was circumvented, and the batch would land at a wrong position.
            there = os.fstat(self._fd).st_size
            if there != self._size:
                what = f"{there} bytes long, but this writer left it at {self._size}: another process writes to it"
                raise LogError(f"{self._path}: {what}; nothing is appended")
            self._write_durably(data)
        except OSError as error:
            raise log_error(error, self._path, "cannot append") from error
        self._size += len(data)

    def _write_durably(self, data: bytes) -> None:
        """Write and fsync; if that fails, truncate what was written, so that recovery never takes it for committed."""
        try:
            write_all(self._fd, data)
            self._fsync(self._fd)
            # After the fsync, so that nothing is acknowledged that whoever opens the log next would not find.
            self.file.check()
        except BaseException as error:
            # Recovery keeps whole batches above the mark; these will be reported as failed, so they must go now.
            try:
                os.ftruncate(self._fd, self._size)
            except OSError as again:
                what = f"{error}; the records may reappear, because truncating them failed too: {again.strerror}"
                raise LogError(f"{self._path}: cannot append: {what}") from error
            raise

    def roll(self, base_offset: int) -> SegmentFile:
        """Begin a new segment whose first record is `base_offset`.

        Raises:
            LogError: the disk is full or fails, or the last segment no longer has its name.

        """
        self.file.check()  # else the new one would be made in whatever directory has the name now
        file = SegmentFile(base_offset=base_offset, path=self.directory / segment_name(base_offset))
        fd = create_segment(file)
        os.close(self._fd)
        self._fd, self._path, self._size = fd, file.path, 0
        self.file = NamedFile.of(fd, file.path)
        return file

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def create_segment(file: SegmentFile) -> int:
    """Create an empty segment, its name durable; return the open file.

    Raises:
        LogError: the disk is full or fails; or the file exists.

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
