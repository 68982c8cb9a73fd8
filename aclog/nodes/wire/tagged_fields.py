"""Tagged fields, the section at the end of every structure in a flexible version (KIP-482)."""

from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import read_unsigned_varint

MAX_TAGGED_FIELDS = 1000
"""The most tagged fields in one structure; no structure of Kafka 4.3.1 has more than a handful."""


def tagged_fields(buffer: bytes, position: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return tag, start and end of each tagged field, and the position after the section.

    Raises:
        DecodeError: Truncated, or more than MAX_TAGGED_FIELDS.

    """
    count, position = read_unsigned_varint(buffer, position)
    if count > MAX_TAGGED_FIELDS:
        raise DecodeError(f"{count} tagged fields: expected at most {MAX_TAGGED_FIELDS}", position=position)
    found = []
    for _ in range(count):
        tag, position = read_unsigned_varint(buffer, position)
        size, start = read_unsigned_varint(buffer, position)
        position = start + size
        if position > len(buffer):
            raise DecodeError(f"tagged field of {size} bytes, {len(buffer) - start} left", position=start)
        found.append((tag, start, position))
    return found, position
