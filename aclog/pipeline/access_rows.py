"""The rows of an access log for workers: of a frame of Spark's, or of files that they read on their own."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.session import Sent, broadcast
from aclog.usage.accesses.access_batch import LOGGED_DECISION
from aclog.usage.accesses.parquet import ParquetPart, latest_time, read_plain
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

Batches: TypeAlias = Iterator[pa.RecordBatch]


@frozen(eq=False, kw_only=True)
class AccessRows:
    """The rows of an access log: of a table of Spark's, or in files that workers read on their own, which is faster."""

    frame: DataFrame
    """The columns REQUEST_COLUMNS, `timestamp` and, if there is one, `loggedDecision`, or the numbers of the parts."""
    parts: "Sent[Sequence[ParquetPart]] | None" = None

    @classmethod
    def of_frame(cls, accesses: DataFrame) -> Self:
        """Take the rows of a table. Raises ConfigError: it has no column `timestamp`."""
        if "timestamp" not in accesses.columns:
            raise ConfigError("no column 'timestamp' in the accesses: expected one, to select those in the window")
        decision = [F.col(name).cast("string").alias(name) for name in [LOGGED_DECISION] if name in accesses.columns]
        return cls(frame=accesses.select(*REQUEST_COLUMNS, "timestamp", *decision))

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


def _latest(parts: "Sent[Sequence[ParquetPart]]", batches: Batches) -> Batches:
    for part in parts_of(parts, batches):
        yield pa.record_batch([pa.array([latest_time(part)], pa.int64())], names=["latest"])


def parts_of(parts: "Sent[Sequence[ParquetPart]]", batches: Batches) -> Iterator[ParquetPart]:
    """Yield the parts of these numbers, on a worker."""
    for batch in batches:
        yield from (parts.value[at] for at in np.asarray(batch.column(0)).tolist())


def rows_of_parts(parts: "Sent[Sequence[ParquetPart]]", batches: Batches) -> Batches:
    """Yield the rows of the parts of these numbers (read_plain), on a worker."""
    for part in parts_of(parts, batches):
        yield from read_plain(part)
