"""The usage report: which ACLs an access log needed, which it did not, and its most frequent denials.

Python sees distinct accesses only, each once per version of the ACLs that made a difference to it. What is collected on
the driver is bounded by the number of ACLs, the days of the window and the rows asked for.
"""

from datetime import datetime

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.settings import Settings
from aclog.pipeline.authorize import DECISION_CODE, decision_code, with_decision, with_texts
from aclog.pipeline.broadcasts import broadcast
from aclog.pipeline.usage.accesses import count_accesses
from aclog.pipeline.usage.rules import rule_usage
from aclog.pipeline.usage.window import days_without_access, is_in, window_of
from aclog.usage.counts import Counts
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.acl_intervals import ALWAYS
from aclog.usage.decisions.decision_codes import ERRORS, DecisionCode
from aclog.usage.decisions.rules import Rules
from aclog.usage.decisions.versions import change_times
from aclog.usage.rule_usage import rule_table
from aclog.usage.window import Window, WindowRules, micros_of


@frozen(eq=False, kw_only=True)
class Usage:
    """The usage of ACLs by a log.

    `rules`: a row per ACL, by ordinal: RULE_COLUMNS; in_force_from and in_force_to (null if unbounded); `answer`; the
    counts of accesses `matched` and `needed`; last_matched_at, last_needed_at, last_needed_by; `removable`: all
    removable ACLs can be removed together without changing a decision on any access in the window, neither by the ACLs
    of its own time nor by those at the end of the window.
    `denied`: the most denied accesses: REQUEST_COLUMNS, `count`, `first_at`, `last_at`, and the `rule` and `rule_id` of
    the last denial.
    `holes`: the days of the window without any access, in the column `day`.
    """

    rules: DataFrame
    denied: DataFrame
    holes: DataFrame
    counts: Counts
    window: Window
    has_times: bool
    """Whether intervals are known; if not, all ACLs count as in force in the whole window."""


def usage(
    accesses: DataFrame,
    rules: Rules,
    settings: Settings,
    *,
    own_time: bool,
    window_days: int,
    until: datetime | None = None,
    top: int = 100,
) -> Usage:
    """Report on the accesses of the last `window_days` before `until`, by default before the latest access.

    With `own_time` each access is decided by the ACLs of its own time, otherwise by those of the last version.
    `accesses` has REQUEST_COLUMNS and `timestamp`; it is read three times, twice of them only its timestamps.

    Raises:
        ConfigError: no access has a timestamp, or `window_days` is out of bounds.

    """
    window = window_of(accesses, window_days, until)
    inside = F.coalesce(is_in(window, F.col("timestamp")), F.lit(False))
    known = F.lit(True)
    if own_time and rules.intervals.known_from > ALWAYS:
        known = F.unix_micros("timestamp") >= rules.intervals.known_from * 1000
    sent = broadcast(accesses.sparkSession, rules.intervals)
    once = count_accesses(accesses.where(inside & known), sent, settings, own_time=own_time)
    decided = _decided(once, rules, settings, window, own_time=own_time).persist()
    try:
        counts = _counts(accesses.select(inside.alias("inside"), known.alias("known"), "timestamp"), decided)
        assessed = WindowRules.of(rules.intervals, window, own_time=own_time)
        found = rule_usage(
            decided.where(F.col(DECISION_CODE) >= int(DecisionCode.DEFAULT_ALLOW)), sent, settings, assessed
        )
        tables = rule_table(rules, found), most_denied(decided, rules, top), days_without_access(window, accesses)
    finally:
        decided.unpersist()
    rule_rows, denied, holes = map(accesses.sparkSession.createDataFrame, tables)
    has_times = len(change_times(rules.intervals)) > 0 or rules.intervals.known_from > ALWAYS
    return Usage(rules=rule_rows, denied=denied, holes=holes, counts=counts, window=window, has_times=has_times)


def _decided(once: DataFrame, rules: Rules, settings: Settings, window: Window, *, own_time: bool) -> DataFrame:
    """Add `decision_code`, and `decision_code_at_end` by the ACLs at the end of the window."""
    # its first time stands for all: COUNTED has a row per version that makes a difference
    timed = once.withColumn("timestamp", F.timestamp_micros("first"))
    decided = timed.withColumn(DECISION_CODE, decision_code(timed, rules, settings, own_time=own_time))
    if not own_time:
        return decided.withColumn("decision_code_at_end", F.col(DECISION_CODE))
    at_end = decided.withColumn("timestamp", F.timestamp_micros(F.lit(micros_of(window.until))))
    return at_end.withColumn("decision_code_at_end", decision_code(at_end, rules, settings, own_time=True))


def _counts(rows: DataFrame, decided: DataFrame) -> Counts:
    seen = rows.agg(
        F.count("*").alias("total"),
        F.count_if(F.col("timestamp").isNull()).alias("without_time"),
        F.count_if(F.col("timestamp").isNotNull() & ~F.col("inside")).alias("outside"),
        F.count_if(F.col("inside") & ~F.col("known")).alias("before_log"),
    ).collect()[0]
    kind = F.when(F.col(DECISION_CODE) < int(DecisionCode.DEFAULT_ALLOW), F.col(DECISION_CODE)).alias("kind")
    by_kind = {row.kind: row.rows for row in decided.groupBy(kind).agg(F.sum("count").alias("rows")).collect()}
    return Counts(
        total=seen.total,
        without_time=seen.without_time,
        outside=seen.outside,
        before_log=seen.before_log,
        super_users=by_kind.get(int(DecisionCode.SUPER_USER), 0),
        errors={text: by_kind[int(code)] for code, text in ERRORS.items() if int(code) in by_kind},
        decided=by_kind.get(None, 0),
    )


def most_denied(decided: DataFrame, rules: Rules, top: int) -> pa.Table:
    """Return the most denied of distinct accesses (COUNTED) with `decision_code`, at most `top`; ties by columns."""
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
