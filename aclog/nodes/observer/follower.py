"""The thread that keeps a node's state up with a quorum's log (MetadataLoader): it replays, and publishes."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from attrs import define, field, frozen

from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.filelog.file_names import CheckpointFile
from aclog.metalog.log import LogReader
from aclog.nodes.observer.errors import FollowingEndedError
from aclog.snapshots.publisher import Publisher
from aclog.snapshots.recovery import Progress, recover_log

_T = TypeVar("_T")

Notify: TypeAlias = Callable[[str], None]
"""Told, once each, of what goes wrong, of what is right again, and of what a recovery has to say."""

_WAIT_SECONDS = 0.5
_READ_BYTES = 16 << 20
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class FollowedLog(LogReader, Protocol):
    """A log that may begin after a snapshot (aclog.nodes.observer.quorum_log.QuorumLog)."""

    def checkpoints(self) -> Sequence[CheckpointFile]:
        """The checkpoints that a state is begun from, the newest last; none where the log begins at 0."""
        ...


@frozen(kw_only=True)
class Lag:
    """How far what is shown is behind what is committed, as far as is known: in records, and in ms.

    The ms are the age of the last record that is shown, 0 where nothing is missing.
    """

    records: int
    milliseconds: int


@define(kw_only=True, eq=False)
class Follower:
    """Follows a log into a publisher until it is stopped, or until there is something that cannot be replayed.

    Then readers keep the state before it, and `failure` says why nothing comes any more: nothing is ever skipped.
    Troubles of the network are overcome. Where the log no longer reaches back, the newest snapshot replaces everything.
    """

    log: FollowedLog
    publisher: Publisher
    notify: Notify = field(default=lambda _: None)
    progress: Progress | None = None
    failure: Exception | None = field(default=None, init=False)
    trouble: MetadataError | None = field(default=None, init=False)
    """Why the log could not be read the last time, until it can be read again."""
    _stopping: threading.Event = field(factory=threading.Event, init=False)
    _ended: threading.Event = field(factory=threading.Event, init=False)
    _thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """Begin to follow, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="metadata-follower", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Follow no more; wait at most `timeout` seconds for the thread to end, and tell whether it has.

        The log stays open: it belongs to whoever made it.
        """
        self._stopping.set()
        return self.wait_ended(timeout)

    def wait_ended(self, timeout: float | None = None) -> bool:
        """Wait, at most `timeout` seconds, until it follows no more: stopped, or failed; tell whether that is so."""
        return self._ended.wait(timeout)

    def lag(self, now_ms: int | None = None) -> Lag:
        """How far behind; `now_ms` is the time, in ms since 1970, unless it is now."""
        image = self.publisher.current
        records = max(self.log.high_watermark() - image.end_offset, 0)
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        return Lag(records=records, milliseconds=max(now - max(image.timestamp, 0), 0) if records else 0)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        try:
            while not self._stopping.is_set():
                try:
                    self._step()
                except FollowingEndedError:
                    raise
                except _UnreadableError as unreadable:
                    self._tell_trouble(unreadable.cause)
                    self._stopping.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    self._tell_recovered()
                    pause = _FIRST_PAUSE
        except Exception as error:  # noqa: BLE001 - whatever it is: the state must not go on without what came here
            self.failure = error
            self.notify(f"{self.log.name}: replay has stopped: {error}")
        finally:
            self._ended.set()

    def _step(self) -> None:
        """Show what comes next, if it comes in time."""
        next_offset = self.publisher.applier.next_offset
        self.publisher.observe_high_watermark(_readable(self.log.high_watermark))
        if next_offset < _readable(self.log.start_offset) or next_offset == 0:
            self._begin()
        elif _readable(lambda: self.log.wait(next_offset, _WAIT_SECONDS)):
            chunk = self._read(next_offset)
            if chunk:
                self.publisher.advance(chunk)

    def _read(self, offset: int) -> bytes:
        """What comes next; nothing where it went out of the log a moment ago."""
        try:
            return _readable(lambda: self.log.read(offset, _READ_BYTES))
        except _UnreadableError:
            if offset < _readable(self.log.start_offset):
                return b""
            raise

    def _begin(self) -> None:
        """Begin anew with the newest snapshot and all that follows it, or with the log where it begins at 0."""
        if not _readable(lambda: self.log.wait(0, _WAIT_SECONDS)):
            return
        reached = self.publisher.current.end_offset
        if reached:
            start = _readable(self.log.start_offset)
            self.notify(f"{self.log.name}: begins at offset {start} by now: a snapshot replaces what ends at {reached}")
        checkpoints = _readable(self.log.checkpoints)
        newer = self.publisher.applier.newer.copy()
        try:
            found = recover_log(self.log, checkpoints, newer=newer, progress=self.progress)
        except FollowingEndedError:
            raise
        except LogError as error:
            raise _UnreadableError(error) from error
        for note in found.notes:
            self.notify(note)
        self.publisher.replace(found.image)

    def _tell_trouble(self, trouble: MetadataError) -> None:
        before, self.trouble = self.trouble, trouble
        if before is None or str(before) != str(trouble):
            self.notify(f"{trouble}; trying again")

    def _tell_recovered(self) -> None:
        if self.trouble is not None:
            self.trouble = None
            self.notify(f"{self.log.name}: followed again from offset {self.publisher.applier.next_offset}")


class _UnreadableError(Exception):
    """The log could not be read, for a reason that may pass."""

    def __init__(self, cause: MetadataError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _readable(what: Callable[[], _T]) -> _T:
    """What the log answers; FollowingEndedError passes through, any other trouble is an _UnreadableError."""
    try:
        return what()
    except FollowingEndedError:
        raise
    except MetadataError as error:
        raise _UnreadableError(error) from error
