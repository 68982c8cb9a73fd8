"""Offsets of Kafka and ours, and the leader of the log, read from its LeaderChange records."""

from collections.abc import Callable
from typing import Protocol

from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.errors import ReplayError
from aclog.metalog.topic_message import Placement
from aclog.metalog.values import frozen

# Offsets of Kafka and ours, and the leader of the log, read from its LeaderChange records.


# Kafka's offsets and ours, matched by bisection over the messages.
#
# A position is one of Kafka's offsets in the partition; an offset is ours, without gaps. Transaction markers and
# aborted messages take positions but no offsets, so the two differ by the number of holes before them. Between two
# messages, the distance in positions is never smaller than in offsets: each hole narrows down where a message can be.


_LOOK_BACK = 64
"""How many positions before the end are searched first for the last message."""


@frozen(kw_only=True)
class StoredMessage:
    """A committed message; `timestamp` is its own, in ms since 1970."""

    position: int
    place: Placement
    value: bytes | None
    timestamp: int


class Messages(Protocol):
    """The committed messages of a partition, in order."""

    def first_from(self, position: int, end: int) -> StoredMessage | None:
        """Return the first message from `position` on and before `end`."""
        ...

    def last_in(self, position: int, end: int) -> StoredMessage | None:
        """Return the last message from `position` on and before `end`; reads all messages in between."""
        ...


def find_last(messages: Messages, start: int, end: int) -> StoredMessage | None:
    """Return the last message in positions from `start` to before `end`; None without one."""
    # The search window grows: an aborted transaction of any size leaves that many positions without a visible message.
    back, limit = _LOOK_BACK, end
    while limit > start:
        begin = max(start, end - back)
        message = messages.last_in(begin, limit)
        if message is not None:
            return message
        limit, back = begin, back * 8
    return None


def find_offset(
    messages: Messages, offset: int, first: StoredMessage, last: StoredMessage, *, near_end: bool = False
) -> StoredMessage:
    """Return the message of an offset that lies between those of two messages.

    With `near_end`, the first guess assumes that no hole lies between the message and `last`.

    Raises:
        ReplayError: there is no such message.

    """
    # The wanted message is at least as many positions away from both ends as it is offsets away.
    low = first.position + offset - first.place.offset
    high = last.position - (last.place.offset - offset)
    while low <= high:
        middle, near_end = (high if near_end else (low + high) // 2), False
        message = messages.first_from(middle, last.position + 1)
        if message is None:
            break
        ahead = message.place.offset - offset
        if not ahead:
            return message
        if ahead < 0:
            low = message.position - ahead
        else:
            high = min(middle - 1, message.position - ahead)
    raise ReplayError("no message of this offset is in the topic", offset=offset)


def find_first(
    messages: Messages, first: StoredMessage, last: StoredMessage, predicate: Callable[[StoredMessage], bool]
) -> StoredMessage:
    """Return the first message that meets `predicate`, given that all after it do, up to and including `last`."""
    low, high, best = first.position, last.position, last
    while low < high:
        middle = (low + high) // 2
        message = messages.first_from(middle, high)
        if message is None or predicate(message):
            high, best = middle, message or best
        else:
            low = message.position + 1
    return best


# The log's leader, read from its LeaderChange control records.


@frozen(kw_only=True)
class Leader:
    """The writer of a leader epoch: its node id, the epoch, and the offset of the epoch's LeaderChange."""

    node_id: int
    epoch: int
    start_offset: int


def leader_of(message: StoredMessage) -> Leader | None:
    """Return the leader that a LeaderChange message names; None for any other message.

    Raises:
        DecodeError: a control record that does not match its key.

    """
    place = message.place
    record = None if place.control is None else decode_control(place.control, message.value or b"")
    if not isinstance(record, LeaderChange):
        return None
    return Leader(node_id=record.leader_id, epoch=place.epoch, start_offset=place.offset)
