"""What is committed of a topic log, as far as one process knows: marks, what came last, and troubles."""

import threading

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.committed_window import CommittedWindow
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.topiclog.leader_change import Leader


@define(kw_only=True, eq=False)
class Committed:
    """Safe for many threads; one of them adds. It holds the newest `window_bytes` of the log.

    `trouble` is why nothing comes at the moment, `failure` why nothing will come again.
    """

    name: str
    window_bytes: int
    high_watermark: int = field(default=-1, init=False)
    start_offset: int = field(default=0, init=False)
    leader: Leader | None = field(default=None, init=False)
    trouble: MetadataError | None = field(default=None, init=False)
    lasting: bool = field(default=False, init=False)
    """Whether the trouble is of a kind that does not pass by itself."""
    failure: MetadataError | None = field(default=None, init=False)
    closed: bool = field(default=False, init=False)
    _window: CommittedWindow = field(factory=CommittedWindow, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    def begin(self, start_offset: int, high_watermark: int, held_from: int) -> None:
        """The log is known to reach from one offset to the other; what comes in begins at `held_from`."""
        with self._changed:
            self.start_offset, self.high_watermark = start_offset, high_watermark
            self._window.restart(held_from)
            self._changed.notify_all()

    def add(self, run: BatchRun) -> None:
        """Take in what follows."""
        with self._changed:
            self._window.append(run)
            self._window.drop(self._window.end, self.window_bytes)
            self.high_watermark = max(self.high_watermark, run.end_offset)
            self._changed.notify_all()

    def led_by(self, leader: Leader) -> None:
        """The newest epoch that is known, and whose it is."""
        with self._changed:
            if self.leader is None or leader.epoch >= self.leader.epoch:
                self.leader = leader

    def at_ease(self) -> None:
        """No trouble any more."""
        with self._changed:
            self.trouble, self.lasting = None, False

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
            was_open, self.closed = not self.closed, True
            self._changed.notify_all()
            return was_open

    def rest(self, timeout: float) -> None:
        """Wait until the timeout is over, or the log is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed, timeout)

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the mark is above `offset`, at most `timeout` seconds.

        Raises:
            MetadataError: nothing will come again.

        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.high_watermark > offset or self.closed or self.failure is not None,
                min(timeout, threading.TIMEOUT_MAX),
            )
            if self.high_watermark <= offset and self.failure is not None and not self.closed:
                raise self._why("")
            return self.high_watermark > offset

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not, in `timeout` seconds, or will not be; why.

        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.high_watermark >= 0 or self.closed or self.failure is not None or self.lasting,
                min(timeout, threading.TIMEOUT_MAX),
            )
            if self.high_watermark < 0:
                raise self._why(f"no broker answers within {timeout:g} s")

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """As aclog.metalog.log.LogReader.read; None for what is no longer held, or not yet.

        Raises:
            LogError: the offset is outside of what can be read, or the log is closed.

        """
        with self._changed:
            if self.closed:
                raise LogError(f"{self.name}: closed")
            if self.high_watermark < 0:
                raise self._why("the high-water mark is not known yet")
            start, mark = self.start_offset, self.high_watermark
            if not start <= offset <= mark:
                raise LogError(f"{self.name}: offset {offset} is outside {start}..{mark}, the log's start and end")
            if offset == mark:
                return b""
            found = self._window.read(offset, max_bytes)
            return None if found is None else found[0]

    def _why(self, what: str) -> MetadataError:
        if self.closed:
            return LogError(f"{self.name}: closed")
        cause = self.failure or self.trouble
        return LogError(f"{self.name}: {what}") if cause is None else cause.with_traceback(None)
