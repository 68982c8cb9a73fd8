"""The history of ACLs on Spark: one row for each ACL and interval."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from aclog.analysis.regions import Query, Root
from aclog.analysis.timeline import Interval, Question, concerns_controllers
from aclog.analysis.timeline import intervals as intervals_of
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.layout import matched_operations
from aclog.authorizer.settings import Settings
from aclog.metalog.batches import scan_batches
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import checkpoint_name, list_checkpoints
from aclog.metalog.primitives import parse_uuid
from aclog.metalog.records import RecordType
from aclog.metalog.values import frozen
from aclog.pipeline.history import bulk, transaction_spans
from aclog.pipeline.history.bulk import BulkLog
from aclog.pipeline.history.log_table import DESCENDS, LogTable, Start, read_log
from aclog.pipeline.history.transaction_spans import (
    MARKERS,
    Marker,
    Span,
    TransactionSpans,
    by_range,
    range_of,
    range_start,
    spans_of,
)
from aclog.pipeline.session import frame_of
from aclog.pipeline.source.rows import UNKNOWN_CODES
from aclog.snapshots.deciding_kafka import KafkaChange, kafka_history
from aclog.snapshots.history import Change, ChangeKind, first_image
from aclog.snapshots.history import history as replayed
from aclog.snapshots.moments import READ_BYTES
from aclog.usage.arrow import ACL_CODES, ACL_FIELDS, ACL_TYPE

# From additions and removals to ACLs and their intervals; contradictions fail the job.


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
    selected = F.lit(True) if keep is None else keep
    rules = _rules(_in_order(events).where(_refusing(_by_id(), name, F.col("adds"))))
    return _with_intervals(_by_content_order(rules).where(_refusing(_by_content(checked), name, selected)))


def first_contradiction(events: DataFrame, name: str, checked: Column) -> ReplayError | None:
    """Return the error at which the applier would stop in these events, None if it would not."""
    row = contradictions(events, checked).agg(F.min(F.struct("offset", "what")).alias("earliest")).first()
    if row is None or row.earliest is None:
        return None
    return ReplayError(row.earliest.what, offset=row.earliest.offset, path=name)


def contradictions(events: DataFrame, checked: Column) -> DataFrame:
    """Return every contradiction (offset, what); the applier stops at the first one."""
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

    The texts are the applier's (authorizer.index.acl_index), which users compare.
    """
    in_force = F.coalesce(_BEFORE, F.lit(False))
    twice = F.concat(F.lit("ACL "), "id", F.lit(" is added, but exists already"))
    absent = F.concat(F.lit("ACL "), "id", F.lit(" is removed, but does not exist"))
    return F.when(F.col("adds") & in_force, twice).when(~F.col("adds") & ~in_force, absent)


def _rules(additions: DataFrame) -> DataFrame:
    return additions.select(*RULE, "first_seen_offset", "offset", "at", "visible_at", _REMOVED)


def _by_content_order(rules: DataFrame) -> DataFrame:
    """Add to each ACL the previous one of the same content."""
    # by a number first: Spark sorts by the first 8 bytes, which many contents share
    window = Window.partitionBy(F.xxhash64(*ACL_FIELDS), *ACL_FIELDS).orderBy("offset")
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


# When each batch of a log became visible to --as-of TIME: the running maximum of batch timestamps.
#
# A window over the whole log would run in a single task. So the log is cut into ranges of offsets: the maximum of
# each range, of which there are few, is collected on the driver, and windows run within ranges.


ADD = RecordType.ACCESS_CONTROL_ENTRY_RECORD.name
REMOVE = RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD.name


