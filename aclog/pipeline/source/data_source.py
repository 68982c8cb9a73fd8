"""The data source `aclog` for Spark, batch and stream, over a directory or a topic."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa
from attrs import evolve, field
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from aclog.metalog.batches import scan_batches
from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.topic_message import Assembler, MessageBatch
from aclog.metalog.topiclog.positions import StoredMessage
from aclog.metalog.values import define, frozen
from aclog.pipeline.source.directory import (
    EARLIEST,
    LATEST,
    DirectoryStream,
    FileRange,
    LostRange,
    Options,
    Query,
    StreamOffset,
    plan,
    read_options,
    read_range,
)
from aclog.pipeline.source.rows import (
    LOG_SCHEMA,
    MAX_OFFSET,
    RowSelection,
    arrow_batches,
    commented_schema,
    damage_row,
    push,
)
from aclog.pipeline.spark_versions import (
    Filter,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    arrow_schema,
    check_filters,
    check_streams,
)

if TYPE_CHECKING:
    from aclog.metalog.topiclog.partition import Partition

# The partitions of a query, planned on the driver: ranges of files or of a topic, and rows for lost ranges.


Part: TypeAlias = "FileRange | TopicRange | LostRange"


LogPartition: TypeAlias = tuple[Part, ...]
"""The parts that one task reads, in the order of the log."""


def plan_partitions(options: Options, query: Query) -> list[LogPartition]:
    """Return the input of a batch query: the records committed now. Raises as `plan` and `plan_topic`."""
    if options.topic is None:
        return packed(plan(options, query.selection), options.partition_bytes)

    return packed(plan_topic(options), options.partition_bytes)


def packed(parts: Iterable[Part], most_bytes: int) -> list[LogPartition]:
    """Put neighbours together, up to `most_bytes` of files per partition: a task costs more than a small segment."""
    partitions: list[LogPartition] = []
    pack: list[Part] = []
    size = 0
    for part in parts:
        more = part.end - part.position if isinstance(part, FileRange) else most_bytes
        if pack and size + more > most_bytes:
            partitions.append(tuple(pack))
            pack, size = [], 0
        pack.append(part)
        size += more
    return [*partitions, tuple(pack)] if pack else partitions


def read_partition(partition: LogPartition, options: Options, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield its rows. Raises as `read_part`."""
    for part in partition:
        yield from read_part(part, options, query)


