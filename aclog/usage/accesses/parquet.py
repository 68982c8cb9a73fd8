"""Accesses in Parquet and ORC files."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from glob import has_magic
from pathlib import PurePath
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import evolve, field

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.usage.accesses.access_batch import (
    BROKER,
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
from aclog.usage.accesses.lines import ORC_MAGIC
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.window import UnreadCounter, UnreadSpan, micros_of

# Columns in the names of directories: `operation=READ/part-0.parquet`, as Hive and Spark write them.


Partition: TypeAlias = tuple[tuple[str, str | None], ...]
"""Columns of a request and their values for all rows of a file; None: null."""

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def partition_of(path: str, named: Collection[str]) -> Partition:
    """Return the columns of a file that the directories below one of the named paths or globs have in their names.

    Above a named path, a directory such as `host=web1` is no part of the table.
    """
    parts = PurePath(path).parts
    below = max((_depth(PurePath(name), parts) for name in named), default=len(parts))
    pairs = [part.partition("=") for part in parts[below:-1]]
    columns = {name.lower(): name for name in READ_COLUMNS}
    values = {
        columns[key.lower()]: None if value == _NULL else unquote(value)
        for key, equals, value in pairs
        if equals and key.lower() in columns
    }
    return tuple(values.items())


def _depth(name: PurePath, parts: Sequence[str]) -> int:
    """Return how many components of a path a name or glob has; -1 if it is another path."""
    own = name.parts
    if any("**" in part for part in own):
        return -1
    alike = len(own) <= len(parts) and all(
        mine == theirs or has_magic(mine) for mine, theirs in zip(own, parts, strict=False)
    )
    return len(own) if alike else -1


# Tables of accesses in files, read row group by row group; a few row groups are one piece of work.


TIMESTAMP_COLUMN = "timestamp"
MALFORMED = "_malformed"
"""A column of tables with unreadable lines, which are not plain."""
_COLUMNS = [*REQUEST_COLUMNS, TIMESTAMP_COLUMN]
_LINE, _REASON = "line", "reason"
"""Columns of a table of rejects, which `spark ingest` writes beside its accesses."""
EARLIEST_COLUMN, LATEST_COLUMN = "earliest", "latest"
"""Columns of the same: the times between which a line was logged, null if unknown. Older tables lack them."""
COLUMNS_READ: Final = (*READ_COLUMNS, MALFORMED, _LINE, _REASON, EARLIEST_COLUMN, LATEST_COLUMN)
"""The columns that `read_parquet` takes."""
_BATCH = 1 << 20
"""How many rows are read at once; as codes in columns, about 30 MB."""


@frozen(kw_only=True)
class RowGroups:
    """Some row groups of one Parquet file, or stripes of one ORC file."""

    path: str
    name: str
    """What errors call the file: its path, or that of which it is a temporary copy."""
    size: int
    """The size of the file in bytes at the listing."""
    first: int
    end: int
    rows: int
    latest: int | None
    """The latest time in us since 1970, from the file's statistics; None if they have none."""
    partition: Partition = ()


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

    A plain file needs no conversion: the five columns of a request are text, as is `loggedDecision` if there is one,
    and `timestamp` is a TIMESTAMP of us or ms in UTC, under exactly these names. Raises as `parquet_parts`.
    """
    if any("=" in part for path in paths for part in PurePath(path).parts[:-1]):
        return None  # directories may have columns in their names
    row_groups: list[RowGroups] = []
    for path in paths:
        with _opened(path, path) as file:  # once each: small files cost more than their rows
            if file.statistics is None or not _is_plain(file.schema):
                return None
            row_groups += _row_groups(file, path, path, ())
    return [ParquetPart(groups=_joined(part)) for part in _spread(row_groups, most)]


def parquet_parts(
    paths: Sequence[str], most: int, partitions: Sequence[Partition] = (), names: Sequence[str] = ()
) -> list[ParquetPart]:
    """Return the row groups of these files, in at most `most` pieces with similar numbers of rows.

    `partitions`: the columns in the names of the directories of each file. `names`: what errors call each file; empty:
    its path.

    Raises:
        ConfigError: a file cannot be read as Parquet or ORC.
        OSError: a file was removed, or cannot be read.

    """
    row_groups: list[RowGroups] = []
    for path, partition, name in zip(paths, partitions or [()] * len(paths), names or paths, strict=True):
        with _opened(path, name) as file:
            row_groups += _row_groups(file, path, name, partition)
    return [ParquetPart(groups=_joined(part)) for part in _spread(row_groups, most)]


def _row_groups(file: "_OpenTable", path: str, name: str, partition: Partition) -> Iterator[RowGroups]:
    latest = _latest_times(file) if not partition and _is_plain(file.schema) else None
    for at, rows in enumerate(file.rows):
        if rows:
            yield RowGroups(
                path=path,
                name=name,
                size=file.size,
                first=at,
                end=at + 1,
                rows=rows,
                latest=None if latest is None else latest[at],
                partition=partition,
            )


def _latest_times(file: "_OpenTable") -> list[int | None] | None:
    metadata = file.statistics
    if metadata is None:
        return None
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    return [
        next(
            (
                _latest(chunk.statistics)
                for chunk in (group.column(column) for column in range(group.num_columns))
                if chunk.path_in_schema == TIMESTAMP_COLUMN
            ),
            None,
        )
        for group in groups
    ]


def _latest(times: Any) -> int | None:
    if times is None or not times.has_min_max:
        return None
    try:
        return micros_of(times.max)
    except (OverflowError, ValueError):  # beyond the years 1 to 9999
        return None


def read_plain(part: ParquetPart, *, only_times: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the columns REQUEST_COLUMNS, dictionary-encoded, `timestamp`, and `loggedDecision` if a file has it.

    `only_times`: only `timestamp`.

    Raises:
        ConfigError: a file's size has changed since the listing, or it is damaged.
        OSError: a file was removed.

    """
    columns = [TIMESTAMP_COLUMN] if only_times else [*_COLUMNS, LOGGED_DECISION]
    for _, batch in read_columns(part, columns):
        # their order may differ between files
        yield batch.select([name for name in columns if name in batch.schema.names])


