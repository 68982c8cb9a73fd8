"""The usage report on Spark."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from attrs import asdict
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.audit import Reason
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.access_rows import AccessRows, Batches, rows_of_parts
from aclog.pipeline.accesses.catalogs import CatalogRows, CatalogTable, SqlQuery, catalog_rows
from aclog.pipeline.accesses.table_formats import named_table, table_frame
from aclog.pipeline.authorize import decision_code, with_decision, with_texts
from aclog.pipeline.session import Sent, broadcast
from aclog.pipeline.storage import has_file, is_directory, joined
from aclog.usage.accesses.access_batch import note_text
from aclog.usage.accesses.access_log import INCOMPLETE, INCOMPLETE_PARTITION, check_complete
from aclog.usage.accesses.parquet import EARLIEST_COLUMN, LATEST_COLUMN, ParquetPart
from aclog.usage.accesses.table_formats import NEWEST
from aclog.usage.arrow import regrouped
from aclog.usage.counting import (
    COUNTED,
    TALLY,
    AccessCounter,
    LogCounter,
    RowCounts,
    SeenAccesses,
    Tally,
    rules_to_keep,
)
from aclog.usage.decisions.bulk_authorizer import NecessaryAcls
from aclog.usage.decisions.decisions import REQUEST_COLUMNS, DecisionCode
from aclog.usage.decisions.intervals import AclIntervals, Rules, change_times
from aclog.usage.judging import (
    AT_END,
    DECISION_CODE,
    Judged,
    RuleUsage,
    UsageReport,
    counts_of,
    days_without_access,
    report,
    rule_table,
    usage_of,
    worth_of,
)
from aclog.usage.rules import WindowRules
from aclog.usage.undecided import UNDECIDED, undecided
from aclog.usage.window import DAY, UnreadAccesses, UnreadCounter, UnreadSpan, Window, check_days, of_micros

# Distinct accesses of a log, each once per version of the ACLs that made a difference to it, and its rows counted.


_ROWS = 1 << 18
"""Rows counted together."""

_ROW_COUNT, _DAY, _UNREAD = -1, -2, -3
"""In place of a version: the row has the number of rows of the kind that `principal` names, or that there were
any on the day that `principal` is, in days since 1970, or how many of a principal have no time."""


@frozen(eq=False, kw_only=True)
class CountedLog:
    """What Spark has counted."""

    accesses: DataFrame
    """COUNTED, one row per access and version."""
    distinct: int
    """The rows of `accesses`."""
    rows: RowCounts
    days: frozenset[int]
    """The days (UTC, since 1970) with any access, in the window or not."""
    unread: UnreadAccesses
    """Rows without a time."""


@contextmanager
def count_log(accesses: AccessRows, sent: "Sent[AclIntervals]", judged: Judged) -> Iterator[CountedLog]:
    """Count the rows of a log, all with one pass over it; the result is held until this is left.

    Tasks add up what they see, and the JVM adds up their results: a distinct access is shuffled once per task, and more
    often only if a task sees more of them than it can hold.
    """
    how = _How(settings=judged.settings, window=judged.window, own_time=judged.own_time, known_from=judged.known_from)
    reported = accesses.frame.mapInArrow(_counting(accesses.parts, sent, how), from_arrow_schema(COUNTED))
    counted = (
        reported.groupBy(*REQUEST_COLUMNS, "version")
        .agg(F.sum("count").alias("count"), F.min("first").alias("first"), F.max("last").alias("last"))
        .persist()
    )
    try:
        about = counted.where(F.col("version") < 0).select("version", "principal", "count").collect()
        real = counted.where(F.col("version") >= 0)
        yield CountedLog(
            accesses=real,
            distinct=real.count(),
            rows=RowCounts(**{row.principal: row["count"] for row in about if row.version == _ROW_COUNT}),
            days=frozenset(int(row.principal) for row in about if row.version == _DAY),
            unread=_untimed((row.principal, row["count"]) for row in about if row.version == _UNREAD),
        )
    finally:
        counted.unpersist()


@frozen(kw_only=True)
class _How:
    """The parameters of counting that a worker needs besides the ACLs."""

    settings: Settings
    window: Window
    own_time: bool
    known_from: int | None


def _counting(
    parts: "Sent[Sequence[ParquetPart]] | None", sent: "Sent[AclIntervals]", how: _How
) -> Callable[[Batches], Batches]:
    def count(batches: Batches) -> Batches:
        """Count one partition, on a worker."""
        memory = _memory(sent, how.settings, own_time=how.own_time)
        counter = LogCounter(accesses=AccessCounter(memory), window=how.window, known_from=how.known_from)
        for rows in regrouped(batches, _ROWS) if parts is None else rows_of_parts(parts, batches):
            if counter.accesses.is_full:
                # emit before forgetting: the counter holds counts by the numbers of the accesses seen
                yield from counter.accesses.table().to_batches(_ROWS)
                memory.forget()
                counter.accesses = AccessCounter(memory)
            counter.add(rows)
        yield from counter.accesses.table().to_batches(_ROWS)
        yield _about(counter)

    return count


def _about(counter: LogCounter) -> pa.RecordBatch:
    entries: list[tuple[int, str | None, int]] = [
        (_ROW_COUNT, name, count) for name, count in asdict(counter.rows).items()
    ]
    entries += [(_DAY, str(day), 0) for day in sorted(counter.days)]
    counts = Counter[str | None]()
    for key, span in counter.unread.total.spans.items():
        counts[key.principal] += span.accesses
    entries += [(_UNREAD, principal, count) for principal, count in counts.items()]
    rows = [{"version": kind, "principal": name, "count": count} for kind, name, count in entries]
    return pa.RecordBatch.from_pylist(rows, schema=COUNTED)


def _untimed(counts: Iterable[tuple[str | None, int]]) -> UnreadAccesses:
    counter = UnreadCounter()
    for principal, count in counts:
        counter.add(principal, None, DecisionCode.NO_TIME.name, UnreadSpan(count, None, None))
    return counter.total


@lru_cache(1)
def _memory(sent: "Sent[AclIntervals]", settings: Settings, *, own_time: bool) -> SeenAccesses:
    """Return the accesses that a worker process has seen, kept from task to task."""
    if own_time:
        return SeenAccesses(necessary_acls(sent, settings))
    return SeenAccesses(None, version=len(change_times(sent.value)))


@lru_cache(2)
def necessary_acls(sent: "Sent[AclIntervals]", settings: Settings) -> NecessaryAcls:
    """Return the index of ACLs of a worker process, kept from task to task."""
    return NecessaryAcls.of(sent.value, settings)


# Usage of each ACL by a log, and which ACLs can be removed together.


_RULE_ROWS = 1 << 16
"""Distinct accesses processed together."""

_KEEP_SCHEMA = pa.schema([pa.field("ordinal", pa.int32())])


def rule_usage(decided: DataFrame, sent: "Sent[AclIntervals]", settings: Settings, window: WindowRules) -> RuleUsage:
    """Return the usage by distinct accesses without errors: COUNTED with `decision_code` and `decision_code_at_end`.

    A task holds a few numbers per ACL, and distinct groups of ACLs that cover for one another. Each group keeps the ACL
    that matched most, but a needed one before all others; the ACLs that no group keeps can be removed together.
    """
    tallying = _tallying(sent, broadcast(decided.sparkSession, window), settings)
    # persisted: it is read twice, for the counts and, once these are known, for the groups
    some = decided.mapInArrow(tallying, from_arrow_schema(TALLY)).persist()
    try:
        table = _by_rule(some).toArrow()
        worth = broadcast(decided.sparkSession, worth_of(table, window))
        keep = some.where(F.col("group").isNotNull()).select("group").distinct()
        keep = keep.mapInArrow(_keeping(worth), from_arrow_schema(_KEEP_SCHEMA)).distinct()
        return usage_of(table, np.asarray(keep.toArrow().column("ordinal")), window)
    finally:
        some.unpersist()


def _by_rule(some: DataFrame) -> DataFrame:
    needed_last = F.max(F.struct("last_needed", "last_needed_by"))
    sums = (
        some.where(F.col("ordinal").isNotNull())
        .groupBy("ordinal")
        .agg(
            F.sum("matched").alias("matched"),
            F.sum("needed").alias("needed"),
            F.max("last_matched").alias("last_matched"),
            needed_last.alias("by"),
        )
    )
    return sums.select("ordinal", "matched", "needed", "last_matched", "by.*")


def _tallying(sent: "Sent[AclIntervals]", window: "Sent[WindowRules]", settings: Settings) -> Any:
    def tally(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Tally one partition, on a worker."""
        tally = Tally(necessary_acls(sent, settings), window.value)
        for table in regrouped(batches, _RULE_ROWS):
            tally.add(table)
            if tally.has_many_groups:
                yield from tally.take_groups().to_batches(_RULE_ROWS)
        yield from tally.take_groups().to_batches(_RULE_ROWS)
        yield from tally.rules().to_batches(_RULE_ROWS)

    return tally


