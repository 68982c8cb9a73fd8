"""Walk through the batches of a segment file and check each: whole, CRC, offset continuity, leader epoch.

The CRC of a batch does not cover its first 21 bytes: a wrong length or magic shows in the CRC or the structure, a
wrong base offset by continuity, a wrong epoch against leader-epoch-checkpoint. Memory stays bounded by the larger of
the window and the largest batch that is really there.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from metalog.batches import HEADER_SIZE, BatchHeader, check_crc, iter_batches, read_header
from metalog.errors import DecodeError, ReplayError
from metalog.filelog.files import read_at
from metalog.log import EpochStart

WINDOW = 1 << 20
_FOREVER = 1 << 63

Epochs = Sequence[EpochStart] | None
"""What leader-epoch-checkpoint says; None where there is no such file and only the order can be checked."""


def checked_batches(data: bytes, offset: int, epochs: Epochs, before: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Each whole batch of `data`, checked, as (its position, its header); `offset` is where the first must begin.

    `before` is the epoch of the batch before, as far as it is known. A batch that the end cuts is left out.

    Raises:
        DecodeError: a damaged batch; the position is that in `data`.
        ReplayError: a batch whose offset does not continue, or whose epoch is not that of its offset.

    """
    epoch, until = before, offset
    for position, header in iter_batches(data):
        check_crc(data, position, header)
        if header.base_offset != offset:
            raise ReplayError(f"a batch of offset {header.base_offset}", position=position, offset=offset)
        if offset >= until:
            epoch, until = epoch_span(epochs, offset, epoch)
        _check_epoch(header, position, epoch, until, exact=epochs is not None)
        if epochs is None:
            epoch = header.leader_epoch
        offset = header.end_offset
        yield position, header


def epoch_span(epochs: Epochs, offset: int, before: int) -> tuple[int, int]:
    """The epoch of `offset` (-1 if unknown, `before` if there is no file), and the offset where the next one begins."""
    if epochs is None:
        return before, _FOREVER
    later = (start.start_offset for start in epochs if start.start_offset > offset)
    sofar = [start.epoch for start in epochs if start.start_offset <= offset]
    return sofar[-1] if sofar else -1, next(later, _FOREVER)


def _check_epoch(header: BatchHeader, position: int, epoch: int, until: int, *, exact: bool) -> None:
    found = header.leader_epoch
    if found < epoch or (exact and found != epoch):
        expected = f"epoch {epoch} is expected there" if epoch >= 0 else "leader-epoch-checkpoint knows none there"
        raise ReplayError(f"a batch of epoch {found}: {expected}", position=position, offset=header.base_offset)
    if header.end_offset > until:
        what = f"a batch of epoch {found} reaches beyond offset {until}, where leader-epoch-checkpoint has the next one"
        raise ReplayError(what, position=position, offset=header.base_offset)


def walk(
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
