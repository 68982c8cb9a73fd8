"""The codec of metadata records.

Frame version, apiKey and version, then the fields in Kafka's flexible encoding (KIP-482).
"""

import struct
from collections.abc import Callable
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Protocol
from uuid import UUID

from aclog.metalog import records
from aclog.metalog.batches import BatchHeader, read_values
from aclog.metalog.errors import DecodeError, EncodeError, NewerKafkaError
from aclog.metalog.primitives import (
    Buffer,
    compact_bytes,
    compact_string,
    read_compact_bytes,
    read_compact_string,
    read_unsigned_varint,
    unsigned_varint,
    uuid_of,
)
from aclog.metalog.values import frozen

# Wire types of message fields, each a reader and a writer, and messages composed of them (KIP-482, flexible
# versions).
#
# The schemas themselves are in aclog.metalog.codec (metadata records) and aclog.metalog.control_records.


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
        values: dict[str, Any] = {}
        at = position
        for name, kind in self.fields:
            values[name], at = kind.read(buffer, at)
        tags, end = read_tagged_fields(buffer, at)
        if tags and self.tagged:
            tagged = {each.tag: each for each in self.tagged}
            values |= {tagged[tag].name: tagged[tag].read(data, at) for tag, data in tags if tag in tagged}
            tags = tuple(pair for pair in tags if pair[0] not in tagged)
        return self.make(**values, tagged_fields=tags), end

    def write(self, value: Any) -> bytes:
        """Return the bytes of a value.

        Raises:
            EncodeError: a field that the format cannot represent.

        """
        parts = [kind.write(getattr(value, name)) for name, kind in self.fields]
        return b"".join((*parts, write_tagged_fields(self._tags(value))))

    def _tags(self, value: Any) -> records.TaggedFields:
        unknown: records.TaggedFields = value.tagged_fields
        if not self.tagged:
            return unknown
        names = {each.tag: each.name for each in self.tagged}
        for tag, _ in unknown:
            if tag in names:
                raise EncodeError(f"tag {tag} is {names[tag]}, not an unknown tagged field")
        set_ = ((each, getattr(value, each.name)) for each in self.tagged)
        present = (
            (each.tag, each.kind.write(field_value)) for each, field_value in set_ if field_value != each.default
        )
        return tuple(sorted((*present, *unknown), key=_tag_of))

    def present_fields(self, value: Any) -> list[tuple[str, Any]]:
        """Return the attributes that the bytes of a value contain: all but tagged fields at their default."""
        plain = [(name, getattr(value, name)) for name, _ in self.fields]
        tagged = ((each, getattr(value, each.name)) for each in self.tagged)
        return [*plain, *((each.name, field_value) for each, field_value in tagged if field_value != each.default)]


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


def read_tagged_fields(buffer: Buffer, position: int) -> tuple[records.TaggedFields, int]:
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


def write_tagged_fields(pairs: records.TaggedFields) -> bytes:
    """Return the bytes of tagged fields, preceded by their count.

    Raises:
        EncodeError: tags that do not ascend or do not fit.

    """
    tags = [tag for tag, _ in pairs]
    if any(later <= earlier for earlier, later in pairwise(tags)):
        raise EncodeError(f"tags {tags}: expected ascending tags")
    written = (unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in pairs)
    return unsigned_varint(len(pairs)) + b"".join(written)


# The schemas of the metadata records that aclog interprets, by type and version (Kafka's common/metadata/*.json).


_STRINGS, _UUIDS = array_of(STRING), array_of(UUID_BYTES)
_ENDPOINTS = array_of(
    StructType(
        make=records.BrokerEndpoint,
        fields=(("name", STRING), ("host", STRING), ("port", UINT16), ("security_protocol", INT16)),
    )
)
_BROKER_FEATURES = array_of(
    StructType(
        make=records.BrokerFeature,
        fields=(("name", STRING), ("min_supported_version", INT16), ("max_supported_version", INT16)),
    )
)


def _only(make: Any, *fields: tuple[str, FieldType], tagged: tuple[TaggedField, ...] = ()) -> tuple[StructType, ...]:
    """Return the schema of a record that has version 0 only."""
    return (StructType(make=make, fields=fields, tagged=tagged),)


