"""From additions and removals to ACLs and their intervals; contradictions fail the job."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from aclog.metalog.errors import ReplayError
from aclog.usage.arrow.acl_structs import ACL_FIELDS

RULE = (*ACL_FIELDS, "id")
"""An ACL, with the keys of `aclog acls list --format jsonl`."""

COLUMNS = (*RULE, "first_seen_offset", "added_offset", "added_at", "removed_offset", "removed_at")
"""The output of `aclog spark history`."""

EVENT = (*RULE, "first_seen_offset", "offset", "at", "visible_at", "adds")
"""An addition or removal: the offset and time of its record, and when it became visible, as a time or as an end offset.

A removal only has the id.
"""

_REMOVED = "removed"
_BEFORE = "before"


def rules_of(events: DataFrame, name: str, checked: Column, keep: Column | None = None) -> DataFrame:
    """Return the ACLs of these events (columns EVENT): COLUMNS, visible_from and visible_to.

    `checked` selects the ACLs that are checked for the same content under another id, `keep` those that are returned
    (a condition on RULE): a filter on the result might drop ACLs before they are checked.

    Any action on the result fails with the text of a ReplayError if an id is added that is in force, or removed that is
    not, or if one content is in force under two ids. `name` is the log's in that text.
    """
    wanted = F.lit(True) if keep is None else keep
    rules = _rules(_in_order(events).where(_refusing(_by_id(), name, F.col("adds"))))
    return _with_intervals(_by_content_order(rules).where(_refusing(_by_content(checked), name, wanted)))


def first_contradiction(events: DataFrame, name: str, checked: Column) -> ReplayError | None:
    """Return the error at which the applier would stop in these events, None if it would not."""
    row = contradictions(events, checked).agg(F.min(F.struct("offset", "what")).alias("found")).first()
    if row is None or row.found is None:
        return None
    return ReplayError(row.found.what, offset=row.found.offset, path=name)


def contradictions(events: DataFrame, checked: Column) -> DataFrame:
    """Return every contradiction (offset, what); the applier stops at the first of them."""
    ordered = _in_order(events)
    by_id = ordered.select("offset", _by_id().alias("what"))
    by_content = _by_content_order(_rules(ordered.where("adds"))).select("offset", _by_content(checked).alias("what"))
    return by_id.unionByName(by_content).where(F.col("what").isNotNull())


def _in_order(events: DataFrame) -> DataFrame:
    """Add to each event the next one of its id, and whether the previous one was an addition."""
    window = Window.partitionBy("id").orderBy("offset")
    following = F.lead(F.struct("offset", "at", "visible_at")).over(window)
    return events.withColumn(_REMOVED, following).withColumn(_BEFORE, F.lag("adds").over(window))


def _by_id() -> Column:
    """Return the contradiction between an event and the previous one of its id, or null.

    The texts are the applier's (authorizer.index.overlay_changes), which users compare.
    """
    in_force = F.coalesce(_BEFORE, F.lit(False))
    twice = F.concat(F.lit("ACL "), "id", F.lit(" is added, but exists already"))
    absent = F.concat(F.lit("ACL "), "id", F.lit(" is removed, but does not exist"))
    return F.when(F.col("adds") & in_force, twice).when(~F.col("adds") & ~in_force, absent)


def _rules(additions: DataFrame) -> DataFrame:
    return additions.select(*RULE, "first_seen_offset", "offset", "at", "visible_at", _REMOVED)


def _by_content_order(rules: DataFrame) -> DataFrame:
    """Add to each ACL the previous one of the same content."""
    window = Window.partitionBy(*ACL_FIELDS).orderBy("offset")
    return rules.withColumn(_BEFORE, F.lag(F.struct("id", f"{_REMOVED}.offset")).over(window))


def _by_content(checked: Column) -> Column:
    """Return the contradiction between an ACL and the previous one of the same content, or null."""
    ended = F.col(f"{_BEFORE}.offset")
    in_force = F.col(_BEFORE).isNotNull() & (ended.isNull() | (ended > F.col("offset")))
    says = F.lit(" is the same as ACL ")
    both = F.concat(F.lit("ACL "), "id", says, f"{_BEFORE}.id", F.lit(": expected every ACL once"))
    return F.when(checked & in_force, both)


def _refusing(what: Column, name: str, keep: Column) -> Column:
    """Return which rows to keep, and fail for a row with a contradiction.

    One expression does both: of two filters, Spark might apply the one that drops rows first.
    """
    text = F.concat(F.lit(f"{name}: offset "), F.col("offset").cast("string"), F.lit(": "), what)
    return F.when(what.isNotNull(), F.raise_error(text).cast("boolean")).otherwise(keep)


def _with_intervals(rules: DataFrame) -> DataFrame:
    seen_first = F.col("first_seen_offset").isNotNull()
    return rules.select(
        *RULE,
        "first_seen_offset",
        F.when(~seen_first, F.col("offset")).alias("added_offset"),
        F.col("at").alias("added_at"),
        F.col(f"{_REMOVED}.offset").alias("removed_offset"),
        F.col(f"{_REMOVED}.at").alias("removed_at"),
        F.col("visible_at").alias("visible_from"),
        F.col(f"{_REMOVED}.visible_at").alias("visible_to"),
    )
