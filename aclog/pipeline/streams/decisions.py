"""Decisions on a stream of accesses, each by the ACLs of its own time, while the metadata log grows."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from attrs import field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.pipeline.accesses.files import MALFORMED
from aclog.pipeline.accesses.kafka_log import TIMESTAMP
from aclog.pipeline.authorize import DECIDED_TOGETHER, decide
from aclog.pipeline.session import Sent, broadcast, is_connect
from aclog.pipeline.streams.batches import StreamOutput
from aclog.pipeline.streams.sources import AccessStream
from aclog.usage.arrow import regrouped
from aclog.usage.decisions.decisions import REQUEST_COLUMNS, TEXT_COLUMNS, DecisionCode, DecisionTexts
from aclog.usage.decisions.intervals import AclIntervals, Rules, change_times
from aclog.usage.rules import FollowedRules

LOST_AT: Final = "lost_at"
"""The column of `with_lost`: when a change of ACLs took the permission away."""


@frozen(kw_only=True)
class SentRules:
    """ACLs that workers have, until `close`."""

    spark: SparkSession
    intervals: "Sent[AclIntervals]"
    texts: "Sent[DecisionTexts]"
    settings: Settings

    @classmethod
    def of(cls, spark: SparkSession, rules: Rules, settings: Settings) -> "SentRules":
        """Send ACLs to the workers."""
        sent, texts = broadcast(spark, rules.intervals), broadcast(spark, rules.texts)
        return cls(spark=spark, intervals=sent, texts=texts, settings=settings)

    def close(self) -> None:
        """Delete the ACLs from the workers' disks: a stream sends new ones after each change."""
        if not is_connect(self.spark):
            for sent in (self.intervals, self.texts):
                destroy: Any = getattr(sent, "destroy")  # noqa: B009 - of a broadcast variable
                destroy()


def decided(frame: DataFrame, sent: SentRules, lost_within: int | None = None) -> DataFrame:
    """Return the rows with the columns `decision`, `rule` and `rule_id`, by the ACLs at the `timestamp` of each.

    With `lost_within`, in ms, also the column `lost_at`: if the row is DENIED, and the same access was ALLOWED at some
    moment of so much time before it, the time of the change since which it is not.

    Raises:
        ConfigError: no column `timestamp`, or a column with a name of these.

    """
    added = TEXT_COLUMNS if lost_within is None else (*TEXT_COLUMNS, LOST_AT)
    if TIMESTAMP not in frame.columns:
        raise ConfigError(f"no column {TIMESTAMP!r}: each access of a stream is decided as of its own time")
    for name in frame.columns:
        if name.lower() in added:
            raise ConfigError(f"the table has a column {name!r}, which would occur twice: rename it")
    names = [f"column {number}" for number in range(len(frame.columns))]
    positions = [frame.columns.index(name) for name in REQUEST_COLUMNS]
    plain = frame.toDF(*names)
    plain = plain.select("*", F.unix_micros(plain[names[frame.columns.index(TIMESTAMP)]]).alias("micros"))
    kinds = {LOST_AT: TimestampType()}
    fields = [StructField(name, kinds.get(name, StringType())) for name in added]
    schema = StructType([*plain.schema.fields[:-1], *fields])
    run = _deciding(sent, positions, [*names, *added], lost_within)
    return plain.mapInArrow(run, schema).toDF(*frame.columns, *added)


