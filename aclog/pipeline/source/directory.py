"""A log directory or checkpoints as ranges of bytes, and their rows."""

import logging
import os
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from attrs import evolve, field

from aclog.metalog.batches import (
    HEADER_SIZE,
    LENGTH_END,
    BatchColumns,
    BatchHeader,
    check_crc,
    read_header,
    scan_batches,
)
from aclog.metalog.columns import Bools
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.control_records import SnapshotFooter, decode_control_batch
from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.filelog import files, open_reader
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.segments import Segment, checked_batches, next_whole_batch
from aclog.metalog.values import define, frozen
from aclog.pipeline.source.rows import (
    DAMAGED,
    LOG_SCHEMA,
    MAX_OFFSET,
    RowSelection,
    arrow_batches,
    damage_row,
    take_batches,
)

# Byte ranges of files, planned from the lengths of batches alone: the reader of a range checks its contents.
#
# A file up to the size of a partition is one range. A larger file is cut by following the lengths of its batches, at
# places with a valid batch header; after a place without one, the rest of the file is one range.


_WINDOW = 1 << 20
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


@frozen(kw_only=True)
class FileRange:
    """Whole batches of a file: bytes `position` up to `end`, offsets `offset` up to `end_offset`.

    `end_offset` is None if the records end with the file. `first_offset`: rows below it are skipped and may be missing.
    `epochs`: the content of leader-epoch-checkpoint. `footer`: whether the range must end with a SnapshotFooter.
    """

    path: str
    position: int
    end: int
    offset: int
    end_offset: int | None
    first_offset: int = 0
    epochs: tuple[EpochStart, ...] | None
    footer: bool = False


@frozen(kw_only=True)
class OffsetPosition:
    """Where a batch begins: a byte position in a file, and its offset (as Kafka's OffsetPosition)."""

    position: int
    offset: int


def file_ranges(
    path: Path,
    start: OffsetPosition,
    *,
    end_offset: int | None,
    most_bytes: int,
    epochs: tuple[EpochStart, ...] | None,
    first_offset: int = 0,
    is_checkpoint: bool = False,
) -> list[FileRange]:
    """Return the ranges, of about `most_bytes` each, of a file from `start` on.

    Raises:
        LogError: the file cannot be read.

    """
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            cuts = []
            if size - start.position > most_bytes:
                cuts = list(_cuts(fd, start, size, end_offset=end_offset, most_bytes=most_bytes))
        finally:
            os.close(fd)
    except OSError as error:
        raise files.log_error(error, path, "cannot read") from error
    begins = [start, *cuts]
    ends = [(cut.position, cut.offset) for cut in cuts] + [(size, end_offset)]
    return [
        FileRange(
            path=str(path),
            position=begin.position,
            end=end,
            offset=begin.offset,
            end_offset=last,
            first_offset=first_offset,
            epochs=epochs,
            footer=is_checkpoint and end == size,
        )
        for begin, (end, last) in zip(begins, ends, strict=True)
    ]


def _cuts(
    fd: int, start: OffsetPosition, size: int, *, end_offset: int | None, most_bytes: int
) -> Iterator[OffsetPosition]:
    """Yield where the ranges after the first begin: at the first batch after `most_bytes` or more."""
    last, base = start.position, start.offset
    for position, follows in _positions(fd, start.position, size):
        # The reader of a range has nothing to check its first offset against, which no CRC covers: the batch before.
        if follows and position - last >= most_bytes:
            # a damaged length leads anywhere: cut only at what looks like a batch with a plausible offset
            try:
                header = read_header(files.read_at(fd, position, HEADER_SIZE))
            except DecodeError:
                return
            if header.base_offset <= base or (end_offset is not None and header.base_offset >= end_offset):
                return
            last, base = position, header.base_offset
            yield OffsetPosition(position=position, offset=base)


