"""One partition of a real Kafka's topic, read_committed, through confluent-kafka; errors in our words."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field, frozen
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from metalog.errors import ConfigError, DecodeError, LogError
from metalog.topic_message import Assembler, MessageBatch, decode_headers

_TIMEOUT = 60.0
"""Seconds without an answer after which a broker is given up."""

_TOGETHER = 5000
_PAUSE = 0.05
"""Seconds after which fewer messages than that are taken too."""

_DEFAULTS = {"group.id": "aclog", "fetch.wait.max.ms": "50"}
"""What a user may choose otherwise; the end of a partition is known only once a fetch comes back empty."""

_FIXED = {
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}
"""What a user cannot choose otherwise: the rest of a read depends on it."""


@frozen(kw_only=True)
class Placed:
    """A batch, and Kafka's offsets of its first message and after its last one."""

    batch: MessageBatch
    position: int
    after: int


@define(eq=False)
class KafkaTopic:
    """A topic of one partition. `properties` are librdkafka's; there is no connection before the first use."""

    topic: str
    properties: Mapping[str, str] = field(repr=False)
    _consumer: Consumer | None = field(init=False, default=None, repr=False)

    def bounds(self) -> tuple[int, int]:
        """Kafka's offsets of the first message that is there, and after the last one that is committed.

        Raises:
            LogError: the topic is not there, has more partitions than one, or no broker answers.
            ConfigError: properties that the client refuses.

        """
        try:
            consumer = self._connected()
            start, end = consumer.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=_TIMEOUT, cached=False)
        except KafkaException as e:
            raise kafka_error(e.args[0], self.topic) from e
        return start, end

    def batches(self, position: int, end: int) -> Iterator[Placed]:
        """The whole batches in Kafka's offsets from `position` up to `end`; a batch that `end` cuts is left out.

        Raises:
            LogError: a broker does not answer, or the messages are no longer there.
            DecodeError: a message that is no record's, with Kafka's offset, a ReplayError where one is missing.

        """
        assembler, begin = Assembler(), position
        for message in self._messages(position, end):
            at = message.offset() or 0
            try:
                place = decode_headers(_headers(message))
                begin = at if place.offset == place.base_offset else begin
                batch = assembler.add(place, message.value(), message.timestamp()[1])
            except DecodeError as e:
                raise e.at(path=f"topic {self.topic}, Kafka's offset {at}") from None
            if batch is not None:
                yield Placed(batch=batch, position=begin, after=at + 1)

    def close(self) -> None:
        """Let go of the connection; a second close is nothing."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _connected(self) -> Consumer:
        if self._consumer is None:
            consumer = _consumer(self.topic, self.properties)
            try:
                self._check_partitions(consumer)
            except BaseException:
                consumer.close()
                raise
            self._consumer = consumer
        return self._consumer

    def _check_partitions(self, consumer: Consumer) -> None:
        found = consumer.list_topics(self.topic, timeout=_TIMEOUT).topics[self.topic]
        if found.error is not None:
            raise kafka_error(found.error, self.topic)
        if len(found.partitions) != 1:
            raise LogError(f"topic {self.topic}: it has {len(found.partitions)} partitions: a log has one")

    def _messages(self, position: int, end: int) -> Iterator[Message]:
        if position >= end:
            return
        try:
            consumer = self._connected()
            consumer.assign([TopicPartition(self.topic, 0, position)])
            deadline = time.monotonic() + _TIMEOUT
            while time.monotonic() < deadline:
                for message in consumer.consume(_TOGETHER, timeout=_PAUSE):
                    deadline = time.monotonic() + _TIMEOUT
                    error, at = message.error(), message.offset() or 0
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise kafka_error(error, self.topic)
                    if at >= end:
                        return
                    if error is None:
                        yield message
                        if at + 1 >= end:
                            return
        except KafkaException as e:
            raise kafka_error(e.args[0], self.topic) from e
        raise LogError(f"topic {self.topic}: nothing came for {_TIMEOUT:.0f} s, before Kafka's offset {end}")


def _consumer(topic: str, properties: Mapping[str, str]) -> Consumer:
    for name, value in _FIXED.items():
        if properties.get(name, value) != value:
            raise ConfigError(f"option kafka.{name}: expected {value}")
    try:
        return Consumer({**_DEFAULTS, **properties, **_FIXED})
    except KafkaException as e:
        raise ConfigError(f"topic {topic}: options kafka.*: {e.args[0].str()}") from e


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    headers: Any = message.headers() or ()  # declared wider than what comes: a list of pairs
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in headers]


def kafka_error(error: KafkaError, topic: str) -> LogError:
    """What a client of Kafka says, as ours."""
    return LogError(f"topic {topic}: {error.name()}: {error.str()}")
