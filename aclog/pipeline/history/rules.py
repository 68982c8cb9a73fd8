"""From additions and removals to the rules and the intervals they were in force; what contradicts is refused."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from aclog.metalog.errors import ReplayError
from aclog.pipeline.source.schema import ACL_FIELDS

RULE = (*ACL_FIELDS, "id")
"""A rule, as `aclog acls list --format jsonl` has it."""

COLUMNS = (*RULE, "first_seen_offset", "added_offset", "added_at", "removed_offset", "removed_at")
"""What `aclog spark history` writes."""

EVENT = (*RULE, "first_seen_offset", "offset", "at", "shown", "adds")
"""An addition or a removal: where and when its record stands, and when it was shown. A removal has only the id."""

_REMOVED = "removed"
_BEFORE = "before"


def rules_of(events: DataFrame, name: str, checked: Column) -> DataFrame:
    """The rules of these events (columns EVENT): COLUMNS, visible_from and visible_to.

    `checked` says of which rules it is to be found out whether their content stands under another id.

    Any action on it fails with the text of a ReplayError where an id is added that stands, or removed that does not, or
    where one content stands under two ids. `name` says in that text where the log is.
    """
    rules = _rules(_in_order(events).where(_refusing(_by_id(), name, F.col("adds"))))
    return _shown(_by_content_order(rules).where(_refusing(_by_content(checked), name, F.lit(True))))


def first_contradiction(events: DataFrame, name: str, checked: Column) -> ReplayError | None:
    """What the applier would stop at in these events; None if it would not."""
    row = contradictions(events, checked).agg(F.min(F.struct("offset", "what")).alias("found")).first()
    if row is None or row.found is None:
        return None
    return ReplayError(row.found.what, offset=row.found.offset, path=name)


def contradictions(events: DataFrame, checked: Column) -> DataFrame:
    """Every event that is refused (offset, what): the first of them is what the applier stops at."""
    ordered = _in_order(events)
    by_id = ordered.select("offset", _by_id().alias("what"))
    by_content = _by_content_order(_rules(ordered.where("adds"))).select("offset", _by_content(checked).alias("what"))
    return by_id.unionByName(by_content).where(F.col("what").isNotNull())


def _in_order(events: DataFrame) -> DataFrame:
    """Each event with the next one of its id, and whether the one before it was an addition."""
    window = Window.partitionBy("id").orderBy("offset")
    following = F.lead(F.struct("offset", "at", "shown")).over(window)
    return events.withColumn(_REMOVED, following).withColumn(_BEFORE, F.lag("adds").over(window))


def _by_id() -> Column:
    """What is wrong with an event as the next one of its id; null if nothing is."""
    stands = F.coalesce(_BEFORE, F.lit(False))
    twice = F.concat(F.lit("ACL "), "id", F.lit(" is added, but exists already"))
    absent = F.concat(F.lit("ACL "), "id", F.lit(" is removed, but does not exist"))
    return F.when(F.col("adds") & stands, twice).when(~F.col("adds") & ~stands, absent)


def _rules(additions: DataFrame) -> DataFrame:
    return additions.select(*RULE, "first_seen_offset", "offset", "at", "shown", _REMOVED)


def _by_content_order(rules: DataFrame) -> DataFrame:
    """Each rule with the one before it of the same content."""
    window = Window.partitionBy(*ACL_FIELDS).orderBy("offset")
    return rules.withColumn(_BEFORE, F.lag(F.struct("id", f"{_REMOVED}.offset")).over(window))


def _by_content(checked: Column) -> Column:
    """What is wrong with a rule after the one before it of the same content; null if nothing is."""
    ended = F.col(f"{_BEFORE}.offset")
    stands = F.col(_BEFORE).isNotNull() & (ended.isNull() | (ended > F.col("offset")))
    says = F.lit(" is the same as ACL ")
    both = F.concat(F.lit("ACL "), "id", says, f"{_BEFORE}.id", F.lit(": expected every ACL once"))
    return F.when(checked & stands, both)


def _refusing(what: Column, name: str, keep: Column) -> Column:
    """Which rows to keep, as one expression, so that no row leaves before it has been looked at."""
    text = F.concat(F.lit(f"{name}: offset "), F.col("offset").cast("string"), F.lit(": "), what)
    return F.when(what.isNotNull(), F.raise_error(text).cast("boolean")).otherwise(keep)


def _shown(rules: DataFrame) -> DataFrame:
    seen_first = F.col("first_seen_offset").isNotNull()
    return rules.select(
        *RULE,
        "first_seen_offset",
        F.when(~seen_first, F.col("offset")).alias("added_offset"),
        F.col("at").alias("added_at"),
        F.col(f"{_REMOVED}.offset").alias("removed_offset"),
        F.col(f"{_REMOVED}.at").alias("removed_at"),
        F.col("shown").alias("visible_from"),
        F.col(f"{_REMOVED}.shown").alias("visible_to"),
    )