def _register_broker(version: int) -> StructType:
    fields: list[tuple[str, FieldType, int]] = [
        ("broker_id", INT32, 0),
        ("is_migrating_zk_broker", BOOL, 2),
        ("incarnation_id", UUID_BYTES, 0),
        ("broker_epoch", INT64, 0),
        ("end_points", _ENDPOINTS, 0),
        ("features", _BROKER_FEATURES, 0),
        ("rack", NULLABLE_STRING, 0),
        ("fenced", BOOL, 0),
        ("in_controlled_shutdown", BOOL, 1),
    ]
    tagged = (
        (TaggedField(tag=0, name="log_dirs", kind=_UUIDS, default=()), 3),
        (TaggedField(tag=1, name="cordoned_log_dirs", kind=_UUIDS), 4),
    )
    return StructType(
        make=_of_version(records.RegisterBrokerRecord, version),
        fields=tuple((name, kind) for name, kind, since in fields if version >= since),
        tagged=tuple(each for each, since in tagged if version >= since),
    )


def _registration_change(version: int) -> StructType:
    tagged = (
        TaggedField(tag=0, name="fenced", kind=INT8, default=0),
        TaggedField(tag=1, name="in_controlled_shutdown", kind=INT8, default=0),
        TaggedField(tag=2, name="log_dirs", kind=_UUIDS, default=()),
        TaggedField(tag=3, name="cordoned_log_dirs", kind=_UUIDS),
    )
    return StructType(
        make=_of_version(records.BrokerRegistrationChangeRecord, version),
        fields=(("broker_id", INT32), ("broker_epoch", INT64)),
        tagged=tagged[: version + 1],
    )


def _of_version(make: Any, version: int) -> Any:
    def make_version(**fields: Any) -> Any:
        """Make the record in this version."""
        return make(version=version, **fields)

    return make_version


SCHEMAS = MappingProxyType(
    {
        records.RecordType.REGISTER_BROKER_RECORD: tuple(map(_register_broker, range(5))),
        records.RecordType.UNREGISTER_BROKER_RECORD: _only(
            records.UnregisterBrokerRecord, ("broker_id", INT32), ("broker_epoch", INT64)
        ),
        records.RecordType.FENCE_BROKER_RECORD: _only(records.FenceBrokerRecord, ("id", INT32), ("epoch", INT64)),
        records.RecordType.UNFENCE_BROKER_RECORD: _only(records.UnfenceBrokerRecord, ("id", INT32), ("epoch", INT64)),
        records.RecordType.DELEGATION_TOKEN_RECORD: _only(
            records.DelegationTokenRecord,
            ("owner", STRING),
            ("requester", STRING),
            ("renewers", _STRINGS),
            ("issue_timestamp", INT64),
            ("max_timestamp", INT64),
            ("expiration_timestamp", INT64),
            ("token_id", STRING),
        ),
        records.RecordType.USER_SCRAM_CREDENTIAL_RECORD: _only(
            records.UserScramCredentialRecord,
            ("name", STRING),
            ("mechanism", INT8),
            ("salt", BYTES),
            ("stored_key", BYTES),
            ("server_key", BYTES),
            ("iterations", INT32),
        ),
        records.RecordType.FEATURE_LEVEL_RECORD: _only(
            records.FeatureLevelRecord, ("name", STRING), ("feature_level", INT16)
        ),
        records.RecordType.BROKER_REGISTRATION_CHANGE_RECORD: tuple(map(_registration_change, range(4))),
        records.RecordType.ACCESS_CONTROL_ENTRY_RECORD: _only(
            records.AccessControlEntryRecord,
            ("id", UUID_BYTES),
            ("resource_type", INT8),
            ("resource_name", STRING),
            ("pattern_type", INT8),
            ("principal", STRING),
            ("host", STRING),
            ("operation", INT8),
            ("permission_type", INT8),
        ),
        records.RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD: _only(
            records.RemoveAccessControlEntryRecord, ("id", UUID_BYTES)
        ),
        records.RecordType.NO_OP_RECORD: _only(records.NoOpRecord),
        records.RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD: _only(
            records.RemoveUserScramCredentialRecord, ("name", STRING), ("mechanism", INT8)
        ),
        records.RecordType.BEGIN_TRANSACTION_RECORD: _only(
            records.BeginTransactionRecord, tagged=(TaggedField(tag=0, name="name", kind=STRING),)
        ),
        records.RecordType.END_TRANSACTION_RECORD: _only(records.EndTransactionRecord),
        records.RecordType.ABORT_TRANSACTION_RECORD: _only(
            records.AbortTransactionRecord, tagged=(TaggedField(tag=0, name="reason", kind=STRING),)
        ),
        records.RecordType.REMOVE_DELEGATION_TOKEN_RECORD: _only(
            records.RemoveDelegationTokenRecord, ("token_id", STRING)
        ),
        records.RecordType.UNREGISTER_CONTROLLER_RECORD: _only(
            records.UnregisterControllerRecord, ("controller_id", INT32)
        ),
    }
)
"""The schemas of every record type that aclog interprets: one for each version that Kafka 4.3.1 has, from 0."""


