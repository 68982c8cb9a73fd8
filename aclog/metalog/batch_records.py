"""One record inside a record batch (org.apache.kafka.common.record.DefaultRecord), as a metadata log may hold it.

No timestamp delta and no headers; a data batch has no keys and no empty values, a control batch has keys and values.
"""

from collections.abc import Iterator

from attrs import frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import Buffer, read_varint, read_varlong, varint


@frozen(kw_only=True)
class Record:
    """One record of a batch; `key` is None except in control batches. Timestamp delta and headers are always 0 here."""

    attributes: int = 0
    offset_delta: int
    key: bytes | None = None
    value: bytes


def read_record(batch: memoryview, position: int, delta: int, *, control: bool) -> tuple[Record, int]:
    """Return (the record at `position`, the position after it) in a buffer that ends with its batch.

    Raises:
        DecodeError: truncated, an offset delta other than `delta`, or something that a metadata log cannot hold.

    """
    length, start = read_varint(batch, position)
    end = start + length
    if length < 0 or end > len(batch):
        raise DecodeError(
            f"a record of {length} bytes, but only {len(batch) - start} remain in its batch", position=position
        )
    body = batch[:end]
    if start == end:
        raise DecodeError("an empty record", position=position)
    timestamp_delta, at = read_varlong(body, start + 1)
    if timestamp_delta:
        raise DecodeError(f"timestamp delta {timestamp_delta}: expected 0", position=start + 1)
    offset_delta, after = read_varint(body, at)
    if offset_delta != delta:
        raise DecodeError(f"offset delta {offset_delta}: expected {delta}", position=at)
    key, at = _read_key(body, after, control=control)
    value, after = _read_nullable(body, at)
    if not value:
        raise DecodeError("a record without a value", position=at)
    headers, at = read_varint(body, after)
    if headers:
        raise DecodeError(f"{headers} record headers: expected none in a metadata log", position=after)
    if at != end:
        raise DecodeError(f"{end - at} trailing bytes in a record", position=at)
    return Record(attributes=body[start], offset_delta=delta, key=key, value=value), at


def _read_key(body: memoryview, position: int, *, control: bool) -> tuple[bytes | None, int]:
    key, after = _read_nullable(body, position)
    if control and key is None:
        raise DecodeError("a control record without a key", position=position)
    if not control and key is not None:
        raise DecodeError("a data record with a key: expected none in a metadata log", position=position)
    return key, after


def _read_nullable(body: memoryview, position: int) -> tuple[bytes | None, int]:
    length, start = read_varint(body, position)
    if length == -1:
        return None, start
    end = start + length
    if length < 0 or end > len(body):
        raise DecodeError(
            f"a field of {length} bytes, but only {len(body) - start} remain in the record", position=position
        )
    return bytes(body[start:end]), end


def _single_record_prefixes() -> Iterator[bytes]:
    """Yield, for each total size of a record, the bytes before its value if the record is the only one of its batch.

    Two varint lengths precede the value and their own sizes depend on it; at most one value size fits a total size.
    """
    for size in range(_PREFIX_SIZES):
        head = b""
        for value_size in range(max(size - 9, 1), size - 6):
            body = _PLAIN + varint(value_size)
            length = len(body) + value_size + 1
            if len(varint(length)) + length == size:
                head = varint(length) + body
        yield head


_PREFIX_SIZES = 512
_PLAIN = bytes((0, 0, 0, 1))
"""Attributes, timestamp delta, offset delta and null key of the first record of a data batch."""

SINGLE_RECORD_PREFIXES = tuple(_single_record_prefixes())
"""The bytes before the value of a batch's only record, indexed by the size of the record; empty if no record has it."""


def plain_value(buffer: Buffer, at: int, delta: int) -> tuple[int, int]:
    """Return (value start, record end) of a plain record below 8 KiB with a delta below 2**20, else (0, 0)."""
    try:
        length, body = _short_length(buffer, at)
        head = body
        if delta > 8191:  # a varint of three bytes
            head = body + 2
            if buffer[body + 2] != (delta << 1 & 0x7F | 0x80) or buffer[body + 3] != (delta >> 6 & 0x7F | 0x80):
                return 0, 0
            if not 0 < buffer[body + 4] == delta >> 13 < 0x80:
                return 0, 0
        elif delta > 63:  # of two
            head = body + 1
            if buffer[body + 2] != (delta << 1 & 0x7F | 0x80) or not 0 < buffer[body + 3] == delta >> 6 < 0x80:
                return 0, 0
        elif not 0x80 > buffer[body + 2] == delta << 1:
            return 0, 0
        size, start = _short_length(buffer, head + 4)
        end = start + size + 1
        if (
            size > 0
            and end == body + length
            and buffer[body + 1] == 0
            and buffer[head + 3] == 1
            and buffer[end - 1] == 0
        ):
            return start, end
    except IndexError:
        pass
    return 0, 0


def _short_length(buffer: Buffer, at: int) -> tuple[int, int]:
    """Return (length, position after it); length -1 unless it is positive and its varint has one or two bytes."""
    low = buffer[at]
    if low < 0x80:
        return (-1 if low & 1 else low >> 1), at + 1
    high = buffer[at + 1]
    if low & 1 or not 0 < high < 0x80:
        return -1, at + 2
    return (low & 0x7F | high << 7) >> 1, at + 2


def record_bytes(record: Record) -> bytes:
    """Return the bytes of a record, preceded by its length."""
    key = varint(-1) if record.key is None else varint(len(record.key)) + record.key
    start = bytes((record.attributes, 0)) + varint(record.offset_delta) + key
    body = start + varint(len(record.value)) + record.value + b"\x00"
    return varint(len(body)) + body
