"""Records of a log as rows of a table, in Arrow."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from attrs import evolve, fields
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from aclog.authorizer.acl import code_name
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.credentials.scram import ScramMechanism
from aclog.metalog import control_records, records
from aclog.metalog.batches import BatchColumns, ValueColumns, read_header, read_values, scan_values
from aclog.metalog.codec import SCHEMAS, decode_record, read_frame
from aclog.metalog.columns import Bools, Int64s, bytes_at, read_acls, slices_at
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import uuid_text
from aclog.metalog.text_forms import may_hold_secret, type_name
from aclog.metalog.values import frozen
from aclog.pipeline.spark_versions import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from aclog.usage.arrow import ACL_CODES, ACL_TYPE, acl_structs, has_unnamed_code, id_texts, slices

# The schema of a metadata log as a table, in Arrow; Spark's types are derived from it.


TIME = pa.timestamp("us", tz="UTC")

SCRAM_TYPE = pa.struct([("name", pa.string()), ("mechanism", pa.string()), ("iterations", pa.int32())])
"""A SCRAM credential without salt and keys. A removal has no iterations."""

TOKEN_TYPE = pa.struct(
    [
        ("tokenId", pa.string()),
        ("owner", pa.string()),
        ("requester", pa.string()),
        ("renewers", pa.list_(pa.field("element", pa.string()))),
        ("issueTimestamp", TIME),
        ("expirationTimestamp", TIME),
        ("maxTimestamp", TIME),
    ]
)
"""A delegation token; its record has no HMAC. A removal only has the id."""

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("offset", pa.int64()),
    ("batch_offset", pa.int64()),
    ("batch_end_offset", pa.int64()),
    ("leader_epoch", pa.int32()),
    ("timestamp", TIME),
    ("record_type", pa.string()),
    ("version", pa.int32()),
    ("acl", ACL_TYPE),
    ("scram", SCRAM_TYPE),
    ("token", TOKEN_TYPE),
    ("opaque", pa.binary()),
    ("damage", pa.string()),
]

LOG_SCHEMA = pa.schema(_COLUMNS)
"""One row per record; `batch_offset` is the first offset of its batch, `batch_end_offset` the one after its last, and
`timestamp` its max timestamp, null if it has none (-1).