def read_columns(part: ParquetPart, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the name of each file and rows with the given columns that its file has, in any case of letters.

    Raises:
        ConfigError: two columns of one name; as `read_plain`.
        OSError: a file was removed.

    """
    for groups in part.groups:
        with _opened(groups.path, groups.name, dictionaries=REQUEST_COLUMNS) as file:
            if file.size != groups.size:
                raise ConfigError(f"{groups.name}: replaced by another file while it was being read: run again")
            partition = {name: value for name, value in groups.partition if name in columns}
            there = {ours: theirs for ours, theirs in _names(file.schema, groups.name).items() if ours in columns}
            names = [name for name in there if name not in partition]
            for batch in file.read(range(groups.first, groups.end), [there[name] for name in names]):
                own = batch.select([there[name] for name in names])
                arrays = [*own.columns, *(_constant(value, own.num_rows) for value in partition.values())]
                yield groups.name, pa.record_batch(arrays, names=[*names, *partition])


def _names(schema: pa.Schema, path: str) -> dict[str, str]:
    """Return the names of a table's columns by ours. Raises ConfigError: two differ in the case of letters only."""
    ours = {name.lower(): name for name in COLUMNS_READ}
    names: dict[str, str] = {}
    for theirs in schema.names:
        name = ours.get(theirs.lower())
        if name is not None and name in names:
            raise ConfigError(f"{path}: columns {names[name]!r} and {theirs!r}: expected one of this name")
        if name is not None:
            names[name] = theirs
    return names


def _constant(value: str | None, count: int) -> Any:
    indices: Any = pa.array(np.zeros(count, np.int32), mask=np.full(count, value is None))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value or ""], pa.string()))


def latest_time(part: ParquetPart) -> int | None:
    """Return the latest time in a part, in us since 1970; None if no row has a time. Raises as `read_plain`."""
    latest = None
    for batch in read_plain(part, only_times=True):
        times: Any = batch.column(0).drop_null()
        if len(times):
            newest = int(np.max(np.asarray(times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))))
            latest = newest if latest is None else max(latest, newest)
    return latest


