"""The partitions of a query, planned on the driver: ranges of files or of a topic, and rows for lost ranges."""

from collections.abc import Iterable, Iterator
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


Partition: TypeAlias = tuple[Part, ...]
"""What one task reads, in the order of the log."""


def plan_partitions(options: Options, query: Query) -> list[Partition]:
    """Return what a batch query reads: the records committed now. Raises as `plan` and `plan_topic`."""
    if options.topic is None:
        return packed(plan(options, query.selection), options.partition_bytes)
    from aclog.pipeline.source.topic_source import plan_topic  # noqa: PLC0415 - needs confluent-kafka

    return packed(plan_topic(options), options.partition_bytes)


def packed(parts: Iterable[Part], most_bytes: int) -> list[Partition]:
    """Put neighbours together, up to `most_bytes` of files per partition: a task costs more than a small segment."""
    partitions: list[Partition] = []
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


def read_partition(partition: Partition, options: Options, query: Query) -> Iterator[pa.RecordBatch]:
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
        from aclog.pipeline.source.topic_source import read_topic  # noqa: PLC0415 - as above

        yield from read_topic(part, options, query)
