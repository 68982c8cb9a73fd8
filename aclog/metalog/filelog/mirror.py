"""A mirror: a log directory with a byte-for-byte copy of a quorum's log."""

import os
import shutil
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

from attrs import evolve, field

from aclog.metalog.batches import BatchRun
from aclog.metalog.committed_log import Closeable, EpochStart
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog import files
from aclog.metalog.filelog.committed_mark import Mark, MarkFile, create_mark_file, publish_durably
from aclog.metalog.filelog.file_log import (
    PARTITION,
    PARTITION_FILE,
    SEGMENT_BYTES,
    Appender,
    Fsync,
    create_segment,
    recover_end,
)
from aclog.metalog.filelog.locks import LOCK_FILE, WriterLock
from aclog.metalog.filelog.verify import open_reader
from aclog.metalog.machine import disk
from aclog.metalog.values import define

# Appends a quorum's batches, of any epoch, as its leader wrote them (KafkaMetadataLog.appendAsFollower).


@define(eq=False)
class MirrorWriter:
    """The open log of a mirror; not thread-safe. `notes` has a note for a tail that was truncated at opening.

    Every batch it is given is committed in the quorum, so a whole batch that a crash leaves above the mark is kept.
    """

    directory: Path
    notes: tuple[str, ...]
    _marks: MarkFile
    _appender: Appender
    _epochs: tuple[EpochStart, ...]
    _end: files.LogEnd
    _failure: str = field(default="", init=False)

    @classmethod
    def open(cls, directory: Path, start: files.LogEnd, *, segment_bytes: int, fsync: Fsync) -> Self:
        """Continue a log that begins after `start`; the caller holds the writer's lock.

        Raises:
            LogError: it cannot be read or written.
            DecodeError: committed bytes are damaged.

        """
        with ExitStack() as stack:
            recovered = recover_end(directory, stack, segment_bytes, fsync)
            epoch = files.epoch_at(recovered.epochs, recovered.end_offset - 1)
            end = files.LogEnd(end_offset=recovered.end_offset, epoch=start.epoch if epoch is None else epoch)
            writer = cls(
                directory=directory,
                notes=recovered.notes,
                marks=recovered.marks,
                appender=recovered.appender,
                epochs=recovered.epochs,
                end=end,
            )
            stack.pop_all()
        return writer

    @property
    def end(self) -> files.LogEnd:
        """The end of the durable log."""
        return self._end

    def append(self, batches: bytes) -> int:
        """Append whole batches that follow the end, make them durable and publish them; return how many there are.

        A batch that begins a new epoch is written only after leader-epoch-checkpoint has that epoch.

        Raises:
            DecodeError: damaged or truncated; a ReplayError if they do not follow the end. Nothing is written.
            LogError: the disk is full or fails; the mirror must then be opened again.

        """
        if self._failure:
            raise LogError(self._failure)
        run = self._checked(batches)
        try:
            first = 0
            for last in _epoch_ends(run):
                self._append_epoch(run, first, last)
                first = last
        except BaseException as error:
            self._failure = f"{error}; no further appends are accepted until the mirror is opened again"
            raise
        return len(run)

    def _checked(self, batches: bytes) -> BatchRun:
        run = BatchRun.of(batches)
        if run.size != len(batches):
            raise DecodeError("a damaged or truncated batch", position=run.size, offset=run.end_offset)
        # A mirror writes what it was sent without decoding records, so everything that no CRC covers is checked first.
        run.check_follows(self._end.end_offset, self._end.epoch)
        if run.base_offset != self._end.end_offset:
            what = f"a batch with base offset {run.base_offset}: expected one that begins where the mirror ends"
            raise ReplayError(what, position=0, offset=self._end.end_offset)
        return run

    def _append_epoch(self, run: BatchRun, first: int, last: int) -> None:
        """Append the batches from number `first` to before `last`, all of one epoch."""
        epoch = int(run.epochs[first])
        if not self._epochs or epoch > self._epochs[-1].epoch:
            self._begin_epoch(epoch)
        while first < last:
            batches = [run.data[run.positions[n] : run.positions[n + 1]] for n in range(first, last)]
            count = self._appender.fits(batches)
            if not count:
                self._marks.sync()  # as in FileLog: after a power loss the mark must be in the last segment
                self._appender.roll(self._end.end_offset)
                count = self._appender.fits(batches)
            # As in FileLog: fsync before the mark, so that no reader sees what a crash could take back.
            self._appender.write(batches[:count])
            first += count
            self._publish(files.LogEnd(end_offset=int(run.ends[first - 1]), epoch=epoch))

    def _publish(self, end: files.LogEnd) -> None:
        self._marks.publish(Mark(epoch=end.epoch, offset=end.end_offset))
        self._end = end

    def _begin_epoch(self, epoch: int) -> None:
        """Enter a new epoch: the mark file first, so that it is never behind leader-epoch-checkpoint (see mark.py)."""
        start = self._end.end_offset
        publish_durably(self._marks, Mark(epoch=epoch, offset=start))
        epochs = (*self._epochs, EpochStart(epoch=epoch, start_offset=start))
        files.write_epochs(self.directory, epochs)
        self._epochs = epochs

    def close(self) -> None:
        """Make the mark durable and close the files."""
        with ExitStack() as stack:
            stack.callback(self._marks.close)
            stack.callback(self._appender.close)
            self._marks.sync()


