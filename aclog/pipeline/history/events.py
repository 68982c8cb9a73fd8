"""The additions and removals of a log that became visible, and the ACLs of its first checkpoint (columns EVENT)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.pipeline.history.batch_times import (
    ADD,
    REMOVE,
    range_column,
    range_start,
    times_at,
    with_deferred_visibility,
    with_running_time,
    without_spans,
)
from aclog.pipeline.history.first_pass import FirstPass
from aclog.pipeline.history.rules import EVENT


def timed_events(found: FirstPass) -> DataFrame:
    """Return the events of a log; `visible_at` is the time of the first state with it, as --as-of TIME has it."""
    start, summary, spans = found.start, found.summary, found.spans
    in_ranges = found.log.where((F.col("offset") >= range_start(start.offset)) & (F.col("offset") < found.end_offset))
    # the first record of every batch stays in, for the running maximum
    needed = in_ranges.where(_changes() | (F.col("offset") == F.col("batch_offset")))
    timed = with_running_time(
        needed.select("offset", "batch_offset", "timestamp", "record_type", "acl"), summary.before
    )
    records = timed.where(_changes() & (F.col("offset") >= start.offset))
    times = times_at(found.log, summary.before, (span.last for span in spans.held))
    held = {span: times[span.last] for span in spans.held}
    return _events(found, with_deferred_visibility(without_spans(records, spans.aborted), held))


def placed_events(found: FirstPass) -> DataFrame:
    """Return the events of a log; `visible_at` is the end offset of the first state with it."""
    spans, ends = found.spans, found.summary.marker_batch_ends
    offset = F.col("offset")
    changes = found.log.where(_changes() & (offset >= found.start.offset) & (offset < found.end_offset))
    place = {"range": range_column(F.col("batch_offset")), "visible_at": F.col("batch_end_offset")}
    records = without_spans(changes.withColumns(place), spans.aborted)
    held = {span: ends[span.last] for span in spans.held}
    return _events(found, with_deferred_visibility(records, held))


def _changes() -> Column:
    return F.col("record_type").isin(ADD, REMOVE)


def _events(found: FirstPass, visible: DataFrame) -> DataFrame:
    events = visible.select(
        "acl.*",
        F.lit(None).cast("long").alias("first_seen_offset"),
        "offset",
        F.col("timestamp").alias("at"),
        "visible_at",
        (F.col("record_type") == ADD).alias("adds"),
    ).select(*EVENT)
    rules = found.start.rules
    return events if rules is None else rules.unionByName(events)
