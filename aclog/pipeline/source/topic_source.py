"""A one-partition topic as the table of a log, batch and stream (the format is in aclog.metalog.topic_message).

A stream's offset is `{"offset": N, "position": P}`: the offset of the next record in the log, and the position (Kafka's
offset) of its batch's first message. Positions cannot be computed from offsets: transaction markers take up positions.
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
    """Return the topic that the options name, without a connection yet."""
    return KafkaTopic(options.topic or "", options.kafka)


def plan_topic(options: Options) -> list[TopicRange]:
    """Return a range of all that is committed now. Raises as KafkaTopic.bounds."""
    topic = open_topic(options)
    try:
        start, end = topic.bounds()
    finally:
        topic.close()
    return [TopicRange(position=start, end=end)] if start < end else []


def read_topic(place: TopicRange, options: Options, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, in the order of the log.

    Raises:
        LogError: a broker does not respond, or records of the range have been removed.
        DecodeError: a damaged message or record; a ReplayError for a missing one.

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
        wanted = self.options.starting_offset
        there: StreamOffset = {"offset": 0, "position": start}
        # offsets are only in the messages: look for the starting offset from the beginning of the topic
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
        what = f"option startingOffset: {wanted}: expected an offset of the log in topic {self._topic.topic}"
        raise ConfigError(what)

    def horizon(self) -> int:
        """Return the last stable offset: the position before which all is committed. Raises as KafkaTopic.bounds."""
        return self._topic.bounds()[1]

    def latest(self, start: StreamOffset, horizon: int, rows: int | None) -> StreamOffset:
        """Return the end of the last whole batch within `rows` of `start` and below `horizon`, at least of one."""
        found = start
        # reading at a removed position would fail: `ranges` reports the gap
        for placed in self._topic.batches(max(start["position"], self._topic.bounds()[0]), horizon):
            end = placed.batch.end_offset
            if rows is not None and found != start and end > start["offset"] + rows:
                break
            found = {"offset": end, "position": placed.after}
            if rows is not None and end >= start["offset"] + rows:
                break
        return found

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
