"""A topic log, open for writing: election and fencing of writers, takeover, and transactions."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

from attrs import field
from confluent_kafka import OFFSET_END, Consumer, KafkaException, Producer, TopicPartition

from aclog.metalog.batches import BatchHeader, BatchRun, build_batch, read_header
from aclog.metalog.committed_log import Appended, Closeable, LogReader
from aclog.metalog.control_records import ControlRecord, LeaderChange, LeaderChangeVoter, control_batch
from aclog.metalog.errors import DecodeError, LogError, MetadataError
from aclog.metalog.group_commit import GroupCommit, read_prebuilt_header
from aclog.metalog.machine import clock, threads
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.topic_message import read_batch
from aclog.metalog.topiclog.client import (
    COMMIT_SECONDS,
    PRODUCER_DEFAULTS,
    PRODUCER_FIXED,
    RAISED,
    SLICE_SECONDS,
    ClientErrors,
    DeliveryReports,
    Transactions,
    kafka_error,
    new_consumer,
    new_producer,
    retriable,
    serve_callbacks,
)
from aclog.metalog.topiclog.reader import HistoricalReads, TailCache, TopicReader
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.values import define

# The committed batches of a topic log's writer, read back before they are acknowledged.


_SLICE_SECONDS = 0.5
_PAUSE_SECONDS = 0.01


@define(eq=False)
class ReadBack(Closeable):
    """Proves that batches can be read, by a read_committed reader that gets them from the topic alone.

    Kafka takes messages from anyone with the right to write. What follows a message that is not a record can be
    committed, but never read again: acknowledging it would be a lie. Only `abandon` is thread-safe.
    """

    _reader: LogReader
    _owned: bool = field(kw_only=True)
    """Whether the reader is closed with this object."""
    _abandoned: "threading.Event" = field(factory=threads.event, init=False)

    def check(self, batches: Sequence[bytes], deadline: float) -> None:
        """Wait until the reader has passed these contiguous batches, and compare what it has read.

        `deadline` is of the monotonic clock.

        Raises:
            LogError: the reader has met something else, or has not come that far in time. The batches are committed.

        """
        start, end = read_header(batches[0]).base_offset, read_header(batches[-1]).end_offset
        written = b"".join(batches)
        try:
            self._wait(end, deadline)
            data = self._reader.read(start, len(written))
        except DecodeError as error:
            raise self._unread(start, end, f"this writer's own reader stopped before: {error}") from error
        if data != written:
            raise self._unread(start, end, "other records stand at these offsets")

    def _wait(self, end: int, deadline: float) -> None:
        while not self._reader.wait(end - 1, _SLICE_SECONDS):
            if self._abandoned.wait(_PAUSE_SECONDS):
                raise LogError(f"{self._reader.name}: abandoned")
            if clock.monotonic() > deadline:
                what = f"committed, but the offsets up to {end} did not become readable in time"
                raise LogError(f"{self._reader.name}: {what}")

    def _unread(self, start: int, end: int, why: str) -> LogError:
        what = f"offsets {start} to {end - 1} are committed and not acknowledged"
        return LogError(f"{self._reader.name}: {what}: {why}")

    def abandon(self) -> None:
        """Make a thread inside `check` give up soon."""
        self._abandoned.set()

    def close(self) -> None:
        """Close the reader, if it is owned."""
        if self._owned:
            self._reader.close()


# A topic log, open for writing (aclog.metalog.committed_log.Log). Made by `open_topic_log`.


_TRANSACTION_BYTES = 16 << 20
_TRANSACTION_RECORDS = 20_000
"""The maximum of one transaction, unless its first batch alone is larger."""


@define(eq=False)
class TopicLog(Closeable):
    """The topic's one writer until Kafka fences it, and one of its readers. Thread-safe.

    All waiting batches go into one transaction, and are acknowledged once they were read back. After a failed or
    uncertain transaction, or one that cannot be read back, the log is dead: all pending and later calls raise its
    `failure`. The transaction may still be committed, even if the writer was fenced: its commit may have been decided
    first. Opening the log again shows the outcome.
    """

    settings: TopicSettings
    leader_epoch: int
    _tail: TailCache = field(kw_only=True)
    _historical: HistoricalReads = field(kw_only=True)
    _transactions: Transactions = field(kw_only=True)
    _read_back: ReadBack = field(kw_only=True)
    _on_failure: Callable[[LogError], None] | None = field(default=None, kw_only=True)
    _committer: GroupCommit = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._committer = GroupCommit(self.name, self.high_watermark(), self._commit, self._on_failure)

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    @property
    def failure(self) -> LogError | None:
        """Why nothing can be appended any more, a FencedError if another writer took over; None otherwise.

        Closing is not a failure.
        """
        return self._committer.failure

    def start_offset(self) -> int:
        """The offset of the first whole batch."""
        return self._tail.start_offset

    def high_watermark(self) -> int:
        """The end of the committed log, which is known from the start: only this writer moves it."""
        return self._tail.high_watermark

    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._committer.end_offset

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch (aclog.metalog.committed_log.Log.append)."""
        batch = build_batch(values, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(values), self.leader_epoch)

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a caller-built batch unchanged (aclog.metalog.committed_log.Log.append_batch).

        Raises:
            LogError: as there; or the batch has properties that messages do not preserve.

        """
        header = read_prebuilt_header(self.name, batch, self.leader_epoch)
        self._check_carried(batch, header)
        return self._committer.submit(batch, header.record_count, self.leader_epoch, base_offset=header.base_offset)

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; raises as `append`."""
        batch = control_batch(*records, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(records), self.leader_epoch)

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that holds `offset` (see LogReader.read)."""
        batches = self.read_local(offset, max_bytes)
        return self._historical.read(offset, self.high_watermark(), max_bytes) if batches is None else batches

    def read_local(self, offset: int, max_bytes: int = 1 << 20) -> bytes | None:
        """Read as `read`; None if the batch is older than this writer, or no longer in memory (see ServedLog)."""
        return self._tail.read(offset, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset` (aclog.metalog.committed_log.LogReader.wait)."""
        return self._tail.wait(offset, timeout)

    def abandon(self, why: str) -> None:
        """Give up at once, without waiting for a broker: pending appends fail with a LogError that has the reason.

        Reads from the topic fail as well. For a writer that was deposed. Transactions that it has sent may still be
        committed.
        """
        self._historical.closing.set()
        self._transactions.abandon()
        self._read_back.abandon()
        self._committer.abandon(f"{self.name}: {why}")

    def close(self) -> None:
        """Commit the pending batches, then close. May be called again.

        Raises:
            LogError: called from a future's callback, in the commit thread itself.

        """
        self._committer.close()
        if self._tail.close():
            self._transactions.close()
            self._historical.close()
            self._read_back.close()

    def _check_carried(self, batch: bytes, header: BatchHeader) -> None:
        try:
            carried = read_batch(batch, 0, header).encode()
        except DecodeError as error:
            raise LogError(f"{self.name}: cannot append the batch: {error}") from None
        # The topic stores records, not batches. Readers rebuild the batch, and must get the same bytes.
        if carried != batch:
            what = "the batch cannot be stored unchanged as messages: expected one built by aclog.metalog.batches"
            raise LogError(f"{self.name}: {what}; nothing is appended")

    def _commit(self, batches: Sequence[bytes], _: Sequence[int]) -> int:
        """Commit as many of `batches` as fit into one transaction, in the commit thread."""
        count, deadline = _fitting(batches), clock.monotonic() + COMMIT_SECONDS
        self._transactions.commit(read_batch(batch, 0, read_header(batch)) for batch in batches[:count])
        self._read_back.check(batches[:count], deadline)
        # After the commit: readers of this process must not see what may still be aborted.
        self._tail.add(BatchRun.of(b"".join(batches[:count])))
        return count