def record_version(record: Any) -> int:
    """Return the version of an interpreted record: its own, or 0 if its type has no other."""
    return getattr(record, "version", 0)


def schema_of(record: Any) -> StructType:
    """Return the schema of an interpreted record in its version."""
    return SCHEMAS[record.api_key][record_version(record)]


# The codec of metadata records: frame version, apiKey, version, then the fields in Kafka's flexible encoding.
#
# Mirrors org.apache.kafka.server.common.serialization.AbstractApiMessageSerde and the generated record classes.
# A decoded record re-encodes to the same bytes: a form that Kafka does not write (an overlong varint, a tagged field
# with its default value, trailing bytes) is a DecodeError, and so is a string that is not UTF-8.
#
# Read aclog.metalog.codec first, then `decode_record` and `encode_record`; the rest are fast paths for the
# two ACL records.


_MAX_INT16 = 0x7FFF

ACL_FRAME = bytes((records.FRAME_VERSION, records.RecordType.ACCESS_CONTROL_ENTRY_RECORD, 0))
"""How the value of each AccessControlEntryRecord begins; the id follows."""
ACL_CONTENT = len(ACL_FRAME) + 16
"""Where in the value of an AccessControlEntryRecord its ACL begins: after the frame and the id."""

_REMOVE_FRAME = bytes((records.FRAME_VERSION, records.RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD, 0))
_SHORT = 0x7E
"""The most bytes of a string whose length takes one byte."""
_REMOVE_SIZE = 20
"""Frame, uuid and an empty tag section: the size of the second most common record."""

_KNOWN_KEYS = frozenset(records.RecordType)


def is_known_to_kafka(api_key: int) -> bool:
    """Return whether Kafka 4.3.1 has a record of this apiKey; if not, a newer Kafka wrote it.

    How to react is the caller's policy: a node stops, a read-only command warns and continues.
    """
    return api_key in _KNOWN_KEYS


def read_frame(value: Buffer) -> tuple[int, int, int]:
    """Return (apiKey, version, position of the first field) of a record value.

    Raises:
        DecodeError: truncated, or a frame version, apiKey or version that there cannot be.
        NewerKafkaError: a frame version above 1.

    """
    frame, at = read_unsigned_varint(value, 0)
    if frame != records.FRAME_VERSION:
        kind = NewerKafkaError if frame > records.FRAME_VERSION else DecodeError
        raise kind(f"record frame version {frame}: expected {records.FRAME_VERSION}", position=0)
    api_key, version_at = read_unsigned_varint(value, at)
    version, body = read_unsigned_varint(value, version_at)
    if api_key > _MAX_INT16:
        raise DecodeError(f"apiKey {api_key}: expected at most {_MAX_INT16}", position=at)
    if version > _MAX_INT16:
        raise DecodeError(f"record version {version}: expected at most {_MAX_INT16}", position=version_at)
    return api_key, version, body


def decode_record(value: bytes) -> records.MetadataRecord:
    """Decode a record value; a record type that aclog does not interpret is kept verbatim as an OpaqueRecord.

    Raises:
        DecodeError: with the position in `value`; NewerKafkaError for an interpreted record type in a version that
            Kafka 4.3.1 does not have.

    """
    # Fast paths: ACL records are nearly all of a large log. All other records fall through to the schema.
    if value.startswith(ACL_FRAME):
        acl = _plain_acl(value)
        if acl is not None:
            return acl
    elif value.startswith(_REMOVE_FRAME) and len(value) == _REMOVE_SIZE and not value[-1]:
        return records.RemoveAccessControlEntryRecord(id=uuid_of(int.from_bytes(value[3:19])))
    api_key, version, body = read_frame(value)
    schemas = SCHEMAS.get(records.RecordType(api_key)) if api_key in _KNOWN_KEYS else None
    if schemas is None:
        return records.OpaqueRecord(api_key=api_key, version=version, value=value)
    if version >= len(schemas):
        # Reading a newer version with an older schema could silently misread an ACL, so it is refused even where
        # records of unknown types are tolerated.
        name, newest = records.RecordType(api_key).name, len(schemas) - 1
        expected = f"version {newest}" if newest == 0 else f"version {newest} at most"
        what = f"{name} in version {version}, written by a newer Kafka: expected {expected}"
        raise NewerKafkaError(what, position=2)
    record: records.MetadataRecord
    record, end = schemas[version].read(value, body)
    if end != len(value):
        raise DecodeError(f"{len(value) - end} trailing bytes after the record", position=end)
    return record


