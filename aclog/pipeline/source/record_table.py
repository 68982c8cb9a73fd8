"""Whole batches of a log as Arrow record batches of the table (aclog.pipeline.source.schema)."""

from collections.abc import Callable, Iterator
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from attrs import fields, frozen

from aclog.metalog.batch_scan import BatchColumns
from aclog.metalog.json_form import may_hold_secret
from aclog.metalog.record_schemas import SCHEMAS
from aclog.metalog.records import OpaqueRecord, RecordType
from aclog.metalog.vectors import Bools, Int64s
from aclog.pipeline.source.row_selection import RowSelection, micros_of
from aclog.pipeline.source.rows import CONTROL_KIND, Rows, kind_name, read_rows
from aclog.pipeline.source.schema import LOG_SCHEMA
from aclog.pipeline.source.structs import Array, acl_column, decode_row, scram_column, spread, token_column
from aclog.usage.arrow.slices import slices

MOST_ROWS = 1 << 16
"""The maximum number of rows in an Arrow batch."""

_OF_NODES = {
    RecordType.REGISTER_BROKER_RECORD,
    RecordType.UNREGISTER_BROKER_RECORD,
    RecordType.FENCE_BROKER_RECORD,
    RecordType.UNFENCE_BROKER_RECORD,
    RecordType.BROKER_REGISTRATION_CHANGE_RECORD,
    RecordType.UNREGISTER_CONTROLLER_RECORD,
}
"""Records that say nothing about access: their bytes are in the column `opaque`, as are those of topics."""

_NOT_OPAQUE = np.array(sorted(SCHEMAS.keys() - _OF_NODES), np.int64)
_WITHOUT_STRUCT = np.array(
    [
        RecordType.FEATURE_LEVEL_RECORD,
        RecordType.NO_OP_RECORD,
        RecordType.BEGIN_TRANSACTION_RECORD,
        RecordType.END_TRANSACTION_RECORD,
        RecordType.ABORT_TRANSACTION_RECORD,
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
    for part in _parts(buffer, batches, all_rows.take(_kept(all_rows, selection))):
        yield _record_batch(part, schema)


def take_batches(batches: BatchColumns, kept: Bools | slice) -> BatchColumns:
    """Return some of these batches, by a mask or a slice."""
    return BatchColumns(**{each.name: getattr(batches, each.name)[kept] for each in fields(BatchColumns)})


def _parts(buffer: bytes, batches: BatchColumns, rows: Rows) -> Iterator[_Part]:
    for first in range(0, len(rows), MOST_ROWS):
        yield _Part(buffer=buffer, batches=batches, rows=rows.take(slice(first, first + MOST_ROWS)))


def _kept(rows: Rows, selection: RowSelection) -> Bools:
    kept = selection.rows(rows.offset)
    if selection.types is not None:
        kinds, place = np.unique(rows.kind, return_inverse=True)
        kept &= np.array([kind_name(kind) in selection.types for kind in kinds.tolist()], np.bool_)[place]
    return kept


def _record_batch(part: _Part, schema: pa.Schema) -> pa.RecordBatch:
    if "opaque" in schema.names:
        _check_others(part)
    return pa.RecordBatch.from_arrays([_COLUMNS[name](part) for name in schema.names], schema=schema)


def _timestamp(part: _Part) -> Array:
    micros, known = micros_of(part.batches.max_timestamp[part.rows.batch])
    return pa.array(micros, mask=~known).cast(LOG_SCHEMA.field("timestamp").type)


def _record_type(part: _Part) -> Array:
    kinds, place = np.unique(part.rows.kind, return_inverse=True)
    return pa.array([kind_name(kind) for kind in kinds.tolist()], pa.string()).take(place.astype(np.int64))


def _opaque(part: _Part) -> Array:
    rows = part.rows
    opaque = (rows.kind < CONTROL_KIND) & ~np.isin(rows.kind, _NOT_OPAQUE)
    # a config may be a password: it is only shown if its name says that it is not
    for row in np.flatnonzero(rows.kind == RecordType.CONFIG_RECORD).tolist():
        value = part.buffer[rows.value_start[row] : rows.value_end[row]]
        record = OpaqueRecord(api_key=int(rows.kind[row]), version=int(rows.version[row]), value=value)
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


_COLUMNS: MappingProxyType[str, Callable[[_Part], Array]] = MappingProxyType(
    {
        "offset": lambda part: pa.array(part.rows.offset),
        "batch_offset": lambda part: pa.array(part.batches.base_offset[part.rows.batch]),
        "batch_end_offset": lambda part: pa.array(
            (part.batches.base_offset + part.batches.record_count)[part.rows.batch]
        ),
        "leader_epoch": lambda part: _int32(part.batches.leader_epoch[part.rows.batch]),
        "timestamp": _timestamp,
        "record_type": _record_type,
        "version": lambda part: _int32(part.rows.version),
        "acl": lambda part: acl_column(part.buffer, part.rows),
        "scram": lambda part: scram_column(part.buffer, part.rows),
        "token": lambda part: token_column(part.buffer, part.rows),
        "opaque": _opaque,
        "damage": lambda part: pa.nulls(len(part.rows), pa.string()),
    }
)
