"""Batches that a process does not hold in memory, read from the topic when they are asked for."""

import threading
import time
from collections import deque
from collections.abc import Callable

from attrs import define, field

from metalog.errors import DecodeError, LogError
from metalog.topiclog.batch_stream import BatchStream, TakenBatch
from metalog.topiclog.partition import ANSWER_SECONDS, Partition
from metalog.topiclog.survey import Survey, find_base, survey

_SLICE_SECONDS = 1.0
_REMEMBERED = 64
"""Places where readers stopped, so that each goes on without a search."""


@define(eq=False)
class PastReads:
    """Safe for many threads, one at a time. Connects with the first read, and anew after an error."""

    _connect: Callable[[], Partition]
    _partition: Partition | None = None
    _known: Survey | None = None
    _stream: BatchStream | None = field(default=None, init=False)
    _ahead: deque[TakenBatch] = field(factory=deque, init=False)
    """What the stream gave already."""
    _next: int = field(default=-1, init=False)
    """The offset of what comes next, out of `_ahead` or of the stream."""
    _left_at: dict[int, int] = field(factory=dict, init=False)
    """Kafka's offsets of batches that somebody may want next, by base offset."""
    _turn: threading.Lock = field(factory=threading.Lock, init=False)

    def read(self, offset: int, mark: int, max_bytes: int) -> bytes:
        """Batches from the one that holds `offset` on, up to the offset `mark`, at most `max_bytes`, but one at least.

        Raises:
            LogError: no broker answers, or messages are no longer there.
            DecodeError: a message that is no record's, a ReplayError where one is missing.

        """
        with self._turn:
            try:
                return self._read(offset, mark, max_bytes)
            except (LogError, DecodeError):
                self._disconnect()
                raise

    def _read(self, offset: int, mark: int, max_bytes: int) -> bytes:
        if self._stream is None or offset != self._next:
            self._stream = self._begin(offset)
        deadline = time.monotonic() + ANSWER_SECONDS
        while not (found := self._held(mark, max_bytes)):
            if time.monotonic() > deadline:
                what = f"offset {offset}: nothing came for {ANSWER_SECONDS:.0f} s"
                raise LogError(f"{self._stream.partition.name}: {what}")
            self._ahead.extend(self._stream.take(_SLICE_SECONDS))
        self._next = found[-1].end_offset
        self._remember(found[-1])
        return b"".join(batch.data for batch in found)

    def _held(self, mark: int, max_bytes: int) -> list[TakenBatch]:
        """Of what is there already, as much as may be given out at once."""
        found: list[TakenBatch] = []
        room = max_bytes
        while self._ahead and self._ahead[0].end_offset <= mark:
            room -= len(self._ahead[0].data)
            if found and room < 0:
                break
            found.append(self._ahead.popleft())
        return found

    def _begin(self, offset: int) -> BatchStream:
        if self._partition is None:
            self._partition = self._connect()
        self._ahead.clear()
        position, base = self._left_at.get(offset), offset
        if position is None:
            if self._known is None or offset >= self._known.end_offset:
                self._known = survey(self._partition)
            found = find_base(self._partition, offset, self._known)
            position, base = found.position, found.place.base_offset
        return BatchStream(self._partition, position, base)

    def _remember(self, batch: TakenBatch) -> None:
        self._left_at[batch.end_offset] = batch.after
        while len(self._left_at) > _REMEMBERED:
            del self._left_at[next(iter(self._left_at))]

    def close(self) -> None:
        """Let go of the connection."""
        with self._turn:
            self._disconnect()

    def _disconnect(self) -> None:
        self._ahead.clear()
        self._stream, self._next = None, -1
        partition, self._partition = self._partition, None
        if partition is not None:
            partition.close()