def _plain_acl(value: bytes) -> records.AccessControlEntryRecord | None:
    """Decode the most common record without its schema; None for long or invalid strings, or tagged fields."""
    try:
        # Every varint is assumed to have one byte; the check below rejects values where one has the continuation bit.
        size, kind = value[20], value[19]
        name_end = 20 + size
        principal = name_end + 1
        principal_size = value[principal]
        host = principal + principal_size
        host_size = value[host]
        end = host + host_size
        pattern = value[name_end]
        operation, permission, tags = value[end:]
        if size | principal_size | host_size | kind | pattern | operation | permission >= 128 or tags:
            return None
        if not (size and principal_size and host_size):
            return None
        return records.acl_record(
            uuid_of(int.from_bytes(value[3:19])),
            kind,
            value[21:name_end].decode(),
            pattern,
            value[principal + 1 : host].decode(),
            value[host + 1 : end].decode(),
            operation,
            permission,
            (),
        )
    except (IndexError, ValueError):
        # Not UTF-8, a length past the end, or trailing bytes: decoding by the schema reports which.
        return None


def decode_values(buffer: Buffer, position: int, header: BatchHeader) -> list[records.MetadataRecord]:
    """Decode the records of the whole data batch at `position`, in order; header and CRC have been checked.

    Raises:
        DecodeError: a malformed batch or a damaged record, with position in the buffer and offset.

    """
    decoded: list[records.MetadataRecord] = []
    for start, value in read_values(buffer, position, header):
        try:
            decoded.append(decode_record(value))
        except DecodeError as e:
            raise e.at(offset=header.base_offset + len(decoded), base=start) from None
    return decoded


def encode_record(record: records.MetadataRecord) -> bytes:
    """Return the value of a record, byte for byte as Kafka writes it; an OpaqueRecord returns its original bytes.

    Raises:
        EncodeError: a field that the format cannot represent.

    """
    if type(record) is records.AccessControlEntryRecord and not record.tagged_fields:
        return encode_acl(record, record.id)
    if isinstance(record, records.OpaqueRecord):
        return record.value
    schemas, version = SCHEMAS[record.api_key], record_version(record)
    if version >= len(schemas):
        raise EncodeError(f"{record.api_key.name} in version {version}: expected {len(schemas) - 1} at most")
    return bytes((records.FRAME_VERSION, record.api_key, version)) + schemas[version].write(record)


class AclFields(Protocol):
    """What an ACL is, in a record or on its own: codes as int8, and texts."""

    @property
    def resource_type(self) -> int: ...  # noqa: D102
    @property
    def resource_name(self) -> str: ...  # noqa: D102
    @property
    def pattern_type(self) -> int: ...  # noqa: D102
    @property
    def principal(self) -> str: ...  # noqa: D102
    @property
    def host(self) -> str: ...  # noqa: D102
    @property
    def operation(self) -> int: ...  # noqa: D102
    @property
    def permission_type(self) -> int: ...  # noqa: D102


def encode_acl(acl: AclFields, id: UUID) -> bytes:  # noqa: A002  # the record's own name for it
    """Return the value of the AccessControlEntryRecord, without tagged fields, that adds an ACL under an id.

    All bytes after the id, from `ACL_CONTENT` on, are the ACL's content: equal ACLs have equal bytes there.

    Raises:
        EncodeError: a field that the format cannot represent.

    """
    plain = _plain_acl_value(acl, id)
    if plain is not None:
        return plain
    record = records.AccessControlEntryRecord(
        id=id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
    return ACL_FRAME + SCHEMAS[records.RecordType.ACCESS_CONTROL_ENTRY_RECORD][0].write(record)


def _plain_acl_value(acl: AclFields, id_: UUID) -> bytes | None:
    """Encode the most common record without its schema; None for long or invalid strings, or odd codes."""
    try:
        name, principal, host = acl.resource_name.encode(), acl.principal.encode(), acl.host.encode()
        kind, pattern, operation, permission = acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type
        if not 0 <= kind | pattern | operation | permission < 0x80:
            return None
        if len(name) > _SHORT or len(principal) > _SHORT or len(host) > _SHORT:
            return None
        return b"%b%b%c%c%b%c%c%b%c%b%c%c\0" % (
            ACL_FRAME, id_.int.to_bytes(16), kind, len(name) + 1, name, pattern,
            len(principal) + 1, principal, len(host) + 1, host, operation, permission,
        )  # fmt: skip
    except (AttributeError, TypeError, ValueError):
        # A value that does not fit its field: encoding by the schema reports which.
        return None
