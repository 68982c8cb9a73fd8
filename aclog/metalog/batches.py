"""Record batches, format 2 (magic 2): the unit in which records are written and become visible."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Self

from attrs import fields

from aclog.metalog.columns import BLOCK, Bools, Bytes, Int64s, bytes_at, lengths, slices_at, unsigned_varints
from aclog.metalog.errors import DecodeError, EncodeError, LogError, ReplayError
from aclog.metalog.native import native, np
from aclog.metalog.primitives import Buffer, read_varint, read_varlong, varint
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The CRC-32C of record batches.


def crc32c(data: Buffer, value: int = 0) -> int:
    """Return the CRC of some bytes, or of those before, whose CRC is `value`, with these after them."""
    if native is not None:
        return native.crc32c(data, value)  # type: ignore[no-any-return]
    # Imported on the first call: it imports importlib.metadata, which decisions on rules in a file do not need.
    from crc32c import crc32c as computed  # noqa: PLC0415

    checksum: int = computed(data, value)
    return checksum


# Grouping of record values into batches, for writers of many records at once.


MAX_BATCH_BYTES = 8 << 20
"""Kafka's largest batch (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

_RECORD_OVERHEAD = 32
"""Upper bound on the bytes of a record's own lengths, deltas and attributes."""

_BATCH_OVERHEAD = 256


def grouped(values: Iterable[bytes], max_batch_bytes: int = MAX_BATCH_BYTES) -> Iterator[list[bytes]]:
    """Yield values in lists that fit into a batch; a value too large for any batch is alone in its list."""
    group: list[bytes] = []
    size = _BATCH_OVERHEAD
    for value in values:
        weight = len(value) + _RECORD_OVERHEAD
        if group and size + weight > max_batch_bytes:
            yield group
            group, size = [], _BATCH_OVERHEAD
        group.append(value)
        size += weight
    if group:
        yield group


# One record inside a record batch (org.apache.kafka.common.record.DefaultRecord), as a metadata log may hold it.
#
# No timestamp delta and no headers; a data batch has no keys and no empty values, a control batch has keys and
# values.


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


def _single_record_prefixes() -> Iterator[tuple[int, bytes]]:
    """Yield total sizes of records, and the bytes before the value of such a record that is the only one of its batch.

    Two varint lengths precede the value and their own sizes depend on it; at most one value size fits a total size.
    """
    for value_size in range(1, _PREFIX_SIZES):
        body = _PLAIN + varint(value_size)
        length = len(body) + value_size + 1
        head = varint(length)
        yield len(head) + length, head + body


_PREFIX_SIZES = 512
_PLAIN = bytes((0, 0, 0, 1))
"""Attributes, timestamp delta, offset delta and null key of the first record of a data batch."""


@cache
def _prefixes() -> tuple[bytes, ...]:
    """Return the same indexed by the size of the record; empty if no record has it."""
    by_size = dict(_single_record_prefixes())
    return tuple(by_size.get(size, b"") for size in range(_PREFIX_SIZES))


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


# Record batches, format 2 (magic 2): the unit in which records are written, replicated and become visible.
#
# Mirrors org.apache.kafka.common.record.DefaultRecordBatch and DefaultRecord, and the restrictions that Kafka's raft
# reader (org.apache.kafka.raft.internals.RecordsIterator) adds for a metadata log: no compression, every timestamp
# delta 0, no record headers; in a data batch no key and no empty value. Positions in errors are byte positions in the
# buffer.


HEADER_SIZE = 61
"""Size of a batch header in bytes; the first record follows."""

LENGTH_END = 12
"""End of the batch_length field: base_offset and batch_length itself are not part of the length."""

CRC_START = 21
"""First byte that the CRC covers (attributes).

Base offset, length, leader epoch, magic and the CRC itself lie before it, so that a broker can assign offset and epoch
without computing the CRC again. Damage there is detected by other means: offset continuity, leader-epoch-checkpoint,
structure.
"""

