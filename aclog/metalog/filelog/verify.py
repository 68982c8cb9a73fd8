"""Checks a whole log directory and reports what is wrong, and where. Nothing is locked or changed.

Checked are every batch below the high-water mark (or, in a directory that Kafka wrote, to the end of the last
segment): length, magic, CRC, offset continuity, leader epoch, every record; segment names against their content; both
slots of the mark file; leader-epoch-checkpoint against the batches; and the checkpoints. Bytes above the mark are not
part of the log: a writer may be appending there, and the next one truncates a torn tail.

A directory may contain checkpoints only: copies of them, or the one that `kafka-storage format` writes. Then each is
checked on its own, and the other files are checked for traces of a log whose segments are now missing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from enum import Enum
from pathlib import Path

from attrs import define, field, frozen

from aclog.metalog.errors import DecodeError, is_newer_kafka
from aclog.metalog.filelog.batch_walk import Epochs, check_records, walk_batches
from aclog.metalog.filelog.committed_mark import CommittedMark, read_committed
from aclog.metalog.filelog.epochs import EPOCHS_FILE, read_epochs
from aclog.metalog.filelog.file_names import CheckpointFile, SegmentFile, find_segments, list_checkpoints, list_segments
from aclog.metalog.filelog.filesystem import log_error, read_small
from aclog.metalog.filelog.mark import MARK_FILE, decode_slots, open_valid_mark_file
from aclog.metalog.filelog.tail import next_whole_batch
from aclog.metalog.filelog.verify_checkpoint import verify_checkpoint

Progress = Callable[[int, int], None]
"""Called with the number of bytes checked so far, and the total."""


class FindingKind(Enum):
    """How bad a finding is."""

    DAMAGE = "damage"
    NEWER = "sound, but written by a newer Kafka"
    NOTE = "harmless"


@frozen(kw_only=True)
class Finding:
    """One problem: the file, the byte position in it, the log offset (as far as they apply), and what is wrong."""

    kind: FindingKind = FindingKind.DAMAGE
    path: Path
    position: int | None = None
    offset: int | None = None
    what: str

    def __str__(self) -> str:
        return str(DecodeError(self.what, path=str(self.path), position=self.position, offset=self.offset))


def verify(directory: Path | str, progress: Progress | None = None) -> Iterator[Finding]:
    """Yield everything that is wrong or odd with a log directory as it is found; nothing if all is well.

    Raises:
        LogError: there is neither a log nor a checkpoint, or a file cannot be read.

    """
    directory = Path(directory)
    if directory.is_dir() and not list_segments(directory) and (alone := list_checkpoints(directory)):
        yield from _verify_checkpoints_only(directory, alone, progress)
        return
    find_segments(directory)
    problems: list[DecodeError] = []
    committed = _committed(directory, problems)  # before the mark, which a live writer moves first
    mark = _mark(directory, problems)
    epochs = _epochs(directory, problems)
    segments = find_segments(directory)  # listed after reading the mark, so that they contain all that it covers
    checkpoints = list_checkpoints(directory)
    paths = [file.path for file in segments] + [file.path for file in checkpoints]
    meter = _ProgressMeter(progress, sum(map(_size, paths)))
    start = segments[0].base_offset
    ends = {checkpoint.end_offset for checkpoint in checkpoints}
    _check_starts(directory, start, epochs, ends=ends, problems=problems)
    if not (directory / EPOCHS_FILE).exists():
        what = "missing: epochs were only checked for their order"
        yield Finding(kind=FindingKind.NOTE, path=directory / EPOCHS_FILE, what=what)
    yield from map(_finding, problems)
    yield from _verify_segments(segments, mark, epochs, meter, committed=committed)
    for checkpoint in checkpoints:
        # A controller may have fetched a snapshot that is ahead of its own log.
        ahead = mark is not None and checkpoint.end_offset > mark  # then the epochs of the log do not apply
        yield from map(_finding, verify_checkpoint(checkpoint, None if ahead else epochs, start))
        meter.add(_size(checkpoint.path))


def _verify_checkpoints_only(
    directory: Path, checkpoints: tuple[CheckpointFile, ...], progress: Progress | None
) -> Iterator[Finding]:
    """Check a directory without segments. What an interrupted creation of a log leaves is no problem."""
    problems: list[DecodeError] = []
    mark = _mark(directory, problems)
    try:
        epochs = read_epochs(directory)
    except DecodeError as error:
        problems.append(error)
        epochs = None
    if list_segments(directory):  # a node has created its log in the meantime
        yield from verify(directory, progress)
        return
    newest = checkpoints[-1].end_offset
    if mark and mark > newest:
        what = f"a log was committed up to offset {mark}, but its segments are missing"
        problems.append(DecodeError(what, path=str(directory / MARK_FILE)))
    if epochs and not (mark is not None and mark < newest):  # else a snapshot ahead of the log is replacing it
        what = f"a log had epochs up to {epochs[-1].epoch}, but its segments are missing"
        problems.append(DecodeError(what, path=str(directory / EPOCHS_FILE)))
    yield from map(_finding, problems)
    meter = _ProgressMeter(progress, sum(_size(checkpoint.path) for checkpoint in checkpoints))
    for checkpoint in checkpoints:
        yield from map(_finding, verify_checkpoint(checkpoint, None, 0))
        meter.add(_size(checkpoint.path))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise log_error(error, path, "cannot read") from error


def _check_starts(directory: Path, start: int, epochs: Epochs, ends: set[int], problems: list[DecodeError]) -> None:
    """Check the start of the log and of its first epoch against the end offsets of the checkpoints (`ends`)."""
    if start > 0 and max(ends, default=0) < start:
        what = "the log begins here, but no checkpoint covers what precedes it"
        problems.append(DecodeError(what, path=str(directory), offset=start))
    if epochs and epochs[0].start_offset > start and epochs[0].start_offset not in ends:
        what = (
            f"the first epoch begins at offset {epochs[0].start_offset}, where no checkpoint ends; the log at {start}"
        )
        problems.append(DecodeError(what, path=str(directory / EPOCHS_FILE)))


@define
class _ProgressMeter:
    """Reports progress."""

    _progress: Progress | None
    _total: int
    _done: int = field(init=False, default=0)

    def add(self, size: int) -> None:
        """Count `size` more bytes as checked."""
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total)


def _finding(error: DecodeError) -> Finding:
    path = Path(error.path or ".")
    kind = FindingKind.NEWER if is_newer_kafka(error) else FindingKind.DAMAGE
    return Finding(kind=kind, path=path, position=error.position, offset=error.offset, what=error.what)


def _mark(directory: Path, problems: list[DecodeError]) -> int | None:
    """Return the high-water mark, None for a log that Kafka wrote; problems of the file are appended to `problems`."""
    path = directory / MARK_FILE
    try:
        file = open_valid_mark_file(directory)
        if file is None:
            return None
        with closing(file):
            mark = file.read().offset
        # The reader tolerates one damaged slot; here both are checked, because the next write may be interrupted too.
        slots = decode_slots(read_small(path) or b"")
    except DecodeError as error:
        if error.path == str(path):
            problems.append(error)
        return None
    for number, slot in enumerate(slots):
        if slot is None:
            problems.append(DecodeError("a damaged slot", path=str(path), position=number * 512))
    return mark


def _committed(directory: Path, problems: list[DecodeError]) -> CommittedMark | None:
    try:
        return read_committed(directory)
    except DecodeError as error:
        problems.append(error)
        return None


def _epochs(directory: Path, problems: list[DecodeError]) -> Epochs:
    try:
        return read_epochs(directory)
    except DecodeError as error:
        problems.append(error)
        return None


def _verify_segments(
    segments: tuple[SegmentFile, ...],
    mark: int | None,
    epochs: Epochs,
    meter: _ProgressMeter,
    *,
    committed: CommittedMark | None = None,
) -> Iterator[Finding]:
    end = segments[0].base_offset
    for file in segments:
        if mark is not None and end >= mark:
            break  # a live writer has rolled a new segment since
        if file.base_offset != end:
            what = f"the segment is named for offset {file.base_offset}, but the previous one ends at {end}"
            yield Finding(path=file.path, offset=end, what=what)
        end = file.base_offset
        for offset, problem in _verify_segment(file, mark, epochs, meter):
            end = offset
            if problem is not None:
                yield _finding(problem)
    last = segments[-1].path
    if mark is not None and end > mark:
        what = f"no batch of this log ends at {mark}, the high-water mark"
        yield Finding(path=last.parent / MARK_FILE, what=what)
    if mark is not None and end < mark:
        yield Finding(path=last, offset=end, what=f"the log ends here, below its high-water mark {mark}")
    if committed is not None and end < committed.end_offset:
        what = f"the log ends here, but {committed.path} says that it was committed up to {committed.end_offset}"
        yield Finding(path=last, offset=end, what=what)
    for start in epochs or ():
        if start.start_offset > end:
            what = f"epoch {start.epoch} begins at offset {start.start_offset}, beyond the log's end {end}"
            yield Finding(path=last.parent / EPOCHS_FILE, what=what)


def _verify_segment(
    file: SegmentFile, mark: int | None, epochs: Epochs, meter: _ProgressMeter
) -> Iterator[tuple[int, DecodeError | None]]:
    """Yield the offset after each batch and what is wrong there; continues after damage if a whole batch follows."""
    position, offset = 0, file.base_offset
    try:
        fd = os.open(file.path, os.O_RDONLY)
    except OSError as error:
        raise log_error(error, file.path, "cannot read") from error
    try:
        while mark is None or offset < mark:
            try:
                for at, header in walk_batches(fd, file.path, position=position, offset=offset, epochs=epochs):
                    meter.add(header.size)
                    position, offset = at + header.size, header.end_offset
                    yield offset, check_records(fd, file.path, at, header)
                    if mark is not None and offset >= mark:
                        return
            except DecodeError as error:
                yield offset, error
                follows = next_whole_batch(fd, position, offset)
                if follows is None:
                    return
                position, offset = follows
            else:
                return
    finally:
        os.close(fd)
