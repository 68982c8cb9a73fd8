"""The data source `aclog`: Spark's Python DataSource over a metadata log, batch and stream."""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence

import pyarrow as pa
from attrs import evolve
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from aclog.metalog.errors import ConfigError
from aclog.pipeline.source.filter_pushdown import push
from aclog.pipeline.source.input_partition import plan_parts, read_part
from aclog.pipeline.source.options import Options, read_options
from aclog.pipeline.source.range_reader import Query
from aclog.pipeline.source.schema import LOG_SCHEMA
from aclog.pipeline.source.stream import LogStreamReader


class AclogDataSource(DataSource):
    """`spark.read.format("aclog").load(PATH)`: one row a record of a metadata log (aclog.pipeline.source.schema).

    PATH is a log directory, ours (live or not) or the `__cluster_metadata-0` of a Kafka, read up to the high-water mark
    of the moment when the query is planned; a directory of checkpoints only; or one checkpoint, whose rows have the
    offsets that stand in it. Every worker must reach it under the same path.

    With option `topic` (and without a path) a topic of one partition of a real Kafka is read
    (pipeline.source.topic_source),
    read_committed; `kafka.bootstrap.servers` and all other options `kafka.*` are the client's properties.

    `spark.readStream` reads a log directory or a topic from `startingOffset` on: `earliest` (default), `latest` or an
    offset. It goes on exactly where its checkpoint says. A micro-batch is of whole batches: with `maxRecordsPerTrigger`
    of at most so many records, or of the one batch that has more. Where retention has removed what comes next, it
    fails; with `failOnDataLoss` false it goes on, and a row of record_type DAMAGED says what is missing.

    Further options:
    - `checkpoints`: `none` (the log itself), or in its stead the `newest` or `all` checkpoints of the directory.
      Without it: `none`, but `newest` where the directory holds no segment.
    - `partitionBytes`: bytes of a partition, at the least, 16 MiB by default. It ends at a batch's end.
    - `damaged`: `fail` (default): a read of damage raises, with path and byte position. `setAside`: a row of
      record_type DAMAGED stands for it, with the first offset that is missing and, in `damage`, what is wrong where;
      everything else is read. A batch is set aside whole.

    - `pushFilters`: `true` has filters on offset, timestamp and record_type (=, <, <=, >, >=, in) applied before rows
      are made, and leaves out partitions that they rule out; it needs spark.sql.python.filterPushdown.enabled. Then use
      each `load` in one query, once: Spark 4.3.0 keeps what a query pushed down for all later ones on the same frame,
      and for the other branches of the same one, which would miss rows. So it is `false` by default.

    Spark plans a frame once: what is appended later is seen by those loaded later, and by streams.

    A schema given by the user may name fewer columns: what it leaves out is not decoded.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` is called with."""
        return "aclog"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = read_options(options)

    def schema(self) -> StructType:
        """All columns."""
        return from_arrow_schema(LOG_SCHEMA)

    def reader(self, schema: StructType) -> "LogReader":
        """The reader of one query."""
        kind = FilteringReader if self._options.push_filters else LogReader
        return kind(self._options, chosen_columns(schema))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        """The reader of one stream."""
        return LogStreamReader(self._options, chosen_columns(schema))


class LogReader(DataSourceReader):
    """Plans on the driver what to read, and reads it on the workers."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._query = Query(schema=schema, set_aside=options.set_aside)

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges, each of whole batches.

        Raises:
            MetadataError: see aclog.pipeline.source.directory.plan.

        """
        return [InputPartition(each) for each in plan_parts(self._options, self._query)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; none where the log is empty, and Spark makes a partition up."""
        if partition.value is None:
            return iter(())
        return read_part(partition.value, self._options, self._query)


class FilteringReader(LogReader):
    """A reader that takes filters on (option pushFilters)."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take on the filters that are applied here in full; the others go back to Spark."""
        for one in filters:
            selection = push(self._query.selection, one)
            if selection is None:
                yield one
            else:
                self._query = evolve(self._query, selection=selection)


def chosen_columns(schema: StructType) -> pa.Schema:
    """The columns that a user's schema names.

    Raises:
        ConfigError: one that the table does not have, or has with another type.

    """
    chosen = to_arrow_schema(schema, timezone="UTC")
    for column in chosen:
        if column.name not in LOG_SCHEMA.names:
            raise ConfigError(f"column {column.name}: expected one of {', '.join(LOG_SCHEMA.names)}")
        expected = LOG_SCHEMA.field(column.name).type
        if column.type != expected:
            raise ConfigError(f"column {column.name} of type {column.type}: expected {expected}")
    return chosen
