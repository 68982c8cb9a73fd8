"""Segment retention: removes segments that a checkpoint covers, in an order that a crash may interrupt anywhere.

Mirrors Kafka's `KafkaMetadataLog.deleteBeforeSnapshot` and `UnifiedLog.deleteOldSegments`. Beginning with the oldest,
each segment is first renamed to `.deleted`, which takes it out of the log, and unlinked only once the renames are
durable: a crash leaves a log that begins at a segment boundary and has no gap.
"""

from pathlib import Path

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.epochs import EPOCHS_FILE
from aclog.metalog.filelog.file_names import DELETED_SUFFIX, list_checkpoints, list_deleted_segments
from aclog.metalog.filelog.filesystem import fsync_directory, log_error
from aclog.metalog.filelog.segments import Segments
from aclog.metalog.filelog.verify_checkpoint import verify_checkpoint


def remove_segments_below(segments: Segments, offset: int) -> int:
    """Remove the segments entirely below `offset`, but never the last one; return the new log start offset.

    Raises:
        LogError: no valid checkpoint reaches the new start, so state would be lost; or the disk fails.

    """
    files = segments.files()
    count = sum(1 for after in files[1:] if after.base_offset <= offset)
    if not count:
        return files[0].base_offset
    start = files[count].base_offset
    if not _is_covered(segments, start):
        raise LogError(
            f"{segments.directory}: no valid checkpoint covers the log below offset {start}: segments are kept"
        )
    try:
        # Oldest first: the renames may reach the disk only in part, and the remaining segments must be contiguous.
        for _ in range(count):
            segments.rename_first(DELETED_SUFFIX)
        fsync_directory(segments.directory)
    except OSError as error:
        raise log_error(error, segments.directory, "cannot remove segments") from error
    unlink_deleted_segments(segments.directory)
    return start


def _is_covered(segments: Segments, start: int) -> bool:
    """Return whether a valid checkpoint covers everything below `start`; the newest is tried first."""
    log_start = segments.start_offset()
    for checkpoint in reversed(list_checkpoints(segments.directory)):
        if checkpoint.end_offset < start:
            return False
        if not any(verify_checkpoint(checkpoint, segments.epochs, log_start)):
            return True
    return False


def check_recoverable(segments: Segments) -> None:
    """Check that all files from which the next start would read the state exist. Contents are not read.

    Raises:
        LogError: a segment, leader-epoch-checkpoint, or every checkpoint that covers what precedes the log is gone.

    """
    segments.check()
    directory, start = segments.directory, segments.start_offset()
    if not (directory / EPOCHS_FILE).exists():
        raise LogError(f"{directory / EPOCHS_FILE}: removed while the log is open: restore it")
    if start and all(checkpoint.end_offset < start for checkpoint in list_checkpoints(directory)):
        raise LogError(
            f"{directory}: the log begins at offset {start}, and the checkpoints that cover what precedes it were "
            "removed while the log is open: restore one"
        )


def unlink_deleted_segments(directory: Path) -> None:
    """Unlink segments renamed for removal, now or by a process that died before it could.

    Raises:
        LogError: the disk fails.

    """
    try:
        for path in list_deleted_segments(directory):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise log_error(error, directory, "cannot remove segments") from error
