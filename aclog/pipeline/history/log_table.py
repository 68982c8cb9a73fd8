"""A log as the table that a history needs: planned once, and read by workers with the columns of each query alone.

`format("aclog")` decodes all columns of its schema for every query, and Spark starts two Python processes to plan each
frame. Here the driver plans the ranges, and a query on a range of numbers reads them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from attrs import field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.errors import CheckpointError
from aclog.metalog.values import define, frozen
from aclog.pipeline.source.data_source import LogPartition, plan_partitions, read_partition
from aclog.pipeline.source.directory import FileRange, Options, Query
from aclog.pipeline.source.rows import LOG_SCHEMA, NO_TIME, UNKNOWN_CODES
from aclog.snapshots.image import Image

DESCENDS: Final = "descends"
"""Whether the batch has an earlier time than one before it in its partition; without a time counts as -1 ms."""

_OWN: Final = {name: pa.field(name, pa.bool_()) for name in (UNKNOWN_CODES, DESCENDS)}


@frozen(kw_only=True)
class LogTable:
    """The records of a log that were committed when it was planned; a partition of each frame is one of `partitions`.

    Partitions ascend in offsets, and so do the rows of each.
    """

    spark: SparkSession
    options: Options
    partitions: tuple[LogPartition, ...]

    def frame(self, *columns: str) -> DataFrame:
        """Return these columns: of LOG_SCHEMA, UNKNOWN_CODES or DESCENDS, which needs `timestamp` beside it.

        An action fails with the text of a LogError or DecodeError: a range is damaged, or cannot be read any more.
        """
        schema = pa.schema([_OWN.get(name) or LOG_SCHEMA.field(name) for name in columns])
        kinds = from_arrow_schema(schema)
        partitions, options = self.partitions, self.options
        if not partitions:
            return self.spark.createDataFrame([], kinds)

        def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            """Read one partition, on a worker."""
            for batch in numbers:
                for number in np.asarray(batch.column(0)):
                    yield from _rows(partitions[number], options, schema)

        return self.spark.range(0, len(partitions), 1, len(partitions)).mapInArrow(run, kinds)

    @property
    def size(self) -> int:
        """The bytes of its files."""
        parts = (part for partition in self.partitions for part in partition)
        return sum(part.end - part.position for part in parts if isinstance(part, FileRange))

    def table(self, *columns: str) -> pa.Table:
        """Return the same columns, read by this process. Raises LogError, DecodeError: as an action on `frame`."""
        schema = pa.schema([_OWN.get(name) or LOG_SCHEMA.field(name) for name in columns])
        batches = (batch for partition in self.partitions for batch in _rows(partition, self.options, schema))
        return pa.Table.from_batches(batches, schema=schema)


def read_log(spark: SparkSession, path: Path) -> LogTable:
    """Return the table of a log directory or a checkpoint: what is committed now. Raises as `plan`."""
    options = Options(path=path.absolute())
    return LogTable(spark=spark, options=options, partitions=tuple(plan_partitions(options, Query())))


# The start of a log's history: the empty state, or the oldest checkpoint that the log continues from.


@frozen(kw_only=True, eq=False)
class Start:
    """The state that replay starts from: `checkpoint` is the table of its records, None for the empty state."""

    image: Image = Image.EMPTY
    checkpoint: LogTable | None = None

    @property
    def offset(self) -> int:
        """Its end."""
        return self.image.end_offset

    @property
    def epoch(self) -> int:
        """That of its last batch."""
        return self.image.epoch

    @property
    def timestamp(self) -> int:
        """That of its last batch, in ms."""
        return self.image.timestamp

    def check(self, rules: int) -> None:
        """Check the number of ACLs in the table.

        Raises:
            CheckpointError: not all of its records are additions.

        """
        if self.checkpoint is not None and rules != len(self.image.acls):
            count = len(self.image.acls)
            raise CheckpointError(
                f"{self.checkpoint.options.path}: {rules} ACL records for {count} ACLs: expected no removals"
            )


def _rows(partition: LogPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    query = Query(schema=pa.schema([each for each in schema if each.name != DESCENDS]))
    times = _Times()
    for batch in read_partition(partition, options, query):
        if DESCENDS not in schema.names:
            yield batch
            continue
        added = times.descending(batch.column("timestamp"))
        columns = [added if name == DESCENDS else batch.column(name) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


@define
class _Times:
    """The latest time of the rows so far, in us."""

    _top: int = field(init=False, default=NO_TIME * 1000)

    def descending(self, column: "pa.Array[Any]") -> "pa.Array[Any]":
        """Return which of the next rows have an earlier time than a row before them."""
        micros = np.asarray(column.cast(pa.int64()).fill_null(NO_TIME * 1000))
        tops = np.maximum.accumulate(np.concatenate(([self._top], micros)))
        self._top = int(tops[-1])
        return pa.array(micros < tops[:-1])