@frozen(kw_only=True, eq=False)
class _OpenTable:
    """An open file of Parquet or ORC."""

    schema: pa.Schema
    size: int
    rows: Sequence[int]
    """The rows of each row group, or about those of each stripe."""
    statistics: pq.FileMetaData | None = None
    """Of Parquet, with the largest values of columns."""
    file: Any = field(repr=False)

    def read(self, groups: range, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some row groups or stripes."""
        if isinstance(self.file, pq.ParquetFile):
            yield from self.file.iter_batches(_BATCH, list(groups), list(columns), use_threads=False)
        else:
            for stripe in groups:
                yield self.file.read_stripe(stripe, list(columns))


@contextmanager
def _opened(path: str, name: str, *, dictionaries: Sequence[str] = ()) -> Iterator[_OpenTable]:
    """Open a file to read the columns of these names, in any case of letters, as dictionaries."""
    with pa.OSFile(path, "rb") as source:
        is_orc = source.read(len(ORC_MAGIC)) == ORC_MAGIC
        source.seek(0)
        try:
            yield _orc(source) if is_orc else _parquet(source, {each.lower() for each in dictionaries})
        except (pa.ArrowInvalid, OSError) as error:
            if not isinstance(error, pa.ArrowInvalid) and (not is_orc or error.errno is not None):
                raise  # only pyarrow's ORC reports damage as an OSError, without a number
            kind = "an ORC" if is_orc else "a Parquet"
            raise ConfigError(f"{name}: not {kind} file, or damaged: {error}") from error


def _parquet(source: pa.OSFile, dictionaries: Collection[str]) -> _OpenTable:
    texts = [name for name in pq.read_schema(source).names if name.lower() in dictionaries] if dictionaries else []
    source.seek(0)
    file = pq.ParquetFile(source, read_dictionary=texts)
    metadata = file.metadata
    rows = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    return _OpenTable(schema=file.schema_arrow, size=source.size(), rows=rows, statistics=metadata, file=file)


def _orc(source: pa.OSFile) -> _OpenTable:
    from pyarrow import orc  # noqa: PLC0415 - few files are

    file = orc.ORCFile(source)
    each = -(-file.nrows // max(file.nstripes, 1))  # pyarrow does not return the rows of a stripe
    return _OpenTable(schema=file.schema, size=source.size(), rows=[each] * file.nstripes, file=file)


def _is_plain(schema: pa.Schema) -> bool:
    names = [name.lower() for name in schema.names]
    if any(names.count(name.lower()) != 1 or name not in schema.names for name in _COLUMNS) or MALFORMED in names:
        return False
    time = schema.field(TIMESTAMP_COLUMN).type
    decisions = [name for name in schema.names if name.lower() == LOGGED_DECISION.lower()]
    if decisions not in ([], [LOGGED_DECISION]):
        return False
    texts = all(_is_text(schema.field(name).type) for name in (*REQUEST_COLUMNS, *decisions))
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


def read_parquet(part: ParquetPart, zone: tzinfo) -> Iterator[AccessBatch]:
    """Read a part; `zone` applies to times without one. A table of rejects has only unreadable accesses.

    Raises:
        ConfigError: a column of a request is missing or has an unsupported type; damage.
        OSError: a file was removed.

    """
    for path, batch in read_columns(part, COLUMNS_READ):
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
                    note_text(unread, reason, str(line), zone, broker=None, span=UnreadSpan(1, None, None))
            else:
                _note_rows(unread, rows.filter(fresh), reason)
    return AccessBatch(rows=rows if good is None else rows.filter(good), rejects=rejects, unread=unread.total)


def _of_rejects(batch: pa.RecordBatch, zone: tzinfo) -> AccessBatch:
    rejects, unread = Counter[Reason](), UnreadCounter()
    for row in batch.to_pylist():
        text: Any = row[_REASON]
        reason = Reason(text) if text in list(Reason) else Reason.UNREADABLE
        rejects[reason] += 1
        first, last = (_micros(row.get(name)) for name in (EARLIEST_COLUMN, LATEST_COLUMN))
        note_text(unread, reason, str(row[_LINE]), zone, broker=row.get(BROKER), span=UnreadSpan(1, first, last))
    nothing = pa.RecordBatch.from_pylist([], schema=READ_SCHEMA)
    return AccessBatch(rows=nothing, rejects=rejects, unread=unread.total)


def _micros(time: Any) -> int | None:
    return micros_of(time) if isinstance(time, datetime) else None


def _note_rows(unread: UnreadCounter, rows: pa.RecordBatch, reason: Reason) -> None:
    """Count rows with a principal, with their time and decision if they have any."""
    names = (REQUEST_COLUMNS[0], LOGGED_DECISION, BROKER)
    columns = [*(rows.column(name) for name in names), rows.column(TIMESTAMP).cast(pa.int64())]
    for principal, decision, broker, time in zip(*(column.to_pylist() for column in columns), strict=True):
        outcome: Any = decision if decision in {"ALLOWED", "DENIED"} else None
        unread.add(principal, outcome, reason, UnreadSpan(1, time, time), broker=broker)


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
