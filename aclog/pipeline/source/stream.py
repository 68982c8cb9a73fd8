"""The data source `aclog` as a stream: Spark's DataSourceStreamReader over a log directory or a topic.

A stream's offset is `{"offset": N}`, that of the next record to read; a topic's also has the position of that record's
batch in Kafka. Micro-batches end at the end of a batch of the log.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from aclog.metalog.errors import ConfigError
from aclog.pipeline.source.directory_stream import DirectoryStream, LostRange, StreamOffset
from aclog.pipeline.source.options import Options
from aclog.pipeline.source.partitions import Part, packed, read_partition
from aclog.pipeline.source.range_reader import Query

_LOG = logging.getLogger(__name__)


class Stream(Protocol):
    """A log to follow; DirectoryStream documents each method."""

    def initial(self) -> StreamOffset: ...  # noqa: D102 - documented there

    def horizon(self) -> int: ...  # noqa: D102

    def latest(self, start: StreamOffset, horizon: int, rows: int | None) -> StreamOffset: ...  # noqa: D102

    def ranges(self, begin: StreamOffset, until: StreamOffset) -> Sequence[Part]: ...  # noqa: D102

    def close(self) -> None: ...  # noqa: D102


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tells Spark how far a stream can read, and plans what is between two of its offsets."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._query = Query(schema=schema, set_aside=options.set_aside)
        self._stream = open_stream(options)
        self._horizon: int | None = None

    def initialOffset(self) -> StreamOffset:  # noqa: N802 - Spark's name, as all below
        """Return where a stream without a checkpoint begins: option startingOffset."""
        return self._stream.initial()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return option maxRecordsPerTrigger, or no limit."""
        rows = self._options.max_records_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the stream (Trigger.AvailableNow): it stops there, although the log may grow."""
        self._horizon = self._stream.horizon()

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Return the end of the next micro-batch: the end of a batch."""
        horizon = self._stream.horizon() if self._horizon is None else self._horizon
        if isinstance(limit, ReadMaxRows):
            return self._stream.latest(start, horizon, limit.max_rows)
        if isinstance(limit, ReadAllAvailable):
            return self._stream.latest(start, horizon, None)
        raise ConfigError(f"read limit {limit}: expected rows (option maxRecordsPerTrigger), or none")

    def partitions(self, start: StreamOffset, end: StreamOffset) -> Sequence[InputPartition]:
        """Return the ranges of a micro-batch, and log a warning for lost offsets."""
        parts = self._stream.ranges(start, end)
        for part in parts:
            if isinstance(part, LostRange):
                _LOG.warning("%s", part.text)
        return [InputPartition(each) for each in packed(parts, self._options.partition_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition."""
        return read_partition(partition.value, self._options, self._query)

    def stop(self) -> None:
        """Close connections."""
        self._stream.close()


def open_stream(options: Options) -> Stream:
    """Return the log that the options name, to follow it."""
    if options.topic is None:
        return DirectoryStream(options)
    from aclog.pipeline.source.topic_source import TopicStream  # noqa: PLC0415 - needs confluent-kafka

    return TopicStream(options)
