"""The history of rules by Spark: one row a rule and interval it was in force, equal to what the applier says.

The table of the log (`spark.read.format("aclog")`) is gone through twice: once for what the driver must know (where
transactions lie, how late it was at the start of each range of offsets), once for the rules. What comes to the driver
grows with the transactions and with every 65,536 offsets, never with the rules. Only where the log begins at a
checkpoint is that one read whole on the driver as well: none may be gone on from that has not been proven.
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
    without,
)
from aclog.pipeline.history.rules import COLUMNS, EVENT, first_contradiction, rules_of
from aclog.pipeline.history.start import Start, known_from, read_log, start_of
from aclog.pipeline.history.transaction_spans import Spans, spans_of
from aclog.snapshots.rule_history import history as replayed

__all__ = ["contradiction", "history", "intervals", "known_from"]


def history(spark: SparkSession, directory: Path | str) -> DataFrame:
    """One row a rule and interval it was in force, a rule of the log's first checkpoint included; as `intervals`.

    Columns: those of `aclog acls list --format jsonl`, first_seen_offset, added_offset, added_at, removed_offset,
    removed_at. Offsets are those of the records, times those of their batches; removed_* are null while in force.
    Where the log begins at a checkpoint, first_seen_offset is its end for the rules in it, and added_* are null.
    """
    return intervals(spark, directory).select(*COLUMNS)


def intervals(spark: SparkSession, directory: Path | str) -> DataFrame:
    """As `history`, with visible_from and visible_to in ms since 1970.

    The state as of a time T (`--as-of`) has the rules with visible_from <= T < visible_to: the running maximum of the
    batches' timestamps up to the batch that makes the change visible, which is the one in which its transaction ends.
    visible_from is null for rules of the first checkpoint (see `known_from`), visible_to while in force.

    What is appended after this call is in no action on what comes out. An action fails with the text of a ReplayError
    where the applier would stop at a contradiction, and with that of a LogError where retention has removed a segment.

    Raises:
        LogError: no log is there, it cannot be read, or retention removed where it began.
        CheckpointError: the log does not begin at offset 0, and no whole checkpoint reaches its start.
        DecodeError: damage that was set aside, a ReplayError for a transaction marker out of place.

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
    unknown_codes = start.unknown_codes or summary.unknown_codes
    if unknown_codes:
        _replay(directory)
    checked = ~has_unknown_code() if unknown_codes else F.lit(True)
    events = _events(log, start, summary, spans)
    if spans.failure is not None:
        raise first_contradiction(events, name, checked) or spans.failure.at(path=name)
    return rules_of(events, name, checked)


def contradiction(spark: SparkSession, directory: Path | str) -> ReplayError | None:
    """What the applier would stop at first in a log on which an action on its history has failed; None if at nothing.

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
            what = f"the log begins at offset {begins} now: expected {start.offset}, where its history starts"
            raise LogError(f"{directory}: {what} (retention has removed the rest: start again)")
        raise ReplayError(f"a batch begins at offset {offset}: expected {start.offset}", offset=offset)
    if epoch < start.epoch:
        what = f"leader epoch {epoch} after epoch {start.epoch}: expected none that goes back"
        raise ReplayError(what, offset=offset)


def _replay(directory: Path | str) -> None:
    """Find out on the driver what names cannot tell: whether two rules with codes that we cannot name are one."""
    for _ in replayed(directory):
        pass


def _events(log: DataFrame, start: Start, summary: Summary, spans: Spans) -> DataFrame:
    """The additions and removals that became visible, and the rules of the first checkpoint (columns EVENT)."""
    end = summary.end_offset if spans.hidden_from is None else spans.hidden_from
    changes = F.col("record_type").isin(ADD, REMOVE)
    in_ranges = log.where((F.col("offset") >= range_start(start.offset)) & (F.col("offset") < end))
    needed = in_ranges.where(changes | (F.col("offset") == F.col("batch_offset")))
    timed = with_running_time(
        needed.select("offset", "batch_offset", "timestamp", "record_type", "acl"), summary.before
    )
    records = timed.where(changes & (F.col("offset") >= start.offset))
    times = times_at(log, summary.before, (span.last for span in spans.held))
    shown = with_deferred_visibility(without(records, spans.aborted), {span: times[span.last] for span in spans.held})
    events = shown.select(
        "acl.*",
        F.lit(None).cast("long").alias("first_seen_offset"),
        "offset",
        F.col("timestamp").alias("at"),
        "shown",
        (F.col("record_type") == ADD).alias("adds"),
    ).select(*EVENT)
    return events if start.rules is None else start.rules.unionByName(events)
