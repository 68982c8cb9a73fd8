"""When each batch of a log became visible to --as-of TIME: the running maximum of batch timestamps.

A window over the whole log would run in a single task. So the log is cut into ranges of offsets: the maximum of each
range, of which there are few, is collected on the driver, and windows run within ranges.
"""

from collections.abc import Iterable
from itertools import accumulate

import pyarrow as pa
from attrs import frozen
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from aclog.authorizer.acl import AclOperation
from aclog.metalog.errors import DecodeError
from aclog.metalog.records import RecordType
from aclog.pipeline.history import transaction_spans
from aclog.pipeline.history.transaction_spans import MARKERS, Marker, Span, by_range, range_of

ADD = RecordType.ACCESS_CONTROL_ENTRY_RECORD.name
REMOVE = RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD.name
_CODES = ("resourceType", "patternType", "operation", "permissionType")
"""The fields of an ACL that are codes in the log and names in the table."""


@frozen(kw_only=True)
class Summary:
    """What one pass over a log collects on the driver: a few numbers per range of offsets, and the transaction markers.

    `end_offset` is the end of the log at that time. `before` has the running maximum (ms) at the start of each range.
    `first` is (base offset, leader epoch) of the first batch to replay. `marker_batch_ends` has the end offset of each
    batch with a marker, by its base offset. `unknown_codes`: whether some ACLs have codes without a name.
    """

    end_offset: int
    before: dict[int, int]
    first: tuple[int, int] | None
    markers: tuple[Marker, ...]
    marker_batch_ends: dict[int, int]
    unknown_codes: bool


def range_column(offset: Column) -> Column:
    """Return the number of the range that an offset is in (transaction_spans.range_of)."""
    return F.shiftright(offset, transaction_spans.RANGE_BITS)


def range_start(offset: int) -> int:
    """Return the first offset of the range that an offset is in."""
    return range_of(offset) << transaction_spans.RANGE_BITS


def millis(timestamp: Column) -> Column:
    """Return a batch's timestamp in ms since 1970, -1 if it has none, as in the log."""
    return F.coalesce(F.unix_millis(timestamp), F.lit(-1))


def has_unknown_code(prefix: str = "") -> Column:
    """Return whether an ACL has a code without a name: two ACLs that look equal in the table may differ."""
    return F.lit(AclOperation.UNKNOWN.name).isin(*(F.col(prefix + name) for name in _CODES))


def summarize(log: DataFrame, start: int, timestamp: int) -> Summary:
    """Read the log once; replay starts at the offset `start`, after a batch with this timestamp (-1 if none).

    Raises:
        DecodeError: a part of the log is damaged and was set aside.

    """
    counts = F.col("offset") >= start
    marker = F.col("record_type").isin(*MARKERS) & counts
    rows = (
        log.groupBy(range_column(F.col("batch_offset")).alias("range"))
        .agg(
            F.max(millis(F.col("timestamp"))).alias("top"),
            F.max("offset").alias("last"),
            F.min(F.when(counts, F.struct("batch_offset", "leader_epoch"))).alias("first"),
            F.collect_list(F.when(marker, F.struct(*Marker._fields, "batch_end_offset"))).alias("markers"),
            F.max((F.col("record_type") == ADD) & has_unknown_code("acl.")).alias("unknown"),
            F.min("damage").alias("damage"),
        )
        .orderBy("range")
        .collect()
    )
    damage = next((row.damage for row in rows if row.damage is not None), None)
    if damage is not None:
        raise DecodeError(f"{damage} (a log with a gap has no complete history)")
    markers = [marker for row in rows for marker in row.markers]
    tops = accumulate((row.top for row in rows), max, initial=timestamp)
    return Summary(
        end_offset=max((row.last + 1 for row in rows), default=start),
        before=dict(zip((row.range for row in rows), tops, strict=False)),
        first=min((tuple(row["first"]) for row in rows if row["first"] is not None), default=None),
        markers=tuple(sorted(Marker(*found[:-1]) for found in markers)),
        marker_batch_ends={found.batch_offset: found.batch_end_offset for found in markers},
        unknown_codes=any(row.unknown for row in rows),
    )


def with_running_time(log: DataFrame, before: dict[int, int]) -> DataFrame:
    """Add `range`, that of the batch, and `visible_at`: the running maximum of timestamps (ms) at the batch.

    `log` must have the first record of every batch of each range that it touches.
    """
    spark = log.sparkSession
    starts = _table(spark, {"range": list(before), "before": list(before.values())})
    window = Window.partitionBy("range").orderBy("batch_offset").rowsBetween(Window.unboundedPreceding, 0)
    top = F.max(millis(F.col("timestamp"))).over(window)
    ranged = log.withColumn("range", range_column(F.col("batch_offset"))).withColumn("top", top)
    timed = ranged.join(F.broadcast(starts), "range")
    return timed.withColumn("visible_at", F.greatest("top", "before")).drop("top", "before")


def times_at(log: DataFrame, before: dict[int, int], batches: Iterable[int]) -> dict[int, int]:
    """Return the running maximum (ms) at these batches by base offset."""
    wanted = sorted(batches)
    if not wanted:
        return {}
    # equal ranges are joined first: comparing every batch with every end would be a nested loop
    ends = _table(log.sparkSession, {"range": [range_of(at) for at in wanted], "end": wanted})
    first, last = range_start(wanted[0]), wanted[-1]
    rows = (
        log.where(F.col("offset").between(first, last) & (F.col("offset") == F.col("batch_offset")))
        .select(range_column(F.col("offset")).alias("range"), "offset", millis(F.col("timestamp")).alias("time"))
        .join(F.broadcast(ends), "range")
        .where(F.col("offset") <= F.col("end"))
        .groupBy("end")
        .agg(F.max("time").alias("top"))
        .collect()
    )
    return {row.end: max(row.top, before[range_of(row.end)]) for row in rows}


def without_spans(records: DataFrame, spans: Iterable[Span]) -> DataFrame:
    """Return the records whose offsets are in none of these spans."""
    found = list(by_range(spans))
    if not found:
        return records
    columns = {"range": [n for n, _ in found], "first": [s.first for _, s in found], "last": [s.last for _, s in found]}
    broadcast = F.broadcast(_table(records.sparkSession, columns)).alias("spans")
    offset = F.col("records.offset")
    inside = (range_column(offset) == F.col("spans.range")) & offset.between(F.col("spans.first"), F.col("spans.last"))
    return records.alias("records").join(broadcast, inside, "left_anti")


def with_deferred_visibility(records: DataFrame, held: dict[Span, int]) -> DataFrame:
    """Set `visible_at` to the time of the span for records whose batch is in one of these spans."""
    found = list(by_range(held))
    if not found:
        return records
    columns = {
        "range": [number for number, _ in found],
        "first": [span.first for _, span in found],
        "last": [span.last for _, span in found],
        "deferred": [held[span] for _, span in found],
    }
    deferred = F.broadcast(_table(records.sparkSession, columns).withColumnRenamed("range", "deferred_range"))
    inside = (F.col("range") == F.col("deferred_range")) & F.col("batch_offset").between(F.col("first"), F.col("last"))
    joined = records.join(deferred, inside, "left").withColumn("visible_at", F.coalesce("deferred", "visible_at"))
    return joined.drop("deferred_range", "first", "last", "deferred")


def _table(spark: SparkSession, columns: dict[str, list[int]]) -> DataFrame:
    return spark.createDataFrame(pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}))
