"""The history of ACLs on Spark: one row per ACL and interval in which it was in force, as the applier has it.

The table of the log (`spark.read.format("aclog")`) is read twice: once for what the driver must know (transaction
markers, and the running maximum of timestamps per range of offsets), once for the ACLs. What is collected on the driver
grows with the number of transactions and of ranges (65,536 offsets each), not of ACLs. Only if the log begins at a
checkpoint, the driver reads that checkpoint as a whole as well, to check that it is complete and valid.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog import open_reader
from aclog.pipeline.history.batch_times import (
    ADD,
    REMOVE,
    Summary,
    has_unknown_code,
    range_start,
    summarize,
    times_at,
    with_deferred_visibility,
    with_running_time,
    without_spans,
)
from aclog.pipeline.history.rules import COLUMNS, EVENT, first_contradiction, rules_of
from aclog.pipeline.history.start import Start, known_from, read_log, start_of
from aclog.pipeline.history.transaction_spans import TransactionSpans, spans_of
from aclog.snapshots.rule_history import history as replayed

__all__ = ["contradiction", "history", "intervals", "known_from"]


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

    Actions on the result do not see what is appended to the log after this call. An action fails with the text of a
    ReplayError if the applier would stop at a contradiction, and of a LogError if retention has removed a segment.

    Raises:
        LogError: there is no log, it cannot be read, or retention has removed its start.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage that was set aside, or a ReplayError for a transaction marker out of place.

    """
    name = str(directory)
    start = start_of(spark, Path(directory))
    log = read_log(spark, Path(directory))
    try:
        summary = summarize(log, start.offset, start.timestamp)
        _check_follows(start, summary, Path(directory))
    except DecodeError as e:
        raise e.at(path=name) from None
    spans = spans_of(summary.markers)
    # names cannot tell ACLs with unknown codes apart: the driver replays such a log, and Spark does not compare them
    unknown_codes = start.unknown_codes or summary.unknown_codes
    if unknown_codes:
        _replay(directory)
    checked = ~has_unknown_code() if unknown_codes else F.lit(True)
    events = _events(log, start, summary, spans)
    if spans.failure is not None:
        # a contradiction before the misplaced marker is where the applier stops first
        raise first_contradiction(events, name, checked) or spans.failure.at(path=name)
    return rules_of(events, name, checked)


def contradiction(spark: SparkSession, directory: Path | str) -> ReplayError | None:
    """Return the error at which the applier would stop in a log, None if it would not; for a history that has failed.

    Raises as `intervals`.
    """
    start = start_of(spark, Path(directory))
    log = read_log(spark, Path(directory))
    summary = summarize(log, start.offset, start.timestamp)
    events = _events(log, start, summary, spans_of(summary.markers))
    return first_contradiction(events, str(directory), ~has_unknown_code())


def _check_follows(start: Start, summary: Summary, directory: Path) -> None:
    if summary.first is None:
        return
    offset, epoch = summary.first
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


def _replay(directory: Path | str) -> None:
    """Replay on the driver, to fail if two ACLs with unknown codes are the same."""
    for _ in replayed(directory):
        pass


def _events(log: DataFrame, start: Start, summary: Summary, spans: TransactionSpans) -> DataFrame:
    """Return the additions and removals that became visible, and the ACLs of the first checkpoint (columns EVENT)."""
    end = summary.end_offset if spans.hidden_from is None else spans.hidden_from
    changes = F.col("record_type").isin(ADD, REMOVE)
    in_ranges = log.where((F.col("offset") >= range_start(start.offset)) & (F.col("offset") < end))
    # the first record of every batch stays in, for the running maximum
    needed = in_ranges.where(changes | (F.col("offset") == F.col("batch_offset")))
    timed = with_running_time(
        needed.select("offset", "batch_offset", "timestamp", "record_type", "acl"), summary.before
    )
    records = timed.where(changes & (F.col("offset") >= start.offset))
    times = times_at(log, summary.before, (span.last for span in spans.held))
    visible = with_deferred_visibility(
        without_spans(records, spans.aborted), {span: times[span.last] for span in spans.held}
    )
    events = visible.select(
        "acl.*",
        F.lit(None).cast("long").alias("first_seen_offset"),
        "offset",
        F.col("timestamp").alias("at"),
        "visible_at",
        (F.col("record_type") == ADD).alias("adds"),
    ).select(*EVENT)
    return events if start.rules is None else start.rules.unionByName(events)
