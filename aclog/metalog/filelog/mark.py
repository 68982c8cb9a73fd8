"""The file `high-watermark`: how far a log of ours is committed, for readers in other processes.

Two slots of 512 bytes, written in turn, in place: `AHWM`, version (int16, 1), leader epoch (int32), high-water mark
(int64), zeros, and in the last four bytes the CRC-32C of the 508 before them. All big-endian. The newest valid slot
counts, by (epoch, mark): a reader that meets a half-written slot finds the mark before it in the other one. The
epoch is the writer's, and it is published here before leader-epoch-checkpoint learns of it: where that file knows
of a later epoch, somebody else, a Kafka, wrote to the log since, and this file no longer counts.
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

MARK_FILE = "high-watermark"
_SLOT = struct.Struct(">4shiq")
_CRC = struct.Struct(">I")
_SLOT_BYTES = 512
_MAGIC = b"AHWM"
_VERSION = 1
_ATTEMPTS = 5


@frozen(kw_only=True, order=True)
class Mark:
    """All below `offset` is committed; `epoch` is that of the writer that said so. Later marks are greater."""

    epoch: int
    offset: int


def encode_slot(mark: Mark) -> bytes:
    """The 512 bytes of a slot."""
    head = _SLOT.pack(_MAGIC, _VERSION, mark.epoch, mark.offset).ljust(_SLOT_BYTES - _CRC.size, b"\0")
    return head + _CRC.pack(crc32c.crc32c(head))


def decode_slot(data: bytes) -> Mark | None:
    """The mark in a slot; None if its CRC says that it is damaged or half-written.

    Raises:
        DecodeError: a whole slot of another format or version.

    """
    head, crc = data[: -_CRC.size], data[-_CRC.size :]
    if len(data) != _SLOT_BYTES or _CRC.pack(crc32c.crc32c(head)) != crc:
        return None
    magic, version, epoch, offset = _SLOT.unpack_from(head)
    if magic != _MAGIC or version != _VERSION:
        raise DecodeError(f"not a high-water mark of version {_VERSION}")
    return Mark(epoch=epoch, offset=offset)


def decode_slots(data: bytes) -> tuple[Mark | None, Mark | None]:
    """What stands in the two slots of the file.

    Raises:
        DecodeError: the file has another size, or a slot has another format.

    """
    if len(data) != 2 * _SLOT_BYTES:
        raise DecodeError(f"{len(data)} bytes are not the two slots of {_SLOT_BYTES} bytes that are expected")
    return decode_slot(data[:_SLOT_BYTES]), decode_slot(data[_SLOT_BYTES:])


@define
class MarkFile:
    """The open file. One writer (the holder of the log's lock) publishes; any number of readers poll."""

    path: Path
    _fd: int
    _seen: bytes | None = field(init=False, default=None)
    _mark: Mark = field(init=False, default=Mark(epoch=-1, offset=-1))
    _next_slot: int = field(init=False, default=0)

    @classmethod
    def open(cls, directory: Path, *, writable: bool = False) -> Self | None:
        """The file of a log directory; None if it has none.

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
        """The newest mark that was published.

        Raises:
            DecodeError: neither slot is whole, or the file is not a mark file.

        """
        for _ in range(_ATTEMPTS):
            data = os.pread(self._fd, 2 * _SLOT_BYTES + 1, 0)
            if data == self._seen:
                return self._mark
            if self._take(data):
                return self._mark
        raise DecodeError(
            "neither slot is whole; without the file, the end of the last whole batch would count", path=str(self.path)
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
        """Show `mark` to readers in other processes. Not durable by itself: see `sync`.

        Raises:
            LogError: the disk refuses.

        """
        try:
            written = os.pwrite(self._fd, encode_slot(mark), self._next_slot * _SLOT_BYTES)
        except OSError as error:
            raise log_error(error, self.path, "cannot write") from error
        if written < _SLOT_BYTES:
            raise LogError(f"{self.path}: cannot write: the disk took {written} of {_SLOT_BYTES} bytes")
        self._mark, self._next_slot = mark, 1 - self._next_slot

    def sync(self) -> None:
        """Make what was published durable.

        Raises:
            LogError: the disk refuses.

        """
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise log_error(error, self.path, "cannot sync") from error

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def publish_durably(file: MarkFile, mark: Mark) -> None:
    """Publish a mark that a power loss must not take back. Raises LogError: the disk refuses."""
    file.publish(mark)
    file.sync()


def create_mark_file(directory: Path, mark: Mark) -> MarkFile:
    """Put a new mark file into a directory, also in the place of one that does not count any more, and open it.

    Raises:
        LogError: the disk is full, or refuses.

    """
    replace_durably(directory / MARK_FILE, encode_slot(mark) * 2)
    file = MarkFile.open(directory, writable=True)
    if file is None:
        raise LogError(f"{directory / MARK_FILE}: removed just after it was created")
    return file


def open_valid_mark_file(directory: Path, *, writable: bool = False) -> MarkFile | None:
    """The mark file of a directory, if there is one and nobody else wrote to the log since.

    Raises:
        DecodeError: the mark file or leader-epoch-checkpoint is damaged.
        LogError: one of them cannot be opened.

    """
    file = MarkFile.open(directory, writable=writable)
    if file is None:
        return None
    try:
        starts = read_epochs(directory)
        if not starts or file.read().epoch >= starts[-1].epoch:
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None
