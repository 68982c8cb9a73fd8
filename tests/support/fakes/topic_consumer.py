"""A topic in memory with librdkafka's consumer in front of it, one that may hand over records out of order."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from attrs import define, field, frozen
from confluent_kafka import KafkaError, TopicPartition

from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.topic_message import BatchMessage, encode_headers, read_batch

SERVERS = "fake:1"


@frozen(kw_only=True)
class FakeMessage:
    """confluent_kafka.Message, as far as it is used."""

    position: int
    stored: BatchMessage | bytes | None
    """Bytes for a message that is not a record, None for the end of the partition."""

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self.stored is None else None

    def offset(self) -> int:
        return self.position

    def headers(self) -> list[tuple[str, bytes]]:
        return encode_headers(self.stored.place) if isinstance(self.stored, BatchMessage) else []

    def value(self) -> bytes | None:
        return self.stored.value if isinstance(self.stored, BatchMessage) else self.stored

    def timestamp(self) -> tuple[int, int]:
        return 1, self.stored.timestamp if isinstance(self.stored, BatchMessage) else 0


@define(eq=False)
class FakeTopic:
    """All messages, by position. `skips` says for a position which one is handed over in its place."""

    messages: list[BatchMessage | bytes] = field(factory=list)
    skips: Callable[[int], int] = lambda position: position
    consumers: int = 0

    def add(self, *values: bytes, epoch: int = 1) -> bytes:
        """Commit a batch; its bytes."""
        ends = [each.place.end_offset for each in self.messages if isinstance(each, BatchMessage)]
        end = ends[-1] if ends else 0
        batch = build_batch(values, base_offset=end, leader_epoch=epoch, timestamp=1)
        self.messages += read_batch(batch, 0, read_header(batch)).messages()
        return batch

    def consumer(self, *_: Any) -> "FakeConsumer":
        """Stands in for clients.new_consumer."""
        self.consumers += 1
        return FakeConsumer(self)


@define(eq=False)
class FakeConsumer:
    """confluent_kafka.Consumer, as far as it is used."""

    topic: FakeTopic
    _position: int = field(default=0, init=False)
    _told_end: bool = field(default=False, init=False)

    def list_topics(self, topic: str, timeout: float) -> Any:
        metadata = SimpleNamespace(error=None, partitions={0: None})
        return SimpleNamespace(topics={topic: metadata})

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, len(self.topic.messages)

    def assign(self, places: list[TopicPartition]) -> None:
        self._position, self._told_end = places[0].offset, False

    def unassign(self) -> None:
        self._position = len(self.topic.messages)

    def poll(self, timeout: float) -> FakeMessage | None:
        if self._position < len(self.topic.messages):
            position = self.topic.skips(self._position)
            self._position, self._told_end = position + 1, False
            return FakeMessage(position=position, stored=self.topic.messages[position])
        if self._told_end:
            return None
        self._told_end = True
        return FakeMessage(position=self._position, stored=None)

    def consume(self, count: int, timeout: float) -> list[FakeMessage]:
        messages: list[FakeMessage] = []
        while len(messages) < count and self._position < len(self.topic.messages):
            message = self.poll(0)
            assert message is not None
            messages.append(message)
        return messages

    def close(self) -> None:
        pass
