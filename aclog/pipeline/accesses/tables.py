"""Tables of accesses and of rejects: columns, readers and writers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import field
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.pipeline.accesses.kafka_log import (
    ACCESS_COLUMNS,
    ACCESS_SCHEMA,
    OPTIONAL_COLUMNS,
    REJECT_SCHEMA,
    TIMESTAMP,
    Splitter,
    any_time,
    check_found,
    number,
    of_millis,
    of_nanos,
    parse_lines,
    quoted,
    readable_errors,
    text,
)
from aclog.pipeline.accesses.table_formats import check_loose, named_table, read_parquet
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

# Tables of accesses from elsewhere: Parquet, CSV with a header, JSON lines; columns are found by name or mapping.


_TORN: Final = "_torn"
"""The column for a line whose number of values differs from the header's (Spark's corrupt record)."""


def rows_of_parquet(spark: SparkSession, paths: Sequence[str], columns: Mapping[str, str], timezone: str) -> DataFrame:
    """Rows for `validate_rows` from Parquet files.

    Raises:
        ConfigError: no file is found, a file is not Parquet, or a column is missing.

    """
    with readable_errors(paths):
        for path in paths:
            if named_table(spark, path) is not None:
                raise ConfigError(f"{path}: a table: expected files: the other commands read the table itself")
        frame, nanos = read_parquet(spark, paths, [columns.get(name, name) for name in REQUEST_COLUMNS])
        check_found(frame, paths)
        check_loose(spark, frame.inputFiles())
    line = F.to_json(F.struct(*map(quoted, frame.columns)))
    return _of_frame(frame, columns, line=line, timezone=timezone, nanos=nanos)


def rows_of_csv(spark: SparkSession, paths: Sequence[str], columns: Mapping[str, str], timezone: str) -> DataFrame:
    """Rows for `validate_rows` from CSV files with the same header; empty lines are skipped.

    Values may be in double quotes, but may not contain line ends. Raises as `rows_of_parquet`; a file with another
    header fails the job.
    """
    with readable_errors(paths):
        reader = spark.read.option("header", value=True).option("recursiveFileLookup", value=True)
        reader = reader.option("escape", '"')  # a quote is doubled (RFC 4180); by default, Spark takes `\"` for one
        schema = reader.csv(list(paths)).schema
        whole = (
            reader.schema(deepcopy(schema).add(_TORN, "string"))
            .option("columnNameOfCorruptRecord", _TORN)
            .option("columnPruning", value=False)  # otherwise Spark does not check the number of values
            .option("enforceSchema", value=False)  # check the header of every file
        )
        frame = whole.csv(list(paths))
        check_found(frame, paths)
    line = F.coalesce(F.col(_TORN), F.to_json(F.struct(*map(quoted, schema.names))))
    reason = F.when(F.col(_TORN).isNotNull(), Reason.MALFORMED)
    return _of_frame(frame, columns, line=line, timezone=timezone, reason=reason)


def rows_of_json(lines: DataFrame, columns: Mapping[str, str], timezone: str) -> DataFrame:
    """Rows for `validate_rows` from JSON lines; a missing key is only known line by line."""
    theirs = {ours: columns.get(ours, ours) for ours in ACCESS_COLUMNS}
    _check_names(columns)
    objects = parse_lines(lines)
    texts = {ours: text("object", theirs[ours]) for ours in ACCESS_COLUMNS if ours != "resourceReferenceCount"}
    there = F.expr(f"try_variant_get(object, '$[\"{_escaped(theirs[TIMESTAMP])}\"]', 'variant')").isNotNull()
    values = objects.select(
        "file",
        "line",
        "reason",
        *(column.alias(ours) for ours, column in texts.items() if ours != TIMESTAMP),
        number("object", theirs["resourceReferenceCount"]).try_cast("int").alias("resourceReferenceCount"),
        F.coalesce(
            any_time(texts[TIMESTAMP], StringType(), timezone), of_millis(number("object", theirs[TIMESTAMP]))
        ).alias(TIMESTAMP),
        there.alias("_timed"),
    )
    return values.select(
        *ACCESS_COLUMNS,
        "file",
        "line",
        F.coalesce("reason", F.when(F.col("_timed") & F.col(TIMESTAMP).isNull(), Reason.BAD_TIMESTAMP)).alias("reason"),
        F.lit(None).cast("string").alias("detail"),
    )


def _of_frame(
    frame: DataFrame,
    columns: Mapping[str, str],
    *,
    line: Column,
    timezone: str,
    reason: Column | None = None,
    nanos: Mapping[str, bool] = MappingProxyType({}),
) -> DataFrame:
    places = _places(frame, columns)
    sources = {ours: F.col(quoted(theirs)) for ours, theirs in places.items()}
    kinds: dict[str, DataType] = {field.name: field.dataType for field in frame.schema.fields}
    nothing = F.lit(None).cast("string")
    time = F.lit(None).cast("timestamp")
    if TIMESTAMP in places:
        theirs = places[TIMESTAMP]
        if theirs in nanos:
            time = of_nanos(sources[TIMESTAMP], timezone, adjusted=nanos[theirs])
        else:
            time = any_time(sources[TIMESTAMP], kinds[theirs], timezone)
    values = {
        name: sources[name].cast("string") if name in sources else nothing
        for name in (*REQUEST_COLUMNS, *OPTIONAL_COLUMNS)
    }
    values["resourceReferenceCount"] = values["resourceReferenceCount"].try_cast("int")
    timed = sources[TIMESTAMP].isNotNull() if TIMESTAMP in sources else F.lit(False)
    rows = frame.select(
        *(values[name].alias(name) for name in values),
        time.alias(TIMESTAMP),
        timed.alias("_timed"),
        F.col("_metadata.file_path").alias("file"),
        line.alias("line"),
        (nothing if reason is None else reason).alias("reason"),
    )
    bad_time = F.when(F.col("_timed") & F.col(TIMESTAMP).isNull(), Reason.BAD_TIMESTAMP)
    return rows.select(
        *ACCESS_COLUMNS, "file", "line", F.coalesce("reason", bad_time).alias("reason"), nothing.alias("detail")
    )


def _places(frame: DataFrame, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the frame's columns by ours."""
    _check_names(columns)
    there = [name for name in frame.columns if name != _TORN]
    alike = {name: name for name in there} | {  # Spark's names have no case of letters
        ours: name for ours in ACCESS_COLUMNS for name in there if ours not in there and ours.lower() == name.lower()
    }
    places = {ours: columns.get(ours, alike.get(ours, ours)) for ours in ACCESS_COLUMNS if ours in {*columns, *alike}}
    needed = {ours: columns.get(ours, ours) for ours in REQUEST_COLUMNS} | places
    if missing := [theirs for theirs in needed.values() if theirs not in there]:
        raise ConfigError(f"no column {missing[0]!r} in the table, which has {', '.join(there)[:300]}")
    return places


