"""Checkpoint retention: which checkpoints may be removed (KafkaMetadataLog.deleteSnapshotsWithSizeLimit)."""

from pathlib import Path

from aclog.metalog.errors import CheckpointError
from aclog.metalog.filelog.file_names import (
    DELETED_SUFFIX,
    CheckpointFile,
    list_checkpoints,
    parse_checkpoint_name,
)
from aclog.metalog.filelog.filesystem import fsync_directory, log_error
from aclog.snapshots.checkpoint_state import read_state
from aclog.snapshots.image_writer import remove_orphaned_images


def remove_old_checkpoints(directory: Path | str, *, keep: int) -> tuple[Path, ...]:
    """Remove all but the newest `keep` valid checkpoints; return what was removed.

    A damaged one does not count towards `keep`, and is not removed while it is newer than the oldest kept one: it is
    evidence. So the last valid checkpoint always stays. An image file goes with its checkpoint. Files that a process
    renamed before it died are removed too, and image files without a checkpoint.

    Raises:
        ValueError: keep is below 1.
        LogError: the directory cannot be listed, or the disk fails.

    """
    if keep < 1:
        raise ValueError(f"keep {keep}: expected at least 1")
    directory = Path(directory)
    found = list_checkpoints(directory)
    old = found[: _first_kept(found, keep)]
    try:
        for file in old:
            file.path.replace(file.path.with_name(file.path.name + DELETED_SUFFIX))
        fsync_directory(directory)
        # Renamed to `.deleted` first, unlinked once that is durable: no half-removed checkpoint counts after a crash.
        for path in directory.glob(f"*{DELETED_SUFFIX}"):
            if parse_checkpoint_name(path.name.removesuffix(DELETED_SUFFIX)) is not None:
                path.unlink(missing_ok=True)
        remove_orphaned_images(directory)
    except OSError as error:
        raise log_error(error, directory, "cannot remove checkpoints") from error
    return tuple(file.path for file in old)


def _first_kept(checkpoints: tuple[CheckpointFile, ...], keep: int) -> int:
    """Return the number of the oldest of the newest `keep` valid checkpoints, 0 if there are fewer."""
    whole = 0
    for number in range(len(checkpoints) - 1, -1, -1):
        if _is_whole(checkpoints[number].path):
            whole += 1
            if whole == keep:
                return number
    return 0


def _is_whole(path: Path) -> bool:
    try:
        read_state(path)
    except CheckpointError:
        return False
    return True
