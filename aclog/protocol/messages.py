"""Requests and responses as kio's messages, those of newer Kafkas, and their building by field names."""

import io
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

from kio.index import KioIndexError, load_payload_module, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import PayloadEntityType, api_key_map, schema_name_map
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.serial import entity_reader, entity_writer
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional
from kio.serial._parse import get_field_reader, get_reader
from kio.serial.errors import InvalidUnicode, OutOfBoundValue, SerialError
from kio.serial.readers import read_int16, read_int64
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.primitives import read_unsigned_varint, unsigned_varint
from aclog.protocol import api_keys
from aclog.protocol.api_keys import is_flexible
from aclog.protocol.error_codes import KnownErrorCode, error_code
from aclog.protocol.headers import tagged_fields

# Messages of Kafka 4.4 that kio does not have yet, in the form of its classes.


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    """Version 5 (KIP-1242): it names the cluster and the node that the client means to reach."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(5)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(api_keys.API_VERSIONS)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    client_software_name: str = field(metadata={"kafka_type": "string"})
    client_software_version: str = field(metadata={"kafka_type": "string"})
    cluster_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    node_id: i32 = field(metadata={"kafka_type": "int32"}, default=i32(-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterControllerRequest:
    """Version 0 (KIP-1312)."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(api_keys.UNREGISTER_CONTROLLER)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    controller_id: i32 = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterControllerResponse:
    """Version 0. The error code is a number: kio's enum ends before 136."""

    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(api_keys.UNREGISTER_CONTROLLER)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    error_code: i16 = field(metadata={"kafka_type": "int16"})
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)


NEWER_MESSAGES: Mapping[tuple[int, int, str], type[Any]] = MappingProxyType(
    {
        (api_keys.API_VERSIONS, 5, "request"): ApiVersionsRequest,
        (api_keys.UNREGISTER_CONTROLLER, 0, "request"): UnregisterControllerRequest,
        (api_keys.UNREGISTER_CONTROLLER, 0, "response"): UnregisterControllerResponse,
    }
)
"""By API key, version and kind."""

SAME_AS: Mapping[tuple[int, int, str], int] = MappingProxyType({(api_keys.API_VERSIONS, 5, "response"): 4})
"""The version that kio has and that a newer one does not differ from."""


# Field encodings for responses that are written without kio, in flexible and in older versions.


NO_THROTTLE = bytes(4)
"""throttle_time_ms of 0: these nodes have no quotas."""
NO_ERROR = bytes(2)
"""error_code 0."""

# A DescribeAcls response may hold tens of thousands of short strings: a table look-up beats encoding each length.
_BYTES = tuple(bytes((code,)) for code in range(256))


class FieldWriter:
    """Encodes strings, bytes and arrays: compact in flexible versions (KIP-482), with fixed-size lengths before."""

    def __init__(self, *, flexible: bool) -> None:
        self.flexible = flexible
        self.tags = b"\0" if flexible else b""
        """The empty tagged-field section at the end of each structure."""
        self.null = b"\0" if flexible else b"\xff\xff"
        """A null string."""

    def array(self, length: int) -> bytes:
        """Return the length prefix of an array."""
        return _varint(length + 1) if self.flexible else length.to_bytes(4, "big")

    def string(self, text: str) -> bytes:
        """Return a string with its length. No string in the log or a request exceeds the length limit."""
        data = text.encode(errors="replace")
        return (_varint(len(data) + 1) if self.flexible else len(data).to_bytes(2, "big")) + data

    def binary(self, data: bytes) -> bytes:
        """Return a byte array with its length."""
        return (_varint(len(data) + 1) if self.flexible else len(data).to_bytes(4, "big")) + data

    def error(self, code: int, message: str | None) -> bytes:
        """Return an error code and message."""
        return code.to_bytes(2, "big", signed=True) + (self.null if message is None else self.string(message))

    def principal(self, text: str) -> bytes:
        """Return the type and the name of a principal `Type:name`."""
        kind, _, name = text.partition(":")
        return self.string(kind) + self.string(name)


@cache
def field_writer(api_key: int, version: int) -> FieldWriter:
    """Return the field writer for a version of an API."""
    return FieldWriter(flexible=is_flexible(api_key, version))


def int8(code: int) -> bytes:
    """Return a signed or unsigned byte."""
    return _BYTES[code & 0xFF]