@frozen(kw_only=True)
class Summary:
    """What one pass over a log collects on the driver: a few numbers per range of offsets, and the transaction markers.

    `end_offset` is the end of the log at that time. `before` has the running maximum (ms) at the start of each range.
    `first` is (base offset, leader epoch) of the first batch to replay. `marker_batch_ends` has the end offset of each
    batch with a marker, by its base offset. `unknown_codes`: whether some ACLs have codes without a name. `ascending`:
    whether no batch has an earlier time than one before it, so that the running maximum is the time of each.
    """

    end_offset: int
    before: dict[int, int]
    first: tuple[int, int] | None
    markers: tuple[Marker, ...]
    marker_batch_ends: dict[int, int]
    unknown_codes: bool
    ascending: bool


def range_column(offset: Column) -> Column:
    """Return the number of the range that an offset is in (transaction_spans.range_of)."""
    return F.shiftright(offset, transaction_spans.RANGE_BITS)


def millis(timestamp: Column) -> Column:
    """Return a batch's timestamp in ms since 1970, -1 if it has none, as in the log."""
    return F.coalesce(F.unix_millis(timestamp), F.lit(-1))


def has_unknown_code() -> Column:
    """Return whether an ACL has a code without a name: two ACLs that look equal in the table may differ."""
    return F.lit(AclOperation.UNKNOWN.name).isin(*(F.col(name) for name in ACL_CODES))


def summarize(log: LogTable, start: int, timestamp: int) -> Summary:
    """Read the log once; replay starts at the offset `start`, after a batch with this timestamp (-1 if none)."""
    counts = F.col("offset") >= start
    marker = F.col("record_type").isin(*MARKERS) & counts
    positions = ("offset", "batch_offset", "batch_end_offset", "leader_epoch")
    rows = (
        log.frame(*positions, "timestamp", "record_type", UNKNOWN_CODES, DESCENDS)
        .groupBy(range_column(F.col("batch_offset")).alias("range"), F.spark_partition_id().alias("partition"))
        .agg(
            F.min(millis(F.col("timestamp"))).alias("bottom"),
            F.max(millis(F.col("timestamp"))).alias("top"),
            F.max("offset").alias("last"),
            F.min(F.when(counts, F.struct("batch_offset", "leader_epoch"))).alias("first"),
            F.collect_list(F.when(marker, F.struct(*Marker._fields, "batch_end_offset"))).alias("markers"),
            F.max(UNKNOWN_CODES).alias("unknown"),
            F.max(DESCENDS).alias("descends"),
        )
        .orderBy("range", "partition")
        .collect()
    )
    markers = [marker for row in rows for marker in row.markers]
    before: dict[int, int] = {}
    ascending, top = True, timestamp
    for row in rows:
        before.setdefault(row["range"], top)
        ascending &= not row.descends and row.bottom >= top
        top = max(top, row.top)
    return Summary(
        end_offset=max((row.last + 1 for row in rows), default=start),
        before=before,
        first=min((tuple(row["first"]) for row in rows if row["first"] is not None), default=None),
        markers=tuple(sorted(Marker(*end_marker[:-1]) for end_marker in markers)),
        marker_batch_ends={end_marker.batch_offset: end_marker.batch_end_offset for end_marker in markers},
        unknown_codes=any(row.unknown for row in rows),
        ascending=ascending,
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


def times_at(log: LogTable, before: dict[int, int], batches: Iterable[int]) -> dict[int, int]:
    """Return the running maximum (ms) at these batches by base offset."""
    offsets = sorted(batches)
    if not offsets:
        return {}
    # equal ranges are joined first: comparing every batch with every end would be a nested loop
    ends = _table(log.spark, {"range": [range_of(at) for at in offsets], "end": offsets})
    first, last = range_start(offsets[0]), offsets[-1]
    rows = (
        log.frame("offset", "batch_offset", "timestamp")
        .where(F.col("offset").between(first, last) & (F.col("offset") == F.col("batch_offset")))
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
    in_ranges = list(by_range(spans))
    if not in_ranges:
        return records
    columns = {
        "range": [n for n, _ in in_ranges],
        "first": [s.first for _, s in in_ranges],
        "last": [s.last for _, s in in_ranges],
    }
    broadcast = F.broadcast(_table(records.sparkSession, columns)).alias("spans")
    offset = F.col("records.offset")
    inside = (range_column(offset) == F.col("spans.range")) & offset.between(F.col("spans.first"), F.col("spans.last"))
    return records.alias("records").join(broadcast, inside, "left_anti")


def with_deferred_visibility(records: DataFrame, times: dict[Span, int]) -> DataFrame:
    """Set `visible_at` to the time of the span for records whose batch is in one of these spans."""
    in_ranges = list(by_range(times))
    if not in_ranges:
        return records
    columns = {
        "range": [number for number, _ in in_ranges],
        "first": [span.first for _, span in in_ranges],
        "last": [span.last for _, span in in_ranges],
        "deferred": [times[span] for _, span in in_ranges],
    }
    deferred = F.broadcast(_table(records.sparkSession, columns).withColumnRenamed("range", "deferred_range"))
    inside = (F.col("range") == F.col("deferred_range")) & F.col("batch_offset").between(F.col("first"), F.col("last"))
    joined = records.join(deferred, inside, "left").withColumn("visible_at", F.coalesce("deferred", "visible_at"))
    return joined.drop("deferred_range", "first", "last", "deferred")


def _table(spark: SparkSession, columns: dict[str, list[int]]) -> DataFrame:
    return spark.createDataFrame(pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}))