def _positions(fd: int, position: int, size: int) -> Iterator[tuple[int, bool]]:
    """Yield the positions of batches, following their lengths, and whether each has the offset that should follow.

    The file is read in windows.
    """
    data, begin, expected = b"", position, -1
    while position + HEADER_SIZE <= size:
        at = position - begin
        if at + HEADER_SIZE > len(data):
            data, begin, at = files.read_at(fd, position, _WINDOW), position, 0
            if len(data) < HEADER_SIZE:
                return
        base, length = _OFFSET_AND_LENGTH.unpack_from(data, at)
        yield position, base == expected
        expected = base + _LAST_OFFSET_DELTA.unpack_from(data, at + _LAST_OFFSET_DELTA_AT)[0] + 1
        position += max(length + LENGTH_END, HEADER_SIZE)


def headers(path: Path, start: OffsetPosition) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch from `start` on, up to the first that does not follow.

    Raises:
        LogError: the file cannot be read.

    """
    try:
        with path.open("rb", buffering=_WINDOW) as file:
            position, offset = start.position, start.offset
            while True:
                file.seek(position)
                data = file.read(HEADER_SIZE)
                try:
                    header = read_header(data)
                except DecodeError:
                    return
                if header.base_offset != offset:
                    return
                yield position, header
                position, offset = position + header.size, header.end_offset
    except OSError as error:
        raise files.log_error(error, path, "cannot read") from error


# Where to resume reading after damage: at the next complete batch with a plausible offset.


LARGEST_BATCH = 16 << 20
"""Twice the largest batch that Kafka's raft client and aclog write; a larger length is damage."""


def next_trusted(fd: int, at: OffsetPosition, end: OffsetPosition) -> OffsetPosition:
    """Return where to resume at or after `at`, where a valid batch should begin but does not.

    `end` is the end of the range, returned if nothing before it can be trusted. In this order:
    1. only this batch is damaged: after it, by its own length, a batch begins with the offset that should follow;
    2. this batch is valid but has a later offset: the records before it are missing;
    3. the first complete batch after `at`, at any position, with a later offset.
    """
    next_batch = _after_single_damage(fd, at, end)
    if next_batch is not None:
        return next_batch
    here = _valid(fd, at.position, end.position)
    if here is not None and at.offset < here.base_offset and _before(here.base_offset, at, end):
        return OffsetPosition(position=at.position, offset=here.base_offset)
    behind = next_whole_batch(fd, at.position, at.offset)
    if behind is not None and behind[0] < end.position and _before(behind[1], at, end):
        return OffsetPosition(position=behind[0], offset=behind[1])
    return end


def _after_single_damage(fd: int, at: OffsetPosition, end: OffsetPosition) -> OffsetPosition | None:
    try:
        header = read_header(files.read_at(fd, at.position, HEADER_SIZE))
    except DecodeError:
        return None
    behind = OffsetPosition(position=at.position + header.size, offset=at.offset + header.record_count)
    if behind == end:
        return behind
    following = _valid(fd, behind.position, end.position)
    return behind if following is not None and following.base_offset == behind.offset else None


def _valid(fd: int, position: int, end: int) -> BatchHeader | None:
    """Return the header of the batch at `position` if it is complete, ends by `end`, and has a correct CRC."""
    try:
        header = read_header(files.read_at(fd, position, HEADER_SIZE))
        if header.size > min(LARGEST_BATCH, end - position):
            return None
        check_crc(files.read_at(fd, position, header.size), 0, header)
    except DecodeError:
        return None
    return header


def _before(offset: int, at: OffsetPosition, end: OffsetPosition) -> bool:
    """Return whether an offset is before the end of the range, if known (else `end.offset` is `at.offset`)."""
    return end.offset == at.offset or offset < end.offset


# Rows of a byte range of a log, as Arrow batches; every batch and its place in the log are checked.
#
# Memory is bounded by a window of the file and by the largest batch of a metadata log. Damage is an error or is set
# aside: then one row of type DAMAGED replaces it, and reading continues at the next trustworthy place.


WINDOW = 4 << 20
"""Bytes to read at a time."""

MOST_DAMAGED = 1000
"""Places set aside in one range before the rest of it is: crafted bytes must not make a search of every position."""


