"""Rows of exports, in Avro and as JSON lines."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from aclog.authorizer import acl
from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.credentials.scram import ScramMechanism, UserCredentials
from aclog.metalog import records
from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.json_object import check_unicode
from aclog.metalog.primitives import parse_uuid, uuid_text
from aclog.metalog.text_forms import HIDDEN, record_json
from aclog.snapshots.history import Change
from aclog.terminal.columns import json_text

if TYPE_CHECKING:
    from fastavro.types import Schema


# Avro container files of the export schemas, streamed row by row.


Row: TypeAlias = dict[str, object]

MAGIC = b"Obj\x01"
"""The first bytes of every Avro container file."""

IMAGE, HISTORY = "aclog.ImageRow", "aclog.AclChange"
_FILES = {IMAGE: "image.avsc", HISTORY: "history.avsc"}


def load_schema(name: str) -> "Schema":
    """Return the schema of this name, from the package data."""
    text = files("aclog.ops.avro").joinpath(_FILES[name]).read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def write_rows(file: IO[bytes], name: str, rows: Iterable[Row]) -> None:
    """Write rows of the schema of this name as a container file (deflate). Raises OSError."""
    import fastavro  # noqa: PLC0415  # JSON lines are exported and imported without it

    fastavro.writer(file, fastavro.parse_schema(load_schema(name)), rows, codec="deflate")


def read_rows(file: IO[bytes], source: str) -> tuple[str, Iterator[Row]]:
    """Return the schema name of a container file, and its rows in the current version of the schema.

    Older and newer versions are converted by Avro's schema resolution.

    Raises:
        ConfigError: the file is not Avro, of another schema, or damaged; iterating the rows raises it too.

    """
    import fastavro  # noqa: PLC0415

    try:
        name = str(fastavro.reader(file).writer_schema["name"])  # type: ignore[index, call-overload]
    except Exception as error:  # on damaged bytes fastavro raises nearly any exception
        raise ConfigError(f"{source}: not an Avro file: {_reason(error)}") from error
    if name not in _FILES:
        raise ConfigError(f"{source}: an Avro file of {name}: expected {IMAGE} or {HISTORY}")
    file.seek(0)
    return name, _rows(file, name, source)


def _rows(file: IO[bytes], name: str, source: str) -> Iterator[Row]:
    import fastavro  # noqa: PLC0415

    number = 0
    try:
        for row in fastavro.reader(file, reader_schema=load_schema(name)):
            number += 1
            yield row  # type: ignore[misc]
    except Exception as error:  # on damaged bytes fastavro raises nearly any exception
        raise ConfigError(f"{source}: damaged or truncated after row {number}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


# Conversion between metadata records and rows of avro/image.avsc, which are plain dicts.


NO_ID = UUID(int=0)
"""The id in the record of an ACL from a source without ids; Kafka never assigns it (Uuid.ZERO_UUID)."""


def row_of(record: records.MetadataRecord, *, show_secrets: bool) -> Row:
    """Return the record as a row with one key, its kind; `show_secrets` includes salts and keys."""
    match record:
        case records.AccessControlEntryRecord():
            return {"acl": acl_row(record)}
        case records.UserScramCredentialRecord():
            return {"scram": _scram_row(record, show_secrets=show_secrets)}
        case records.DelegationTokenRecord():
            return {"delegationToken": _token_row(record)}
        case records.FeatureLevelRecord():
            tagged = _tagged_rows(record.tagged_fields)
            return {"feature": {"name": record.name, "level": record.feature_level, "taggedFields": tagged}}
        case records.OpaqueRecord():
            hidden = not show_secrets and record_json(record)["data"] == {"base64": HIDDEN}
            value = None if hidden else record.value
            return {"opaque": {"type": code_text(records.RecordType, record.api_key), "value": value}}
        case records.RegisterBrokerRecord():
            return {"opaque": {"type": record.api_key.name, "value": encode_record(record)}}
        case _:
            raise TypeError(f"{type(record).__name__} is not part of a state")


def keyless_rows(users: Iterable[UserCredentials]) -> Iterator[Row]:
    """Yield credentials from a source without keys, as in an export without secrets."""
    for user in users:
        for info in user.credential_infos:
            yield {"scram": _scram(user.user, info.mechanism, info.iterations)}


def record_of(kind: str, row: Mapping[str, Any]) -> records.MetadataRecord | None:
    """Return the record of a row; None if it was exported without its secrets.

    Raises:
        ConfigError: an invalid name, id or opaque value.

    """
    return _READERS[kind](row)


def acl_row(record: records.AccessControlEntryRecord) -> Row:
    """Return an ACL as the schema's Acl."""
    return {
        "id": uuid_text(record.id) if record.id != NO_ID else None,
        "resourceType": code_text(ResourceType, record.resource_type),
        "resourceName": record.resource_name,
        "patternType": code_text(PatternType, record.pattern_type),
        "principal": record.principal,
        "host": record.host,
        "operation": code_text(AclOperation, record.operation),
        "permissionType": code_text(AclPermissionType, record.permission_type),
        "taggedFields": _tagged_rows(record.tagged_fields),
    }


