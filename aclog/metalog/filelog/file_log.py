"""The writable file log, which cuts a torn tail when it opens a directory.

Opens or recovers a directory, appends by group commit, rolls segments, and removes those that a checkpoint covers.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from pathlib import Path

from attrs import evolve, field

from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.committed_log import Appended, Closeable, EpochStart
from aclog.metalog.control_records import ControlRecord, LeaderChange, LeaderChangeVoter, control_batch
from aclog.metalog.errors import LogError, UncertainError
from aclog.metalog.filelog import files
from aclog.metalog.filelog.committed_mark import (
    MARK_FILE,
    CommittedMark,
    Mark,
    MarkFile,
    create_mark_file,
    open_valid_mark_file,
    publish_durably,
    read_committed,
)
from aclog.metalog.filelog.locks import LOCK_FILE, WriterLock
from aclog.metalog.filelog.segments import Segments, Tail, find_tail
from aclog.metalog.filelog.verify import verify_checkpoint
from aclog.metalog.group_commit import MAX_BATCH_BYTES, GroupCommit, read_prebuilt_header
from aclog.metalog.machine import disk, threads
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define, frozen

# Appends batches to the last segment, and rolls to a new segment when it is full.
#
# All batches between two fsyncs go to one segment in one write. A segment is rolled only after everything in the
# previous one is durable and published, so only the last segment can have a torn tail.


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
    file: files.NamedFile
    """The segment's identity; replaced as a whole, so that any thread may check it."""

    @classmethod
    def open(cls, path: Path, size: int, *, segment_bytes: int, fsync: Fsync) -> "Appender":
        """Continue a segment at `size`, truncating what follows (a torn tail), and make all of it durable.

        Raises:
            LogError: the disk fails.

        """
        try:
            fd = disk.open(path, os.O_WRONLY | os.O_APPEND)
            try:
                # This cuts a torn tail. fsync also covers batches that the crashed writer wrote but did not sync.
                disk.ftruncate(fd, size)
                fsync(fd)
                file = files.NamedFile.of(fd, path)
            except OSError:
                disk.close(fd)
                raise
        except OSError as error:
            raise files.log_error(error, path, "cannot open for writing") from error
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
            there = disk.fstat(self._fd).st_size
            if there != self._size:
                what = f"{there} bytes long, but this writer left it at {self._size}: another process writes to it"
                raise LogError(f"{self._path}: {what}; nothing is appended")
            self._write_durably(data)
        except OSError as error:
            raise files.log_error(error, self._path, "cannot append") from error
        self._size += len(data)

    def _write_durably(self, data: bytes) -> None:
        """Write and fsync; if that fails, truncate what was written, so that recovery never takes it for committed."""
        try:
            files.write_all(self._fd, data)
            self._fsync(self._fd)
            # After the fsync, so that no record is acknowledged that the next opener of the log would not find.
            self.file.check()
        except BaseException as error:
            # Recovery keeps whole batches above the mark; these will be reported as failed, so they must go now.
            try:
                disk.ftruncate(self._fd, self._size)
            except OSError as again:
                what = f"{error}; the records may reappear, because truncating them failed too: {again.strerror}"
                raise UncertainError(f"{self._path}: cannot append: {what}") from error
            raise

    def roll(self, base_offset: int) -> files.SegmentFile:
        """Begin a new segment whose first record is `base_offset`.

        Raises:
            LogError: the disk is full or fails, or the last segment no longer has its name.

        """
        self.file.check()  # otherwise the new one could be created in another directory of that name
        file = files.SegmentFile(base_offset=base_offset, path=self.directory / files.segment_name(base_offset))
        fd = create_segment(file)
        disk.close(self._fd)
        self._fd, self._path, self._size = fd, file.path, 0
        self.file = files.NamedFile.of(fd, file.path)
        return file

    def close(self) -> None:
        """Close the file."""
        disk.close(self._fd)


