"""Ingestion of access logs into tables of accesses and rejects, once or as they grow; no line is dropped silently."""

import os
import re
import secrets
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, field
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.files import fsync_directory
from aclog.metalog.filelog.locks import LOCK_FILE, WriterLock
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define, frozen
from aclog.pipeline.accesses.files import ChangedFilesError, PinnedFiles, lines_in, listed, pinned
from aclog.pipeline.accesses.kafka_log import (
    Splitter,
    check_timezone,
    events_of_avro,
    events_of_json,
    lines_of,
    lines_of_kafka,
    readable_errors,
    split_lines,
    split_validated,
    validate_rows,
    zone_of,
)
from aclog.pipeline.accesses.tables import (
    DAY,
    NO_DAY,
    REPORTED,
    SCHEMAS,
    SplitAndWrite,
    Table,
    commit_files,
    rows_of_csv,
    rows_of_json,
    rows_of_parquet,
    source_of,
)
from aclog.pipeline.output_directory import Mode, OutFormat, place_of
from aclog.pipeline.outputs import Form, JobOutput, NewOutput, in_format, new_output
from aclog.pipeline.session import is_connect
from aclog.terminal.notices import BYTES, progress
from aclog.usage.accesses.access_log import LEDGER, ContentKey, Part, new_parts

# The ledger of a table that is appended to: the taken contents, the position of each source, and the table's files.
#
# A SQLite database, `_ledger.db` (Spark skips names that begin with `_`). An append is committed by one transaction,
# which names its files while they are still in a separate directory. Then they are moved into the table. An append that
# is killed before the transaction leaves nothing in the table; if it is killed later, the next append moves its files.


FileState: TypeAlias = tuple[int, int, int, int, bytes]
"""The identity of a file: device, inode, size, time of its last change in ns, and a digest of its ends."""

STAGING: Final = "_staging"
_APPLICATION, _VERSION = 0x61636C67, 1
_TABLES: Final = """
CREATE TABLE appends (number INTEGER PRIMARY KEY, at INTEGER, accesses INTEGER, rejected INTEGER, late INTEGER,
    placed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE contents (length INTEGER, digest BLOB, append INTEGER, path TEXT, start INTEGER,
    PRIMARY KEY (length, digest)) WITHOUT ROWID;
CREATE TABLE files (append INTEGER, staged TEXT, name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE sources (name TEXT PRIMARY KEY, latest INTEGER) WITHOUT ROWID;
CREATE TABLE seen (device INTEGER, inode INTEGER, size INTEGER, modified INTEGER, ends BLOB,
    PRIMARY KEY (device, inode)) WITHOUT ROWID;
"""


@frozen(kw_only=True)
class LedgerEntry:
    """The ledger entries of one append."""

    parts: Sequence[Part]
    files: Mapping[str, str]
    """Where a file stands, and where it goes, both below the table's directory."""
    latest: Mapping[str, int | None]
    """By source: the latest time that was taken from it, in us since 1970; None if no access had a time."""
    accesses: int
    rejected: int
    late: int
    at: int
    """When, in ms since 1970."""