def _varint(value: int) -> bytes:
    return _BYTES[value] if value < 0x80 else unsigned_varint(value)


# Readers of single fields by schema type: kio's, and lenient ones that accept what Java accepts.
#
# Like kio's, all return a value and the number of bytes read.


Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

_SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "uint32": 4,
    "timedelta_i32": 4, "int64": 8, "uint64": 8, "float64": 8, "timedelta_i64": 8, "datetime_i64": 8, "uuid": 16,
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
_FIRST_TIME = _EPOCH - timedelta(milliseconds=1)
_LONGEST = timedelta(days=999_999_998)


def least_size(kafka_type: str, flexible: bool) -> int:
    """Return the minimum encoded size of a field; strings, bytes and records may be empty or null."""
    if kafka_type in _SIZES:
        return _SIZES[kafka_type]
    if flexible:
        return 1
    return 2 if kafka_type == "string" else 4


def array_length(buffer: bytes, position: int, flexible: bool) -> tuple[int | None, int]:
    """Read the length of an array (None for null) and the size of the length prefix.

    Raises:
        DecodeError: Truncated or negative.

    """
    if flexible:
        announced, after = read_unsigned_varint(buffer, position)
        return (None if announced == 0 else announced - 1), after - position
    after = position + 4
    if after > len(buffer):
        raise DecodeError("truncated array length", position=position)
    length = int.from_bytes(buffer[position:after], "big", signed=True)
    if length < -1:
        raise DecodeError(f"array length {length}: expected -1 or more", position=position)
    return (None if length == -1 else length), 4


def value_reader(kafka_type: str, flexible: bool, optional: bool, *, lenient: bool) -> Reader:
    """Return kio's reader of a type or, if `lenient`, one that accepts every value that Java accepts."""
    native: Reader = get_reader(kafka_type, flexible, optional)
    if kafka_type == "datetime_i64":
        return _time
    if not lenient:
        return native
    if kafka_type == "string":
        return _string_reader(flexible, optional)
    return _LENIENT.get(kafka_type, native)


def _string_reader(flexible: bool, optional: bool) -> Reader:
    """Return a reader of strings that replaces invalid UTF-8 with U+FFFD, as Java does."""
    raw: Reader = get_reader("bytes", True, optional)

    def read_compact(buffer: bytes, position: int) -> tuple[str | None, int]:
        """See Reader."""
        data, size = raw(buffer, position)
        return (None if data is None else data.decode(errors="replace")), size

    def read_legacy(buffer: bytes, position: int) -> tuple[str | None, int]:
        """See Reader."""
        length, size = read_int16(buffer, position)
        start = position + size
        if length == -1 and optional:
            return None, size
        if not 0 <= length <= len(buffer) - start:
            raise DecodeError(f"string of {length} bytes, {len(buffer) - start} left", position=position)
        return buffer[start : start + length].decode(errors="replace"), size + length

    return read_compact if flexible else read_legacy


def _bool(buffer: bytes, position: int) -> tuple[bool, int]:
    if position >= len(buffer):
        raise DecodeError("truncated before a bool", position=position)
    return buffer[position] != 0, 1


def _error_code(buffer: bytes, position: int) -> tuple[KnownErrorCode, int]:
    code, size = read_int16(buffer, position)
    return error_code(code), size


def _duration(buffer: bytes, position: int) -> tuple[timedelta, int]:
    """Read milliseconds, clamped to timedelta's range."""
    millis, size = read_int64(buffer, position)
    try:
        return max(-_LONGEST, min(_LONGEST, timedelta(milliseconds=millis))), size
    except OverflowError:
        return (_LONGEST if millis > 0 else -_LONGEST), size


def _time(buffer: bytes, position: int) -> tuple[datetime, int]:
    """Read ms since 1970, clamped to datetime's range; negative values (none) become 1 ms before 1970."""
    millis, size = read_int64(buffer, position)
    if millis < 0:
        return _FIRST_TIME, size
    try:
        return min(_LAST_TIME, _EPOCH + timedelta(milliseconds=millis)), size
    except OverflowError:
        return _LAST_TIME, size


_LENIENT: dict[str, Reader] = {
    "bool": _bool, "error_code": _error_code, "timedelta_i64": _duration,
}  # fmt: skip