# The start of a log's history: the empty state, or the oldest checkpoint that the log continues from.


def start_of(spark: SparkSession, directory: Path) -> Start:
    """Return where replay of a log directory starts.

    Raises:
        LogError: there is no log, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.

    """
    with open_reader(directory) as reader:
        if reader.start_offset() == 0:
            return Start()
        image = first_image(reader, list_checkpoints(directory))
    path = directory / checkpoint_name(image.end_offset, image.epoch)
    return Start(image=image, checkpoint=read_log(spark, path))


def known_from(directory: Path | str) -> int:
    """Return the earliest time (ms) for which --as-of finds a state in a log: that of its first record.

    If the log begins at a checkpoint, it is the running maximum of timestamps at the checkpoint's end, including that
    of its last batch.

    Raises as `start_of`; also a LogError if the log has no record.
    """
    directory = Path(directory)
    with open_reader(directory) as reader:
        offset = reader.start_offset()
        if offset == 0:
            return _first_time(reader)
        image = first_image(reader, list_checkpoints(directory))
        latest, end = image.timestamp, min(image.end_offset, reader.high_watermark())
        while offset < end:
            batches, _ = scan_batches(reader.read(offset, READ_BYTES))
            before = batches.base_offset < end
            latest = max(latest, int(np.max(batches.max_timestamp[before])))
            offset = int(batches.end_offset[-1])
        return latest


def _first_time(reader: LogReader) -> int:
    if reader.high_watermark() <= 0:
        raise LogError(f"{reader.name}: the log has no record: no access can be decided by the ACLs of its own time")
    batches, _ = scan_batches(reader.read(0, 1))  # a read returns at least one whole batch
    return int(batches.max_timestamp[0])


def _rules_of_start(start: Start) -> DataFrame | None:
    """Return the ACLs of a checkpoint as events, as if each had been added at the offset before its end."""
    if start.checkpoint is None:
        return None
    return (
        start.checkpoint.frame("record_type", "acl")
        .where(F.col("record_type") == ADD)
        .select(
            "acl.*",
            F.lit(start.offset).cast("long").alias("first_seen_offset"),
            F.lit(start.offset - 1).cast("long").alias("offset"),
            F.lit(None).cast("timestamp").alias("at"),
            F.lit(None).cast("long").alias("visible_at"),
            F.lit(True).alias("adds"),
        )
        .select(*EVENT)
    )


# The first pass over a log: what the driver must know before Spark can select what became visible.


