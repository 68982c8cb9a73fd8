"""A log directory, or checkpoints, as ranges to read: the records committed at the time of planning."""

import logging
from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.epochs import read_epochs
from aclog.metalog.filelog.file_names import (
    CheckpointFile,
    SegmentFile,
    find_segments,
    list_checkpoints,
    list_segments,
    parse_checkpoint_name,
)
from aclog.metalog.filelog.notice import notices
from aclog.metalog.log import EpochStart
from aclog.pipeline.source.options import Options
from aclog.pipeline.source.ranges import FileRange, OffsetPosition, file_ranges
from aclog.pipeline.source.row_selection import MAX_OFFSET, RowSelection

_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class Extent:
    """What a log directory holds: the segments, and the committed offsets from `start` up to `end`.

    `end` is MAX_OFFSET if damage hides the end of a Kafka node's log and is to be set aside.
    """

    segments: tuple[SegmentFile, ...]
    epochs: tuple[EpochStart, ...] | None
    start: int
    end: int


def plan(options: Options, selection: RowSelection) -> list[FileRange]:
    """Return the ranges of `options.path`: a log directory, a directory of checkpoints, or one checkpoint.

    Raises:
        LogError: it is none of these, or cannot be read.
        DecodeError: a file that determines the end of the log is damaged.
        ConfigError: it is a file, but not a checkpoint.

    """
    path = options.path
    assert path is not None  # noqa: S101 - read_options checks it
    if path.is_file():
        return _checkpoint_ranges(_named_checkpoint(path), options, selection)
    checkpoints = list_checkpoints(path) if path.is_dir() else ()
    choice = options.checkpoints
    if choice is None and checkpoints and not list_segments(path):
        if committed := read_committed(path):
            committed.check_exists()  # a checkpoint alone would be a state without most of the rules
        if not checkpoints[-1].end_offset:
            return []  # a formatted directory: the first leader will commit these records, they are no state yet
        choice = "newest"
    if choice in {None, "none"}:
        return _log_ranges(extent(path, set_aside=options.set_aside), options, selection)
    if not checkpoints:
        raise LogError(f"{path}: it has no checkpoints")
    chosen = checkpoints[-1:] if choice == "newest" else checkpoints
    return [each for checkpoint in chosen for each in _checkpoint_ranges(checkpoint, options, selection)]


def extent(directory: Path, *, set_aside: bool = False) -> Extent:
    """Return what is committed now.

    Raises:
        LogError: there is no log, or it cannot be read.
        DecodeError: the mark file, leader-epoch-checkpoint or (unless `set_aside`) the end of a Kafka log is damaged.

    """
    committed = read_committed(directory)  # before the log: a live writer moves the log on first
    find_segments(directory)
    try:
        with open_reader(directory) as reader:
            end = reader.high_watermark()
        for text in (*(committed.notes(end) if committed else ()), *notices(directory)):
            _log.warning(text)
    except DecodeError as error:
        if not set_aside or Path(error.path or "") not in {file.path for file in list_segments(directory)}:
            raise
        end = MAX_OFFSET
    epochs = read_epochs(directory)  # after the mark: it then has every epoch below the mark
    # a segment that was rolled after the mark was read begins above it
    segments = tuple(file for file in find_segments(directory) if file.base_offset <= end)
    if not segments:
        raise LogError(f"{directory}: no segment begins at or below offset {end}, the high-water mark")
    return Extent(segments=segments, epochs=epochs, start=segments[0].base_offset, end=end)


def _log_ranges(found: Extent, options: Options, selection: RowSelection) -> list[FileRange]:
    ranges = []
    ends = [file.base_offset for file in found.segments[1:]] + [found.end]
    for file, end in zip(found.segments, ends, strict=True):
        if file.base_offset < end and selection.between(file.base_offset, end):
            ranges += file_ranges(
                file.path,
                OffsetPosition(position=0, offset=file.base_offset),
                end_offset=None if end == MAX_OFFSET else end,
                most_bytes=options.partition_bytes,
                epochs=found.epochs,
            )
    return [each for each in ranges if selection.between(each.offset, each.end_offset or MAX_OFFSET)]


def _named_checkpoint(path: Path) -> CheckpointFile:
    parsed = parse_checkpoint_name(path.name)
    if parsed is None:
        raise ConfigError(f"{path}: expected a log directory or a checkpoint (such as {0:020d}-{1:010d}.checkpoint)")
    return CheckpointFile(end_offset=parsed[0], epoch=parsed[1], path=path)


def _checkpoint_ranges(checkpoint: CheckpointFile, options: Options, selection: RowSelection) -> list[FileRange]:
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
