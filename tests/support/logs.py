"""Generated logs: batches of generated records, whole or damaged."""

import struct

import crc32c
from hypothesis import strategies as st

from metalog.batches import HEADER_SIZE, build_batch
from metalog.codec import encode_record
from metalog.control import control_batch
from tests.support.records import ACL_ADDS, ACL_REMOVES, CONTROL_RECORDS, RECORDS

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