@frozen(kw_only=True, eq=False)
class FirstPass:
    """A log that was read once: its table, where replay starts, what it holds, and the spans of its transactions."""

    name: str
    log: LogTable
    start: Start
    rules: DataFrame | None
    """The ACLs of the start (columns EVENT)."""
    summary: Summary
    spans: TransactionSpans
    unknown_codes: bool
    """Whether some ACLs have codes without a name: names do not distinguish these ACLs."""

    @property
    def end_offset(self) -> int:
        """The end of what became visible."""
        return self.summary.end_offset if self.spans.hidden_from is None else self.spans.hidden_from

    @property
    def failure(self) -> ReplayError | None:
        """The error of a transaction marker out of place."""
        return None if self.spans.failure is None else self.spans.failure.at(path=self.name)


def first_pass(spark: SparkSession, directory: Path) -> FirstPass | BulkLog:
    """Read a log directory once; later queries on the result do not see what is appended to it after this call.

    The driver reads a small log whole (bulk.MOST_BYTES).

    Raises:
        LogError: there is no log, it cannot be read, or retention has removed its start.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage that was set aside, or a ReplayError for a log that does not continue from its start.

    """
    start = start_of(spark, directory)
    log = read_log(spark, directory)
    if log.size + (0 if start.checkpoint is None else start.checkpoint.size) <= bulk.MOST_BYTES:
        return _bulk_pass(log, start, directory)
    rules, unknown = _rules_of_start(start), False
    if rules is not None:
        counted = rules.agg(F.count("id").alias("rules"), F.max(has_unknown_code()).alias("unknown")).first()
        start.check(0 if counted is None else counted.rules)
        unknown = counted is not None and bool(counted.unknown)
    try:
        summary = summarize(log, start.offset, start.timestamp)
        _check_follows(start, summary.first, directory)
    except DecodeError as e:
        raise e.at(path=str(directory)) from None
    return FirstPass(
        name=str(directory),
        log=log,
        start=start,
        rules=rules,
        summary=summary,
        spans=spans_of(summary.markers),
        unknown_codes=unknown or summary.unknown_codes,
    )


def _bulk_pass(log: LogTable, start: Start, directory: Path) -> BulkLog:
    rules = pa.array([], ACL_TYPE)
    if start.checkpoint is not None:
        records = start.checkpoint.table("record_type", "acl")
        added = records.filter(pc.equal(records.column("record_type"), pa.scalar(ADD)))
        rules = pa.concat_arrays([rules, *added.column("acl").chunks])
        start.check(len(rules))
    whole = BulkLog.read(log, start, rules, name=str(directory))
    try:
        _check_follows(start, whole.first, directory)
    except DecodeError as e:
        raise e.at(path=str(directory)) from None
    return whole


def _check_follows(start: Start, first: tuple[int, int] | None, directory: Path) -> None:
    if first is None:
        return
    offset, epoch = first
    if offset != start.offset:
        with open_reader(directory) as reader:
            begins = reader.start_offset()
        if begins > start.offset:
            what = f"the log now begins at offset {begins}: expected {start.offset}, where its history starts"
            raise LogError(f"{directory}: {what} (retention has removed segments: run again)")
        raise ReplayError(f"a batch begins at offset {offset}: expected {start.offset}", offset=offset)
    if epoch < start.epoch:
        what = f"leader epoch {epoch} after epoch {start.epoch}: epochs never decrease"
        raise ReplayError(what, offset=offset)


# The additions and removals of a log that became visible, and the ACLs of its first checkpoint (columns EVENT).


def timed_events(log_pass: FirstPass) -> DataFrame:
    """Return the events of a log; `visible_at` is the time of the first state with it, as --as-of TIME has it."""
    start, summary, spans = log_pass.start, log_pass.summary, log_pass.spans
    log = log_pass.log.frame("offset", "batch_offset", "timestamp", "record_type", "acl")
    in_ranges = log.where((F.col("offset") >= range_start(start.offset)) & (F.col("offset") < log_pass.end_offset))
    if summary.ascending:
        own = {"range": range_column(F.col("batch_offset")), "visible_at": millis(F.col("timestamp"))}
        timed = in_ranges.withColumns(own)
    else:
        # the first record of every batch stays in, for the running maximum
        needed = in_ranges.where(_changes() | (F.col("offset") == F.col("batch_offset")))
        timed = with_running_time(needed, summary.before)
    records = timed.where(_changes() & (F.col("offset") >= start.offset))
    times = times_at(log_pass.log, summary.before, (span.last for span in spans.deferred))
    deferred = {span: times[span.last] for span in spans.deferred}
    return _events(log_pass, with_deferred_visibility(without_spans(records, spans.aborted), deferred))