`record_type` is the name that `aclog log dump` prints. `opaque` is the value of any other record, such as a topic's.
`damage` is only set in a row of type DAMAGED, which replaces bytes that were set aside.
"""

DAMAGED = "DAMAGED"
"""The record type of a row in place of unreadable bytes or lost records."""


def columns_of(names: Sequence[str]) -> pa.Schema:
    """Return the schema with these columns only, in this order. Raises KeyError: an unknown column."""
    return pa.schema([LOG_SCHEMA.field(name) for name in names])


def damage_row(schema: pa.Schema, offset: int, text: str) -> pa.RecordBatch:
    """Return the row in place of a damaged range: its first missing offset, the problem and its position."""
    values = {"offset": offset, "record_type": DAMAGED, "damage": text}
    return pa.RecordBatch.from_pylist([{name: values.get(name) for name in schema.names}], schema=schema)


# Column comments of a metadata log, which DESCRIBE TABLE and data catalogues show.


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
    "owner": "the principal that the token authenticates",
    "requester": "the principal that requested the token",
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


# The rows that a query's filters select, decided from batch headers and offsets before records are decoded.


MAX_OFFSET = (1 << 63) - 1
_MAX_MICROS = (1 << 63) - 1
_MIN_MICROS = -(1 << 63)
_MAX_MILLIS = _MAX_MICROS // 1000

_T = TypeVar("_T")

NO_TIME = -1
"""The timestamp (ms) of a batch without one."""


@frozen(kw_only=True)
class RowSelection:
    """Rows that meet all of these conditions: bounds are inclusive, None is no condition, times are us since 1970.

    As in SQL, a batch without a timestamp meets no condition on it.
    """

    first_offset: int = 0
    last_offset: int = MAX_OFFSET
    offsets: frozenset[int] | None = None
    first_time: int = _MIN_MICROS
    last_time: int = _MAX_MICROS
    times: frozenset[int] | None = None
    timed: bool = False
    """Whether rows must have a timestamp."""
    types: frozenset[str] | None = None

    def with_offsets(
        self, first: int = 0, last: int = MAX_OFFSET, among: Iterable[int] | None = None
    ) -> "RowSelection":
        """Narrow the selection to offsets from `first` to `last`, and to those in `among`."""
        return evolve(
            self,
            first_offset=max(self.first_offset, first),
            last_offset=min(self.last_offset, last),
            offsets=_both(self.offsets, among),
        )

    def with_times(
        self, first: int = _MIN_MICROS, last: int = _MAX_MICROS, among: Iterable[int] | None = None
    ) -> "RowSelection":
        """Narrow the selection to timestamps from `first` to `last`, and to those in `among`."""
        return evolve(
            self,
            first_time=max(self.first_time, first),
            last_time=min(self.last_time, last),
            times=_both(self.times, among),
            timed=True,
        )

    def with_types(self, types: Iterable[str]) -> "RowSelection":
        """Narrow the selection to records of these types."""
        return evolve(self, types=_both(self.types, types))

    def between(self, offset: int, end: int) -> bool:
        """Return whether an offset from `offset` to before `end` may be selected."""
        if max(offset, self.first_offset) > min(end - 1, self.last_offset):
            return False
        return self.offsets is None or any(offset <= each < end for each in self.offsets)

    def batches(self, batches: BatchColumns) -> Bools:
        """Return which batches may hold a selected row."""
        first, end = batches.base_offset, batches.end_offset
        selected: Bools = (first <= self.last_offset) & (end > self.first_offset)
        if self.offsets is not None:
            among = _sorted(self.offsets)
            selected &= np.searchsorted(among, first) < np.searchsorted(among, end)
        if self.timed:
            micros, timed = micros_of(batches.max_timestamp)
            selected &= timed & (micros >= self.first_time) & (micros <= self.last_time)
            if self.times is not None:
                selected &= np.isin(micros, _sorted(self.times))
        return selected

    def rows(self, offsets: Int64s) -> Bools:
        """Return which of these offsets are selected."""
        selected: Bools = (offsets >= self.first_offset) & (offsets <= self.last_offset)
        if self.offsets is not None:
            selected &= np.isin(offsets, _sorted(self.offsets))
        return selected

    def untimed(self, offset: int, record_type: str) -> bool:
        """Return whether a row with this offset and type and without a timestamp is selected."""
        return (
            not self.timed
            and self.first_offset <= offset <= self.last_offset
            and (self.offsets is None or offset in self.offsets)
            and (self.types is None or record_type in self.types)
        )


def micros_of(millis: Int64s) -> tuple[Int64s, Bools]:
    """Return (microseconds, which rows have a time); -1 and what a Spark timestamp cannot hold count as no time."""
    timed: Bools = (millis != NO_TIME) & (millis <= _MAX_MILLIS) & (millis >= -_MAX_MILLIS)
    return np.where(timed, millis, 0) * 1000, timed


def _both(current: frozenset[_T] | None, among: Iterable[_T] | None) -> frozenset[_T] | None:
    if among is None:
        return current
    return frozenset(among) if current is None else current & frozenset(among)


def _sorted(numbers: frozenset[int]) -> Int64s:
    return np.array(sorted(each for each in numbers if _MIN_MICROS <= each <= _MAX_MICROS), np.int64)


# Spark's filters on offset, timestamp and record_type as row selections, which apply them in full.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def push(selection: RowSelection, one: Filter) -> RowSelection | None:
    """Return the selection narrowed by a filter, None if the filter is left to Spark."""
    match one:
        case IsNotNull(attribute=("offset",) | ("record_type",)):
            return selection
        case IsNotNull(attribute=("timestamp",)):
            return selection.with_times()
        case In(attribute=(name,), value=values):
            return _among(selection, name, list(values))
        case EqualTo(attribute=(name,), value=value):
            return _among(selection, name, [value])
        case GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
            return _bound(selection, one)
    return None


def _among(selection: RowSelection, name: str, values: list[Any]) -> RowSelection | None:
    values = [value for value in values if value is not None]  # a null equals nothing
    if name == "record_type" and all(isinstance(value, str) for value in values):
        return selection.with_types(values)
    numbers = [_number(name, value) for value in values]
    members = [number for number in numbers if number is not None]
    if len(members) < len(numbers) or name not in {"offset", "timestamp"}:
        return None
    return selection.with_offsets(among=members) if name == "offset" else selection.with_times(among=members)


def _bound(
    selection: RowSelection, one: GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
) -> RowSelection | None:
    name = one.attribute[0] if len(one.attribute) == 1 else ""
    number = _number(name, one.value)
    if number is None:
        return None
    number += isinstance(one, GreaterThan) - isinstance(one, LessThan)
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        return selection.with_offsets(first=number) if name == "offset" else selection.with_times(first=number)
    return selection.with_offsets(last=number) if name == "offset" else selection.with_times(last=number)


def _number(name: str, value: Any) -> int | None:
    """Return an offset, or microseconds since 1970; None for a value of any other type."""
    if name == "offset" and isinstance(value, int):
        return value
    if name == "timestamp" and isinstance(value, datetime):
        # a naive datetime is in the local zone of this process
        aware = value if value.tzinfo is not None else value.astimezone(UTC)
        return (aware - _EPOCH) // _MICROSECOND
    return None


# The records of many batches as columns of numbers: position, record type and version of each.
#
# Values that the vectorized code does not recognize as plain are left to the scalar decoders, which accept or reject
# them.


CONTROL_KIND = 1 << 16
"""Added to the type of a control record, to distinguish it from an apiKey."""

_OPAQUE_CONTROL_KIND = 1 << 18
"""Added to the type of a control record that is not interpreted: any int16."""

_INTERPRETED = np.array(sorted(SCHEMAS), np.int64)
_CONTROL_NAMES = MappingProxyType(
    {
        int(each.control_type): each.__name__
        for each in (
            control_records.LeaderChange,
            control_records.SnapshotHeader,
            control_records.SnapshotFooter,
            control_records.KRaftVersion,
            control_records.KRaftVoters,
        )
    }
)


@frozen(kw_only=True, eq=False)
class Rows:
    """n records in the order of the log, as int64 columns: batch number, offset, slice of the value, type, version.

    `kind` is the record's apiKey, or CONTROL_KIND or more for a control record, whose slice is empty.
    """

    batch: Int64s
    offset: Int64s
    value_start: Int64s
    value_end: Int64s
    kind: Int64s
    version: Int64s

    def __len__(self) -> int:
        return len(self.offset)

    def take(self, rows: Int64s | Bools | slice) -> Self:
        """Return some of these rows, by indices, a mask or a slice."""
        return type(self)(**{each.name: getattr(self, each.name)[rows] for each in fields(Rows)})


def kind_name(kind: int) -> str:
    """Return the name of a row's type, as printed by `aclog log dump`."""
    if kind < CONTROL_KIND:
        return type_name(kind)
    if kind in range(CONTROL_KIND, CONTROL_KIND + len(_CONTROL_NAMES) + 2):
        return _CONTROL_NAMES[kind - CONTROL_KIND]
    return f"UNKNOWN_{kind - _OPAQUE_CONTROL_KIND}"


