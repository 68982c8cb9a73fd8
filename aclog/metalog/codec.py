"""The codec of metadata records: frame version, apiKey, version, then the fields in Kafka's flexible encoding.

Mirrors org.apache.kafka.server.common.serialization.AbstractApiMessageSerde and the generated record classes. Whatever
decodes re-encodes to the same bytes: a form that Kafka does not write (an overlong varint, a tagged field with its
default value, trailing bytes) is a DecodeError, and so is a string that is not UTF-8.

Read aclog.metalog.record_schemas first, then `decode_record` and `encode_record`; the rest are fast paths for the two
ACL records.
"""

from typing import Protocol
from uuid import UUID

from aclog.metalog.batches import BatchHeader, read_values
from aclog.metalog.errors import DecodeError, EncodeError, NewerKafkaError
from aclog.metalog.primitives import Buffer, read_unsigned_varint
from aclog.metalog.record_schemas import SCHEMAS, record_version
from aclog.metalog.records import (
    FRAME_VERSION,
    AccessControlEntryRecord,
    MetadataRecord,
    OpaqueRecord,
    RecordType,
    RemoveAccessControlEntryRecord,
)
from aclog.metalog.uuids import uuid_of

_MAX_INT16 = 0x7FFF

_ACL_FRAME = bytes((FRAME_VERSION, RecordType.ACCESS_CONTROL_ENTRY_RECORD, 0))
ACL_CONTENT = len(_ACL_FRAME) + 16
"""Where in the value of an AccessControlEntryRecord its ACL begins: after the frame and the id."""

_REMOVE_FRAME = bytes((FRAME_VERSION, RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD, 0))
_SHORT = 0x7E
"""The most bytes of a string whose length takes one byte."""
_REMOVE_SIZE = 20
"""Frame, uuid and an empty tag section: the size of the second most common record."""

_KNOWN_KEYS = frozenset(RecordType)


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
    if frame != FRAME_VERSION:
        kind = NewerKafkaError if frame > FRAME_VERSION else DecodeError
        raise kind(f"record frame version {frame}: expected {FRAME_VERSION}", position=0)
    api_key, version_at = read_unsigned_varint(value, at)
    version, body = read_unsigned_varint(value, version_at)
    if api_key > _MAX_INT16:
        raise DecodeError(f"apiKey {api_key}: expected at most {_MAX_INT16}", position=at)
    if version > _MAX_INT16:
        raise DecodeError(f"record version {version}: expected at most {_MAX_INT16}", position=version_at)
    return api_key, version, body


def decode_record(value: bytes) -> MetadataRecord:
    """Decode a record value; a record type that aclog does not interpret is kept verbatim as an OpaqueRecord.

    Raises:
        DecodeError: with the position in `value`; NewerKafkaError for an interpreted record type in a version that
            Kafka 4.3.1 does not have.

    """
    # Fast paths: ACL records are nearly all of a large log. Whatever they do not match falls through to the schema.
    if value.startswith(_ACL_FRAME):
        acl = _plain_acl(value)
        if acl is not None:
            return acl
    elif value.startswith(_REMOVE_FRAME) and len(value) == _REMOVE_SIZE and not value[-1]:
        return RemoveAccessControlEntryRecord(id=uuid_of(int.from_bytes(value[3:19])))
    api_key, version, body = read_frame(value)
    schemas = SCHEMAS.get(RecordType(api_key)) if api_key in _KNOWN_KEYS else None
    if schemas is None:
        return OpaqueRecord(api_key=api_key, version=version, value=value)
    if version >= len(schemas):
        # Reading a newer version with an older schema could silently misread an ACL, so it is refused even where
        # records of unknown types are tolerated.
        name, newest = RecordType(api_key).name, len(schemas) - 1
        expected = f"version {newest}" if newest == 0 else f"version {newest} at most"
        what = f"{name} in version {version}, written by a newer Kafka: expected {expected}"
        raise NewerKafkaError(what, position=2)
    record: MetadataRecord
    record, end = schemas[version].read(value, body)
    if end != len(value):
        raise DecodeError(f"{len(value) - end} trailing bytes after the record", position=end)
    return record


def _plain_acl(value: bytes) -> AccessControlEntryRecord | None:
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
        return AccessControlEntryRecord(
            id=uuid_of(int.from_bytes(value[3:19])),
            resource_type=kind,
            resource_name=value[21:name_end].decode(),
            pattern_type=pattern,
            principal=value[principal + 1 : host].decode(),
            host=value[host + 1 : end].decode(),
            operation=operation,
            permission_type=permission,
        )
    except (IndexError, ValueError):
        # Not UTF-8, a length past the end, or trailing bytes: decoding by the schema says what is wrong.
        return None


def decode_values(buffer: Buffer, position: int, header: BatchHeader) -> list[MetadataRecord]:
    """Decode the records of the whole data batch at `position`, in order; header and CRC have been checked.

    Raises:
        DecodeError: a malformed batch or a damaged record, with position in the buffer and offset.

    """
    records: list[MetadataRecord] = []
    for start, value in read_values(buffer, position, header):
        try:
            records.append(decode_record(value))
        except DecodeError as e:
            raise e.at(offset=header.base_offset + len(records), base=start) from None
    return records


def encode_record(record: MetadataRecord) -> bytes:
    """Return the value of a record, byte for byte as Kafka writes it; an OpaqueRecord returns its original bytes.

    Raises:
        EncodeError: a field that the format cannot represent.

    """
    if type(record) is AccessControlEntryRecord and not record.tagged_fields:
        return encode_acl(record, record.id)
    if isinstance(record, OpaqueRecord):
        return record.value
    schemas, version = SCHEMAS[record.api_key], record_version(record)
    if version >= len(schemas):
        raise EncodeError(f"{record.api_key.name} in version {version}: expected {len(schemas) - 1} at most")
    return bytes((FRAME_VERSION, record.api_key, version)) + schemas[version].write(record)


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

    All after the id, from `ACL_CONTENT` on, says what the ACL is: equal ACLs have equal bytes there.

    Raises:
        EncodeError: a field that the format cannot represent.

    """
    plain = _plain_acl_value(acl, id)
    if plain is not None:
        return plain
    record = AccessControlEntryRecord(
        id=id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
    return _ACL_FRAME + SCHEMAS[RecordType.ACCESS_CONTROL_ENTRY_RECORD][0].write(record)


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
            _ACL_FRAME, id_.int.to_bytes(16), kind, len(name) + 1, name, pattern,
            len(principal) + 1, principal, len(host) + 1, host, operation, permission,
        )  # fmt: skip
    except (AttributeError, TypeError, ValueError):
        # A value that does not fit its field: encoding by the schema says which.
        return None
