"""The read-only file log: takes no lock, changes nothing, and follows a live writer."""

import threading
import time
from pathlib import Path

from attrs import define, field

from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import LogError, ReplayError
from aclog.metalog.filelog.epochs import EPOCHS_FILE, read_epochs
from aclog.metalog.filelog.file_names import find_segments
from aclog.metalog.filelog.filesystem import log_error
from aclog.metalog.filelog.mark import MarkFile, open_valid_mark_file
from aclog.metalog.filelog.notice import notices
from aclog.metalog.filelog.segments import Segments
from aclog.metalog.filelog.tail import Tail, find_tail

_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02
_GROWTH = 1.5

UNCOMMITTED_TAIL = "is treated as committed: in a quorum of several voters the last records may not be"
"""End of the note about a log that Kafka wrote; irrelevant if the quorum is known to have a single voter."""


@define(eq=False)
class FileLogReader(Closeable):
    """Reads a log that another process may be writing (aclog.metalog.log.LogReader). Made by `open_reader`.

    If an aclog writer publishes a high-water mark, nothing beyond it is read. In a directory that Kafka wrote, the end
    of the last whole batch is used instead; `notes` says so. Thread-safe.
    """

    directory: Path
    _tail_notes: tuple[str, ...] = field(init=False, default=())
    _torn_note: str | None = field(init=False, default=None)
    _segments: Segments
    _marks: MarkFile | None = field(init=False, default=None)
    _high_watermark: int = field(init=False, default=-1)
    _epochs_seen: object = field(init=False, default="not looked at yet")
    _end: int = field(init=False, default=-1)
    _end_seen: object = field(init=False, default=None)
    _closed: bool = field(init=False, default=False)
    _guard: threading.Lock = field(init=False, factory=threading.Lock)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know: the writer's notice at this moment, and where a log that Kafka wrote is cut."""
        torn = () if self._torn_note is None else (self._torn_note,)
        return (*notices(self.directory), *self._tail_notes, *torn)

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
        seen = _identity(self.directory / EPOCHS_FILE)
        if seen == self._epochs_seen:
            return False
        self._segments.epochs = read_epochs(self.directory)
        self._reopen_marks()
        self._epochs_seen, self._end_seen = seen, None
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
        seen = (path, _identity(path))
        if seen != self._end_seen:
            tail = find_tail(self._segments.files(), None, self._segments.epochs)
            self._end, self._end_seen = tail.end_offset, seen
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
        end, pause = time.monotonic() + timeout, _FIRST_PAUSE
        while self.high_watermark() <= offset:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
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
    find_segments(directory)
    reader = FileLogReader(directory, Segments.open(directory, None))
    try:
        # Reads the mark once, so that damage is reported when the log is opened rather than at the first read.
        reader.high_watermark()
    except BaseException:
        reader.close()
        raise
    return reader


def _identity(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced or written to; None if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise log_error(error, path, "cannot read") from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _torn_note(tail: Tail) -> str | None:
    if not tail.torn_bytes:
        return None
    where = f"{tail.path}: byte {tail.position}, offset {tail.end_offset}"
    return f"{where}: ignored {tail.torn_bytes} bytes that are not a whole batch ({tail.problem})"
