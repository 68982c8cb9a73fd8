"""What kafka-storage's checkpoints hold, and how they look where ids and times are all the same."""

import re
from uuid import UUID

from aclog.metalog.batches import decode_batch, iter_batches
from aclog.metalog.control_records import ControlRecord, SnapshotHeader, decode_control_batch

_DATE = re.compile(r"#[A-Z][a-z]{2} [A-Z][a-z]{2} [0-9]{2} [0-9:]{8} UTC [0-9]{4}")
_ID = re.compile(r"directory\.id=[A-Za-z0-9_-]{22}")


def control_records(data: bytes) -> list[ControlRecord]:
    """All control records."""
    records: list[ControlRecord] = []
    for position, header in iter_batches(data):
        if header.is_control:
            records.extend(decode_control_batch(data, position, header))
    return records


def values_of(data: bytes) -> list[bytes]:
    """The values of all data records; every CRC is checked."""
    batches = [decode_batch(data, position) for position, _ in iter_batches(data)]
    return [record.value for batch in batches if not batch.header.is_control for record in batch.records]


def without_times(data: bytes, directory_id: UUID) -> bytes:
    """The bytes with CRCs, timestamps and the directory's id zeroed, after the CRCs have been checked."""
    values_of(data)
    zeroed = bytearray(data)
    for position, _ in iter_batches(data):
        zeroed[position + 17 : position + 21] = bytes(4)
        zeroed[position + 27 : position + 43] = bytes(16)
    result = bytes(zeroed).replace(directory_id.bytes, bytes(16))
    for record in control_records(data):
        if isinstance(record, SnapshotHeader) and record.last_contained_log_timestamp:
            result = result.replace(record.last_contained_log_timestamp.to_bytes(8), bytes(8))
    return result


def without_ids(meta_properties: str) -> str:
    """meta.properties with one date and one directory id."""
    text, dates = _DATE.subn("#DATE", meta_properties)
    text, ids = _ID.subn("directory.id=ID", text)
    assert (dates, ids) == (1, 1), meta_properties
    return text