def _check_names(columns: Mapping[str, str]) -> None:
    if unknown := [ours for ours in columns if ours not in ACCESS_COLUMNS]:
        raise ConfigError(
            f"no column {unknown[0]!r} in the table of accesses: expected one of {', '.join(ACCESS_COLUMNS)}"
        )


def _escaped(key: str) -> str:
    return key.replace("\\", "\\\\").replace("'", "\\'")


# Writers of the Parquet files of one task: one file, or a file for each day.


_ROWS, _BYTES = 1 << 18, 1 << 26
"""The size of a row group."""
_OPEN_DAYS = 366
"""The days whose files are open at a time."""

DAY: Final = "day"
NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of the partition of rows without a time, as in Hive and Spark."""


@define(kw_only=True)
class FileWriter:
    """Writes rows to a file, which does not exist before there are any."""

    path: Path
    schema: pa.Schema
    waiting: int = field(default=0, init=False)
    """The bytes that wait in memory for the next row group."""
    _waiting: list[pa.RecordBatch] = field(factory=list, init=False)
    _rows: int = field(default=0, init=False)
    _writer: pq.ParquetWriter | None = field(default=None, init=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, and write a row group once there are enough."""
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self.waiting += batch.nbytes
        if self._rows >= _ROWS or self.waiting >= _BYTES:
            self.flush()

    def close(self) -> list[Path]:
        """Write the remaining rows, and return the file if there is one."""
        self.flush()
        if self._writer is None:
            return []
        self._writer.close()
        return [self.path]

    def flush(self) -> None:
        """Write the rows that wait."""
        if not self._waiting:
            return
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self.path, self.schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting, self.schema))
        self._waiting, self._rows, self.waiting = [], 0, 0


