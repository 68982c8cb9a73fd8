"""Accesses in Parquet files."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import evolve, frozen

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_batch import (
    LOGGED_DECISION,
    READ_COLUMNS,
    READ_SCHEMA,
    TIME_TYPE,
    TIMESTAMP,
    AccessBatch,
    local_micros,
    note_text,
    times_of_millis,
    times_of_texts,
)
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.window import UnreadCounter, UnreadSpan, micros_of

# Tables of accesses in Parquet files, read row group by row group; a few row groups are one piece of work.


TIMESTAMP_COLUMN = "timestamp"
MALFORMED = "_malformed"
"""A column of tables with unreadable lines, which are not plain."""
_COLUMNS = [*REQUEST_COLUMNS, TIMESTAMP_COLUMN]
_BATCH = 1 << 20
"""How many rows are read at once; as codes in columns, about 30 MB."""


@frozen(kw_only=True)
class RowGroups:
    """Some row groups of one Parquet file."""

    path: str
    size: int
    """The size of the file in bytes at the listing."""
    first: int
    end: int
    rows: int
    latest: int | None
    """The latest time in us since 1970, from the file's statistics; None if they have none."""


@frozen(kw_only=True)
class ParquetPart:
    """A piece of work, small to pickle: row groups of one or several files."""

    groups: tuple[RowGroups, ...]

    @property
    def latest(self) -> int | None:
        """The latest time in us since 1970, from the files' statistics; None if they have none."""
        times = [groups.latest for groups in self.groups if groups.latest is not None]
        return max(times) if len(times) == len(self.groups) else None


def plain_parts(paths: Sequence[str], most: int) -> list[ParquetPart] | None:
    """Return the row groups of these files as `parquet_parts`; None if a file is not plain.

    A plain file needs no conversion: the five columns of a request are text, and `timestamp` is a TIMESTAMP of us or ms
    in UTC, under exactly these names. Raises as `parquet_parts`.
    """
    for path in paths:
        with _opened(path) as (file, _):
            if not _is_plain(file.schema_arrow):
                return None
    return parquet_parts(paths, most)


def parquet_parts(paths: Sequence[str], most: int) -> list[ParquetPart]:
    """Return the row groups of these files, in at most `most` pieces with similar numbers of rows.

    Raises:
        ConfigError: a file cannot be read as Parquet.
        OSError: a file was removed, or cannot be read.

    """
    row_groups: list[RowGroups] = []
    for path in paths:
        with _opened(path) as (file, size):
            plain = _is_plain(file.schema_arrow)
            groups = (_row_group(file.metadata, at, path, size, plain) for at in range(file.num_row_groups))
            row_groups += [group for group in groups if group.rows]
    return [ParquetPart(groups=_joined(part)) for part in _spread(row_groups, most)]


def _row_group(metadata: pq.FileMetaData, at: int, path: str, size: int, plain: bool) -> RowGroups:
    group = metadata.row_group(at)
    chunks = (group.column(column) for column in range(group.num_columns))
    latest = next(
        (_latest(chunk.statistics) for chunk in chunks if plain and chunk.path_in_schema == TIMESTAMP_COLUMN), None
    )
    return RowGroups(path=path, size=size, first=at, end=at + 1, rows=group.num_rows, latest=latest)


def _latest(times: Any) -> int | None:
    if times is None or not times.has_min_max:
        return None
    try:
        return micros_of(times.max)
    except (OverflowError, ValueError):  # beyond the years 1 to 9999
        return None


def read_plain(part: ParquetPart, *, only_times: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the columns REQUEST_COLUMNS, dictionary-encoded, and `timestamp`, or only the latter.

    Raises:
        ConfigError: a file's size has changed since the listing, or it is damaged.
        OSError: a file was removed.

    """
    columns = [TIMESTAMP_COLUMN] if only_times else _COLUMNS
    for _, batch in read_columns(part, columns):
        yield batch.select(columns)  # their order may differ between files


def read_columns(part: ParquetPart, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the path and rows with the given columns that its file has. Raises as `read_plain`."""
    for groups in part.groups:
        texts = [name for name in columns if name in REQUEST_COLUMNS]
        with _opened(groups.path, dictionaries=texts) as (file, size):
            if size != groups.size:
                raise ConfigError(f"{groups.path}: replaced by another file while it was being read: run again")
            there = [name for name in columns if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH, list(range(groups.first, groups.end)), there, use_threads=False):
                yield groups.path, batch


def latest_time(part: ParquetPart) -> int | None:
    """Return the latest time in a part, in us since 1970; None if no row has a time. Raises as `read_plain`."""
    latest = None
    for batch in read_plain(part, only_times=True):
        times: Any = batch.column(0).drop_null()
        if len(times):
            newest = int(np.max(np.asarray(times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))))
            latest = newest if latest is None else max(latest, newest)
    return latest


