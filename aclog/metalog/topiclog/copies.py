"""Copies of a topic log: a whole log written into an empty topic, and what can be read of a damaged one."""

from collections.abc import Iterable
from contextlib import closing

from attrs import evolve, field

from aclog.metalog.committed_log import Closeable
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.machine import threads
from aclog.metalog.topic_message import Assembler, MessageBatch
from aclog.metalog.topiclog.partition import Partition, connect_reader
from aclog.metalog.topiclog.positions import StoredMessage, leader_of
from aclog.metalog.topiclog.reader import HistoricalReads
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.topic import Survey
from aclog.metalog.topiclog.topic_log import fence_previous_writer
from aclog.metalog.values import define, frozen

# A copy of a whole log, written into an empty topic in one transaction.


FILL_SECONDS = 900.0
"""How long the copy may take: the largest transaction timeout that brokers accept by default
(transaction.max.timeout.ms).
"""


def fill_topic(settings: TopicSettings, batches: Iterable[MessageBatch], *, timeout: float = 60.0) -> None:
    """Write batches, control batches included, into an existing empty topic, in one transaction.

    So the topic has all of them or none, and a partial copy is never mistaken for a log. The batches keep their offsets
    and epochs, and must be contiguous.

    Raises:
        LogError: the topic is not empty; no broker responds within `timeout` seconds, or one refuses.
        FencedError: another writer has taken over.
        DecodeError: as `batches` raises.

    """
    properties = {**settings.properties, "transaction.timeout.ms": str(int(FILL_SECONDS * 1000))}
    with closing(HistoricalReads(settings, threads.Event())) as reads:
        reads.connect(timeout)
        _check_empty(reads.survey(), settings)  # before fencing, which would stop a live controller
        with closing(fence_previous_writer(evolve(settings, properties=properties), timeout)) as transactions:
            # Again: the previous writer may have committed something before it was fenced.
            _check_empty(reads.survey_stable(timeout), settings)
            try:
                transactions.commit(batches, FILL_SECONDS)
            except BaseException:
                transactions.abort()
                raise


def _check_empty(bounds: Survey, settings: TopicSettings) -> None:
    end = bounds.end_offset
    if end:
        raise LogError(f"{settings.name}: not empty: it holds a log that ends at offset {end}; nothing is written")


# What can still be read of a topic log that is damaged: everything before the damage, and what stands behind it.


_FETCH_WAIT_MS = 100


@frozen(kw_only=True)
class Damage:
    """Why a log cannot be read further, and its messages from there to the last stable offset.

    `position` is Kafka's offset of the first such message. `records` is the number of those that have the headers of a
    record, `offsets` the lowest and the highest offset in these.
    """

    error: DecodeError
    position: int
    messages: int
    records: int
    offsets: tuple[int, int] | None


@define(eq=False, kw_only=True)
class SalvagedLog(Closeable):
    """The whole batches before the damage (aclog.metalog.committed_log.LogReader). Made by `salvage`."""

    settings: TopicSettings
    damage: Damage | None
    """None if the whole log can be read."""
    _bounds: Survey
    _reads: HistoricalReads = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reads = HistoricalReads(self.settings, threads.Event())
        self._reads.assume(self._bounds)

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    def start_offset(self) -> int:
        """The offset of the first whole batch."""
        return self._bounds.start_offset

    def high_watermark(self) -> int:
        """The offset after the last whole batch before the damage."""
        return self._bounds.end_offset

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole batches (aclog.metalog.committed_log.LogReader.read)."""
        start, mark = self.start_offset(), self.high_watermark()
        if not start <= offset <= mark:
            raise LogError(f"{self.name}: offset {offset} is outside {start}..{mark}, the readable part of the log")
        return b"" if offset == mark else self._reads.read(offset, mark, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:  # noqa: ARG002 - as in LogReader
        """Return whether there is a batch after `offset`, at once: a copy does not grow."""
        return self.high_watermark() > offset

    def close(self) -> None:
        """Close the connection."""
        self._reads.close()


def salvage(settings: TopicSettings) -> SalvagedLog:
    """Read a log from its start to its first damage, or to its end. Reads the whole log; blocks.

    What makes no sense is read twice before it counts as damage (TopicReader).

    Raises:
        LogError: no broker responds, or one refuses.

    """
    with closing(_connected(settings)) as partition:
        start, end = partition.bounds()
    scan = _Scan(end=end, position=start)
    error, doubted = _scanned(settings, scan), -1
    while error is not None and doubted != scan.position:
        doubted = scan.position
        error = _scanned(settings, scan)
    damage = None
    if error is not None:
        with closing(_connected(settings)) as partition:
            damage = _rest(partition, scan.position, end, error)
    bounds = Survey(start=start, end=scan.position, first=scan.first, last=scan.last)
    return SalvagedLog(settings=settings, damage=damage, bounds=bounds)


def _connected(settings: TopicSettings) -> Partition:
    return connect_reader(settings, threads.Event(), fetch_wait_ms=_FETCH_WAIT_MS)


@define(eq=False, kw_only=True)
class _Scan:
    """The part of a log that was read: up to Kafka's offset `position`, behind a whole batch."""

    end: int
    position: int
    offset: int | None = None
    epoch: int = 0
    first: StoredMessage | None = None
    last: StoredMessage | None = None

    def run(self, partition: Partition) -> DecodeError | None:
        """Read on to the end; return the error that prevents it."""
        assembler, begin = Assembler(self.offset, self.epoch), None
        try:
            for message in partition.messages_from(self.position):
                if message.position >= self.end:
                    break
                if message.place.offset == message.place.base_offset:
                    begin = message
                if _completes(assembler, message, partition.name):
                    self._take(begin, message)
                    begin = None
        except DecodeError as error:
            return error
        if begin is None:
            return None
        what = "the last message is not the last one of its batch"
        return ReplayError(what, offset=begin.place.offset, path=f"{partition.name}, Kafka's offset {begin.position}")

    def _take(self, begin: StoredMessage | None, last: StoredMessage) -> None:
        """Go past a whole batch, by its first message and its last."""
        self.first, self.last = self.first or begin, last
        self.position, self.offset, self.epoch = last.position + 1, last.place.end_offset, last.place.epoch


def _scanned(settings: TopicSettings, scan: _Scan) -> DecodeError | None:
    """Continue a scan over a new connection."""
    with closing(_connected(settings)) as partition:
        return scan.run(partition)


def _completes(assembler: Assembler, message: StoredMessage, name: str) -> bool:
    """Add a message to its batch; return whether it completes the batch."""
    try:
        leader_of(message)
        return assembler.add(message.place, message.value, message.timestamp) is not None
    except DecodeError as error:
        raise error.at(path=f"{name}, Kafka's offset {message.position}") from None


def _rest(partition: Partition, position: int, end: int, error: DecodeError) -> Damage:
    """Count what stands from `position` to before `end`."""
    places = partition.places_from(position)
    messages = [(at, None if place is None else place.offset) for at, place in places if at < end]
    offsets = [offset for _, offset in messages if offset is not None]
    return Damage(
        error=error,
        position=messages[0][0] if messages else position,
        messages=len(messages),
        records=len(offsets),
        offsets=(min(offsets), max(offsets)) if offsets else None,
    )
