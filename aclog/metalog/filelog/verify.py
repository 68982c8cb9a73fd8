"""Reading a log directory without its locks, and checking a whole one or a checkpoint."""

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path

from attrs import field

from aclog.metalog.batches import decode_batch, read_header
from aclog.metalog.committed_log import Closeable, EpochStart
from aclog.metalog.control_records import SnapshotFooter, SnapshotHeader, decode_control
from aclog.metalog.errors import ConfigError, DecodeError, LogError, ReplayError, is_newer_kafka
from aclog.metalog.filelog import files
from aclog.metalog.filelog.committed_mark import (
    MARK_FILE,
    CommittedMark,
    Mark,
    MarkFile,
    decode_slots,
    open_valid_mark_file,
    read_committed,
)
from aclog.metalog.filelog.meta_properties import read_meta_properties
from aclog.metalog.filelog.segments import (
    BULK_WINDOW,
    WINDOW,
    Epochs,
    Segments,
    Tail,
    check_records,
    find_tail,
    next_whole_batch,
    proved_run,
    walk_batches,
)
from aclog.metalog.machine import clock, disk, threads
from aclog.metalog.values import define, frozen

# Checks a checkpoint file: every batch valid, offsets from 0 on, the epoch of its name, header, footer, every record.
#
# Mirrors what Kafka's `RecordsSnapshotReader` expects of a snapshot.