def _epoch_ends(run: BatchRun) -> list[int]:
    """Return the number of the batch after the last one of each epoch."""
    changes = (run.epochs[1:] != run.epochs[:-1]).nonzero()[0] + 1
    return [*map(int, changes), len(run)]


# The start of a mirror's log: at offset 0, or after a snapshot; an older log is archived first.
#
# A mirror that has fallen behind finds that the quorum's log no longer reaches back to the mirror's end. Old segments
# and what follows the snapshot cannot form one log without a gap, so the old ones move to `archive-<end offset>`
# inside the mirror's directory, with their checkpoints, epochs and mark: a complete log directory of its own.
#
# A crash may interrupt the steps anywhere. The snapshot is in the directory before anything is moved;
# mirror.properties then records the new start, and from there on the next open completes what is missing. At any
# moment the directory contains the old log or what remains of it, with a checkpoint ahead of it, or the checkpoint
# alone, or the new log after it.


ARCHIVE_PREFIX = "archive-"


def archive_name(end_offset: int) -> str:
    """Return the name, inside the mirror's directory, of the archive of a log that ended at this offset."""
    return f"{ARCHIVE_PREFIX}{end_offset:020d}"


def add_checkpoint(directory: Path, snapshot: files.CheckpointFile) -> None:
    """Copy a snapshot into a directory under Kafka's name for it; it gets that name once it is complete and durable.

    Raises:
        LogError: the disk is full or fails.

    """
    path = directory / files.checkpoint_name(snapshot.end_offset, snapshot.epoch)
    partial = path.with_name(path.name + files.PARTIAL_SUFFIX)
    try:
        with (
            snapshot.path.open("rb") as source,
            disk.fdopen(disk.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, files.FILE_MODE), "wb") as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            disk.fsync(target.fileno())
        partial.replace(path)
        files.fsync_directory(directory)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise files.log_error(error, path, "cannot write") from error


def remove_unfinished_checkpoint(directory: Path) -> None:
    """Remove what `add_checkpoint` left unfinished when its process died.

    Raises:
        LogError: the disk fails.

    """
    try:
        for path in directory.glob(f"*{files.PARTIAL_SUFFIX}"):
            if files.parse_checkpoint_name(path.name.removesuffix(files.PARTIAL_SUFFIX)) is not None:
                path.unlink()
    except OSError as error:
        raise files.log_error(error, directory, "cannot remove an unfinished checkpoint") from error


