"""Where a topic log begins and ends, found without reading all of it."""

from attrs import frozen

from aclog.metalog.errors import LogError, ReplayError
from aclog.metalog.topiclog.leader_change import Leader, leader_of
from aclog.metalog.topiclog.partition import RESPONSE_SECONDS, Partition, RemovedError
from aclog.metalog.topiclog.positions import StoredMessage, find_first, find_last, find_offset


@frozen(kw_only=True)
class Survey:
    """The log between Kafka's offsets `start` and `end`; `end` is the last stable offset at the time.

    `first` is the first message of the first whole batch, `last` the last message; both None in an empty log.
    """

    start: int
    end: int
    first: StoredMessage | None
    last: StoredMessage | None

    @property
    def start_offset(self) -> int:
        """The first offset whose batch is whole."""
        return 0 if self.first is None else self.first.place.offset

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return 0 if self.last is None else self.last.place.end_offset

    @property
    def epoch(self) -> int:
        """The newest leader epoch; 0 in an empty log."""
        return 0 if self.last is None else self.last.place.epoch


def survey(partition: Partition, timeout: float = RESPONSE_SECONDS) -> Survey:
    """Find the log's first and last message.

    Raises:
        LogError: no broker responds within `timeout` seconds; RemovedError if all messages were removed.
        ReplayError: the last message does not end a batch.
        DecodeError: a message that is not a record.

    """
    start, end = partition.bounds(timeout)
    first = partition.first_from(start, end) if start < end else None
    last = None if first is None else find_last(partition, first.position, end)
    if first is None or last is None:
        if start:
            raise RemovedError(
                f"{partition.name}: all messages below Kafka's offset {start} were removed, and there are none above it"
            )
        return Survey(start=start, end=end, first=None, last=None)
    if last.place.offset != last.place.end_offset - 1:
        raise ReplayError("the last message is not the last one of its batch", offset=last.place.offset)
    # Kafka removes messages, not our batches: the first batch may have lost its beginning and is then skipped.
    if first.place.offset != first.place.base_offset:
        first = find_offset(partition, first.place.end_offset, first, last)
    return Survey(start=start, end=end, first=first, last=last)


def find_base(partition: Partition, offset: int, known: Survey) -> StoredMessage:
    """Return the first message of the batch that holds a surveyed offset.

    Raises:
        LogError: a broker does not respond, or the log is empty.
        ReplayError: there is no such message.

    """
    if known.first is None or known.last is None:
        raise LogError(f"{partition.name}: no message of offset {offset}: the log is empty")
    found = find_offset(partition, offset, known.first, known.last, near_end=True)
    base = found.place.base_offset
    return found if base == offset else find_offset(partition, base, known.first, found, near_end=True)


def find_leader(partition: Partition, known: Survey) -> Leader | None:
    """Return the newest epoch's leader; None if the epoch does not begin with a LeaderChange.

    Raises:
        LogError, DecodeError: as Partition.first_from.

    """
    if known.first is None or known.last is None:
        return None
    newest = known.epoch
    return leader_of(find_first(partition, known.first, known.last, lambda found: found.place.epoch >= newest))
