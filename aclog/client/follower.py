"""The thread that keeps a node's image up to date with a quorum's log: replays and publishes (MetadataLoader)."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from attrs import field

from aclog.client.errors import FollowingEndedError, TransientReadError, check_same_voters, retriable
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.filelog.files import CheckpointFile
from aclog.metalog.machine import threads
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define, frozen
from aclog.snapshots.publisher import Progress, Publisher, recover_log

Notify: TypeAlias = Callable[[str], None]
"""Called once for each error, each recovery from one, and each note of a replay."""

_WAIT_SECONDS = 0.5
_READ_BYTES = 16 << 20
_FIRST_BACKOFF = 0.05
_MAX_BACKOFF = 1.0


class FollowedLog(LogReader, Protocol):
    """A log that may begin after a snapshot (aclog.client.quorum_log.QuorumLog)."""

    def checkpoints(self) -> Sequence[CheckpointFile]:
        """Return the checkpoints to recover from, the newest last; none if the log begins at 0."""
        ...


@frozen(kw_only=True)
class Lag:
    """The lag of the published image behind the known high-water mark, in records and in ms.

    `milliseconds` is the age of the image's last record; 0 if nothing is missing.
    """

    records: int
    milliseconds: int


@define(kw_only=True, eq=False)
class Follower:
    """Replays a log into a publisher until it is stopped, or a record cannot be replayed.

    In the latter case readers keep the image before it, and `failure` has the reason why it no longer advances: no
    record is ever skipped. Network errors are retried. If the log no longer reaches back to the image, the newest
    snapshot replaces it.
    """

    log: FollowedLog
    publisher: Publisher
    notify: Notify = field(default=lambda _: None)
    progress: Progress | None = None
    failure: Exception | None = field(default=None, init=False)
    error: MetadataError | None = field(default=None, init=False)
    """Why the last read failed; None after a successful one."""
    _stopping: "threading.Event" = field(factory=threads.event, init=False)
    _ended: "threading.Event" = field(factory=threads.event, init=False)
    _lock: "threading.Lock" = field(factory=threads.lock, init=False)
    """Guards `_calls` until the end."""
    _calls: list[Callable[[], None]] = field(factory=list, init=False)
    _thread: "threading.Thread" = field(init=False)

    def start(self) -> None:
        """Start to follow, in a thread of its own."""
        self._thread = threads.Thread(target=self._run, name="metadata-follower", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop; wait at most `timeout` seconds for the thread to end, and return whether it has.

        The log stays open: its owner closes it.
        """
        self._stopping.set()
        return self.wait_ended(timeout)

    def wait_ended(self, timeout: float | None = None) -> bool:
        """Wait, at most `timeout` seconds, until the follower has stopped or failed; return whether it has."""
        return self._ended.wait(timeout)

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call once the follower has stopped or failed, from its thread; at once if it has already."""
        with self._lock:
            if not self._ended.is_set():
                self._calls.append(call)
                return
        call()

    def lag(self, now_ms: int | None = None) -> Lag:
        """Return how far the image is behind; `now_ms`, in ms since 1970, defaults to the current time."""
        image = self.publisher.current
        records = max(self.log.high_watermark() - image.end_offset, 0)
        now = current_time_ms() if now_ms is None else now_ms
        return Lag(records=records, milliseconds=max(now - max(image.timestamp, 0), 0) if records else 0)

    def _run(self) -> None:
        backoff = _FIRST_BACKOFF
        try:
            while not self._stopping.is_set():
                try:
                    self._step()
                except TransientReadError as transient:
                    self._note_error(transient.cause)
                    self._stopping.wait(backoff)
                    backoff = min(2 * backoff, _MAX_BACKOFF)
                else:
                    self._note_recovery()
                    backoff = _FIRST_BACKOFF
        except Exception as error:  # noqa: BLE001 - any error: the image must not advance past a record that failed
            self.failure = error
            self.notify(f"{self.log.name}: replay has stopped: {error}")
        finally:
            with self._lock:
                self._ended.set()
            for call in self._calls:
                call()

    def _step(self) -> None:
        """Publish the next records, if any arrive in time."""
        next_offset = self.publisher.applier.next_offset
        # Before replaying: how far the image is behind decides whether the node is ready.
        self.publisher.observe_high_watermark(retriable(self.log.high_watermark))
        # An empty image begins too, even if the log starts at 0: recovery replays in bulk, which is many times faster.
        if next_offset < retriable(self.log.start_offset) or next_offset == 0:
            self._begin()
        elif retriable(lambda: self.log.wait(next_offset, _WAIT_SECONDS)):
            chunk = self._read(next_offset)
            if chunk:
                self.publisher.advance(chunk)

    def _read(self, offset: int) -> bytes:
        """Return the next batches; none if the log's start has just moved beyond them."""
        try:
            return retriable(lambda: self.log.read(offset, _READ_BYTES))
        except TransientReadError:
            if offset < retriable(self.log.start_offset):
                return b""
            raise

    def _begin(self) -> None:
        """Load the newest snapshot and all records after it, or the whole log if it begins at 0."""
        if not retriable(lambda: self.log.wait(0, _WAIT_SECONDS)):
            return
        reached = self.publisher.current.end_offset
        if reached:
            start = retriable(self.log.start_offset)
            self.notify(f"{self.log.name}: begins at offset {start} now: a snapshot replaces the image of {reached}")
        checkpoints = retriable(self.log.checkpoints)
        newer = self.publisher.applier.newer.copy()
        try:
            recovered = recover_log(self.log, checkpoints, newer=newer, progress=self.progress)
        except FollowingEndedError:
            raise
        except LogError as error:
            # Recovery reads the log itself. Only its LogErrors are retried: a record that fails to replay stays bad.
            raise TransientReadError(error) from error
        voters = self.publisher.current.provenance.voters
        check_same_voters(voters, recovered.image.provenance.voters, recovered.image.end_offset)
        for note in recovered.notes:
            self.notify(note)
        self.publisher.replace(recovered.image)

    def _note_error(self, error: MetadataError) -> None:
        before, self.error = self.error, error
        if before is None or str(before) != str(error):
            self.notify(f"{error}; trying again")

    def _note_recovery(self) -> None:
        if self.error is not None:
            self.error = None
            self.notify(f"{self.log.name}: following again from offset {self.publisher.applier.next_offset}")
