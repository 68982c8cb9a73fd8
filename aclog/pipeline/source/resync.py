"""Where reading can go on behind damage: the next batch that is whole, and stands where it can."""

from aclog.metalog.batches import HEADER_SIZE, BatchHeader, check_crc, read_header
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.filesystem import read_at
from aclog.metalog.filelog.tail import next_whole_batch
from aclog.pipeline.source.ranges import OffsetPosition

LARGEST_BATCH = 16 << 20
"""Twice what Kafka's raft client and our log write at most; a batch that claims more is damage."""


def next_trusted(fd: int, at: OffsetPosition, end: OffsetPosition) -> OffsetPosition:
    """The next place at or behind `at` to go on from, in a file in which `at` should begin a batch, but does not.

    `end` is where the range ends, and what is returned where nothing before it can be trusted. In this order:
    1. the batch here is damaged alone: behind it, by its own length, one begins with the offset that should follow;
    2. the batch here is sound, and begins at a later offset: what is before it is missing;
    3. the first whole batch behind, wherever it begins, of a later offset.
    """
    alone = _alone(fd, at, end)
    if alone is not None:
        return alone
    here = _sound(fd, at.position, end.position)
    if here is not None and at.offset < here.base_offset and _before(here.base_offset, at, end):
        return OffsetPosition(position=at.position, offset=here.base_offset)
    behind = next_whole_batch(fd, at.position, at.offset)
    if behind is not None and behind[0] < end.position and _before(behind[1], at, end):
        return OffsetPosition(position=behind[0], offset=behind[1])
    return end


def _alone(fd: int, at: OffsetPosition, end: OffsetPosition) -> OffsetPosition | None:
    try:
        header = read_header(read_at(fd, at.position, HEADER_SIZE))
    except DecodeError:
        return None
    behind = OffsetPosition(position=at.position + header.size, offset=at.offset + header.record_count)
    if behind == end:
        return behind
    following = _sound(fd, behind.position, end.position)
    return behind if following is not None and following.base_offset == behind.offset else None


def _sound(fd: int, position: int, end: int) -> BatchHeader | None:
    """The header of the batch at `position` if it is whole, below `end`, and its CRC is right."""
    try:
        header = read_header(read_at(fd, position, HEADER_SIZE))
        if header.size > min(LARGEST_BATCH, end - position):
            return None
        check_crc(read_at(fd, position, header.size), 0, header)
    except DecodeError:
        return None
    return header


def _before(offset: int, at: OffsetPosition, end: OffsetPosition) -> bool:
    """Whether an offset lies before the end of the range, as far as that is known."""
    return end.offset == at.offset or offset < end.offset
