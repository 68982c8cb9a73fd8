"""The batches of a topic from one on, as they are committed."""

from attrs import define, field, frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.topic_message import Assembler
from aclog.metalog.topiclog.leader_change import Leader, leader_of
from aclog.metalog.topiclog.partition import Partition
from aclog.metalog.topiclog.positions import StoredMessage


@frozen(kw_only=True)
class CommittedBatch:
    """A whole batch in the log's bytes, the offset after it, and Kafka's offset after its last message.

    `leader` is whom it names, if it begins an epoch.
    """

    data: bytes
    end_offset: int
    after: int
    leader: Leader | None


@define(eq=False)
class BatchStream:
    """Reads on from Kafka's offset `position`, where the batch of base offset `offset` begins. For one thread.

    Both move on with what `take` gives: they tell where to go on with another connection.
    """

    partition: Partition
    position: int
    offset: int
    _assembler: Assembler = field(init=False)
    _leader: Leader | None = field(default=None, init=False)
    _deferred: DecodeError | None = field(default=None, init=False)
    """What is wrong after the batches that were given."""

    def __attrs_post_init__(self) -> None:
        self._assembler = Assembler(self.offset)
        self.partition.seek(self.position)

    def poll(self, timeout: float) -> list[CommittedBatch]:
        """The batches that come next, as soon as one is whole, perhaps none after `timeout` seconds.

        All that come before an error are given first.

        Raises:
            LogError: as Partition.poll.
            DecodeError: a message that is no record's, with Kafka's offset; a ReplayError where one is missing.

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
        after = message.position + 1
        try:
            self._leader = leader_of(message) or self._leader
            batch = self._assembler.add(message.place, message.value, message.timestamp)
        except DecodeError as error:
            raise error.at(path=f"{self.partition.name}, Kafka's offset {message.position}") from None
        if batch is None:
            return None
        self.position, self.offset = after, batch.end_offset
        leader, self._leader = self._leader, None
        return CommittedBatch(data=batch.encode(), end_offset=batch.end_offset, after=after, leader=leader)
