"""What the task that follows a quorum and the threads that read share: committed batches, marks, and troubles."""

import threading
import time
from collections.abc import Callable, Iterable

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.committed_window import CommittedWindow
from aclog.metalog.errors import LogError, MetadataError
from aclog.nodes.observer.fetch_messages import EpochEnd
from aclog.nodes.observer.fetch_options import ObserverOptions


@define(kw_only=True, eq=False)
class SharedLog:
    """Safe for many threads. One of them adds; `made_room` is called by whoever reads, when a full one is full no more.

    `trouble` is why nothing comes at the moment, `failure` why nothing will come again.
    """

    name: str
    options: ObserverOptions
    made_room: Callable[[], None]
    high_watermark: int = field(default=-1, init=False)
    start_offset: int = field(default=0, init=False)
    snapshot: EpochEnd | None = field(default=None, init=False)
    """What stands for all below `start_offset`."""
    trouble: MetadataError | None = field(default=None, init=False)
    lasting: bool = field(default=False, init=False)
    """Whether the trouble is of a kind that does not pass by itself."""
    failure: MetadataError | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _read_to: int = field(default=0, init=False)
    _window: CommittedWindow = field(factory=CommittedWindow, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    @property
    def full(self) -> bool:
        """Whether no more should be added for now."""
        return self._window.size >= self.options.buffer_bytes

    def add(self, committed: Iterable[BatchRun], high_watermark: int) -> None:
        """Take in what is committed now; the follower is at ease again."""
        with self._changed:
            for run in committed:
                self._window.append(run)
            self.high_watermark = max(self.high_watermark, high_watermark)
            self.trouble, self.lasting = None, False
            self._changed.notify_all()

    def begin_at(self, snapshot: EpochEnd, high_watermark: int) -> None:
        """The log begins after this snapshot; what is held of the log before it is forgotten.

        Where the mark is not known, it is not known still: a snapshot is not all that is committed.
        """
        with self._changed:
            self.start_offset, self.snapshot = snapshot.end_offset, snapshot
            if self._window.end < snapshot.end_offset:
                self._window.restart(snapshot.end_offset)
            if max(self.high_watermark, high_watermark) >= 0:
                self.high_watermark = max(self.high_watermark, high_watermark, snapshot.end_offset)
            self._changed.notify_all()

    def start_at(self, offset: int) -> None:
        """Begin at an offset, before anything is added: what lies below it is known elsewhere."""
        with self._changed:
            self.start_offset = self._read_to = offset
            self._window.restart(offset)

    def report(self, trouble: MetadataError, *, lasting: bool) -> None:
        """Say why nothing comes at the moment."""
        with self._changed:
            self.trouble, self.lasting = trouble, lasting
            self._changed.notify_all()

    def fail(self, failure: MetadataError) -> None:
        """Say why nothing will come again."""
        with self._changed:
            self.failure = failure
            self._changed.notify_all()

    def close(self) -> bool:
        """Nobody reads any more; tells whether it was open."""
        with self._changed:
            was_open, self._closed = not self._closed, True
            self._changed.notify_all()
            return was_open

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the mark is above `offset`, at most `timeout` seconds.

        Raises:
            MetadataError: what will not pass by itself.

        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.high_watermark > offset or self._closed or self._stuck, min(timeout, threading.TIMEOUT_MAX)
            )
            if self.high_watermark > offset:
                return True
            self._check_stuck()
            return False

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not, in `timeout` seconds, and why.

        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.high_watermark >= 0 or self._closed or self._stuck, min(timeout, threading.TIMEOUT_MAX)
            )
            if self.high_watermark < 0:
                raise self._why(f"no leader within {timeout:g} s")

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """As aclog.metalog.log.LogReader.read; None for what is no longer held, or further on than what comes next.

        Waits for bytes that are known to be committed and come next, as long as the options say.
        """
        with self._changed:
            self.check_bounds(offset)
            if offset == self.high_watermark:
                return b""
            self._have_read(offset)
            end = time.monotonic() + self.options.read_seconds
            while offset == self._window.end and not self._closed and not self._stuck:
                left = end - time.monotonic()
                if left <= 0:
                    raise self._why(f"offset {offset} did not come within {self.options.read_seconds:g} s")
                self._changed.wait(left)
            if offset == self._window.end:
                raise self._why("nothing comes any more")
            return self._take(offset, max_bytes)

    def _take(self, offset: int, max_bytes: int) -> bytes | None:
        found = self._window.read(offset, max_bytes)
        if found is None:
            return None
        data, end = found
        self._have_read(end)
        return data

    def _have_read(self, offset: int) -> None:
        """What lies below `offset` is not waited for any more, and goes when there is too much."""
        was_full = self.full
        self._read_to = max(self._read_to, offset)
        self._window.drop(self._read_to, self.options.kept_bytes)
        if was_full and not self.full:
            self.made_room()

    @property
    def _stuck(self) -> bool:
        return self.failure is not None or self.lasting

    def _check_stuck(self) -> None:
        if self.failure is not None or (self.lasting and self.trouble is not None):
            raise self._why("")

    def check_bounds(self, offset: int) -> None:
        """Check that an offset is one that can be read, or the high-water mark.

        Raises:
            MetadataError: it is not, or nothing can be read.

        """
        if self._closed:
            raise LogError(f"{self.name}: closed")
        if self.high_watermark < 0:
            raise self._why("the high-water mark is not known yet")
        start, mark = self.start_offset, self.high_watermark
        if not start <= offset <= mark:
            raise LogError(f"{self.name}: offset {offset} is outside {start}..{mark}, the log's start and end")

    def _why(self, what: str) -> MetadataError:
        if self._closed:
            return LogError(f"{self.name}: closed")
        cause = self.failure or self.trouble
        if cause is None:
            return LogError(f"{self.name}: {what}")
        return cause.with_traceback(None)  # it may be raised many times