MAGIC = 2
"""The version of the batch format."""

CONTROL = 0x20
"""The attribute bit of a control batch, the only one that is used in a metadata log."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_CRC = struct.Struct(">qiib")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_UINT32 = struct.Struct(">I")


_SHORT = 500
_VARINTS = tuple(map(varint, range(_SHORT + 8)))
"""The varints of offset deltas and sizes below 500, and of a record around such a value."""


class BatchHeader(NamedTuple):
    """The first 61 bytes of a batch; `crc` is unsigned, timestamps are ms since 1970, `batch_length` is as stored.

    A named tuple rather than an attrs class, because one is created for every batch that is read.
    """

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Size of the whole batch in bytes."""
        return self.batch_length + LENGTH_END

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        """Whether this is a control batch (see aclog.metalog.control_records)."""
        return bool(self.attributes & CONTROL)


@frozen(kw_only=True)
class RecordBatch:
    """A whole batch whose CRC and structure have been checked."""

    header: BatchHeader
    records: tuple[Record, ...]


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; its own fields are validated, the CRC and the records are not.

    Raises:
        DecodeError: truncated, another magic, compressed, attributes that a metadata log does not use, or impossible
            lengths, counts or offsets.

    """
    if position + HEADER_SIZE > len(buffer):
        raise DecodeError(f"truncated batch header: expected {HEADER_SIZE} bytes", position=position)
    # Without the constructor in Python, as this runs for every batch.
    header = tuple.__new__(BatchHeader, _HEADER.unpack_from(buffer, position))
    base, length, epoch, magic, _, attributes, last, _, _, _, _, _, count = header
    # Checked here because the CRC does not cover it; a damaged length is found by the CRC over the wrong range.
    if magic != MAGIC:
        raise DecodeError(f"a batch of magic {magic}: expected {MAGIC}", position=position + 16)
    if length < HEADER_SIZE - LENGTH_END:
        raise DecodeError(f"batch length {length}: expected {HEADER_SIZE - LENGTH_END} or more", position=position + 8)
    if attributes & ~CONTROL:
        what = "a compressed batch" if attributes & 7 else f"batch attributes {attributes}"
        raise DecodeError(f"{what}: expected 0 or {CONTROL} (control) in a metadata log", position=position + CRC_START)
    # Kafka allows gaps inside a batch after compaction; a metadata log is never compacted, so offsets are dense.
    if count < 1 or last != count - 1:
        raise DecodeError(f"{count} records with last offset delta {last}: expected one less", position=position + 23)
    if base < 0 or epoch < 0 or base + last >= 1 << 63:
        raise DecodeError(f"base offset {base}, leader epoch {epoch}: expected 0 or more", position=position)
    return header


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Check the CRC-32C of the batch at `position`, which covers everything from its attributes to its end.

    Raises:
        DecodeError: the batch is truncated, or the CRC does not match.

    """
    end = position + header.batch_length + LENGTH_END
    if end > len(buffer):
        raise DecodeError(
            f"truncated batch: expected {header.size} bytes, found {len(buffer) - position}",
            position=position,
            offset=header.base_offset,
        )
    checksum = crc32c(memoryview(buffer)[position + CRC_START : end])
    if checksum != header.crc:
        raise DecodeError(
            f"CRC mismatch: stored {header.crc}, computed {checksum}",
            position=position,
            offset=header.base_offset,
        )