def record_of_rule(rule: StandardAclWithId) -> records.AccessControlEntryRecord:
    """Return the record that adds an ACL."""
    return acl.record_of(rule.acl, rule.id or NO_ID)


def change_row(change: Change) -> Row:
    """Return a change as a row of avro/history.avsc."""
    return {
        "offset": change.offset,
        "endOffset": change.end_offset,
        "timestamp": change.timestamp,
        "change": change.kind.value,
        "firstSeen": change.first_seen,
        "acl": acl_row(record_of_rule(change.rule)),
    }


def acl_record(row: Mapping[str, Any]) -> records.AccessControlEntryRecord:
    """Return the record of the schema's Acl. Raises as record_of."""
    return records.AccessControlEntryRecord(
        id=NO_ID if row["id"] is None else parse_uuid(row["id"]),
        resource_type=parse_code(ResourceType, row["resourceType"]),
        resource_name=row["resourceName"],
        pattern_type=parse_code(PatternType, row["patternType"]),
        principal=row["principal"],
        host=row["host"],
        operation=parse_code(AclOperation, row["operation"]),
        permission_type=parse_code(AclPermissionType, row["permissionType"]),
        tagged_fields=_tagged_fields(row),
    )


def _scram_row(record: records.UserScramCredentialRecord, *, show_secrets: bool) -> Row:
    row = _scram(record.name, record.mechanism, record.iterations)
    if show_secrets:
        row |= {"salt": record.salt, "storedKey": record.stored_key, "serverKey": record.server_key}
    return row | {"taggedFields": _tagged_rows(record.tagged_fields)}


def _scram(user: str, mechanism: int, iterations: int) -> Row:
    """Return a credential as the schema's ScramCredential, without its secrets."""
    return {
        "user": user,
        "mechanism": code_text(ScramMechanism, mechanism).replace("_", "-"),
        "iterations": iterations,
        "salt": None,
        "storedKey": None,
        "serverKey": None,
        "taggedFields": [],
    }


def _scram_record(row: Mapping[str, Any]) -> records.UserScramCredentialRecord | None:
    if row["salt"] is None or row["storedKey"] is None or row["serverKey"] is None:
        return None
    return records.UserScramCredentialRecord(
        name=row["user"],
        mechanism=parse_code(ScramMechanism, row["mechanism"].replace("SCRAM-SHA-", "SCRAM_SHA_")),
        salt=row["salt"],
        stored_key=row["storedKey"],
        server_key=row["serverKey"],
        iterations=row["iterations"],
        tagged_fields=_tagged_fields(row),
    )


def _token_row(record: records.DelegationTokenRecord) -> Row:
    return {
        "tokenId": record.token_id,
        "owner": record.owner,
        "requester": record.requester,
        "renewers": list(record.renewers),
        "issueTimestamp": record.issue_timestamp,
        "maxTimestamp": record.max_timestamp,
        "expirationTimestamp": record.expiration_timestamp,
        "taggedFields": _tagged_rows(record.tagged_fields),
    }


def _token_record(row: Mapping[str, Any]) -> records.DelegationTokenRecord:
    return records.DelegationTokenRecord(
        owner=row["owner"],
        requester=row["requester"],
        renewers=tuple(row["renewers"]),
        issue_timestamp=row["issueTimestamp"],
        max_timestamp=row["maxTimestamp"],
        expiration_timestamp=row["expirationTimestamp"],
        token_id=row["tokenId"],
        tagged_fields=_tagged_fields(row),
    )


def _feature_record(row: Mapping[str, Any]) -> records.FeatureLevelRecord:
    return records.FeatureLevelRecord(name=row["name"], feature_level=row["level"], tagged_fields=_tagged_fields(row))


def _opaque_record(row: Mapping[str, Any]) -> records.OpaqueRecord | records.BrokerRecord | None:
    if row["value"] is None:
        return None
    try:
        record = decode_record(row["value"])
    except DecodeError as error:
        raise ConfigError(f"not an opaque record: {error}") from error
    # An export by an aclog of before has changes of registrations as well, which follow them.
    if not isinstance(record, records.OpaqueRecord | records.BrokerRecord):
        raise ConfigError(f"not an opaque record: its value is a {record.api_key.name}")
    return record


