"""What accesses say of each rule, and which rules can go together."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.vectors import Bools, Int64s
from aclog.pipeline.arrow_batches import regrouped
from aclog.pipeline.decisions.acl_intervals import FOREVER, AclIntervals
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.decisions.versions import change_times
from aclog.pipeline.usage.accesses import necessary_acls
from aclog.pipeline.usage.tally import TALLY, Tally, rules_to_keep
from aclog.pipeline.usage.window import Window, micros_of

_ROWS = 1 << 16
"""Distinct accesses looked at together."""

_KEPT = pa.schema([pa.field("ordinal", pa.int32())])


@frozen(eq=False, kw_only=True)
class WindowRules:
    """Which rules are judged, by ordinal, as it is sent to workers."""

    stood: Bools
    """In force in the whole window."""
    stays: Bools
    """Not so, but in force at the end of it: a rule that will not go."""
    version: int
    """The version of the rules at the end: of the window, or the last one where all is decided by that."""

    @classmethod
    def of(cls, intervals: AclIntervals, window: Window, *, own_time: bool) -> Self:
        """For a window."""
        times = change_times(intervals)
        if own_time:
            until = micros_of(window.until) // 1000
            version = int(np.searchsorted(times, until, "right"))
            at_end = (intervals.visible_from <= until) & (intervals.visible_to > until)
        else:
            version, at_end = len(times), intervals.visible_to == FOREVER
        stood = window.stood(intervals) & at_end
        return cls(stood=stood, stays=at_end & ~stood, version=version)


@frozen(eq=False, kw_only=True)
class RuleUsage:
    """What became of rules, by ordinal; times in us since 1970, where there is one."""

    stood: Bools
    matched: Int64s
    needed: Int64s
    last_matched: Any
    last_needed: Any
    last_needed_by: Any
    removable: Bools


def tallied(decided: DataFrame, sent: "Broadcast[AclIntervals]", settings: Settings, judged: WindowRules) -> RuleUsage:
    """Of distinct accesses (COUNTED) with `code` and `verdict_at_end`, no errors.

    Every task holds no more than some numbers a rule and the distinct groups of rules that cover for one another; of
    each group the rule that matched most is kept, a needed one before all others.
    """
    context = decided.sparkSession.sparkContext
    tallying = _tallying(sent, context.broadcast(judged), settings)
    some = decided.mapInArrow(tallying, from_arrow_schema(TALLY)).persist()
    try:
        table = _by_rule(some).toArrow()
        at, count = np.asarray(table.column("ordinal")).astype(np.int64), len(judged.stood)
        matched, needed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        matched[at], needed[at] = table.column("matched"), table.column("needed")
        worth = np.where(needed > 0, np.iinfo(np.int64).max, matched)
        kept = some.where(F.col("group").isNotNull()).select("group").distinct()
        kept = kept.mapInArrow(_keeping(context.broadcast(worth)), from_arrow_schema(_KEPT)).distinct()
        removable = judged.stood & (needed == 0)
        removable[np.asarray(kept.toArrow().column("ordinal")).astype(np.int64)] = False
    finally:
        some.unpersist()
    row = np.full(count, -1, np.int64)
    row[at] = np.arange(len(at))
    rows: Any = pa.array(row, mask=row < 0)
    last_matched, last_needed, by = (
        table.column(name).combine_chunks().take(rows) for name in ("last_matched", "last_needed", "last_needed_by")
    )
    return RuleUsage(
        stood=judged.stood,
        matched=matched,
        needed=needed,
        last_matched=last_matched,
        last_needed=last_needed,
        last_needed_by=by,
        removable=removable,
    )


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


def _tallying(sent: "Broadcast[AclIntervals]", judged: "Broadcast[WindowRules]", settings: Settings) -> Any:
    def tally(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One task: what its accesses say of rules."""
        of_rules = judged.value
        tally = Tally(necessary_acls(sent, settings), of_rules.stood, of_rules.stays, of_rules.version)
        for table in regrouped(batches, _ROWS):
            tally.add(table)
            if tally.has_many_groups:
                yield from tally.take_groups().to_batches(_ROWS)
        yield from tally.take_groups().to_batches(_ROWS)
        yield from tally.rules().to_batches(_ROWS)

    return tally


def _keeping(sent: "Broadcast[Int64s]") -> Any:
    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in regrouped(batches, _ROWS):
            kept = rules_to_keep(table.column("group").combine_chunks(), sent.value)
            yield pa.record_batch([pa.array(kept)], schema=_KEPT)

    return keep
