"""The `leader-epoch-checkpoint` file: where each leader epoch begins, in Kafka's text format.

Mirrors Kafka's `LeaderEpochCheckpointFile`: a line with the version 0, a line with the number of entries, then a line
`epoch start-offset` per entry, both ascending. The CRC of a batch does not cover its leader epoch; this file does.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.filesystem import read_small, replace_durably
from aclog.metalog.log import EpochStart

EPOCHS_FILE = "leader-epoch-checkpoint"
MAX_EPOCH = 2**31 - 1
"""Epochs are int32."""
_MAX_OFFSET = 2**63 - 1
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


def read_epochs(directory: Path) -> tuple[EpochStart, ...] | None:
    """Return the epochs of a log directory, ascending; None if there is no such file.

    Raises:
        DecodeError: the file is not in Kafka's format.
        LogError: it cannot be read.

    """
    path = directory / EPOCHS_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        return decode_epochs(data)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def write_epochs(directory: Path, starts: Sequence[EpochStart]) -> None:
    """Replace the file durably.

    Raises:
        LogError: the disk is full or fails.

    """
    replace_durably(directory / EPOCHS_FILE, encode_epochs(starts))


def encode_epochs(starts: Sequence[EpochStart]) -> bytes:
    """Return the file's content."""
    lines = ["0", str(len(starts)), *(f"{start.epoch} {start.start_offset}" for start in starts)]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def decode_epochs(data: bytes) -> tuple[EpochStart, ...]:
    """Parse the file's content.

    Raises:
        DecodeError: an unexpected line, with its position.

    """
    lines = data.split(b"\n")
    if lines[-1] != b"":
        raise DecodeError("the last line has no newline", position=len(data) - len(lines[-1]))
    if lines[0] != b"0":
        raise DecodeError("the first line is not version 0", position=0)
    starts: list[EpochStart] = []
    position = len(lines[0]) + len(lines[1]) + 2
    for line in lines[2:-1]:
        starts.append(_decode_line(line, position, starts[-1] if starts else None))
        position += len(line) + 1
    if lines[1] != str(len(starts)).encode("ascii"):
        raise DecodeError(f"{len(starts)} epochs follow, but the second line has another count", position=2)
    return tuple(starts)


def epoch_at(starts: Sequence[EpochStart], offset: int) -> int | None:
    """Return the epoch of the record at `offset`; None before the first known epoch."""
    number = bisect_right(starts, offset, key=lambda start: start.start_offset)
    return starts[number - 1].epoch if number else None


def _decode_line(line: bytes, position: int, before: EpochStart | None) -> EpochStart:
    numbers = line.decode("latin-1").split(" ")
    if len(numbers) != 2 or not all(_NUMBER.fullmatch(number) for number in numbers):
        raise DecodeError("expected a line `epoch start-offset`", position=position)
    start = EpochStart(epoch=int(numbers[0]), start_offset=int(numbers[1]))
    if start.epoch > MAX_EPOCH or start.start_offset > _MAX_OFFSET:
        raise DecodeError("an epoch over 31 bits or an offset over 63 bits", position=position)
    # Equal offsets are allowed: an epoch without any record ends where it begins.
    if before is not None and (start.epoch <= before.epoch or start.start_offset < before.start_offset):
        raise DecodeError(f"epoch {start.epoch} does not follow epoch {before.epoch}", position=position)
    return start