def _fitting(batches: Sequence[bytes]) -> int:
    size = records = 0
    for number, batch in enumerate(batches):
        size += len(batch)
        records += read_header(batch).record_count
        if number and (size > _TRANSACTION_BYTES or records > _TRANSACTION_RECORDS):
            return number
    return len(batches)


# Fencing of the topic log's previous writer, by Kafka's transactional id (KIP-98).


def fence_previous_writer(
    settings: TopicSettings, timeout: float, abandoned: "threading.Event | None" = None
) -> Transactions:
    """Fence the previous writer and abort its open transaction; return this process's transactions.

    Gives up soon after `abandoned` is set.

    init_transactions increments the transactional id's producer epoch: from then on, brokers reject the previous
    producer's writes and commits with INVALID_PRODUCER_EPOCH or PRODUCER_FENCED.

    Raises:
        FencedError: another process did the same, later.
        LogError: no broker responds within `timeout` seconds, or one refuses; or abandoned.
        ConfigError: the client rejects the properties.

    """
    errors, reports = ClientErrors(settings.name), DeliveryReports()
    properties: Mapping[str, Any] = {
        **PRODUCER_DEFAULTS,
        **settings.properties,
        **PRODUCER_FIXED,
        "transactional.id": settings.transactional_id,
        "on_delivery": reports.note,
    }
    producer = new_producer(settings.name, properties, errors)
    _init_transactions(producer, settings.name, errors, timeout, abandoned or threads.Event())
    return Transactions(settings, producer, errors, reports)


