"""Tagged fields: the section at the end of every structure of a flexible version (KIP-482)."""

from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import read_unsigned_varint

MAX_TAGGED_FIELDS = 1000
"""The most that one structure may have; Kafka 4.3.1 knows no structure with more than a handful."""


def tagged_fields(buffer: bytes, position: int) -> tuple[list[tuple[int, int, int]], int]:
    """Tag, start and end of each tagged field's bytes, and the position after the section.

    Raises:
        DecodeError: cut, or more than MAX_TAGGED_FIELDS.

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
            raise DecodeError(f"a tagged field of {size} bytes, {len(buffer) - start} left", position=start)
        found.append((tag, start, position))
    return found, position
