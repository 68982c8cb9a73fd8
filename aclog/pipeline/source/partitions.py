"""The partitions of a query, planned on the driver: ranges of files or of a topic, and rows for lost ranges."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from aclog.pipeline.source.directory import plan
from aclog.pipeline.source.directory_stream import LostRange
from aclog.pipeline.source.options import Options
from aclog.pipeline.source.range_reader import Query, read_range
from aclog.pipeline.source.ranges import FileRange
from aclog.pipeline.source.schema import damage_row

if TYPE_CHECKING:
    from aclog.pipeline.source.topic_source import TopicRange

Part: TypeAlias = "FileRange | TopicRange | LostRange"


def plan_partitions(options: Options, query: Query) -> list[Part]:
    """Return what a batch query reads: the records committed now. Raises as `plan` and `plan_topic`."""
    if options.topic is None:
        return list(plan(options, query.selection))
    from aclog.pipeline.source.topic_source import plan_topic  # noqa: PLC0415 - needs confluent-kafka

    return list(plan_topic(options))


def read_partition(part: Part, options: Options, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield its rows. Raises as `read_range` and `read_topic`."""
    if isinstance(part, FileRange):
        yield from read_range(part, query)
    elif isinstance(part, LostRange):
        yield damage_row(query.schema, part.offset, part.text)
    else:
        from aclog.pipeline.source.topic_source import read_topic  # noqa: PLC0415 - as above

        yield from read_topic(part, options, query)
