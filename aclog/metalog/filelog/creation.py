"""Creates a log directory, all but its first epoch, in an order that a crash may interrupt anywhere."""

import os
from pathlib import Path

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.appender import create_segment
from aclog.metalog.filelog.epochs import EPOCHS_FILE, write_epochs
from aclog.metalog.filelog.file_names import SegmentFile, list_segments, parse_checkpoint_name, segment_name
from aclog.metalog.filelog.filesystem import (
    DIRECTORY_MODE,
    TEMPORARY_SUFFIX,
    fsync_directory,
    log_error,
    replace_durably,
)
from aclog.metalog.filelog.locks import LOCK_FILE
from aclog.metalog.filelog.mark import MARK_FILE, Mark, MarkFile, create_mark_file
from aclog.metalog.filelog.quorum_state import QUORUM_STATE_FILE

PARTITION_FILE = "partition.metadata"
PARTITION = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
_FORMATTED = (0, 0)
"""End offset and epoch of the checkpoint that `kafka-storage format` writes for a log that does not exist yet."""
_BEFORE_SEGMENT = {LOCK_FILE, MARK_FILE, EPOCHS_FILE, QUORUM_STATE_FILE, PARTITION_FILE}


def create_directory(directory: Path) -> None:
    """Ensure that the directory exists and contains a log, or only what an interrupted creation leaves behind.

    Raises:
        LogError: it contains something else, or cannot be created.

    """
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        fsync_directory(directory.parent)
        names = {path.name.removesuffix(TEMPORARY_SUFFIX) for path in directory.iterdir()}
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
    others = {name for name in names - _BEFORE_SEGMENT if parse_checkpoint_name(name) != _FORMATTED}
    if others and not list_segments(directory):
        raise LogError(f"{directory}: cannot create a log here: it contains {min(others)}, but no segment")


def create_log(directory: Path) -> None:
    """Write the files of an empty log, its segment last: before it exists, nothing here looks like a log.

    Raises:
        LogError: a log was committed here, but its segments are gone; or the disk fails.

    """
    marks = MarkFile.open(directory)
    if marks is not None:
        mark = marks.read()
        marks.close()
        # A new log at offset 0 would silently replace committed records that someone may still restore.
        if mark.offset > 0:
            raise LogError(
                f"{directory}: a log was committed here up to offset {mark.offset}, but its segments are missing"
            )
    # Every file before the segment can be rewritten by the next attempt if this one is interrupted.
    create_mark_file(directory, Mark(epoch=0, offset=0)).close()
    replace_durably(directory / PARTITION_FILE, PARTITION)
    write_epochs(directory, ())
    os.close(create_segment(SegmentFile(base_offset=0, path=directory / segment_name(0))))