def _keeping(sent: "Sent[Int64s]") -> Any:
    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in regrouped(batches, _RULE_ROWS):
            ordinals = rules_to_keep(table.column("group").combine_chunks(), sent.value)
            yield pa.record_batch([pa.array(ordinals)], schema=_KEEP_SCHEMA)

    return keep


# Unreadable and undecided accesses of an access log, counted from lines and rows.


_COUNTED: Final = pa.schema(
    [(name, pa.string()) for name in ("principal", "decision", "reason", "broker")]
    + [(name, pa.int64()) for name in ("accesses", "first", "last")]
)


def unread_lines(lines: DataFrame, reason: str = Reason.MALFORMED) -> UnreadAccesses:
    """Return the accesses in unreadable lines: texts in the only column, or rows of a table of rejects.

    A table of an older version lacks the broker and the times of a line: those that its text has are taken.
    """
    first = F.col(lines.columns[0]).cast("string").alias("line")
    rejects = lines if len(lines.columns) > 1 else lines.select(first, F.lit(str(reason)).alias("reason"))
    kinds = {"line": "string", "reason": "string", "broker": "string", EARLIEST_COLUMN: "timestamp"}
    kinds[LATEST_COLUMN] = "timestamp"
    rows = rejects.select(
        *(
            (F.col(name) if name in rejects.columns else F.lit(None)).cast(kind).alias(name)
            for name, kind in kinds.items()
        )
    )
    return _added_up(rows.mapInArrow(_counted, from_arrow_schema(_COUNTED)))


