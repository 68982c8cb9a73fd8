"""Remove the segments that a checkpoint has made superfluous, so that a crash in between does no harm.

Mirrors Kafka's `KafkaMetadataLog.deleteBeforeSnapshot` and `UnifiedLog.deleteOldSegments`. From the oldest on, each
segment is first renamed to `.deleted`, which takes it out of the log, and unlinked only when the new names are
durable: what a crash leaves is a log that begins at a segment's start, without a hole.
"""

from pathlib import Path

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.file_names import DELETED_SUFFIX, list_checkpoints, list_deleted_segments
from aclog.metalog.filelog.filesystem import fsync_directory, log_error
from aclog.metalog.filelog.segments import Segments
from aclog.metalog.filelog.verify_checkpoint import verify_checkpoint


def remove_segments_below(segments: Segments, offset: int) -> int:
    """Remove the segments that lie wholly below `offset`, but never the last; returns the log's new start offset.

    Raises:
        LogError: no sound checkpoint reaches as far as the new start, so that state would be lost; or the disk refuses.

    """
    files = segments.files()
    count = sum(1 for after in files[1:] if after.base_offset <= offset)
    if not count:
        return files[0].base_offset
    start = files[count].base_offset
    if not _is_covered(segments, start):
        raise LogError(f"{segments.directory}: no sound checkpoint of all below offset {start}: its segments are kept")
    try:
        for file in files[:count]:
            file.path.replace(file.path.with_name(file.path.name + DELETED_SUFFIX))
            segments.remove_first(1)
        fsync_directory(segments.directory)
    except OSError as error:
        raise log_error(error, segments.directory, "cannot remove segments") from error
    unlink_deleted_segments(segments.directory)
    return start


def _is_covered(segments: Segments, start: int) -> bool:
    """Whether a checkpoint that is sound holds all below `start`; the newest is looked at first."""
    log_start = segments.start_offset()
    for checkpoint in reversed(list_checkpoints(segments.directory)):
        if checkpoint.end_offset < start:
            return False
        if not any(verify_checkpoint(checkpoint, segments.epochs, log_start)):
            return True
    return False


def unlink_deleted_segments(directory: Path) -> None:
    """Unlink what was renamed for removal, now or by a process that died before it came to this.

    Raises:
        LogError: the disk refuses.

    """
    try:
        for path in list_deleted_segments(directory):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise log_error(error, directory, "cannot remove segments") from error
