"""A stream of committed batches, assembled from a topic's messages."""

from attrs import define, field, frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.topic_message import Assembler
from aclog.metalog.topiclog.leader_change import Leader, leader_of
from aclog.metalog.topiclog.partition import Partition
from aclog.metalog.topiclog.positions import StoredMessage


@frozen(kw_only=True)
class CommittedBatch:
    """A whole batch in the log's bytes, the offset after it, and Kafka's offset after its last message.

    `leader` is set if the batch begins an epoch.
    """

    data: bytes
    end_offset: int
    next_position: int
    leader: Leader | None


@define(eq=False)
class BatchStream:
    """Reads from Kafka's offset `position`, where the batch of base offset `offset` begins. Not thread-safe.

    `epoch` is that of the batch before, if known. All three advance with each batch that `poll` returns, so that
    another connection can continue there.
    """

    partition: Partition
    position: int
    offset: int
    epoch: int = 0
    _assembler: Assembler = field(init=False)
    _leader: Leader | None = field(default=None, init=False)
    _deferred: DecodeError | None = field(default=None, init=False)
    """An error behind the batches that were returned; raised by the next call."""

    def __attrs_post_init__(self) -> None:
        self._assembler = Assembler(self.offset, self.epoch)
        self.partition.seek(self.position)

    def poll(self, timeout: float) -> list[CommittedBatch]:
        """Return the next batches as soon as one is complete, perhaps none after `timeout` seconds.

        Batches before an error are returned first.

        Raises:
            LogError: as Partition.poll.
            DecodeError: a message that is not a record, with Kafka's offset; ReplayError if one is missing.

        """
        if self._deferred is not None:
            raise self._deferred
        found: list[CommittedBatch] = []
        try:
            for message in self.partition.poll(timeout):
                batch = self._add(message)
                if batch is not None:
                    found.append(batch)
        except DecodeError as error:
            if not found:
                raise
            self._deferred = error
        return found

    def _add(self, message: StoredMessage) -> CommittedBatch | None:
        next_position = message.position + 1
        try:
            self._leader = leader_of(message) or self._leader
            batch = self._assembler.add(message.place, message.value, message.timestamp)
        except DecodeError as error:
            raise error.at(path=f"{self.partition.name}, Kafka's offset {message.position}") from None
        if batch is None:
            return None
        self.position, self.offset, self.epoch = next_position, batch.end_offset, batch.epoch
        leader, self._leader = self._leader, None
        return CommittedBatch(
            data=batch.encode(), end_offset=batch.end_offset, next_position=next_position, leader=leader
        )
