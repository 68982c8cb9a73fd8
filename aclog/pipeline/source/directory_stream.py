"""A log directory as a stream: its start and end now, and the ranges between two of its offsets.

Offsets are those of the log: of the next record to read. An end is always the end of a batch.
"""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from attrs import define, field, frozen

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog.file_names import SegmentFile
from aclog.metalog.filelog.segments import Segment
from aclog.pipeline.source.directory import Extent, extent
from aclog.pipeline.source.options import EARLIEST, LATEST, Options
from aclog.pipeline.source.ranges import FileRange, OffsetPosition, file_ranges, headers

StreamOffset: TypeAlias = dict[str, int]
"""What Spark stores in a stream's checkpoint."""


@frozen(kw_only=True)
class LostRange:
    """Offsets that a stream can no longer read, reported in a row of type DAMAGED with this text."""

    offset: int
    text: str


@define(eq=False)
class DirectoryStream:
    """A log directory that grows, and loses segments to retention, while it is read.

    It remembers the positions of some batches. Offsets are `{"offset": N}`; `horizon` returns such an N.
    """

    options: Options
    _known: dict[Path, Segment] = field(init=False, factory=dict)

    def initial(self) -> StreamOffset:
        """Return where a new stream begins.

        Raises:
            ConfigError: the starting offset is not in the log.
            LogError, DecodeError: as aclog.pipeline.source.directory.extent.

        """
        there = self._extent()
        wanted = self.options.starting_offset
        if wanted == EARLIEST:
            return {"offset": there.start}
        if wanted == LATEST:
            return {"offset": there.end}
        offset = int(wanted)
        if not there.start <= offset <= there.end:
            raise ConfigError(
                f"option startingOffset: {offset}: expected {there.start} to {there.end}, the range of the log"
            )
        return {"offset": offset}

    def horizon(self) -> int:
        """Return the high-water mark. Raises as aclog.pipeline.source.directory.extent."""
        return self._extent().end

    def latest(self, start: StreamOffset, horizon: int, rows: int | None) -> StreamOffset:
        """Return the end of the last batch within `rows` of `start` and below `horizon`, but at least one batch.

        Where damage hides the ends of batches, it is the end of the segment.
        """
        begin = start["offset"]
        end = horizon if rows is None or begin + rows >= horizon else self._bounded_end(begin, horizon, rows)
        return {"offset": max(begin, end)}  # the offsets of a stream must never decrease

    def _bounded_end(self, start: int, until: int, rows: int) -> int:
        there = self._extent()
        offset = begin = max(start, there.start)
        while offset < until:
            number = _holding(there.segments, offset)
            file, end = there.segments[number], min(_end_of(there, number), until)
            for _, header in headers(file.path, self._locate(file, offset)):
                if header.end_offset > begin + rows:
                    return offset if offset > begin else min(header.end_offset, until)
                offset = max(offset, min(header.end_offset, until))
                if offset >= end:
                    break
            offset = max(offset, end)
        return offset

    def ranges(self, begin: StreamOffset, until: StreamOffset) -> list[FileRange | LostRange]:
        """Return the ranges with the records from `begin` up to `until`.

        Raises:
            LogError: retention has removed records and failOnDataLoss is set, or the log ends before `until`.

        """
        there, start, end = self._extent(), begin["offset"], until["offset"]
        if end > there.end:
            what = f"the log ends at offset {there.end}, below offset {end} in the stream's checkpoint: another log?"
            raise LogError(f"{self.options.path}: {what}")
        ranges: list[FileRange | LostRange] = []
        if start < min(there.start, end):
            ranges.append(self._lost(start, min(there.start, end)))
            start = there.start
        while start < end:
            number = _holding(there.segments, start)
            file, segment_end = there.segments[number], min(_end_of(there, number), end)
            ranges += file_ranges(
                file.path,
                self._locate(file, start),
                end_offset=segment_end,
                most_bytes=self.options.partition_bytes,
                epochs=there.epochs,
                first_offset=start,
            )
            start = segment_end
        return ranges

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _extent(self) -> Extent:
        path = self.options.path
        if path is None or self.options.checkpoints not in {None, "none"} or path.is_file():
            raise ConfigError(f"{path}: a stream reads a log directory: expected no checkpoints")
        return extent(path)

    def _lost(self, start: int, end: int) -> LostRange:
        text = f"{self.options.path}: offsets {start} to {end}: removed by retention before the stream read them"
        if self.options.fail_on_data_loss:
            raise LogError(f"{text}; set option failOnDataLoss=false to continue with a row for the gap")
        return LostRange(offset=start, text=text)

    def _locate(self, file: SegmentFile, offset: int) -> OffsetPosition:
        """Return where the batch that holds `offset` begins, or the last batch before damage that precedes it."""
        # the index of a Kafka segment finds a batch nearby; positions met on the way make the next call shorter
        segment = self._known.setdefault(file.path, Segment(file))
        base, position = segment.floor(offset)
        found = OffsetPosition(position=position, offset=base)
        for position, header in headers(file.path, found):
            if header.base_offset > offset:
                break
            found = OffsetPosition(position=position, offset=header.base_offset)
            segment.learn(header.base_offset, position)
            if header.end_offset == offset:
                return OffsetPosition(position=position + header.size, offset=offset)
        return found


def _holding(segments: Sequence[SegmentFile], offset: int) -> int:
    return max(bisect_right(segments, offset, key=lambda file: file.base_offset) - 1, 0)


def _end_of(there: Extent, number: int) -> int:
    return there.segments[number + 1].base_offset if number + 1 < len(there.segments) else there.end
