"""The topic log for those that do not write it: committed batches, from memory or from the topic."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from attrs import field

from aclog.metalog.batches import BatchRun
from aclog.metalog.committed_log import Closeable, CommittedLog
from aclog.metalog.errors import DecodeError, LogError, MetadataError
from aclog.metalog.machine import clock, threads
from aclog.metalog.topic_message import Assembler
from aclog.metalog.topiclog.client import RefusedError
from aclog.metalog.topiclog.partition import RESPONSE_SECONDS, Partition, RemovedError, connect_reader, written_end
from aclog.metalog.topiclog.positions import Leader, StoredMessage, leader_of
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.topic import Survey, find_base, find_leader, survey
from aclog.metalog.values import define, frozen

# The newest committed batches of a topic log, in memory, and its newest leader.


@define(kw_only=True, eq=False)
class TailCache(CommittedLog):
    """Holds the newest `window_bytes` of the log. Thread-safe; one thread adds."""

    window_bytes: int
    leader: Leader | None = field(default=None, init=False)

    def begin(self, start_offset: int, high_watermark: int, cached_from: int) -> None:
        """Set the log's start offset and high-water mark; the first batch added begins at `cached_from`."""
        with self._changed:
            self.start_offset, self.high_watermark = start_offset, high_watermark
            self._window.restart(cached_from)
            self._changed.notify_all()

    def add(self, run: BatchRun) -> None:
        """Append batches that were committed, and move the high-water mark past them."""
        with self._changed:
            self._window.append(run)
            self._window.drop(self._window.end, self.window_bytes)
            self.high_watermark = max(self.high_watermark, run.end_offset)
            self._changed.notify_all()

    def set_leader(self, leader: Leader) -> None:
        """Record the newest leader; batches arrive in order, and with them epochs."""
        with self._changed:
            self.leader = leader

    def back_off(self, seconds: float) -> None:
        """Sleep, unless the log is closed meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed, seconds)

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """Read as aclog.metalog.committed_log.LogReader.read; None if the batch is no longer, or not yet, cached.

        Raises:
            LogError: the offset is out of range, or the log is closed.

        """
        with self._changed:
            self.check_bounds(offset)
            if offset == self.high_watermark:
                return b""
            batches = self._window.read(offset, max_bytes)
            return None if batches is None else batches[0]

    @property
    def _silent(self) -> str:
        return "no broker responds"

    @property
    def _ends_wait(self) -> bool:
        # A refused login does not end a wait: a standby controller keeps following until an operator fixes it.
        return self.failure is not None and not self.closed


# A stream of committed batches, assembled from a topic's messages.


@frozen(kw_only=True)
class CommittedBatch:
    """A whole batch in the log's bytes, the offset after it, and Kafka's offset after its last message.

    `leader` is set if the batch begins an epoch.
    """

    data: bytes
    end_offset: int
    next_position: int
    leader: Leader | None


@define(eq=False)
class BatchStream:
    """Reads from Kafka's offset `position`, where the batch of base offset `offset` begins. Not thread-safe.

    `epoch` is that of the batch before, if known. All three advance with each batch that `poll` returns, so that
    another connection can continue there.
    """

    partition: Partition
    position: int
    offset: int
    epoch: int = 0
    _assembler: Assembler = field(init=False)
    _leader: Leader | None = field(default=None, init=False)
    _deferred: DecodeError | None = field(default=None, init=False)
    """An error behind the batches that were returned; raised by the next call."""

    def __attrs_post_init__(self) -> None:
        self._assembler = Assembler(self.offset, self.epoch)
        self.partition.seek(self.position)

    def poll(self, timeout: float) -> list[CommittedBatch]:
        """Return the next batches as soon as one is complete, perhaps none after `timeout` seconds.

        Batches before an error are returned first.

        Raises:
            LogError: as Partition.poll.
            DecodeError: a message that is not a record, with Kafka's offset; ReplayError if one is missing.

        """
        if self._deferred is not None:
            raise self._deferred
        batches: list[CommittedBatch] = []
        try:
            for message in self.partition.poll(timeout):
                batch = self._add(message)
                if batch is not None:
                    batches.append(batch)
        except DecodeError as error:
            if not batches:
                raise
            self._deferred = error
        return batches

    def _add(self, message: StoredMessage) -> CommittedBatch | None:
        next_position = message.position + 1
        try:
            self._leader = leader_of(message) or self._leader
            batch = self._assembler.add(message.place, message.value, message.timestamp)
        except DecodeError as error:
            raise error.at(path=f"{self.partition.name}, Kafka's offset {message.position}") from None
        if batch is None:
            return None
        self.position, self.offset, self.epoch = next_position, batch.end_offset, batch.epoch
        leader, self._leader = self._leader, None
        return CommittedBatch(
            data=batch.encode(), end_offset=batch.end_offset, next_position=next_position, leader=leader
        )


# Reads of batches that are not in memory, from the topic.


_SLICE_SECONDS = 0.5
_FETCH_WAIT_MS = 10
"""Short, since a search often fetches where there is nothing, and waits for the previous fetch to return."""
_RETRY_SECONDS = 0.05
_REMEMBERED = 64
"""How many places are remembered where a read ended, so that the next one continues without a search."""

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@define(eq=False)
class HistoricalReads:
    """Thread-safe; calls run one at a time. Connects on the first read, and again after an error."""

    settings: TopicSettings
    closing: "threading.Event"
    """Set it before `close` to end a read that waits."""
    _partition: Partition | None = field(default=None, init=False)
    _bounds: Survey | None = field(default=None, init=False)
    _stream: BatchStream | None = field(default=None, init=False)
    _ahead: deque[CommittedBatch] = field(factory=deque, init=False)
    """Batches that the stream returned and no read has taken."""
    _next: int = field(default=-1, init=False)
    """The offset of the next batch, in `_ahead` or from the stream."""
    _resume_at: dict[int, int] = field(factory=dict, init=False)
    """Kafka's offsets of batches that may be read next, by base offset."""
    _lock: "threading.Lock" = field(factory=threads.lock, init=False)

    def connect(self, timeout: float) -> None:
        """Connect now. Raises as open_partition."""
        with self._lock:
            self._connected(timeout)

    def survey(self, timeout: float = RESPONSE_SECONDS) -> Survey:
        """Find where the log begins and ends now. Raises as survey.survey; a DecodeError names the log."""
        return self._ask(lambda: self._survey(timeout))

    def _survey(self, timeout: float) -> Survey:
        partition = self._connected()
        self._bounds = survey(partition, timeout)
        self._rest(partition)
        return self._bounds

    def assume(self, bounds: Survey) -> None:
        """Read within these bounds, instead of surveying the log."""
        with self._lock:
            self._bounds = bounds

    def survey_stable(self, timeout: float) -> Survey:
        """Find the end of the log once no transaction is open; for a writer that has fenced the previous one.

        Records behind an open transaction are invisible even if they are committed, since the last stable offset stops
        at its beginning. A writer that did not wait would give their offsets to other records.

        Raises:
            LogError, DecodeError: as `survey`; or a transaction is still open after `timeout` seconds.

        """
        deadline = clock.monotonic() + timeout
        written = written_end(self.settings, self.closing, timeout)
        while True:
            bounds = self.survey(max(deadline - clock.monotonic(), _SLICE_SECONDS))
            if bounds.end >= written:
                return bounds
            if clock.monotonic() > deadline:
                what = f"another producer's transaction is open at Kafka's offset {bounds.end}"
                raise LogError(f"{self.settings.name}: {what}: expected no other producers on the topic")
            clock.sleep(_RETRY_SECONDS)

    def last_batch(self) -> tuple[StoredMessage | None, Leader | None]:
        """Return the first message of the surveyed log's last batch, and the newest epoch's leader, if known.

        Raises:
            LogError, DecodeError: as find_base and find_leader.

        """
        return self._ask(self._last_batch)

    def _last_batch(self) -> tuple[StoredMessage | None, Leader | None]:
        bounds = self._bounds
        if bounds is None or bounds.last is None:
            return None, None
        partition = self._connected()
        base, leader = find_base(partition, bounds.last.place.offset, bounds), find_leader(partition, bounds)
        self._rest(partition)
        return base, leader

    def read(self, offset: int, mark: int, max_bytes: int) -> bytes:
        """Return batches from the one that holds `offset` up to `mark`, at most `max_bytes` but at least one batch.

        Raises:
            LogError: no broker responds, or messages were removed.
            DecodeError: a message that is not a record, ReplayError if one is missing.

        """
        return self._ask(lambda: self._read(offset, mark, max_bytes))

    def _ask(self, question: Callable[[], _T]) -> _T:
        """Return the answer to a question; content that makes no sense is read once more before the error is final."""
        with self._lock:
            if self.closing.is_set():
                raise LogError(f"{self.settings.name}: closed")
            try:
                return self._ask_once(question)
            except DecodeError as first:
                # A client has been seen to hand over records out of order after a broker's death.
                _log.warning("%s; reading it again", first)
                try:
                    return self._ask_once(question)
                except DecodeError:
                    raise first from None

    def _ask_once(self, question: Callable[[], _T]) -> _T:
        """Disconnect after an error, so that the next question starts with a new connection."""
        try:
            return question()
        except DecodeError as error:
            self._disconnect()
            raise error.at(path=self.settings.name) from None
        except LogError:
            self._disconnect()
            raise

    def _connected(self, timeout: float = RESPONSE_SECONDS) -> Partition:
        if self._partition is None:
            self._partition = connect_reader(self.settings, self.closing, fetch_wait_ms=_FETCH_WAIT_MS, timeout=timeout)
        return self._partition

    def _read(self, offset: int, mark: int, max_bytes: int) -> bytes:
        if self._stream is None or offset != self._next:
            self._stream = self._begin(offset)
        deadline = clock.monotonic() + RESPONSE_SECONDS
        while not (batches := self._take_ahead(mark, max_bytes)):
            if self.closing.is_set():
                raise LogError(f"{self.settings.name}: closed")
            if clock.monotonic() > deadline:
                what = f"offset {offset}: no batch arrived within {RESPONSE_SECONDS:.0f} s"
                raise LogError(f"{self.settings.name}: {what}")
            self._ahead.extend(self._stream.poll(_SLICE_SECONDS))
        self._next = batches[-1].end_offset
        self._remember(batches[-1])
        if self._next >= mark:  # there is nothing to read ahead
            self._rest(self._stream.partition)
        return b"".join(batch.data for batch in batches)

    def _take_ahead(self, mark: int, max_bytes: int) -> list[CommittedBatch]:
        """Take from the batches read ahead as many as one read may return."""
        batches: list[CommittedBatch] = []
        room = max_bytes
        # The topic may already hold more than the caller's mark covers.
        while self._ahead and self._ahead[0].end_offset <= mark:
            room -= len(self._ahead[0].data)
            if batches and room < 0:
                break
            batches.append(self._ahead.popleft())
        return batches

    def _begin(self, offset: int) -> BatchStream:
        partition = self._connected()
        self._ahead.clear()
        position, base = self._resume_at.get(offset), offset
        if position is None:
            if self._bounds is None or offset >= self._bounds.end_offset:
                self._bounds = survey(partition)
            first = find_base(partition, offset, self._bounds)
            position, base = first.position, first.place.base_offset
        return BatchStream(partition, position, base)

    def _rest(self, partition: Partition) -> None:
        """Fetch nothing until the next read, which begins a stream of its own."""
        partition.rest()
        self._ahead.clear()
        self._stream, self._next = None, -1

    def _remember(self, batch: CommittedBatch) -> None:
        self._resume_at[batch.end_offset] = batch.next_position
        while len(self._resume_at) > _REMEMBERED:
            del self._resume_at[next(iter(self._resume_at))]

    def close(self) -> None:
        """Close the connection. May be called again."""
        self.closing.set()
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        self._ahead.clear()
        self._stream, self._next = None, -1
        partition, self._partition = self._partition, None
        if partition is not None:
            partition.close()


