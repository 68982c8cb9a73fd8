"""Checks a checkpoint file: every batch valid, offsets from 0 on, the epoch of its name, header, footer, every record.

Mirrors what Kafka's `RecordsSnapshotReader` expects of a snapshot.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from aclog.metalog.batches import decode_batch
from aclog.metalog.control_records import SnapshotFooter, SnapshotHeader, decode_control
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.batch_walk import Epochs, check_records, walk_batches
from aclog.metalog.filelog.epochs import epoch_at
from aclog.metalog.filelog.file_names import CheckpointFile
from aclog.metalog.filelog.filesystem import log_error, read_at
from aclog.metalog.log import EpochStart


def verify_checkpoint(checkpoint: CheckpointFile, epochs: Epochs, log_start: int) -> Iterator[DecodeError]:
    """Yield everything that is wrong with a checkpoint next to a log with these epochs that begins at `log_start`.

    Raises:
        LogError: the file cannot be read.

    """
    path = str(checkpoint.path)
    end = checkpoint.end_offset
    expected = epoch_at(epochs, end - 1) if epochs and end > log_start else None
    if expected not in {None, checkpoint.epoch}:
        yield DecodeError(f"named for epoch {checkpoint.epoch}, but offset {end - 1} has epoch {expected}", path=path)
    try:
        fd = os.open(checkpoint.path, os.O_RDONLY)
    except OSError as error:
        raise log_error(error, checkpoint.path, "cannot read") from error
    try:
        _check_frame(fd, checkpoint)
    except DecodeError as error:
        yield error.at(path=path)
    finally:
        os.close(fd)


def _check_frame(fd: int, checkpoint: CheckpointFile) -> None:
    # All batches of a checkpoint have the epoch of its name, so the same walk serves as for segments.
    epochs = (EpochStart(epoch=checkpoint.epoch, start_offset=0),)
    first = last = None
    for position, header in walk_batches(fd, checkpoint.path, position=0, offset=0, epochs=epochs):
        place = (position, header.size, header.is_control)
        first, last = first or place, place
        problem = check_records(fd, checkpoint.path, position, header)
        if problem is not None:
            raise problem
    if first is None or last is None:
        raise DecodeError("empty: expected at least a SnapshotHeader and a SnapshotFooter", position=0)
    _expect(fd, checkpoint.path, first, SnapshotHeader, number=0)
    _expect(fd, checkpoint.path, last, SnapshotFooter, number=-1)


def _expect(
    fd: int, path: Path, place: tuple[int, int, bool], kind: type[SnapshotHeader | SnapshotFooter], number: int
) -> None:
    position, size, is_control = place
    what = f"expected a control batch with a {kind.__name__} as the {'last' if number else 'first'} batch"
    if not is_control:
        raise DecodeError(what, path=str(path), position=position)
    record = decode_batch(read_at(fd, position, size)).records[number]
    if not isinstance(decode_control(record.key or b"", record.value), kind):
        raise DecodeError(what, path=str(path), position=position)
