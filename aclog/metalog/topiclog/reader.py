"""The topic log for those that do not write it (aclog.metalog.log.LogReader)."""

import logging
import threading
from contextlib import closing

from attrs import define, field, frozen

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import DecodeError, LogError, MetadataError
from aclog.metalog.topiclog.batch_stream import BatchStream
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.kafka_errors import RefusedError
from aclog.metalog.topiclog.leader_change import Leader
from aclog.metalog.topiclog.partition import Partition, RemovedError, connect_reader
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.tail_cache import TailCache

_WAKE_SECONDS = 0.1
"""How often an idle reader checks whether it is closed."""
_RETRY_SECONDS = 0.5
"""The backoff before a topic that cannot be read is tried again."""
_PROBE_SECONDS = 0.5
"""How long a broker may take to prove that it is back."""
_QUIET_MS = 500
"""How long a broker holds an idle reader's fetch; committed records end it at once."""

_log = logging.getLogger(__name__)


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
    """How much of the log's end is held in memory."""
    _closing: threading.Event = field(factory=threading.Event, init=False)
    _tail: TailCache = field(init=False)
    _historical: HistoricalReads = field(init=False)
    _place: _Place | None = field(default=None, init=False)
    """Where to continue."""
    _doubt: tuple[_Place | None, DecodeError] | None = field(default=None, init=False)
    """The last error in the log's content, and the place behind which it was found."""
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
            MetadataError: it is not known within `timeout` seconds, or cannot become known; says why.

        """
        self._tail.wait_known(timeout)

    def start_offset(self) -> int:
        """The offset of the first whole batch; 0 in an empty log."""
        return self._tail.start_offset

    def high_watermark(self) -> int:
        """The offset after the last batch below the last stable offset; -1 while it is unknown."""
        return self._tail.high_watermark

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that holds `offset` (aclog.metalog.log.LogReader.read).

        Waits for the network, but not forever.

        Raises:
            LogError: the offset is out of range, the log is closed, or no broker responds.
            DecodeError: a message that is not a record, ReplayError if one is missing.

        """
        found = self._tail.read(offset, max_bytes)
        return self._historical.read(offset, self.high_watermark(), max_bytes) if found is None else found

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
                tail.back_off(_RETRY_SECONDS)
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
            self._tail.back_off(_RETRY_SECONDS)

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
        found = self._historical.survey()
        base, leader = self._historical.last_batch()
        # From the last batch on, so that the cache holds the log's newest batch at once.
        place = _Place(found.start, 0) if base is None else _Place(base.position, base.place.offset)
        self._tail.begin(found.start_offset, found.end_offset, place.offset)
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
    what = f"{error.what}; `aclog log copy --until-damage` copies what stands before it"
    return type(error)(what, position=error.position, offset=error.offset, path=error.path)