# Readers of kio's message classes that are safe for untrusted input and accept unknown tagged fields.
#
# kio's own reader is fast, but it allocates the length that an array announces (and aborts the process if it cannot),
# accepts null for any array, and rejects unknown tagged fields. So structures with arrays are read field by field
# here, with every length checked against the remaining bytes; structures without arrays are left to kio. If kio
# rejects a value, the message is read again with the lenient readers of protocol.messages. Like kio's, readers
# return a value and the number of bytes read.


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


def _read_tagged(readers: dict[int, tuple[str, Reader]], values: dict[str, Any], buffer: bytes, position: int) -> int:
    """Read the known tagged fields into `values`; return the position after the section."""
    sections, after = tagged_fields(buffer, position)
    for tag, start, end in sections:
        if tag in readers:
            name, reader = readers[tag]
            values[name], size = reader(buffer, start)
            if start + size != end:
                raise DecodeError(f"tagged field {tag} has {end - start} bytes: {size} read", position=start)
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
        remaining = len(buffer) - start
        # Checked before anything is allocated: an element takes at least `least` bytes.
        if length * least > remaining or (bounded and length > MAX_ELEMENTS):
            raise DecodeError(f"{length} {each.name} announced, {remaining} bytes left", position=position)
        if native:
            return native(buffer, position)
        if bounded and length and remaining > MAX_SLOW_BYTES:
            raise DecodeError(
                f"{each.name} within {remaining} bytes: expected {MAX_SLOW_BYTES} at most", position=position
            )
        elements, content_size = _elements(inner, length, buffer, start)
        return elements, size + content_size

    return read


