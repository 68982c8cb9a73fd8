"""Ingestion of access logs into two tables, accesses and rejects with reasons; no line is dropped silently."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from attrs import field, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.access_reject import Reason
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.access_table import Splitter, split_validated, validate_rows
from aclog.pipeline.accesses.access_times import check_timezone
from aclog.pipeline.accesses.events import events_of_avro, events_of_json
from aclog.pipeline.accesses.external_tables import rows_of_csv, rows_of_json, rows_of_parquet
from aclog.pipeline.accesses.kafka_log import lines_of_kafka, split_lines
from aclog.pipeline.accesses.line_files import read_lines, readable_errors
from aclog.pipeline.accesses.pinned_files import PinnedFiles, pinned
from aclog.pipeline.accesses.sink import REPORTED, SCHEMAS, SplitAndWrite, Table, commit_files
from aclog.pipeline.output_directory import new_directory


class Kind(StrEnum):
    """The format of the files."""

    KAFKA_LOG = "kafka-log"
    """kafka-authorizer.log of any Kafka version, in the default layout `[%d] %p %m (%c)%n`."""
    EVENTS = "events"
    """Audit events in Avro (aclog/authorizer/audit_event.avsc)."""
    EVENTS_JSONL = "events-jsonl"
    """Audit events as JSON lines: bare, or in the JSON log of an aclog node."""
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


@frozen(kw_only=True)
class Ingested:
    """Both tables, lazily: nothing has run yet."""

    rows: DataFrame
    """One row per line or row that was read."""
    split: Splitter
    """Splits these rows into accesses and rejects."""
    paths: tuple[str, ...]
    files: PinnedFiles
    """The files as they were listed: `write` checks at its end that all rows came from them."""

    @cached_property
    def accesses(self) -> DataFrame:
        """The accesses (ACCESS_COLUMNS)."""
        return _split_off(self, "accesses")

    @cached_property
    def rejects(self) -> DataFrame:
        """The rejects (REJECT_COLUMNS)."""
        return _split_off(self, "rejects")


@frozen(kw_only=True)
class Counts:
    """The numbers of lines (rows), which add up to `total`."""

    accesses: int
    rejects: Mapping[str, int] = field(factory=dict)
    """By Reason, the most frequent first."""
    blanks: int = 0

    @property
    def rejected(self) -> int:
        """The number of rejects."""
        return sum(self.rejects.values())

    @property
    def total(self) -> int:
        """The number of lines that were read."""
        return self.accesses + self.rejected + self.blanks


def ingest(
    spark: SparkSession,
    paths: str | Path | Sequence[str | Path],
    kind: str,
    *,
    timezone: str = "UTC",
    columns: Mapping[str, str] | None = None,
) -> Ingested:
    """Return the accesses and rejects of files, directories and globs.

    `timezone` is the zone of times that name none: a broker logs its local time. `columns` maps names of ACCESS_COLUMNS
    to those of a Parquet, CSV or JSON lines table; other columns are found under their own names.

    Raises:
        ConfigError: no file is found, the kind or zone is unknown, or a column is missing. Errors that only show when
            files are read (a file that is not Avro) are raised by `write`.

    """
    named = (paths,) if isinstance(paths, str | Path) else tuple(paths)
    places = tuple(str(path) for path in named)
    if not places:
        raise ConfigError("expected files to read")
    wanted, zone = _kind(kind), check_timezone(spark, timezone)
    if columns and wanted in {Kind.KAFKA_LOG, Kind.EVENTS, Kind.EVENTS_JSONL}:
        raise ConfigError(f"--column: not supported for kind {wanted.value}, whose columns are known")
    split = split_lines if wanted is Kind.KAFKA_LOG else split_validated
    rows, files = pinned(spark, places, lambda: _rows(spark, places, wanted, zone=zone, columns=columns or {}))
    return Ingested(rows=rows, split=split, paths=places, files=files)


def _rows(spark: SparkSession, paths: Sequence[str], kind: Kind, *, zone: str, columns: Mapping[str, str]) -> DataFrame:
    if kind is Kind.KAFKA_LOG:
        return lines_of_kafka(read_lines(spark, paths), zone)
    return validate_rows(_raw(spark, paths, kind, zone=zone, columns=columns))


def _kind(name: str) -> Kind:
    try:
        return Kind(name)
    except ValueError as error:
        raise ConfigError(f"unknown kind {name!r}: expected one of {', '.join(Kind)}") from error


def _raw(spark: SparkSession, paths: Sequence[str], kind: Kind, *, zone: str, columns: Mapping[str, str]) -> DataFrame:
    if kind is Kind.EVENTS:
        return events_of_avro(spark, paths)
    if kind is Kind.EVENTS_JSONL:
        return events_of_json(read_lines(spark, paths))
    if kind is Kind.PARQUET:
        return rows_of_parquet(spark, paths, columns, zone)
    if kind is Kind.CSV:
        return rows_of_csv(spark, paths, columns, zone)
    return rows_of_json(read_lines(spark, paths), columns, zone)


def _split_off(ingested: Ingested, table: Table) -> DataFrame:
    split, schema = ingested.split, SCHEMAS[table]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield getattr(split(batch), table)

    return ingested.rows.mapInArrow(run, from_arrow_schema(schema))


def write(ingested: Ingested, out: Path) -> Counts:
    """Write `out`/accesses and `out`/rejects as Parquet, and return the counts.

    The input is read once, so that tables and counts agree even if a log grows meanwhile. `out` appears only once it is
    complete. It must be on a file system that Spark's workers share with this process.

    Raises:
        ConfigError: `out` exists, a file cannot be read, or was rotated, truncated or replaced since it was listed.

    """
    with new_directory(out) as partial:
        task = SplitAndWrite(split=ingested.split, directory=str(partial))
        with ingested.files.held(), readable_errors(ingested.paths):
            reported = ingested.rows.mapInArrow(task, REPORTED).collect()
        commit_files(partial, [row["file"] for row in reported if row["file"]])
    found: Counter[str | None] = Counter()
    for row in reported:
        if row["file"] is None:
            found[row["reason"]] += row["count"]
    return _counts(found)


def _counts(found: Counter[str | None]) -> Counts:
    accesses, blanks = found.pop(None, 0), found.pop(Reason.BLANK.value, 0)
    ordered = sorted(((str(reason), count) for reason, count in found.items()), key=lambda pair: (-pair[1], pair[0]))
    return Counts(accesses=accesses, rejects=dict(ordered), blanks=blanks)