def read_rows(buffer: bytes, batches: BatchColumns) -> Rows:
    """Return every record of these batches, whose headers and CRCs have been checked.

    Raises:
        DecodeError: damage in the structure of a batch, a control record or a frame, or an interpreted record of a
            version above 0; with the position in the buffer and the offset.

    """
    values, first_odd = scan_values(buffer, batches)
    data = _data_rows(buffer, values)
    others = [] if first_odd is None else [_data_rows(buffer, _scalar_values(buffer, batches, first_odd))]
    if batches.is_control.any():
        others.append(_control_rows(buffer, batches))
    if not others:
        return data
    parts = (data, *others)
    together = Rows(
        **{each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Rows)}
    )
    # stable: records of one batch are in order already
    return together.take(np.argsort(together.batch, kind="stable"))


def _scalar_values(buffer: bytes, batches: BatchColumns, first: int) -> ValueColumns:
    """Return the values of all data batches from number `first` on, by the scalar decoder."""
    spans: list[tuple[int, int, int, int]] = []
    for number in range(first, len(batches)):
        if not batches.is_control[number]:
            position = int(batches.position[number])
            header = read_header(buffer, position)
            for offset, (start, value) in enumerate(read_values(buffer, position, header), header.base_offset):
                spans.append((number, offset, start, start + len(value)))
    columns = np.array(spans, np.int64).reshape(-1, 4).T
    return ValueColumns(batch=columns[0], offset=columns[1], value_start=columns[2], value_end=columns[3])