# The topic log for those that do not write it (aclog.metalog.committed_log.LogReader).


_WAKE_SECONDS = 0.1
"""How often an idle reader checks whether it is closed."""
_READER_RETRY_SECONDS = 0.5
"""The backoff before a topic that cannot be read is tried again."""
_PROBE_SECONDS = 0.5
"""How long a broker may take to prove that it is back."""
_QUIET_MS = 500
"""How long a broker holds an idle reader's fetch; committed records end it at once."""


@frozen
class _Place:
    """The end of the batches that were read: Kafka's offset after them, ours, and the leader epoch of the last."""

    position: int
    offset: int
    epoch: int = 0


@define(eq=False)
class TopicReader(Closeable):
    """Follows the topic in a thread of its own, with isolation level read_committed. Thread-safe.

    The newest batches are in memory; older ones are read from the topic on demand. Broker failures are retried. Records
    that make no sense are read once more, from the last good batch on: a client has been seen to hand over records out
    of order after a broker's death.
    """

    settings: TopicSettings
    window_bytes: int = field(default=32 << 20, kw_only=True)
    """How much of the log's end is cached in memory."""
    _closing: "threading.Event" = field(factory=threads.event, init=False)
    _tail: TailCache = field(init=False)
    _historical: HistoricalReads = field(init=False)
    _place: _Place | None = field(default=None, init=False)
    """Where to continue."""
    _doubt: tuple[_Place | None, DecodeError] | None = field(default=None, init=False)
    """The last error in the log's content, and the place behind which it was found."""
    _thread: "threading.Thread" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._tail = TailCache(name=self.name, window_bytes=self.window_bytes)
        self._historical = HistoricalReads(self.settings, self._closing)
        self._thread = threads.Thread(target=self._run, name=f"reader of {self.name}", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    @property
    def error(self) -> MetadataError | None:
        """Why no records arrive at the moment, for example that no broker responds; None while the log is followed."""
        return self._tail.failure or self._tail.error

    @property
    def failure(self) -> MetadataError | None:
        """Why no records will ever arrive again; None while there is hope."""
        return self._tail.failure

    def leader(self) -> Leader | None:
        """The newest committed epoch's leader; None in an empty log, or while the high-water mark is unknown."""
        return self._tail.leader

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not known within `timeout` seconds, or cannot become known; with the reason.

        """
        self._tail.wait_known(timeout)

    def start_offset(self) -> int:
        """The offset of the first whole batch; 0 in an empty log."""
        return self._tail.start_offset

    def high_watermark(self) -> int:
        """The offset after the last batch below the last stable offset; -1 while it is unknown."""
        return self._tail.high_watermark

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that holds `offset` (aclog.metalog.committed_log.LogReader.read).

        Waits for the network, but not forever.

        Raises:
            LogError: the offset is out of range, the log is closed, or no broker responds.
            DecodeError: a message that is not a record, ReplayError if one is missing.

        """
        batches = self.read_local(offset, max_bytes)
        return self._historical.read(offset, self.high_watermark(), max_bytes) if batches is None else batches

    def read_local(self, offset: int, max_bytes: int = 1 << 20) -> bytes | None:
        """Read as `read`; None if the batch is not, or no longer, in memory (aclog.metalog.committed_log.ServedLog)."""
        return self._tail.read(offset, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`; return whether it is.

        Raises:
            MetadataError: the log can never be followed again.

        """
        return self._tail.wait(offset, timeout)

    def close(self) -> None:
        """Close the connections and end the thread. May be called again."""
        self._closing.set()
        if self._tail.close():
            self._thread.join()
            self._historical.close()

    def _run(self) -> None:
        tail = self._tail
        while not tail.closed and tail.failure is None:
            try:
                self._follow()
            except RemovedError as error:
                tail.fail(error)
            except LogError as error:
                tail.report(error, retriable=not isinstance(error, RefusedError))
                tail.back_off(_READER_RETRY_SECONDS)
            except DecodeError as error:
                self._read_again(error if error.path else error.at(path=self.name))
            except Exception as error:  # noqa: BLE001 - a bug must not leave readers waiting
                tail.fail(LogError(f"{self.name}: the reader failed: {type(error).__name__}: {error}"))

    def _read_again(self, error: DecodeError) -> None:
        """Continue at the last good place, unless an error was found behind it before: that one is final."""
        doubt, self._doubt = self._doubt, (self._place, error)
        if doubt is not None and doubt[0] == self._place:
            self._tail.fail(_with_advice(doubt[1]))
        else:
            _log.warning("%s; reading the topic again from the last good batch", error)
            self._tail.back_off(_READER_RETRY_SECONDS)

    def _follow(self) -> None:
        """Connect, and add batches until the log is closed."""
        with closing(connect_reader(self.settings, self._closing, fetch_wait_ms=_QUIET_MS)) as partition:
            stream = self._begin(partition)
            partition.errors.clear()
            self._tail.clear_error()
            while not self._tail.closed:
                batches = stream.poll(_WAKE_SECONDS)
                if batches:
                    self._tail.add(BatchRun.of(b"".join(batch.data for batch in batches)))
                    self._place = _Place(stream.position, stream.offset, stream.epoch)
                for batch in batches:
                    if batch.leader is not None:
                        self._tail.set_leader(batch.leader)
                self._check_connections(partition, received=bool(batches))

    def _begin(self, partition: Partition) -> BatchStream:
        """Continue where the last connection ended; the first one surveys the log and starts at its last batch."""
        place = self._survey() if self._place is None else self._place
        start, end = partition.bounds()
        if not start <= place.position <= end:
            what = f"Kafka's offset {place.position} comes next, but the topic has {start} to {end}"
            raise RemovedError(f"{self.name}: {what}: messages were removed, or it is a different topic of that name")
        self._place = place
        return BatchStream(partition, place.position, place.offset, place.epoch)

    def _survey(self) -> _Place:
        """Set the log's bounds; return where the last batch begins."""
        bounds = self._historical.survey()
        base, leader = self._historical.last_batch()
        # From the last batch on, so that the cache holds the log's newest batch at once.
        place = _Place(bounds.start, 0) if base is None else _Place(base.position, base.place.offset)
        self._tail.begin(bounds.start_offset, bounds.end_offset, place.offset)
        if leader is not None:
            self._tail.set_leader(leader)
        return place

    def _check_connections(self, partition: Partition, *, received: bool) -> None:
        """Report the client's connection errors, until batches or a probe show that they have passed."""
        # librdkafka reports when a connection fails, never when it recovers.
        error = partition.errors.latest
        if error is None:
            return
        if received or self._responds(partition):
            partition.errors.clear()
            self._tail.clear_error()
        else:
            self._tail.report(error, retriable=not isinstance(error, RefusedError))

    def _responds(self, partition: Partition) -> bool:
        try:
            partition.bounds(_PROBE_SECONDS)
        except LogError:
            return False
        return True


def _with_advice(error: DecodeError) -> DecodeError:
    what = f"{error.what}; `aclog log copy --until-damage` copies the batches before it"
    return type(error)(what, position=error.position, offset=error.offset, path=error.path)
