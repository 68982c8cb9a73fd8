"""The `high-watermark` file: how far a log that aclog writes is committed, for readers in other processes.

Two slots of 512 bytes, written alternately in place: `AHWM`, version (int16, 1), leader epoch (int32), high-water mark
(int64), zeros, and in the last four bytes the CRC-32C of the 508 before them. All big-endian. The newest valid slot by
(epoch, mark) counts: a reader that meets a half-written slot still finds the previous mark in the other one. The epoch
is the writer's, and it is published here before leader-epoch-checkpoint is updated: if that file has a later epoch,
another writer, that is, a Kafka node, has written to the log since, and this file is stale.
"""

import os
import struct
from pathlib import Path
from typing import Self

import crc32c
from attrs import define, field, frozen

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.epochs import read_epochs
from aclog.metalog.filelog.filesystem import log_error, replace_durably
from aclog.metalog.filelog.named_file import NamedFile

MARK_FILE = "high-watermark"
_SLOT = struct.Struct(">4shiq")
_CRC = struct.Struct(">I")
_SLOT_BYTES = 512
_MAGIC = b"AHWM"
_VERSION = 1
_ATTEMPTS = 5


@frozen(kw_only=True, order=True)
class Mark:
    """Everything below `offset` is committed, says the writer of leader epoch `epoch`. Later marks compare greater."""

    epoch: int
    offset: int


def encode_slot(mark: Mark) -> bytes:
    """Return the 512 bytes of a slot."""
    head = _SLOT.pack(_MAGIC, _VERSION, mark.epoch, mark.offset).ljust(_SLOT_BYTES - _CRC.size, b"\0")
    return head + _CRC.pack(crc32c.crc32c(head))


def decode_slot(data: bytes) -> Mark | None:
    """Return the mark in a slot; None if its CRC does not match (damaged or half-written).

    Raises:
        DecodeError: a valid slot of another format or version.

    """
    head, crc = data[: -_CRC.size], data[-_CRC.size :]
    if len(data) != _SLOT_BYTES or _CRC.pack(crc32c.crc32c(head)) != crc:
        return None
    magic, version, epoch, offset = _SLOT.unpack_from(head)
    if magic != _MAGIC or version != _VERSION:
        raise DecodeError(f"not a high-water mark of version {_VERSION}")
    return Mark(epoch=epoch, offset=offset)


def decode_slots(data: bytes) -> tuple[Mark | None, Mark | None]:
    """Return the marks in the two slots of the file.

    Raises:
        DecodeError: the file has another size, or a slot another format.

    """
    if len(data) != 2 * _SLOT_BYTES:
        raise DecodeError(f"a file of {len(data)} bytes: expected two slots of {_SLOT_BYTES} bytes")
    return decode_slot(data[:_SLOT_BYTES]), decode_slot(data[_SLOT_BYTES:])


@define
class MarkFile:
    """The open file. One writer (the holder of the log's lock) publishes; any number of readers poll."""

    path: Path
    _fd: int
    _file: NamedFile = field(init=False)
    _seen: bytes | None = field(init=False, default=None)
    _mark: Mark = field(init=False, default=Mark(epoch=-1, offset=-1))
    _next_slot: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._file = NamedFile.of(self._fd, self.path)

    @classmethod
    def open(cls, directory: Path, *, writable: bool = False) -> Self | None:
        """Open the file of a log directory; None if there is none.

        Raises:
            LogError: it cannot be opened.

        """
        path = directory / MARK_FILE
        try:
            return cls(path, os.open(path, os.O_RDWR if writable else os.O_RDONLY))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise log_error(error, path, "cannot open") from error

    def read(self) -> Mark:
        """Return the newest published mark.

        Raises:
            DecodeError: neither slot is valid, or this is not a mark file.

        """
        # A read can overlap a write, and even two when the writer is fast; one of the next reads finds a whole slot.
        for _ in range(_ATTEMPTS):
            # One byte more than the file should have, to notice a file of another size.
            data = os.pread(self._fd, 2 * _SLOT_BYTES + 1, 0)
            if data == self._seen:
                return self._mark
            if self._take(data):
                return self._mark
        raise DecodeError(
            "neither slot is valid; if the file is deleted, the end of the last whole batch counts", path=str(self.path)
        )

    def _take(self, data: bytes) -> bool:
        try:
            slots = decode_slots(data)
        except DecodeError as error:
            raise error.at(path=str(self.path)) from error
        whole = [(mark, number) for number, mark in enumerate(slots) if mark is not None]
        if whole:
            self._mark, newest = max(whole)
            self._next_slot, self._seen = 1 - newest, data
        return bool(whole)

    def publish(self, mark: Mark) -> None:
        """Make `mark` visible to readers in other processes. Not durable by itself: see `sync`.

        Raises:
            LogError: the write fails.

        """
        try:
            # Always over the older slot, so the newest mark survives a write that a crash interrupts.
            written = os.pwrite(self._fd, encode_slot(mark), self._next_slot * _SLOT_BYTES)
        except OSError as error:
            raise log_error(error, self.path, "cannot write") from error
        if written < _SLOT_BYTES:
            raise LogError(f"{self.path}: cannot write: {written} of {_SLOT_BYTES} bytes written")
        self._mark, self._next_slot = mark, 1 - self._next_slot

    def sync(self) -> None:
        """Make the published mark durable.

        Raises:
            LogError: fsync fails.

        """
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise log_error(error, self.path, "cannot sync") from error

    def check(self) -> None:
        """Check that readers in other processes see this file. Raises LogError: it was removed or replaced."""
        self._file.check()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def publish_durably(file: MarkFile, mark: Mark) -> None:
    """Publish a mark that a power loss must not undo. Raises LogError if the disk fails."""
    file.publish(mark)
    file.sync()


def create_mark_file(directory: Path, mark: Mark) -> MarkFile:
    """Create the mark file of a directory, replacing a stale one, and open it.

    Raises:
        LogError: the disk is full or fails.

    """
    replace_durably(directory / MARK_FILE, encode_slot(mark) * 2)
    file = MarkFile.open(directory, writable=True)
    if file is None:
        raise LogError(f"{directory / MARK_FILE}: removed by another process right after it was created")
    return file


def open_valid_mark_file(directory: Path, *, writable: bool = False) -> MarkFile | None:
    """Open the mark file of a directory, if there is one and it is not stale.

    Raises:
        DecodeError: the mark file or leader-epoch-checkpoint is damaged.
        LogError: one of them cannot be opened.

    """
    file = MarkFile.open(directory, writable=writable)
    if file is None:
        return None
    try:
        starts = read_epochs(directory)
        # A later epoch in leader-epoch-checkpoint means that a Kafka node, which does not update the mark file, has
        # written to this log since.
        if not starts or file.read().epoch >= starts[-1].epoch:
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None
