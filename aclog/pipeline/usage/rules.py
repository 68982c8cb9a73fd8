"""Usage of each ACL by a log, and which ACLs can be removed together."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Int64s
from aclog.pipeline.broadcasts import broadcast
from aclog.pipeline.usage.accesses import necessary_acls
from aclog.usage.arrow.batches import regrouped
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.rule_usage import RuleUsage
from aclog.usage.tally import TALLY, Tally, rules_to_keep
from aclog.usage.window import WindowRules

_ROWS = 1 << 16
"""Distinct accesses processed together."""

_KEPT = pa.schema([pa.field("ordinal", pa.int32())])


def rule_usage(
    decided: DataFrame, sent: "Broadcast[AclIntervals]", settings: Settings, window: WindowRules
) -> RuleUsage:
    """Return the usage by distinct accesses without errors: COUNTED with `decision_code` and `decision_code_at_end`.

    A task holds a few numbers per ACL, and distinct groups of ACLs that cover for one another. Each group keeps the ACL
    that matched most, but a needed one before all others; the ACLs that no group keeps can be removed together.
    """
    tallying = _tallying(sent, broadcast(decided.sparkSession, window), settings)
    # persisted: it is read twice, for the counts and, once these are known, for the groups
    some = decided.mapInArrow(tallying, from_arrow_schema(TALLY)).persist()
    try:
        table = _by_rule(some).toArrow()
        at, count = np.asarray(table.column("ordinal")).astype(np.int64), len(window.throughout)
        matched, needed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        matched[at], needed[at] = table.column("matched"), table.column("needed")
        # a needed ACL stays anyway: if it also stands for its other groups, fewer ACLs are kept
        worth = np.where(needed > 0, np.iinfo(np.int64).max, matched)
        kept = some.where(F.col("group").isNotNull()).select("group").distinct()
        kept = kept.mapInArrow(_keeping(broadcast(decided.sparkSession, worth)), from_arrow_schema(_KEPT)).distinct()
        removable = window.throughout & (needed == 0)
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
        throughout=window.throughout,
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


def _tallying(sent: "Broadcast[AclIntervals]", window: "Broadcast[WindowRules]", settings: Settings) -> Any:
    def tally(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Tally one partition, on a worker."""
        tally = Tally(necessary_acls(sent, settings), window.value)
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
