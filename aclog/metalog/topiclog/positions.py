"""Kafka's offsets and ours: found by bisection over the messages, since markers and aborted messages leave holes.

A position is an offset of Kafka's in the partition, an offset our own dense one. Each message takes one of both, so the
distance in positions is never smaller than in offsets: that alone bounds a search by the number of holes.
"""

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from aclog.metalog.errors import ReplayError
from aclog.metalog.topic_message import Placement

_LOOK_BACK = 64
"""Positions before the end in which the last message is looked for first."""


@frozen(kw_only=True)
class StoredMessage:
    """A committed message; `timestamp` is the message's own, ms since 1970."""

    position: int
    place: Placement
    value: bytes | None
    timestamp: int


class Messages(Protocol):
    """The committed messages of a partition, in their order."""

    def first_from(self, position: int, end: int) -> StoredMessage | None:
        """The first one at a position or after it, and before `end`."""
        ...

    def last_in(self, position: int, end: int) -> StoredMessage | None:
        """The last one at a position or after it, and before `end`; all between is read."""
        ...


def find_last(messages: Messages, start: int, end: int) -> StoredMessage | None:
    """The last message in positions from `start` to before `end`, None if there is none.

    Looks back further and further: an aborted transaction leaves nothing to be seen over many positions.
    """
    back, limit = _LOOK_BACK, end
    while limit > start:
        begin = max(start, end - back)
        found = messages.last_in(begin, limit)
        if found is not None:
            return found
        limit, back = begin, back * 8
    return None


def find_offset(
    messages: Messages, offset: int, first: StoredMessage, last: StoredMessage, *, near_end: bool = False
) -> StoredMessage:
    """The message of an offset between those of two messages.

    `near_end` tries first where it stands if no hole lies between it and `last`.

    Raises:
        ReplayError: there is no such message.

    """
    low = first.position + offset - first.place.offset
    high = last.position - (last.place.offset - offset)
    while low <= high:
        middle, near_end = (high if near_end else (low + high) // 2), False
        found = messages.first_from(middle, last.position + 1)
        if found is None:
            break
        ahead = found.place.offset - offset
        if not ahead:
            return found
        if ahead < 0:
            low = found.position - ahead
        else:
            high = min(middle - 1, found.position - ahead)
    raise ReplayError("no message of this offset is in the topic", offset=offset)


def find_first(
    messages: Messages, first: StoredMessage, last: StoredMessage, wanted: Callable[[StoredMessage], bool]
) -> StoredMessage:
    """The first message that is wanted, where all after it are, `last` among them."""
    low, high, best = first.position, last.position, last
    while low < high:
        middle = (low + high) // 2
        found = messages.first_from(middle, high)
        if found is None or wanted(found):
            high, best = middle, found or best
        else:
            low = found.position + 1
    return best