def _init_transactions(
    producer: Producer, name: str, errors: ClientErrors, timeout: float, abandoned: "threading.Event"
) -> None:
    deadline = clock.monotonic() + timeout
    while True:
        if abandoned.is_set():
            raise LogError(f"{name}: abandoned")
        remaining = deadline - clock.monotonic()
        try:
            producer.init_transactions(min(SLICE_SECONDS, max(remaining, 0.05)))
        except RAISED as error:
            # A refused login is only reported by callback: without this, the call would last until its timeout.
            serve_callbacks(producer)
            if errors.refused and errors.latest is not None:
                raise errors.latest from error
            if remaining <= 0 or not retriable(error):
                raise (errors.latest if retriable(error) else None) or kafka_error(error, name) from error
        else:
            return


# Taking over a topic log: fence the previous writer, find the end, begin a leader epoch.


WINDOW_BYTES = 32 << 20


def open_topic_log(
    settings: TopicSettings,
    *,
    node_id: int,
    timestamp: int | None = None,
    voters: Sequence[int] = (),
    reader: LogReader | None = None,
    on_failure: Callable[[LogError], None] | None = None,
    timeout: float = 60.0,
    abandoned: "threading.Event | None" = None,
) -> TopicLog:
    """Open a topic log for writing: fence the previous writer, and begin the next leader epoch. Blocks.

    The topic must exist (`ensure_topic`). The epoch's LeaderChange names `node_id` as leader and `voters` (by default
    `node_id` alone), and is committed on return. `timestamp`, in ms since 1970, defaults to the current time.
    What is written is acknowledged once `reader`, which follows this topic, has read it; by default the log has one of
    its own. `on_failure` is called once, in the log's own thread, when the log is dead, but not after `close` or
    `abandon`. Setting `abandoned`, which belongs to the log afterwards, makes this call give up soon.

    Raises:
        FencedError: another writer has opened it since.
        LogError: no broker responds within `timeout` seconds, or one refuses; or abandoned. The LeaderChange may be
            committed even so: its outcome is unknown, until the log is opened again.
        DecodeError: the last message is not a record.
        ConfigError: the client rejects a property, or confluent-kafka is not installed.

    """
    deadline, abandoned = clock.monotonic() + timeout, abandoned or threads.Event()
    with ExitStack() as stack:
        historical = HistoricalReads(settings, abandoned)
        stack.callback(historical.close)
        historical.connect(timeout)
        transactions = fence_previous_writer(settings, _remaining(deadline), abandoned)
        stack.callback(transactions.close)
        bounds = historical.survey_stable(
            _remaining(deadline)
        )  # after fencing, so that no other producer can append after the end
        read_back = ReadBack(reader or TopicReader(settings), owned=reader is None)
        stack.callback(read_back.close)
        tail = TailCache(name=settings.name, window_bytes=WINDOW_BYTES)
        tail.begin(bounds.start_offset, bounds.end_offset, bounds.end_offset)
        log = TopicLog(
            settings,
            bounds.epoch + 1,
            tail=tail,
            historical=historical,
            transactions=transactions,
            read_back=read_back,
            on_failure=on_failure,
        )
        stack.callback(log.close)
        begun = current_time_ms() if timestamp is None else timestamp
        _begin_epoch(log, _leader_change(node_id, voters), begun, deadline, abandoned)
        stack.pop_all()
    return log


def _remaining(deadline: float) -> float:
    return max(deadline - clock.monotonic(), 1.0)


def _leader_change(node_id: int, voters: Sequence[int]) -> LeaderChange:
    return LeaderChange(
        leader_id=node_id,
        voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in voters or (node_id,)),
        granting_voters=(LeaderChangeVoter(voter_id=node_id),),
    )


def _begin_epoch(
    log: TopicLog, change: LeaderChange, timestamp: int, deadline: float, abandoned: "threading.Event"
) -> None:
    """Commit the first record of the log's epoch; once it is sent, an error leaves its outcome unknown."""
    if abandoned.is_set():
        raise LogError(f"{log.name}: abandoned")
    committing = log.append_control(change, timestamp=timestamp)
    while True:
        try:
            committing.result(_SLICE_SECONDS)
        except TimeoutError:
            if abandoned.is_set() or clock.monotonic() > deadline:
                why = "abandoned" if abandoned.is_set() else "no response in time"
                log.abandon(why)
                what = f"the record that begins epoch {log.leader_epoch} may be committed: the next takeover shows it"
                raise LogError(f"{log.name}: {why}; {what}") from None
        else:
            return


# Election of the controller that should write a topic log, by the partition assignment of a consumer group.


_log = logging.getLogger(__name__)