@define
class Ledger:
    """The open ledger of one directory, which no other process appends to meanwhile."""

    out: Path
    _database: sqlite3.Connection
    _lock: WriterLock = field(repr=False)
    _is_new: bool = False
    """Whether this process has made the directory."""

    @classmethod
    def open(cls, out: Path) -> Self:
        """Open the ledger of a directory, which is created if it does not exist; finish what was killed.

        Raises:
            ConfigError: the directory holds something else, or its parent does not exist.
            LockedError: another process is appending to it.
            LogError: it cannot be locked.

        """
        if not out.absolute().parent.is_dir():
            raise ConfigError(f"{out.parent}: no such directory: expected one to create {out.name} in")
        _check_ours(out)
        is_new = not out.exists()
        out.mkdir(exist_ok=True)
        lock = WriterLock.acquire(out, force=False)
        try:
            opened = cls(out, _connected(out / LEDGER), lock, is_new)
            opened.place()
        except BaseException:
            lock.close()
            raise
        return opened

    def close(self) -> None:
        """Close the ledger, and let others append; a new directory that nothing came into is removed again."""
        unused = self._is_new and self.next_number() == 1 and not (self.out / "accesses").exists()
        self._database.close()
        if unused:
            (self.out / LEDGER).unlink(missing_ok=True)
            (self.out / LOCK_FILE).unlink(missing_ok=True)
        self._lock.close()
        if unused:
            with suppress(OSError):  # another process has begun to use it
                self.out.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def content_keys(self) -> set[ContentKey]:
        """Return the taken contents."""
        with self._readable():
            return set(self._database.execute("SELECT length, digest FROM contents"))

    def latest(self) -> dict[str, int | None]:
        """Return the latest time that was taken from each source, in us since 1970; None if no access had a time."""
        with self._readable():
            return dict(self._database.execute("SELECT name, latest FROM sources"))

    def file_states(self) -> set[FileState]:
        """Return the files all of which was taken, as they were then: those that still are need not be read again."""
        with self._readable():
            return set(self._database.execute("SELECT device, inode, size, modified, ends FROM seen"))

    def remember(self, states: Iterable[FileState]) -> None:
        """Keep files for `file_states`."""
        with self._readable(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", states)

    def next_number(self) -> int:
        """Return the number of the next append."""
        with self._readable():
            return int(self._database.execute("SELECT coalesce(max(number), 0) + 1 FROM appends").fetchone()[0])

    def commit(self, entry: LedgerEntry) -> int:
        """Commit an append, whose files have been fsynced, and move them into the table; return its number.

        Raises:
            ConfigError: the table has files of an append of this number already; nothing is committed.

        """
        number = self.next_number()
        # a ledger from a backup numbers its appends as those that it does not know of: their files would be replaced
        for pattern in (f"accesses/*/{number:08d}-*", f"rejects/{number:08d}-*"):
            for unknown in self.out.glob(pattern):
                raise ConfigError(
                    f"{self.out / LEDGER}: is older than the table, which has {unknown.relative_to(self.out)} already: "
                    "expected both of one moment: restore both, or ingest into a new directory"
                )
        with self._readable(), self._database:  # one transaction
            self._database.execute(
                "INSERT INTO appends (number, at, accesses, rejected, late) VALUES (?, ?, ?, ?, ?)",
                (number, entry.at, entry.accesses, entry.rejected, entry.late),
            )
            self._database.executemany(
                "INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?, ?)",
                [(*part.content.key, number, part.content.path, part.start) for part in entry.parts],
            )
            self._database.executemany(
                "INSERT INTO files VALUES (?, ?, ?)", [(number, *each) for each in entry.files.items()]
            )
            self._database.executemany(
                "INSERT INTO sources VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET latest = excluded.latest",
                entry.latest.items(),
            )
        self.place()
        return number

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ConfigError(f"{self.out / LEDGER}: {error}: no more files are taken") from error

    def place(self) -> None:
        """Move the files of committed appends into the table, and delete those that never were committed.

        Raises:
            ConfigError: a file is nowhere.

        """
        with self._readable():
            pending = [row[0] for row in self._database.execute("SELECT number FROM appends WHERE NOT placed")]
            for number in pending:
                rows = self._database.execute("SELECT staged, name FROM files WHERE append = ?", (number,)).fetchall()
                for staged, name in rows:
                    _move(self.out / staged, self.out / name)
                _fsync_parents(self.out, [name for _, name in rows])
                with self._database:
                    self._database.execute("UPDATE appends SET placed = 1 WHERE number = ?", (number,))
        shutil.rmtree(self.out / STAGING, ignore_errors=True)


def _check_ours(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: not a directory: expected one that --append has made, or a new name")
    if out.is_dir() and not (out / LEDGER).exists() and {each.name for each in out.iterdir()} - {LOCK_FILE}:
        raise ConfigError(f"{out}: has no {LEDGER}: expected a directory that --append has made, or a new name")


def _connected(path: Path) -> sqlite3.Connection:
    """Open the database, and create its tables in a transaction.

    Raises:
        ConfigError: not a ledger, one of a newer version, one that cannot be opened, or an empty one beside a table.

    """
    try:
        database = sqlite3.connect(path)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            if (path.parent / "accesses").exists():
                raise ConfigError(f"{path}: is empty, but the table is not: restore it, or ingest into a new directory")
            database.executescript(
                f"BEGIN; {_TABLES} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION}; COMMIT;"
            )
            fsync_directory(path.parent)
            return database
        if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION or version != _VERSION:
            raise ConfigError(f"{path}: not a ledger of version {_VERSION}: a newer aclog, or another program, made it")
    except sqlite3.Error as error:
        raise ConfigError(f"{path}: cannot be opened: {error}") from error
    return database


def _move(staged: Path, name: Path) -> None:
    if staged.exists():
        name.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(name)
    elif not name.exists():
        raise ConfigError(f"{name}: is missing, and so is {staged}: the table is damaged: ingest into a new one")


def _fsync_parents(out: Path, names: Iterable[str]) -> None:
    parents = {parent for name in names for parent in Path(name).parents}
    for parent in sorted(parents):
        fsync_directory(out / parent)


def fsync_file(path: Path) -> None:
    """Make a file that another process has written durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Ingestion of access logs into two tables, accesses and rejects with reasons; no line is dropped silently.


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
        layout_kind, zone = _kind(kind), check_timezone(spark, timezone)
        if columns and layout_kind in {Kind.KAFKA_LOG, Kind.EVENTS, Kind.EVENTS_JSONL}:
            raise ConfigError(f"--column: not supported for kind {layout_kind.value}, whose columns are known")
        return cls(kind=layout_kind, zone=zone, columns=columns or {})

    @property
    def split(self) -> Splitter:
        """What splits the rows into accesses and rejects."""
        return partial(split_lines, zone=zone_of(self.zone)) if self.kind is Kind.KAFKA_LOG else split_validated

    @property
    def is_lines(self) -> bool:
        """Whether lines are independent, so that a part of a file can be read."""
        return self.kind in {Kind.KAFKA_LOG, Kind.EVENTS_JSONL, Kind.JSONL}

    def of_lines(self, lines: DataFrame, *, files: bool = False) -> DataFrame:
        """Return one row for each line (`value`, `file`), for `split`; with `files`, accesses name theirs."""
        if self.kind is Kind.KAFKA_LOG:
            return lines_of_kafka(lines)
        if self.kind is Kind.EVENTS_JSONL:
            return validate_rows(events_of_json(lines), files=files)
        return validate_rows(rows_of_json(lines, self.columns, self.zone), files=files)

    def of_files(self, spark: SparkSession, paths: Sequence[str], *, files: bool = False) -> DataFrame:
        """Return one row for each line or row of whole files, likewise."""
        if self.is_lines:
            return self.of_lines(lines_in(spark, paths), files=files)
        if self.kind is Kind.EVENTS:
            raw = events_of_avro(spark, paths)
        else:
            read = rows_of_parquet if self.kind is Kind.PARQUET else rows_of_csv
            raw = read(spark, paths, self.columns, self.zone)
        return validate_rows(raw, files=files)


class Kind(StrEnum):
    """The format of the files."""

    KAFKA_LOG = "kafka-log"
    """kafka-authorizer.log of any Kafka version, in any layout of text, and its messages in JSON lines."""
    EVENTS = "events"
    """Audit events in Avro (aclog/authorizer/audit_event.avsc)."""
    EVENTS_JSONL = "events-jsonl"
    """Audit events as JSON lines: bare, or in the JSON log of an aclog node."""
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


@frozen(kw_only=True)
class Ingested:
    """Both tables, evaluated lazily."""

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


INGESTED: Final[Mapping[str, Form]] = {"accesses": "parquet", "rejects": "parquet"}


def write(
    ingested: Ingested,
    out: Path | str,
    *,
    max_reject_rate: float | None = None,
    mode: Mode = Mode.ERROR,
    form: OutFormat = OutFormat.PARQUET,
) -> Counts:
    """Write `out`/accesses and `out`/rejects as Parquet, and return the counts.

    The input is read once, so that tables and counts agree even if a log grows meanwhile. `out` is complete once a
    reader accepts it. It is on a file system that Spark's workers share with this process, or the URI of another store,
    for which the workers keep the rows on their disks until both tables are written.

    Raises:
        ConfigError: `out` exists, a file cannot be read, or was rotated, truncated or replaced since it was listed.
        RejectRateError: more than this share of the lines is not an access; nothing is written.

    """
    if mode is Mode.APPEND:
        raise ConfigError("ingested lines are not appended by a mode: expected `append`, which adds each line once")
    place = str(out) if is_connect(ingested.files.spark) else place_of(out)
    with new_output(ingested.files.spark, place, in_format(INGESTED, form), mode) as unfinished:
        if isinstance(unfinished, NewOutput) and isinstance(unfinished.at, Path) and form is OutFormat.PARQUET:
            counts = _write_in_tasks(ingested, unfinished.at, max_reject_rate)
        else:
            counts = _write_by_spark(ingested, unfinished, max_reject_rate)
    return counts


def _write_in_tasks(ingested: Ingested, directory: Path, max_reject_rate: float | None) -> Counts:
    task = SplitAndWrite(split=ingested.split, directory=str(directory))
    with ingested.files.verified(), readable_errors(ingested.paths):
        reported = ingested.rows.mapInArrow(task, REPORTED).collect()
    counts = counted(reported)
    check_rejects(counts, max_reject_rate)
    commit_files(directory, [row["file"] for row in reported if row["file"]])
    return counts


def _write_by_spark(ingested: Ingested, output: JobOutput, max_reject_rate: float | None) -> Counts:
    rows = split_rows(ingested.rows, ingested.split).persist(StorageLevel.DISK_ONLY)
    try:
        with ingested.files.verified(), readable_errors(ingested.paths):
            counts = counts_of(rows)
            check_rejects(counts, max_reject_rate)
            for table in SCHEMAS:
                output.write(rows.where(F.col(table).isNotNull()).select(f"{table}.*"), table)
    finally:
        rows.unpersist()
    return counts


def split_rows(rows: DataFrame, split: Splitter) -> DataFrame:
    """Return an access or a reject in each row, in the columns `accesses` and `rejects`, or a number of `blanks`."""
    kinds = [StructField(name, from_arrow_schema(schema)) for name, schema in SCHEMAS.items()]
    return rows.mapInArrow(partial(_both_parts, split), StructType([*kinds, StructField("blanks", LongType())]))


def counts_of(rows: DataFrame) -> Counts:
    """Return the numbers of lines in what `split_rows` returns."""
    reason = F.when(F.col("blanks").isNotNull(), Reason.BLANK.value).otherwise(F.col("rejects.reason"))
    totals = rows.groupBy(reason.alias("reason")).agg(F.sum(F.coalesce("blanks", F.lit(1))).alias("count"))
    nothing = F.lit(None).cast("string")
    return counted(totals.select("reason", "count", nothing.alias("file"), nothing.alias("source")).collect())


def _both_parts(split: Splitter, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the accesses and the rejects of some lines, one in each row, and the number of blank lines."""
    empty: dict[str, Any] = {name: pa.struct(list(schema)) for name, schema in SCHEMAS.items()}
    for batch in batches:
        parts = split(batch)
        for name, rows in (("accesses", parts.accesses), ("rejects", parts.rejects)):
            columns = {other: pa.nulls(rows.num_rows, kind) for other, kind in empty.items()}
            columns[name] = rows.to_struct_array()
            yield pa.record_batch([*columns.values(), pa.nulls(rows.num_rows, pa.int64())], names=[*empty, "blanks"])
        if parts.blanks:
            columns = {other: pa.nulls(1, kind) for other, kind in empty.items()}
            yield pa.record_batch([*columns.values(), pa.array([parts.blanks])], names=[*empty, "blanks"])


class RejectRateError(ConfigError):
    """Too large a share of the lines are not accesses; `counts` has the lines."""

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
    """Add up what the tasks reported (aclog.pipeline.accesses.tables.REPORTED)."""
    counts: Counter[str | None] = Counter()
    for row in reported:
        if row["file"] is None and row["source"] is None:
            counts[row["reason"]] += row["count"]
    accesses, blanks = counts.pop(None, 0), counts.pop(Reason.BLANK.value, 0)
    ordered = sorted(((str(reason), count) for reason, count in counts.items()), key=lambda pair: (-pair[1], pair[0]))
    return Counts(accesses=accesses, rejects=dict(ordered), blanks=blanks)


# A table of accesses that grows: what is new in log files goes into it, by day, once.


@frozen(kw_only=True)
class Appended:
    """The result of one append."""

    counts: Counts
    """The lines that were new."""
    files: int
    """The files that were read."""
    whole: int = 0
    """Of these, those that were new."""
    grown: int = 0
    """Those of which the beginning was known, and the rest was taken."""
    waiting: tuple[str, ...] = ()
    """Those that end in a line without line feed, which is left until it is whole."""
    days: Mapping[str, int] = field(factory=dict)
    """By day (UTC): the files that were added to it."""
    late: int = 0
    """The accesses that are older than what was known of their source before."""
    sources: Mapping[str, int | None] = field(factory=dict)
    """The latest time of each source in the table, in us since 1970; None if none of its accesses had a time."""

    @property
    def unchanged(self) -> int:
        """The files without new lines."""
        return self.files - self.whole - self.grown

    @property
    def watermark(self) -> int | None:
        """The earliest of the sources' latest times, in us since 1970; None without sources, or if one is unknown."""
        times = [latest for latest in self.sources.values() if latest is not None]
        return min(times) if times and len(times) == len(self.sources) else None


def append(
    spark: SparkSession,
    paths: Sequence[str],
    layout: Layout,
    ledger: Ledger,
    *,
    max_reject_rate: float | None = None,
) -> Appended:
    """Take what is new in these files, directories and globs into the table of an open ledger.

    Raises:
        ConfigError: a file cannot be read, or was rotated, truncated or replaced meanwhile.
        RejectRateError: more than this share of the new lines is not an access. Nothing is taken, in either case.

    """
    files = listed(spark, paths)
    at = current_time_ms()
    parts = _parts(files, ledger, lines=layout.is_lines)
    new = [part for part in parts if part.is_new]
    reported: list[Row] = []
    staging = ledger.out / STAGING / secrets.token_hex(4)
    before = ledger.latest()
    if new:
        task = SplitAndWrite(split=layout.split, directory=str(staging.absolute()), latest=before, until=at * 1000)
        pins = files.only([part.content.name for part in new])
        with pins.verified(), readable_errors(paths):
            reported = _rows(spark, layout, new).mapInArrow(task, REPORTED).collect()
        if not layout.is_lines:
            _check_sizes(pins)
    appended = evolve(_appended(parts, reported, before), files=len(files.pins))
    check_rejects(appended.counts, max_reject_rate)
    _ensure_tables(ledger.out)
    if new:
        _commit(ledger, staging, new, appended, [row["file"] for row in reported if row["file"]], at=at)
    unfinished = {part.content.name for part in parts if part.content.waiting}
    ledger.remember([pin.state for name, pin in files.pins.items() if pin.state and name not in unfinished])
    return appended


def _parts(files: PinnedFiles, ledger: Ledger, *, lines: bool) -> list[Part]:
    """Return the new contents of the files that have changed since they were taken."""
    states, table = ledger.file_states(), ledger.out.resolve()
    files_to_read = [
        (path, name, size) for name, (path, size) in files.paths().items() if files.pins[name].state not in states
    ]
    for path, _, _ in files_to_read:
        if Path(path).resolve().is_relative_to(table):
            raise ConfigError(f"{path}: is a file of the table {ledger.out} itself: expected logs elsewhere")
    try:
        if not files_to_read:
            return []
        with progress("looking for what is new", BYTES) as advance:
            return new_parts(files_to_read, ledger.content_keys(), lines=lines, advance=advance)
    except FileNotFoundError as error:
        raise ChangedFilesError(
            f"{error.filename}: removed while it was being read: run again, or on a copy"
        ) from error


def _commit(
    ledger: Ledger, staging: Path, new: Sequence[Part], appended: Appended, staged: Sequence[str], *, at: int
) -> None:
    """Commit the files that the tasks have reported, once they are durable."""
    number = ledger.next_number()
    for name in staged:
        if not (staging / name).exists():
            raise ConfigError(f"{staging / name}: written by a task, but not visible here: expected a shared directory")
        fsync_file(staging / name)
    ledger.commit(
        LedgerEntry(
            parts=new,
            files={f"{STAGING}/{staging.name}/{name}": _final_name(name, number) for name in staged},
            latest=appended.sources,
            accesses=appended.counts.accesses,
            rejected=appended.counts.rejected,
            late=appended.late,
            at=at,
        )
    )


def _rows(spark: SparkSession, layout: Layout, new: Sequence[Part]) -> DataFrame:
    if layout.is_lines:
        return layout.of_lines(lines_of(spark, new), files=True)
    # Spark takes each path for a glob, in which `a[1].csv` is a1.csv
    names = [re.sub(r"[][{}*?\\]", r"\\\g<0>", part.content.path) for part in new]
    return layout.of_files(spark, names, files=True)


def _check_sizes(pins: PinnedFiles) -> None:
    """Refuse files that have grown although they are only valid, or known, as a whole."""
    for path, size in pins.paths().values():
        if Path(path).stat().st_size != size:
            raise ChangedFilesError(f"{path}: has grown while it was being read: append it once it is complete")


def _appended(parts: Sequence[Part], reported: Sequence[Row], before: Mapping[str, int | None]) -> Appended:
    new = [source_of(part.content.name) for part in parts if part.is_new]
    # a source of which no access has a time is unknown: the table is complete up to no time then
    sources, late, days = {**dict.fromkeys(new), **before}, 0, Counter[str]()
    for row in reported:
        if row["source"] is not None:
            sources[row["source"]] = max(row["latest"], sources.get(row["source"]) or row["latest"])
            late += row["late"]
        elif row["file"] is not None and row["file"].startswith(f"accesses/{DAY}="):
            days[row["file"].split("/")[1].removeprefix(f"{DAY}=")] += 1
    return Appended(
        counts=counted(reported),
        files=len(parts),
        whole=sum(part.is_new and part.start == 0 for part in parts),
        grown=sum(part.is_new and part.start > 0 for part in parts),
        waiting=tuple(part.content.path for part in parts if part.content.waiting),
        days=dict(sorted(days.items())),
        late=late,
        sources=sources,
    )


def _final_name(staged: str, number: int) -> str:
    """Return the name of a file in the table, which no other append uses."""
    path = Path(staged)
    return str(path.with_name(f"{number:08d}-{path.name}"))


def _ensure_tables(out: Path) -> None:
    """Give a new table a file without rows: a reader needs one for the schema."""
    directories = {"accesses": out / "accesses" / f"{DAY}={NO_DAY}", "rejects": out / "rejects"}
    for table, schema in SCHEMAS.items():
        path = directories[table] / "00000000-empty.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"_{path.name}")
            pq.write_table(schema.empty_table(), partial)
            partial.rename(path)
