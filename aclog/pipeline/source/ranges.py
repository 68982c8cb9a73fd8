"""Byte ranges of files, planned from the lengths of batches alone: the reader of a range checks its contents.

A file up to the size of a partition is one range. A larger file is cut by following the lengths of its batches, at
places with a valid batch header; after a place without one, the rest of the file is one range.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from aclog.metalog.batches import HEADER_SIZE, LENGTH_END, BatchHeader, read_header
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.filesystem import log_error, read_at
from aclog.metalog.log import EpochStart

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
        raise log_error(error, path, "cannot read") from error
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
                header = read_header(read_at(fd, position, HEADER_SIZE))
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
            data, begin, at = read_at(fd, position, _WINDOW), position, 0
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
        raise log_error(error, path, "cannot read") from error