_WAKE_SECONDS = 0.1
"""How often a candidate checks whether it is closed."""
_RETRY_SECONDS = 1.0
"""The backoff before joining the group again after an error."""
_HEARTBEATS_PER_SESSION = 12
"""Per session timeout: with 6 s, candidates notice a rebalance within half a second."""


@define(eq=False)
class Election(Closeable):
    """A candidate, from its construction until `close`, in a thread of its own.

    `on_elected` and `on_deposed` are called alternately in that thread, starting with the former. They must return
    soon: until then the group is not polled. The assignment is only advice. That there is one writer is ensured by
    fencing: the elected candidate opens the log (`open_topic_log`), a deposed one abandons it.

    A new candidate does not depose the leader (cooperative-sticky assignment). A candidate that cannot reach the group
    for the session timeout is deposed, by its own clock and by the group coordinator's.

    Raises:
        ConfigError: the client rejects the properties.

    """

    settings: TopicSettings
    on_elected: Callable[[], None]
    on_deposed: Callable[[], None]
    _errors: ClientErrors = field(init=False)
    _elected: bool = field(default=False, init=False)
    _error: MetadataError | None = field(default=None, init=False)
    _closed: "threading.Event" = field(factory=threads.event, init=False)
    _thread: "threading.Thread" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._errors = ClientErrors(self.settings.name)
        consumer = self._new_consumer()
        self._thread = threads.Thread(
            target=self._run, args=(consumer,), name=f"candidate for {self.settings.name}", daemon=True
        )
        self._thread.start()

    @property
    def elected(self) -> bool:
        """Whether this candidate is elected."""
        return self._elected

    @property
    def error(self) -> MetadataError | None:
        """Why this candidate cannot be elected at the moment, if known; None while it is elected."""
        return None if self._elected else self._error or self._errors.latest

    def close(self) -> None:
        """Leave the group, after `on_deposed` if elected, so that another candidate takes over at once.

        May be called again, but not by the callbacks.
        """
        self._closed.set()
        self._thread.join()

    def _new_consumer(self) -> Consumer:
        timeout = self.settings.session_timeout_ms
        properties = {
            **self.settings.properties,
            "group.id": self.settings.group_id,
            # The new protocol (KIP-848) has server-side assignors only, and no client-side session timeout.
            "group.protocol": "classic",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": timeout,
            # librdkafka requires max.poll.interval.ms >= session.timeout.ms.
            "max.poll.interval.ms": max(timeout, 300_000),
            "heartbeat.interval.ms": max(timeout // _HEARTBEATS_PER_SESSION, 1),
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "latest",
            "allow.auto.create.topics": "false",
        }
        return new_consumer(self.settings.name, properties, self._errors)

    def _run(self, consumer: Consumer | None) -> None:
        while not self._closed.is_set():
            try:
                consumer = consumer or self._new_consumer()
                self._follow_group(consumer)
            except (*RAISED, MetadataError) as error:
                self._error = error if isinstance(error, MetadataError) else kafka_error(error, self.settings.name)
                _log.warning("%s", self._error)
            finally:
                self._depose()
                if consumer is not None:
                    _leave(consumer)
                consumer = None
            self._closed.wait(_RETRY_SECONDS)

    def _follow_group(self, consumer: Consumer) -> None:
        """Be a member of the group until closed, or until an error."""
        consumer.subscribe(
            [self.settings.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        while not self._closed.is_set():
            message = consumer.poll(_WAKE_SECONDS)
            error = None if message is None else message.error()
            if error is not None:
                raise KafkaException(error)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Become elected if the log's partition is assigned. The assignment is paused: nothing is fetched."""
        # The assignment must be taken over for the group to settle; its position is irrelevant.
        consumer.incremental_assign([TopicPartition(each.topic, each.partition, OFFSET_END) for each in partitions])
        consumer.pause(partitions)
        if _has_log_partition(partitions) and not self._elected and not self._closed.is_set():
            self._elected, self._error = True, None
            self._errors.clear()
            self._call(self.on_elected)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if _has_log_partition(partitions):
            self._depose()
        consumer.incremental_unassign(partitions)

    def _depose(self) -> None:
        if self._elected:
            self._elected = False
            self._call(self.on_deposed)

    def _call(self, callback: Callable[[], None]) -> None:
        """Call a callback; its errors must not end the candidate's thread."""
        try:
            callback()
        except Exception:  # noqa: BLE001 - any error
            _log.exception("%s: a callback of the election failed", self.settings.name)


def _has_log_partition(partitions: list[TopicPartition]) -> bool:
    """Return whether the log's partition is assigned: the topic may have more partitions by mistake."""
    return any(each.partition == 0 for each in partitions)


def _leave(consumer: Consumer) -> None:
    try:
        consumer.close()
    except (*RAISED, RuntimeError) as error:
        _log.warning("%s", error)
