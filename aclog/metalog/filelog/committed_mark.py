"""The marks of committed offsets: `aclog.committed` and Kafka's `high-watermark` (replication-offset-checkpoint)."""

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from attrs import evolve, field

from aclog.metalog.batches import crc32c
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import files
from aclog.metalog.machine import disk
from aclog.metalog.text_forms import format_properties, parse_properties
from aclog.metalog.values import define, frozen

# The file `aclog.committed` beside `__cluster_metadata-0`: the cluster of a log, and the offset up to which it is
# committed.
#
# The log's own files do not show that the log is missing, or that an older copy of it was restored. A node creates the
# mark when it opens its log, before its first commit is acknowledged, and updates it afterwards; a writer refuses to
# open a log that does not contain the marked batch. The file is in Kafka's log directory, where Kafka ignores it.
#
# Properties as text: `version` 1, `cluster.id`, `end.offset`, `leader.epoch` (that of the record before the end),
# `batch.crc` (that of the batch before the end, if known), and at the end `crc32c`, eight hexadecimal digits, the
# CRC-32C of all bytes before that line.


COMMITTED_FILE = "aclog.committed"
_COMMENT = f"How far the log in {files.METADATA_DIRECTORY} was committed: a node refuses one that ends before."
_VERSION = "1"


@frozen(kw_only=True)
class CommittedMark:
    """The mark: everything below `end_offset` was committed, and the record before it has this epoch.

    `path` is the file, `directory` the log's directory. `batch_crc` is that of the batch before the end: logs of two
    clusters may have the same epochs. None if it is not known.
    """

    path: Path
    directory: Path
    cluster_id: str
    end_offset: int
    epoch: int
    batch_crc: int | None = None

    @classmethod
    def beside(
        cls, directory: Path, *, cluster_id: str, end_offset: int, epoch: int, batch_crc: int | None = None
    ) -> Self:
        """Return a mark for the log in a directory; nothing is written."""
        return cls(
            path=committed_path(directory),
            directory=directory,
            cluster_id=cluster_id,
            end_offset=end_offset,
            epoch=epoch,
            batch_crc=batch_crc,
        )

    def moved(self, end_offset: int, epoch: int, batch_crc: int | None = None) -> "CommittedMark":
        """Return the mark of the same log with another end."""
        return evolve(self, end_offset=end_offset, epoch=epoch, batch_crc=batch_crc)

    def write(self) -> None:
        """Replace the file durably.

        Raises:
            LogError: the disk is full or fails.

        """
        files.replace_durably(self.path, encode_committed(self))

    def check_exists(self) -> None:
        """Check that there is a log.

        Raises:
            LogError: there is no log; with the expected location, and how to start over.

        """
        if not self.directory.is_dir() or not files.list_segments(self.directory):
            raise self._refusal(
                f"no log, but {self.path} records one committed up to offset {self.end_offset}",
                "start over without it, remove the whole directory and format it again",
            )

    def check_end(self, end_offset: int, epochs: Sequence[EpochStart]) -> None:
        """Check that a log with this end and these epochs contains what was committed.

        Raises:
            LogError: it is shorter, or another log.

        """
        if end_offset < self.end_offset:
            raise self._refusal(
                f"the log ends at offset {end_offset}, but {self.path} records it as committed up to "
                f"{self.end_offset}: records are missing, as in an older copy",
                f"accept this log as it is, remove {self.path}",
            )
        epoch = files.epoch_at(epochs, self.end_offset - 1)
        # None: a Kafka node's retention has removed that part of the log since.
        if epoch not in {None, self.epoch}:
            raise self._refusal(
                f"the record of offset {self.end_offset - 1} is of leader epoch {epoch}, but {self.path} "
                f"records epoch {self.epoch}: another log",
                f"accept this log as it is, remove {self.path}",
            )

    def check_batch(self, crc: int | None) -> None:
        """Check that a log has the batch that was committed last; `crc` is None if none ends where that one did.

        Raises:
            LogError: it is another log.

        """
        if crc != self.batch_crc:
            raise self._refusal(
                f"the batch before offset {self.end_offset} is not the committed one that {self.path} records: "
                "another log",
                f"accept this log as it is, remove {self.path}",
            )

    def notes(self, end_offset: int) -> tuple[str, ...]:
        """Return the notes for a reader of a log with this end: empty if it contains the committed batches."""
        if end_offset >= self.end_offset:
            return ()
        ends = f"{self.directory}: ends at offset {end_offset}, but {self.path} records the log as committed up to"
        # After a power loss, which may undo the published mark, a node starts, and publishes the rest.
        older = "this state is older than the node's, and unless the rest is in the log, no node starts on it"
        return (f"{ends} {self.end_offset}: {older}",)

    def check_cluster(self, cluster_id: str) -> None:
        """Check that the log is this cluster's.

        Raises:
            LogError: it is another's.

        """
        if cluster_id != self.cluster_id:
            raise LogError(
                f"{self.path}: of cluster {self.cluster_id}, but meta.properties beside it is of {cluster_id}: "
                "expected files of one node"
            )

    def _refusal(self, what: str, otherwise: str) -> LogError:
        where = f"{self.directory}: {what}. Restore the newest log of cluster {self.cluster_id}, or mount its volume"
        return LogError(f"{where}; to {otherwise}")


