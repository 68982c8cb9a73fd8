"""What one process holds of a log that others write: offsets, the newest batches, and the error state.

One thread follows the log and adds to it; any number of threads read and wait.
"""

import threading

from attrs import define, field

from aclog.metalog.committed_window import CommittedWindow
from aclog.metalog.errors import LogError, MetadataError


@define(kw_only=True, eq=False)
class CommittedLog:
    """The shared state of a follower and its readers. Thread-safe; subclasses add batches under `_changed`.

    `error` is why no batches arrive at the moment and is cleared by the next success; `failure` is final.
    """

    name: str
    high_watermark: int = field(default=-1, init=False)
    start_offset: int = field(default=0, init=False)
    error: MetadataError | None = field(default=None, init=False)
    retriable: bool = field(default=True, init=False)
    """Whether `error` may pass without an operator changing something."""
    failure: MetadataError | None = field(default=None, init=False)
    closed: bool = field(default=False, init=False)
    _window: CommittedWindow = field(factory=CommittedWindow, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)

    def report(self, error: MetadataError, *, retriable: bool) -> None:
        """Record why no batches arrive at the moment."""
        with self._changed:
            self.error, self.retriable = error, retriable
            self._changed.notify_all()

    def clear_error(self) -> None:
        """Record that the log can be followed again."""
        with self._changed:
            self._clear_error()

    def fail(self, failure: MetadataError) -> None:
        """Record why no batches will ever arrive again."""
        with self._changed:
            self.failure = failure
            self._changed.notify_all()

    def close(self) -> bool:
        """Wake up all readers, whose calls fail from now on; return whether the log was open."""
        with self._changed:
            was_open, self.closed = not self.closed, True
            self._changed.notify_all()
            return was_open

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`, at most `timeout` seconds; return whether it is.

        Raises:
            MetadataError: the log cannot be followed, see `_ends_wait`.

        """
        with self._changed:
            # Condition.wait overflows above TIMEOUT_MAX; callers pass infinity for "forever".
            self._changed.wait_for(
                lambda: self.high_watermark > offset or self.closed or self._ends_wait,
                min(timeout, threading.TIMEOUT_MAX),
            )
            if self.high_watermark > offset:
                return True
            if self._ends_wait:
                raise self.reason("")
            return False

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not known within `timeout` seconds, or cannot become known; says why.

        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.high_watermark >= 0 or self.closed or self._stuck, min(timeout, threading.TIMEOUT_MAX)
            )
            if self.high_watermark < 0:
                raise self.reason(f"{self._silent} within {timeout:g} s")

    def check_bounds(self, offset: int) -> None:
        """Check that an offset can be read, or is the high-water mark.

        Raises:
            MetadataError: the offset is out of range, the high-water mark is unknown, or the log is closed.

        """
        if self.closed:
            raise LogError(f"{self.name}: closed")
        if self.high_watermark < 0:
            raise self.reason("the high-water mark is not known yet")
        start, mark = self.start_offset, self.high_watermark
        if not start <= offset <= mark:
            raise LogError(f"{self.name}: offset {offset} is outside {start}..{mark}, the log's start and end")

    def reason(self, default: str) -> MetadataError:
        """Return the error to raise: closed, else the failure, else the current error, else one that says `default`."""
        if self.closed:
            return LogError(f"{self.name}: closed")
        cause = self.failure or self.error
        # Each waiting thread raises the same object; without this its traceback grows with every raise.
        return LogError(f"{self.name}: {default}") if cause is None else cause.with_traceback(None)

    @property
    def _silent(self) -> str:
        """What to report when nobody has answered and no error is known."""
        return "no response"

    @property
    def _ends_wait(self) -> bool:
        """Whether a wait for new batches is pointless."""
        return self._stuck

    @property
    def _stuck(self) -> bool:
        return self.failure is not None or (self.error is not None and not self.retriable)

    def _clear_error(self) -> None:
        self.error, self.retriable = None, True
