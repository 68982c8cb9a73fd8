"""Walks the batches of a segment file and checks each: completeness, CRC, offset continuity, leader epoch.

The CRC of a batch does not cover its first 21 bytes: a wrong length or magic shows up in the CRC or the structure, a
wrong base offset breaks continuity, and a wrong epoch disagrees with leader-epoch-checkpoint. Memory is bounded by the
larger of the window and the largest batch that is really present.
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
"""The content of leader-epoch-checkpoint; None if there is no such file and only epoch order can be checked."""


def checked_batches(data: bytes, offset: int, epochs: Epochs, before: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield each whole batch of `data`, checked, as (its position, its header); the first must begin at `offset`.

    `before` is the epoch of the preceding batch, if known. A batch truncated by the end of `data` is not yielded.

    Raises:
        DecodeError: a damaged batch, with the position in `data`.
        ReplayError: a batch that does not continue the offsets, or has the wrong epoch for its offset.

    """
    low, high, until = before, _NEWEST, offset
    for position, header in iter_batches(data):
        check_crc(data, position, header)
        if header.base_offset != offset:
            raise ReplayError(
                f"a batch of offset {header.base_offset}: expected {offset}", position=position, offset=offset
            )
        # Looked up only where an epoch ends: nearly all batches are in the same epoch as the one before.
        if offset >= until:
            low, high, until = epoch_span(epochs, offset, low)
        _check_epoch(header, position, epochs=(low, high), until=until)
        low, offset = header.leader_epoch, header.end_offset
        yield position, header


def epoch_span(epochs: Epochs, offset: int, before: int) -> tuple[int, int, int]:
    """Return the lowest and highest valid epoch at `offset`, and the offset up to which they apply.

    `before` is the epoch of the preceding record. The two differ only without a file, and before its first entry: when
    retention raises the log start into the middle of a segment, Kafka moves the first entry there, although the earlier
    batches of that segment are still in the file.
    """
    if epochs is None:
        return before, _NEWEST, _FOREVER
    number = bisect_right(epochs, offset, key=lambda start: start.start_offset)
    until = epochs[number].start_offset if number < len(epochs) else _FOREVER
    if number:
        return epochs[number - 1].epoch, epochs[number - 1].epoch, until
    return before, epochs[0].epoch if epochs else -1, until


def _check_epoch(header: BatchHeader, position: int, *, epochs: tuple[int, int], until: int) -> None:
    found, (low, high) = header.leader_epoch, epochs
    if not low <= found <= high:
        expected = f"expected epoch {low}" if low == high else f"expected an epoch from {low} to {high}"
        if high < 0:
            expected = "leader-epoch-checkpoint has none for this offset"
        raise ReplayError(f"a batch of epoch {found}: {expected}", position=position, offset=header.base_offset)
    if header.end_offset > until:
        what = (
            f"a batch of epoch {found} reaches beyond offset {until}, where leader-epoch-checkpoint begins the next one"
        )
        raise ReplayError(what, position=position, offset=header.base_offset)


def walk_batches(
    fd: int, path: Path, *, position: int, offset: int, epochs: Epochs, window: int = WINDOW
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield each batch of a segment file from `position` (which must be `offset`) to its end, checked.

    Batches are yielded as (position, header).

    Raises:
        DecodeError: at the first batch that is damaged or truncated, with path, position and offset.

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
        # iter_batches stops silently before a truncated batch; `_window` has read all of it that the file has.
        if not consumed:
            what = "the file ends inside a batch"
            raise DecodeError(what, path=str(path), position=position, offset=offset)
        position += consumed


def _window(fd: int, position: int, size: int) -> bytes:
    """Read the next `size` bytes of a file, or more if the first batch is larger and entirely in the file."""
    data = read_at(fd, position, size)
    if len(data) < size or size < HEADER_SIZE:
        return data
    try:
        needed = read_header(data).size
    except DecodeError:
        return data
    # A damaged length must not cause a read of gigabytes: only what the file really contains is read.
    there = os.fstat(fd).st_size - position
    return read_at(fd, position, needed) if size < needed <= there else data


def check_records(fd: int, path: Path, position: int, header: BatchHeader) -> DecodeError | None:
    """Return what is wrong with the first damaged record of a batch whose CRC is valid; None if every record decodes.

    Of a record type that is not interpreted, only the frame is checked.
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