def create_segment(file: files.SegmentFile) -> int:
    """Create an empty segment, its name durable; return the open file.

    Raises:
        LogError: the disk is full or fails; or the file exists.

    """
    try:
        fd = disk.open(file.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, files.FILE_MODE)
        try:
            files.fsync_directory(file.path.parent)
        except OSError:
            disk.close(fd)
            raise
    except OSError as error:
        raise files.log_error(error, file.path, "cannot create") from error
    return fd


# Creates a log directory, all but its first epoch, in an order that a crash may interrupt anywhere.


PARTITION_FILE = "partition.metadata"
PARTITION = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
_FORMATTED = (0, 0)
"""End offset and epoch of the checkpoint that `kafka-storage format` writes for a log that does not exist yet."""
_BEFORE_SEGMENT = {LOCK_FILE, MARK_FILE, files.EPOCHS_FILE, files.QUORUM_STATE_FILE, PARTITION_FILE}


def create_directory(directory: Path) -> None:
    """Ensure that the directory exists and contains a log, or only what an interrupted creation leaves behind.

    Raises:
        LogError: it contains something else, or cannot be created.

    """
    try:
        files.make_directories(directory)
        names = {path.name.removesuffix(files.TEMPORARY_SUFFIX) for path in directory.iterdir()}
    except OSError as error:
        raise files.log_error(error, directory, "cannot create") from error
    others = {name for name in names - _BEFORE_SEGMENT if files.parse_checkpoint_name(name) != _FORMATTED}
    if others and not files.list_segments(directory):
        raise LogError(f"{directory}: cannot create a log here: it contains {min(others)}, but no segment")


def create_log(directory: Path) -> None:
    """Write the files of an empty log, its segment last: before it exists, nothing here looks like a log.

    Raises:
        LogError: a log was committed here, but its segments are gone; or the disk fails.

    """
    marks = MarkFile.open(directory)
    if marks is not None:
        mark = marks.read()
        marks.close()
        # A new log at offset 0 would silently replace committed records that an operator may still restore.
        if mark.offset > 0:
            raise LogError(
                f"{directory}: a log was committed here up to offset {mark.offset}, but its segments are missing"
            )
    # Every file before the segment can be rewritten by the next attempt if this one is interrupted.
    create_mark_file(directory, Mark(epoch=0, offset=0)).close()
    files.replace_durably(directory / PARTITION_FILE, PARTITION)
    files.write_epochs(directory, ())
    disk.close(create_segment(files.SegmentFile(base_offset=0, path=directory / files.segment_name(0))))


# Segment retention: removes segments that a checkpoint covers, in an order that a crash may interrupt anywhere.
#
# Mirrors Kafka's `KafkaMetadataLog.deleteBeforeSnapshot` and `UnifiedLog.deleteOldSegments`. Beginning with the
# oldest, each segment is first renamed to `.deleted`, which takes it out of the log, and unlinked only once the
# renames are durable: a crash leaves a log that begins at a segment boundary and has no gap.


def remove_segments_below(segments: Segments, offset: int) -> int:
    """Remove the segments entirely below `offset`, but never the last one; return the new log start offset.

    Raises:
        LogError: no valid checkpoint reaches the new start, so state would be lost; or the disk fails.

    """
    segment_files = segments.files()
    count = sum(1 for after in segment_files[1:] if after.base_offset <= offset)
    if not count:
        return segment_files[0].base_offset
    start = segment_files[count].base_offset
    if not _is_covered(segments, start):
        raise LogError(
            f"{segments.directory}: no valid checkpoint covers the log below offset {start}: segments are kept"
        )
    try:
        # Oldest first: the renames may reach the disk only in part, and the remaining segments must be contiguous.
        for _ in range(count):
            segments.rename_first(files.DELETED_SUFFIX)
        files.fsync_directory(segments.directory)
    except OSError as error:
        raise files.log_error(error, segments.directory, "cannot remove segments") from error
    unlink_deleted_segments(segments.directory)
    return start