def placed_events(log_pass: FirstPass) -> DataFrame:
    """Return the events of a log; `visible_at` is the end offset of the first state with it."""
    spans, ends = log_pass.spans, log_pass.summary.marker_batch_ends
    offset = F.col("offset")
    columns = ("offset", "batch_offset", "batch_end_offset", "timestamp", "record_type", "acl")
    changes = log_pass.log.frame(*columns).where(
        _changes() & (offset >= log_pass.start.offset) & (offset < log_pass.end_offset)
    )
    place = {"range": range_column(F.col("batch_offset")), "visible_at": F.col("batch_end_offset")}
    records = without_spans(changes.withColumns(place), spans.aborted)
    deferred = {span: ends[span.last] for span in spans.deferred}
    return _events(log_pass, with_deferred_visibility(records, deferred))


def _changes() -> Column:
    return F.col("record_type").isin(ADD, REMOVE)


def _events(log_pass: FirstPass, visible: DataFrame) -> DataFrame:
    events = visible.select(
        "acl.*",
        F.lit(None).cast("long").alias("first_seen_offset"),
        "offset",
        F.col("timestamp").alias("at"),
        "visible_at",
        (F.col("record_type") == ADD).alias("adds"),
    ).select(*EVENT)
    return events if log_pass.rules is None else log_pass.rules.unionByName(events)


# The history of ACLs on Spark: one row per ACL and interval in which it was in force, as the applier has it.
#
# The table of the log (log_table.py) is read twice: once for what the driver must know (transaction
# markers, and the running maximum of timestamps per range of offsets), once for the ACLs. What is collected on the
# driver grows with the number of transactions and of ranges (65,536 offsets each), not of ACLs. Only if the log
# begins at a checkpoint, the driver reads that checkpoint as a whole as well, to check that it is complete and valid.


__all__ = ["contradiction", "contradictions_raised", "history", "intervals", "known_from"]

_REFUSED = "[USER_RAISED_EXCEPTION]"
"""Spark's error class when raise_error() fails a job: here, a contradiction in the history."""


def history(spark: SparkSession, directory: Path | str) -> DataFrame:
    """Return one row per ACL and interval in which it was in force, including ACLs of the log's first checkpoint.

    Columns: those of `aclog acls list --format jsonl`, first_seen_offset, added_offset, added_at, removed_offset,
    removed_at. Offsets are those of records, times those of their batches; removed_* are null while in force. If the
    log begins at a checkpoint, the ACLs in it have its end as first_seen_offset, and added_* are null. Raises as
    `intervals`.
    """
    return intervals(spark, directory).select(*COLUMNS)


def intervals(spark: SparkSession, directory: Path | str) -> DataFrame:
    """Return the history with the columns visible_from and visible_to, in ms since 1970.

    The state as of a time T (--as-of) has the ACLs with visible_from <= T < visible_to. These are running maxima of
    batch timestamps, up to the batch that makes a change visible: the one in which its metadata transaction ends.
    visible_from is null for ACLs of the first checkpoint (see `known_from`), visible_to is null while in force.

    Actions on the result do not see what is appended to the log after this call. The driver reads a log of up to
    `bulk.MOST_BYTES` here and now; a larger one is read by workers in each action, which fails with the text of a
    ReplayError if the applier would stop at a contradiction, and of a LogError if retention has removed a segment.

    Raises:
        LogError: there is no log, it cannot be read, or retention has removed its start.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage that was set aside, or a ReplayError for a transaction marker out of place, and for any
            contradiction in a log that the driver reads.

    """
    rows = intervals_or_table(spark, directory)
    return frame_of(spark, rows) if isinstance(rows, pa.Table) else rows


