"""Walk through the batches of a segment file and check each: whole, CRC, offset continuity, leader epoch.

The CRC of a batch does not cover its first 21 bytes: a wrong length or magic shows in the CRC or the structure, a
wrong base offset by continuity, a wrong epoch against leader-epoch-checkpoint. Memory stays bounded by the larger of
the window and the largest batch that is really there.
"""

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from aclog.metalog.batches import HEADER_SIZE, BatchHeader, check_crc, iter_batches, read_header
from aclog.metalog.codec import decode_values
from aclog.metalog.control_records import decode_control_batch
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.filelog.filesystem import read_at
from aclog.metalog.log import EpochStart

WINDOW = 1 << 20
_FOREVER = 1 << 63
_NEWEST = (1 << 31) - 1

Epochs = Sequence[EpochStart] | None
"""What leader-epoch-checkpoint says; None where there is no such file and only the order can be checked."""


def checked_batches(data: bytes, offset: int, epochs: Epochs, before: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Each whole batch of `data`, checked, as (its position, its header); `offset` is where the first must begin.

    `before` is the epoch of the batch before, as far as it is known. A batch that the end cuts is left out.

    Raises:
        DecodeError: a damaged batch; the position is that in `data`.
        ReplayError: a batch whose offset does not continue, or whose epoch is not that of its offset.

    """
    low, high, until = before, _NEWEST, offset
    for position, header in iter_batches(data):
        check_crc(data, position, header)
        if header.base_offset != offset:
            raise ReplayError(f"a batch of offset {header.base_offset}", position=position, offset=offset)
        if offset >= until:
            low, high, until = epoch_span(epochs, offset, low)
        _check_epoch(header, position, low, high, until)
        low, offset = header.leader_epoch, header.end_offset
        yield position, header


def epoch_span(epochs: Epochs, offset: int, before: int) -> tuple[int, int, int]:
    """The lowest and the highest epoch that the record at `offset` can have, and the offset up to which this holds.

    `before` is the epoch of the record before. The two are one but where there is no file, and before its first entry:
    when its retention raises the start of the log into the middle of a segment, Kafka moves that entry there.
    """
    if epochs is None:
        return before, _NEWEST, _FOREVER
    number = bisect_right(epochs, offset, key=lambda start: start.start_offset)
    until = epochs[number].start_offset if number < len(epochs) else _FOREVER
    if number:
        return epochs[number - 1].epoch, epochs[number - 1].epoch, until
    return before, epochs[0].epoch if epochs else -1, until


def _check_epoch(header: BatchHeader, position: int, low: int, high: int, until: int) -> None:
    found = header.leader_epoch
    if not low <= found <= high:
        expected = (
            f"epoch {low} is expected there" if low == high else f"an epoch from {low} to {high} is expected there"
        )
        if high < 0:
            expected = "leader-epoch-checkpoint knows none there"
        raise ReplayError(f"a batch of epoch {found}: {expected}", position=position, offset=header.base_offset)
    if header.end_offset > until:
        what = f"a batch of epoch {found} reaches beyond offset {until}, where leader-epoch-checkpoint has the next one"
        raise ReplayError(what, position=position, offset=header.base_offset)


def walk_batches(
    fd: int, path: Path, *, position: int, offset: int, epochs: Epochs, window: int = WINDOW
) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch of a segment file from `position` (where `offset` must begin), checked, as (position, header).

    Ends where the file ends.

    Raises:
        DecodeError: at the first batch that is damaged or cut, with path, position and offset.

    """
    before = 0
    while data := _window(fd, position, window):
        consumed = 0
        try:
            for at, header in checked_batches(data, offset, epochs, before):
                offset, before, consumed = header.end_offset, header.leader_epoch, at + header.size
                yield position + at, header
        except DecodeError as error:
            raise error.at(path=str(path), base=position, offset=offset) from error
        if not consumed:
            what = "the file ends inside a batch"
            raise DecodeError(what, path=str(path), position=position, offset=offset)
        position += consumed


def _window(fd: int, position: int, size: int) -> bytes:
    """The next `size` bytes of a file, or more if the first batch is larger and is there as a whole."""
    data = read_at(fd, position, size)
    if len(data) < size or size < HEADER_SIZE:
        return data
    try:
        needed = read_header(data).size
    except DecodeError:
        return data
    there = os.fstat(fd).st_size - position
    return read_at(fd, position, needed) if size < needed <= there else data


def check_records(fd: int, path: Path, position: int, header: BatchHeader) -> DecodeError | None:
    """What is wrong with the first damaged record of a batch whose CRC is right; None if every record decodes.

    A record of a type that we do not interpret, or do not know, is only looked at as far as that.
    """
    data = read_at(fd, position, header.size)
    try:
        if header.is_control:
            decode_control_batch(data, 0, header)
        else:
            deque(decode_values(data, 0, header), maxlen=0)
    except DecodeError as error:
        return error.at(path=str(path), base=position, offset=header.base_offset)
    return None
