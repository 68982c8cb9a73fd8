"""From access logs to two tables: the accesses, and what is none with the reason. Nothing is dropped silently."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from attrs import field, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.access_table import Reason, Splitter, split_validated, validate_rows
from aclog.pipeline.accesses.access_times import check_timezone
from aclog.pipeline.accesses.events import events_of_avro, events_of_json
from aclog.pipeline.accesses.external_tables import rows_of_csv, rows_of_json, rows_of_parquet
from aclog.pipeline.accesses.kafka_log import lines_of_kafka, split_lines
from aclog.pipeline.accesses.line_files import read_lines, readable_errors
from aclog.pipeline.accesses.sink import REPORTED, SCHEMAS, SplitAndWrite, Table, commit_files
from aclog.pipeline.output_directory import new_directory


class Kind(StrEnum):
    """What is in the files."""

    KAFKA_LOG = "kafka-log"
    """kafka-authorizer.log of any Kafka, in its own layout `[%d] %p %m (%c)%n`."""
    EVENTS = "events"
    """Audit events in Avro (aclog/authorizer/audit_event.avsc)."""
    EVENTS_JSONL = "events-jsonl"
    """Audit events as JSON lines: bare, or in the log of a node that logs JSON."""
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


@frozen(kw_only=True)
class Ingested:
    """Both tables, not yet computed."""

    rows: DataFrame
    """What was read: a line or row each."""
    split: Splitter
    """What tells the accesses among them."""
    paths: tuple[str, ...]

    @cached_property
    def accesses(self) -> DataFrame:
        """The accesses, with ACCESS_COLUMNS."""
        return _split_off(self, "accesses")

    @cached_property
    def rejects(self) -> DataFrame:
        """What is no access, with REJECT_COLUMNS."""
        return _split_off(self, "rejects")


@frozen(kw_only=True)
class Counts:
    """Lines (rows) by what became of them; `total` is all that were read."""

    accesses: int
    rejects: Mapping[str, int] = field(factory=dict)
    """By Reason, most frequent first."""
    blanks: int = 0

    @property
    def rejected(self) -> int:
        """All rejects."""
        return sum(self.rejects.values())

    @property
    def total(self) -> int:
        """Every line that was read."""
        return self.accesses + self.rejected + self.blanks


def ingest(
    spark: SparkSession,
    paths: str | Path | Sequence[str | Path],
    kind: str,
    *,
    timezone: str = "UTC",
    columns: Mapping[str, str] | None = None,
) -> Ingested:
    """The accesses and the rejects of files, directories and globs.

    `timezone` is that of times without one: a broker logs its local time. `columns` maps names of ACCESS_COLUMNS to
    those of a Parquet, CSV or JSON lines table; what it does not name is looked for under our own name.

    Raises:
        ConfigError: nothing is there, no such kind or zone, or a column is missing. What can only be seen in
            reading (a file that is not Avro) comes from `write`.

    """
    named = (paths,) if isinstance(paths, str | Path) else tuple(paths)
    places = tuple(str(path) for path in named)
    if not places:
        raise ConfigError("no files to read are named")
    wanted, zone = _kind(kind), check_timezone(spark, timezone)
    if columns and wanted in {Kind.KAFKA_LOG, Kind.EVENTS, Kind.EVENTS_JSONL}:
        raise ConfigError(f"columns are not to be named for {wanted.value}: the names are known")
    if wanted is Kind.KAFKA_LOG:
        return Ingested(rows=lines_of_kafka(read_lines(spark, places), zone), split=split_lines, paths=places)
    judged = validate_rows(_raw(spark, places, wanted, zone, columns or {}))
    return Ingested(rows=judged, split=split_validated, paths=places)


def _kind(name: str) -> Kind:
    try:
        return Kind(name)
    except ValueError as error:
        raise ConfigError(f"kind {name!r} is not known: expected {', '.join(Kind)}") from error


def _raw(spark: SparkSession, paths: Sequence[str], kind: Kind, zone: str, columns: Mapping[str, str]) -> DataFrame:
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
    """Write `out`/accesses and `out`/rejects as Parquet, and say how many there are.

    The input is read once: tables and counts are of one and the same reading. `out` appears when it is whole. It must
    be on a file system that Spark's workers share with this process.

    Raises:
        ConfigError: `out` is there, or a file cannot be read; it is named.

    """
    with new_directory(out) as partial:
        task = SplitAndWrite(split=ingested.split, directory=str(partial))
        with readable_errors(ingested.paths):
            told = ingested.rows.mapInArrow(task, REPORTED).collect()
        commit_files(partial, [row["file"] for row in told if row["file"]])
    found: Counter[str | None] = Counter()
    for row in told:
        if row["file"] is None:
            found[row["reason"]] += row["count"]
    return _counts(found)


def _counts(found: Counter[str | None]) -> Counts:
    accesses, blanks = found.pop(None, 0), found.pop(Reason.BLANK.value, 0)
    ordered = sorted(((str(reason), count) for reason, count in found.items()), key=lambda pair: (-pair[1], pair[0]))
    return Counts(accesses=accesses, rejects=dict(ordered), blanks=blanks)