_MARKER: Final = f"{INCOMPLETE}.parquet"


def rejected_lines(spark: SparkSession, requests: str | CatalogRows) -> UnreadAccesses:
    """Return the accesses in lines that `ingest` rejected, if this is the directory or a table of `ingest`.

    Raises:
        ConfigError: the job that wrote them has published the accesses alone.

    """
    if isinstance(requests, CatalogTable):
        table = requests.beside("_accesses", "_rejects")
        known = table is not None and table.exists(spark)
        return unread_lines(catalog_rows(spark, table)) if table is not None and known else UnreadAccesses()
    if isinstance(requests, SqlQuery):
        return UnreadAccesses()
    above, _, name = requests.rstrip("/").rpartition("/")
    place = (above or ".") if name == "accesses" else requests
    rejects = joined(place, "rejects")
    if not (is_directory(spark, joined(place, "accesses")) and has_file(spark, rejects, ".parquet")):
        return UnreadAccesses()
    if has_file(spark, rejects, _MARKER):
        check_complete([joined(rejects, _MARKER)])
    if has_file(spark, joined(rejects, INCOMPLETE_PARTITION), ".txt"):
        check_complete([joined(rejects, INCOMPLETE_PARTITION, "part-0.txt")])
    root = named_table(spark, rejects)
    if root is not None:
        return unread_lines(table_frame(spark, root, NEWEST))
    # appends of older versions have fewer columns
    return unread_lines(spark.read.option("mergeSchema", value=True).parquet(rejects))


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counter = UnreadCounter()
    for batch in batches:
        times = [batch.column(name).cast(pa.int64()) for name in (EARLIEST_COLUMN, LATEST_COLUMN)]
        columns = [*(batch.column(name) for name in ("line", "reason", "broker")), *times]
        for text, reason, broker, *span in zip(*(column.to_pylist() for column in columns), strict=True):
            known_reason = Reason(reason) if reason in list(Reason) else Reason.UNREADABLE
            note_text(counter, known_reason, str(text), UTC, broker=broker, span=UnreadSpan(1, *span))
    yield _batch_of(counter.total)