def interval_table(spark: SparkSession, directory: Path | str) -> pa.Table:
    """Return what `intervals` does as a table: without a job of Spark's, if the driver reads the log."""
    rows = intervals_or_table(spark, directory)
    return rows if isinstance(rows, pa.Table) else rows.toArrow()


def intervals_or_table(spark: SparkSession, directory: Path | str) -> DataFrame | pa.Table:
    """Return what `intervals` does: as a table if the driver reads the log, else as a frame. Raises as `intervals`."""
    log_pass = first_pass(spark, Path(directory))
    # names do not distinguish ACLs with unknown codes: the driver replays such a log, and they are not compared
    if log_pass.unknown_codes:
        _replay(directory)
    if isinstance(log_pass, BulkLog):
        return log_pass.timed()
    checked = ~has_unknown_code() if log_pass.unknown_codes else F.lit(True)
    events = timed_events(log_pass)
    if log_pass.failure is not None:
        # a contradiction before the misplaced marker is where the applier stops first
        raise first_contradiction(events, log_pass.name, checked) or log_pass.failure
    return rules_of(events, log_pass.name, checked)


def contradiction(spark: SparkSession, directory: Path | str) -> ReplayError | None:
    """Return the error at which the applier would stop in a log, None if it would not; for a history that has failed.

    Raises as `intervals`.
    """
    log_pass = first_pass(spark, Path(directory))
    if isinstance(log_pass, BulkLog):
        return log_pass.contradiction()
    return first_contradiction(timed_events(log_pass), log_pass.name, ~has_unknown_code())


@contextmanager
def contradictions_raised(spark: SparkSession, directory: Path | str) -> Iterator[None]:
    """Raise the ReplayError at which the applier would stop, if an action on a history in here fails at another.

    Spark reports whichever contradiction a task meets first.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        refused = contradiction(spark, directory) if _REFUSED in str(error) else None
        if refused is None:
            raise
        raise refused from error


def _replay(directory: Path | str) -> None:
    """Replay on the driver, to fail if two ACLs with unknown codes are the same."""
    for _ in replayed(directory):
        pass


# When something was allowed, from a log of any size.


# Which ACLs of a table concern a question: a condition that Spark evaluates.


def concerned(queries: Iterable[Query], settings: Settings) -> Column:
    """Return whether an ACL (columns of `aclog acls list`) concerns a query: true where `questions.concerns` is."""
    return _any(
        _principal(query, settings) & _operation(query, settings) & _any(map(_covers, query.roots)) for query in queries
    )


def _principal(query: Query, settings: Settings) -> Column:
    if settings.allow_everyone:
        return F.lit(True)
    principal, named = F.col("principal"), query.principals.named
    is_named = principal.isin(*named)
    everyone = (principal == WILDCARD_PRINCIPAL) | ~principal.contains(":")
    return everyone | (~is_named if query.principals.complement else is_named)


def _operation(query: Query, settings: Settings) -> Column:
    """Return whether an ACL matches one of the operations, or makes Kafka's authorizer throw."""
    if settings.allow_everyone:
        return F.lit(True)
    principal, operation, is_allow = (
        F.col("principal"),
        F.col("operation"),
        F.col("permissionType") == AclPermissionType.ALLOW.name,
    )
    allows, denies = (
        operation.isin([each.name for each in AclOperation if matched_operations(each, kind) & query.operations])
        for kind in (AclPermissionType.ALLOW, AclPermissionType.DENY)
    )
    return ~principal.contains(":") | F.when(is_allow, allows).otherwise(denies)


