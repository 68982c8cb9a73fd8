"""Ingestion of access logs into two tables, accesses and rejects with reasons; no line is dropped silently."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Self

import pyarrow as pa
from attrs import field, frozen
from pyspark.sql import DataFrame, Row, SparkSession
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


@frozen(kw_only=True)
class Layout:
    """How files are read: their kind, the zone of times that name none, and names of columns."""

    kind: "Kind"
    zone: str
    columns: Mapping[str, str]

    @classmethod
    def of(cls, spark: SparkSession, kind: str, timezone: str, columns: Mapping[str, str] | None) -> Self:
        """Check and return a layout.

        Raises:
            ConfigError: the kind or zone is unknown, or the kind has columns of its own.

        """
        wanted, zone = _kind(kind), check_timezone(spark, timezone)
        if columns and wanted in {Kind.KAFKA_LOG, Kind.EVENTS, Kind.EVENTS_JSONL}:
            raise ConfigError(f"--column: not supported for kind {wanted.value}, whose columns are known")
        return cls(kind=wanted, zone=zone, columns=columns or {})

    @property
    def split(self) -> Splitter:
        """What splits the rows into accesses and rejects."""
        return split_lines if self.kind is Kind.KAFKA_LOG else split_validated

    @property
    def is_lines(self) -> bool:
        """Whether each line stands for itself, so that a part of a file can be read."""
        return self.kind in {Kind.KAFKA_LOG, Kind.EVENTS_JSONL, Kind.JSONL}

    def of_lines(self, lines: DataFrame, *, files: bool = False) -> DataFrame:
        """Return one row for each line (`value`, `file`), for `split`; with `files`, accesses name theirs."""
        if self.kind is Kind.KAFKA_LOG:
            return lines_of_kafka(lines, self.zone)
        if self.kind is Kind.EVENTS_JSONL:
            return validate_rows(events_of_json(lines), files=files)
        return validate_rows(rows_of_json(lines, self.columns, self.zone), files=files)

    def of_files(self, spark: SparkSession, paths: Sequence[str], *, files: bool = False) -> DataFrame:
        """Return one row for each line or row of whole files, likewise."""
        if self.is_lines:
            return self.of_lines(read_lines(spark, paths), files=files)
        if self.kind is Kind.EVENTS:
            raw = events_of_avro(spark, paths)
        else:
            read = rows_of_parquet if self.kind is Kind.PARQUET else rows_of_csv
            raw = read(spark, paths, self.columns, self.zone)
        return validate_rows(raw, files=files)


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

    @property
    def reject_rate(self) -> float:
        """The share of the lines that was rejected, blank ones apart: 0 to 1."""
        return self.rejected / max(1, self.accesses + self.rejected)


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
    layout = Layout.of(spark, kind, timezone, columns)
    rows, files = pinned(spark, places, lambda: layout.of_files(spark, places))
    return Ingested(rows=rows, split=layout.split, paths=places, files=files)


def _kind(name: str) -> Kind:
    try:
        return Kind(name)
    except ValueError as error:
        raise ConfigError(f"unknown kind {name!r}: expected one of {', '.join(Kind)}") from error


def _split_off(ingested: Ingested, table: Table) -> DataFrame:
    split, schema = ingested.split, SCHEMAS[table]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield getattr(split(batch), table)

    return ingested.rows.mapInArrow(run, from_arrow_schema(schema))


def write(ingested: Ingested, out: Path, *, max_reject_rate: float | None = None) -> Counts:
    """Write `out`/accesses and `out`/rejects as Parquet, and return the counts.

    The input is read once, so that tables and counts agree even if a log grows meanwhile. `out` appears only once it is
    complete. It must be on a file system that Spark's workers share with this process.

    Raises:
        ConfigError: `out` exists, a file cannot be read, or was rotated, truncated or replaced since it was listed.
        RejectRateError: more than this share of the lines is not an access; nothing is written.

    """
    with new_directory(out) as partial:
        task = SplitAndWrite(split=ingested.split, directory=str(partial))
        with ingested.files.held(), readable_errors(ingested.paths):
            reported = ingested.rows.mapInArrow(task, REPORTED).collect()
        counts = counted(reported)
        check_rejects(counts, max_reject_rate)
        commit_files(partial, [row["file"] for row in reported if row["file"]])
    return counts


class RejectRateError(ConfigError):
    """Too large a share of the lines is not an access; `counts` says of what."""

    def __init__(self, text: str, counts: Counts) -> None:
        super().__init__(text)
        self.counts = counts


def check_rejects(counts: Counts, limit: float | None) -> None:
    """Raise RejectRateError if more than this share of the lines, blank ones apart, is rejected."""
    if limit is not None and counts.reject_rate > limit:
        most = next(iter(counts.rejects))
        raise RejectRateError(
            f"{counts.rejected:,} of {counts.total - counts.blanks:,} lines are rejected, most as {most}: "
            f"{counts.reject_rate:.2%}, above --max-reject-rate {limit:g}: nothing is written",
            counts,
        )


def counted(reported: Iterable[Row]) -> Counts:
    """Add up what the tasks reported (aclog.pipeline.accesses.sink.REPORTED)."""
    found: Counter[str | None] = Counter()
    for row in reported:
        if row["file"] is None and row["source"] is None:
            found[row["reason"]] += row["count"]
    accesses, blanks = found.pop(None, 0), found.pop(Reason.BLANK.value, 0)
    ordered = sorted(((str(reason), count) for reason, count in found.items()), key=lambda pair: (-pair[1], pair[0]))
    return Counts(accesses=accesses, rejects=dict(ordered), blanks=blanks)
