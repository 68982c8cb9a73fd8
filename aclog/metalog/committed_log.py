"""The Log protocol, and what one process holds of a log that others write."""

import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from attrs import field

from aclog.metalog.batches import BatchRun
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.machine import threads
from aclog.metalog.values import define, frozen

if TYPE_CHECKING:
    from concurrent.futures import Future

# The in-memory window of committed batches that a reader of a remote log keeps: one contiguous range of the log.


_JOIN_BELOW = 16 << 10
"""Runs of fewer bytes are joined: a quiet log delivers one batch at a time."""


def _end_offset(run: BatchRun) -> int:
    return run.end_offset


@define(eq=False)
class CommittedWindow:
    """Batches from offset `start` to `end`; appended at the end, trimmed at the start. Not thread-safe."""

    start: int = 0
    end: int = 0
    size: int = field(default=0, init=False)
    """Size in bytes."""
    _runs: list[BatchRun] = field(factory=list, init=False)

    def restart(self, offset: int) -> None:
        """Discard everything and continue at `offset`."""
        self._runs.clear()
        self.start = self.end = offset
        self.size = 0

    def append(self, run: BatchRun) -> None:
        """Append the run that follows the end; the first may begin below it, if the log was entered in mid-batch."""
        if not self._runs:
            self.start = run.base_offset
        # Otherwise a window of a quiet log would be a list of thousands of tiny runs, each with its own arrays.
        if self._runs and self._runs[-1].size + run.size <= _JOIN_BELOW:
            self._runs[-1] = self._runs[-1].joined(run)
        else:
            self._runs.append(run)
        self.end = run.end_offset
        self.size += run.size

    def drop(self, offset: int, size: int) -> None:
        """Discard the oldest runs that end at or below `offset`, until at most `size` bytes remain."""
        while self._runs and self.size > size and self._runs[0].end_offset <= offset:
            oldest = self._runs.pop(0)
            self.size -= oldest.size
            self.start = oldest.end_offset

    def read(self, offset: int, max_bytes: int) -> tuple[bytes, int] | None:
        """Return (batches from the one that contains `offset`, their end offset): at most `max_bytes`, at least one.

        None if the window does not contain the offset.
        """
        if not self.start <= offset < self.end:
            return None
        number = bisect_right(self._runs, offset, key=_end_offset)
        data, offset = self._runs[number].read(offset, max_bytes)
        pieces, size = [data], len(data)
        while offset == self._runs[number].end_offset and number + 1 < len(self._runs):
            number += 1
            if size + int(self._runs[number].positions[1]) > max_bytes:
                break
            data, offset = self._runs[number].read(offset, max_bytes - size)
            pieces.append(data)
            size += len(data)
        return b"".join(pieces), offset


# The state that one process has of a log that others write: offsets, the newest batches, and the error state.
#
# One thread follows the log and adds to it; any number of threads read and wait.


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
    _changed: "threading.Condition" = field(factory=threads.condition, init=False)

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
            MetadataError: it is not known within `timeout` seconds, or cannot become known; with the reason.

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
        """Return the error to raise: closed, else the failure, else the current error, else `default` as a LogError."""
        if self.closed:
            return LogError(f"{self.name}: closed")
        cause = self.failure or self.error
        # Each waiting thread raises the same object; without this its traceback grows with every raise.
        return LogError(f"{self.name}: {default}") if cause is None else cause.with_traceback(None)

    @property
    def _silent(self) -> str:
        """The message when no server has responded and no error is known."""
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


# The Log protocol: what readers and the one writer of a metadata log can do, wherever the log is stored.
#
# A log is a sequence of record batches with dense offsets. `LogReader.read` returns the raw bytes of whole committed
# batches, as a KRaft leader answers a Fetch, and the caller decodes them (aclog.metalog.batches). So a directory of
# segments, a topic and a live quorum look the same to it, and bytes can be mirrored unchanged. `Log` adds appending:
# futures complete once the batch is committed, that is, below the high-water mark.
#
# Implementations: aclog.metalog.filelog.FileLog and FileLogReader, aclog.metalog.topiclog.TopicLog and TopicReader,
# and aclog.client for live quorums. All pass the same contract tests (tests/contracts).


@frozen(kw_only=True)
class Appended:
    """Where a committed batch is: its first and last offset, and the leader epoch in which it was written."""

    base_offset: int
    last_offset: int
    leader_epoch: int


@frozen(kw_only=True)
class EpochStart:
    """A leader epoch and the offset of its first record (an entry of leader-epoch-checkpoint)."""

    epoch: int
    start_offset: int


class LogReader(Protocol):
    """Read access to the committed part of a log: up to the high-water mark and never beyond."""

    @property
    def name(self) -> str:
        """Location of the log, for messages: a directory, an address."""
        ...

    def start_offset(self) -> int:
        """Return the first offset that can still be read; retention raises it."""
        ...

    def high_watermark(self) -> int:
        """Return the high-water mark: everything below is committed. It never decreases; -1 while it is unknown."""
        ...

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches, beginning with the one that contains `offset`.

        At most `max_bytes`, unless the first batch alone is larger; empty at the high-water mark. Since batches are
        never split, the first one may begin below `offset`.

        Raises:
            LogError: the offset is outside of start_offset()..high_watermark(), or the log is closed.
            DecodeError: the stored bytes are damaged; the CRC of every batch is checked before it is returned.

        """
        ...

    def wait(self, offset: int, timeout: float) -> bool:
        """Block for up to `timeout` seconds until the high-water mark is above `offset`; return whether it is."""
        ...

    def close(self) -> None:
        """Close files and connections; closing twice is allowed."""
        ...


class ServedLog(LogReader, Protocol):
    """A log that a controller serves to its followers, on its event loop."""

    def read_local(self, offset: int, max_bytes: int = 1 << 20) -> bytes | None:
        """Read as `read`, but from memory or local files only; None if the batches would come over the network.

        Raises as `read`.
        """
        ...


class Log(ServedLog, Protocol):
    """A log that this process, and no other, may write."""

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of appended batches."""
        ...

    def end_offset(self) -> int:
        """Return the offset of the next record to be appended: the log end offset, committed or not."""
        ...

    def append(self, values: Sequence[bytes], *, timestamp: int) -> "Future[Appended]":
        """Append record values as one atomic batch; the future completes when it and all earlier batches are committed.

        Batches are written in the order of the calls. `timestamp` is ms since 1970.

        Raises:
            LogError: closed, no values, an empty value, a batch over 8 MiB, or an earlier write has failed.

        """
        ...

    def append_batch(self, batch: bytes) -> "Future[Appended]":
        """Append a caller-built batch unchanged (aclog.metalog.batches.build_batch).

        A controller builds a batch ahead, replays it, and appends the very bytes it has replayed. It must be one whole
        data batch that begins at end_offset() and carries leader_epoch, so the caller has to be the only one that
        appends. Order and future are those of `append`.

        Raises:
            LogError: not such a batch (truncated, CRC mismatch, another offset or epoch, a control batch), or as for
                `append`. Nothing is written.

        """
        ...


# Objects that are closed at the end of a with block.


class Closeable(ABC):
    """A context manager whose exit calls `close` (java.io.Closeable)."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Release what the object holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
