"""Record batches, format 2 (magic 2): the unit that is written, replicated and made visible whole.

Mirrors org.apache.kafka.common.record.DefaultRecordBatch and DefaultRecord, and the rules that Kafka's raft reader
(org.apache.kafka.raft.internals.RecordsIterator) adds for a metadata log: no compression, every timestamp delta 0, no
headers; in a data batch no key and no empty value. Positions in errors are byte positions in the buffer.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import crc32c
from attrs import frozen

from aclog.metalog.batch_records import LONE_HEADS, Record, plain_value, read_record, record_bytes
from aclog.metalog.errors import DecodeError, EncodeError, LogError
from aclog.metalog.primitives import Buffer, varint

HEADER_SIZE = 61
"""Bytes before the first record."""

LENGTH_END = 12
"""base_offset and batch_length: what batch_length itself does not count."""

CRC_START = 21
"""The first byte that the CRC covers (attributes); what lies before must be checked by other means."""

MAGIC = 2
"""The batch format's version."""

CONTROL = 0x20
"""The attribute bit of a control batch, the only one that stands in a metadata log."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_CRC = struct.Struct(">qiib")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_UINT32 = struct.Struct(">I")


class BatchHeader(NamedTuple):
    """The first 61 bytes of a batch; `crc` is unsigned, timestamps are ms since 1970, `batch_length` is as stored.

    A named tuple, unlike other values: one is made of the unpacked bytes for every batch that is read.
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
        """The whole batch in bytes."""
        return self.batch_length + LENGTH_END

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def end_offset(self) -> int:
        """The offset of the record after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        """Whether the records are control records (see aclog.metalog.control_records)."""
        return bool(self.attributes & CONTROL)


@frozen(kw_only=True)
class RecordBatch:
    """A whole batch, its CRC and structure checked."""

    header: BatchHeader
    records: tuple[Record, ...]


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; its own fields are checked, the CRC and the records are not.

    Raises:
        DecodeError: cut, another magic, compressed or with attributes of a topic's batch, lengths, counts or offsets
            that no batch can have.

    """
    if position + HEADER_SIZE > len(buffer):
        raise DecodeError(f"cut inside a batch header: expected {HEADER_SIZE} bytes", position=position)
    header = BatchHeader._make(_HEADER.unpack_from(buffer, position))
    base, length, epoch, magic, _, attributes, last, _, _, _, _, _, count = header
    if magic != MAGIC:
        raise DecodeError(f"a batch of magic {magic}: expected {MAGIC}", position=position + 16)
    if length < HEADER_SIZE - LENGTH_END:
        raise DecodeError(f"batch length {length}: expected {HEADER_SIZE - LENGTH_END} or more", position=position + 8)
    if attributes & ~CONTROL:
        what = "a compressed batch" if attributes & 7 else f"batch attributes {attributes}"
        raise DecodeError(f"{what}: expected 0 or {CONTROL} (control) in a metadata log", position=position + CRC_START)
    if count < 1 or last != count - 1:
        raise DecodeError(f"{count} records with last offset delta {last}: expected one less", position=position + 23)
    if base < 0 or epoch < 0 or base + last >= 1 << 63:
        raise DecodeError(f"base offset {base}, leader epoch {epoch}: expected 0 or more", position=position)
    return header


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Check the CRC-32C of the batch at `position`, which covers all from its attributes on.

    Raises:
        DecodeError: the batch is cut, or its CRC is another one.

    """
    end = position + header.batch_length + LENGTH_END
    if end > len(buffer):
        raise DecodeError(
            f"cut inside a batch: {header.size} bytes announced, {len(buffer) - position} left",
            position=position,
            offset=header.base_offset,
        )
    found = crc32c.crc32c(memoryview(buffer)[position + CRC_START : end])
    if found != header.crc:
        raise DecodeError(
            f"CRC mismatch: the batch says {header.crc}, its bytes give {found}",
            position=position,
            offset=header.base_offset,
        )


def iter_batches(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Each whole batch from `position` on, as (its position, its header); CRCs are not checked.

    A batch that the buffer's end cuts ends the iteration: position + size of the last one given tells where.

    Raises:
        DecodeError: a header that no batch can have.

    """
    while position + HEADER_SIZE <= len(buffer):
        header = read_header(buffer, position)
        if position + header.size > len(buffer):
            return
        yield position, header
        position += header.size


def end_offset(batches: bytes) -> int:
    """The offset after the last of these whole batches, of which there is at least one; only lengths are looked at."""
    position, last = 0, 0
    while position < len(batches):
        last = position
        position += LENGTH_END + int.from_bytes(batches[position + 8 : position + LENGTH_END])
    return read_header(batches, last).end_offset


def decode_batch(buffer: Buffer, position: int = 0) -> RecordBatch:
    """The batch at `position`, CRC checked, every record decoded.

    Raises:
        DecodeError: cut, a bad CRC, or anything that a metadata log's batch cannot hold (see the module).

    """
    header = read_header(buffer, position)
    check_crc(buffer, position, header)
    return RecordBatch(header=header, records=tuple(read_records(buffer, position, header)))


def read_records(buffer: Buffer, position: int, header: BatchHeader) -> Iterator[Record]:
    """Each record of the whole batch at `position`, whose header has been read and whose CRC has been checked.

    Raises:
        DecodeError: a record that a metadata log cannot hold, or a count that does not agree with the content.

    """
    return (record for _, record in locate_records(buffer, position, header))


def locate_records(buffer: Buffer, position: int, header: BatchHeader) -> Iterator[tuple[int, Record]]:
    """(The position of its value in the buffer, the record) for each of `read_records`; raises as that does."""
    end = position + header.size
    batch = memoryview(buffer)[:end]
    at = position + HEADER_SIZE
    for delta in range(header.record_count):
        try:
            record, at = read_record(batch, at, delta, control=header.is_control)
        except DecodeError as e:
            raise e.at(offset=header.base_offset + delta) from None
        yield at - 1 - len(record.value), record
    _check_end(at, end, header)


def read_values(buffer: Buffer, position: int, header: BatchHeader) -> list[tuple[int, bytes]]:
    """(Its position, the value) of each record of a whole data batch; faster than `read_records`, which it agrees with.

    Raises:
        DecodeError: as read_records.

    """
    values = []
    end = position + header.batch_length + LENGTH_END
    at = position + HEADER_SIZE
    if header.record_count == 1 and end - at < len(LONE_HEADS):  # the commonest batch, by a shorter way
        head = LONE_HEADS[end - at]
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
            f"{end - at} bytes after the last of {header.record_count} records", position=at, offset=header.last_offset
        )


def encode_batch(batch: RecordBatch) -> bytes:
    """The bytes of a batch; length, last offset delta, count and CRC are computed from its records.

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
    """A data batch of these record values as Kafka's controller writes it; `timestamp` is ms since 1970.

    Raises:
        LogError: no values, or an empty one (Kafka could not read it back).
        EncodeError: a number out of its field's range.

    """
    if not values or not all(values):
        raise LogError("a batch needs at least one record value, and no value may be empty")
    parts: list[bytes] = []
    for delta, value in enumerate(values):
        body = b"\x00\x00" + varint(delta) + b"\x01" + varint(len(value))
        parts += (varint(len(body) + len(value) + 1), body, value, b"\x00")
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
    """A control batch of (key, value) pairs (see aclog.metalog.control_records), as Kafka's raft client writes it.

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
    crc = crc32c.crc32c(records, crc32c.crc32c(covered))
    return b"".join((before, _UINT32.pack(crc), covered, records))