def iter_batches(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield each whole batch from `position` on, as (its position, its header); CRCs are not checked.

    A batch truncated by the end of the buffer ends the iteration: position + size of the last one yielded is where.

    Raises:
        DecodeError: an invalid header.

    """
    while position + HEADER_SIZE <= len(buffer):
        header = read_header(buffer, position)
        if position + header.size > len(buffer):
            return
        yield position, header
        position += header.size


_SMALL = 1 << 16
"""The bytes from which a scan of all headers is faster than a walk from length to length."""


def last_batch(batches: bytes) -> int:
    """Return where the last of these whole batches begins, at least one; only lengths count."""
    position, last = 0, 0
    if native is not None and len(batches) > _SMALL:
        # What is invalid, if anything, is left to the loop, which knows nothing but lengths.
        rows = np.frombuffer(native.batches(batches, 0, False)[0], np.int64).reshape(7, -1)
        last, position = (int(rows[0, -1]), int(rows[1, -1])) if rows.size else (0, 0)
    while position < len(batches):
        last = position
        position += LENGTH_END + int.from_bytes(batches[position + 8 : position + LENGTH_END])
    return last


def end_offset(batches: bytes) -> int:
    """Return the offset after the last of these whole batches, at least one."""
    return read_header(batches, last_batch(batches)).end_offset


def decode_batch(buffer: Buffer, position: int = 0) -> RecordBatch:
    """Decode the batch at `position`: CRC checked, every record decoded.

    Raises:
        DecodeError: truncated, a CRC mismatch, or something that a metadata log cannot hold (see the module).

    """
    header = read_header(buffer, position)
    check_crc(buffer, position, header)
    return RecordBatch(header=header, records=tuple(read_records(buffer, position, header)))


def read_records(buffer: Buffer, position: int, header: BatchHeader) -> Iterator[Record]:
    """Yield each record of the whole batch at `position`, whose header has been read and whose CRC has been checked.

    Raises:
        DecodeError: a record that a metadata log cannot hold, or a record count that does not match the content.

    """
    return (record for _, record in locate_records(buffer, position, header))


def locate_records(buffer: Buffer, position: int, header: BatchHeader) -> Iterator[tuple[int, Record]]:
    """Yield (position of the value in the buffer, record) for each record; raises what `read_records` raises."""
    end = position + header.size
    batch = memoryview(buffer)[:end]
    at = position + HEADER_SIZE
    for delta in range(header.record_count):
        try:
            record, at = read_record(batch, at, delta, control=header.is_control)
        except DecodeError as e:
            raise e.at(offset=header.base_offset + delta) from None
        # The value is followed by one byte, the header count 0.
        yield at - 1 - len(record.value), record
    _check_end(at, end, header)


def read_values(buffer: Buffer, position: int, header: BatchHeader) -> list[tuple[int, bytes]]:
    """Return (position, value) of each record of a whole data batch; a faster `read_records` with the same results.

    Raises:
        DecodeError: see read_records.

    """
    values = []
    end = position + header.batch_length + LENGTH_END
    at = position + HEADER_SIZE
    if header.record_count == 1 and end - at < _PREFIX_SIZES:
        # Most batches hold one small record. Its size determines every byte before the value, so that one comparison
        # with a precomputed prefix replaces decoding four varints.
        head = _prefixes()[end - at]
        start = at + len(head)
        if head and buffer[at:start] == head and not buffer[end - 1]:
            return [(start, bytes(buffer[start : end - 1]))]
    for delta in range(header.record_count):
        start, after = plain_value(buffer, at, delta)
        if not start or after > end:
            batch = memoryview(buffer)[:end]
            try:
                record, after = read_record(batch, at, delta, control=False)
            except DecodeError as e:
                raise e.at(offset=header.base_offset + delta) from None
            start = after - 1 - len(record.value)
        values.append((start, bytes(buffer[start : after - 1])))
        at = after
    _check_end(at, end, header)
    return values


def _check_end(at: int, end: int, header: BatchHeader) -> None:
    if at != end:
        raise DecodeError(
            f"{end - at} trailing bytes after {header.record_count} records", position=at, offset=header.last_offset
        )


def encode_batch(batch: RecordBatch) -> bytes:
    """Return the bytes of a batch; length, last offset delta, record count and CRC are computed from its records.

    Raises:
        EncodeError: no records, or a number out of its field's range.

    """
    header = batch.header
    records = b"".join(map(record_bytes, batch.records))
    return _assemble(
        records,
        len(batch.records),
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes,
        timestamps=(header.base_timestamp, header.max_timestamp),
        producer=(header.producer_id, header.producer_epoch, header.base_sequence),
    )


def build_batch(values: Sequence[bytes], *, base_offset: int, leader_epoch: int, timestamp: int) -> bytes:
    """Build a data batch of these record values as Kafka's controller writes it; `timestamp` is ms since 1970.

    Raises:
        LogError: no values, or an empty value, which Kafka could not read back.
        EncodeError: a number out of its field's range.

    """
    if not values or not all(values):
        # Kafka's raft reader fails on a data record without a value: such a log would stay unreadable for it.
        raise LogError("a batch needs at least one record value, and no value may be empty")
    parts: list[bytes] = []
    for delta, value in enumerate(values):
        size = len(value)
        if size < _SHORT and delta < _SHORT:  # nearly all: varints of one or two bytes, looked up
            body = b"\x00\x00%b\x01%b" % (_VARINTS[delta], _VARINTS[size])
            parts += (_VARINTS[len(body) + size + 1], body, value, b"\x00")
            continue
        body = b"\x00\x00" + varint(delta) + b"\x01" + varint(size)
        parts += (varint(len(body) + size + 1), body, value, b"\x00")
    return _assemble(
        b"".join(parts),
        len(values),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=0,
        timestamps=(timestamp, timestamp),
    )


def build_control_batch(
    records: Sequence[tuple[bytes, bytes]], *, base_offset: int, leader_epoch: int, timestamp: int
) -> bytes:
    """Build a control batch of (key, value) pairs (aclog.metalog.control_records), as Kafka's raft client writes it.

    Raises:
        EncodeError: no records, or a number out of its field's range.

    """
    parts = [
        record_bytes(Record(offset_delta=delta, key=key, value=value)) for delta, (key, value) in enumerate(records)
    ]
    return _assemble(
        b"".join(parts),
        len(parts),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=CONTROL,
        timestamps=(timestamp, timestamp),
    )


def _assemble(
    records: bytes,
    count: int,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    timestamps: tuple[int, int],
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    if not count:
        raise EncodeError("a batch without records")
    try:
        covered = _AFTER_CRC.pack(attributes, count - 1, *timestamps, *producer, count)
        length = len(covered) + len(records) + CRC_START - LENGTH_END
        before = _BEFORE_CRC.pack(base_offset, length, leader_epoch, MAGIC)
    except struct.error as e:
        raise EncodeError(f"a batch at offset {base_offset}, epoch {leader_epoch} of {count} records: {e}") from None
    # The CRC continues over the second buffer: large batches are not copied an additional time to compute it.
    crc = crc32c(records, crc32c(covered))
    return b"".join((before, _UINT32.pack(crc), covered, records))


# Vectorized scan of a buffer: finds and checks all of its batches and records at once.
#
# The counterpart of `batches.iter_batches`, `check_crc` and `read_records`: it accepts what they would accept, and
# leaves to them what it cannot prove valid. A Python loop finds the batch starts, one length at a time; everything
# else is numpy.


_SCAN_HEADER = [
    ("base_offset", ">i8"),
    ("batch_length", ">i4"),
    ("leader_epoch", ">i4"),
    ("magic", "i1"),
    ("crc", ">u4"),
    ("attributes", ">i2"),
    ("last_offset_delta", ">i4"),
    ("base_timestamp", ">i8"),
    ("max_timestamp", ">i8"),
    ("producer_id", ">i8"),
    ("producer_epoch", ">i2"),
    ("base_sequence", ">i4"),
    ("count", ">i4"),
]

_LEAST_RECORD = 8
"""Size of the smallest record that a metadata log can hold: an upper bound for the record count of a batch."""

_LOCKSTEP_MIN = 512
"""From this many batches on, advancing all of them by one numpy call is faster than walking each in Python."""

_MAX_INT64 = (1 << 63) - 1

_LENGTH = struct.Struct(">i")


@frozen(kw_only=True, eq=False, repr=False)
class BatchColumns:
    """The whole batches of a buffer, headers and CRCs checked; int64 columns except for `is_control`.

    `position` and `end` are the slice of a batch in the buffer, `max_timestamp` its time in ms since 1970.
    """

    position: Int64s
    end: Int64s
    base_offset: Int64s
    leader_epoch: Int64s
    max_timestamp: Int64s
    record_count: Int64s
    is_control: Bools

    def __len__(self) -> int:
        return len(self.position)

    def first(self, count: int) -> Self:
        """Return the first `count` batches."""
        return type(self)(**{each.name: getattr(self, each.name)[:count] for each in fields(type(self))})

    @property
    def end_offset(self) -> Int64s:
        """The offset after each batch. Ascending only in batches that are in order: no CRC covers a base offset."""
        return self.base_offset + self.record_count

    def in_order(self, offset: int, epoch: int) -> Self:
        """Return the batches, from the first on, that continue a log at `offset`, after a batch of `epoch`.

        Their offsets are contiguous, and their leader epochs never decrease.
        """
        offsets, epochs = np.append(offset, self.end_offset), np.append(epoch, self.leader_epoch)
        return self.first(_first((self.base_offset != offsets[:-1]) | (epochs[1:] < epochs[:-1])))


@frozen(kw_only=True, eq=False, repr=False)
class ValueColumns:
    """The record values of the data batches in int64 columns: batch number, offset, slice of the value."""

    batch: Int64s
    offset: Int64s
    value_start: Int64s
    value_end: Int64s

    def __len__(self) -> int:
        return len(self.batch)


def scan_batches(buffer: Buffer, position: int = 0) -> tuple[BatchColumns, int | None]:
    """Return the whole batches from `position` on, and the position of the first damaged one, if any.

    A batch truncated by the end of the buffer also ends the scan, but does not count as damage.
    """
    if native is not None:
        return _scan_natively(buffer, position)
    at = _batch_positions(buffer, position)
    headers = _headers(buffer, at)
    end = at + headers["batch_length"] + LENGTH_END
    good = _first(~_valid(headers))
    damage = int(at[good]) if good < len(at) else None
    # Only the last batch can reach past the end: the next start is the end of the batch before.
    good -= bool(good and end[good - 1] > len(buffer))
    wrong_crc = _first_wrong_crc(buffer, at[:good], end[:good], headers["crc"][:good])
    if wrong_crc < good:
        good, damage = wrong_crc, int(at[wrong_crc])
    headers = headers[:good]
    return BatchColumns(
        position=at[:good],
        end=end[:good],
        base_offset=headers["base_offset"].astype(np.int64),
        leader_epoch=headers["leader_epoch"].astype(np.int64),
        max_timestamp=headers["max_timestamp"].astype(np.int64),
        record_count=headers["count"].astype(np.int64),
        is_control=headers["attributes"] == CONTROL,
    ), damage


def _scan_natively(buffer: Buffer, position: int) -> tuple[BatchColumns, int | None]:
    columns, damage = native.batches(buffer, position, True)
    rows = np.frombuffer(columns, np.int64).reshape(7, -1)
    return BatchColumns(
        position=rows[0],
        end=rows[1],
        base_offset=rows[2],
        leader_epoch=rows[3],
        max_timestamp=rows[4],
        record_count=rows[5],
        is_control=rows[6] != 0,
    ), damage if damage >= 0 else None


def _batch_positions(buffer: Buffer, position: int) -> Int64s:
    """Return the starts of headers, found by lengths alone; the last batch may be truncated, lengths may be bogus."""
    positions = array("q")
    while position + HEADER_SIZE <= len(buffer):
        positions.append(position)
        # A bogus length still moves forward by a header; its batch fails the validity check or the CRC.
        position += max(_LENGTH.unpack_from(buffer, position + 8)[0] + LENGTH_END, HEADER_SIZE)
    return np.frombuffer(positions, np.int64)


def _headers(buffer: Buffer, at: Int64s) -> NDArray[np.void]:
    if not len(at):
        return np.zeros(0, _SCAN_HEADER)
    return slices_at(np.frombuffer(buffer, np.uint8), at, HEADER_SIZE).view(np.dtype(_SCAN_HEADER))[:, 0]


def _valid(headers: NDArray[np.void]) -> Bools:
    """Return the mask of headers that `batches.read_header` accepts."""
    base, last, count = headers["base_offset"], headers["last_offset_delta"], headers["count"]
    valid: Bools = (headers["magic"] == MAGIC) & (headers["batch_length"] >= HEADER_SIZE - LENGTH_END)
    valid &= (headers["attributes"] & ~CONTROL == 0) & (count >= 1) & (last == count - 1)
    valid &= (base >= 0) & (headers["leader_epoch"] >= 0) & (base <= _MAX_INT64 - last.astype(np.int64))
    return valid


def _first(flags: Bools) -> int:
    """Return the first row that is true, or the number of rows if none is."""
    return int(np.argmax(flags)) if flags.any() else len(flags)


def _first_wrong_crc(buffer: Buffer, at: Int64s, end: Int64s, crc: NDArray[np.uint32]) -> int:
    view = memoryview(buffer)
    rows = zip(at.tolist(), end.tolist(), crc.tolist(), strict=True)
    for row, (start, stop, expected) in enumerate(rows):
        if crc32c(view[start + CRC_START : stop]) != expected:
            return row
    return len(at)


def scan_values(buffer: Buffer, batches: BatchColumns) -> tuple[ValueColumns, int | None]:
    """Return the values in all data batches, and the number of the first batch that is not proven valid, if any.

    Values of that batch and of later ones are not returned.
    """
    numbers = np.flatnonzero(~batches.is_control)
    if native is not None:
        return _values_natively(buffer, batches, numbers)
    starts, whole = _record_starts(buffer, batches, numbers)
    batch = np.repeat(numbers[:whole], batches.record_count[numbers[:whole]])
    first = np.cumsum(batches.record_count[numbers[:whole]]) - batches.record_count[numbers[:whole]]
    delta = np.arange(len(starts)) - np.repeat(first, batches.record_count[numbers[:whole]])
    value_start, value_end, valid = _values(buffer, starts, delta)
    rows = _first(~valid)
    bad = int(batch[rows]) if rows < len(batch) else None
    if bad is None and whole < len(numbers):
        bad = int(numbers[whole])
    rows = int(np.searchsorted(batch, len(batches) if bad is None else bad))
    return ValueColumns(
        batch=batch[:rows],
        offset=(batches.base_offset[batch] + delta)[:rows],
        value_start=value_start[:rows],
        value_end=value_end[:rows],
    ), bad


def _values_natively(buffer: Buffer, batches: BatchColumns, numbers: Int64s) -> tuple[ValueColumns, int | None]:
    counts = batches.record_count[numbers]
    starts, ends, whole = native.values(buffer, batches.position[numbers] + HEADER_SIZE, batches.end[numbers], counts)
    batch = np.repeat(numbers[:whole], counts[:whole])
    first = np.cumsum(counts[:whole]) - counts[:whole]
    return ValueColumns(
        batch=batch,
        offset=np.repeat(batches.base_offset[numbers[:whole]] - first, counts[:whole]) + np.arange(len(batch)),
        value_start=np.frombuffer(starts, np.int64),
        value_end=np.frombuffer(ends, np.int64),
    ), int(numbers[whole]) if whole < len(numbers) else None


def _record_starts(buffer: Buffer, batches: BatchColumns, numbers: Int64s) -> tuple[Int64s, int]:
    """Return the record starts up to the first batch whose lengths do not add up, and that batch's number."""
    counts, ends = batches.record_count[numbers], batches.end[numbers]
    at = batches.position[numbers] + HEADER_SIZE
    # Bounds the allocation below: the CRC only proves that the count was written so, not that it is sane.
    whole = _first(counts * _LEAST_RECORD > ends - at)
    counts, ends, at = counts[:whole], ends[:whole], at[:whole]
    first = np.cumsum(counts) - counts
    starts = np.empty(int(counts.sum()), np.int64)
    step = _walk_in_lockstep(buffer, counts, at, first=first, starts=starts)
    for row in np.flatnonzero(counts > step).tolist():
        rest = array("q")
        at[row] = _walk(buffer, int(at[row]), int(counts[row]) - step, rest)
        starts[first[row] + step : first[row] + step + len(rest)] = rest
    whole = _first(at != ends)
    return starts[: int(counts[:whole].sum())], whole


def _walk_in_lockstep(buffer: Buffer, counts: Int64s, at: Int64s, first: Int64s, starts: Int64s) -> int:
    """Walk the records of all batches in lockstep while enough batches remain; return the number of steps made.

    `at` advances to the next record of each batch, or past the end of the data if a length is bogus.
    """
    data, step = np.frombuffer(buffer, np.uint8), 0
    rows = np.flatnonzero(counts > step)
    while len(rows) >= _LOCKSTEP_MIN:
        starts[first[rows] + step] = at[rows]
        length, body, valid = lengths(data, at[rows])
        at[rows] = np.where(valid, np.minimum(body + length, len(data) + 1), len(data) + 1)
        step += 1
        rows = rows[counts[rows] > step]
    return step


def _walk(buffer: Buffer, at: int, count: int, starts: array[int]) -> int:
    """Record the starts of `count` records from `at` on; return the end of the last one, or -1 if one is malformed."""
    note = starts.append
    try:
        for _ in range(count):
            note(at)
            low = buffer[at]
            if low < 0x80:
                at += 1 + (low >> 1)
            elif (high := buffer[at + 1]) < 0x80:
                at += 2 + ((low & 0x7F | high << 7) >> 1)
            else:
                length, at = read_varint(buffer, at)
                at += max(length, 0)
    except (IndexError, DecodeError):
        return -1
    return at


def _values(buffer: Buffer, starts: Int64s, deltas: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Return (starts, ends, mask of valid ones) of the values of the data records at `starts`, block by block."""
    data = np.frombuffer(buffer, np.uint8)
    value_start, value_end = np.empty_like(starts), np.empty_like(starts)
    valid = np.empty(len(starts), np.bool_)
    for first in range(0, len(starts), BLOCK):
        rows = slice(first, first + BLOCK)
        value_start[rows], value_end[rows], valid[rows] = _block_values(data, starts[rows], deltas[rows])
    return value_start, value_end, valid


def _block_values(data: Bytes, starts: Int64s, deltas: Int64s) -> tuple[Int64s, Int64s, Bools]:
    length, body, valid = lengths(data, starts)
    offset_delta, key, offset_ok = unsigned_varints(data, body + 2)
    size, value_start, size_ok = lengths(data, key + 1)
    value_end = value_start + size
    # The same conditions as batch_records.read_record: offset delta in sequence, null key (a varint of -1 is the byte
    # 1), a value, timestamp delta 0, no headers, and lengths that agree with each other.
    valid &= offset_ok & size_ok & (offset_delta == deltas << 1) & (size > 0) & (value_end + 1 == body + length)
    valid &= (bytes_at(data, body + 1) == 0) & (bytes_at(data, key) == 1) & (bytes_at(data, value_end) == 0)
    return value_start, value_end, valid


# A run of consecutive whole batches that can be split at any batch boundary.


@frozen(eq=False, repr=False)
class BatchRun:
    """One or more batches, headers and CRCs checked, offsets without a gap, leader epochs that never decrease.

    `positions` are the batch starts in `data` followed by the end of the last one; `ends` are the offsets after each.
    """

    data: bytes
    positions: Int64s
    bases: Int64s
    ends: Int64s
    epochs: Int64s

    @classmethod
    def of(cls, records: bytes) -> Self:
        """Return the whole batches in the records of a Fetch response, up to damage or to a truncated batch.

        A leader fills a response up to a byte limit, so the last batch of one is often truncated.

        Raises:
            DecodeError: the first batch is already damaged or truncated.
            ReplayError: the batches are not consecutive.

        """
        headers, _ = scan_batches(records)
        if not len(headers):
            header = read_header(records)
            check_crc(records, 0, header)
            raise DecodeError("no whole batch", position=0, offset=header.base_offset)  # pragma: no cover
        positions = np.append(headers.position, headers.end[-1])
        run = cls(
            data=records[: positions[-1]],
            positions=positions,
            bases=headers.base_offset,
            ends=headers.end_offset,
            epochs=headers.leader_epoch,
        )
        run._check_order()
        return run

    def _check_order(self) -> None:
        wrong = np.flatnonzero((self.bases[1:] != self.ends[:-1]) | (self.epochs[1:] < self.epochs[:-1]))
        if len(wrong):
            self.check_follows(int(self.ends[wrong[0]]), int(self.epochs[wrong[0]]), batch=int(wrong[0]) + 1)

    def check_follows(self, offset: int, epoch: int, batch: int = 0) -> None:
        """Check that a batch (by default the first) contains `offset` and that its epoch is not below `epoch`.

        Raises:
            ReplayError: it does not, or its epoch is lower.

        """
        base, end, batch_epoch = int(self.bases[batch]), int(self.ends[batch]), int(self.epochs[batch])
        # A leader sends whole batches, so the first may begin below the requested offset; others must be contiguous.
        if not base <= offset < end or (batch and base != offset):
            what = f"a batch of offsets {base}..{end - 1}: expected one that contains offset {offset}"
        elif batch_epoch < epoch:
            what = f"leader epoch {batch_epoch} after epoch {epoch}: epochs never decrease"
        else:
            return
        raise ReplayError(what, position=int(self.positions[batch]), offset=base)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.data)

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return int(self.bases[0])

    @property
    def end_offset(self) -> int:
        """Offset after the last record."""
        return int(self.ends[-1])

    @property
    def epoch(self) -> int:
        """Leader epoch of the last batch."""
        return int(self.epochs[-1])

    def below(self, offset: int) -> int:
        """Return the number of batches that end at or below an offset."""
        return int(np.searchsorted(self.ends, offset, side="right"))

    def slice(self, first: int, last: int) -> BatchRun | None:
        """Return the batches from number `first` to before `last`; None if the slice is empty."""
        if first >= last:
            return None
        if first == 0 and last == len(self):
            return self
        start, end = int(self.positions[first]), int(self.positions[last])
        positions = self.positions[first : last + 1] - start
        rows = slice(first, last)
        return BatchRun(
            data=self.data[start:end],
            positions=positions,
            bases=self.bases[rows],
            ends=self.ends[rows],
            epochs=self.epochs[rows],
        )

    def read(self, offset: int, max_bytes: int) -> tuple[bytes, int]:
        """Return (batches from the one that contains `offset`, their end offset): at most `max_bytes`, at least one."""
        first = self.below(offset)
        start = int(self.positions[first])
        fitting = int(np.searchsorted(self.positions, start + max_bytes, side="right")) - 1
        last = max(fitting, first + 1)
        return self.data[start : int(self.positions[last])], int(self.ends[last - 1])

    def joined(self, after: BatchRun) -> BatchRun:
        """Return this run and the one that follows it as a single run."""
        positions = np.concatenate((self.positions[:-1], after.positions + self.size))
        rows = ((self.bases, after.bases), (self.ends, after.ends), (self.epochs, after.epochs))
        return BatchRun(self.data + after.data, positions, *map(np.concatenate, rows))
