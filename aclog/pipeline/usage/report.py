"""The usage report on Spark: Spark counts distinct accesses, and what judges them is the same code as without Spark.

What is collected on the driver is bounded: up to `_MOST_ON_DRIVER` distinct accesses are judged there, in seconds; more
of them are judged by Spark's workers, and the driver gets a few numbers per ACL, the days of the log and the denials
asked for.
"""

from datetime import datetime

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.settings import Settings
from aclog.pipeline.authorize import decision_code, with_decision, with_texts
from aclog.pipeline.broadcasts import broadcast
from aclog.pipeline.usage.accesses import AccessRows, CountedLog, count_log
from aclog.pipeline.usage.rules import rule_usage
from aclog.pipeline.usage.window import window_of
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.decision_codes import DecisionCode
from aclog.usage.decisions.rules import Rules
from aclog.usage.report import (
    AT_END,
    DECISION_CODE,
    Judged,
    UsageReport,
    counts_of,
    days_without_access,
    report,
)
from aclog.usage.rule_usage import rule_table
from aclog.usage.undecided import UNDECIDED, undecided
from aclog.usage.unread import UnreadAccesses
from aclog.usage.window import DAY, micros_of

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
    `accesses` has REQUEST_COLUMNS and `timestamp`; it is read once, and before that its timestamps without `until`.
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
            found = counted.accesses.toArrow()
            return report(found, judged, counted.rows, counted.days, top=top, unread=unknown)
        return _report_on_workers(counted, judged, sent, top, unknown)


def _report_on_workers(
    counted: CountedLog, judged: Judged, sent: "Broadcast[AclIntervals]", top: int, unread: UnreadAccesses
) -> UsageReport:
    decided = _decided(counted.accesses, judged).persist()
    try:
        unknown = judged.unread(UnreadAccesses.sum_of((unread, _undecided(decided))))
        by_acls = decided.where(F.col(DECISION_CODE) >= int(DecisionCode.DEFAULT_ALLOW))
        found = rule_usage(by_acls, sent, judged.settings, judged.assessed(unknown))
        by_code = decided.groupBy(DECISION_CODE).agg(F.sum("count").alias("rows"))
        return UsageReport(
            rules=rule_table(judged.rules, found),
            denied=most_denied(decided, judged.rules, top),
            holes=days_without_access(judged.window, counted.days),
            counts=counts_of(counted.rows, {row[DECISION_CODE]: row.rows for row in by_code.collect()}),
            window=judged.window,
            has_times=judged.has_times,
            unread=unknown,
        )
    finally:
        decided.unpersist()


def _undecided(decided: DataFrame) -> UnreadAccesses:
    """Return the accesses that cannot be decided, by principal and day."""
    chosen = decided.where(F.col(DECISION_CODE).isin([int(code) for code in UNDECIDED]))
    day = F.floor(F.col("first") / DAY).alias("day")
    rows = chosen.groupBy("principal", DECISION_CODE, day).agg(
        F.sum("count").alias("count"), F.min("first").alias("first"), F.max("last").alias("last")
    )
    table = rows.toArrow()
    return undecided(table, np.asarray(table.column(DECISION_CODE)).astype(np.int32))


def _decided(counted: DataFrame, judged: Judged) -> DataFrame:
    """Add `decision_code`, and `decision_code_at_end` by the ACLs at the end of the window."""
    rules, settings, own_time = judged.rules, judged.settings, judged.own_time
    # its first time stands for all: COUNTED has a row per version that makes a difference
    timed = counted.withColumn("timestamp", F.timestamp_micros("first"))
    decided = timed.withColumn(DECISION_CODE, decision_code(timed, rules, settings, own_time=own_time))
    if not own_time:
        return decided.withColumn(AT_END, F.col(DECISION_CODE))
    at_end = decided.withColumn("timestamp", F.timestamp_micros(F.lit(micros_of(judged.window.until))))
    both = at_end.withColumn(AT_END, decision_code(at_end, rules, settings, own_time=True))
    by_unknown = F.col(AT_END) == int(DecisionCode.UNKNOWN_KAFKA)  # as without Spark (usage.report.with_codes)
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
