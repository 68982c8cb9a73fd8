"""Records as Arrow structs: ACLs from positions in the bytes; credentials and tokens, which are few, one by one."""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, code_name
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.acl_columns import read_acls
from aclog.metalog.codec import decode_record
from aclog.metalog.errors import DecodeError
from aclog.metalog.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    MetadataRecord,
    RecordType,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from aclog.metalog.uuids import uuid_text
from aclog.metalog.vectors import Bools, Int64s, bytes_at, slices_at
from aclog.pipeline.source.row_selection import micros_of
from aclog.pipeline.source.rows import Rows
from aclog.pipeline.source.schema import SCRAM_TYPE, TOKEN_TYPE
from aclog.usage.arrow.acl_structs import ACL_TYPE, acl_structs, id_texts

Array: TypeAlias = "pa.Array[Any]"

_REMOVE_SIZE = 20
_SCRAM_KINDS = (RecordType.USER_SCRAM_CREDENTIAL_RECORD, RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD)
_TOKEN_KINDS = (RecordType.DELEGATION_TOKEN_RECORD, RecordType.REMOVE_DELEGATION_TOKEN_RECORD)


def acl_column(buffer: bytes, rows: Rows) -> Array:
    """Return a struct for each row, null unless the record adds or removes an ACL.

    Raises:
        DecodeError: a damaged record, with the position in the buffer and the offset.

    """
    added = np.flatnonzero(rows.kind == RecordType.ACCESS_CONTROL_ENTRY_RECORD)
    removed = np.flatnonzero(rows.kind == RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD)
    acls, left = read_acls(buffer, rows.value_start[added], rows.value_end[added])
    plain = _plain_removals(buffer, rows.take(removed))
    odd = np.concatenate((added[left], removed[~plain]))
    parts = [
        acl_structs(buffer, acls),
        _removals(buffer, rows.value_start[removed[plain]]),
        _odd_acls(buffer, rows, odd),
    ]
    at = np.concatenate((np.delete(added, left), removed[plain], odd))
    return spread(pa.concat_arrays(parts), at, len(rows))


def _plain_removals(buffer: bytes, rows: Rows) -> Bools:
    data = np.frombuffer(buffer, np.uint8)
    plain: Bools = (rows.value_end - rows.value_start == _REMOVE_SIZE) & (bytes_at(data, rows.value_end - 1) == 0)
    return plain


def _removals(buffer: bytes, starts: Int64s) -> Array:
    ids = id_texts(slices_at(np.frombuffer(buffer, np.uint8), starts + 3, 16))
    others = [pa.nulls(len(starts), pa.string())] * (ACL_TYPE.num_fields - 1)
    return pa.StructArray.from_arrays([ids, *others], fields=list(ACL_TYPE))


def _odd_acls(buffer: bytes, rows: Rows, at: Int64s) -> Array:
    return pa.array([_acl(decode_row(buffer, rows, row)) for row in at.tolist()], ACL_TYPE)


def _acl(record: MetadataRecord) -> dict[str, str]:
    if isinstance(record, RemoveAccessControlEntryRecord):
        return {"id": uuid_text(record.id)}
    assert isinstance(record, AccessControlEntryRecord)  # noqa: S101 - the row's kind says so
    return {
        "id": uuid_text(record.id),
        "resourceType": code_name(ResourceType, record.resource_type),
        "resourceName": record.resource_name,
        "patternType": code_name(PatternType, record.pattern_type),
        "principal": record.principal,
        "host": record.host,
        "operation": code_name(AclOperation, record.operation),
        "permissionType": code_name(AclPermissionType, record.permission_type),
    }


def scram_column(buffer: bytes, rows: Rows) -> Array:
    """Return a struct for each row, null unless the record is of a SCRAM credential. Raises as `acl_column`."""
    at = np.flatnonzero(np.isin(rows.kind, _SCRAM_KINDS))
    found = [_scram(decode_row(buffer, rows, row)) for row in at.tolist()]
    return spread(pa.array(found, SCRAM_TYPE), at, len(rows))


def _scram(record: MetadataRecord) -> dict[str, object]:
    assert isinstance(record, UserScramCredentialRecord | RemoveUserScramCredentialRecord)  # noqa: S101 - as above
    try:
        mechanism = ScramMechanism(record.mechanism).mechanism_name
    except ValueError:
        mechanism = "UNKNOWN"
    iterations = record.iterations if isinstance(record, UserScramCredentialRecord) else None
    return {"name": record.name, "mechanism": mechanism, "iterations": iterations}


def token_column(buffer: bytes, rows: Rows) -> Array:
    """Return a struct for each row, null unless the record is of a token. Raises as `acl_column`."""
    at = np.flatnonzero(np.isin(rows.kind, _TOKEN_KINDS))
    found = [_token(decode_row(buffer, rows, row)) for row in at.tolist()]
    return spread(pa.array(found, TOKEN_TYPE), at, len(rows))


def _token(record: MetadataRecord) -> dict[str, object]:
    if isinstance(record, RemoveDelegationTokenRecord):
        return {"tokenId": record.token_id}
    assert isinstance(record, DelegationTokenRecord)  # noqa: S101 - as above
    return {
        "tokenId": record.token_id,
        "owner": record.owner,
        "requester": record.requester,
        "renewers": record.renewers,
        "issueTimestamp": _time(record.issue_timestamp),
        "expirationTimestamp": _time(record.expiration_timestamp),
        "maxTimestamp": _time(record.max_timestamp),
    }


def _time(millis: int) -> int | None:
    micros, known = micros_of(np.array([millis], np.int64))
    return int(micros[0]) if known[0] else None


def decode_row(buffer: bytes, rows: Rows, row: int) -> MetadataRecord:
    """Return the record of one row, by the scalar decoder.

    Raises:
        DecodeError: it is damaged; with the position in the buffer and the offset.

    """
    start = int(rows.value_start[row])
    try:
        return decode_record(buffer[start : rows.value_end[row]])
    except DecodeError as e:
        raise e.at(offset=int(rows.offset[row]), base=start) from None


def spread(dense: Array, at: Int64s, count: int) -> Array:
    """Return an array of `count` rows: those of `dense` at the rows `at`, the others null."""
    if not len(at):
        nothing: Array = pa.nulls(count, dense.type)
        return nothing
    index = np.full(count, -1, np.int64)
    index[at] = np.arange(len(at))
    if len(at) == count and (at == np.arange(count)).all():
        return dense
    return dense.take(pa.array(index, pa.int64(), mask=index < 0))
