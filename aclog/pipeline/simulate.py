"""Simulation: the accesses of a log whose decisions other ACLs would change."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.settings import Settings
from aclog.pipeline.authorize import DECISION_CODE, decision_code, with_decision, with_texts
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.decision_codes import DecisionCode
from aclog.usage.decisions.rules import Rules
from aclog.usage.simulation import Change
from aclog.usage.unread import UnreadAccesses, UnreadCounter, UnreadSpan

_SIDES = ("before", "after")


def simulate(
    accesses: DataFrame,
    before: tuple[Rules, Settings],
    after: tuple[Rules, Settings],
    *,
    own_time: bool = False,
) -> DataFrame:
    """Return a row for each distinct access whose decision changes and each pair of ACLs that decide it.

    An ACL that was removed and added again counts as two.

    Columns: `change`; the five of the access; `count`, `first_at`, `last_at` (null without `timestamp`);
    decision_before, rule_before, rule_id_before, and the same after. With `own_time` each row of the log is decided by
    the ACLs of its own time on both sides. Nothing is collected on the driver.
    """
    time = F.col("timestamp") if "timestamp" in accesses.columns else F.lit(None).cast("timestamp")
    rows = accesses.select(*REQUEST_COLUMNS, time.alias("timestamp"))
    one = F.lit(1).cast("long").alias("count")
    decided = rows.select("*", one, F.col("timestamp").alias("first_at"), F.col("timestamp").alias("last_at"))
    if not own_time:  # with one state, aggregate first: a distinct access is decided once in all, not once per task
        decided = _added_up(decided, REQUEST_COLUMNS)
    for side, (rules, settings) in zip(_SIDES, (before, after), strict=True):
        decided = decided.withColumn(
            f"decision_code_{side}", decision_code(decided, rules, settings, own_time=own_time)
        )
    for side, (rules, _) in zip(_SIDES, (before, after), strict=True):
        decided = with_decision(decided, rules, f"decision_code_{side}", f"decision_{side}")
    # by decision rather than by code: an access that another ACL decides the same way is no change
    flipped = decided.where(F.col("decision_before") != F.col("decision_after"))
    for side in _SIDES:  # which Kafka decided is not known: `undecided_by_kafka` counts them
        flipped = flipped.where(F.col(f"decision_code_{side}") != int(DecisionCode.UNKNOWN_KAFKA))
    found = _added_up(flipped, (*REQUEST_COLUMNS, "decision_code_before", "decision_code_after"))
    for side, (rules, _) in zip(_SIDES, (before, after), strict=True):
        named = with_texts(found.withColumnRenamed(f"decision_code_{side}", DECISION_CODE), rules).drop(DECISION_CODE)
        found = named.withColumnsRenamed({name: f"{name}_{side}" for name in ("decision", "rule", "rule_id")})
    return found.select(_change().alias("change"), *found.columns)


def undecided_by_kafka(
    accesses: DataFrame, before: tuple[Rules, Settings], after: tuple[Rules, Settings]
) -> UnreadAccesses:
    """Return the accesses of which it is not known which Kafka decides them, before or after, where that matters."""
    sides = [side for side in (before, after) if side[0].intervals.kafka is not None]
    if not sides:
        return UnreadAccesses()
    found = accesses.select(*REQUEST_COLUMNS).groupBy(*REQUEST_COLUMNS).count()
    by_unknown = F.lit(False)  # of Spark
    for side in sides:
        by_unknown = by_unknown | (decision_code(found, *side) == int(DecisionCode.UNKNOWN_KAFKA))
    chosen = found.where(by_unknown).groupBy("principal").agg(F.sum("count").alias("accesses"))
    counter = UnreadCounter()
    for row in chosen.collect():
        counter.add(row.principal, None, DecisionCode.UNKNOWN_KAFKA.name, UnreadSpan(row.accesses, None, None))
    return counter.found


def _added_up(frame: DataFrame, by: Iterable[str]) -> DataFrame:
    return frame.groupBy(*by).agg(
        F.sum("count").alias("count"), F.min("first_at").alias("first_at"), F.max("last_at").alias("last_at")
    )


def _change() -> Column:
    before, after = F.col("decision_before"), F.col("decision_after")
    return (
        F.when(after == "ERROR", Change.BROKEN.value)
        .when(before == "ERROR", Change.MENDED.value)
        .when(after == "ALLOWED", Change.GAINED.value)
        .otherwise(Change.LOST.value)
    )
