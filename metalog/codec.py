"""Record values to records and back: frame version, apiKey, version, then the fields in Kafka's flexible encoding.

Mirrors org.apache.kafka.server.common.serialization.AbstractApiMessageSerde and the generated record classes. What
decodes, encodes to the same bytes: a form that Kafka does not write (a varint longer than needed, a tagged field with
its default value, bytes after the end) is a DecodeError, as is a string that is not UTF-8.
"""

from types import MappingProxyType
from typing import Any

from attrs import frozen

from metalog.errors import DecodeError, EncodeError
from metalog.fields import (
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    STRINGS,
    UUID_BYTES,
    FieldType,
    read_tagged_fields,
    write_tagged_fields,
)
from metalog.primitives import Buffer, compact_string, read_compact_string, read_unsigned_varint
from metalog.records import (
    FRAME_VERSION,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RecordType,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    TaggedFields,
    UserScramCredentialRecord,
)

_MAX_INT16 = 0x7FFF


@frozen(kw_only=True)
class Schema:
    """A record type's fields in wire order, each (attribute, wire type); `tag_0` is the string field of tag 0, if any.

    Only the transaction records have a known tagged field: a nullable string that is absent when null.
    """

    record: type[Any]
    fields: tuple[tuple[str, FieldType], ...] = ()
    tag_0: str | None = None


SCHEMAS = MappingProxyType(
    {
        schema.record.api_key: schema
        for schema in (
            Schema(
                record=DelegationTokenRecord,
                fields=(
                    ("owner", STRING),
                    ("requester", STRING),
                    ("renewers", STRINGS),
                    ("issue_timestamp", INT64),
                    ("max_timestamp", INT64),
                    ("expiration_timestamp", INT64),
                    ("token_id", STRING),
                ),
            ),
            Schema(
                record=UserScramCredentialRecord,
                fields=(
                    ("name", STRING),
                    ("mechanism", INT8),
                    ("salt", BYTES),
                    ("stored_key", BYTES),
                    ("server_key", BYTES),
                    ("iterations", INT32),
                ),
            ),
            Schema(record=FeatureLevelRecord, fields=(("name", STRING), ("feature_level", INT16))),
            Schema(
                record=AccessControlEntryRecord,
                fields=(
                    ("id", UUID_BYTES),
                    ("resource_type", INT8),
                    ("resource_name", STRING),
                    ("pattern_type", INT8),
                    ("principal", STRING),
                    ("host", STRING),
                    ("operation", INT8),
                    ("permission_type", INT8),
                ),
            ),
            Schema(record=RemoveAccessControlEntryRecord, fields=(("id", UUID_BYTES),)),
            Schema(record=NoOpRecord),
            Schema(record=RemoveUserScramCredentialRecord, fields=(("name", STRING), ("mechanism", INT8))),
            Schema(record=BeginTransactionRecord, tag_0="name"),
            Schema(record=EndTransactionRecord),
            Schema(record=AbortTransactionRecord, tag_0="reason"),
            Schema(record=RemoveDelegationTokenRecord, fields=(("token_id", STRING),)),
        )
    }
)
"""Every record type that this project interprets, by apiKey; all have version 0 only."""

_KNOWN_KEYS = frozenset(RecordType)


def is_known_to_kafka(api_key: int) -> bool:
    """Whether Kafka 4.3.1 has a record of this apiKey; if not, a newer Kafka wrote it and what it means is unknown.

    What to do about it is the reader's policy: a node stops, a read command goes on with a warning.
    """
    return api_key in _KNOWN_KEYS


def read_frame(value: Buffer) -> tuple[int, int, int]:
    """(apiKey, version, position of the first field) of a record value.

    Raises:
        DecodeError: not frame version 1, cut, or an apiKey or version that is no int16.

    """
    frame, at = read_unsigned_varint(value, 0)
    if frame != FRAME_VERSION:
        raise DecodeError(f"record frame version {frame}: expected {FRAME_VERSION}", position=0)
    api_key, version_at = read_unsigned_varint(value, at)
    version, body = read_unsigned_varint(value, version_at)
    if api_key > _MAX_INT16:
        raise DecodeError(f"apiKey {api_key}: expected at most {_MAX_INT16}", position=at)
    if version > _MAX_INT16:
        raise DecodeError(f"record version {version}: expected at most {_MAX_INT16}", position=version_at)
    return api_key, version, body


def decode_record(value: bytes) -> MetadataRecord:
    """The record of a value; one of a type that we do not interpret is kept whole as an OpaqueRecord.

    Raises:
        DecodeError: with the position in `value`; also for a record that we interpret in a version above 0.

    """
    api_key, version, at = read_frame(value)
    schema = SCHEMAS.get(RecordType(api_key)) if api_key in _KNOWN_KEYS else None
    if schema is None:
        return OpaqueRecord(api_key=api_key, version=version, value=value)
    if version:
        name = RecordType(api_key).name
        raise DecodeError(f"{name} in version {version}, written by a newer Kafka: expected version 0", position=at - 1)
    found: dict[str, Any] = {}
    for name, kind in schema.fields:
        found[name], at = kind.read(value, at)
    tags, end = read_tagged_fields(value, at)
    if schema.tag_0 is not None and tags and tags[0][0] == 0:
        found[schema.tag_0] = _tagged_string(tags[0][1], at)
        tags = tags[1:]
    if end != len(value):
        raise DecodeError(f"{len(value) - end} bytes after the end of the record", position=end)
    record: MetadataRecord = schema.record(**found, tagged_fields=tags)
    return record


def _tagged_string(data: bytes, position: int) -> str:
    try:
        text, end = read_compact_string(data, 0)
    except DecodeError as e:
        raise DecodeError(f"in the field of tag 0: {e.what}", position=position) from None
    if end != len(data):
        raise DecodeError(f"in the field of tag 0: {len(data) - end} bytes too many", position=position)
    return text


def encode_record(record: MetadataRecord) -> bytes:
    """The value of a record, as Kafka writes it; an OpaqueRecord's is what it was.

    Raises:
        EncodeError: a field that the format cannot hold.

    """
    if isinstance(record, OpaqueRecord):
        return record.value
    schema = SCHEMAS[record.api_key]
    parts = [bytes((FRAME_VERSION, record.api_key, 0))]
    for name, kind in schema.fields:
        parts.append(kind.write(getattr(record, name)))
    parts.append(write_tagged_fields(_tags(record, schema)))
    return b"".join(parts)


def _tags(record: Any, schema: Schema) -> TaggedFields:
    tags: TaggedFields = record.tagged_fields
    if schema.tag_0 is None:
        return tags
    if tags and tags[0][0] == 0:
        raise EncodeError(f"tag 0 is {schema.tag_0}, not an unknown tagged field")
    text = getattr(record, schema.tag_0)
    return tags if text is None else ((0, compact_string(text)), *tags)
