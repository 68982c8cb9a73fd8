"""Accesses in Parquet files of any table with the columns of a request, whatever their types."""

from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from aclog.authorizer.access_reject import Reason
from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_batch import (
    LOGGED_DECISION,
    READ_COLUMNS,
    READ_SCHEMA,
    TIME_TYPE,
    TIMESTAMP,
    AccessBatch,
)
from aclog.usage.accesses.access_times import local_micros, times_of_millis, times_of_texts
from aclog.usage.accesses.parquet_parts import MALFORMED, ParquetPart, read_columns
from aclog.usage.accesses.unread_objects import note_text
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.unread import UnreadCounter, UnreadSpan

_DECISIONS: Final = pa.array(["ALLOWED", "DENIED"])
_LINE, _REASON = "line", "reason"
"""Columns of a table of rejects, as `spark ingest` writes it beside its accesses."""


def read_parquet(part: ParquetPart, zone: tzinfo) -> Iterator[AccessBatch]:
    """Read a part; `zone` is that of times without one. A table of rejects has no accesses, but unread ones.

    Raises:
        ConfigError: a column of a request is missing, or one has a type that cannot be read; damage.
        OSError: a file is gone.

    """
    for path, batch in read_columns(part, [*READ_COLUMNS, MALFORMED, _LINE, _REASON]):
        names = set(batch.schema.names)
        is_rejects = {_LINE, _REASON} <= names and names.isdisjoint(REQUEST_COLUMNS)
        yield _of_rejects(batch, zone) if is_rejects else _of_batch(batch, path, zone)


def _of_batch(batch: pa.RecordBatch, path: str, zone: tzinfo) -> AccessBatch:
    names = batch.schema.names
    if missing := [name for name in REQUEST_COLUMNS if name not in names]:
        raise ConfigError(f"{path}: no column {missing[0]!r}: expected {', '.join(REQUEST_COLUMNS)}")
    columns = {name: _text(batch, name) for name in READ_COLUMNS if name != TIMESTAMP}
    given = batch.column(TIMESTAMP) if TIMESTAMP in names else pa.nulls(len(batch), TIME_TYPE)
    columns[TIMESTAMP] = _times(given, path, zone)
    bad = {
        Reason.MALFORMED: pc.is_valid(batch.column(MALFORMED)) if MALFORMED in names else None,
        Reason.BAD_TIMESTAMP: pc.and_(pc.is_null(columns[TIMESTAMP]), pc.is_valid(given)),
        Reason.BAD_DECISION: pc.invert(
            pc.or_(pc.is_null(columns[LOGGED_DECISION]), pc.is_in(columns[LOGGED_DECISION], _DECISIONS))
        ),
    }
    rows: Any = pa.record_batch([columns[name] for name in READ_COLUMNS], names=list(READ_COLUMNS))
    rejects, good, unread = Counter[Reason](), None, UnreadCounter()
    for reason, mask in bad.items():
        if mask is not None and pc.any(mask).as_py():
            fresh = mask if good is None else pc.and_(mask, good)
            rejects[reason] = pc.sum(fresh).as_py() or 0
            good = pc.invert(mask) if good is None else pc.and_(good, pc.invert(mask))
            if reason is Reason.MALFORMED:
                for line in batch.filter(fresh).column(MALFORMED).to_pylist():
                    note_text(unread, reason, str(line), zone)
            else:
                _note_rows(unread, rows.filter(fresh), reason)
    return AccessBatch(rows=rows if good is None else rows.filter(good), rejects=rejects, unread=unread.found)


def _of_rejects(batch: pa.RecordBatch, zone: tzinfo) -> AccessBatch:
    rejects, unread = Counter[Reason](), UnreadCounter()
    reasons: list[Any] = batch.column(_REASON).to_pylist()
    for line, text in zip(batch.column(_LINE).to_pylist(), reasons, strict=True):
        reason = Reason(text) if text in list(Reason) else Reason.UNREADABLE
        rejects[reason] += 1
        note_text(unread, reason, str(line), zone)
    nothing = pa.RecordBatch.from_pylist([], schema=READ_SCHEMA)
    return AccessBatch(rows=nothing, rejects=rejects, unread=unread.found)


def _note_rows(unread: UnreadCounter, rows: pa.RecordBatch, reason: Reason) -> None:
    """Count rows with a principal, and perhaps a time and a decision."""
    columns = [rows.column(REQUEST_COLUMNS[0]), rows.column(LOGGED_DECISION), rows.column(TIMESTAMP).cast(pa.int64())]
    for principal, decision, time in zip(*(column.to_pylist() for column in columns), strict=True):
        known: Any = decision if decision in {"ALLOWED", "DENIED"} else None
        unread.add(principal, known, reason, UnreadSpan(1, time, time))


def _text(batch: pa.RecordBatch, name: str) -> Any:
    if name not in batch.schema.names:
        return pa.nulls(len(batch), pa.string())
    column = batch.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def _times(given: Any, path: str, zone: tzinfo) -> Any:
    kind = given.type
    if pa.types.is_dictionary(kind):
        given, kind = given.dictionary_decode(), kind.value_type
    if pa.types.is_timestamp(kind):
        times = given.cast(pa.timestamp("us", tz=kind.tz), safe=False)
        return times.cast(TIME_TYPE) if kind.tz is not None else local_micros(times, zone)
    if pa.types.is_integer(kind):
        return times_of_millis(given)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return times_of_texts(given.cast(pa.string()), zone)
    if pa.types.is_null(kind):
        return given.cast(TIME_TYPE)
    raise ConfigError(f"{path}: column timestamp is of type {kind}: expected a timestamp, ms as an integer, or text")
