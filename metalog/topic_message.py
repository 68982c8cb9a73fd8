"""A metadata log in one partition of a topic: what a message's headers say, and batches put together from messages.

One message a record: key null, value the record's value, timestamp the batch's. The headers are big-endian integers of
fixed width: `offset` (int64, our own dense offset), `batch` (int64, the batch's base offset), `count` (int32, its
records) and `epoch` (int32, the controller's). Kafka's own offsets have holes where markers and aborted messages stand.
"""

import struct
from collections.abc import Sequence

from attrs import define, field, frozen

from metalog.errors import DecodeError, EncodeError, ReplayError

_INT64, _INT32 = struct.Struct(">q"), struct.Struct(">i")
_HEADERS = (("offset", _INT64), ("batch", _INT64), ("count", _INT32), ("epoch", _INT32))


@frozen(kw_only=True)
class Placement:
    """Where a record stands: its dense offset, its batch's base offset and number of records, the leader epoch."""

    offset: int
    base_offset: int
    count: int
    epoch: int


@frozen(kw_only=True)
class MessageBatch:
    """A whole batch as messages held it; `timestamp` is ms since 1970."""

    base_offset: int
    epoch: int
    timestamp: int
    values: tuple[bytes, ...]

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + len(self.values)


def encode_headers(place: Placement) -> list[tuple[str, bytes]]:
    """The headers of a message.

    Raises:
        EncodeError: a number out of its header's range.

    """
    numbers = (place.offset, place.base_offset, place.count, place.epoch)
    try:
        return [(name, layout.pack(number)) for (name, layout), number in zip(_HEADERS, numbers, strict=True)]
    except struct.error as e:
        raise EncodeError(f"{place}: {e}") from None


def decode_headers(headers: Sequence[tuple[str, bytes | None]] | None) -> Placement:
    """The placement that a message's headers say; headers of other names are not looked at.

    Raises:
        DecodeError: one is missing, there twice or of another width, or together they make no sense.

    """
    numbers = []
    for name, layout in _HEADERS:
        values = [value for key, value in headers or () if key == name]
        if len(values) != 1 or values[0] is None or len(values[0]) != layout.size:
            raise DecodeError(f"header {name!r}: expected once, of {layout.size} bytes")
        numbers.append(layout.unpack(values[0])[0])
    offset, base, count, epoch = numbers
    if not (0 <= base <= offset < base + count < 1 << 63 and epoch >= 0):
        raise DecodeError(f"headers offset {offset}, batch {base}, count {count}, epoch {epoch}: no record's place")
    return Placement(offset=offset, base_offset=base, count=count, epoch=epoch)


@define
class Assembler:
    """Puts batches together from the messages of a partition, in their order; its owner is who consumes them.

    The messages before the first that begins a batch are left out: a topic's retention may cut inside of one.
    """

    end_offset: int | None = None
    """The offset after the last whole batch; None before there is one."""
    _first: Placement | None = field(init=False, default=None)
    _timestamp: int = field(init=False, default=-1)
    _values: list[bytes] = field(init=False, factory=list)
    _epoch: int = field(init=False, default=0)

    def add(self, place: Placement, value: bytes | None, timestamp: int) -> MessageBatch | None:
        """The batch that this message completes, else None.

        Raises:
            ReplayError: a gap, a batch that is not the one under way, an epoch that goes back.
            DecodeError: a message without a value.

        """
        if self._first is None and self.end_offset is None and place.offset != place.base_offset:
            return None
        self._check(place, timestamp)
        if not value:
            raise DecodeError("a message without a value", offset=place.offset)
        if self._first is None:
            self._first, self._timestamp, self._epoch = place, timestamp, place.epoch
        self._values.append(value)
        if len(self._values) < place.count:
            return None
        batch = MessageBatch(
            base_offset=place.base_offset, epoch=place.epoch, timestamp=timestamp, values=tuple(self._values)
        )
        self._first, self._values, self.end_offset = None, [], batch.end_offset
        return batch

    def _check(self, place: Placement, timestamp: int) -> None:
        first = self._first
        expected = self.end_offset if first is None else first.base_offset + len(self._values)
        if place.offset != (place.base_offset if expected is None else expected):
            raise ReplayError(f"a message of offset {place.offset}: a gap, or one again", offset=expected)
        if first is None:
            if place.offset != place.base_offset or place.epoch < self._epoch:
                what = f"a batch of base {place.base_offset}, epoch {place.epoch}, after epoch {self._epoch}"
                raise ReplayError(what, offset=place.offset)
        elif (place.base_offset, place.count, place.epoch, timestamp) != (
            first.base_offset,
            first.count,
            first.epoch,
            self._timestamp,
        ):
            raise ReplayError("a message that says otherwise of its batch than the first one", offset=place.offset)