@frozen(kw_only=True, eq=False)
class Query:
    """What to read of every range: which rows and columns, and whether damage is set aside."""

    selection: RowSelection = field(factory=RowSelection)
    schema: pa.Schema = LOG_SCHEMA
    set_aside: bool = False

    @property
    def thorough(self) -> bool:
        """Whether to decode everything: the same batches are set aside for any selection of rows and columns."""
        return self.set_aside and (self.selection != RowSelection() or self.schema != LOG_SCHEMA)


def read_range(file_range: FileRange, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, in the order of the log.

    Raises:
        DecodeError: damage (unless it is set aside), with path, byte position and offset.
        LogError: the file cannot be read, or retention has removed it.

    """
    with _opened(file_range.path) as fd:
        start = OffsetPosition(position=file_range.position, offset=file_range.offset)
        reader = _RangeReader(fd=fd, range=file_range, query=query, at=start)
        for batch in reader.batches():
            if batch.num_rows:
                yield batch


@contextmanager
def _opened(path: str) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise LogError(f"{path}: removed since the read was planned (retention?)") from None
    except OSError as error:
        raise LogError(f"{path}: cannot open: {error.strerror}") from error
    try:
        yield fd
    except OSError as error:
        raise LogError(f"{path}: cannot read: {error.strerror or error}") from error
    finally:
        os.close(fd)


@define(kw_only=True, eq=False)
class _RangeReader:
    """The reading of one range: where the next batch must begin, and the epoch of the previous one."""

    fd: int
    range: FileRange
    query: Query
    at: OffsetPosition
    _epoch: int = field(init=False, default=0)
    _last: bytes = field(init=False, default=b"")
    _damaged: int = field(init=False, default=0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the range."""
        while self._has_more():
            data = self._window()
            columns, _ = scan_batches(data)
            good = take_batches(columns, slice(0, self._in_place(columns)))
            if len(good):
                yield from self._rows(data, good)
                self._advance(data, good)
            else:
                yield from self._damage(self._problem(data))
        if self.range.end_offset is not None and self.at.offset < self.range.end_offset:
            what = f"the records end here: expected records up to offset {self.range.end_offset}"
            yield from self._damage(self._error(what))
        elif self.range.footer and not self._ends_with_footer():
            yield from self._damage(self._error("the checkpoint does not end with a SnapshotFooter: truncated?"))

    def _has_more(self) -> bool:
        file_range = self.range
        has_offsets = file_range.end_offset is None or self.at.offset < file_range.end_offset
        return self.at.position < file_range.end and has_offsets

    def _window(self) -> bytes:
        remaining = self.range.end - self.at.position
        data = files.read_at(self.fd, self.at.position, min(WINDOW, remaining))
        needed = int.from_bytes(data[8:12], signed=True) + 12
        # the first batch may be larger than a window; a length beyond the limit is damage, which `_problem` reports
        if len(data) < needed <= min(LARGEST_BATCH, remaining):
            data = files.read_at(self.fd, self.at.position, needed)
        return data

    def _in_place(self, batches: BatchColumns) -> int:
        """Return how many of these batches, from the first on, have the expected offsets and epochs."""
        end = batches.end_offset
        expected = np.concatenate(([self.at.offset], end[:-1]))[: len(batches)]
        good = (batches.base_offset == expected) & _in_epoch(batches, self.range.epochs, self._epoch)
        if self.range.end_offset is not None:
            good &= end <= self.range.end_offset
        return len(good) if good.all() else int(good.argmin())

    def _problem(self, data: bytes) -> DecodeError:
        """Return the problem of the batch that should begin here, found by the batch-wise check."""
        base, position = self.at.offset, self.at.position
        size = int.from_bytes(data[8:12], signed=True) + 12
        try:
            for _, header in checked_batches(data, base, self.range.epochs, self._epoch):
                end, most = header.end_offset, self.range.end_offset
                return self._error(f"a batch up to offset {end}: expected its end at or before {most}")
        except DecodeError as error:
            return error.at(path=self.range.path, base=position, offset=base)
        if size > LARGEST_BATCH:
            return self._error(f"a batch of {size} bytes: expected at most {LARGEST_BATCH}")
        return self._error(f"a truncated batch: only {len(data)} of its bytes are present")

    def _error(self, what: str) -> DecodeError:
        return DecodeError(what, path=self.range.path, position=self.at.position, offset=self.at.offset)

    def _rows(self, data: bytes, batches: BatchColumns) -> Iterator[pa.RecordBatch]:
        query = evolve(self.query, selection=self.query.selection.with_offsets(first=self.range.first_offset))
        try:
            rows = arrow_batches(data, batches, query.selection, query.schema, thorough=query.thorough)
            # set aside: no row of a batch may be out before all of it has decoded
            yield from list(rows) if query.set_aside else rows
        except DecodeError as error:
            if not query.set_aside:
                raise error.at(path=self.range.path, base=self.at.position) from None
            yield from self._sound_rows(data, batches, error)

    def _sound_rows(self, data: bytes, batches: BatchColumns, error: DecodeError) -> Iterator[pa.RecordBatch]:
        """Yield the rows of batches of which at least one does not decode, which is found by bisection."""
        if len(batches) > 1:
            half = len(batches) // 2
            yield from self._rows(data, take_batches(batches, slice(0, half)))
            yield from self._rows(data, take_batches(batches, slice(half, None)))
        else:
            start, end = (
                OffsetPosition(position=self.at.position + int(position), offset=int(offset))
                for position, offset in (
                    (batches.position[0], batches.base_offset[0]),
                    (batches.end[0], batches.end_offset[0]),
                )
            )
            yield from self._damaged_rows(start, end, error.at(base=self.at.position))

    def _advance(self, data: bytes, batches: BatchColumns) -> None:
        end = int(batches.end_offset[-1])
        if self.range.footer:  # the last batch is checked at the end
            self._last = data[batches.position[-1] : batches.end[-1]]
        self.at = OffsetPosition(position=self.at.position + int(batches.end[-1]), offset=end)
        self._epoch = int(batches.leader_epoch[-1])

    def _damage(self, error: DecodeError) -> Iterator[pa.RecordBatch]:
        """Raise the error, or set aside the bytes before the next trustworthy place and continue there."""
        if not self.query.set_aside:
            raise error
        self._damaged += 1
        end = OffsetPosition(position=self.range.end, offset=self.range.end_offset or self.at.offset)
        if self._damaged < MOST_DAMAGED and self.at.position < self.range.end:
            end = next_trusted(self.fd, self.at, end)
        start, self.at, self._last = self.at, end, b""
        yield from self._damaged_rows(start, end, error)

    def _damaged_rows(self, start: OffsetPosition, end: OffsetPosition, error: DecodeError) -> Iterator[pa.RecordBatch]:
        first = max(start.offset, self.range.first_offset)
        if start.offset < end.offset <= self.range.first_offset or not self.query.selection.untimed(first, DAMAGED):
            return
        where = f"bytes {start.position} to {end.position}, offsets {start.offset} to {end.offset}"
        detail = error.what if error.position == start.position else f"{error.what} (byte {error.position})"
        yield damage_row(self.query.schema, first, f"{self.range.path}: {where}: {detail}")

    def _ends_with_footer(self) -> bool:
        if not self._last:
            return self._damaged > 0  # if the end was set aside, it is reported already
        header = read_header(self._last)
        return header.is_control and isinstance(decode_control_batch(self._last, 0, header)[-1], SnapshotFooter)


def _in_epoch(batches: BatchColumns, epochs: tuple[EpochStart, ...] | None, before: int) -> Bools:
    """Return which batches have a possible epoch: `batch_walk.epoch_span` for all of them at once."""
    epoch = batches.leader_epoch
    if epochs is None:
        not_decreasing: Bools = epoch >= np.concatenate(([before], epoch[:-1]))[: len(epoch)]
        return not_decreasing
    starts = np.array([start.start_offset for start in epochs], np.int64)
    number = np.searchsorted(starts, batches.base_offset, side="right")
    last = np.searchsorted(starts, batches.end_offset - 1, side="right")
    expected = np.array([epochs[0].epoch if epochs else -1, *(start.epoch for start in epochs)], np.int64)[number]
    good: Bools = (number == last) & ((epoch == expected) | ((number == 0) & (epoch <= expected)))
    return good


# The options of the data source, parsed and checked; unknown options are errors.


KAFKA = "kafka."
"""The prefix of options that are properties of the Kafka client."""

NAMES = (
    "path",
    "topic",
    "checkpoints",
    "partitionBytes",
    "damaged",
    "pushFilters",
    "fromOffset",
    "untilOffset",
    "startingOffset",
    "maxRecordsPerTrigger",
    "failOnDataLoss",
)
CHECKPOINTS = ("none", "newest", "all")
EARLIEST, LATEST = "earliest", "latest"
_DAMAGED = ("fail", "setAside")
_PARTITION_BYTES = 16 << 20


@frozen(kw_only=True)
class Options:
    """Options as documented by AclogDataSource; `kafka` has the client properties, which may include secrets."""

    path: Path | None = None
    topic: str | None = None
    kafka: Mapping[str, str] = field(factory=dict, repr=False)
    checkpoints: str | None = None
    partition_bytes: int = _PARTITION_BYTES
    set_aside: bool = False
    push_filters: bool = False
    from_offset: int | None = None
    until_offset: int | None = None
    starting_offset: int | str = EARLIEST
    max_records_per_trigger: int | None = None
    fail_on_data_loss: bool = True

    def check_range(self, name: str, start: int, end: int | None) -> None:
        """Check that a log with offsets `start` up to `end`, None while unknown, has all of the range of options.

        Raises:
            LogError: it has not, and failOnDataLoss is set: the rows would be a part of the range.

        """
        log = f"{name}: the log begins at offset {start}" + ("" if end is None else f" and ends before offset {end}")
        for option, offset in (("fromOffset", self.from_offset), ("untilOffset", self.until_offset)):
            if offset is None or not self.fail_on_data_loss:
                continue
            if offset < start or (end is not None and offset > end):
                raise LogError(
                    f"{log}: option {option} {offset} is outside: expected an offset of the log, or option "
                    "failOnDataLoss=false to read the part that exists"
                )


def read_options(spark_options: Mapping[str, str]) -> Options:
    """Parse the options given to Spark, which may have lower-cased their names.

    Raises:
        ConfigError: an unknown option, an invalid value, options that exclude each other, or nothing to read.

    """
    names = {name.lower(): name for name in NAMES}
    if {"owner", "provider"} <= {name.lower() for name in spark_options}:
        raise ConfigError(
            "CREATE TABLE ... USING aclog: Spark passes the options of a table to no query of a Python data source: "
            "expected CREATE TEMPORARY VIEW, or CREATE GLOBAL TEMPORARY VIEW for all sessions of an application"
        )
    values, kafka = {}, {}
    for name, value in spark_options.items():
        if name.lower().startswith(KAFKA):
            kafka[name[len(KAFKA) :]] = value
        elif name.lower() in names:
            values[names[name.lower()]] = value
        else:
            raise ConfigError(f"option {name!r}: expected one of {', '.join(NAMES)}, or {KAFKA}*")
    options = Options(
        path=_path(values.get("path")),
        topic=values.get("topic"),
        kafka=kafka,
        checkpoints=_choice("checkpoints", values.get("checkpoints"), CHECKPOINTS),
        partition_bytes=_number("partitionBytes", values.get("partitionBytes")) or _PARTITION_BYTES,
        set_aside=_choice("damaged", values.get("damaged"), _DAMAGED) == "setAside",
        starting_offset=_starting_offset(values.get("startingOffset", EARLIEST)),
        max_records_per_trigger=_number("maxRecordsPerTrigger", values.get("maxRecordsPerTrigger")),
        push_filters=_boolean("pushFilters", values.get("pushFilters", "false")),
        fail_on_data_loss=_boolean("failOnDataLoss", values.get("failOnDataLoss", "true")),
        from_offset=None if "fromOffset" not in values else _offset("fromOffset", values["fromOffset"]),
        until_offset=None if "untilOffset" not in values else _offset("untilOffset", values["untilOffset"]),
    )
    _check_place(options)
    return options


def _check_place(options: Options) -> None:
    if options.until_offset is not None and options.until_offset < (options.from_offset or 0):
        raise ConfigError(f"option untilOffset: {options.until_offset}: below fromOffset {options.from_offset}")
    if (options.path is None) == (options.topic is None):
        raise ConfigError("expected a path (load(DIR), or option path) or option topic, not both")
    if options.topic is None and options.kafka:
        raise ConfigError(f"option {KAFKA}{min(options.kafka)}: expected only with option topic")
    if options.topic is not None and not options.kafka.get("bootstrap.servers"):
        raise ConfigError("option kafka.bootstrap.servers: required with option topic")
    if options.topic is not None and options.checkpoints:
        raise ConfigError("option checkpoints: not available with option topic: a topic has no checkpoints")
    if options.topic is not None and options.set_aside:
        raise ConfigError("option damaged: setAside is not available with option topic")


def _path(text: str | None) -> Path | None:
    if text is None:
        return None
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if "://" in text:
        raise ConfigError(f"path {text!r}: expected a local or shared file system path, the same on every worker")
    return Path(text).absolute()


def _choice(name: str, value: str | None, choices: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise ConfigError(f"option {name}: {value!r}: expected one of {', '.join(choices)}")


def _boolean(name: str, value: str) -> bool:
    return _choice(name, value, ("true", "false")) == "true"


def _number(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()) or not 0 < int(value) < 1 << 63:
        raise ConfigError(f"option {name}: {value!r}: expected a whole number above 0")
    return int(value)


def _starting_offset(value: str) -> int | str:
    if value.lower() in {EARLIEST, LATEST}:
        return value.lower()
    return _offset("startingOffset", value, f"{EARLIEST}, {LATEST} or ")


def _offset(name: str, value: str, others: str = "") -> int:
    if not (value.isascii() and value.isdigit()) or int(value) >= 1 << 63:
        raise ConfigError(f"option {name}: {value!r}: expected {others}an offset")
    return int(value)


# A log directory, or checkpoints, as ranges to read: the records committed at the time of planning.


_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class Extent:
    """The contents of a log directory: the segments, and the committed offsets from `start` up to `end`.

    `end` is MAX_OFFSET if damage hides the end of a Kafka node's log and is to be set aside.
    """

    segments: tuple[files.SegmentFile, ...]
    epochs: tuple[EpochStart, ...] | None
    start: int
    end: int


def plan(options: Options, selection: RowSelection) -> list[FileRange]:
    """Return the ranges of `options.path`: a log directory, a directory of checkpoints, or one checkpoint.

    Raises:
        LogError: it is something else, cannot be read, or lacks offsets of the options (Options.check_range).
        DecodeError: a file that determines the end of the log is damaged.
        ConfigError: it is a file, but not a checkpoint.

    """
    path = options.path
    assert path is not None  # noqa: S101 - read_options checks it
    if path.is_file():
        return _checkpoint_ranges(_named_checkpoint(path), options, selection)
    checkpoints = files.list_checkpoints(path) if path.is_dir() else ()
    choice = options.checkpoints
    if choice is None and checkpoints and not files.list_segments(path):
        if committed := read_committed(path):
            committed.check_exists()  # a checkpoint alone would be a state without most of the rules
        if not checkpoints[-1].end_offset:
            return []  # a formatted directory: the first leader will commit these records, they are no state yet
        choice = "newest"
    if choice in {None, "none"}:
        there = extent(path, set_aside=options.set_aside)
        options.check_range(str(path), there.start, there.end)
        return _log_ranges(there, options, selection)
    if not checkpoints:
        raise LogError(f"{path}: it has no checkpoints")
    selected = checkpoints[-1:] if choice == "newest" else checkpoints
    return [each for checkpoint in selected for each in _checkpoint_ranges(checkpoint, options, selection)]


def extent(directory: Path, *, set_aside: bool = False) -> Extent:
    """Return the committed offsets.

    Raises:
        LogError: there is no log, or it cannot be read.
        DecodeError: the mark file, leader-epoch-checkpoint or (unless `set_aside`) the end of a Kafka log is damaged.

    """
    committed = read_committed(directory)  # before the log: a live writer moves the log on first
    files.find_segments(directory)
    try:
        with open_reader(directory) as reader:
            end = reader.high_watermark()
        for text in (*(committed.notes(end) if committed else ()), *files.notices(directory)):
            _log.warning(text)
    except DecodeError as error:
        if not set_aside or Path(error.path or "") not in {file.path for file in files.list_segments(directory)}:
            raise
        end = MAX_OFFSET
    epochs = files.read_epochs(directory)  # after the mark: it then has every epoch below the mark
    # a segment that was rolled after the mark was read begins above it
    segments = tuple(file for file in files.find_segments(directory) if file.base_offset <= end)
    if not segments:
        raise LogError(f"{directory}: no segment begins at or below offset {end}, the high-water mark")
    return Extent(segments=segments, epochs=epochs, start=segments[0].base_offset, end=end)


def _log_ranges(log_extent: Extent, options: Options, selection: RowSelection) -> list[FileRange]:
    ranges = []
    ends = [file.base_offset for file in log_extent.segments[1:]] + [log_extent.end]
    for file, end in zip(log_extent.segments, ends, strict=True):
        if file.base_offset < end and selection.between(file.base_offset, end):
            ranges += file_ranges(
                file.path,
                OffsetPosition(position=0, offset=file.base_offset),
                end_offset=None if end == MAX_OFFSET else end,
                most_bytes=options.partition_bytes,
                epochs=log_extent.epochs,
            )
    return [each for each in ranges if selection.between(each.offset, each.end_offset or MAX_OFFSET)]


def _named_checkpoint(path: Path) -> files.CheckpointFile:
    parsed = files.parse_checkpoint_name(path.name)
    if parsed is None:
        raise ConfigError(f"{path}: expected a log directory or a checkpoint (such as {0:020d}-{1:010d}.checkpoint)")
    return files.CheckpointFile(end_offset=parsed[0], epoch=parsed[1], path=path)


def _checkpoint_ranges(checkpoint: files.CheckpointFile, options: Options, selection: RowSelection) -> list[FileRange]:
    """Return the ranges of a checkpoint: its records have offsets from 0 on, and the epoch in its name."""
    ranges = file_ranges(
        checkpoint.path,
        OffsetPosition(position=0, offset=0),
        end_offset=None,
        most_bytes=options.partition_bytes,
        epochs=(EpochStart(epoch=checkpoint.epoch, start_offset=0),),
        is_checkpoint=True,
    )
    return [each for each in ranges if selection.between(each.offset, each.end_offset or MAX_OFFSET)]


# A log directory as a stream: its start and end now, and the ranges between two of its offsets.
#
# Offsets are those of the log: of the next record to read. An end is always the end of a batch.


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
    _segments: dict[Path, Segment] = field(init=False, factory=dict)

    def initial(self) -> StreamOffset:
        """Return where a new stream begins.

        Raises:
            ConfigError: the starting offset is not in the log.
            LogError, DecodeError: as aclog.pipeline.source.directory.extent.

        """
        there = self._extent()
        starting_offset = self.options.starting_offset
        if starting_offset == EARLIEST:
            return {"offset": there.start}
        if starting_offset == LATEST:
            return {"offset": there.end}
        offset = int(starting_offset)
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

    def _locate(self, file: files.SegmentFile, offset: int) -> OffsetPosition:
        """Return where the batch that holds `offset` begins, or the last batch before damage that precedes it."""
        # the index of a Kafka segment finds a batch nearby; positions met on the way make the next call shorter
        segment = self._segments.setdefault(file.path, Segment(file))
        base, position = segment.floor(offset)
        place = OffsetPosition(position=position, offset=base)
        for position, header in headers(file.path, place):
            if header.base_offset > offset:
                break
            place = OffsetPosition(position=position, offset=header.base_offset)
            segment.learn(header.base_offset, position)
            if header.end_offset == offset:
                return OffsetPosition(position=position + header.size, offset=offset)
        return place


def _holding(segments: Sequence[files.SegmentFile], offset: int) -> int:
    return max(bisect_right(segments, offset, key=lambda file: file.base_offset) - 1, 0)


def _end_of(there: Extent, number: int) -> int:
    return there.segments[number + 1].base_offset if number + 1 < len(there.segments) else there.end