def _batch_of(unread: UnreadAccesses) -> pa.RecordBatch:
    rows = [
        {**{name: getattr(key, name) for name in ("principal", "decision", "reason", "broker")}, **span._asdict()}
        for key, span in unread.spans.items()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_COUNTED)


def _added_up(counted: DataFrame) -> UnreadAccesses:
    counter = UnreadCounter()
    for row in counted.toArrow().to_pylist():
        span = UnreadSpan(row["accesses"], row["first"], row["last"])
        counter.add(row["principal"], row["decision"], row["reason"], span, broker=row["broker"])
    return counter.total


# The window of a report on an access log: where it ends.


def window_of(accesses: AccessRows, days: int, until: datetime | None) -> Window:
    """Return the window of `days` up to `until`, by default up to the latest access.

    Raises:
        ConfigError: no access has a timestamp, or `days` is out of bounds.

    """
    check_days(days)
    if until is None:
        latest = accesses.latest()
        if latest is None:
            raise ConfigError("no access has a timestamp: expected one, or the end of the window")
        until = of_micros(latest)
    return Window.ending(until, days)


# The usage report on Spark: Spark counts distinct accesses, and what judges them is the same code as without Spark.
#
# What is collected on the driver is bounded: up to `_MOST_ON_DRIVER` distinct accesses are judged there, in seconds;
# more of them are judged by Spark's workers, and the driver gets a few numbers per ACL, the days of the log and the
# requested denials.


_MOST_ON_DRIVER = 1 << 20
"""Distinct accesses that the driver judges; about 700 bytes each."""


def usage(
    accesses: DataFrame | AccessRows,
    rules: Rules,
    settings: Settings,
    *,
    own_time: bool,
    window_days: int,
    until: datetime | None = None,
    top: int = 100,
    unread: UnreadAccesses | None = None,
) -> UsageReport:
    """Report on the accesses of the last `window_days` before `until`, by default before the latest access.

    With `own_time` each access is decided by the ACLs of its own time, otherwise by those of the last version.
    `accesses` has REQUEST_COLUMNS, `timestamp` and, if the log names its decisions, `loggedDecision`; it is read once,
    and before that its timestamps without `until`.
    `unread` are the accesses of the log whose lines could not be read.

    Raises:
        ConfigError: no access has a timestamp, or `window_days` is out of bounds.

    """
    rows = AccessRows.of_frame(accesses) if isinstance(accesses, DataFrame) else accesses
    window = window_of(rows, window_days, until)
    judged = Judged(rules=rules, settings=settings, window=window, own_time=own_time)
    sent = broadcast(rows.frame.sparkSession, rules.intervals)
    with count_log(rows, sent, judged) as counted:
        unknown = UnreadAccesses.sum_of((unread or UnreadAccesses(), counted.unread))
        if counted.distinct <= _MOST_ON_DRIVER:
            table = counted.accesses.toArrow()
            return report(table, judged, counted.rows, counted.days, top=top, unread=unknown)
        return _report_on_workers(counted, judged, sent, top, unknown)


