"""The batches in a range of positions (Kafka's offsets) of a one-partition topic."""

import time
from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.topic_message import Assembler, MessageBatch
from aclog.metalog.topiclog.partition import FIXED, Partition, open_partition
from aclog.metalog.topiclog.positions import StoredMessage

_TIMEOUT = 60.0
"""Seconds without a response after which a read fails."""

_PAUSE = 0.5
"""Seconds of one poll, after which the deadline is checked."""

_DEFAULTS = {"group.id": "aclog"}
"""Client properties that a user may override."""


@frozen(kw_only=True)
class PlacedBatch:
    """A batch, and the positions of its first message and after its last one."""

    batch: MessageBatch
    position: int
    after: int


@define(eq=False)
class KafkaTopic:
    """A one-partition topic. `properties` are librdkafka's; the connection is opened on first use."""

    topic: str
    properties: Mapping[str, str] = field(repr=False)
    _partition: Partition | None = field(init=False, default=None, repr=False)

    def bounds(self) -> tuple[int, int]:
        """Return the position of the first message, and the last stable offset.

        Raises:
            LogError: the topic does not exist, has more than one partition, or no broker responds.
            ConfigError: the client rejects the properties.

        """
        return self._connected().bounds(_TIMEOUT)

    def batches(self, position: int, end: int) -> Iterator[PlacedBatch]:
        """Yield the batches in the positions from `position` up to `end`; a batch that `end` cuts off is left out.

        Raises:
            LogError: a broker does not respond, or the messages have been removed.
            DecodeError: a message that is not a record of a log, with its position; a ReplayError for a missing one.

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
        """Close the connection; a second call does nothing."""
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
                # a transaction marker may be the last position before `end`: it is never delivered, and a read that
                # ends behind it stops at the next message or at the last stable offset (`ended`)
                if message.position + 1 >= end:
                    return
            if time.monotonic() > deadline:
                raise LogError(f"topic {self.topic}: no message for {_TIMEOUT:.0f} s before Kafka offset {end}")
