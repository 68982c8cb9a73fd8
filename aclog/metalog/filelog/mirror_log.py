"""A mirror: a log directory with a byte-for-byte copy of a quorum's committed log, bound to its cluster id."""

import os
from contextlib import ExitStack, closing
from pathlib import Path

from attrs import define, evolve, field

from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import LogError
from aclog.metalog.filelog.appender import SEGMENT_BYTES, Fsync
from aclog.metalog.filelog.file_names import CheckpointFile
from aclog.metalog.filelog.filesystem import DIRECTORY_MODE, TEMPORARY_SUFFIX, fsync_directory, log_error
from aclog.metalog.filelog.locks import LOCK_FILE, WriterLock
from aclog.metalog.filelog.mirror_properties import (
    MIRROR_FILE,
    LogEnd,
    MirrorProperties,
    read_mirror_properties,
    write_mirror_properties,
)
from aclog.metalog.filelog.mirror_start import (
    add_checkpoint,
    archive_name,
    establish_start,
    remove_unfinished_checkpoint,
)
from aclog.metalog.filelog.mirror_writer import MirrorWriter
from aclog.metalog.filelog.reader import open_reader

_LOG_START = LogEnd(end_offset=0, epoch=0)


@define(eq=False)
class MirrorLog(Closeable):
    """The one writer of a mirror; not thread-safe. Made by `open_mirror`.

    A new one is first bound to a cluster (`bind`), then started (`begin`), and grows by `append`.
    """

    directory: Path
    _lock: WriterLock
    _properties: MirrorProperties | None
    _segment_bytes: int
    _fsync: Fsync
    _writer: MirrorWriter | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was truncated when it was opened."""
        return () if self._writer is None else self._writer.notes

    @property
    def cluster_id(self) -> str | None:
        """The id of the mirrored cluster; None for a new mirror."""
        return None if self._properties is None else self._properties.cluster_id

    @property
    def end(self) -> LogEnd | None:
        """The end of the mirrored log; None before it has begun."""
        return None if self._writer is None else self._writer.end

    def bind(self, cluster_id: str) -> None:
        """Bind the mirror to a cluster, permanently.

        Raises:
            LogError: it is bound to another cluster; or the disk fails.

        """
        if self._properties is None:
            properties = MirrorProperties(cluster_id=cluster_id)
            write_mirror_properties(self.directory, properties)
            self._properties = properties
        if cluster_id != self._properties.cluster_id:
            raise LogError(f"{self.name}: mirrors cluster {self._properties.cluster_id}, not {cluster_id}")

    def begin(self, snapshot: CheckpointFile | None) -> Path | None:
        """Begin at offset 0, or after a snapshot, which is copied; return where the previous log is archived, if any.

        Raises:
            LogError: the mirror already reaches the snapshot; or the disk is full or fails.

        """
        if self._properties is None:
            raise LogError(f"{self.name}: not bound to a cluster yet")
        start = _LOG_START
        if snapshot is not None:
            start = LogEnd(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
        before = self.end
        if before is not None and start.end_offset <= before.end_offset:
            raise LogError(
                f"{self.name}: ends at offset {before.end_offset}: expected a snapshot with a higher end offset"
            )
        if snapshot is not None:
            # The snapshot comes first: from here on the state is complete, whatever happens to the old log.
            add_checkpoint(self.directory, snapshot)
        self._close_writer()
        # The commit point: a crash before this write leaves the old log with a checkpoint ahead of it; after it, the
        # next open completes the switch.
        properties = evolve(self._properties, start=start)
        write_mirror_properties(self.directory, properties)
        self._properties = properties
        self.open_writer()
        return self.directory / archive_name(before.end_offset) if before and before.end_offset else None

    def open_writer(self) -> None:
        """Open the log for writing, if it has begun. Raises what `open_mirror` raises."""
        if self._properties is None or self._properties.start is None:
            return
        start = self._properties.start
        establish_start(self.directory, start)
        self._writer = MirrorWriter.open(self.directory, start, segment_bytes=self._segment_bytes, fsync=self._fsync)

    def outer_batches(self) -> tuple[bytes, bytes]:
        """Return the first and the last mirrored batch; both empty if there is none.

        Raises:
            LogError: they cannot be read.
            DecodeError: one is damaged.

        """
        if self.end is None:
            return b"", b""
        with open_reader(self.directory) as reader:
            start, last = reader.start_offset(), self.end.end_offset - 1
            return (b"", b"") if last < start else (reader.read(start, 1), reader.read(last, 1))

    def append(self, batches: bytes) -> int:
        """Append whole committed batches that follow the end, durably; return how many (MirrorWriter.append)."""
        if self._writer is None:
            raise LogError(f"{self.name}: closed, or its log has not begun")
        return self._writer.append(batches)

    def close(self) -> None:
        """Close files and release the lock; closing twice is allowed."""
        with ExitStack() as stack:
            stack.callback(self._lock.close)
            self._close_writer()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def open_mirror(directory: Path | str, *, segment_bytes: int = SEGMENT_BYTES, fsync: Fsync = os.fsync) -> MirrorLog:
    """Open a mirror to continue where it ends, or create one in a directory that is empty or does not exist.

    Whatever a crash interrupted is completed: a torn tail is truncated (`notes`), an old log is archived.

    Raises:
        LockedError: another process writes to it.
        LogError: the directory has other content, belongs to a Kafka node, or cannot be read or written.
        DecodeError: mirrored data is damaged, with path, position and offset.

    """
    directory = Path(directory)
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        fsync_directory(directory.parent)
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
    with ExitStack() as stack:
        _check_is_mirror_or_empty(directory)  # before a lock file is created in a foreign directory
        lock = stack.enter_context(closing(WriterLock.acquire(directory, force=False)))
        remove_unfinished_checkpoint(directory)
        properties = _check_is_mirror_or_empty(directory)  # again, now under the lock
        mirror = MirrorLog(
            directory=directory, lock=lock, properties=properties, segment_bytes=segment_bytes, fsync=fsync
        )
        mirror.open_writer()
        stack.pop_all()
    return mirror


def _check_is_mirror_or_empty(directory: Path) -> MirrorProperties | None:
    found = read_mirror_properties(directory)
    if found is not None:
        return found
    try:
        names = {path.name.removesuffix(TEMPORARY_SUFFIX) for path in directory.iterdir()}
    except OSError as error:
        raise log_error(error, directory, "cannot list") from error
    if others := names - {LOCK_FILE, MIRROR_FILE}:
        what = f"not a mirror (it contains {min(others)}, but no {MIRROR_FILE})"
        raise LogError(f"{directory}: {what}: expected a mirror of this cluster, or an empty directory")
    return None