def establish_start(directory: Path, start: files.LogEnd) -> None:
    """Ensure that the log of a mirror begins after `start`, completing an interrupted operation after a crash.

    Raises:
        LogError: the segments of the log are missing; or the disk is full or fails.

    """
    old = [file for file in files.list_segments(directory) if file.base_offset < start.end_offset]
    mark = _read_mark(directory)
    try:
        if mark is not None and mark.offset < start.end_offset:
            # The mark is below the new start: this directory has the old log, or the part that a crash left.
            _archive(directory, old, mark, start)
        if not files.list_segments(directory):
            _create_log(directory, start, mark)
    except OSError as error:
        raise files.log_error(error, directory, "cannot archive the old log") from error


def _read_mark(directory: Path) -> Mark | None:
    marks = MarkFile.open(directory)
    if marks is None:
        return None
    try:
        return marks.read()
    finally:
        marks.close()


def _archive(directory: Path, old: list[files.SegmentFile], mark: Mark, start: files.LogEnd) -> None:
    """Move the old log into its archive, oldest segment first: what remains is a log that a checkpoint covers."""
    if not mark.offset:  # nothing was mirrored
        for file in old:
            file.path.unlink()
        return
    archive = directory / archive_name(mark.offset)
    if archive.exists():
        if old:
            raise LogError(f"{archive}: already exists: cannot archive the old log")
        return
    # Collected under a `.part` name: only a complete archive gets its final name. A crash resumes here.
    partial = archive.with_name(archive.name + files.PARTIAL_SUFFIX)
    partial.mkdir(mode=files.DIRECTORY_MODE, exist_ok=True)
    if not (partial / files.EPOCHS_FILE).exists():
        _write_archive_files(directory, partial, old[0].base_offset if old else mark.offset, mark)
    for file in old:
        file.path.replace(partial / file.path.name)
    # After the segments: as long as any of them is here, the checkpoint that covers what precedes it must be too.
    for checkpoint in files.list_checkpoints(directory):
        if checkpoint.end_offset < start.end_offset:
            image = files.image_path(checkpoint.path)
            if image.exists():
                image.replace(partial / image.name)
            checkpoint.path.replace(partial / checkpoint.path.name)
    files.fsync_directory(partial)
    partial.replace(archive)
    files.fsync_directory(directory)


def _write_archive_files(directory: Path, archive: Path, base_offset: int, mark: Mark) -> None:
    """Write the archive's other files; leader-epoch-checkpoint last, since its presence means that all are there."""
    create_mark_file(archive, mark).close()
    files.replace_durably(archive / PARTITION_FILE, PARTITION)
    properties = files.read_mirror_properties(directory)
    if properties is not None:
        began = (
            checkpoint.epoch for checkpoint in files.list_checkpoints(directory) if checkpoint.end_offset == base_offset
        )
        start = files.LogEnd(end_offset=base_offset, epoch=next(began, 0))
        files.write_mirror_properties(archive, evolve(properties, start=start))
    files.replace_durably(archive / files.EPOCHS_FILE, (directory / files.EPOCHS_FILE).read_bytes())


def _create_log(directory: Path, start: files.LogEnd, mark: Mark | None) -> None:
    """Write the files of a log that begins after `start`, its segment last."""
    if mark is not None and mark.offset > start.end_offset:
        raise LogError(
            f"{directory}: a log was committed here up to offset {mark.offset}, but its segments are missing"
        )
    files.replace_durably(directory / PARTITION_FILE, PARTITION)
    files.write_epochs(directory, ())
    _publish_mark(directory, Mark(epoch=start.epoch, offset=start.end_offset))
    file = files.SegmentFile(base_offset=start.end_offset, path=directory / files.segment_name(start.end_offset))
    disk.close(create_segment(file))


def _publish_mark(directory: Path, mark: Mark) -> None:
    """Publish in place if there is a mark file, because readers have it open; else create it."""
    marks = MarkFile.open(directory, writable=True)
    if marks is None:
        create_mark_file(directory, mark).close()
        return
    try:
        marks.read()  # finds out which slot is the older one, the next to be written
        publish_durably(marks, mark)
    finally:
        marks.close()


