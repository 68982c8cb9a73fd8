"""Conversion between metadata records and rows of avro/image.avsc, which are plain dicts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any
from uuid import UUID

from aclog.authorizer import acl_records
from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAclWithId
from aclog.cli.transfer.avro.files import Row
from aclog.credentials.scram import ScramMechanism, UserCredentials
from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.json_form import HIDDEN, record_json
from aclog.metalog.records import (
    AccessControlEntryRecord,
    BrokerRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    OpaqueRecord,
    RecordType,
    RegisterBrokerRecord,
    TaggedFields,
    UserScramCredentialRecord,
)
from aclog.metalog.uuids import parse_uuid, uuid_text

NO_ID = UUID(int=0)
"""The id in the record of an ACL from a source without ids; Kafka never assigns it (Uuid.ZERO_UUID)."""


def row_of(record: MetadataRecord, *, show_secrets: bool) -> Row:
    """Return the record as a row with one key, its kind; `show_secrets` includes salts and keys."""
    match record:
        case AccessControlEntryRecord():
            return {"acl": acl_row(record)}
        case UserScramCredentialRecord():
            return {"scram": _scram_row(record, show_secrets=show_secrets)}
        case DelegationTokenRecord():
            return {"delegationToken": _token_row(record)}
        case FeatureLevelRecord():
            tagged = _tagged_rows(record.tagged_fields)
            return {"feature": {"name": record.name, "level": record.feature_level, "taggedFields": tagged}}
        case OpaqueRecord():
            hidden = not show_secrets and record_json(record)["data"] == {"base64": HIDDEN}
            value = None if hidden else record.value
            return {"opaque": {"type": code_text(RecordType, record.api_key), "value": value}}
        case RegisterBrokerRecord():
            return {"opaque": {"type": record.api_key.name, "value": encode_record(record)}}
        case _:
            raise TypeError(f"{type(record).__name__} is not part of a state")


def keyless_rows(users: Iterable[UserCredentials]) -> Iterator[Row]:
    """Yield credentials from a source without keys, as in an export without secrets."""
    for user in users:
        for info in user.credential_infos:
            yield {"scram": _scram(user.user, info.mechanism, info.iterations)}


def record_of(kind: str, row: Mapping[str, Any]) -> MetadataRecord | None:
    """Return the record of a row; None if it was exported without its secrets.

    Raises:
        ConfigError: an invalid name, id or opaque value.

    """
    return _READERS[kind](row)


def acl_row(record: AccessControlEntryRecord) -> Row:
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


def record_of_rule(rule: StandardAclWithId) -> AccessControlEntryRecord:
    """Return the record that adds an ACL."""
    return acl_records.record_of(rule.acl, rule.id or NO_ID)


def acl_record(row: Mapping[str, Any]) -> AccessControlEntryRecord:
    """Return the record of the schema's Acl. Raises as record_of."""
    return AccessControlEntryRecord(
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


def _scram_row(record: UserScramCredentialRecord, *, show_secrets: bool) -> Row:
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


def _scram_record(row: Mapping[str, Any]) -> UserScramCredentialRecord | None:
    if row["salt"] is None or row["storedKey"] is None or row["serverKey"] is None:
        return None
    return UserScramCredentialRecord(
        name=row["user"],
        mechanism=parse_code(ScramMechanism, row["mechanism"].replace("SCRAM-SHA-", "SCRAM_SHA_")),
        salt=row["salt"],
        stored_key=row["storedKey"],
        server_key=row["serverKey"],
        iterations=row["iterations"],
        tagged_fields=_tagged_fields(row),
    )


def _token_row(record: DelegationTokenRecord) -> Row:
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


def _token_record(row: Mapping[str, Any]) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=row["owner"],
        requester=row["requester"],
        renewers=tuple(row["renewers"]),
        issue_timestamp=row["issueTimestamp"],
        max_timestamp=row["maxTimestamp"],
        expiration_timestamp=row["expirationTimestamp"],
        token_id=row["tokenId"],
        tagged_fields=_tagged_fields(row),
    )


def _feature_record(row: Mapping[str, Any]) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=row["name"], feature_level=row["level"], tagged_fields=_tagged_fields(row))


def _opaque_record(row: Mapping[str, Any]) -> OpaqueRecord | BrokerRecord | None:
    if row["value"] is None:
        return None
    try:
        record = decode_record(row["value"])
    except DecodeError as error:
        raise ConfigError(f"not an opaque record: {error}") from error
    # An export by an aclog of before has changes of registrations as well, which follow them.
    if not isinstance(record, OpaqueRecord | BrokerRecord):
        raise ConfigError(f"not an opaque record: its value is a {record.api_key.name}")
    return record


def _tagged_rows(fields: TaggedFields) -> list[Row]:
    return [{"tag": tag, "data": data} for tag, data in fields]


def _tagged_fields(row: Mapping[str, Any]) -> TaggedFields:
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


_READERS: Mapping[str, Callable[[Mapping[str, Any]], MetadataRecord | None]] = {
    "acl": acl_record,
    "scram": _scram_record,
    "delegationToken": _token_record,
    "feature": _feature_record,
    "opaque": _opaque_record,
}
