"""ACLs and the intervals in which they were in force, in the compact form that is broadcast to workers."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Self

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.keys import compact
from aclog.metalog.acl_columns import AclColumns, read_acls
from aclog.metalog.records import FRAME_VERSION, RecordType
from aclog.metalog.vectors import Int64s
from aclog.usage.arrow.acl_structs import ACL_FIELDS, acl_structs
from aclog.usage.decisions.kafka_times import KafkaTimes

RULE_COLUMNS = (*ACL_FIELDS, "id")
"""The columns of a table of ACLs, all of them text; `id` may be null."""

ALWAYS, FOREVER = -(1 << 62), 1 << 62
"""In place of null in `visible_from` and `visible_to`, in ms since 1970; times 1000 they would overflow int64."""

_NUMBER_BYTES = 8
_REST_OF_ID = bytes(16 - _NUMBER_BYTES)
_HEAD = bytes((FRAME_VERSION, RecordType.ACCESS_CONTROL_ENTRY_RECORD, 0))
_NO_TAGS = b"\0"


@frozen(eq=False, kw_only=True)
class AclIntervals:
    """n intervals, numbered by ordinal: the row of the table that they were made from.

    A content (an ACL without its id) is held once, however often it was added and removed: as the record of a metadata
    log, with the content's number in place of the id. All of it is flat buffers, quick to broadcast and to unpickle: a
    million ACLs take about 100 MB.
    """

    records: bytes
    record_ends: Int64s
    content_of: Int32s
    """By ordinal: the number of the ACL's content."""
    visible_from: Int64s
    visible_to: Int64s
    """By ordinal, in ms since 1970: an access at time T is decided by the ACLs with from <= T < to."""
    known_from: int = ALWAYS
    """The time since which the ACLs are known, in ms since 1970."""
    kafka: KafkaTimes | None = None
    """Which Kafka decided when; None: the settings name it."""

    def __len__(self) -> int:
        return len(self.content_of)

    @property
    def is_history(self) -> bool:
        """Whether the ACLs were not all in force at all times."""
        always = bool((self.visible_from == ALWAYS).all() and (self.visible_to == FOREVER).all())
        return self.known_from != ALWAYS or not always

    @classmethod
    def of_table(cls, table: pa.Table, *, known_from: int | None = None) -> Self:
        """Make intervals from the columns RULE_COLUMNS and, unless the ACLs are permanent, visible_from and visible_to.

        Unknown names of enum values become UNKNOWN, as unknown codes do in Kafka.
        """
        content_of, rows = _numbered(table)
        records = _records(table.select(ACL_FIELDS).take(rows))
        return cls(
            records=b"".join(records),
            record_ends=_ends(records),
            content_of=content_of,
            visible_from=_times(table, "visible_from", ALWAYS),
            visible_to=_times(table, "visible_to", FOREVER),
            known_from=ALWAYS if known_from is None else known_from,
        )

    @property
    def columns(self) -> AclColumns:
        """The contents, by number, as columns over `records`; the number is in the first bytes of the id."""
        starts = np.concatenate((np.zeros(min(len(self.record_ends), 1), np.int64), self.record_ends[:-1]))
        return read_acls(self.records, starts, self.record_ends)[0]


def rule_table(image: AclsImage) -> pa.Table:
    """Return all ACLs of an image in the columns RULE_COLUMNS."""
    values = list(image.records())
    buffer, ends = b"".join(values), _ends(values)
    columns, odd = read_acls(buffer, ends - np.fromiter(map(len, values), np.int64, len(values)), ends)
    if len(odd):  # records with unknown tagged fields, rare: take the slow path for all
        rows = [rule.to_dict() for rule in image]
        return pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in RULE_COLUMNS})
    table = pa.Table.from_struct_array(acl_structs(buffer, columns)).select(RULE_COLUMNS)
    if image.index.base.has_ids:
        return table
    # ACLs read from JSON lines or the admin API have no ids, and made-up ones must not be shown
    return table.set_column(len(RULE_COLUMNS) - 1, "id", pa.nulls(len(table), pa.string()))


def numbers_of_ids(ids: Any) -> Int32s:
    """Return the numbers of contents from the (n, 16) bytes of their ids."""
    return np.ascontiguousarray(ids[:, :_NUMBER_BYTES]).view(">u8")[:, 0].astype(np.int32)


def _records(contents: pa.Table) -> list[bytes]:
    """Return the contents as records, assembled from encoded parts: ten times as fast as encoding object by object."""
    kinds, names, patterns, principals, hosts, operations, permissions = (
        [encoded[code] for code in codes]
        for encoded, codes in (
            _parts(contents, "resourceType", lambda name: _code(ResourceType, name)),
            _parts(contents, "resourceName", compact),
            _parts(contents, "patternType", lambda name: _code(PatternType, name)),
            _parts(contents, "principal", compact),
            _parts(contents, "host", compact),
            _parts(contents, "operation", lambda name: _code(AclOperation, name)),
            _parts(contents, "permissionType", lambda name: _code(AclPermissionType, name)),
        )
    )
    ids = (number.to_bytes(_NUMBER_BYTES) + _REST_OF_ID for number in range(len(contents)))
    parts = (ids, kinds, names, patterns, principals, hosts, operations, permissions)  # in the order of the schema
    rows = zip(*parts, strict=True)
    return [b"".join((_HEAD, *row, _NO_TAGS)) for row in rows]


def _parts(contents: pa.Table, name: str, encode: Callable[[str], bytes]) -> tuple[list[bytes], list[int]]:
    """Return the encoded distinct values of a column, and the index of each row's value."""
    column = contents.column(name).combine_chunks().dictionary_encode()
    texts: list[str] = column.dictionary.to_pylist()  # type: ignore[assignment]  # there are no nulls
    return [encode(text) for text in texts], np.asarray(column.indices).tolist()


def _code(kind: type[IntEnum], name: str) -> bytes:
    return bytes((kind.__members__.get(name, 0),))


def _numbered(table: pa.Table) -> tuple[Int32s, Int64s]:
    """Return the number of each row's content, and a row for each content."""
    codes = np.zeros(len(table), np.int64)
    for name in ACL_FIELDS:
        column = table.column(name).combine_chunks().dictionary_encode()
        size = max(len(column.dictionary), 1)
        codes = codes * size + np.asarray(column.indices).astype(np.int64)
        _, codes = np.unique(codes, return_inverse=True)
    _, rows = np.unique(codes, return_index=True)
    return codes.astype(np.int32), rows.astype(np.int64)


def _ends(values: list[bytes]) -> Int64s:
    return np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))


def _times(table: pa.Table, name: str, missing: int) -> Int64s:
    if name not in table.schema.names:
        return np.full(len(table), missing, np.int64)
    return np.asarray(table.column(name).cast(pa.int64()).fill_null(pa.scalar(missing))).astype(np.int64)
