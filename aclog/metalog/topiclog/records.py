"""The records of a topic of any kind: read from stored positions on, and what of them can no longer be read."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Self

from attrs import field
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.machine import clock
from aclog.metalog.topiclog.client import SLICE_SECONDS, ClientErrors, error_in, kafka_error, new_consumer, retriable
from aclog.metalog.topiclog.partition import FIXED, RESPONSE_SECONDS, RemovedError
from aclog.metalog.topiclog.settings import TopicId, TopicSettings
from aclog.metalog.topiclog.topic import TopicAdmin, id_of_topic
from aclog.metalog.values import define

_MESSAGES: Final = 2_000
"""How many messages are taken from the client at once."""
_OF_GROUP: Final = frozenset((KafkaError.GROUP_AUTHORIZATION_FAILED,))
"""The client looks for the coordinator of its group.id, although no group is used: READ on the topic is enough."""


class Place(NamedTuple):
    """A position in a partition: before it, all records were read."""

    offset: int
    """Kafka's offset of the next record."""
    epoch: int
    """The leader epoch of the last record; -1 if it is unknown. A truncated log has another record there."""
    time: int
    """The timestamp of the last record, in ms since 1970; without a record, when the position was determined."""


class Read(NamedTuple):
    """A record, or the end of a partition, which has no value."""

    partition: int
    value: bytes | None
    place: Place
    """The position after it; at an end, `epoch` and `time` are -1."""


class GoneError(RemovedError):
    """Records of a partition are gone: removed, or replaced since the log was truncated."""

    def __init__(self, text: str, partition: int) -> None:
        super().__init__(text)
        self.partition = partition


@define(eq=False, kw_only=True)
class TopicRecords:
    """A consumer that joins no group and commits no offsets: its caller stores the positions. Not thread-safe."""

    settings: TopicSettings
    _consumer: Consumer = field(repr=False)
    _errors: ClientErrors = field(repr=False)
    _admin: TopicAdmin = field(repr=False)

    @classmethod
    def open(cls, settings: TopicSettings) -> Self:
        """Connect. Raises ConfigError: the client rejects the properties."""
        errors = ClientErrors(settings.name, _OF_GROUP)
        properties = {**settings.properties, **FIXED, "group.id": settings.group_id}
        return cls(
            settings=settings,
            consumer=new_consumer(settings.name, properties, errors),
            errors=errors,
            admin=TopicAdmin(settings.name, settings.properties, RESPONSE_SECONDS),
        )

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def describe(self) -> tuple[TopicId, int]:
        """Return the identity of the topic, and the number of its partitions.

        Raises:
            ConfigError: no such topic.
            LogError: no broker responds, or one refuses.

        """
        self._admin.allow(RESPONSE_SECONDS)
        description = self._admin.describe(self.settings.topic)
        if description is None:
            raise ConfigError(f"{self.settings.name}: no such topic: expected the name of an existing one")
        return id_of_topic(self._admin, description), len(description.partitions)

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return Kafka's offset of the first record, and the last stable offset.

        Raises:
            LogError: no broker responds in time, or one refuses.

        """
        deadline = clock.monotonic() + RESPONSE_SECONDS
        while True:
            try:
                return self._consumer.get_watermark_offsets(
                    TopicPartition(self.settings.topic, partition), timeout=SLICE_SECONDS
                )
            except KafkaException as error:
                self._consumer.poll(0)  # runs error_cb, which librdkafka calls from poll only; nothing is assigned
                self._check_waiting(deadline, error)

    def read(self, starts: Mapping[int, Place], bounds: Mapping[int, tuple[int, int]]) -> Iterator[Read]:
        """Yield the records of partitions, of each from its place up to the end of its bounds.

        The record before a place is read again, if it may still be there: it has to be the one that was read.

        Raises:
            GoneError: records are gone: by retention, or the log of a partition was truncated.
            LogError: no broker responds in time, or one refuses.

        """
        ends = {partition: end for partition, (_, end) in bounds.items()}
        open_partitions = {partition for partition, place in starts.items() if place.offset < ends[partition]}
        if not open_partitions:
            return
        topic = self.settings.topic
        self._consumer.assign(
            [
                TopicPartition(topic, partition, _checked_from(starts[partition], bounds[partition][0]))
                for partition in open_partitions
            ]
        )
        try:
            for read in self._polled():
                start = starts[read.partition]
                if read.partition not in open_partitions:
                    continue
                if read.value is not None and not _follows(read.place, start):
                    raise GoneError(
                        f"{self.settings.name}: partition {read.partition}: its log was truncated", read.partition
                    )
                if read.value is None or read.place.offset >= ends[read.partition]:
                    open_partitions.discard(read.partition)
                if read.value is None or start.offset < read.place.offset <= ends[read.partition]:
                    yield read
                if not open_partitions:
                    return
        finally:
            self._consumer.unassign()

    def _polled(self) -> Iterator[Read]:
        """Yield what arrives of the assigned partitions. Raises as read."""
        deadline = clock.monotonic() + RESPONSE_SECONDS
        while True:
            try:
                messages = self._consume()
            except KafkaException as error:
                raise kafka_error(error, self.settings.name) from error
            if messages:
                deadline = clock.monotonic() + RESPONSE_SECONDS
            else:
                self._check_waiting(deadline, None)
            yield from map(self._read, messages)

    def _consume(self) -> list[Message]:
        messages = self._consumer.consume(_MESSAGES, timeout=SLICE_SECONDS)
        return [each for each in messages if (error := each.error()) is None or error.code() not in _OF_GROUP]

    def _read(self, message: Message) -> Read:
        error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                return Read(partition, None, Place(offset, -1, -1))
            if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION}:
                text = f"{self.settings.name}: partition {partition}: records are gone: {error.str()}"
                raise GoneError(text, partition)
            raise kafka_error(error, self.settings.name)
        epoch: Any = message.leader_epoch()
        value: Any = message.value()
        stamp = message.timestamp()[1]
        return Read(partition, value or b"", Place(offset + 1, -1 if epoch is None else int(epoch), stamp))

    def _check_waiting(self, deadline: float, error: KafkaException | None) -> None:
        """Return if there is still a reason to wait."""
        if self._errors.refused and self._errors.latest is not None:
            raise self._errors.latest
        late = clock.monotonic() > deadline
        if error is not None:
            cause = error_in(error)
            transport = cause is not None and cause.code() in {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
            if late or not (transport or retriable(error)):
                raise self._errors.latest or kafka_error(error, self.settings.name)
        if late:
            raise self._errors.latest or LogError(f"{self.settings.name}: no response within {RESPONSE_SECONDS:.0f} s")


def _checked_from(place: Place, low: int) -> int:
    """Return the offset to read from: that of the last record, if it was read and may still be there."""
    return place.offset if place.epoch < 0 or place.offset <= low else place.offset - 1


def _follows(read: Place, place: Place) -> bool:
    """Return whether a record may come at or after the last one before a place: epochs only grow."""
    if read.offset == place.offset:
        return read[1:] == place[1:]
    return read.epoch < 0 or read.epoch >= place.epoch