def _data_rows(buffer: bytes, values: ValueColumns) -> Rows:
    data = np.frombuffer(buffer, np.uint8)
    start, end = values.value_start, values.value_end
    kind = bytes_at(data, start + 1).astype(np.int64)
    version = bytes_at(data, start + 2).astype(np.int64)
    # type and version are varints, of one byte in all plain records
    plain = (bytes_at(data, start) == records.FRAME_VERSION) & (kind < 0x80) & (version < 0x80) & (end - start >= 3)
    plain &= (version == 0) | ~np.isin(kind, _INTERPRETED)
    for row in np.flatnonzero(~plain).tolist():
        value = buffer[start[row] : end[row]]
        try:
            kind[row], version[row], _ = read_frame(value)
            if version[row] and kind[row] in SCHEMAS:
                decode_record(value)  # raises: from a newer Kafka version
        except DecodeError as e:
            raise e.at(offset=int(values.offset[row]), base=int(start[row])) from None
    return Rows(batch=values.batch, offset=values.offset, value_start=start, value_end=end, kind=kind, version=version)


def _control_rows(buffer: bytes, batches: BatchColumns) -> Rows:
    columns = np.array(list(_controls(buffer, batches)), np.int64).reshape(-1, 4).T
    nowhere = np.zeros(columns.shape[1], np.int64)
    return Rows(
        batch=columns[0],
        offset=columns[1],
        value_start=nowhere,
        value_end=nowhere,
        kind=columns[2],
        version=columns[3],
    )


def _controls(buffer: bytes, batches: BatchColumns) -> Iterator[tuple[int, int, int, int]]:
    for number in np.flatnonzero(batches.is_control).tolist():
        position = int(batches.position[number])
        header = read_header(buffer, position)
        for offset, record in enumerate(
            control_records.decode_control_batch(buffer, position, header), header.base_offset
        ):
            yield number, offset, *_control_kind(record)


def _control_kind(record: control_records.ControlRecord) -> tuple[int, int]:
    if isinstance(record, control_records.OpaqueControlRecord):
        return _OPAQUE_CONTROL_KIND + record.control_type, int.from_bytes(record.key[:2], signed=True)
    return CONTROL_KIND + record.control_type, record.version


# Records as Arrow structs: ACLs from positions in the bytes; credentials and tokens, which are few, one by one.


Array: TypeAlias = "pa.Array[Any]"

_REMOVE_SIZE = 20
_SCRAM_KINDS = (records.RecordType.USER_SCRAM_CREDENTIAL_RECORD, records.RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD)
_TOKEN_KINDS = (records.RecordType.DELEGATION_TOKEN_RECORD, records.RecordType.REMOVE_DELEGATION_TOKEN_RECORD)


def acl_column(buffer: bytes, rows: Rows) -> Array:
    """Return a struct for each row, null unless the record adds or removes an ACL.

    Raises:
        DecodeError: a damaged record, with the position in the buffer and the offset.

    """
    added = np.flatnonzero(rows.kind == records.RecordType.ACCESS_CONTROL_ENTRY_RECORD)
    removed = np.flatnonzero(rows.kind == records.RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD)
    acls, undecoded = read_acls(buffer, rows.value_start[added], rows.value_end[added])
    plain = _plain_removals(buffer, rows.take(removed))
    odd = np.concatenate((added[undecoded], removed[~plain]))
    parts = [
        acl_structs(buffer, acls),
        _removals(buffer, rows.value_start[removed[plain]]),
        _odd_acls(buffer, rows, odd),
    ]
    at = np.concatenate((np.delete(added, undecoded), removed[plain], odd))
    return spread(pa.concat_arrays(parts), at, len(rows))


UNKNOWN_CODES: Final = "unknown_codes"
"""A column beside those of LOG_SCHEMA: whether a record adds an ACL with a code that has no name."""


def unknown_code_column(buffer: bytes, rows: Rows) -> Array:
    """Return UNKNOWN_CODES, without the texts of ACLs. Raises as `acl_column`."""
    unknown = np.zeros(len(rows), np.bool_)
    added = np.flatnonzero(rows.kind == records.RecordType.ACCESS_CONTROL_ENTRY_RECORD)
    acls, undecoded = read_acls(buffer, rows.value_start[added], rows.value_end[added])
    unknown[np.delete(added, undecoded)] = has_unnamed_code(acls)
    removed = np.flatnonzero(rows.kind == records.RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD)
    odd_removals = removed[~_plain_removals(buffer, rows.take(removed))]
    for row in np.concatenate((added[undecoded], odd_removals)).tolist():
        unknown[row] = AclOperation.UNKNOWN.name in [
            _acl(decode_row(buffer, rows, row)).get(name) for name in ACL_CODES
        ]
    return pa.array(unknown)


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