def committed_path(directory: Path) -> Path:
    """Return the path of the mark for the log in a directory."""
    return _absolute(directory).parent / COMMITTED_FILE


def _absolute(directory: Path) -> Path:
    """Return the path without `..`, so that its last part is the directory's name."""
    return Path(os.path.abspath(directory))  # noqa: PTH100 - resolve() would read the disk and follow links


def read_committed(directory: Path) -> CommittedMark | None:
    """Return the mark of the log in a directory; None without one, or if the directory is not a node's.

    Raises:
        DecodeError: the file is damaged.
        LogError: it cannot be read.

    """
    # A copy of a log may lie beside the original under another name.
    if _absolute(directory).name != files.METADATA_DIRECTORY:
        return None
    path = committed_path(directory)
    data = files.read_small(path)
    if data is None:
        return None
    try:
        return decode_committed(data, directory)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def encode_committed(mark: CommittedMark) -> bytes:
    """Return the file's content."""
    values = {
        "version": _VERSION,
        "cluster.id": mark.cluster_id,
        "end.offset": str(mark.end_offset),
        "leader.epoch": str(mark.epoch),
    }
    if mark.batch_crc is not None:
        values["batch.crc"] = f"{mark.batch_crc:08x}"
    text = format_properties(values, comments=_COMMENT)
    return files.with_checksum(text)


def decode_committed(data: bytes, directory: Path) -> CommittedMark:
    """Parse the file's content.

    Raises:
        DecodeError: damaged, or another version.

    """
    text = files.without_checksum(data)
    if text is None:
        raise DecodeError(
            "damaged: the checksum does not match. Restore it; if it is removed, the log is accepted as it is"
        )
    values = parse_properties(text)
    if values.get("version") != _VERSION:
        raise DecodeError(f"version {values.get('version')}: expected {_VERSION}")
    return CommittedMark.beside(
        directory,
        cluster_id=values["cluster.id"],
        end_offset=int(values["end.offset"]),
        epoch=int(values["leader.epoch"]),
        batch_crc=int(values["batch.crc"], 16) if "batch.crc" in values else None,
    )


# The `high-watermark` file: how far a log that aclog writes is committed, for readers in other processes.
#
# Two slots of 512 bytes, written alternately in place: `AHWM`, version (int16, 1), leader epoch (int32), high-water
# mark (int64), zeros, and in the last four bytes the CRC-32C of the 508 before them. All big-endian. The newest valid
# slot by (epoch, mark) counts: a reader that meets a half-written slot still finds the previous mark in the other
# one. The epoch is the writer's, and it is published here before leader-epoch-checkpoint is updated: if that file has
# a later epoch, another writer, that is, a Kafka node, has written to the log since, and this file is stale.


MARK_FILE = "high-watermark"
_SLOT = struct.Struct(">4shiq")
_CRC = struct.Struct(">I")
_SLOT_BYTES = 512
_MAGIC = b"AHWM"
_MARK_VERSION = 1
_ATTEMPTS = 5


@frozen(kw_only=True, order=True)
class Mark:
    """The writer of leader epoch `epoch` has committed everything below `offset`. Later marks compare greater."""

    epoch: int
    offset: int


