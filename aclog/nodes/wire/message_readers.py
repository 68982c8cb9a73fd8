"""Readers of kio's message classes that are safe for untrusted input and accept unknown tagged fields.

kio's own reader is fast, but it allocates whatever length an array announces (and aborts the process if it cannot),
accepts null for any array, and rejects unknown tagged fields. So structures with arrays are read field by field here,
with every length checked against the remaining bytes; structures without arrays are left to kio. If kio rejects a
value, the message is read again with the lenient readers of nodes.wire.field_readers. Like kio's, readers return a
value and the number of bytes read.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, TypeAlias

from kio.serial import entity_reader
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional
from kio.serial._parse import get_field_reader
from kio.serial.errors import InvalidUnicode, OutOfBoundValue, SerialError

from aclog.metalog.errors import DecodeError
from aclog.nodes.wire.field_readers import array_length, least_size, value_reader
from aclog.nodes.wire.tagged_fields import tagged_fields

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

MAX_ELEMENTS = 1 << 18
"""The most elements of an array in a request. Kafka's controllers reject more than 10,000 ACLs in one request."""

MAX_SLOW_BYTES = 2 << 20
"""The most bytes of a request that are read field by field, which takes about a second in the worst case.

This applies to nested arrays (a controller's clients name a single topic) and to messages that kio rejects.
"""


def message_reader(entity: Any, *, bounded: bool) -> Reader:
    """Return a reader of a message class; if `bounded`, it enforces MAX_ELEMENTS and MAX_SLOW_BYTES.

    The reader raises DecodeError for anything but a valid message.
    """
    quick = _struct_reader(entity, bounded=bounded, lenient=False)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        """See Reader."""
        try:
            with suppress(KeyError, ValueError, OutOfBoundValue, InvalidUnicode):
                return quick(buffer, position)
            return _struct_reader(entity, bounded=bounded, lenient=True)(buffer, position)
        except (SerialError, ValueError, TypeError, KeyError, OverflowError, IndexError) as error:
            name = entity.__name__
            raise DecodeError(
                f"not a {name} of version {entity.__version__}: {type(error).__name__}", position=position
            ) from None

    return read


@cache
def _struct_reader(entity: Any, *, bounded: bool, lenient: bool) -> Reader:
    if not lenient and not _read_by_field(entity):
        return entity_reader(entity)
    plain: list[tuple[str, Reader]] = []
    tagged: dict[int, tuple[str, Reader]] = {}
    defaults: dict[str, Any] = {}
    for each in fields(entity):
        reader, tag = _field_reader(entity, each, bounded=bounded, lenient=lenient), get_field_tag(each)
        if tag is None:
            plain.append((each.name, reader))
        else:
            tagged[tag] = each.name, reader
            defaults[each.name] = each.default if each.default is not MISSING else get_tagged_field_default(each)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        """See Reader."""
        values, at = defaults.copy(), position
        for name, reader in plain:
            values[name], size = reader(buffer, at)
            at += size
        if entity.__flexible__:
            at = _read_tagged(tagged, values, buffer, at)
        return entity(**values), at - position

    return read


def _read_tagged(known: dict[int, tuple[str, Reader]], values: dict[str, Any], buffer: bytes, position: int) -> int:
    """Read the known tagged fields into `values`; return the position after the section."""
    found, after = tagged_fields(buffer, position)
    for tag, start, end in found:
        if tag in known:
            name, reader = known[tag]
            values[name], taken = reader(buffer, start)
            if start + taken != end:
                raise DecodeError(f"tagged field {tag} has {end - start} bytes: {taken} read", position=start)
    return after


def _field_reader(entity: Any, each: Field[Any], *, bounded: bool, lenient: bool) -> Reader:
    kind = classify_field(each)
    if kind.is_array:
        return _array_reader(entity, each, bounded=bounded, lenient=lenient)
    if isinstance(kind, EntityField):
        inner = _struct_reader(kind.type_, bounded=bounded, lenient=lenient)
        return _nullable(inner) if is_optional(each) else inner
    return value_reader(each.metadata["kafka_type"], entity.__flexible__, is_optional(each), lenient=lenient)


def _nullable(inner: Reader) -> Reader:
    """Return a reader of a nullable structure, which has a marker byte before it: -1 for null (KIP-893)."""

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        """See Reader."""
        if position >= len(buffer):
            raise DecodeError("truncated before a structure", position=position)
        if buffer[position] > 0x7F:
            return None, 1
        value, size = inner(buffer, position + 1)
        return value, size + 1

    return read


def _array_reader(entity: Any, each: Field[Any], *, bounded: bool, lenient: bool) -> Reader:
    kind = classify_field(each)
    flexible, optional = entity.__flexible__, is_optional(each)
    if isinstance(kind, EntityTupleField):
        inner, least = _struct_reader(kind.type_, bounded=bounded, lenient=lenient), least_entity_size(kind.type_)
        whole = not lenient and not _read_by_field(kind.type_)
    else:
        name = each.metadata["kafka_type"]
        inner, least = value_reader(name, flexible, optional=False, lenient=lenient), least_size(name, flexible)
        whole = not lenient
    native = get_field_reader(entity, each, False, get_field_tag(each) is not None) if whole else None

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        """See Reader."""
        length, size = array_length(buffer, position, flexible)
        start = position + size
        if length is None:
            if not optional:
                raise DecodeError(f"null where {each.name} is required", position=position)
            return None, size
        left = len(buffer) - start
        # Checked before anything is allocated: an element takes at least `least` bytes.
        if length * least > left or (bounded and length > MAX_ELEMENTS):
            raise DecodeError(f"{length} {each.name} announced, {left} bytes left", position=position)
        if native:
            return native(buffer, position)
        if bounded and length and left > MAX_SLOW_BYTES:
            raise DecodeError(f"{each.name} within {left} bytes: expected {MAX_SLOW_BYTES} at most", position=position)
        elements, taken = _elements(inner, length, buffer, start)
        return elements, size + taken

    return read


def _elements(inner: Reader, length: int, buffer: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    found, at = [], position
    for _ in range(length):
        element, size = inner(buffer, at)
        found.append(element)
        at += size
    return tuple(found), at - position


def _inner(entity: Any) -> Iterator[tuple[Field[Any], Any]]:
    return ((each, classify_field(each)) for each in fields(entity))


@cache
def _read_by_field(entity: Any) -> bool:
    """Whether the class has arrays, or timestamps, which kio converts through floats and may get wrong by 1 us."""
    return any(
        kind.is_array
        or each.metadata.get("kafka_type") == "datetime_i64"
        or (isinstance(kind, EntityField) and _read_by_field(kind.type_))
        for each, kind in _inner(entity)
    )


@cache
def least_entity_size(entity: Any) -> int:
    """Return the minimum encoded size of a structure."""
    flexible, size = entity.__flexible__, int(entity.__flexible__)
    for each, kind in _inner(entity):
        if get_field_tag(each) is not None:
            continue
        if kind.is_array:
            size += 1 if flexible else 4
        elif isinstance(kind, EntityField):
            size += 1 if is_optional(each) else least_entity_size(kind.type_)
        else:
            size += least_size(each.metadata["kafka_type"], flexible)
    return size
