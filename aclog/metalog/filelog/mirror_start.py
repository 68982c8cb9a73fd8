"""The start of a mirror's log: at offset 0, or after a snapshot; an older log is archived first.

A mirror that has fallen behind finds that the quorum's log no longer reaches back to the mirror's end. Old segments and
what follows the snapshot cannot form one log without a gap, so the old ones move to `archive-<end offset>` inside the
mirror's directory, with their checkpoints, epochs and mark: a complete log directory of its own.

A crash may interrupt the steps anywhere. The snapshot is in the directory before anything is moved;
mirror.properties then records the new start, and from there on the next open completes what is missing. At any moment
the directory contains the old log or what remains of it, with a checkpoint ahead of it, or the checkpoint alone, or
the new log after it.
"""

import os
import shutil
from pathlib import Path

from attrs import evolve

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.appender import create_segment
from aclog.metalog.filelog.creation import PARTITION, PARTITION_FILE
from aclog.metalog.filelog.epochs import EPOCHS_FILE, write_epochs
from aclog.metalog.filelog.file_names import (
    PARTIAL_SUFFIX,
    CheckpointFile,
    SegmentFile,
    checkpoint_name,
    image_path,
    list_checkpoints,
    list_segments,
    parse_checkpoint_name,
    segment_name,
)
from aclog.metalog.filelog.filesystem import DIRECTORY_MODE, FILE_MODE, fsync_directory, log_error, replace_durably
from aclog.metalog.filelog.mark import Mark, MarkFile, create_mark_file, publish_durably
from aclog.metalog.filelog.mirror_properties import LogEnd, read_mirror_properties, write_mirror_properties

ARCHIVE_PREFIX = "archive-"


def archive_name(end_offset: int) -> str:
    """Return the name, inside the mirror's directory, of the archive of a log that ended at this offset."""
    return f"{ARCHIVE_PREFIX}{end_offset:020d}"


def add_checkpoint(directory: Path, snapshot: CheckpointFile) -> None:
    """Copy a snapshot into a directory under Kafka's name for it; it gets that name once it is complete and durable.

    Raises:
        LogError: the disk is full or fails.

    """
    path = directory / checkpoint_name(snapshot.end_offset, snapshot.epoch)
    partial = path.with_name(path.name + PARTIAL_SUFFIX)
    try:
        with (
            snapshot.path.open("rb") as source,
            os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb") as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        partial.replace(path)
        fsync_directory(directory)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise log_error(error, path, "cannot write") from error


def remove_unfinished_checkpoint(directory: Path) -> None:
    """Remove what `add_checkpoint` left unfinished when its process died.

    Raises:
        LogError: the disk fails.

    """
    try:
        for path in directory.glob(f"*{PARTIAL_SUFFIX}"):
            if parse_checkpoint_name(path.name.removesuffix(PARTIAL_SUFFIX)) is not None:
                path.unlink()
    except OSError as error:
        raise log_error(error, directory, "cannot remove an unfinished checkpoint") from error


def establish_start(directory: Path, start: LogEnd) -> None:
    """Ensure that the log of a mirror begins after `start`, completing whatever a crash interrupted.

    Raises:
        LogError: the segments of the log are missing; or the disk is full or fails.

    """
    old = [file for file in list_segments(directory) if file.base_offset < start.end_offset]
    mark = _read_mark(directory)
    try:
        if mark is not None and mark.offset < start.end_offset:
            # The mark is below the new start: what is here is the old log, or what a crash left of it.
            _archive(directory, old, mark, start)
        if not list_segments(directory):
            _create_log(directory, start, mark)
    except OSError as error:
        raise log_error(error, directory, "cannot archive the old log") from error


def _read_mark(directory: Path) -> Mark | None:
    marks = MarkFile.open(directory)
    if marks is None:
        return None
    try:
        return marks.read()
    finally:
        marks.close()


def _archive(directory: Path, old: list[SegmentFile], mark: Mark, start: LogEnd) -> None:
    """Move the old log into its archive, oldest segment first: what remains is a log that a checkpoint covers."""
    if not mark.offset:  # nothing was mirrored
        for file in old:
            file.path.unlink()
        return
    archive = directory / archive_name(mark.offset)
    if archive.exists():
        if old:
            raise LogError(f"{archive}: already exists: cannot archive the old log")
        return
    # Collected under a `.part` name: only a complete archive gets its final name. A crash resumes here.
    partial = archive.with_name(archive.name + PARTIAL_SUFFIX)
    partial.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    if not (partial / EPOCHS_FILE).exists():
        _write_archive_files(directory, partial, old[0].base_offset if old else mark.offset, mark)
    for file in old:
        file.path.replace(partial / file.path.name)
    # After the segments: as long as any of them is here, the checkpoint that covers what precedes it must be too.
    for checkpoint in list_checkpoints(directory):
        if checkpoint.end_offset < start.end_offset:
            image = image_path(checkpoint.path)
            if image.exists():
                image.replace(partial / image.name)
            checkpoint.path.replace(partial / checkpoint.path.name)
    fsync_directory(partial)
    partial.replace(archive)
    fsync_directory(directory)


def _write_archive_files(directory: Path, archive: Path, base_offset: int, mark: Mark) -> None:
    """Write the archive's other files; leader-epoch-checkpoint last, since its presence means that all are there."""
    create_mark_file(archive, mark).close()
    replace_durably(archive / PARTITION_FILE, PARTITION)
    properties = read_mirror_properties(directory)
    if properties is not None:
        began = (found.epoch for found in list_checkpoints(directory) if found.end_offset == base_offset)
        start = LogEnd(end_offset=base_offset, epoch=next(began, 0))
        write_mirror_properties(archive, evolve(properties, start=start))
    replace_durably(archive / EPOCHS_FILE, (directory / EPOCHS_FILE).read_bytes())


def _create_log(directory: Path, start: LogEnd, mark: Mark | None) -> None:
    """Write the files of a log that begins after `start`, its segment last."""
    if mark is not None and mark.offset > start.end_offset:
        raise LogError(
            f"{directory}: a log was committed here up to offset {mark.offset}, but its segments are missing"
        )
    replace_durably(directory / PARTITION_FILE, PARTITION)
    write_epochs(directory, ())
    _publish_mark(directory, Mark(epoch=start.epoch, offset=start.end_offset))
    file = SegmentFile(base_offset=start.end_offset, path=directory / segment_name(start.end_offset))
    os.close(create_segment(file))


def _publish_mark(directory: Path, mark: Mark) -> None:
    """Publish in place if there is a mark file, because readers have it open; else create it."""
    marks = MarkFile.open(directory, writable=True)
    if marks is None:
        create_mark_file(directory, mark).close()
        return
    try:
        marks.read()  # finds out which slot is the older one, the next to be written
        publish_durably(marks, mark)
    finally:
        marks.close()
