"""Where to resume reading after damage: at the next complete batch with a plausible offset."""

from aclog.metalog.batches import HEADER_SIZE, BatchHeader, check_crc, read_header
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.filesystem import read_at
from aclog.metalog.filelog.tail import next_whole_batch
from aclog.pipeline.source.ranges import OffsetPosition

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
        header = read_header(read_at(fd, at.position, HEADER_SIZE))
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
        header = read_header(read_at(fd, position, HEADER_SIZE))
        if header.size > min(LARGEST_BATCH, end - position):
            return None
        check_crc(read_at(fd, position, header.size), 0, header)
    except DecodeError:
        return None
    return header


def _before(offset: int, at: OffsetPosition, end: OffsetPosition) -> bool:
    """Return whether an offset is before the end of the range, if known (else `end.offset` is `at.offset`)."""
    return end.offset == at.offset or offset < end.offset