def _is_covered(segments: Segments, start: int) -> bool:
    """Return whether a valid checkpoint covers everything below `start`; the newest is tried first."""
    log_start = segments.start_offset()
    for checkpoint in reversed(files.list_checkpoints(segments.directory)):
        if checkpoint.end_offset < start:
            return False
        if not any(verify_checkpoint(checkpoint, segments.epochs, log_start)):
            return True
    return False


def check_recoverable(segments: Segments) -> None:
    """Check that all files from which the next start would read the state exist. Contents are not read.

    Raises:
        LogError: a segment, leader-epoch-checkpoint, or every checkpoint that covers what precedes the log is gone.

    """
    segments.check()
    directory, start = segments.directory, segments.start_offset()
    if not (directory / files.EPOCHS_FILE).exists():
        raise LogError(f"{directory / files.EPOCHS_FILE}: removed while the log is open: restore it")
    if start and all(checkpoint.end_offset < start for checkpoint in files.list_checkpoints(directory)):
        raise LogError(
            f"{directory}: the log begins at offset {start}, and the checkpoints that cover what precedes it were "
            "removed while the log is open: restore one"
        )


def unlink_deleted_segments(directory: Path) -> None:
    """Unlink segments renamed for removal, now or by a process that died before it could.

    Raises:
        LogError: the disk fails.

    """
    try:
        for path in files.list_deleted_segments(directory):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise files.log_error(error, directory, "cannot remove segments") from error


# The writable file log: appends by group commit, reads up to its own high-water mark, and retention.


