"""How a metadata log is stored in a topic partition: message headers, and the assembly of batches from messages.

One message per record: null key, the record value as value, the batch timestamp as timestamp. Headers are big-endian
integers of fixed width: `offset` (int64, aclog's own dense offset), `batch` (int64, the base offset of the batch),
`count` (int32, its number of records) and `epoch` (int32, the controller's leader epoch). The partition's own offsets
cannot serve, since they have holes at transaction markers and aborted messages.

Two more headers are set only when needed: `control`, the key of a control record (int16 version, int16 type), marks a
control batch; `time` (int64) is the batch timestamp if it is 0 or less, which Kafka clients cannot send.
"""

import struct
from collections.abc import Sequence

from attrs import field

from aclog.metalog.batches import BatchHeader, build_batch, build_control_batch, read_records, read_values
from aclog.metalog.errors import DecodeError, EncodeError, ReplayError
from aclog.metalog.values import define, frozen

_INT64, _INT32 = struct.Struct(">q"), struct.Struct(">i")
_HEADERS = (("offset", _INT64), ("batch", _INT64), ("count", _INT32), ("epoch", _INT32))
_CONTROL, _TIME = "control", "time"
_CONTROL_KEY_BYTES = 4

Headers = list[tuple[str, bytes]]
"""The headers of a message, as (name, value) pairs."""


@frozen(kw_only=True)
class Placement:
    """The position of a record: its dense offset, its batch's base offset and record count, and the leader epoch.

    `control` is the key of a control record, None for a data record; `time` is the batch timestamp (ms since 1970) if
    the message timestamp cannot carry it, None otherwise.
    """

    offset: int
    base_offset: int
    count: int
    epoch: int
    control: bytes | None = None
    time: int | None = None

    @property
    def end_offset(self) -> int:
        """The offset after the batch's last record."""
        return self.base_offset + self.count


@frozen(kw_only=True)
class BatchMessage:
    """A record as a message; a `timestamp` of 0 leaves it to the client, and `place.time` then has the real one."""

    place: Placement
    value: bytes
    timestamp: int


@frozen(kw_only=True)
class MessageBatch:
    """A whole batch as stored in messages; `timestamp` is ms since 1970, `keys` are set for control records only."""

    base_offset: int
    epoch: int
    timestamp: int
    values: tuple[bytes, ...]
    keys: tuple[bytes, ...] = ()

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + len(self.values)

    def encode(self) -> bytes:
        """Encode the batch in the log's own format, byte for byte as Kafka's controller (and aclog's) builds it."""
        where = {"base_offset": self.base_offset, "leader_epoch": self.epoch, "timestamp": self.timestamp}
        if self.keys:
            return build_control_batch(tuple(zip(self.keys, self.values, strict=True)), **where)
        return build_batch(self.values, **where)

    def messages(self) -> list[BatchMessage]:
        """Return one message per record, in order."""
        # Clients replace a timestamp of 0 or less by their own clock; the `time` header then carries the real one.
        sent = max(0, self.timestamp)
        time, count = None if sent else self.timestamp, len(self.values)
        keys = self.keys or (None,) * count
        messages = []
        for offset, key, value in zip(range(self.base_offset, self.end_offset), keys, self.values, strict=True):
            place = Placement(
                offset=offset, base_offset=self.base_offset, count=count, epoch=self.epoch, control=key, time=time
            )
            messages.append(BatchMessage(place=place, value=value, timestamp=sent))
        return messages


def read_batch(buffer: bytes, position: int, header: BatchHeader) -> MessageBatch:
    """Return the stored form of the whole batch at `position`, whose CRC has been checked.

    `encode` may yield different bytes: header fields that writers of a metadata log leave at their defaults are not
    stored.

    Raises:
        DecodeError: see batches.read_records.

    """
    keys: tuple[bytes, ...] = ()
    if header.is_control:
        records = tuple(read_records(buffer, position, header))
        keys = tuple(record.key or b"" for record in records)
        values = tuple(record.value for record in records)
    else:
        values = tuple(value for _, value in read_values(buffer, position, header))
    return MessageBatch(
        base_offset=header.base_offset,
        epoch=header.leader_epoch,
        timestamp=header.max_timestamp,
        values=values,
        keys=keys,
    )


