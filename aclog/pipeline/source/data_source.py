"""The data source `aclog`: a Python DataSource over a metadata log, batch and stream."""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence

import pyarrow as pa
from attrs import evolve
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from aclog.metalog.errors import ConfigError
from aclog.pipeline.source.comments import commented_schema
from aclog.pipeline.source.filter_pushdown import push
from aclog.pipeline.source.options import Options, read_options
from aclog.pipeline.source.partitions import plan_partitions, read_partition
from aclog.pipeline.source.range_reader import Query
from aclog.pipeline.source.schema import LOG_SCHEMA
from aclog.pipeline.source.stream import LogStreamReader


class AclogDataSource(DataSource):
    """`spark.read.format("aclog").load(PATH)`: one row per record of a metadata log (aclog.pipeline.source.schema).

    PATH is a log directory, that of an aclog node (running or not) or the `__cluster_metadata-0` of a Kafka node, read
    up to the high-water mark at the time of planning; a directory of checkpoints only; or one checkpoint, whose rows
    have the offsets within that file. Every worker must reach it under the same path.

    With option `topic` (and no path), a one-partition topic of a Kafka cluster is read
    (aclog.pipeline.source.topic_source), read_committed. `kafka.bootstrap.servers` and all other `kafka.*` options are
    client properties.

    `spark.readStream` reads a log directory or a topic from `startingOffset` on: `earliest` (default), `latest` or an
    offset. It resumes exactly where its checkpoint says. A micro-batch consists of whole batches; with
    `maxRecordsPerTrigger`, of at most that many records, or of a single larger batch. If retention has removed the next
    records, the stream fails; with `failOnDataLoss` false it continues, with a row of record_type DAMAGED for the gap.

    Further options:
    - `checkpoints`: `none` (read the log), or read the `newest` or `all` checkpoints of the directory instead. The
      default is `none`, or `newest` if the directory has no segments.
    - `partitionBytes`: the size of a partition, 16 MiB by default: a large file is cut at batch boundaries, small ones
      share a partition.
    - `damaged`: `fail` (default): reading damaged bytes raises an error with path and byte position. `setAside`: a
      row of record_type DAMAGED stands for them, with the first missing offset and, in `damage`, what is wrong and
      where; everything else is read. A batch is set aside as a whole.
    - `pushFilters`: with `true`, filters on offset, timestamp and record_type (=, <, <=, >, >=, in) are applied before
      rows are decoded, and partitions that they exclude are skipped; needs spark.sql.python.filterPushdown.enabled. Use
      each `load` in a single query only: Spark 4.3.0 keeps the filters pushed by one query for all later queries on the
      same frame, and for other branches of the same query, which then miss rows. Therefore `false` by default.

    Spark plans a frame once: records appended later are only seen by frames loaded later, and by streams.

    A user-specified schema may have fewer columns; the others are not decoded.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "aclog"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = read_options(options)

    def schema(self) -> StructType:
        """Return all columns, with their comments."""
        return commented_schema()

    def reader(self, schema: StructType) -> "LogReader":
        """Return the reader of one query."""
        # Spark pushes filters whenever a reader has a method pushFilters: without the option it must have none
        kind = FilteringReader if self._options.push_filters else LogReader
        return kind(self._options, chosen_columns(schema))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of one stream."""
        return LogStreamReader(self._options, chosen_columns(schema))


class LogReader(DataSourceReader):
    """Plans a batch query on the driver, and reads its partitions on the workers (pickled with the partitions)."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._query = Query(schema=schema, set_aside=options.set_aside)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges to read, each of whole batches; small ones share a partition.

        Raises:
            MetadataError: see aclog.pipeline.source.directory.plan.

        """
        return [InputPartition(each) for each in plan_partitions(self._options, self._query)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition. For an empty plan, Spark makes up a partition with the value None."""
        if partition.value is None:
            return iter(())
        return read_partition(partition.value, self._options, self._query)


class FilteringReader(LogReader):
    """A reader that applies filters itself (option pushFilters)."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Accept the filters that are applied in full here, and return the others to Spark."""
        for one in filters:
            selection = push(self._query.selection, one)
            if selection is None:
                yield one
            else:
                self._query = evolve(self._query, selection=selection)


def chosen_columns(schema: StructType) -> pa.Schema:
    """Return the columns of a user-specified schema, without comments.

    Raises:
        ConfigError: a column that the table does not have, or has with another type.

    """
    chosen = to_arrow_schema(schema, timezone="UTC")
    for column in chosen:
        if column.name not in LOG_SCHEMA.names:
            raise ConfigError(f"column {column.name}: expected one of {', '.join(LOG_SCHEMA.names)}")
        expected = LOG_SCHEMA.field(column.name).type
        if column.type != expected:
            raise ConfigError(f"column {column.name} of type {column.type}: expected {expected}")
    return pa.schema([pa.field(each.name, LOG_SCHEMA.field(each.name).type, each.nullable) for each in chosen])
