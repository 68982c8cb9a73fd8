"""A topic of one partition as the table of a log, batch and stream (metalog.topic_message says how a log stands there).

A stream's offset is `{"offset": N, "position": P}`: the record to be read next, and where Kafka has its batch.
"""

from collections.abc import Iterator

import pyarrow as pa
from attrs import define, evolve, field, frozen

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.errors import ConfigError, LogError
from aclog.pipeline.source.directory_stream import LostRange, StreamOffset
from aclog.pipeline.source.options import EARLIEST, LATEST, Options
from aclog.pipeline.source.range_reader import Query
from aclog.pipeline.source.record_table import arrow_batches
from aclog.pipeline.source.topic_range import KafkaTopic, PlacedBatch

_TOGETHER = 4 << 20
"""Bytes of batches that are turned into rows together."""


@frozen(kw_only=True)
class TopicRange:
    """Kafka's offsets from `position` up to `end`; rows below `first_offset` are left out.

    `end_offset` is where the records must end, None where what is there when it is read says it.
    """

    position: int
    end: int
    first_offset: int = 0
    end_offset: int | None = None


def open_topic(options: Options) -> KafkaTopic:
    """The topic that the options name; nothing is connected yet."""
    return KafkaTopic(options.topic or "", options.kafka)


def plan_topic(options: Options) -> list[TopicRange]:
    """All that is there now; raises as KafkaTopic.bounds."""
    topic = open_topic(options)
    try:
        start, end = topic.bounds()
    finally:
        topic.close()
    return [TopicRange(position=start, end=end)] if start < end else []


def read_topic(place: TopicRange, options: Options, query: Query) -> Iterator[pa.RecordBatch]:
    """The rows of a range, in the order of the log.

    Raises:
        LogError: a broker does not answer, or records of the range are not there any more.
        DecodeError: a message or a record that is damaged, a ReplayError where one is missing.

    """
    selection = query.selection.with_offsets(first=place.first_offset)
    topic, end = open_topic(options), place.first_offset
    try:
        for data, after in _joined(topic.batches(place.position, place.end)):
            batches, _ = scan_batches(data)
            end = after
            rows = arrow_batches(data, batches, selection, query.schema)
            yield from (batch for batch in rows if batch.num_rows)
    finally:
        topic.close()
    if place.end_offset is not None and end != place.end_offset:
        raise LogError(f"topic {topic.topic}: the records end at offset {end}: expected {place.end_offset}")


def _joined(batches: Iterator[PlacedBatch]) -> Iterator[tuple[bytes, int]]:
    """Batches in the form of the log's bytes, many together, and the offset after them."""
    parts: list[bytes] = []
    size = end = 0
    for placed in batches:
        end = placed.batch.end_offset
        parts.append(placed.batch.encode())
        size += len(parts[-1])
        if size >= _TOGETHER:
            yield b"".join(parts), end
            parts, size = [], 0
    if parts:
        yield b"".join(parts), end


@define(eq=False)
class TopicStream:
    """A topic that others write to; what `horizon` gives is an offset of Kafka's."""

    options: Options
    _topic: KafkaTopic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._topic = open_topic(self.options)

    def initial(self) -> StreamOffset:
        """Where a new stream begins.

        Raises:
            ConfigError: at an offset that the log does not have.
            LogError, DecodeError: as KafkaTopic.bounds and KafkaTopic.batches.

        """
        start, end = self._topic.bounds()
        wanted = self.options.starting_offset
        there: StreamOffset = {"offset": 0, "position": start}
        for number, placed in enumerate(self._topic.batches(start, end)):
            first, after = placed.batch.base_offset, placed.batch.end_offset
            if wanted == EARLIEST:
                return {"offset": first, "position": placed.position}
            if wanted != LATEST and int(wanted) < after:
                if number or first <= int(wanted):
                    return {"offset": int(wanted), "position": placed.position}
                break
            there = {"offset": after, "position": placed.after}
        if wanted in {EARLIEST, LATEST, there["offset"]}:
            return there
        what = f"option startingOffset: {wanted}: not an offset of the log in topic {self._topic.topic}"
        raise ConfigError(what)

    def horizon(self) -> int:
        """Up to where messages are committed now; raises as KafkaTopic.bounds."""
        return self._topic.bounds()[1]

    def latest(self, start: StreamOffset, horizon: int, rows: int | None) -> StreamOffset:
        """The end of the last whole batch below `horizon` and at most `rows` behind `start`, or of the first one."""
        found = start
        for placed in self._topic.batches(max(start["position"], self._topic.bounds()[0]), horizon):
            end = placed.batch.end_offset
            if rows is not None and found != start and end > start["offset"] + rows:
                break
            found = {"offset": end, "position": placed.after}
            if rows is not None and end >= start["offset"] + rows:
                break
        return found

    def ranges(self, begin: StreamOffset, until: StreamOffset) -> list[TopicRange | LostRange]:
        """What the records from `begin` up to `until` stand in.

        Raises:
            LogError: retention has removed some of it, and that is to fail.
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
        """Let go of the connection."""
        self._topic.close()

    def _lost(self, start: int, end: int) -> LostRange:
        text = f"topic {self._topic.topic}: offsets {start} to {end}: removed before this stream has read them"
        if self.options.fail_on_data_loss:
            raise LogError(f"{text}; with option failOnDataLoss=false it goes on, and says so in a row")
        return LostRange(offset=start, text=text)
