"""Distinct accesses of a log, each once per version of the ACLs that made a difference to it, and its rows counted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa
from attrs import asdict, frozen
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.pipeline.broadcasts import broadcast
from aclog.usage.access_counter import COUNTED, AccessCounter, SeenAccesses
from aclog.usage.accesses.parquet_parts import ParquetPart, latest_time, read_plain
from aclog.usage.arrow.batches import regrouped
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.decision_codes import DecisionCode
from aclog.usage.decisions.necessary_acls import NecessaryAcls
from aclog.usage.decisions.versions import change_times
from aclog.usage.log_counter import LogCounter, RowCounts
from aclog.usage.report import Judged
from aclog.usage.unread import UnreadAccesses, UnreadCounter, UnreadSpan
from aclog.usage.window import Window

_ROWS = 1 << 18
"""Rows counted together."""

Batches: TypeAlias = Iterator[pa.RecordBatch]

_TOLD, _DAY, _UNREAD = -1, -2, -3
"""In place of a version: the row tells how many rows there were of the kind that `principal` names, or that there were
any on the day that `principal` is, in days since 1970, or how many of a principal have no time."""


@frozen(eq=False, kw_only=True)
class AccessRows:
    """The rows of an access log: of a table of Spark's, or in files that workers read on their own, which is faster."""

    frame: DataFrame
    """The columns REQUEST_COLUMNS and `timestamp`, or the numbers of the parts."""
    parts: "Broadcast[Sequence[ParquetPart]] | None" = None

    @classmethod
    def of_frame(cls, accesses: DataFrame) -> Self:
        """Take the rows of a table. Raises ConfigError: it has no column `timestamp`."""
        if "timestamp" not in accesses.columns:
            raise ConfigError("no column 'timestamp' in the accesses: expected one, to select those in the window")
        return cls(frame=accesses.select(*REQUEST_COLUMNS, "timestamp"))

    @classmethod
    def of_parts(cls, spark: SparkSession, parts: Sequence[ParquetPart]) -> Self:
        """Take the rows of parts of files; the workers must find these files under the same paths."""
        count = len(parts)
        return cls(frame=spark.range(0, count, 1, max(count, 1)), parts=broadcast(spark, parts))

    def latest(self) -> int | None:
        """Return the latest time, in us since 1970; None if no row has one."""
        if self.parts is not None and all(part.latest is not None for part in self.parts.value):
            return max((part.latest for part in self.parts.value if part.latest is not None), default=None)
        if self.parts is None:
            times = self.frame.select(F.unix_micros("timestamp").alias("latest"))
        else:
            times = self.frame.mapInArrow(partial(_latest, self.parts), "latest long")
        row = times.agg(F.max("latest").alias("latest")).first()
        return None if row is None else row.latest


def _latest(parts: "Broadcast[Sequence[ParquetPart]]", batches: Batches) -> Batches:
    for part in _parts(parts, batches):
        yield pa.record_batch([pa.array([latest_time(part)], pa.int64())], names=["latest"])


def _parts(parts: "Broadcast[Sequence[ParquetPart]]", batches: Batches) -> Iterator[ParquetPart]:
    for batch in batches:
        yield from (parts.value[at] for at in np.asarray(batch.column(0)).tolist())


@frozen(eq=False, kw_only=True)
class CountedLog:
    """What Spark has counted."""

    accesses: DataFrame
    """COUNTED, one row per access and version."""
    distinct: int
    """The rows of `accesses`."""
    rows: RowCounts
    days: frozenset[int]
    """The days (UTC, since 1970) with any access, in the window or not."""
    unread: UnreadAccesses
    """Rows without a time."""


@contextmanager
def count_log(accesses: AccessRows, sent: "Broadcast[AclIntervals]", judged: Judged) -> Iterator[CountedLog]:
    """Count the rows of a log, all with one pass over it; the result is held until this is left.

    Tasks add up what they see, and the JVM adds up their results: a distinct access is shuffled once per task, and more
    often only if a task sees more of them than it can hold.
    """
    how = _How(settings=judged.settings, window=judged.window, own_time=judged.own_time, known_from=judged.known_from)
    told = accesses.frame.mapInArrow(_counting(accesses.parts, sent, how), from_arrow_schema(COUNTED))
    counted = (
        told.groupBy(*REQUEST_COLUMNS, "version")
        .agg(F.sum("count").alias("count"), F.min("first").alias("first"), F.max("last").alias("last"))
        .persist()
    )
    try:
        about = counted.where(F.col("version") < 0).select("version", "principal", "count").collect()
        real = counted.where(F.col("version") >= 0)
        yield CountedLog(
            accesses=real,
            distinct=real.count(),
            rows=RowCounts(**{row.principal: row["count"] for row in about if row.version == _TOLD}),
            days=frozenset(int(row.principal) for row in about if row.version == _DAY),
            unread=_untimed((row.principal, row["count"]) for row in about if row.version == _UNREAD),
        )
    finally:
        counted.unpersist()


@frozen(kw_only=True)
class _How:
    """How rows are counted: what a worker must know apart from the ACLs."""

    settings: Settings
    window: Window
    own_time: bool
    known_from: int | None


def _counting(
    parts: "Broadcast[Sequence[ParquetPart]] | None", sent: "Broadcast[AclIntervals]", how: _How
) -> Callable[[Batches], Batches]:
    def count(batches: Batches) -> Batches:
        """Count one partition, on a worker."""
        seen = _seen(sent, how.settings, own_time=how.own_time)
        counter = LogCounter(accesses=AccessCounter(seen), window=how.window, known_from=how.known_from)
        for rows in regrouped(batches, _ROWS) if parts is None else _rows(parts, batches):
            if counter.accesses.is_full:
                # emit before forgetting: the counter holds counts by the numbers of the accesses seen
                yield from counter.accesses.table().to_batches(_ROWS)
                seen.forget()
                counter.accesses = AccessCounter(seen)
            counter.add(rows)
        yield from counter.accesses.table().to_batches(_ROWS)
        yield _about(counter)

    return count


def _rows(parts: "Broadcast[Sequence[ParquetPart]]", batches: Batches) -> Batches:
    for part in _parts(parts, batches):
        yield from read_plain(part)


def _about(counter: LogCounter) -> pa.RecordBatch:
    told: list[tuple[int, str | None, int]] = [(_TOLD, name, count) for name, count in asdict(counter.rows).items()]
    told += [(_DAY, str(day), 0) for day in sorted(counter.days)]
    of_principals = counter.unread.found.by_principal().items()
    told += [(_UNREAD, principal, span.accesses) for principal, span in of_principals]
    rows = [{"version": kind, "principal": name, "count": count} for kind, name, count in told]
    return pa.RecordBatch.from_pylist(rows, schema=COUNTED)


def _untimed(found: Iterable[tuple[str | None, int]]) -> UnreadAccesses:
    counter = UnreadCounter()
    for principal, count in found:
        counter.add(principal, None, DecisionCode.NO_TIME.name, UnreadSpan(count, None, None))
    return counter.found


@lru_cache(1)
def _seen(sent: "Broadcast[AclIntervals]", settings: Settings, *, own_time: bool) -> SeenAccesses:
    """Return the accesses that a worker process has seen, kept from task to task."""
    if own_time:
        return SeenAccesses(necessary_acls(sent, settings))
    return SeenAccesses(None, version=len(change_times(sent.value)))


@lru_cache(2)
def necessary_acls(sent: "Broadcast[AclIntervals]", settings: Settings) -> NecessaryAcls:
    """Return the index of ACLs of a worker process, kept from task to task."""
    return NecessaryAcls.of(sent.value, settings)