def encode_slot(mark: Mark) -> bytes:
    """Return the 512 bytes of a slot."""
    head = _SLOT.pack(_MAGIC, _MARK_VERSION, mark.epoch, mark.offset).ljust(_SLOT_BYTES - _CRC.size, b"\0")
    return head + _CRC.pack(crc32c(head))


def decode_slot(data: bytes) -> Mark | None:
    """Return the mark in a slot; None if its CRC does not match (damaged or half-written).

    Raises:
        DecodeError: a valid slot of another format or version.

    """
    head, crc = data[: -_CRC.size], data[-_CRC.size :]
    if len(data) != _SLOT_BYTES or _CRC.pack(crc32c(head)) != crc:
        return None
    magic, version, epoch, offset = _SLOT.unpack_from(head)
    if magic != _MAGIC or version != _MARK_VERSION:
        raise DecodeError(f"not a high-water mark of version {_MARK_VERSION}")
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
    _file: files.NamedFile = field(init=False)
    _last_data: bytes | None = field(init=False, default=None)
    _mark: Mark = field(init=False, default=Mark(epoch=-1, offset=-1))
    _next_slot: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._file = files.NamedFile.of(self._fd, self.path)

    @classmethod
    def open(cls, directory: Path, *, writable: bool = False) -> Self | None:
        """Open the file of a log directory; None if it has no such file.

        Raises:
            LogError: it cannot be opened.

        """
        path = directory / MARK_FILE
        try:
            return cls(path, disk.open(path, os.O_RDWR if writable else os.O_RDONLY))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise files.log_error(error, path, "cannot open") from error

    def read(self) -> Mark:
        """Return the newest published mark.

        Raises:
            DecodeError: neither slot is valid, or this is not a mark file.
            LogError: it cannot be read.

        """
        # A read can overlap a write, and even two when the writer is fast; one of the next reads finds a whole slot.
        for _ in range(_ATTEMPTS):
            # One byte more than the file should have, to notice a file of another size.
            try:
                data = disk.pread(self._fd, 2 * _SLOT_BYTES + 1, 0)
            except OSError as error:
                raise files.log_error(error, self.path, "cannot read") from error
            if data == self._last_data:
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
            self._next_slot, self._last_data = 1 - newest, data
        return bool(whole)

    def publish(self, mark: Mark) -> None:
        """Make `mark` visible to readers in other processes. Not durable by itself: see `sync`.

        Raises:
            LogError: the write fails.

        """
        try:
            # Always over the older slot, so the newest mark survives a write that a crash interrupts.
            written = disk.pwrite(self._fd, encode_slot(mark), self._next_slot * _SLOT_BYTES)
        except OSError as error:
            raise files.log_error(error, self.path, "cannot write") from error
        if written < _SLOT_BYTES:
            raise LogError(f"{self.path}: cannot write: {written} of {_SLOT_BYTES} bytes written")
        self._mark, self._next_slot = mark, 1 - self._next_slot

    def sync(self) -> None:
        """Make the published mark durable.

        Raises:
            LogError: fsync fails.

        """
        try:
            disk.fsync(self._fd)
        except OSError as error:
            raise files.log_error(error, self.path, "cannot sync") from error

    def check(self) -> None:
        """Check that readers in other processes see this file. Raises LogError: it was removed or replaced."""
        self._file.check()

    def close(self) -> None:
        """Close the file."""
        disk.close(self._fd)


def publish_durably(file: MarkFile, mark: Mark) -> None:
    """Publish a mark that a power loss must not undo. Raises LogError if the disk fails."""
    file.publish(mark)
    file.sync()


def create_mark_file(directory: Path, mark: Mark) -> MarkFile:
    """Create the mark file of a directory, replacing a stale one, and open it.

    Raises:
        LogError: the disk is full or fails.

    """
    files.replace_durably(directory / MARK_FILE, encode_slot(mark) * 2)
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
        starts = files.read_epochs(directory)
        # A later epoch in leader-epoch-checkpoint means that a Kafka node, which does not update the mark file, has
        # written to this log since.
        if not starts or file.read().epoch >= starts[-1].epoch:
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None
