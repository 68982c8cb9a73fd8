"""Finds the end of a log: the end of the last whole batch, and whether what follows is a torn tail or damage.

Mirrors the recovery in Kafka's `LogSegment.recover`, with one difference: Kafka truncates at the first bad batch,
wherever it is; here only bytes that were never committed may be truncated, anything else is an error.
"""

import os
from pathlib import Path

from attrs import frozen

from aclog.metalog.batches import HEADER_SIZE, check_crc, read_header
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.filelog.batch_walk import Epochs, walk_batches
from aclog.metalog.filelog.file_names import SegmentFile
from aclog.metalog.filelog.filesystem import log_error, read_at

_CRC_BUDGET = 4
"""Bound on CRC work when searching for a batch after damage, as a multiple of the data's length."""

_SMALLEST_WINDOW = 1 << 16
_LARGEST_WINDOW = 1 << 24
"""Twice the largest batch: with windows that overlap by half, any batch is entirely inside one of them."""


@frozen(kw_only=True)
class Tail:
    """The end of the last whole batch: its file, the position and offset after it, and how many bytes follow.

    `last_crc` is that of the last batch; None if the search passed none, because the segments that it read are empty.
    """

    path: Path
    position: int
    end_offset: int
    last_crc: int | None = None
    torn_bytes: int = 0
    problem: str = ""


def find_tail(segments: tuple[SegmentFile, ...], mark: int | None, epochs: Epochs) -> Tail:
    """Return where the log ends; `mark` is the published high-water mark, None in a directory that Kafka wrote.

    Below the mark everything must be valid and segments must be contiguous; above it, anything but a whole batch is a
    torn tail. Without a mark it is a torn tail only if no whole batch follows it.

    Raises:
        DecodeError: damage, with path, position and offset; segments that are not contiguous; a log that ends below
            its mark.
        LogError: a file cannot be read.

    """
    # Only the segment that contains the mark and later ones are read: earlier ones were fsynced before they were
    # rolled, and `verify` checks them.
    first = 0 if mark is None else max((n for n, file in enumerate(segments) if file.base_offset <= mark), default=0)
    if mark is None:
        first = len(segments) - 1
    tail = Tail(path=segments[first].path, position=0, end_offset=segments[first].base_offset)
    for file in segments[first:]:
        if tail.problem:
            raise DecodeError(tail.problem, path=str(tail.path), position=tail.position, offset=tail.end_offset)
        if file.base_offset != tail.end_offset:
            what = f"the previous segment ends at offset {tail.end_offset}, expected {file.base_offset}"
            raise DecodeError(what, path=str(file.path), position=0, offset=tail.end_offset)
        tail = _find_end(file, mark, epochs, tail.last_crc)
    if mark is not None and tail.end_offset < mark:
        what = f"the log ends here, below its high-water mark {mark}: committed records are lost"
        raise DecodeError(what, path=str(tail.path), position=tail.position, offset=tail.end_offset)
    return tail


def _find_end(file: SegmentFile, mark: int | None, epochs: Epochs, last_crc: int | None) -> Tail:
    position, offset = 0, file.base_offset
    torn, problem = 0, ""
    try:
        fd = os.open(file.path, os.O_RDONLY)
        try:
            for at, header in walk_batches(fd, file.path, position=0, offset=offset, epochs=epochs):
                position, offset, last_crc = at + header.size, header.end_offset, header.crc
        except ReplayError:
            # The batch is whole and its CRC valid, but it is not the next one: no crash leaves that behind.
            raise
        except DecodeError as error:
            # Damage below the mark is never cut. Without a mark, a whole batch after the damage proves that this is not
            # the end of an interrupted write but damage inside the log.
            if offset < (mark or 0) or (mark is None and next_whole_batch(fd, position, offset)):
                raise
            torn, problem = os.fstat(fd).st_size - position, error.what
        finally:
            os.close(fd)
    except OSError as error:
        raise log_error(error, file.path, "cannot read") from error
    return Tail(
        path=file.path, position=position, end_offset=offset, last_crc=last_crc, torn_bytes=torn, problem=problem
    )


def next_whole_batch(fd: int, position: int, offset: int) -> tuple[int, int] | None:
    """Return (position, base offset) of the first whole batch after damage at `position` with an offset above `offset`.

    The file is searched in windows: they grow, as the next batch is usually near, and then advance by half their size.
    """
    size, end = _SMALLEST_WINDOW, os.fstat(fd).st_size
    start = position + 1
    while start < end:
        found = _next_batch(read_at(fd, start, size), offset, offset + end - position)
        if found is not None:
            return start + found[0], found[1]
        if start + size >= end:
            return None
        if size < _LARGEST_WINDOW:
            size *= 4
        else:
            start += size // 2
    return None


def _next_batch(data: bytes, offset: int, most: int) -> tuple[int, int] | None:
    """Return (position, base offset) of the first whole batch in `data` with `offset` < base offset <= `most`.

    Bytes that merely look like batches cost at most a few times the data's length in CRCs: once that is spent, the next
    plausible header is accepted as a batch, as reporting damage is the safe answer.
    """
    budget = _CRC_BUDGET * len(data)
    # The magic byte is at position 16 of a header: searching for it is what makes this fast.
    magic = data.find(b"\x02", 16)
    while 0 <= magic <= len(data) - HEADER_SIZE + 16:
        start = magic - 16
        try:
            header = read_header(data, start)
            if offset < header.base_offset <= most and start + header.size <= len(data):
                budget -= header.size
                if budget > 0:
                    check_crc(data, start, header)
                return start, header.base_offset
        except DecodeError:
            pass
        magic = data.find(b"\x02", magic + 1)
    return None