@define(eq=False)
class FileLog(Closeable):
    """The one writer of a log directory, and a reader of it (aclog.metalog.committed_log.Log). Made by `open_log`.

    Thread-safe. `notes` reports what recovery did when it was opened (a torn tail that was truncated).
    """

    directory: Path
    notes: tuple[str, ...]
    leader_epoch: int
    _lock: WriterLock
    _marks: MarkFile
    _segments: Segments
    _appender: Appender
    _high_watermark: int
    _last_crc: int | None = None
    """That of the batch before the high-water mark, if known; both change together."""
    _committed: CommittedMark | None = None
    _keeping: "threading.Lock" = field(init=False, factory=threads.lock)
    _published: "threading.Condition" = field(init=False, factory=threads.condition)
    _closed: bool = field(init=False, default=False)
    _committer: GroupCommit = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._committer = GroupCommit(self.name, self._high_watermark, self._commit)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    def start_offset(self) -> int:
        """Return the first offset that can still be read."""
        return self._segments.start_offset()

    def high_watermark(self) -> int:
        """Return the high-water mark: everything below is fsynced and published to readers in other processes."""
        return self._high_watermark

    def end_offset(self) -> int:
        """Return the offset of the next record to be appended."""
        return self._committer.end_offset

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch (aclog.metalog.committed_log.Log.append)."""
        batch = build_batch(values, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(values), self.leader_epoch)

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a caller-built batch unchanged (aclog.metalog.committed_log.Log.append_batch)."""
        header = read_prebuilt_header(self.name, batch, self.leader_epoch)
        return self._committer.submit(batch, header.record_count, self.leader_epoch, base_offset=header.base_offset)

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; raises what `append` raises."""
        batch = control_batch(*records, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(records), self.leader_epoch)

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that contains `offset` (see LogReader.read)."""
        self._check_open()
        start, mark = self.start_offset(), self._high_watermark
        if not start <= offset <= mark:
            raise LogError(f"{self.name}: offset {offset} is outside of {start}..{mark}, log start to high-water mark")
        return b"" if offset == mark else self._segments.read(offset, mark, max_bytes)

    def read_local(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Read as `read`: all of the log is in local files (aclog.metalog.committed_log.ServedLog)."""
        return self.read(offset, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        """Block until the high-water mark is above `offset` (aclog.metalog.committed_log.LogReader.wait)."""
        with self._published:
            most = min(timeout, threading.TIMEOUT_MAX)
            self._published.wait_for(lambda: self._high_watermark > offset or self._closed, most)
            return self._high_watermark > offset

    def delete_segments_below(self, offset: int) -> int:
        """Remove segments entirely below `offset`, the end offset of a checkpoint; return the new start offset.

        The last segment always stays. A crash half-way leaves a log that begins where a removed segment ended.

        Raises:
            LogError: no checkpoint in the directory reaches `offset`, the disk fails, or the log is closed.

        """
        self._check_open()
        return remove_segments_below(self._segments, min(offset, self._high_watermark))

    def keep_mark(self, cluster_id: str | None = None) -> None:
        """Write the committed mark if it is behind; given a cluster's id, create a missing one.

        It never promises more than what is fsynced, and costs the commits nothing: the owner calls this once a second.

        Raises:
            LogError: it is another cluster's, or the disk fails.

        """
        with self._keeping:
            if not self._closed:  # else another writer may have moved the log and the mark on
                self._keep_mark(cluster_id)

    def _keep_mark(self, cluster_id: str | None) -> None:
        before, epoch = self._committed, self.leader_epoch
        with self._published:
            end, crc = self._high_watermark, self._last_crc
        if before is not None and cluster_id is not None:
            before.check_cluster(cluster_id)
        if before is None and cluster_id is not None:
            mark = CommittedMark.beside(
                self.directory, cluster_id=cluster_id, end_offset=end, epoch=epoch, batch_crc=crc
            )
        elif before is None or (before.end_offset == end and before.path.exists()):
            return
        else:
            mark = before.moved(end, epoch, crc)
        mark.write()
        self._committed = mark

    def check_files(self) -> None:
        """Check that the files which are open are the files which are named.

        Each commit checks the segment that it goes to; this finds the rest, and what happens to a log without commits.

        Raises:
            LogError: a file or a directory was removed, renamed, replaced or mounted over.

        """
        if self._closed:
            return
        self._lock.check()
        self._marks.check()
        self._appender.file.check()
        check_recoverable(self._segments)

    def abandon(self, why: str) -> None:
        """Fail all appends that wait, and all later ones (GroupCommit.abandon)."""
        self._committer.abandon(why)

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"{self.name}: closed")

    def close(self) -> None:
        """Commit what is queued, then close files and release the locks; closing twice is allowed."""
        self._committer.close()
        with self._published:
            if self._closed:
                return
            self._closed = True
            self._published.notify_all()
        # Callbacks run in reverse order: the locks go last, when no file is open for writing any more.
        with ExitStack() as stack:
            stack.callback(self._lock.close)
            stack.callback(self._marks.close)
            stack.callback(self._appender.close)
            self._marks.sync()
            if self._committer.failure is None:  # else the mark might be written into another directory
                with self._keeping:
                    self._keep_mark(None)

    def _commit(self, batches: Sequence[bytes], ends: Sequence[int]) -> int:
        """Write as many of `batches` as fit into one segment, make them durable, publish; runs in the commit thread."""
        count = self._appender.fits(batches)
        if not count:
            # Commits leave the mark file in the page cache. Before rolling it is fsynced, so that after a power loss
            # the mark still points into the last segment, the only one that can have a torn tail.
            self._marks.sync()
            self._segments.add(self._appender.roll(self._high_watermark))
            count = self._appender.fits(batches)
        # fsync first, then the mark file, then our own readers: no reader sees a batch that a crash could revoke.
        self._appender.write(batches[:count])
        self._publish(ends[count - 1])
        with self._published:
            self._high_watermark, self._last_crc = ends[count - 1], read_header(batches[count - 1]).crc
            self._published.notify_all()
        return count

    def _publish(self, offset: int) -> None:
        try:
            self._marks.publish(Mark(epoch=self.leader_epoch, offset=offset))
        except LogError as error:
            raise UncertainError(f"{error}; the last append is in the log and may reappear") from error


# Recovery of the end of a log that is opened for writing: the torn tail is truncated, the rest made durable.
#
# Only the holder of the writer's lock runs this, so no other process ever truncates a log.


@frozen(kw_only=True)
class RecoveredEnd:
    """A log directory whose end is known and durable, with the open files of its last segment and mark."""

    marks: MarkFile
    segments: Segments
    appender: Appender
    epochs: tuple[EpochStart, ...]
    latest_epoch: int
    end_offset: int
    last_crc: int | None
    """That of the last batch; None if it was not read, because the last segment is empty."""
    notes: tuple[str, ...]


def recover_end(
    directory: Path, stack: ExitStack, segment_bytes: int, fsync: Fsync, *, committed: CommittedMark | None = None
) -> RecoveredEnd:
    """Find the end, truncate a torn tail, make the rest durable, and only then publish its end as the mark.

    Whole batches above the published mark are kept. They are in the order in which offsets were assigned, and no caller
    got an error for them: a failed write is truncated at once, and callers that waited when the process died got no
    response. Truncating them could lose acknowledged records, since a power loss may leave an old mark behind. Nothing
    is changed if the log does not contain the batch of `committed`.
    """
    epochs = files.read_epochs(directory)
    if epochs is None:
        raise LogError(f"{directory / files.EPOCHS_FILE}: missing: nothing can be appended without the leader epochs")
    marks = open_valid_mark_file(directory, writable=True)
    mark = stack.enter_context(closing(marks)).read() if marks else None
    segments = Segments.open(directory, epochs)
    tail = find_tail(segments.files(), mark.offset if mark else None, epochs)
    if committed is not None:
        committed.check_end(tail.end_offset, epochs)
        _check_batch(committed, segments, tail)
    # A crash during retention leaves renamed segments; they are no longer part of the log.
    unlink_deleted_segments(directory)
    # This truncates the torn tail and fsyncs the segment. The mark below must not be published before: readers would
    # be shown batches that a power loss could still take away.
    appender = Appender.open(tail.path, tail.position, segment_bytes=segment_bytes, fsync=fsync)
    stack.callback(appender.close)
    # An epoch is entered in leader-epoch-checkpoint before its first batch is written: one without any batch is
    # dropped here, but its number counts for `latest`, so that it is never used again.
    begun = tuple(start for start in epochs if start.start_offset < tail.end_offset)
    latest = max([0, *(start.epoch for start in epochs), mark.epoch if mark else 0])
    if marks is None:
        marks = stack.enter_context(closing(create_mark_file(directory, Mark(epoch=latest, offset=tail.end_offset))))
    else:
        publish_durably(marks, Mark(epoch=latest, offset=tail.end_offset))
    return RecoveredEnd(
        marks=marks,
        segments=segments,
        appender=appender,
        epochs=begun,
        latest_epoch=latest,
        end_offset=tail.end_offset,
        last_crc=tail.last_crc,
        notes=_notes(tail),
    )


def _check_batch(committed: CommittedMark, segments: Segments, tail: Tail) -> None:
    end = committed.end_offset
    # At or below the start: a Kafka node's retention has removed that part of the log since.
    if committed.batch_crc is None or end <= segments.start_offset():
        return
    if end == tail.end_offset and tail.last_crc is not None:
        committed.check_batch(tail.last_crc)
        return
    header = read_header(segments.read(end - 1, tail.end_offset, 1))
    committed.check_batch(header.crc if header.end_offset == end else None)


def _notes(tail: Tail) -> tuple[str, ...]:
    if not tail.torn_bytes:
        return ()
    where = f"{tail.path}: byte {tail.position}, offset {tail.end_offset}"
    return (f"{where}: truncated a torn tail of {tail.torn_bytes} bytes ({tail.problem})",)


# Opens a log directory for writing: creates it, recovers from a crash, continues or begins a leader epoch.
#
# All of this happens under the writer's lock.


def open_log(
    directory: Path | str,
    *,
    create: bool = False,
    force: bool = False,
    new_epoch: bool = False,
    node_id: int = 1,
    timestamp: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    fsync: Fsync = disk.sync,
) -> FileLog:
    """Open a log directory for writing; this process is its only writer until the log is closed.

    `create` makes a missing log: its epoch 1 begins with a LeaderChange of `node_id`. An existing log stays in
    its epoch, or begins the next one with `new_epoch`; an epoch begins at `timestamp` (ms since 1970, default now).
    `force` is required next to Kafka's meta.properties. Bytes above the high-water mark that are not a whole
    batch are truncated; whole batches there are kept (`log.notes`). A node's log must contain what its committed mark
    records (committed_mark.py).

    Raises:
        LockedError: another process writes to it, or a Kafka node is running on it.
        LogError: there is no log, or it is a mirror, or cannot be written; or committed records are missing.
        DecodeError: committed bytes are damaged, with path, position and offset.
        EncodeError: a node id or a timestamp that the format cannot represent.

    """
    directory = Path(directory)
    files.refuse_mirror(directory)
    if committed := read_committed(directory):
        committed.check_exists()
    if create:
        create_directory(directory)
    else:
        files.find_segments(directory)
    with ExitStack() as stack:
        # The lock comes before anything is read: another writer could still be changing the tail.
        lock = stack.enter_context(closing(WriterLock.acquire(directory, force=force)))
        # Checked again under the lock: another process may have created the log, or written to it, in the meantime.
        committed = read_committed(directory)
        if create and not files.list_segments(directory):
            create_log(directory)
        recovered = recover_end(directory, stack, segment_bytes, fsync, committed=committed)
        if new_epoch or _has_no_leader(directory, recovered):
            begun = current_time_ms() if timestamp is None else timestamp
            recovered = _begin_epoch(directory, recovered, node_id, begun)
        log = FileLog(
            directory=directory,
            notes=recovered.notes,
            leader_epoch=recovered.epochs[-1].epoch,
            lock=lock,
            marks=recovered.marks,
            segments=recovered.segments,
            appender=recovered.appender,
            high_watermark=recovered.end_offset,
            last_crc=recovered.last_crc,
            committed=committed,
        )
        stack.pop_all()
    return log


def _has_no_leader(directory: Path, recovered: RecoveredEnd) -> bool:
    """Return whether no writer of this directory led its last epoch: it is new, or was a mirror."""
    begun = recovered.epochs and recovered.epochs[-1].epoch == recovered.latest_epoch
    return not begun or files.read_quorum_state(directory) is None


def _begin_epoch(directory: Path, recovered: RecoveredEnd, node_id: int, timestamp: int) -> RecoveredEnd:
    """Begin the next leader epoch: update the mark file first, so that it is never behind leader-epoch-checkpoint."""
    state = files.read_quorum_state(directory) or files.QuorumState(
        leader_id=node_id, leader_epoch=0, voters=(node_id,)
    )
    epoch = max(recovered.latest_epoch, state.leader_epoch) + 1
    leader = state.leader_id if state.leader_id >= 0 else node_id
    voters = tuple(LeaderChangeVoter(voter_id=voter) for voter in state.voters or (leader,))
    change = LeaderChange(leader_id=leader, voters=voters, granting_voters=(LeaderChangeVoter(voter_id=leader),))
    batch = control_batch(change, base_offset=recovered.end_offset, leader_epoch=epoch, timestamp=timestamp)
    # The order matters. If leader-epoch-checkpoint had an epoch that the mark file lacks, the mark would look stale
    # (as if Kafka had led since) and be ignored. A crash between any two of these steps leaves an epoch without
    # batches, which the next open skips.
    publish_durably(recovered.marks, Mark(epoch=epoch, offset=recovered.end_offset))
    files.write_quorum_state(directory, state.led_by(leader, epoch))
    epochs = (*recovered.epochs, EpochStart(epoch=epoch, start_offset=recovered.end_offset))
    files.write_epochs(directory, epochs)
    recovered.segments.epochs = epochs
    recovered.appender.write([batch])
    publish_durably(recovered.marks, Mark(epoch=epoch, offset=recovered.end_offset + 1))
    crc = read_header(batch).crc
    return evolve(recovered, epochs=epochs, latest_epoch=epoch, end_offset=recovered.end_offset + 1, last_crc=crc)
