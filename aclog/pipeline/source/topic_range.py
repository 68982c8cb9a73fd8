"""One partition of a real Kafka's topic as a range of Kafka's offsets (aclog.metalog.topiclog.partition reads it)."""

import time
from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.topic_message import Assembler, MessageBatch
from aclog.metalog.topiclog.partition import FIXED, Partition, open_partition
from aclog.metalog.topiclog.positions import StoredMessage

_TIMEOUT = 60.0
"""Seconds without an answer after which a broker is given up."""

_PAUSE = 0.5
"""Seconds without a message after which the time is looked at."""

_DEFAULTS = {"group.id": "aclog"}
"""What a user may choose otherwise."""


@frozen(kw_only=True)
class PlacedBatch:
    """A batch, and Kafka's offsets of its first message and after its last one."""

    batch: MessageBatch
    position: int
    after: int


@define(eq=False)
class KafkaTopic:
    """A topic of one partition. `properties` are librdkafka's; there is no connection before the first use."""

    topic: str
    properties: Mapping[str, str] = field(repr=False)
    _partition: Partition | None = field(init=False, default=None, repr=False)

    def bounds(self) -> tuple[int, int]:
        """Kafka's offsets of the first message that is there, and after the last one that is committed.

        Raises:
            LogError: the topic is not there, has more partitions than one, or no broker answers.
            ConfigError: properties that the client refuses.

        """
        return self._connected().bounds(_TIMEOUT)

    def batches(self, position: int, end: int) -> Iterator[PlacedBatch]:
        """The whole batches in Kafka's offsets from `position` up to `end`; a batch that `end` cuts is left out.

        Raises:
            LogError: a broker does not answer, or the messages are no longer there.
            DecodeError: a message that is no record's, with Kafka's offset, a ReplayError where one is missing.

        """
        assembler, begin = Assembler(), position
        for message in self._messages(position, end):
            place = message.place
            begin = message.position if place.offset == place.base_offset else begin
            try:
                batch = assembler.add(place, message.value, message.timestamp)
            except DecodeError as e:
                raise e.at(path=f"topic {self.topic}, Kafka's offset {message.position}") from None
            if batch is not None:
                yield PlacedBatch(batch=batch, position=begin, after=message.position + 1)

    def close(self) -> None:
        """Let go of the connection; a second close is nothing."""
        if self._partition is not None:
            self._partition.close()
            self._partition = None

    def _connected(self) -> Partition:
        if self._partition is None:
            for name, value in FIXED.items():
                if self.properties.get(name, value) != value:
                    raise ConfigError(f"option kafka.{name}: expected {value}")
            properties = {**_DEFAULTS, **self.properties}
            self._partition = open_partition(self.topic, f"topic {self.topic}", properties, timeout=_TIMEOUT)
        return self._partition

    def _messages(self, position: int, end: int) -> Iterator[StoredMessage]:
        if position >= end:
            return
        partition = self._connected()
        partition.seek(position)
        deadline = time.monotonic() + _TIMEOUT
        while not partition.ended:
            for message in partition.poll(_PAUSE):
                deadline = time.monotonic() + _TIMEOUT
                if message.position >= end:
                    return
                yield message
                if message.position + 1 >= end:
                    return
            if time.monotonic() > deadline:
                raise LogError(f"topic {self.topic}: nothing came for {_TIMEOUT:.0f} s, before Kafka's offset {end}")
