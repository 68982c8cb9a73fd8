"""A topic log as those read it who do not write it (aclog.metalog.log.LogReader)."""

import threading
from contextlib import closing
from types import TracebackType
from typing import Self

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.errors import DecodeError, LogError, MetadataError
from aclog.metalog.topiclog.batch_stream import BatchStream
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.kafka_errors import RefusedError
from aclog.metalog.topiclog.leader_change import Leader
from aclog.metalog.topiclog.partition import Partition, RemovedError, connect_reader
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.tail_cache import TailCache

_WAKE_SECONDS = 0.1
"""How often a quiet reader sees whether it is closed."""
_RETRY_SECONDS = 0.5
"""How long to rest before a topic that cannot be read is tried again."""
_ASK_SECONDS = 0.5
"""How long a broker may take to show that it is back."""
_QUIET_MS = 500
"""How long a broker keeps a quiet reader's fetch: what is committed comes at once all the same."""


@define(eq=False)
class TopicReader:
    """Follows the topic in a thread of its own, read_committed. Safe for many threads.

    Holds what batches last; what is older is read from the topic when it is asked for. Losses of brokers are overcome.
    """

    settings: TopicSettings
    window_bytes: int = field(default=32 << 20, kw_only=True)
    """How much of what batches last is held in memory."""
    _closing: threading.Event = field(factory=threading.Event, init=False)
    _tail: TailCache = field(init=False)
    _historical: HistoricalReads = field(init=False)
    _place: tuple[int, int] | None = field(default=None, init=False)
    """Where to go on: Kafka's offset and ours."""
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._tail = TailCache(name=self.name, window_bytes=self.window_bytes)
        self._historical = HistoricalReads(self.settings, self._closing)
        self._thread = threading.Thread(target=self._run, name=f"reader of {self.name}", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    @property
    def error(self) -> MetadataError | None:
        """Why nothing comes, while nothing does (no broker answers); None while all is well."""
        return self._tail.failure or self._tail.error

    def leader(self) -> Leader | None:
        """Who wrote the newest epoch that is committed; None in an empty log, or while the mark is not known."""
        return self._tail.leader

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not within `timeout` seconds, or will not be; why.

        """
        self._tail.wait_known(timeout)

    def start_offset(self) -> int:
        """The offset of the first batch that is there whole; 0 in an empty log."""
        return self._tail.start_offset

    def high_watermark(self) -> int:
        """The offset after the last batch below the last stable offset; -1 while it is not known."""
        return self._tail.high_watermark

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole committed batches from the one that holds `offset` (aclog.metalog.log.LogReader.read).

        Waits for the network, but not for ever.

        Raises:
            LogError: outside of the log, closed, or no broker answers.
            DecodeError: a message that is no record's, a ReplayError where one is missing.

        """
        found = self._tail.read(offset, max_bytes)
        return self._historical.read(offset, self.high_watermark(), max_bytes) if found is None else found

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`; tell whether it is.

        Raises:
            MetadataError: the log cannot be followed any more, and that will not pass by itself.

        """
        return self._tail.wait(offset, timeout)

    def close(self) -> None:
        """Let go of the connections and the thread; a second close is nothing."""
        self._closing.set()
        if self._tail.close():
            self._thread.join()
            self._historical.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        tail = self._tail
        while not tail.closed and tail.failure is None:
            try:
                self._follow()
            except RemovedError as error:
                tail.fail(error)
            except LogError as error:
                tail.report(error, retriable=not isinstance(error, RefusedError))
                tail.back_off(_RETRY_SECONDS)
            except DecodeError as error:
                tail.fail(error if error.path else error.at(path=self.name))
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not leave readers waiting
                tail.fail(LogError(f"{self.name}: reading broke off: {type(error).__name__}: {error}"))

    def _follow(self) -> None:
        """Connect, find out where to go on, and take in what comes until the log is closed."""
        with closing(connect_reader(self.settings, self._closing, fetch_wait_ms=_QUIET_MS)) as partition:
            stream = self._begin(partition)
            partition.errors.forget()
            self._tail.clear_error()
            while not self._tail.closed:
                batches = stream.poll(_WAKE_SECONDS)
                if batches:
                    self._tail.add(BatchRun.of(b"".join(batch.data for batch in batches)))
                    self._place = stream.position, stream.offset
                for batch in batches:
                    if batch.leader is not None:
                        self._tail.set_leader(batch.leader)
                self._check_connections(partition, batches=bool(batches))

    def _begin(self, partition: Partition) -> BatchStream:
        position, offset = self._survey() if self._place is None else self._place
        start, end = partition.bounds()
        if not start <= position <= end:
            what = f"Kafka's offset {position} comes next, but the topic holds {start} to {end}"
            raise RemovedError(f"{self.name}: {what}: messages were removed, or it is another topic")
        self._place = position, offset
        return BatchStream(partition, position, offset)

    def _survey(self) -> tuple[int, int]:
        """Find the marks, and tell where the last batch begins: Kafka's offset and ours."""
        found = self._historical.survey()
        base, leader = self._historical.last_batch()
        position, offset = (found.start, 0) if base is None else (base.position, base.place.offset)
        self._tail.begin(found.start_offset, found.end_offset, offset)
        if leader is not None:
            self._tail.set_leader(leader)
        return position, offset

    def _check_connections(self, partition: Partition, *, batches: bool) -> None:
        """Pass on what the client tells of its connections, until it is seen that they are well."""
        error = partition.errors.latest
        if error is None:
            return
        if batches or self._responds(partition):
            partition.errors.forget()
            self._tail.clear_error()
        else:
            self._tail.report(error, retriable=not isinstance(error, RefusedError))

    def _responds(self, partition: Partition) -> bool:
        try:
            partition.bounds(_ASK_SECONDS)
        except LogError:
            return False
        return True