def _covers(root: Root) -> Column:
    """Return whether an ACL's pattern covers some of the names of a root."""
    name = F.col("resourceName")
    literal = (name == root.name) if root.literal else name.startswith(root.name)
    prefix = F.lit(root.name).startswith(name)
    covered = F.when(F.col("patternType") == PatternType.LITERAL.name, literal | (name == WILDCARD)).otherwise(
        prefix if root.literal else prefix | literal
    )
    return (F.col("resourceType") == ResourceType(root.kind).name) & covered


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))


# When access was allowed, from a log of any size: Spark selects the relevant ACLs, the driver evaluates them.
#
# Spark reads the log as for its history (aclog.pipeline.history.intervals), pairs each removal with its addition, and
# checks all pairs. Only the ACLs that concern the question are collected on the driver.


def when(spark: SparkSession, directory: Path | str, question: Question, settings: Settings) -> list[Interval]:
    """Return the intervals of a log directory in which the answer was yes, as `analysis.timeline.intervals` does.

    A log in which some ACLs have codes without a name is replayed on the driver.

    Raises:
        LogError: there is no log, it cannot be read, or retention has removed its start.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage that was set aside; a ReplayError if records contradict each other.
        PySparkException, Py4JJavaError: a job failed; its text holds the error of a segment that cannot be read.

    """
    return begin_and_intervals(spark, directory, question, settings)[1]


def begin_and_intervals(
    spark: SparkSession, directory: Path | str, question: Question, settings: Settings
) -> tuple[int, list[Interval]]:
    """Return the offset with which the history begins (before it nothing is known), and what `when` returns."""
    log_pass = first_pass(spark, Path(directory))
    begin = log_pass.start.image
    if log_pass.unknown_codes:
        changes = replayed(directory)
    else:
        with contradictions_raised(spark, directory):
            changes = iter(_interval_changes(spark, log_pass, question, settings))

    def kafka() -> Iterator[KafkaChange]:
        """Read on the driver what the nodes ran: registrations are few."""
        with open_reader(directory) as reader:
            yield from kafka_history(begin, reader, controllers=concerns_controllers(question))

    deciding = None if settings.is_kafka_stated else kafka
    return begin.end_offset, list(intervals_of(begin, changes, question, settings, deciding))


def _interval_changes(
    spark: SparkSession, log_pass: FirstPass | BulkLog, question: Question, settings: Settings
) -> list[Change]:
    """Return the changes of the ACLs that concern a question, in order; without those of the beginning."""
    concerns = concerned(question.queries, settings)
    if isinstance(log_pass, BulkLog):
        rules = spark.createDataFrame(log_pass.placed()).where(concerns)
    else:
        events = placed_events(log_pass)
        if log_pass.failure is not None:
            raise first_contradiction(events, log_pass.name, F.lit(True)) or log_pass.failure
        rules = rules_of(events, log_pass.name, F.lit(True), concerns)
    rows = rules.select(*RULE, _end("added", "visible_from"), _end("removed", "visible_to")).collect()
    return sorted((change for row in rows for change in _ends(row)), key=lambda change: change.offset)


def _end(what: str, visible: str) -> Column:
    """Return one end of the interval in which an ACL was in force, with the fields of a Change."""
    return F.struct(
        F.col(f"{what}_offset").alias("offset"),
        millis(F.col(f"{what}_at")).alias("timestamp"),
        F.col(visible).alias("end_offset"),
    ).alias(what)


def _ends(row: Row) -> Iterator[Change]:
    """Yield the addition and the removal of an ACL, as far as the log has them."""
    rule = StandardAclWithId(
        id=parse_uuid(row.id),
        acl=StandardAcl(
            resource_type=ResourceType[row.resourceType],
            resource_name=row.resourceName,
            pattern_type=PatternType[row.patternType],
            principal=row.principal,
            host=row.host,
            operation=AclOperation[row.operation],
            permission_type=AclPermissionType[row.permissionType],
        ),
    )
    for kind, end in (ChangeKind.ADDED, row.added), (ChangeKind.REMOVED, row.removed):
        if end.offset is not None:
            yield Change(kind=kind, rule=rule, **end.asDict())