def _tagged_rows(fields: records.TaggedFields) -> list[Row]:
    return [{"tag": tag, "data": data} for tag, data in fields]


def _tagged_fields(row: Mapping[str, Any]) -> records.TaggedFields:
    return tuple((field["tag"], field["data"]) for field in row["taggedFields"])


def code_text(kind: type[IntEnum], code: int) -> str:
    """Return the name of the code; its decimal text if it has none, so that the export is lossless."""
    try:
        return kind(code).name
    except ValueError:
        return str(code)


def parse_code(kind: type[IntEnum], text: str) -> int:
    """Return the code of a text of code_text.

    Raises:
        ConfigError: neither a name nor a number from -128 to 127.

    """
    if text in kind.__members__:
        return int(kind[text])
    if text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 4 and -128 <= int(text) <= 127:
        return int(text)
    raise ConfigError(f"{text[:40]!r} is neither one of {', '.join(kind.__members__)} nor a code")


_READERS: Mapping[str, Callable[[Mapping[str, Any]], records.MetadataRecord | None]] = {
    "acl": acl_record,
    "scram": _scram_record,
    "delegationToken": _token_record,
    "feature": _feature_record,
    "opaque": _opaque_record,
}


# Rows of an export as JSON lines: the fields of the Avro schema, bytes as base64, null and empty lists omitted.


_Node: TypeAlias = Any
"""Part of a schema: a name, a list (union), or an object."""

_BITS = {"int": 31, "long": 63}


def row_line(row: Row) -> str:
    """Return the row as one line of JSON, without a line end."""
    return json_text(row_object(row))


def row_object(row: Row) -> dict[str, object]:
    """Return the object of `row_line`: without nulls and empty lists, with bytes in base64."""
    return {key: _without_empty(value) for key, value in row.items() if value is not None and value != []}


def _without_empty(value: object) -> object:
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return row_object(value) if isinstance(value, dict) else value


class RowReader:
    """Reads rows of one schema (avro/*.avsc) from JSON lines."""

    def __init__(self, name: str) -> None:
        """Load the schema of this name."""
        self._schema = load_schema(name)
        self._names = dict(_named_types(self._schema))

    def row(self, value: dict[str, object]) -> Row:
        """Return the row in a JSON object, checked against the schema, with the schema's defaults for missing fields.

        Raises:
            ConfigError: a field is missing, unknown, of the wrong type, or out of range.

        """
        return self._record(self._schema, value, "row")

    def _value(self, schema: _Node, value: object, where: str) -> object:
        schema = self._names.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, str):
            return _leaf(schema, value, where)
        if isinstance(schema, list):  # every union in the schemas is of null and one other type
            return None if value is None else self._value(next(each for each in schema if each != "null"), value, where)
        if schema["type"] == "record":
            return self._record(schema, value, where)
        if not isinstance(value, list):
            raise ConfigError(f"{where} must be a list")
        return [self._value(schema["items"], item, where) for item in value]

    def _record(self, schema: _Node, value: object, where: str) -> Row:
        if not isinstance(value, dict):
            raise ConfigError(f"{where} must be an object")
        fields = {field["name"]: field for field in schema["fields"]}
        if unknown := value.keys() - fields.keys():
            raise ConfigError(f"{where} has no field {min(unknown)[:40]!r}: expected {', '.join(fields)}")
        return {name: self._field(field, value, f"{where}.{name}") for name, field in fields.items()}

    def _field(self, field: _Node, value: dict[str, object], where: str) -> object:
        if field["name"] in value:
            return self._value(field["type"], value[field["name"]], where)
        if "default" in field:
            return field["default"]
        raise ConfigError(f"{where} is missing")


def _named_types(schema: _Node) -> Iterator[tuple[str, _Node]]:
    """Yield every record type in the schema with its name."""
    if isinstance(schema, list):
        for each in schema:
            yield from _named_types(each)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema["name"], schema
        for field in schema.get("fields", ()):
            yield from _named_types(field["type"])
        yield from _named_types(schema.get("items", "null"))


def _leaf(kind: str, value: object, where: str) -> object:
    if kind in _BITS:
        return _integer(_BITS[kind], value, where)
    expected = bool if kind == "boolean" else str
    if not isinstance(value, expected):
        raise ConfigError(f"{where} must be a {kind}")
    if kind == "string":
        check_unicode(where, str(value))
    if kind != "bytes":
        return value
    try:
        return b64decode(str(value), validate=True)
    except ValueError as error:
        raise ConfigError(f"{where} is not base64: {error}") from error


def _integer(bits: int, value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits) <= value < 1 << bits:
        raise ConfigError(f"{where} must be an integer of {bits + 1} bits")
    return value