def _elements(inner: Reader, length: int, buffer: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    elements, at = [], position
    for _ in range(length):
        element, size = inner(buffer, at)
        elements.append(element)
        at += size
    return tuple(elements), at - position


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


# Encoding and decoding of request and response bodies as kio's message classes.


Kind: TypeAlias = Literal["request", "response"]

ENTITY_TYPES: dict[Kind, PayloadEntityType] = {"request": EntityType.request, "response": EntityType.response}


MAX_STRING = 0x7FFF
"""The longest string in a message, in bytes of UTF-8."""


@cache
def message_type(api_key: int, version: int, kind: Kind, name: str | None = None) -> type[Any]:
    """Return kio's class of a message or, with a name such as "AclCreation", of a structure inside it.

    Raises:
        DecodeError: there is no such API, version or structure.

    """
    version = SAME_AS.get((api_key, version, kind), version)
    if name is None and (own := NEWER_MESSAGES.get((api_key, version, kind))) is not None:
        return own
    try:
        if name is not None:
            return getattr(load_payload_module(api_key, version, ENTITY_TYPES[kind]), name)  # type: ignore[no-any-return]
        return load_request_schema(api_key, version) if kind == "request" else load_response_schema(api_key, version)
    except (KioIndexError, AttributeError):
        raise DecodeError(f"no {kind} {name or ''} of API key {api_key} version {version}") from None


def decode_request(api_key: int, version: int, buffer: bytes, position: int) -> Any:
    """Decode the body of a request as kio's message of exactly that version; trailing bytes are ignored, as in Java.

    Unknown tagged fields are skipped at any depth. Values that Java accepts and kio rejects are read as in Java:
    invalid UTF-8 becomes U+FFFD. Times outside Python's range are clamped.

    Raises:
        DecodeError: Truncated, null in a required field, a length beyond the remaining bytes or the limits of
            aclog.protocol.messages, or an unknown API or version.

    """
    message = _reader(api_key, version, "request")(buffer, position)[0]
    # Compact strings may be longer than 32,767 bytes on the wire, though only in a body larger than that.
    if len(buffer) - position > MAX_STRING:
        _check_strings(message)
    return message


def _check_strings(value: Any) -> None:
    """Reject strings that Kafka rejects: a record with one could not be encoded, which would stop the controller."""
    if isinstance(value, str):
        if len(value) > MAX_STRING or len(value.encode(errors="surrogatepass")) > MAX_STRING:
            raise DecodeError(f"string of {len(value)} characters: expected at most {MAX_STRING} bytes")
    elif isinstance(value, tuple):
        for each in value:
            _check_strings(each)
    elif is_dataclass(value):
        for each in fields(value):
            _check_strings(getattr(value, each.name))


def decode_response(api_key: int, version: int, buffer: bytes, position: int, *, whole: bool = False) -> Any:
    """Decode the body of a response; like `decode_request` without limits. An unknown error code becomes -1.

    Raises:
        DecodeError: An invalid body or, with `whole`, bytes after it.

    """
    message, size = _reader(api_key, version, "response")(buffer, position)
    if whole and position + size != len(buffer):
        remaining = len(buffer) - position - size
        raise DecodeError(f"{remaining} bytes after the end of the message", position=position + size)
    return message


@cache
def _reader(api_key: int, version: int, kind: Kind) -> Callable[[bytes, int], tuple[Any, int]]:
    return message_reader(message_type(api_key, version, kind), bounded=kind == "request")


def encode_response(message: Any) -> bytes:
    """Encode the body of a response, without a header.

    Raises:
        EncodeError: A value does not fit its field.

    """
    return _encode(message)


def encode_request(message: Any) -> bytes:
    """Encode the body of a request, without a header; raises as `encode_response`."""
    return _encode(message)


def _encode(message: Any) -> bytes:
    out = io.BytesIO()
    try:
        entity_writer(type(message))(out, message)
    except (SerialError, TypeError, ValueError, AttributeError, struct.error, OverflowError) as error:
        kind = type(message).__name__
        raise EncodeError(f"{kind}: a value does not fit its field ({type(error).__name__})") from None
    return out.getvalue()


def warm_up(apis: Iterable[tuple[int, int]]) -> None:
    """Import and prepare the messages of these (API key, version) pairs, which costs milliseconds on first use.

    Versions that kio does not have are skipped.
    """
    for api_key, version in apis:
        try:
            for kind in ("request", "response"):
                _reader(api_key, version, kind)
                entity_writer(message_type(api_key, version, kind))
        except DecodeError:
            continue


# Building messages by field names, for code that supports several versions of an API.


_EMPTY: dict[str, Any] = {
    "string": "", "bytes": b"", "bool": False, "float64": 0.0, "uuid": None,
    "error_code": ErrorCode.none, "timedelta_i32": timedelta(0), "timedelta_i64": timedelta(0),
    "datetime_i64": datetime(1970, 1, 1, tzinfo=UTC),
}  # fmt: skip


def build(api_key: int, version: int, kind: Kind, name: str | None = None, /, **values: Any) -> Any:
    """Build a message of an API's version, or the structure `name` inside it, from field values.

    Missing fields get the schema's default, or zero or empty (not null, even if nullable), as in Kafka's message
    classes. Fields that only other versions have are ignored. An error code may be an int; an undefined one becomes -1.

    Raises:
        DecodeError: kio does not have the API, version or structure.
        TypeError: No version has a field of this name.

    """
    entity: Any = message_type(api_key, version, kind, name)
    arguments = {}
    for field_name, (default, is_error) in _blank(entity).items():
        value = values.get(field_name, default)
        arguments[field_name] = error_code(value) if is_error else value
    for field_name in values.keys() - arguments.keys():
        if field_name not in _names(api_key, kind, entity.__name__):
            raise TypeError(f"{entity.__name__} has no field {field_name} in any version")
    return entity(**arguments)


def build_response(api_key: int, version: int, /, **values: Any) -> bytes:
    """Build and encode a response body.

    Raises:
        DecodeError, TypeError: As `build`.
        EncodeError: A value does not fit its field.

    """
    return encode_response(build(api_key, version, "response", **values))


@cache
def _blank(entity: Any) -> dict[str, tuple[Any, bool]]:
    """Return each field's default, and whether it is an error code."""
    return {each.name: (_default(each), each.metadata.get("kafka_type") == "error_code") for each in fields(entity)}


def _default(each: Field[Any]) -> Any:
    if each.default is not MISSING:
        return each.default
    kind = classify_field(each)
    if kind.is_array:
        return ()
    if isinstance(kind, EntityField):
        return kind.type_(**{inner: default for inner, (default, _) in _blank(kind.type_).items()})
    kafka_type = each.metadata["kafka_type"]
    if kafka_type == "records":
        return None if is_optional(each) else b""
    return _EMPTY.get(kafka_type, 0)


@cache
def _names(api_key: int, kind: Kind, entity_name: str) -> frozenset[str]:
    """Return the names of the fields that a class has in any version."""
    names: set[str] = set()
    for version in schema_name_map[api_key_map[api_key]]:
        try:
            entity = getattr(load_payload_module(api_key, version, ENTITY_TYPES[kind]), entity_name, None)
        except KioIndexError:
            continue
        names.update(each.name for each in (fields(entity) if entity else ()))
    return frozenset(names)