def encode_headers(place: Placement) -> Headers:
    """Return the headers of a message.

    Raises:
        EncodeError: a number out of its header's range, or a control record key of the wrong size.

    """
    numbers = (place.offset, place.base_offset, place.count, place.epoch)
    try:
        headers = [(name, layout.pack(number)) for (name, layout), number in zip(_HEADERS, numbers, strict=True)]
        if place.time is not None:
            headers.append((_TIME, _INT64.pack(place.time)))
    except struct.error as e:
        raise EncodeError(f"{place}: {e}") from None
    if place.control is not None:
        if len(place.control) != _CONTROL_KEY_BYTES:
            raise EncodeError(f"{place}: a control record's key of {len(place.control)} bytes: expected 4")
        headers.append((_CONTROL, place.control))
    return headers


def decode_headers(headers: Sequence[tuple[str, bytes | None]] | None) -> Placement:
    """Return the placement in a message's headers; headers of other names are ignored.

    Raises:
        DecodeError: a header is missing, duplicated or of the wrong size, or the values are inconsistent.

    """
    values = _by_name(headers or ())
    offset, base, count, epoch = (layout.unpack(_required(values, name, layout.size))[0] for name, layout in _HEADERS)
    if not (0 <= base <= offset < base + count < 1 << 63 and epoch >= 0):
        raise DecodeError(f"headers offset {offset}, batch {base}, count {count}, epoch {epoch}: inconsistent")
    time = _INT64.unpack(_required(values, _TIME, _INT64.size))[0] if _TIME in values else None
    control = _required(values, _CONTROL, _CONTROL_KEY_BYTES) if _CONTROL in values else None
    return Placement(offset=offset, base_offset=base, count=count, epoch=epoch, control=control, time=time)


def _by_name(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, bytes | None]:
    """Return the header values by name; None for a duplicated one, so that it fails like a missing one."""
    values: dict[str, bytes | None] = {}
    for name, value in headers:
        values[name] = None if name in values else value
    return values


def _required(headers: dict[str, bytes | None], name: str, size: int) -> bytes:
    value = headers.get(name)
    if value is None or len(value) != size:
        raise DecodeError(f"header {name!r}: expected exactly one, of {size} bytes")
    return value


@define
class Assembler:
    """Assembles batches from the messages of a partition, in order; for the one thread that consumes them.

    Messages before the first batch start are skipped, because topic retention may cut in the middle of a batch.
    """

    end_offset: int | None = None
    """The offset after the last complete batch; None before the first."""
    epoch: int = 0
    """The leader epoch of the last batch; none may go below."""
    _first: Placement | None = field(init=False, default=None)
    _timestamp: int = field(init=False, default=-1)
    _values: list[bytes] = field(init=False, factory=list)
    _keys: list[bytes] = field(init=False, factory=list)

    def add(self, place: Placement, value: bytes | None, timestamp: int) -> MessageBatch | None:
        """Add the next message; return the batch if this message completes one, else None.

        Raises:
            ReplayError: an offset gap, a message of a different batch, a leader epoch that decreases.
            DecodeError: a message without a value.

        """
        if self._first is None and self.end_offset is None and place.offset != place.base_offset:
            return None
        timestamp = timestamp if place.time is None else place.time
        self._check(place, timestamp)
        if not value:
            raise DecodeError("a message without a value", offset=place.offset)
        if self._first is None:
            self._first, self._timestamp, self.epoch = place, timestamp, place.epoch
        self._values.append(value)
        if place.control is not None:
            self._keys.append(place.control)
        return self._complete(self._first) if len(self._values) == place.count else None

    def _complete(self, first: Placement) -> MessageBatch:
        batch = MessageBatch(
            base_offset=first.base_offset,
            epoch=first.epoch,
            timestamp=self._timestamp,
            values=tuple(self._values),
            keys=tuple(self._keys),
        )
        self._first, self._values, self._keys, self.end_offset = None, [], [], batch.end_offset
        return batch

    def _check(self, place: Placement, timestamp: int) -> None:
        first = self._first
        expected = self.end_offset if first is None else first.base_offset + len(self._values)
        if place.offset != (place.base_offset if expected is None else expected):
            raise ReplayError(f"a message of offset {place.offset}: a gap or a duplicate", offset=expected)
        if first is None:
            if place.offset != place.base_offset or place.epoch < self.epoch:
                what = f"a batch of base offset {place.base_offset}, epoch {place.epoch}, after epoch {self.epoch}"
                raise ReplayError(what, offset=place.offset)
        elif _batch_fields(place, timestamp) != _batch_fields(first, self._timestamp):
            raise ReplayError(
                "a message whose headers disagree with the first message of its batch", offset=place.offset
            )


def _batch_fields(place: Placement, timestamp: int) -> tuple[object, ...]:
    """Return the fields that must be the same in all messages of a batch."""
    return place.base_offset, place.count, place.epoch, place.control is None, timestamp