@contextmanager
def _opened(path: str, *, dictionaries: Sequence[str] = ()) -> Iterator[tuple[pq.ParquetFile, int]]:
    """Open a file to read these text columns as dictionaries; also return its size."""
    with pa.OSFile(path, "rb") as source:
        try:
            there = pq.read_schema(source).names if dictionaries else []
            source.seek(0)
            yield (
                pq.ParquetFile(source, read_dictionary=[name for name in dictionaries if name in there]),
                source.size(),
            )
        except pa.ArrowInvalid as error:
            raise ConfigError(f"{path}: not a Parquet file, or damaged: {error}") from error


def _is_plain(schema: pa.Schema) -> bool:
    names = [name.lower() for name in schema.names]
    if any(names.count(name.lower()) != 1 or name not in schema.names for name in _COLUMNS) or MALFORMED in names:
        return False
    time = schema.field(TIMESTAMP_COLUMN).type
    texts = all(_is_text(schema.field(name).type) for name in REQUEST_COLUMNS)
    return texts and pa.types.is_timestamp(time) and time.tz is not None and time.unit in {"us", "ms"}


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
    return pa.types.is_string(value) or pa.types.is_large_string(value)


def _spread(row_groups: Sequence[RowGroups], most: int) -> Iterator[list[RowGroups]]:
    """Yield runs of row groups with similar numbers of rows."""
    share = max(sum(groups.rows for groups in row_groups) / max(most, 1), 1)
    run: list[RowGroups] = []
    count, runs = 0, 0
    for groups in row_groups:
        run.append(groups)
        count += groups.rows
        if count >= share * (runs + 1):
            yield run
            run, runs = [], runs + 1
    if run:
        yield run


def _joined(run: Sequence[RowGroups]) -> tuple[RowGroups, ...]:
    """Return a run in which neighbours in the same file are joined."""
    joined: list[RowGroups] = []
    for groups in run:
        before = joined[-1] if joined else None
        if before is not None and (before.path, before.end) == (groups.path, groups.first):
            both = None if before.latest is None or groups.latest is None else max(before.latest, groups.latest)
            joined[-1] = evolve(before, end=groups.end, rows=before.rows + groups.rows, latest=both)
        else:
            joined.append(groups)
    return tuple(joined)


# Accesses in Parquet files of any table with the columns of a request, of any types.


_DECISIONS: Final = pa.array(["ALLOWED", "DENIED"])
_LINE, _REASON = "line", "reason"
"""Columns of a table of rejects, which `spark ingest` writes beside its accesses."""


def read_parquet(part: ParquetPart, zone: tzinfo) -> Iterator[AccessBatch]:
    """Read a part; `zone` applies to times without one. A table of rejects has only unreadable accesses.

    Raises:
        ConfigError: a column of a request is missing or has an unsupported type; damage.
        OSError: a file was removed.

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
    times = batch.column(TIMESTAMP) if TIMESTAMP in names else pa.nulls(len(batch), TIME_TYPE)
    columns[TIMESTAMP] = _times(times, path, zone)
    bad = {
        Reason.MALFORMED: pc.is_valid(batch.column(MALFORMED)) if MALFORMED in names else None,
        Reason.BAD_TIMESTAMP: pc.and_(pc.is_null(columns[TIMESTAMP]), pc.is_valid(times)),
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
    return AccessBatch(rows=rows if good is None else rows.filter(good), rejects=rejects, unread=unread.total)


def _of_rejects(batch: pa.RecordBatch, zone: tzinfo) -> AccessBatch:
    rejects, unread = Counter[Reason](), UnreadCounter()
    reasons: list[Any] = batch.column(_REASON).to_pylist()
    for line, text in zip(batch.column(_LINE).to_pylist(), reasons, strict=True):
        reason = Reason(text) if text in list(Reason) else Reason.UNREADABLE
        rejects[reason] += 1
        note_text(unread, reason, str(line), zone)
    nothing = pa.RecordBatch.from_pylist([], schema=READ_SCHEMA)
    return AccessBatch(rows=nothing, rejects=rejects, unread=unread.total)


def _note_rows(unread: UnreadCounter, rows: pa.RecordBatch, reason: Reason) -> None:
    """Count rows with a principal, with their time and decision if they have any."""
    columns = [rows.column(REQUEST_COLUMNS[0]), rows.column(LOGGED_DECISION), rows.column(TIMESTAMP).cast(pa.int64())]
    for principal, decision, time in zip(*(column.to_pylist() for column in columns), strict=True):
        outcome: Any = decision if decision in {"ALLOWED", "DENIED"} else None
        unread.add(principal, outcome, reason, UnreadSpan(1, time, time))


def _text(batch: pa.RecordBatch, name: str) -> Any:
    if name not in batch.schema.names:
        return pa.nulls(len(batch), pa.string())
    column = batch.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def _times(values: Any, path: str, zone: tzinfo) -> Any:
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    if pa.types.is_timestamp(kind):
        times = values.cast(pa.timestamp("us", tz=kind.tz), safe=False)
        return times.cast(TIME_TYPE) if kind.tz is not None else local_micros(times, zone)
    if pa.types.is_integer(kind):
        return times_of_millis(values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return times_of_texts(values.cast(pa.string()), zone)
    if pa.types.is_null(kind):
        return values.cast(TIME_TYPE)
    raise ConfigError(f"{path}: column timestamp is of type {kind}: expected a timestamp, ms as an integer, or text")
