"""One partition of a topic, read with isolation level read_committed.

Offsets of Kafka and ours, and the leader of the log.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from attrs import field
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.machine import clock, threads
from aclog.metalog.topic_message import Placement, decode_headers
from aclog.metalog.topiclog.client import ClientErrors, error_in, kafka_error, new_consumer, retriable
from aclog.metalog.topiclog.positions import StoredMessage
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.values import define

_POLL_MESSAGES = 5000

_T = TypeVar("_T")

_SLICE_SECONDS = 0.5
"""Blocking calls are cut into slices of this length, since librdkafka reports errors only between them."""
RESPONSE_SECONDS = 30.0
"""How long to wait for a broker."""

FIXED = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    # The only sign that there are no more committed messages: markers and aborted messages are skipped silently.
    "enable.partition.eof": "true",
    # Removed messages must be an error: a reader that jumps ahead would miss records.
    "auto.offset.reset": "error",
    # A log that is gone must stay gone: an empty topic in its place would look like an empty log.
    "allow.auto.create.topics": "false",
    "isolation.level": "read_committed",
}
"""Not configurable: reads depend on these."""


class RemovedError(LogError):
    """The topic no longer has messages that a reader needs."""


@define(eq=False)
class Partition:
    """Partition 0 of `topic`; `name` is the log's, for errors. Not thread-safe. Made by `open_partition`."""

    topic: str
    name: str
    _consumer: Consumer = field(repr=False, kw_only=True)
    errors: ClientErrors = field(repr=False, kw_only=True)
    _closing: "threading.Event" = field(repr=False, kw_only=True)
    """Calls that wait for a broker give up when it is set."""
    ended: bool = field(default=False, init=False)
    """Whether the last `poll` reached the last stable offset."""
    _next: int = field(default=0, init=False)
    """Kafka's offset below which no message may come."""
    _deferred: LogError | DecodeError | None = field(default=None, init=False)
    """An error behind the messages that were returned; raised by the next call."""

    def bounds(self, timeout: float = RESPONSE_SECONDS) -> tuple[int, int]:
        """Return Kafka's offset of the first message, and the last stable offset.

        Raises:
            LogError: no broker responds in time, or one refuses.

        """
        place, deadline = TopicPartition(self.topic, 0), clock.monotonic() + timeout
        while True:
            remaining = deadline - clock.monotonic()
            try:
                # For a read_committed consumer the end is the last stable offset, not Kafka's high-water mark.
                start, end = self._consumer.get_watermark_offsets(
                    place, timeout=min(_SLICE_SECONDS, max(remaining, 0.05))
                )
            except KafkaException as error:
                self._check_retriable(error, remaining)
            else:
                return start, end

    def check_partitions(self, timeout: float = RESPONSE_SECONDS) -> None:
        """Check that the topic exists and has one partition.

        Raises:
            LogError: it does not, or has several; or no broker responds in time, or one refuses.

        """
        deadline = clock.monotonic() + timeout
        while True:
            remaining = deadline - clock.monotonic()
            try:
                metadata = self._consumer.list_topics(self.topic, timeout=min(_SLICE_SECONDS, max(remaining, 0.05)))
                break
            except KafkaException as error:
                self._check_retriable(error, remaining)
        topic = metadata.topics[self.topic]
        if topic.error is not None:
            raise kafka_error(topic.error, self.name)
        if len(topic.partitions) != 1:
            raise LogError(f"{self.name}: it has {len(topic.partitions)} partitions: expected 1")

    def _check_retriable(self, error: KafkaException, remaining: float) -> None:
        """Return if the call may be repeated; else raise what went wrong."""
        self._check_open()
        self._consumer.poll(0)  # runs error_cb, which librdkafka calls from poll only
        if self.errors.refused and self.errors.latest is not None:
            raise self.errors.latest
        kafka = error_in(error)
        transport = kafka is not None and kafka.code() in {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
        if remaining <= 0 or not (transport or retriable(error)):
            raise self.errors.latest if transport and self.errors.latest else kafka_error(error, self.name)

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise LogError(f"{self.name}: closed")

    def seek(self, position: int) -> None:
        """Continue at Kafka's offset `position`."""
        self._consumer.assign([TopicPartition(self.topic, 0, position)])
        self.ended, self._deferred, self._next = False, None, position

    def rest(self) -> None:
        """Fetch nothing until the next `seek`: at the end of the topic, a consumer sends fetches without a pause."""
        self._consumer.unassign()

    def poll(self, timeout: float, most: int = _POLL_MESSAGES) -> list[StoredMessage]:
        """Return the next messages, at most `most`, as soon as there is one; none after `timeout` seconds.

        Raises:
            LogError: a broker refuses; RemovedError if the next messages are gone.
            DecodeError: a message that is not a record.

        """
        if self._deferred is not None:
            raise self._deferred
        return self._records(self._fetched(timeout, most))

    def poll_places(self, timeout: float) -> list[tuple[int, Placement | None]]:
        """Return the next messages of any kind: Kafka's offset, and the placement, None if it is not a record.

        Raises:
            LogError: as `poll`.

        """
        places: list[tuple[int, Placement | None]] = []
        for message in self._fetched(timeout, _POLL_MESSAGES):
            if self._is_record(message):
                place = None
                with suppress(DecodeError):
                    place = decode_headers(_headers(message))
                places.append((message.offset() or 0, place))
        return places

    def _fetched(self, timeout: float, most: int) -> list[Message]:
        try:
            first = self._consumer.poll(timeout)
            if first is None:
                return []
            # consume alone would wait for all messages or the timeout; poll returns with the first.
            others = self._consumer.consume(most - 1, timeout=0) if most > 1 else []
        except KafkaException as error:
            raise kafka_error(error, self.name) from error
        return [first, *others]

    def _records(self, messages: list[Message]) -> list[StoredMessage]:
        """Return the records before the first error; that error is raised at once only if no record precedes it."""
        records: list[StoredMessage] = []
        try:
            for message in messages:
                if self._is_record(message):
                    records.append(self._stored(message))  # noqa: PERF401 - keeps those before an error
        except (LogError, DecodeError) as error:
            if not records:
                raise
            self._deferred = error
        return records

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            self.ended = error is not None
            return error is None
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise RemovedError(f"{self.name}: the next messages are no longer in the topic: {error.str()}")
        raise kafka_error(error, self.name)

    def _stored(self, message: Message) -> StoredMessage:
        position = message.offset() or 0
        if position < self._next:
            what = f"a message of Kafka's offset {position} where {self._next} or a later one is due: out of order"
            raise ReplayError(what, path=self.name)
        self._next = position + 1
        try:
            place = decode_headers(_headers(message))
        except DecodeError as error:
            raise error.at(path=f"{self.name}, Kafka's offset {position}") from None
        return StoredMessage(position=position, place=place, value=message.value(), timestamp=message.timestamp()[1])

    def first_from(self, position: int, end: int) -> StoredMessage | None:
        """Return the first committed message from `position` on and before `end` (positions.Messages).

        Raises:
            LogError, DecodeError: as `poll`; or no broker responds in time.

        """
        for message in self.messages_from(position, most=1):
            return message if message.position < end else None
        return None

    def last_in(self, position: int, end: int) -> StoredMessage | None:
        """Return the last committed message from `position` on and before `end`. Raises as `first_from`."""
        last = None
        for message in self.messages_from(position):
            if message.position >= end:
                break
            last = message
        return last

    def messages_from(self, position: int, most: int = _POLL_MESSAGES) -> Iterator[StoredMessage]:
        """Yield the committed messages from a position on, up to the last stable offset. Raises as first_from."""
        return self._polled_from(position, lambda timeout: self.poll(timeout, most))

    def places_from(self, position: int) -> Iterator[tuple[int, Placement | None]]:
        """Yield the committed messages of any kind, as `poll_places` returns them.

        Raises:
            LogError: as `first_from`.

        """
        return self._polled_from(position, self.poll_places)

    def _polled_from(self, position: int, poll: Callable[[float], Iterable[_T]]) -> Iterator[_T]:
        """Poll up to the last stable offset, as long as messages arrive."""
        self.seek(position)
        deadline = clock.monotonic() + RESPONSE_SECONDS
        while not self.ended:
            for message in poll(_SLICE_SECONDS):
                deadline = clock.monotonic() + RESPONSE_SECONDS
                yield message
            self._check_open()
            if clock.monotonic() > deadline:
                what = f"no response within {RESPONSE_SECONDS:.0f} s, at Kafka's offset {position}"
                raise self.errors.latest or LogError(f"{self.name}: {what}")

    def close(self) -> None:
        """Close the consumer's connections."""
        self._consumer.close()


def open_partition(
    topic: str,
    name: str,
    properties: Mapping[str, Any],
    *,
    fetch_wait_ms: int = 50,
    timeout: float = RESPONSE_SECONDS,
    closing: "threading.Event | None" = None,
) -> Partition:
    """Connect to a topic of one partition; `properties` are librdkafka's, with a group.id.

    The end of the partition is detected when a fetch returns empty, which takes `fetch_wait_ms`. Setting `closing`
    ends all waiting for a broker.

    Raises:
        LogError: as Partition.check_partitions.
        ConfigError: the client rejects the properties.

    """
    errors = ClientErrors(name)
    consumer = new_consumer(name, {"fetch.wait.max.ms": fetch_wait_ms, **properties, **FIXED}, errors)
    partition = Partition(topic, name, consumer=consumer, errors=errors, closing=closing or threads.Event())
    try:
        partition.check_partitions(timeout)
    except BaseException:
        consumer.close()
        raise
    return partition


def connect_reader(
    settings: TopicSettings, closing: "threading.Event", *, fetch_wait_ms: int, timeout: float = RESPONSE_SECONDS
) -> Partition:
    """Connect to a log's topic. Raises as open_partition."""
    properties = {**settings.properties, "group.id": settings.group_id}
    return open_partition(
        settings.topic, settings.name, properties, fetch_wait_ms=fetch_wait_ms, timeout=timeout, closing=closing
    )


def written_end(settings: TopicSettings, closing: "threading.Event", timeout: float) -> int:
    """Return Kafka's offset after the last message, committed or not. Raises as Partition.bounds."""
    errors = ClientErrors(settings.name)
    properties = {**settings.properties, **FIXED, "group.id": settings.group_id, "isolation.level": "read_uncommitted"}
    consumer = new_consumer(settings.name, properties, errors)
    try:
        partition = Partition(settings.topic, settings.name, consumer=consumer, errors=errors, closing=closing)
        return partition.bounds(timeout)[1]
    finally:
        consumer.close()


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    headers: Any = message.headers() or ()  # declared wider than it is: a list of pairs
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in headers]
