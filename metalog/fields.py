"""The wire types of record fields, each as a reader and a writer; which record has which fields is in metalog.codec."""

import itertools
import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from attrs import frozen

from metalog.errors import DecodeError, EncodeError
from metalog.primitives import (
    Buffer,
    compact_bytes,
    compact_string,
    read_compact_bytes,
    read_compact_string,
    read_unsigned_varint,
    unsigned_varint,
)
from metalog.records import TaggedFields


@frozen(kw_only=True)
class FieldType:
    """A wire type: `read(buffer, position) -> (value, position after)` raises DecodeError, `write` EncodeError."""

    read: Callable[[Buffer, int], tuple[Any, int]]
    write: Callable[[Any], bytes]


def _integer(code: str) -> FieldType:
    layout = struct.Struct(">" + code)

    def read(buffer: Buffer, position: int) -> tuple[int, int]:
        try:
            return layout.unpack_from(buffer, position)[0], position + layout.size
        except struct.error:
            raise DecodeError(f"cut inside an integer of {layout.size} bytes", position=position) from None

    def write(value: int) -> bytes:
        try:
            return layout.pack(value)
        except struct.error:
            raise EncodeError(f"{value} does not fit an integer of {layout.size} bytes") from None

    return FieldType(read=read, write=write)


def _read_uuid(buffer: Buffer, position: int) -> tuple[UUID, int]:
    data = bytes(buffer[position : position + 16])
    if len(data) < 16:
        raise DecodeError("cut inside a uuid of 16 bytes", position=position)
    return UUID(bytes=data), position + 16


def _write_uuid(value: UUID) -> bytes:
    return value.bytes


def _read_strings(buffer: Buffer, position: int) -> tuple[tuple[str, ...], int]:
    count, at = read_unsigned_varint(buffer, position)
    if count == 0:
        raise DecodeError("a null array where one is required", position=position)
    if count - 1 > len(buffer) - at:
        raise DecodeError(f"{count - 1} strings announced in {len(buffer) - at} bytes", position=position)
    strings = []
    for _ in range(count - 1):
        value, at = read_compact_string(buffer, at)
        strings.append(value)
    return tuple(strings), at


def _write_strings(values: tuple[str, ...]) -> bytes:
    return unsigned_varint(len(values) + 1) + b"".join(map(compact_string, values))


INT8 = _integer("b")
INT16 = _integer("h")
INT32 = _integer("i")
INT64 = _integer("q")
UUID_BYTES = FieldType(read=_read_uuid, write=_write_uuid)
STRING = FieldType(read=read_compact_string, write=compact_string)
BYTES = FieldType(read=read_compact_bytes, write=compact_bytes)
STRINGS = FieldType(read=_read_strings, write=_write_strings)


def read_tagged_fields(buffer: Buffer, position: int) -> tuple[TaggedFields, int]:
    """The tagged fields at the end of a message (KIP-482), known and unknown ones alike, as (tag, bytes) pairs.

    Raises:
        DecodeError: cut, or tags that do not ascend.

    """
    count, at = read_unsigned_varint(buffer, position)
    pairs: list[tuple[int, bytes]] = []
    for _ in range(count):
        start = at
        tag, at = read_unsigned_varint(buffer, start)
        size, at = read_unsigned_varint(buffer, at)
        if pairs and tag <= pairs[-1][0]:
            raise DecodeError(f"tag {tag} after tag {pairs[-1][0]}: expected ascending tags", position=start)
        if size > len(buffer) - at:
            raise DecodeError(f"{size} bytes of tag {tag} announced, {len(buffer) - at} left", position=start)
        pairs.append((tag, bytes(buffer[at : at + size])))
        at += size
    return tuple(pairs), at


def write_tagged_fields(pairs: TaggedFields) -> bytes:
    """The bytes of tagged fields, their count first.

    Raises:
        EncodeError: tags that do not ascend or do not fit.

    """
    tags = [tag for tag, _ in pairs]
    if any(later <= earlier for earlier, later in itertools.pairwise(tags)):
        raise EncodeError(f"tags {tags}: expected ascending ones")
    written = (unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in pairs)
    return unsigned_varint(len(pairs)) + b"".join(written)
