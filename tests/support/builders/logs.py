"""Generated logs: batches of generated records, whole or damaged."""

import struct

import crc32c
from hypothesis import strategies as st

from aclog.metalog.batches import HEADER_SIZE, build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import control_batch
from tests.support.builders.records import ACL_ADDS, ACL_REMOVES, CONTROL_RECORDS, RECORDS

HEADERS = {"leader_epoch": 1, "timestamp": 1795227830153}


def recrc(batch: bytes) -> bytes:
    """The same bytes with a CRC that fits them."""
    return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[21:])) + batch[21:]


def fitted(batch: bytes) -> bytes:
    """The bytes with a batch length and a CRC that fit them, so that readers look at what is inside."""
    if len(batch) < HEADER_SIZE:
        return batch
    return recrc(batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:])


def batches_of(contents) -> list[bytes]:
    """Batches one after the other, from offset 0: of a list of records each, or of a control record."""
    parts, offset = [], 0
    for content in contents:
        records = content if isinstance(content, list) else [content]
        if isinstance(content, list):
            parts.append(build_batch([encode_record(record) for record in records], base_offset=offset, **HEADERS))
        else:
            parts.append(control_batch(content, base_offset=offset, **HEADERS))
        offset += len(records)
    return parts


LOGS = st.lists(
    st.lists(ACL_ADDS | ACL_REMOVES | RECORDS, min_size=1, max_size=6) | CONTROL_RECORDS, min_size=1, max_size=6
).map(batches_of)
"""Logs as lists of batches."""

BAD_HEADERS = [
    (16, b"\x01", "magic 1", 16),
    (8, b"\x00\x00\x00\x30", "batch length 48", 8),
    (8, b"\xff\xff\xff\xff", "batch length -1", 8),
    (21, b"\x00\x01", "compressed", 21),
    (21, b"\x00\x04", "compressed", 21),
    (21, b"\x00\x10", "attributes 16", 21),
    (21, b"\x00\x08", "attributes 8", 21),
    (57, b"\x00\x00\x00\x00", "0 records", 23),
    (23, b"\xff" * 4 + bytes(34), "0 records with last offset delta -1", 23),
    (57, b"\x7f\xff\xff\xff", "2147483647 records", 23),
    (57, b"\xff\xff\xff\xff", "-1 records", 23),
    (23, b"\x00\x00\x00\x02", "last offset delta 2", 23),
    (0, b"\xff", "base offset -", 0),
    (0, b"\x7f" + b"\xff" * 7, "base offset 9223372036854775807", 0),
    (12, b"\xff", "leader epoch -", 0),
]
"""(Where, what is put there, the error, its position) in the header of a batch of two records at offset 7."""

BAD_RECORDS = [
    ("0e 00 02 00 01 02 aa 00", "timestamp delta 1: expected 0", 63),
    ("0e 00 00 02 01 02 aa 00", "offset delta 1: expected 0", 64),
    ("0e 00 00 01 01 02 aa 00", "offset delta -1: expected 0", 64),
    ("10 00 00 00 02 bb 02 aa 00", "data record with a key", 65),
    ("0e 00 00 00 00 02 aa 00", "data record with a key", 65),
    ("0c 00 00 00 01 00 00", "without a value", 66),
    ("0c 00 00 00 01 01 00", "without a value", 66),
    ("14 00 00 00 01 02 aa 02 02 61 01", "1 record headers: expected none", 68),
    ("10 00 00 00 01 02 aa 00 00", "1 trailing bytes in a record", 69),
    ("0c 00 00 00 01 02 aa 00", "truncated varint", 68),
    ("10 00 00 00 01 02 aa 00", "a record of 8 bytes, but only 7 remain", 61),
    ("0d 00 00 00 01 02 aa 00", "a record of -7 bytes", 61),
    ("fe ff ff ff 0f 00 00 00", "a record of 2147483647 bytes", 61),
    ("0e 00 00 00 01 fe ff ff", "truncated varint", 66),
    ("12 00 00 00 01 fe ff ff ff 0f", "a field of 2147483647 bytes, but only 0 remain", 66),
    ("0e 00 00 00 01 05 aa 00", "a field of -3 bytes", 66),
    ("0e 00 00 00 01 03 aa 00", "a field of -2 bytes", 66),
    ("10 00 00 00 01 82 00 aa 00", "shortest form", 66),
    ("10 00 00 80 00 01 02 aa 00", "shortest form", 64),
    ("8e 00 00 00 00 01 02 aa 00", "shortest form", 61),
    ("10 00 80 00 00 01 02 aa 00", "shortest form", 63),
    ("00", "empty record", 61),
    ("0e 00 00 00 01 02 aa 00 00", "1 trailing bytes after 1 records", 69),
]
"""(A record, alone in a batch, the error, its position)."""


def one_record(record: bytes, *, attributes: int = 0) -> bytes:
    """A batch of one record, given whole, its CRC right."""
    batch = build_batch([b"x"], base_offset=0, leader_epoch=1, timestamp=9)[:HEADER_SIZE] + record
    batch = batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:21] + struct.pack(">h", attributes) + batch[23:]
    return recrc(batch)