def verify_checkpoint(checkpoint: files.CheckpointFile, epochs: Epochs, log_start: int) -> Iterator[DecodeError]:
    """Yield everything that is wrong with a checkpoint next to a log with these epochs that begins at `log_start`.

    Raises:
        LogError: the file cannot be read.

    """
    path = str(checkpoint.path)
    end = checkpoint.end_offset
    expected = files.epoch_at(epochs, end - 1) if epochs and end > log_start else None
    if expected not in {None, checkpoint.epoch}:
        yield DecodeError(f"named for epoch {checkpoint.epoch}, but offset {end - 1} has epoch {expected}", path=path)
    try:
        with _opened(checkpoint.path) as fd:
            _check_frame(fd, checkpoint)
    except DecodeError as error:
        yield error.at(path=path)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a file for reading; an error of the disk in the `with` is a LogError with its path."""
    try:
        fd = disk.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            disk.close(fd)
    except OSError as error:
        raise files.log_error(error, path, "cannot read") from error


def _check_frame(fd: int, checkpoint: files.CheckpointFile) -> None:
    # All batches of a checkpoint have the epoch of its name, so the same walk serves as for segments.
    epochs = (EpochStart(epoch=checkpoint.epoch, start_offset=0),)
    first = last = None
    for position, header in walk_batches(fd, checkpoint.path, position=0, offset=0, epochs=epochs):
        place = (position, header.size, header.is_control)
        first, last = first or place, place
        problem = check_records(fd, checkpoint.path, position, header)
        if problem is not None:
            raise problem
    if first is None or last is None:
        raise DecodeError("empty: expected at least a SnapshotHeader and a SnapshotFooter", position=0)
    _expect(fd, checkpoint.path, first, SnapshotHeader, number=0)
    _expect(fd, checkpoint.path, last, SnapshotFooter, number=-1)


def _expect(
    fd: int, path: Path, place: tuple[int, int, bool], kind: type[SnapshotHeader | SnapshotFooter], number: int
) -> None:
    position, size, is_control = place
    what = f"expected a control batch with a {kind.__name__} as the {'last' if number else 'first'} batch"
    if not is_control:
        raise DecodeError(what, path=str(path), position=position)
    record = decode_batch(files.read_at(fd, position, size)).records[number]
    if not isinstance(decode_control(record.key or b"", record.value), kind):
        raise DecodeError(what, path=str(path), position=position)


# Checks a whole log directory and reports what is wrong, and where. Nothing is locked or changed.
#
# Checked are every batch below the high-water mark (or, in a directory that Kafka wrote, to the end of the last
# segment): length, magic, CRC, offset continuity, leader epoch, every record; segment names against their content;
# both slots of the mark file; leader-epoch-checkpoint and `aclog.committed` against the batches; and the checkpoints.
# Bytes above the mark are not part of the log: a writer may be appending there, and the next one truncates a torn tail.
# But what is neither that nor a continuation, such as a segment of another copy, keeps the next writer from opening it.
#
# A directory may contain checkpoints only: copies of them, or the one that `kafka-storage format` writes. Then each
# is checked on its own, and the other files are checked for traces of a log whose segments are now missing.


Progress = Callable[[int, int], None]
"""Called with the number of bytes checked so far, and the total."""


class FindingKind(Enum):
    """How bad a finding is."""

    DAMAGE = "damage"
    NEWER = "sound, but written by a newer Kafka"
    NOTE = "harmless"


@frozen(kw_only=True)
class Finding:
    """One problem: the file, the byte position in it, the log offset (as far as they apply), and what is wrong."""

    kind: FindingKind = FindingKind.DAMAGE
    path: Path
    position: int | None = None
    offset: int | None = None
    what: str

    def __str__(self) -> str:
        return str(DecodeError(self.what, path=str(self.path), position=self.position, offset=self.offset))


def verify(directory: Path | str, progress: Progress | None = None) -> Iterator[Finding]:
    """Yield every problem of a log directory in its present state; an intact log yields nothing.

    Raises:
        LogError: there is neither a log nor a checkpoint, or a file cannot be read.

    """
    directory = Path(directory)
    if directory.is_dir() and not files.list_segments(directory) and (alone := files.list_checkpoints(directory)):
        yield from _verify_checkpoints_only(directory, alone, progress)
        return
    files.find_segments(directory)
    problems: list[DecodeError] = []
    committed = _committed(directory, problems)  # before the mark, which a live writer moves first
    mark, epochs = _mark_and_epochs(directory, problems)
    segments = files.find_segments(directory)  # listed after reading the mark, so that they contain all that it covers
    checkpoints = files.list_checkpoints(directory)
    paths = [file.path for file in segments] + [file.path for file in checkpoints]
    meter = _ProgressMeter(progress, sum(map(_size, paths)))
    start = segments[0].base_offset
    ends = {checkpoint.end_offset for checkpoint in checkpoints}
    _check_starts(directory, start, epochs, ends=ends, problems=problems)
    if not (directory / files.EPOCHS_FILE).exists():
        what = "missing: epochs were only checked for their order"
        yield Finding(kind=FindingKind.NOTE, path=directory / files.EPOCHS_FILE, what=what)
    yield from map(_finding, problems)
    end = yield from _verify_segments(segments, mark, epochs, meter, committed=committed)
    if committed is not None:
        yield from _check_committed(committed, segments[-1].path, epochs, end)
    if mark is not None and end >= mark:
        yield from _check_rest(directory, segments, max(mark, end), epochs)
    for checkpoint in checkpoints:
        # A controller may have fetched a snapshot that is ahead of its own log.
        ahead = mark is not None and checkpoint.end_offset > mark  # then the epochs of the log do not apply
        yield from map(_finding, verify_checkpoint(checkpoint, None if ahead else epochs, start))
        meter.add(_size(checkpoint.path))


def _verify_checkpoints_only(
    directory: Path, checkpoints: tuple[files.CheckpointFile, ...], progress: Progress | None
) -> Iterator[Finding]:
    """Check a directory without segments. What an interrupted creation of a log leaves is no problem."""
    problems: list[DecodeError] = []
    committed = _committed(directory, problems)
    mark = _mark(directory, problems)
    try:
        epochs = files.read_epochs(directory)
    except DecodeError as error:
        problems.append(error)
        epochs = None
    if files.list_segments(directory):  # a node has created its log in the meantime
        yield from verify(directory, progress)
        return
    newest = checkpoints[-1].end_offset
    if committed is not None:
        what = f"records a log as committed up to offset {committed.end_offset}, but its segments are missing"
        problems.append(DecodeError(what, path=str(committed.path)))
    if mark and mark > newest:
        what = f"a log was committed up to offset {mark}, but its segments are missing"
        problems.append(DecodeError(what, path=str(directory / MARK_FILE)))
    if epochs and not (mark is not None and mark < newest):  # else a snapshot ahead of the log is replacing it
        what = f"a log had epochs up to {epochs[-1].epoch}, but its segments are missing"
        problems.append(DecodeError(what, path=str(directory / files.EPOCHS_FILE)))
    yield from map(_finding, problems)
    meter = _ProgressMeter(progress, sum(_size(checkpoint.path) for checkpoint in checkpoints))
    for checkpoint in checkpoints:
        yield from map(_finding, verify_checkpoint(checkpoint, None, 0))
        meter.add(_size(checkpoint.path))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise files.log_error(error, path, "cannot read") from error


def _check_starts(directory: Path, start: int, epochs: Epochs, ends: set[int], problems: list[DecodeError]) -> None:
    """Check the start of the log and of its first epoch against the end offsets of the checkpoints (`ends`)."""
    if start > 0 and max(ends, default=0) < start:
        what = "the log begins here, but no checkpoint covers what precedes it"
        problems.append(DecodeError(what, path=str(directory), offset=start))
    if epochs and epochs[0].start_offset > start and epochs[0].start_offset not in ends:
        what = (
            f"the first epoch begins at offset {epochs[0].start_offset}, where no checkpoint ends; the log at {start}"
        )
        problems.append(DecodeError(what, path=str(directory / files.EPOCHS_FILE)))


@define
class _ProgressMeter:
    """Reports progress."""

    _progress: Progress | None
    _total: int
    _done: int = field(init=False, default=0)

    def add(self, size: int) -> None:
        """Count `size` more bytes as checked."""
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total)


def _finding(error: DecodeError) -> Finding:
    path = Path(error.path or ".")
    kind = FindingKind.NEWER if is_newer_kafka(error) else FindingKind.DAMAGE
    return Finding(kind=kind, path=path, position=error.position, offset=error.offset, what=error.what)


def _mark_and_epochs(directory: Path, problems: list[DecodeError]) -> tuple[int | None, Epochs]:
    """Return both as they were at one time: the mark is where an epoch begins, or above, before that epoch is known."""
    epochs = _epochs(directory, problems)
    while True:
        mark, before = _mark(directory, problems), epochs
        epochs = _epochs(directory, [] if problems else problems)
        if problems or epochs == before:
            return mark, epochs


_MOST_READS = 20


def _mark(directory: Path, problems: list[DecodeError]) -> int | None:
    """Return the high-water mark, None for a log that Kafka wrote; problems of the file are appended to `problems`."""
    path = directory / MARK_FILE
    try:
        file = open_valid_mark_file(directory)
        if file is None:
            return None
        with closing(file):
            mark = file.read().offset
        # The reader tolerates one damaged slot; here both are checked, because the next write may be interrupted too.
        slots = _slots(path)
    except DecodeError as error:
        if error.path == str(path):
            problems.append(error)
        return None
    for number, slot in enumerate(slots):
        if slot is None:
            problems.append(DecodeError("a damaged slot", path=str(path), position=number * 512))
    return mark


def _slots(path: Path) -> tuple[Mark | None, Mark | None]:
    """Return the marks in both slots of the mark file; None for a slot that is damaged, and not being written.

    Raises:
        DecodeError, LogError: as decode_slots, and files.read_small.

    """
    before = None
    for _ in range(_MOST_READS):
        data = files.read_small(path) or b""
        slots = decode_slots(data)
        if None not in slots or data == before:
            break
        before = data  # a read can overlap a write, which is complete at the next one
    return slots


def _committed(directory: Path, problems: list[DecodeError]) -> CommittedMark | None:
    try:
        return read_committed(directory)
    except DecodeError as error:
        problems.append(error)
        return None


def _epochs(directory: Path, problems: list[DecodeError]) -> Epochs:
    try:
        return files.read_epochs(directory)
    except DecodeError as error:
        problems.append(error)
        return None


def _verify_segments(
    segments: tuple[files.SegmentFile, ...],
    mark: int | None,
    epochs: Epochs,
    meter: _ProgressMeter,
    *,
    committed: CommittedMark | None = None,
) -> Generator[Finding, None, int]:
    """Yield what is wrong with the segments; return the end of the log."""
    end = segments[0].base_offset
    # A power loss may have undone the published mark, which is not durable, but not the committed one.
    limit = mark if mark is None or committed is None else max(mark, committed.end_offset)
    for file in segments:
        if limit is not None and file.base_offset >= limit and end >= limit:
            break  # a live writer has rolled a new segment since
        if file.base_offset != end:
            what = f"the segment is named for offset {file.base_offset}, but the previous one ends at {end}"
            yield Finding(path=file.path, offset=end, what=what)
        end = file.base_offset
        for offset, size, problem in _verify_segment(file, limit, epochs):
            end = offset
            meter.add(size)
            if problem is not None:
                yield _finding(problem)
    last = segments[-1].path
    if mark is not None and limit == mark and end > mark:
        what = f"no batch of this log ends at {mark}, the high-water mark"
        yield Finding(path=last.parent / MARK_FILE, what=what)
    if mark is not None and end < mark:
        yield Finding(path=last, offset=end, what=f"the log ends here, below its high-water mark {mark}")
    for start in epochs or ():
        if start.start_offset > end:
            what = f"epoch {start.epoch} begins at offset {start.start_offset}, beyond the log's end {end}"
            yield Finding(path=last.parent / files.EPOCHS_FILE, what=what)
    return end


def _check_rest(
    directory: Path, segments: tuple[files.SegmentFile, ...], end: int, epochs: Epochs
) -> Iterator[Finding]:
    """Check that a writer can open a log that was checked up to `end`: what follows continues it, or is a torn tail."""
    try:
        find_tail(segments, end, epochs)
    except DecodeError as error:
        # Below the end it is a finding already. Of an epoch that a writer has begun since, no batch is in order.
        if (error.offset is None or error.offset >= end) and _epochs(directory, []) == epochs:
            yield _finding(error)


def _check_committed(committed: CommittedMark, last_segment: Path, epochs: Epochs, end: int) -> Iterator[Finding]:
    """Check that a log with this end is the one of its committed mark: a writer refuses another one."""
    try:
        properties = read_meta_properties(committed.path.parent)
    except ConfigError:  # not a file of the log
        properties = None
    if properties is not None and properties.cluster_id != committed.cluster_id:
        what = f"of cluster {committed.cluster_id}, but meta.properties beside it is of {properties.cluster_id}"
        yield Finding(path=committed.path, what=what)
    if end < committed.end_offset:
        what = f"the log ends here, but {committed.path} records it as committed up to {committed.end_offset}"
        yield Finding(path=last_segment, offset=end, what=what)
        return
    last = committed.end_offset - 1
    epoch = files.epoch_at(epochs or (), last)
    if epoch not in {None, committed.epoch}:
        what = f"of leader epoch {epoch}, but {committed.path} records epoch {committed.epoch}: another log"
        yield Finding(path=committed.directory, offset=last, what=what)
        return
    segments = Segments.open(committed.directory, epochs)
    if committed.batch_crc is None or last < segments.start_offset():
        return
    try:
        header = read_header(segments.read(last, end, 1))
    except DecodeError:  # a finding of its own
        return
    if (header.end_offset, header.crc) != (committed.end_offset, committed.batch_crc):
        what = f"the batch is not the committed one that {committed.path} records: another log"
        yield Finding(path=committed.directory, offset=last, what=what)


_WINDOW_AFTER_DAMAGE = 1 << 12


def _verify_segment(
    file: files.SegmentFile, mark: int | None, epochs: Epochs
) -> Iterator[tuple[int, int, DecodeError | None]]:
    """Yield the offset after some batches, their size in bytes, and what is wrong there.

    Continues after damage if a whole batch follows.
    """
    position, offset, window = 0, file.base_offset, BULK_WINDOW
    with _opened(file.path) as fd:
        while mark is None or offset < mark:
            epoch = 0
            while (run := proved_run(fd, position, offset, epochs, epoch, end=mark, window=window)).size:
                window = min(4 * window, BULK_WINDOW)
                position, offset, epoch = position + run.size, run.offset, run.epoch
                yield offset, run.size, None
            if mark is not None and offset >= mark:
                return
            try:
                walk = walk_batches(
                    fd,
                    file.path,
                    position=position,
                    offset=offset,
                    epochs=epochs,
                    before=epoch,
                    window=min(window, WINDOW),
                )
                for at, header in walk:
                    position, offset = at + header.size, header.end_offset
                    yield offset, header.size, check_records(fd, file.path, at, header)
                    if mark is not None and offset >= mark:
                        return
            except DecodeError as error:
                yield offset, 0, error
                follows = next_whole_batch(fd, position, offset)
                if follows is None:
                    return
                # Each batch may be wrong, as beside the epochs of another log: then no megabytes are read for each.
                position, offset, window = *follows, _WINDOW_AFTER_DAMAGE
            else:
                return


# The read-only file log: takes no lock, changes nothing, and follows a live writer.


_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02
_GROWTH = 1.5

UNCOMMITTED_TAIL = "is treated as committed: in a quorum of several voters the last records may not be"
"""End of the note about a log that Kafka wrote; irrelevant if the quorum is known to have a single voter."""


@define(eq=False)
class FileLogReader(Closeable):
    """Reads a log that another process may be writing (aclog.metalog.committed_log.LogReader). Made by `open_reader`.

    If an aclog writer publishes a high-water mark, nothing beyond it is read. In a directory that Kafka wrote, the end
    of the last whole batch is used instead, with a note in `notes`. Thread-safe.
    """

    directory: Path
    _tail_notes: tuple[str, ...] = field(init=False, default=())
    _torn_note: str | None = field(init=False, default=None)
    _segments: Segments
    _marks: MarkFile | None = field(init=False, default=None)
    _high_watermark: int = field(init=False, default=-1)
    _epochs_identity: object = field(init=False, default="not looked at yet")
    _end: int = field(init=False, default=-1)
    _end_identity: object = field(init=False, default=None)
    _closed: bool = field(init=False, default=False)
    _guard: "threading.Lock" = field(init=False, factory=threads.lock)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for users: the writer's notice at this moment, and the end of a log that Kafka wrote."""
        torn = () if self._torn_note is None else (self._torn_note,)
        return (*files.notices(self.directory), *self._tail_notes, *torn)

    @property
    def torn_note(self) -> str | None:
        """Of `notes`, that about bytes after the last whole batch, which may begin one that was committed."""
        return self._torn_note

    def start_offset(self) -> int:
        """Return the first offset that can still be read; retention raises it."""
        self._check_open()
        self._segments.refresh()
        return self._segments.start_offset()

    def high_watermark(self) -> int:
        """Return the mark that the writer has published; it never decreases.

        Raises:
            LogError: closed.
            DecodeError: the mark file is damaged.

        """
        with self._guard:
            self._check_open()
            # Kafka may truncate its log when the leader changes; what was reported as committed is not taken back.
            self._high_watermark = max(self._high_watermark, self._published())
            return self._high_watermark

    def _published(self) -> int:
        """Return the mark, or the end of a log that Kafka wrote; the known epochs then cover all batches below it.

        A new leader epoch may mean that Kafka took over the directory from aclog, or the reverse, so which of the two
        applies is decided again whenever leader-epoch-checkpoint changes, also if it changes during the read.
        """
        self._reload_epochs()
        while True:
            try:
                end = self._marks.read().offset if self._marks is not None else self._kafka_log_end()
            except ReplayError:  # an epoch not known here: only damage if leader-epoch-checkpoint has not changed
                if not self._reload_epochs():
                    raise
            else:
                if not self._reload_epochs():
                    return end

    def _reload_epochs(self) -> bool:
        """Reload leader-epoch-checkpoint and the mark file if the former has changed; return whether it has."""
        identity = _identity(self.directory / files.EPOCHS_FILE)
        if identity == self._epochs_identity:
            return False
        self._segments.epochs = files.read_epochs(self.directory)
        self._reopen_marks()
        self._epochs_identity, self._end_identity = identity, None
        return True

    def _reopen_marks(self) -> None:
        if self._marks is not None:
            self._marks.close()
            self._marks = None
        self._marks = open_valid_mark_file(self.directory)
        if self._marks is not None:
            self._tail_notes, self._torn_note = (), None

    def _kafka_log_end(self) -> int:
        """Return the end of the last whole batch, computed again only if the last segment has changed."""
        self._segments.refresh()
        path = self._segments.files()[-1].path
        identity = (path, _identity(path))
        if identity != self._end_identity:
            tail = find_tail(self._segments.files(), None, self._segments.epochs)
            self._end, self._end_identity = tail.end_offset, identity
            end = f"{self.directory}: the end of this Kafka log, offset {tail.end_offset}"
            self._tail_notes, self._torn_note = (f"{end}, {UNCOMMITTED_TAIL}",), _torn_note(tail)
        self._reopen_marks()  # an aclog writer may have taken over in the meantime
        return self._end if self._marks is None else self._marks.read().offset

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that contains `offset` (see LogReader.read)."""
        mark, start = self.high_watermark(), self.start_offset()
        if not start <= offset <= mark:
            raise LogError(f"{self.name}: offset {offset} is outside of {start}..{mark}, log start to high-water mark")
        return b"" if offset == mark else self._segments.read(offset, mark, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        """Block until the high-water mark is above `offset`, polling at intervals of 0.5 to 20 ms."""
        end, pause = clock.monotonic() + timeout, _FIRST_PAUSE
        while self.high_watermark() <= offset:
            remaining = end - clock.monotonic()
            if remaining <= 0:
                return False
            clock.sleep(min(pause, remaining))
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        return True

    def close(self) -> None:
        """Close the mark file; closing twice is allowed."""
        with self._guard:
            if not self._closed and self._marks is not None:
                self._marks.close()
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"{self.name}: closed")


def open_reader(directory: Path | str) -> FileLogReader:
    """Open a log directory for reading: one of aclog's, live or not, or a stopped Kafka node's `__cluster_metadata-0`.

    Raises:
        LogError: there is no log, or it cannot be read.
        DecodeError: the mark file, leader-epoch-checkpoint or the end of a log that Kafka wrote is damaged.

    """
    directory = Path(directory)
    files.find_segments(directory)
    reader = FileLogReader(directory, Segments.open(directory, None))
    try:
        # Reads the mark once, so that damage is reported when the log is opened rather than at the first read.
        reader.high_watermark()
    except BaseException:
        reader.close()
        raise
    return reader


def _identity(path: Path) -> tuple[int, ...] | None:
    """Return an identity that changes when a file is replaced or written to; None if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.log_error(error, path, "cannot read") from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _torn_note(tail: Tail) -> str | None:
    if not tail.torn_bytes:
        return None
    where = f"{tail.path}: byte {tail.position}, offset {tail.end_offset}"
    return f"{where}: ignored {tail.torn_bytes} bytes that are not a whole batch ({tail.problem})"
