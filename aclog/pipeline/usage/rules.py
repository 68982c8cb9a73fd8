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
from aclog.usage.report import usage_of, worth_of
from aclog.usage.rule_usage import RuleUsage
from aclog.usage.tally import TALLY, Tally, rules_to_keep
from aclog.usage.window_rules import WindowRules

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
        worth = broadcast(decided.sparkSession, worth_of(table, window))
        kept = some.where(F.col("group").isNotNull()).select("group").distinct()
        kept = kept.mapInArrow(_keeping(worth), from_arrow_schema(_KEPT)).distinct()
        return usage_of(table, np.asarray(kept.toArrow().column("ordinal")), window)
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
