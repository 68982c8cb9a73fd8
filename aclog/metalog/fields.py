"""Wire types of message fields, each a reader and a writer, and messages composed of them (KIP-482, flexible versions).

The schemas themselves are in aclog.metalog.codec (metadata records) and aclog.metalog.control_records.
"""

import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from uuid import UUID

from attrs import frozen

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.primitives import (
    Buffer,
    compact_bytes,
    compact_string,
    read_compact_bytes,
    read_compact_string,
    read_unsigned_varint,
    unsigned_varint,
)
from aclog.metalog.records import TaggedFields


@frozen(kw_only=True)
class FieldType:
    """A wire type: `read(buffer, position) -> (value, position after)` raises DecodeError, `write` EncodeError."""

    read: Callable[[Buffer, int], tuple[Any, int]]
    write: Callable[[Any], bytes]


@frozen(kw_only=True)
class TaggedField:
    """A known tagged field: absent if it has its default value."""

    tag: int
    name: str
    kind: FieldType
    default: Any = None

    def read(self, data: bytes, position: int) -> Any:
        """Return the value of the field with these bytes, which begin at `position` of the message.

        Raises:
            DecodeError: not the form that `StructType.write` produces.

        """
        try:
            value, end = self.kind.read(data, 0)
        except DecodeError as e:
            raise DecodeError(f"in the field of tag {self.tag}: {e.what}", position=position) from None
        if end != len(data):
            raise DecodeError(f"in the field of tag {self.tag}: {len(data) - end} trailing bytes", position=position)
        if value == self.default:
            raise DecodeError(f"in the field of tag {self.tag}: the default, which is left out", position=position)
        return value


@frozen(kw_only=True)
class StructType:
    """A message schema: `fields` as (attribute, wire type) in wire order, followed by tagged fields.

    `make` builds the value from keyword arguments; unknown tagged fields are passed as `tagged_fields`. `tagged` are
    the known ones, in ascending order.
    """

    make: Callable[..., Any]
    fields: tuple[tuple[str, FieldType], ...] = ()
    tagged: tuple[TaggedField, ...] = ()

    def read(self, buffer: Buffer, position: int) -> tuple[Any, int]:
        """Return (value, position after it).

        Raises:
            DecodeError: truncated, or not the form that `write` produces.

        """
        found: dict[str, Any] = {}
        at = position
        for name, kind in self.fields:
            found[name], at = kind.read(buffer, at)
        tags, end = read_tagged_fields(buffer, at)
        if tags and self.tagged:
            known = {each.tag: each for each in self.tagged}
            found |= {known[tag].name: known[tag].read(data, at) for tag, data in tags if tag in known}
            tags = tuple(pair for pair in tags if pair[0] not in known)
        return self.make(**found, tagged_fields=tags), end

    def write(self, value: Any) -> bytes:
        """Return the bytes of a value.

        Raises:
            EncodeError: a field that the format cannot represent.

        """
        parts = [kind.write(getattr(value, name)) for name, kind in self.fields]
        return b"".join((*parts, write_tagged_fields(self._tags(value))))

    def _tags(self, value: Any) -> TaggedFields:
        unknown: TaggedFields = value.tagged_fields
        if not self.tagged:
            return unknown
        known = {each.tag: each.name for each in self.tagged}
        for tag, _ in unknown:
            if tag in known:
                raise EncodeError(f"tag {tag} is {known[tag]}, not an unknown tagged field")
        set_ = ((each, getattr(value, each.name)) for each in self.tagged)
        present = ((each.tag, each.kind.write(given)) for each, given in set_ if given != each.default)
        return tuple(sorted((*present, *unknown), key=_tag_of))

    def shown(self, value: Any) -> list[tuple[str, Any]]:
        """Return the attributes that the bytes of a value contain: all but tagged fields at their default."""
        plain = [(name, getattr(value, name)) for name, _ in self.fields]
        tagged = ((each, getattr(value, each.name)) for each in self.tagged)
        return [*plain, *((each.name, given) for each, given in tagged if given != each.default)]


def _tag_of(pair: tuple[int, bytes]) -> int:
    return pair[0]