# A mirror: a log directory with a byte-for-byte copy of a quorum's committed log, bound to its cluster id.


_LOG_START = files.LogEnd(end_offset=0, epoch=0)


@define(eq=False)
class MirrorLog(Closeable):
    """The one writer of a mirror; not thread-safe. Made by `open_mirror`.

    A new one is first bound to a cluster (`bind`), then started (`begin`), and grows by `append`.
    """

    directory: Path
    _lock: WriterLock
    _properties: files.MirrorProperties | None
    _segment_bytes: int
    _fsync: Fsync
    _writer: MirrorWriter | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def notes(self) -> tuple[str, ...]:
        """A note for the tail that was truncated at opening."""
        return () if self._writer is None else self._writer.notes

    @property
    def cluster_id(self) -> str | None:
        """The id of the mirrored cluster; None for a new mirror."""
        return None if self._properties is None else self._properties.cluster_id

    @property
    def end(self) -> files.LogEnd | None:
        """The end of the mirrored log; None before it has begun."""
        return None if self._writer is None else self._writer.end

    def bind(self, cluster_id: str) -> None:
        """Bind the mirror to a cluster, permanently.

        Raises:
            LogError: it is bound to another cluster; or the disk fails.

        """
        if self._properties is None:
            properties = files.MirrorProperties(cluster_id=cluster_id)
            files.write_mirror_properties(self.directory, properties)
            self._properties = properties
        if cluster_id != self._properties.cluster_id:
            raise LogError(f"{self.name}: mirrors cluster {self._properties.cluster_id}, not {cluster_id}")

    def begin(self, snapshot: files.CheckpointFile | None) -> Path | None:
        """Begin at offset 0, or after a snapshot, which is copied; return where the previous log is archived, if any.

        Raises:
            LogError: the mirror already reaches the snapshot; or the disk is full or fails.

        """
        if self._properties is None:
            raise LogError(f"{self.name}: not bound to a cluster yet")
        start = _LOG_START
        if snapshot is not None:
            start = files.LogEnd(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
        before = self.end
        if before is not None and start.end_offset <= before.end_offset:
            raise LogError(
                f"{self.name}: ends at offset {before.end_offset}: expected a snapshot with a higher end offset"
            )
        if snapshot is not None:
            # The snapshot comes first: from here on the state is complete, even if the old log is lost.
            add_checkpoint(self.directory, snapshot)
        self._close_writer()
        # The commit point: a crash before this write leaves the old log with a checkpoint beyond its end; after it,
        # the next open completes the switch.
        properties = evolve(self._properties, start=start)
        files.write_mirror_properties(self.directory, properties)
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
        """Return the first and the last mirrored batch; both empty without any.

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


def open_mirror(directory: Path | str, *, segment_bytes: int = SEGMENT_BYTES, fsync: Fsync = disk.sync) -> MirrorLog:
    """Open a mirror to continue where it ends, or create one in a directory that is empty or does not exist.

    An operation that a crash interrupted is completed: a torn tail is truncated (`notes`), an old log is archived.

    Raises:
        LockedError: another process writes to it.
        LogError: the directory has other content, belongs to a Kafka node, or cannot be read or written.
        DecodeError: mirrored data is damaged, with path, position and offset.

    """
    directory = Path(directory)
    try:
        files.make_directories(directory)
    except OSError as error:
        raise files.log_error(error, directory, "cannot create") from error
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


def _check_is_mirror_or_empty(directory: Path) -> files.MirrorProperties | None:
    properties = files.read_mirror_properties(directory)
    if properties is not None:
        return properties
    try:
        names = {path.name.removesuffix(files.TEMPORARY_SUFFIX) for path in directory.iterdir()}
    except OSError as error:
        raise files.log_error(error, directory, "cannot list") from error
    if others := names - {LOCK_FILE, files.MIRROR_FILE}:
        what = f"not a mirror (it contains {min(others)}, but no {files.MIRROR_FILE})"
        raise LogError(f"{directory}: {what}: expected a mirror of this cluster, or an empty directory")
    return None
