"""A log directory, open for reading only: it takes no lock, changes nothing, and follows a writer live."""

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import define, field

from metalog.errors import LogError, ReplayError
from metalog.filelog.epochs import read_epochs
from metalog.filelog.mark import MarkFile, open_valid_mark_file
from metalog.filelog.names import find_segments
from metalog.filelog.segments import Segments
from metalog.filelog.tail import Tail, find_tail

_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02
_GROWTH = 1.5


@define(eq=False)
class FileLogReader:
    """Reads a log that another process may be writing (metalog.log.LogReader). Made by `open_reader`.

    Where a writer of ours publishes a high-water mark, nothing is read beyond it. In a directory that a Kafka wrote,
    the end of the last whole batch stands for it; `notes` says so. Safe for many threads.
    """

    directory: Path
    notes: tuple[str, ...]
    _segments: Segments
    _marks: MarkFile | None
    _high_watermark: int
    _seen: tuple[Path, int] | None = field(init=False, default=None)
    _closed: bool = field(init=False, default=False)
    _guard: threading.Lock = field(init=False, factory=threading.Lock)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    def start_offset(self) -> int:
        """The first offset that can still be read; retention moves it up."""
        self._check_open()
        self._segments.refresh()
        return self._segments.start_offset()

    def high_watermark(self) -> int:
        """What the writer has published by now; it never goes back.

        Raises:
            LogError: closed.
            DecodeError: the mark file is damaged.

        """
        with self._guard:
            self._check_open()
            self._high_watermark = max(self._high_watermark, self._published())
            return self._high_watermark

    def _published(self) -> int:
        if self._marks is None:
            end = self._end_of_kafkas_log()
            self._marks = open_valid_mark_file(self.directory)  # a writer of ours may have taken over meanwhile
            if self._marks is None:
                return end
        return self._marks.read().offset

    def _end_of_kafkas_log(self) -> int:
        """The end of the last whole batch, looked for again only when the last segment has changed."""
        self._segments.refresh()
        path = self._segments.files()[-1].path
        seen = (path, path.stat().st_size)
        if seen == self._seen:
            return self._high_watermark
        self._seen = seen
        return find_tail(self._segments.files(), None, self._segments.epochs).end_offset

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole committed batches from the one that holds `offset` (metalog.log.LogReader.read)."""
        mark, start = self.high_watermark(), self.start_offset()
        if not start <= offset <= mark:
            raise LogError(f"{self.name}: offset {offset} is outside {start}..{mark}, the log's start and end")
        if offset == mark:
            return b""
        try:
            return self._segments.read(offset, mark, max_bytes)
        except ReplayError:
            if not self._learn_epochs():
                raise
            return self._segments.read(offset, mark, max_bytes)

    def _learn_epochs(self) -> bool:
        """Read leader-epoch-checkpoint again: a new epoch may have begun since. Tells whether it has changed."""
        before, self._segments.epochs = self._segments.epochs, read_epochs(self.directory)
        return self._segments.epochs != before

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`, looking again after 0.5 ms, and rising to every 20 ms."""
        end, pause = time.monotonic() + timeout, _FIRST_PAUSE
        while self.high_watermark() <= offset:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        return True

    def close(self) -> None:
        """Let go of the mark file; a second close is nothing."""
        with self._guard:
            if not self._closed and self._marks is not None:
                self._marks.close()
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"{self.name}: closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open_reader(directory: Path | str) -> FileLogReader:
    """Open a log directory for reading: one of ours, live or not, or the `__cluster_metadata-0` of a stopped Kafka.

    Raises:
        LogError: no log is there, or it cannot be read.
        DecodeError: the mark file, leader-epoch-checkpoint or the end of a Kafka's log is damaged.

    """
    directory = Path(directory)
    find_segments(directory)
    epochs = read_epochs(directory)
    segments = Segments.open(directory, epochs)
    marks = open_valid_mark_file(directory)
    if marks is not None:
        return FileLogReader(directory, (), segments, marks, -1)
    tail = find_tail(segments.files(), None, epochs)
    return FileLogReader(directory, _kafka_notes(directory, tail), segments, None, tail.end_offset)


def _kafka_notes(directory: Path, tail: Tail) -> tuple[str, ...]:
    note = (
        f"{directory}: no high-water mark of aclog's is here: the end of the last whole batch, offset "
        f"{tail.end_offset}, is taken for it; in a log of a quorum of several voters, its tail may be uncommitted"
    )
    if not tail.torn_bytes:
        return (note,)
    where = f"{tail.path}: byte {tail.position}, offset {tail.end_offset}"
    return note, f"{where}: {tail.torn_bytes} bytes that are not a whole batch are left out ({tail.problem})"