def array_of(element: FieldType | StructType) -> FieldType:
    """Return the type of a non-nullable compact array of elements of at least one byte each; values are tuples."""

    def read(buffer: Buffer, position: int) -> tuple[tuple[Any, ...], int]:
        """Read the elements; a count that exceeds the remaining bytes is rejected before any is read."""
        count, at = read_unsigned_varint(buffer, position)
        if count == 0:
            raise DecodeError("a null array where one is required", position=position)
        # A damaged count must not allocate gigabytes: each element takes at least one byte.
        if count - 1 > len(buffer) - at:
            raise DecodeError(
                f"array of {count - 1} elements, but only {len(buffer) - at} bytes remain", position=position
            )
        values = []
        for _ in range(count - 1):
            value, at = element.read(buffer, at)
            values.append(value)
        return tuple(values), at

    def write(values: tuple[Any, ...]) -> bytes:
        return unsigned_varint(len(values) + 1) + b"".join(map(element.write, values))

    return FieldType(read=read, write=write)


def field_of(message: StructType) -> FieldType:
    """Return a message schema as the type of a field of another message."""
    return FieldType(read=message.read, write=message.write)


def _integer(code: str) -> FieldType:
    layout = struct.Struct(">" + code)

    def read(buffer: Buffer, position: int) -> tuple[int, int]:
        """Read a big-endian integer."""
        try:
            return layout.unpack_from(buffer, position)[0], position + layout.size
        except struct.error:
            raise DecodeError(f"truncated integer of {layout.size} bytes", position=position) from None

    def write(value: int) -> bytes:
        try:
            return layout.pack(value)
        except struct.error:
            raise EncodeError(f"{value} does not fit an integer of {layout.size} bytes") from None

    return FieldType(read=read, write=write)


def _read_uuid(buffer: Buffer, position: int) -> tuple[UUID, int]:
    data = bytes(buffer[position : position + 16])
    if len(data) < 16:
        raise DecodeError("truncated uuid of 16 bytes", position=position)
    return UUID(bytes=data), position + 16


def _write_uuid(value: UUID) -> bytes:
    return value.bytes


def _read_bool(buffer: Buffer, position: int) -> tuple[bool, int]:
    number, at = INT8.read(buffer, position)
    if number not in {0, 1}:
        raise DecodeError(f"boolean {number}: expected 0 or 1", position=position)
    return bool(number), at


def _write_bool(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _read_nullable_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    length, at = read_unsigned_varint(buffer, position)
    return (None, at) if length == 0 else read_compact_string(buffer, position)


def _write_nullable_string(value: str | None) -> bytes:
    return b"\0" if value is None else compact_string(value)


INT8 = _integer("b")
INT16 = _integer("h")
UINT16 = _integer("H")
INT32 = _integer("i")
INT64 = _integer("q")
UUID_BYTES = FieldType(read=_read_uuid, write=_write_uuid)
BOOL = FieldType(read=_read_bool, write=_write_bool)
STRING = FieldType(read=read_compact_string, write=compact_string)
NULLABLE_STRING = FieldType(read=_read_nullable_string, write=_write_nullable_string)
BYTES = FieldType(read=read_compact_bytes, write=compact_bytes)


def read_tagged_fields(buffer: Buffer, position: int) -> tuple[TaggedFields, int]:
    """Read the tagged fields at the end of a message, known and unknown alike, as (tag, bytes) pairs.

    Raises:
        DecodeError: truncated, or tags that do not ascend.

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
            raise DecodeError(f"tag {tag} has {size} bytes, but only {len(buffer) - at} remain", position=start)
        pairs.append((tag, bytes(buffer[at : at + size])))
        at += size
    return tuple(pairs), at


def write_tagged_fields(pairs: TaggedFields) -> bytes:
    """Return the bytes of tagged fields, preceded by their count.

    Raises:
        EncodeError: tags that do not ascend or do not fit.

    """
    tags = [tag for tag, _ in pairs]
    if any(later <= earlier for earlier, later in pairwise(tags)):
        raise EncodeError(f"tags {tags}: expected ascending tags")
    written = (unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in pairs)
    return unsigned_varint(len(pairs)) + b"".join(written)