def _acl(record: records.MetadataRecord) -> dict[str, str]:
    if isinstance(record, records.RemoveAccessControlEntryRecord):
        return {"id": uuid_text(record.id)}
    assert isinstance(record, records.AccessControlEntryRecord)  # noqa: S101 - by the row's kind
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
    structs = [_scram(decode_row(buffer, rows, row)) for row in at.tolist()]
    return spread(pa.array(structs, SCRAM_TYPE), at, len(rows))


def _scram(record: records.MetadataRecord) -> dict[str, object]:
    assert isinstance(record, records.UserScramCredentialRecord | records.RemoveUserScramCredentialRecord)  # noqa: S101 - as above
    try:
        mechanism = ScramMechanism(record.mechanism).mechanism_name
    except ValueError:
        mechanism = "UNKNOWN"
    iterations = record.iterations if isinstance(record, records.UserScramCredentialRecord) else None
    return {"name": record.name, "mechanism": mechanism, "iterations": iterations}


def token_column(buffer: bytes, rows: Rows) -> Array:
    """Return a struct for each row, null unless the record is of a token. Raises as `acl_column`."""
    at = np.flatnonzero(np.isin(rows.kind, _TOKEN_KINDS))
    structs = [_token(decode_row(buffer, rows, row)) for row in at.tolist()]
    return spread(pa.array(structs, TOKEN_TYPE), at, len(rows))


def _token(record: records.MetadataRecord) -> dict[str, object]:
    if isinstance(record, records.RemoveDelegationTokenRecord):
        return {"tokenId": record.token_id}
    assert isinstance(record, records.DelegationTokenRecord)  # noqa: S101 - as above
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
    micros, timed = micros_of(np.array([millis], np.int64))
    return int(micros[0]) if timed[0] else None


def decode_row(buffer: bytes, rows: Rows, row: int) -> records.MetadataRecord:
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


# Whole batches of a log as Arrow record batches of the table (aclog.pipeline.source.rows).


MOST_ROWS = 1 << 16
"""The maximum number of rows in an Arrow batch."""

_OF_NODES = {
    records.RecordType.REGISTER_BROKER_RECORD,
    records.RecordType.UNREGISTER_BROKER_RECORD,
    records.RecordType.FENCE_BROKER_RECORD,
    records.RecordType.UNFENCE_BROKER_RECORD,
    records.RecordType.BROKER_REGISTRATION_CHANGE_RECORD,
    records.RecordType.UNREGISTER_CONTROLLER_RECORD,
}
"""Records that do not affect access: their bytes are in the column `opaque`, as are those of topics."""

_NOT_OPAQUE = np.array(sorted(SCHEMAS.keys() - _OF_NODES), np.int64)
_WITHOUT_STRUCT = np.array(
    [
        records.RecordType.FEATURE_LEVEL_RECORD,
        records.RecordType.NO_OP_RECORD,
        records.RecordType.BEGIN_TRANSACTION_RECORD,
        records.RecordType.END_TRANSACTION_RECORD,
        records.RecordType.ABORT_TRANSACTION_RECORD,
        *sorted(_OF_NODES),
    ],
    np.int64,
)
"""Records that are decoded to check them, though no column has their fields."""


@frozen(kw_only=True, eq=False)
class _Part:
    """Some rows, and the bytes and batches that they are part of."""

    buffer: bytes
    batches: BatchColumns
    rows: Rows