def _deciding(
    sent: SentRules, positions: Sequence[int], names: Sequence[str], lost_within: int | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    intervals, texts, settings = sent.intervals, sent.texts, sent.settings

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide one partition, on a worker."""
        for table in regrouped(batches, DECIDED_TOGETHER):
            requests = table.select([*positions, table.num_columns - 1])
            codes, start = decide(requests, intervals, settings), 0
            lost = None
            if lost_within is not None:
                allows = texts.value.allowing()
                lost = lost_times(requests, codes, intervals, settings, within=lost_within, allows=allows)
            for batch in table.to_batches():
                part = slice(start, start + batch.num_rows)
                added = texts.value.of_codes(codes[part])
                if lost is not None:
                    added.append(lost[part].cast(pa.timestamp("us", tz="UTC")))
                start += batch.num_rows
                yield pa.record_batch([*batch.columns[:-1], *added], names=list(names))

    return run


def lost_times(
    requests: pa.Table,
    codes: "pa.Array[Any]",
    sent: "Sent[AclIntervals]",
    settings: Settings,
    *,
    within: int,
    allows: "np.ndarray[Any, np.dtype[np.bool_]]",
) -> "pa.Array[Any]":
    """Return when each request lost its permission, in us since 1970: null unless it did within so many ms.

    `requests` has REQUEST_COLUMNS and the time in us; `codes` are its decisions. The states of a period are that of its
    begin, and those that begin in it: a lost permission is one that some of them grant, and the last one does not.
    """
    times = np.asarray(requests.column(len(REQUEST_COLUMNS)).fill_null(pa.scalar(0))).astype(np.int64)
    numbers, first = np.asarray(codes), int(min(DecisionCode))
    # those that were decided by ACLs, and denied
    rows = np.flatnonzero((numbers >= int(DecisionCode.DEFAULT_ALLOW)) & ~allows[numbers - first])
    changes: Int64s = change_times(sent.value) * 1000
    lost = np.zeros(len(times), np.int64)
    newest = np.searchsorted(changes, times[rows], "right") - 1
    while len(rows):
        there = (newest >= 0) & (changes[np.maximum(newest, 0)] > times[rows] - within * 1000)
        rows, newest = rows[there], newest[there]
        if not len(rows):
            break
        some: Any = pa.array(rows)
        before = requests.take(some)
        moment = pa.array(changes[newest] - 1)  # the state before a change, in which times are whole ms
        before = before.set_column(len(REQUEST_COLUMNS), before.column_names[-1], moment)
        was_allowed = allows[np.asarray(decide(before, sent, settings)) - first]
        lost[rows[was_allowed]] = changes[newest[was_allowed]]
        rows, newest = rows[~was_allowed], newest[~was_allowed] - 1
    return pa.array(lost, mask=lost == 0)


# The stream.


@frozen(kw_only=True)
class DecidedBatch:
    """What is known of a batch after it is published."""

    number: int
    decisions: Mapping[str, int]
    """By ALLOWED, DENIED and ERROR."""
    reasons: Mapping[str, int]
    """Of ERROR."""
    ahead: int
    """The accesses that are later than the last record of the log that was read."""
    earliest: Any
    latest: Any
    """The times of accesses, as datetimes; None without any."""
    lost: Sequence[tuple[str, str, str, str, Any, int]]
    """Lost permissions: principal, operation, resource type and name, when, and how many accesses; the most first."""

    @property
    def total(self) -> int:
        """The number of accesses."""
        return sum(self.decisions.values())


_MOST = 10


@define(kw_only=True)
class DecidedStream:
    """A stream of accesses that are decided and written, batch by batch."""

    spark: SparkSession
    accesses: AccessStream
    followed: FollowedRules
    output: StreamOutput
    report: Callable[[DecidedBatch], None]
    """Called after each batch; again if the batch is repeated after a kill."""
    lost_within: int | None = None
    """In ms, as `decided` takes it."""
    log_delay: float = 0.0
    """By how many seconds the log may be behind: its copy, or the brokers' clocks. A batch waits so long before the
    log is read."""
    read_log: Callable[[], None] = lambda: None
    """Called before the log is read: in another store, its copy is made equal to it."""
    error: Exception | None = field(default=None, init=False)
    """Why a batch failed."""
    _sent: SentRules | None = field(default=None, init=False)

    def start(self, *, interval: float = 10.0, to_end: bool = False) -> StreamingQuery:
        """Start or continue the stream; `to_end`: it ends once all present accesses are decided."""
        writer = self.accesses.frame.writeStream.foreachBatch(self._run)
        writer = writer.option("checkpointLocation", self.output.checkpoint)
        trigger = writer.trigger(availableNow=True) if to_end else writer.trigger(processingTime=f"{interval} seconds")
        return trigger.start()

    def _run(self, batch: DataFrame, number: int) -> None:
        try:
            self._decide(batch, number)
        except Exception as error:
            self.error = error  # what Spark reports has its text, and the traceback of two languages
            raise

    def _decide(self, batch: DataFrame, number: int) -> None:
        time.sleep(self.log_delay)
        self.read_log()
        changed = self.followed.update()
        if changed or self._sent is None:
            if self._sent is not None:
                self._sent.close()
            self._sent = SentRules.of(self.spark, self.followed.rules, self.followed.deciding)
        rows = with_malformed_reasons(decided(self.accesses.rows(batch), self._sent, self.lost_within))
        with self.output.published(rows, number) as written:
            summary = self._summary(written, number)
        self.report(summary)

    def _summary(self, written: DataFrame, number: int) -> DecidedBatch:
        ahead = F.col(TIMESTAMP) > F.timestamp_millis(F.lit(self.followed.end_time))
        reason = F.when(F.col("rule").startswith(_NO_REQUEST), "not a request").otherwise(F.col("rule"))
        groups = written.groupBy(
            "decision", F.when(F.col("decision") == "ERROR", reason).alias("reason")
        ).agg(
            F.count("*").alias("rows"), F.count_if(ahead).alias("ahead"),
            F.min(TIMESTAMP).alias("earliest"), F.max(TIMESTAMP).alias("latest"),
        )  # fmt: skip
        counted = groups.collect()
        decisions, reasons = dict.fromkeys(("ALLOWED", "DENIED", "ERROR"), 0), dict[str, int]()
        for row in counted:
            decisions[row["decision"]] += row["rows"]
            if row["reason"] is not None:
                reasons[row["reason"]] = row["rows"]
        times = [row[name] for row in counted for name in ("earliest", "latest") if row[name] is not None]
        return DecidedBatch(
            number=number,
            decisions=decisions,
            reasons=reasons,
            ahead=sum(row["ahead"] for row in counted),
            earliest=min(times, default=None),
            latest=max(times, default=None),
            lost=() if self.lost_within is None else _lost(written),
        )


_NO_REQUEST: Final = "not a request: "


def with_malformed_reasons(rows: DataFrame) -> DataFrame:
    """Return decided rows without MALFORMED: the text of an unreadable line is its reason."""
    text = F.concat(F.lit(_NO_REQUEST), F.col(MALFORMED))
    return rows.withColumn("rule", F.coalesce(text, "rule")).drop(MALFORMED)


def _lost(written: DataFrame) -> list[tuple[str, str, str, str, Any, int]]:
    keys = ("principal", "operation", "resourceType", "resourceName", LOST_AT)
    grouped = written.where(F.col(LOST_AT).isNotNull()).groupBy(*keys).agg(F.count("*").alias("accesses"))
    most = grouped.orderBy(F.desc("accesses"), *keys).limit(_MOST)
    return [(*(row[name] for name in keys), row["accesses"]) for row in most.collect()]
