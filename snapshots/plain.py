"""The record that almost every batch of a running cluster holds, an ACL added or removed, read without detours.

Only the plain form is read here: lengths of one or two bytes, no tagged fields. Whatever is not plain, damaged bytes
included, is left to metalog.batches and metalog.codec, which accept it or raise; so the answers are always theirs.
"""

from uuid import UUID

from metalog.batches import HEADER_SIZE, BatchHeader, read_records
from metalog.codec import decode_record
from metalog.primitives import varint
from metalog.records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RecordType,
    RemoveAccessControlEntryRecord,
)

_ADD = bytes((1, RecordType.ACCESS_CONTROL_ENTRY_RECORD, 0))
_REMOVE = bytes((1, RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD, 0))
_REMOVE_SIZE = 20
_NAME = 20
"""Where the resource name's length stands in an ACL's value: after the frame, the uuid and the resource type."""

_STARTS = tuple(b"\x00\x00" + varint(delta) + b"\x01" for delta in range(64))
"""What a record begins with after its length: attributes 0, timestamp delta 0, its offset delta, no key."""


def read_values(buffer: bytes, position: int, header: BatchHeader) -> list[bytes]:
    """The record values of the data batch at `position`, whose header has been read and whose CRC has been checked.

    Raises:
        DecodeError: as metalog.batches.read_records.

    """
    if header.count <= len(_STARTS):
        values = _plain_values(buffer, position + HEADER_SIZE, position + header.size, header.count)
        if values is not None:
            return values
    return [record.value for record in read_records(buffer, position, header)]


def _plain_values(buffer: bytes, at: int, end: int, count: int) -> list[bytes] | None:
    values = []
    for delta in range(count):
        size, start = _short_length(buffer, at, end)
        fixed = _STARTS[delta]
        length, value_start = _short_length(buffer, start + len(fixed), end)
        at, value_end = start + size, value_start + length
        if size < 0 or length < 1 or at > end or value_end + 1 != at or buffer[value_end]:
            return None
        if not buffer.startswith(fixed, start):
            return None
        values.append(buffer[value_start:value_end])
    return values if at == end else None


def _short_length(buffer: bytes, at: int, end: int) -> tuple[int, int]:
    """A zigzag varint of one or two bytes that is not negative, and where it ends; (-1, at) for any other."""
    if at + 1 >= end:
        return -1, at
    low = buffer[at]
    if low & 1:
        return -1, at
    if low < 0x80:
        return low >> 1, at + 1
    high = buffer[at + 1]
    if 0 < high < 0x80:
        return (low & 0x7F | high << 7) >> 1, at + 2
    return -1, at


def decode_value(value: bytes) -> MetadataRecord:
    """What metalog.codec.decode_record gives, quicker for a plain ACL record.

    Raises:
        DecodeError: as decode_record.

    """
    if value.startswith(_ADD):
        record = _plain_acl(value)
        if record is not None:
            return record
    elif value.startswith(_REMOVE) and len(value) == _REMOVE_SIZE and value[-1] == 0:
        return RemoveAccessControlEntryRecord(id=UUID(int=int.from_bytes(value[3:19])))
    return decode_record(value)


def _plain_acl(value: bytes) -> AccessControlEntryRecord | None:
    try:
        pattern = _NAME + value[_NAME]
        principal = pattern + 1 + value[pattern + 1]
        host = principal + value[principal]
        codes = (value[_NAME - 1], value[pattern], value[host], value[host + 1])
        longest = max(value[_NAME], value[pattern + 1], value[principal], *codes)
        shortest = min(value[_NAME], value[pattern + 1], value[principal])
        if longest > 0x7F or shortest < 1 or len(value) != host + 3 or value[host + 2]:
            return None
        return AccessControlEntryRecord(
            id=UUID(int=int.from_bytes(value[3:19])),
            resource_type=codes[0],
            resource_name=value[_NAME + 1 : pattern].decode(),
            pattern_type=codes[1],
            principal=value[pattern + 2 : principal].decode(),
            host=value[principal + 1 : host].decode(),
            operation=codes[2],
            permission_type=codes[3],
        )
    except (IndexError, UnicodeDecodeError):
        return None