def read_part(part: Part, options: Options, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one range. Raises as `read_range` and `read_topic`."""
    if isinstance(part, FileRange):
        yield from read_range(part, query)
    elif isinstance(part, LostRange):
        yield damage_row(query.schema, part.offset, part.text)
    else:
        yield from read_topic(part, options, query)


# The data source `aclog` as a stream: Spark's DataSourceStreamReader over a log directory or a topic.
#
# A stream's offset is `{"offset": N}`, that of the next record to read; a topic's also has the position of that
# record's batch in Kafka. Micro-batches end at the end of a batch of the log.


_LOG = logging.getLogger(__name__)


class Stream(Protocol):
    """A log to follow; DirectoryStream documents each method."""

    def initial(self) -> StreamOffset: ...  # noqa: D102 - documented there

    def horizon(self) -> int: ...  # noqa: D102

    def latest(self, start: StreamOffset, horizon: int, rows: int | None) -> StreamOffset: ...  # noqa: D102

    def ranges(self, begin: StreamOffset, until: StreamOffset) -> Sequence[Part]: ...  # noqa: D102

    def close(self) -> None: ...  # noqa: D102


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reports to Spark how far a stream can read, and plans the reading between two of its offsets."""

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
        raise ConfigError(f"read limit {limit}: expected rows (option maxRecordsPerTrigger), or no limit")

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

    return TopicStream(options)


# The data source `aclog`: a Python DataSource over a metadata log, batch and stream.


class AclogDataSource(DataSource):
    """`spark.read.format("aclog").load(PATH)`: one row per record of a metadata log (aclog.pipeline.source.rows).

    PATH is a log directory, that of an aclog node (running or not) or the `__cluster_metadata-0` of a Kafka node, read
    up to the high-water mark at the time of planning; a directory of checkpoints only; or one checkpoint, whose rows
    have the offsets within that file. Every worker must reach it under the same path.

    With option `topic` (and no path), a one-partition topic of a Kafka cluster is read
    (aclog.pipeline.source.data_source), read_committed. `kafka.bootstrap.servers` and all other `kafka.*` options are
    client properties.

    `spark.readStream` reads a log directory or a topic from `startingOffset` on: `earliest` (default), `latest` or an
    offset. It resumes exactly at its checkpoint. A micro-batch consists of whole batches; with
    `maxRecordsPerTrigger`, of at most that many records, or of a single larger batch. If retention has removed the next
    records, the stream fails; with `failOnDataLoss` false it continues, with a row of record_type DAMAGED for the gap.

    Further options:
    - `checkpoints`: `none` (read the log), or read the `newest` or `all` checkpoints of the directory instead. The
      default is `none`, or `newest` if the directory has no segments.
    - `partitionBytes`: the size of a partition, 16 MiB by default: a large file is cut at batch boundaries, small ones
      share a partition.
    - `damaged`: `fail` (default): reading damaged bytes raises an error with path and byte position. `setAside`: a
      row of record_type DAMAGED replaces them, with the first missing offset and, in `damage`, what is wrong and
      where; everything else is read. A batch is set aside as a whole.
    - `fromOffset`, `untilOffset`: only records from one offset on, and before another one. Partitions and batches
      outside are not read. A log that does not have all of the range is an error, unless `failOnDataLoss` is false:
      then the part that exists is read. The range of a checkpoint is not checked.
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
        """Return the reader of one query. Raises ConfigError: the option pushFilters before PySpark 4.1."""
        if self._options.push_filters:
            check_filters()
        # Spark pushes filters whenever a reader has a method pushFilters: without the option it must have none
        kind = FilteringReader if self._options.push_filters else LogReader
        return kind(self._options, chosen_columns(schema))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of one stream. Raises ConfigError: before PySpark 4.2."""
        check_streams()
        if self._options.from_offset is not None or self._options.until_offset is not None:
            raise ConfigError("options fromOffset and untilOffset: of spark.read: expected startingOffset for a stream")
        return LogStreamReader(self._options, chosen_columns(schema))


class LogReader(DataSourceReader):
    """Plans a batch query on the driver, and reads its partitions on the workers (pickled with the partitions)."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        last = MAX_OFFSET if options.until_offset is None else options.until_offset - 1
        selection = RowSelection().with_offsets(first=options.from_offset or 0, last=last)
        self._query = Query(selection=selection, schema=schema, set_aside=options.set_aside)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges to read, each of whole batches; small ones share a partition.

        Raises:
            MetadataError: see aclog.pipeline.source.directory.plan.

        """
        return [InputPartition(each) for each in plan_partitions(self._options, self._query)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition. For an empty plan, Spark makes up None, or a partition with that value."""
        if partition is None or partition.value is None:
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
    columns = arrow_schema(schema)
    for column in columns:
        if column.name not in LOG_SCHEMA.names:
            raise ConfigError(f"column {column.name}: expected one of {', '.join(LOG_SCHEMA.names)}")
        expected = LOG_SCHEMA.field(column.name).type
        if column.type != expected:
            raise ConfigError(f"column {column.name} of type {column.type}: expected {expected}")
    return pa.schema([pa.field(each.name, LOG_SCHEMA.field(each.name).type, each.nullable) for each in columns])


# The batches in a range of positions (Kafka's offsets) of a one-partition topic.


_TIMEOUT = 60.0
"""Seconds without a response after which a read fails."""

_PAUSE = 0.5
"""Seconds of one poll, after which the deadline is checked."""

_DEFAULTS = {"group.id": "aclog"}
"""Client properties that a user may override."""


@frozen(kw_only=True)
class PlacedBatch:
    """A batch, and the positions of its first message and after its last one."""

    batch: MessageBatch
    position: int
    after: int


@define(eq=False)
class KafkaTopic:
    """A one-partition topic. `properties` are librdkafka's; the connection is opened on first use."""

    topic: str
    properties: Mapping[str, str] = field(repr=False)
    _partition: "Partition | None" = field(init=False, default=None, repr=False)

    def bounds(self) -> tuple[int, int]:
        """Return the position of the first message, and the last stable offset.

        Raises:
            LogError: the topic does not exist, has more than one partition, or no broker responds.
            ConfigError: the client rejects the properties.

        """
        return self._connected().bounds(_TIMEOUT)

    def batches(self, position: int, end: int) -> Iterator[PlacedBatch]:
        """Yield the batches in the positions from `position` up to `end`; a batch that `end` cuts off is left out.

        Raises:
            LogError: a broker does not respond, or the messages have been removed.
            DecodeError: a message that is not a record of a log, with its position; a ReplayError for a missing one.

        """
        assembler, begin = Assembler(), position
        for message in self._messages(position, end):
            place = message.place
            begin = message.position if place.offset == place.base_offset else begin
            try:
                batch = assembler.add(place, message.value, message.timestamp)
            except DecodeError as e:
                raise e.at(path=f"topic {self.topic}, Kafka's offset {message.position}") from None
            if batch is not None:
                yield PlacedBatch(batch=batch, position=begin, after=message.position + 1)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._partition is not None:
            self._partition.close()
            self._partition = None

    def _connected(self) -> "Partition":
        from aclog.metalog.topiclog.partition import FIXED, open_partition  # noqa: PLC0415  # an extra

        if self._partition is None:
            for name, value in FIXED.items():
                if self.properties.get(name, value) != value:
                    raise ConfigError(f"option kafka.{name}: expected {value}")
            properties = {**_DEFAULTS, **self.properties}
            self._partition = open_partition(self.topic, f"topic {self.topic}", properties, timeout=_TIMEOUT)
        return self._partition

    def _messages(self, position: int, end: int) -> Iterator[StoredMessage]:
        if position >= end:
            return
        partition = self._connected()
        partition.seek(position)
        deadline = time.monotonic() + _TIMEOUT
        while not partition.ended:
            for message in partition.poll(_PAUSE):
                deadline = time.monotonic() + _TIMEOUT
                if message.position >= end:
                    return
                yield message
                # a transaction marker may be the last position before `end`: it is never delivered, and a read that
                # ends behind it stops at the next message or at the last stable offset (`ended`)
                if message.position + 1 >= end:
                    return
            if time.monotonic() > deadline:
                raise LogError(f"topic {self.topic}: no message for {_TIMEOUT:.0f} s before Kafka offset {end}")


# A one-partition topic as the table of a log, batch and stream (the format is in aclog.metalog.topic_message).
#
# A stream's offset is `{"offset": N, "position": P}`: the offset of the next record in the log, and the position
# (Kafka's offset) of its batch's first message. Positions cannot be computed from offsets: transaction markers take
# up positions.


_DECODED_BYTES = 4 << 20
"""Bytes of batches that are decoded together."""


@frozen(kw_only=True)
class TopicRange:
    """The positions from `position` up to `end`; rows below `first_offset` are skipped.

    `end_offset` is the offset at which the records must end, None if that is only known when they are read.
    """

    position: int
    end: int
    first_offset: int = 0
    end_offset: int | None = None


def open_topic(options: Options) -> KafkaTopic:
    """Return the topic of the options, without a connection yet."""
    return KafkaTopic(options.topic or "", options.kafka)


def plan_topic(options: Options) -> list[TopicRange]:
    """Return a range of all that is committed now. Raises as KafkaTopic.bounds and Options.check_range."""
    topic = open_topic(options)
    try:
        start, end = topic.bounds()
    finally:
        topic.close()
    if start < end:
        return [TopicRange(position=start, end=end)]
    options.check_range(f"topic {topic.topic}", 0, 0)
    return []


def read_topic(place: TopicRange, options: Options, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, in the order of the log.

    Raises:
        LogError: a broker does not respond, or records of the range have been removed.
        DecodeError: a damaged message or record; a ReplayError for a missing one.

    """
    selection = query.selection.with_offsets(first=place.first_offset)
    topic, end = open_topic(options), place.first_offset
    begin: int | None = None
    try:
        for data, after in _joined(topic.batches(place.position, place.end)):
            batches, _ = scan_batches(data)
            if begin is None:
                begin = int(batches.base_offset[0])
                options.check_range(f"topic {topic.topic}", begin, None)
            end = after
            rows = arrow_batches(data, batches, selection, query.schema)
            yield from (batch for batch in rows if batch.num_rows)
    finally:
        topic.close()
    options.check_range(f"topic {topic.topic}", begin or 0, end)
    if place.end_offset is not None and end != place.end_offset:
        raise LogError(f"topic {topic.topic}: the records end at offset {end}: expected {place.end_offset}")


def _joined(batches: Iterator[PlacedBatch]) -> Iterator[tuple[bytes, int]]:
    """Yield (encoded batches, offset after them), many batches together: decoding works on large buffers."""
    parts: list[bytes] = []
    size = end = 0
    for placed in batches:
        end = placed.batch.end_offset
        parts.append(placed.batch.encode())
        size += len(parts[-1])
        if size >= _DECODED_BYTES:
            yield b"".join(parts), end
            parts, size = [], 0
    if parts:
        yield b"".join(parts), end


@define(eq=False)
class TopicStream:
    """A topic that grows while it is read; `horizon` returns a position."""

    options: Options
    _topic: KafkaTopic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._topic = open_topic(self.options)

    def initial(self) -> StreamOffset:
        """Return where a new stream begins.

        Raises:
            ConfigError: the starting offset is not in the log.
            LogError, DecodeError: as KafkaTopic.bounds and KafkaTopic.batches.

        """
        start, end = self._topic.bounds()
        starting_offset = self.options.starting_offset
        there: StreamOffset = {"offset": 0, "position": start}
        # offsets are only in the messages: look for the starting offset from the beginning of the topic
        for number, placed in enumerate(self._topic.batches(start, end)):
            first, after = placed.batch.base_offset, placed.batch.end_offset
            if starting_offset == EARLIEST:
                return {"offset": first, "position": placed.position}
            if starting_offset != LATEST and int(starting_offset) < after:
                if number or first <= int(starting_offset):
                    return {"offset": int(starting_offset), "position": placed.position}
                break
            there = {"offset": after, "position": placed.after}
        if starting_offset in {EARLIEST, LATEST, there["offset"]}:
            return there
        what = f"option startingOffset: {starting_offset}: expected an offset of the log in topic {self._topic.topic}"
        raise ConfigError(what)

    def horizon(self) -> int:
        """Return the last stable offset: the position before which all is committed. Raises as KafkaTopic.bounds."""
        return self._topic.bounds()[1]

    def latest(self, start: StreamOffset, horizon: int, rows: int | None) -> StreamOffset:
        """Return the end of the last whole batch within `rows` of `start` and below `horizon`, at least of one."""
        latest = start
        # reading at a removed position would fail: `ranges` reports the gap
        for placed in self._topic.batches(max(start["position"], self._topic.bounds()[0]), horizon):
            end = placed.batch.end_offset
            if rows is not None and latest != start and end > start["offset"] + rows:
                break
            latest = {"offset": end, "position": placed.after}
            if rows is not None and end >= start["offset"] + rows:
                break
        return latest

    def ranges(self, begin: StreamOffset, until: StreamOffset) -> list[TopicRange | LostRange]:
        """Return the range with the records from `begin` up to `until`, and a lost range if some are removed.

        Raises:
            LogError: retention has removed records and failOnDataLoss is set.
            DecodeError: as KafkaTopic.batches.

        """
        if begin["offset"] >= until["offset"]:
            return []
        place = TopicRange(
            position=max(begin["position"], self._topic.bounds()[0]),
            end=until["position"],
            first_offset=begin["offset"],
            end_offset=until["offset"],
        )
        first = next(self._topic.batches(place.position, place.end), None)
        there = until["offset"] if first is None else first.batch.base_offset
        if there <= begin["offset"]:
            return [place]
        lost = self._lost(begin["offset"], there)
        return [lost] if first is None else [lost, evolve(place, first_offset=there)]

    def close(self) -> None:
        """Close the connection."""
        self._topic.close()

    def _lost(self, start: int, end: int) -> LostRange:
        text = f"topic {self._topic.topic}: offsets {start} to {end}: removed by retention before the stream read them"
        if self.options.fail_on_data_loss:
            raise LogError(f"{text}; set option failOnDataLoss=false to continue with a row for the gap")
        return LostRange(offset=start, text=text)
