"""What the columns of a metadata log hold, as comments that DESCRIBE TABLE and data catalogues show."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from aclog.pipeline.source.schema import LOG_SCHEMA

_OF_AN_ACL: Final = {
    "id": "the ACL's id, 22 characters",
    "resourceType": "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER",
    "resourceName": "the name or prefix that it covers; * is any",
    "patternType": "LITERAL or PREFIXED",
    "principal": "whom it applies to, as Type:name; User:* is everyone",
    "host": "the address that it applies to; * is any",
    "operation": "READ, WRITE, ... or ALL",
    "permissionType": "ALLOW or DENY",
}
_OF_A_CREDENTIAL: Final = {
    "name": "the user's name",
    "mechanism": "SCRAM_SHA_256 or SCRAM_SHA_512",
    "iterations": "the number of iterations; null for a removal",
}
_OF_A_TOKEN: Final = {
    "tokenId": "the token's id",
    "owner": "the principal that the token stands for",
    "requester": "the principal that asked for it",
    "renewers": "the principals that may renew it",
    "issueTimestamp": "when it was issued",
    "expirationTimestamp": "when it expires unless it is renewed",
    "maxTimestamp": "up to when it can be renewed",
}

COMMENTS: Final = {
    "offset": "the record's offset in the log",
    "batch_offset": "the offset of the first record of its batch",
    "batch_end_offset": "the offset after the last record of its batch",
    "leader_epoch": "the epoch of the leader that wrote the batch",
    "timestamp": "the largest timestamp of its batch; null if it has none",
    "record_type": "what the record is, as kafka-dump-log names it, such as ACCESS_CONTROL_ENTRY_RECORD; DAMAGED for "
    "bytes set aside",
    "version": "the version of the record's type; null for control records",
    "acl": "the ACL that the record adds; for a removal only its id",
    "scram": "the SCRAM credential that the record sets or removes, without salt and keys",
    "token": "the delegation token that the record sets or removes, without HMAC",
    "opaque": "the value of any other record, such as a topic's; null where it may hold a password",
    "damage": "what is wrong, and where, in rows of record type DAMAGED",
}
"""By column."""

FIELD_COMMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "acl": _OF_AN_ACL,
    "scram": _OF_A_CREDENTIAL,
    "token": _OF_A_TOKEN,
}
"""By column and field."""


def commented_schema() -> StructType:
    """Return LOG_SCHEMA as Spark's, each column and field with its comment."""
    return StructType([_commented(each) for each in from_arrow_schema(LOG_SCHEMA)])


def _commented(column: StructField) -> StructField:
    kind = column.dataType
    if isinstance(kind, StructType):
        inside = FIELD_COMMENTS[column.name]
        kind = StructType([_with_comment(each, inside[each.name]) for each in kind])
    return _with_comment(StructField(column.name, kind, column.nullable), COMMENTS[column.name])


def _with_comment(column: StructField, text: str) -> StructField:
    return StructField(column.name, column.dataType, column.nullable, {"comment": text})
