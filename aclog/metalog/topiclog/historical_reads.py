"""Reads of batches that are not in memory, from the topic."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from attrs import define, field

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.topiclog.batch_stream import BatchStream, CommittedBatch
from aclog.metalog.topiclog.leader_change import Leader
from aclog.metalog.topiclog.partition import RESPONSE_SECONDS, Partition, connect_reader, written_end
from aclog.metalog.topiclog.positions import StoredMessage
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.survey import Survey, find_base, find_leader, survey

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
    closing: threading.Event
    """Set it before `close` to end a read that waits."""
    _partition: Partition | None = field(default=None, init=False)
    _known: Survey | None = field(default=None, init=False)
    _stream: BatchStream | None = field(default=None, init=False)
    _ahead: deque[CommittedBatch] = field(factory=deque, init=False)
    """Batches that the stream returned and no read has taken."""
    _next: int = field(default=-1, init=False)
    """The offset of the next batch, in `_ahead` or from the stream."""
    _resume_at: dict[int, int] = field(factory=dict, init=False)
    """Kafka's offsets of batches that may be read next, by base offset."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def connect(self, timeout: float) -> None:
        """Connect now. Raises as open_partition."""
        with self._lock:
            self._connected(timeout)

    def survey(self, timeout: float = RESPONSE_SECONDS) -> Survey:
        """Find where the log begins and ends now. Raises as survey.survey; a DecodeError names the log."""
        return self._ask(lambda: self._survey(timeout))

    def _survey(self, timeout: float) -> Survey:
        self._known = survey(self._connected(), timeout)
        return self._known

    def assume(self, known: Survey) -> None:
        """Read within these bounds, instead of surveying the log."""
        with self._lock:
            self._known = known

    def survey_stable(self, timeout: float) -> Survey:
        """Find the end of the log once no transaction is open; for a writer that has fenced the previous one.

        Records behind an open transaction are invisible even if they are committed, since the last stable offset stops
        at its beginning. A writer that did not wait would give their offsets to other records.

        Raises:
            LogError, DecodeError: as `survey`; or a transaction is still open after `timeout` seconds.

        """
        deadline = time.monotonic() + timeout
        written = written_end(self.settings, self.closing, timeout)
        while True:
            found = self.survey(max(deadline - time.monotonic(), _SLICE_SECONDS))
            if found.end >= written:
                return found
            if time.monotonic() > deadline:
                what = f"another producer's transaction is open at Kafka's offset {found.end}"
                raise LogError(f"{self.settings.name}: {what}: expected no other producers on the topic")
            time.sleep(_RETRY_SECONDS)

    def last_batch(self) -> tuple[StoredMessage | None, Leader | None]:
        """Return the first message of the surveyed log's last batch, and the newest epoch's leader, if known.

        Raises:
            LogError, DecodeError: as find_base and find_leader.

        """
        return self._ask(self._last_batch)

    def _last_batch(self) -> tuple[StoredMessage | None, Leader | None]:
        known = self._known
        if known is None or known.last is None:
            return None, None
        partition = self._connected()
        return find_base(partition, known.last.place.offset, known), find_leader(partition, known)

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
        deadline = time.monotonic() + RESPONSE_SECONDS
        while not (found := self._take_ahead(mark, max_bytes)):
            if self.closing.is_set():
                raise LogError(f"{self.settings.name}: closed")
            if time.monotonic() > deadline:
                what = f"offset {offset}: no batch arrived within {RESPONSE_SECONDS:.0f} s"
                raise LogError(f"{self.settings.name}: {what}")
            self._ahead.extend(self._stream.poll(_SLICE_SECONDS))
        self._next = found[-1].end_offset
        self._remember(found[-1])
        return b"".join(batch.data for batch in found)

    def _take_ahead(self, mark: int, max_bytes: int) -> list[CommittedBatch]:
        """Take from the batches read ahead as many as one read may return."""
        found: list[CommittedBatch] = []
        room = max_bytes
        # The topic may already hold more than the caller's mark covers.
        while self._ahead and self._ahead[0].end_offset <= mark:
            room -= len(self._ahead[0].data)
            if found and room < 0:
                break
            found.append(self._ahead.popleft())
        return found

    def _begin(self, offset: int) -> BatchStream:
        partition = self._connected()
        self._ahead.clear()
        position, base = self._resume_at.get(offset), offset
        if position is None:
            if self._known is None or offset >= self._known.end_offset:
                self._known = survey(partition)
            found = find_base(partition, offset, self._known)
            position, base = found.position, found.place.base_offset
        return BatchStream(partition, position, base)

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