def arrow_batches(
    buffer: bytes, batches: BatchColumns, selection: RowSelection, schema: pa.Schema, *, thorough: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the selected rows with the columns of `schema`, in batches of at most MOST_ROWS.

    The batches' headers, CRCs and offsets have been checked. Other rows and columns are not decoded, unless `thorough`:
    then everything is, so that damage is found wherever it is.

    Raises:
        DecodeError: a damaged record, with the position in the buffer and the offset.

    """
    batches = take_batches(batches, selection.batches(batches))
    if not len(batches):
        return
    all_rows = read_rows(buffer, batches)
    if thorough:
        for part in _parts(buffer, batches, all_rows):
            _record_batch(part, LOG_SCHEMA)
    for part in _parts(buffer, batches, all_rows.take(_selected_rows(all_rows, selection))):
        yield _record_batch(part, schema)


def take_batches(batches: BatchColumns, which: Bools | slice) -> BatchColumns:
    """Return some of these batches, by a mask or a slice."""
    return BatchColumns(**{each.name: getattr(batches, each.name)[which] for each in fields(BatchColumns)})


def _parts(buffer: bytes, batches: BatchColumns, rows: Rows) -> Iterator[_Part]:
    for first in range(0, len(rows), MOST_ROWS):
        yield _Part(buffer=buffer, batches=batches, rows=rows.take(slice(first, first + MOST_ROWS)))


def _selected_rows(rows: Rows, selection: RowSelection) -> Bools:
    selected = selection.rows(rows.offset)
    if selection.types is not None:
        kinds, place = np.unique(rows.kind, return_inverse=True)
        selected &= np.array([kind_name(kind) in selection.types for kind in kinds.tolist()], np.bool_)[place]
    return selected


def _record_batch(part: _Part, schema: pa.Schema) -> pa.RecordBatch:
    if "opaque" in schema.names:
        _check_others(part)
    return pa.RecordBatch.from_arrays([_RECORD_COLUMNS[name](part) for name in schema.names], schema=schema)


def _timestamp(part: _Part) -> Array:
    micros, timed = micros_of(part.batches.max_timestamp[part.rows.batch])
    return pa.array(micros, mask=~timed).cast(LOG_SCHEMA.field("timestamp").type)


def _record_type(part: _Part) -> Array:
    kinds, place = np.unique(part.rows.kind, return_inverse=True)
    return pa.array([kind_name(kind) for kind in kinds.tolist()], pa.string()).take(place.astype(np.int64))


def _opaque(part: _Part) -> Array:
    rows = part.rows
    opaque = (rows.kind < CONTROL_KIND) & ~np.isin(rows.kind, _NOT_OPAQUE)
    # a config may be a password: it is shown only if its name excludes that
    for row in np.flatnonzero(rows.kind == records.RecordType.CONFIG_RECORD).tolist():
        value = part.buffer[rows.value_start[row] : rows.value_end[row]]
        record = records.OpaqueRecord(api_key=int(rows.kind[row]), version=int(rows.version[row]), value=value)
        opaque[row] = not may_hold_secret(record)
    at = np.flatnonzero(opaque)
    return spread(slices(part.buffer, rows.value_start[at], rows.value_end[at]), at, len(rows))


def _check_others(part: _Part) -> None:
    """Decode the records without a struct of their own, each distinct value once, as most of them are equal."""
    at = np.flatnonzero(np.isin(part.rows.kind, _WITHOUT_STRUCT))
    if len(at):
        values = slices(part.buffer, part.rows.value_start[at], part.rows.value_end[at])
        codes = values.dictionary_encode().indices.to_numpy()
        for first in np.unique(codes, return_index=True)[1].tolist():
            decode_row(part.buffer, part.rows, int(at[first]))


def _int32(numbers: Int64s) -> Array:
    return pa.array(numbers.astype(np.int32))


_RECORD_COLUMNS: MappingProxyType[str, Callable[[_Part], Array]] = MappingProxyType(
    {
        "offset": lambda part: pa.array(part.rows.offset),
        "batch_offset": lambda part: pa.array(part.batches.base_offset[part.rows.batch]),
        "batch_end_offset": lambda part: pa.array(part.batches.end_offset[part.rows.batch]),
        "leader_epoch": lambda part: _int32(part.batches.leader_epoch[part.rows.batch]),
        "timestamp": _timestamp,
        "record_type": _record_type,
        "version": lambda part: _int32(part.rows.version),
        "acl": lambda part: acl_column(part.buffer, part.rows),
        "scram": lambda part: scram_column(part.buffer, part.rows),
        "token": lambda part: token_column(part.buffer, part.rows),
        "opaque": _opaque,
        UNKNOWN_CODES: lambda part: unknown_code_column(part.buffer, part.rows),
        "damage": lambda part: pa.nulls(len(part.rows), pa.string()),
    }
)