def _report_on_workers(
    counted: CountedLog, judged: Judged, sent: "Sent[AclIntervals]", top: int, unread: UnreadAccesses
) -> UsageReport:
    decided = _decided(counted.accesses, judged).persist()
    try:
        unknown = judged.unread(UnreadAccesses.sum_of((unread, _undecided_counts(decided))))
        by_acls = decided.where(F.col(DECISION_CODE) >= int(DecisionCode.DEFAULT_ALLOW))
        usage_of_rules = rule_usage(by_acls, sent, judged.settings, judged.assessed(unknown))
        by_code = decided.groupBy(DECISION_CODE).agg(F.sum("count").alias("rows"))
        usage_report = UsageReport(
            rules=rule_table(judged.rules, usage_of_rules),
            denied=most_denied(decided, judged.rules, top),
            holes=days_without_access(judged.window, counted.days),
            counts=counts_of(counted.rows, {row[DECISION_CODE]: row.rows for row in by_code.collect()}),
            window=judged.window,
            has_times=judged.has_times,
            unread=unknown,
            known_from=judged.rules.intervals.known_from,
            logged_types=frozenset(row["resourceType"] for row in decided.select("resourceType").distinct().collect()),
        )
        return usage_report.of_log(counted.rows)
    finally:
        decided.unpersist()


def _undecided_counts(decided: DataFrame) -> UnreadAccesses:
    """Return the accesses that cannot be decided, by principal and day."""
    without_decision = decided.where(F.col(DECISION_CODE).isin([int(code) for code in UNDECIDED]))
    day = F.floor(F.col("first") / DAY).alias("day")
    rows = without_decision.groupBy("principal", DECISION_CODE, day).agg(
        F.sum("count").alias("count"), F.min("first").alias("first"), F.max("last").alias("last")
    )
    table = rows.toArrow()
    return undecided(table, np.asarray(table.column(DECISION_CODE)).astype(np.int32))


def _decided(counted: DataFrame, judged: Judged) -> DataFrame:
    """Add `decision_code`, and `decision_code_at_end` by the newest ACLs."""
    rules, settings, own_time = judged.rules, judged.settings, judged.own_time
    # its first time represents all: COUNTED has a row per version that makes a difference
    timed = counted.withColumn("timestamp", F.timestamp_micros("first"))
    decided = timed.withColumn(DECISION_CODE, decision_code(timed, rules, settings, own_time=own_time))
    if not own_time:
        return decided.withColumn(AT_END, F.col(DECISION_CODE))
    at_end = decided.withColumn("timestamp", F.timestamp_micros(F.lit(judged.newest)))
    both = at_end.withColumn(AT_END, decision_code(at_end, rules, settings, own_time=True))
    by_unknown = F.col(AT_END) == int(DecisionCode.UNKNOWN_KAFKA)  # as without Spark (usage.judging.with_codes)
    return both.withColumn(DECISION_CODE, F.when(by_unknown, F.col(AT_END)).otherwise(F.col(DECISION_CODE)))


def most_denied(decided: DataFrame, rules: Rules, top: int) -> pa.Table:
    """Return the most denied of distinct accesses (COUNTED with `decision_code`), at most `top`; ties by columns."""
    most = (
        with_decision(decided, rules, DECISION_CODE, "decision")
        .where(F.col("decision") == "DENIED")
        .groupBy(*REQUEST_COLUMNS)
        .agg(
            F.sum("count").alias("count"),
            F.timestamp_micros(F.min("first")).alias("first_at"),
            F.timestamp_micros(F.max("last")).alias("last_at"),
            F.max_by(DECISION_CODE, "last").alias(DECISION_CODE),
        )
        .orderBy(F.desc("count"), *REQUEST_COLUMNS)
        .limit(top)
    )
    named = with_texts(most, rules).drop(DECISION_CODE, "decision")
    return named.orderBy(F.desc("count"), *REQUEST_COLUMNS).toArrow()