@define(kw_only=True)
class DayWriter:
    """Writes rows to `day=2026-11-21/NAME`, by the day (UTC) of their time."""

    path: Path
    """Where the file would be without days."""
    schema: pa.Schema
    _open: dict[str, FileWriter] = field(factory=dict, init=False)
    _closed: list[Path] = field(factory=list, init=False)
    _turn: int = field(default=0, init=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows to the files of their days."""
        for day, rows in _by_day(batch):
            self._writer(day).add(rows)
        if sum(writer.waiting for writer in self._open.values()) >= _BYTES:
            for writer in self._open.values():
                writer.flush()

    def close(self) -> list[Path]:
        """Write the remaining rows, and return the files."""
        for writer in self._open.values():
            self._closed += writer.close()
        self._open.clear()
        return self._closed

    def _writer(self, day: str) -> FileWriter:
        if day not in self._open:
            if len(self._open) == _OPEN_DAYS:
                self.close()
                self._turn += 1
            name = f"{self.path.stem}-{self._turn}{self.path.suffix}"
            self._open[day] = FileWriter(path=self.path.parent / f"{DAY}={day}" / name, schema=self.schema)
        return self._open[day]


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each day."""
    days: Any = batch.column(TIMESTAMP).cast(pa.timestamp("us")).cast(pa.date32())
    dates = pc.unique(days).to_pylist()
    for day in dates:
        which = pc.is_null(days) if day is None else pc.equal(days, pa.scalar(day))
        yield NO_DAY if day is None else day.isoformat(), batch if len(dates) == 1 else batch.filter(which)


# How far each source of accesses goes: a source is the directory that log files came from, one broker's as a rule.


def source_of(name: str) -> str:
    """Return the source of a file, by its path or URI."""
    return str(PurePosixPath(unquote(urlsplit(name).path)).parent)


@define(kw_only=True)
class SourceTimes:
    """The latest time of each source that a task has seen, in us since 1970, and how many accesses came late."""

    before: Mapping[str, int | None]
    """The latest times that were known before: what is older came late."""
    until: int
    """The time of the append, in us since 1970: a later time is that of a wrong clock, and is ignored."""
    _latest: dict[str, int] = field(factory=dict, init=False)
    _late: dict[str, int] = field(factory=dict, init=False)

    def add(self, files: "pa.Array[Any]", times: "pa.Array[Any]") -> None:
        """Add accesses: the file and the time of each, in a column each."""
        names: list[Any] = pc.unique(files).to_pylist()
        for name in names:
            source = source_of(name)
            micros: Any = times.filter(pc.equal(files, pa.scalar(name))).cast(pa.int64())
            newest = pc.max(micros.filter(pc.less_equal(micros, pa.scalar(self.until)))).as_py()
            if newest is None:
                continue
            self._latest[source] = max(newest, self._latest.get(source, newest))
            mark = self.before.get(source)
            if mark is not None:
                late = pc.sum(pc.less(micros, pa.scalar(mark))).as_py() or 0
                self._late[source] = self._late.get(source, 0) + late

    def rows(self) -> list[dict[str, str | int | None]]:
        """Return a report: source, latest and late."""
        return [
            {"source": source, "latest": latest, "late": self._late.get(source, 0)}
            for source, latest in self._latest.items()
        ]


# The output of ingest: each task writes its own files of both tables, and reports files and counts to the driver.


Table = Literal["accesses", "rejects"]
SCHEMAS: Final[dict[Table, pa.Schema]] = {"accesses": ACCESS_SCHEMA, "rejects": REJECT_SCHEMA}

REPORTED: Final = "file string, reason string, count long, source string, latest long, late long"
"""A task's report: its files (count is null), the number of rows by reason (null for accesses), and its sources."""
_FIELDS: list["pa.Field[Any]"] = [
    pa.field("file", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("count", pa.int64()),
    pa.field("source", pa.string()),
    pa.field("latest", pa.int64()),
    pa.field("late", pa.int64()),
]
_REPORT = pa.schema(_FIELDS)


@frozen(kw_only=True)
class SplitAndWrite:
    """The function for `mapInArrow`: splits the batches of a partition and writes `directory`/accesses and /rejects.

    Spark's own writer would need a pass per table, and so two readings of the input. `directory` must be on a file
    system that the workers share with the driver. An empty table gets no file. A failed or duplicate attempt leaves its
    files behind, but does not report them: `commit_files` deletes them.
    """

    split: Splitter
    directory: str
    latest: Mapping[str, int | None] | None = None
    """For a table that is appended to: the latest time that each source had, in us. Accesses are written by day, and
    the report has the latest time of each source now."""
    until: int = 0
    """The time of the append, in us."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write one partition, and yield one batch with the columns REPORTED."""
        name, directory = _file_name(), Path(self.directory)
        kind = FileWriter if self.latest is None else DayWriter
        accesses = kind(path=directory / "accesses" / name, schema=ACCESS_SCHEMA)
        rejects = FileWriter(path=directory / "rejects" / name, schema=REJECT_SCHEMA)
        counts: Counter[str | None] = Counter()
        sources = SourceTimes(before=self.latest or {}, until=self.until)
        for batch in batches:
            parts = self.split(batch)
            accesses.add(parts.accesses)
            rejects.add(parts.rejects)
            if self.latest is not None:
                sources.add(parts.files, parts.accesses.column(TIMESTAMP))
            counts.update(parts.rejects.column("reason").to_pylist())
            counts[None] += parts.accesses.num_rows
            counts[Reason.BLANK] += parts.blanks
        files = [path.relative_to(directory) for writer in (accesses, rejects) for path in writer.close()]
        rows: list[dict[str, str | int | None]] = [{"file": str(file)} for file in files]
        rows += [{"reason": reason, "count": count} for reason, count in counts.items() if count]
        rows += sources.rows()
        yield pa.RecordBatch.from_pylist(rows, schema=_REPORT)


def _file_name() -> str:
    """Return a file name that no other attempt of this task uses: speculative attempts run at the same time."""
    context = TaskContext.get()
    if context is None:
        return "part-00000.parquet"
    return f"part-{context.partitionId():05d}-{context.taskAttemptId()}.parquet"


def commit_files(directory: Path, reported: Iterable[str]) -> None:
    """Delete all files in `directory` but the reported ones; an empty table gets an empty file.

    Raises:
        ConfigError: a reported file is missing.

    """
    expected = {directory / name for name in reported}
    if missing := [path for path in sorted(expected) if not path.exists()]:
        raise ConfigError(
            f"{missing[0]}: written by a task, but not visible here: expected a directory that the workers share"
        )
    for table, schema in SCHEMAS.items():
        place = directory / table
        place.mkdir(parents=True, exist_ok=True)
        for path in place.iterdir():
            if path not in expected:
                path.unlink()
        if not any(place.iterdir()):
            # a reader needs a file for the schema
            pq.write_table(schema.empty_table(), place / "part-00000.parquet")
