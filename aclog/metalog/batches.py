"""Record batches, format 2 (magic 2): the unit in which records are written, replicated and become visible.

Mirrors org.apache.kafka.common.record.DefaultRecordBatch and DefaultRecord, and the restrictions that Kafka's raft
reader (org.apache.kafka.raft.internals.RecordsIterator) adds for a metadata log: no compression, every timestamp
delta 0, no record headers; in a data batch no key and no empty value. Positions in errors are byte positions in the
buffer.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attrs import frozen

from aclog.metalog.batch_records import SINGLE_RECORD_PREFIXES, Record, plain_value, read_record, record_bytes
from aclog.metalog.checksum import crc32c
from aclog.metalog.errors import DecodeError, EncodeError, LogError
from aclog.metalog.primitives import Buffer, varint

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
    found = crc32c(memoryview(buffer)[position + CRC_START : end])
    if found != header.crc:
        raise DecodeError(
            f"CRC mismatch: stored {header.crc}, computed {found}",
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


def last_batch(batches: bytes) -> int:
    """Return where the last of these whole batches begins, at least one; only lengths are read."""
    position, last = 0, 0
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
    if header.record_count == 1 and end - at < len(SINGLE_RECORD_PREFIXES):
        # Most batches hold one small record. Its size determines every byte before the value, so that one comparison
        # with a precomputed prefix replaces decoding four varints.
        head = SINGLE_RECORD_PREFIXES[end - at]
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
