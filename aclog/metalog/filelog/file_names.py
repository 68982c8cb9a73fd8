"""The names of the files of a log directory: segments and checkpoints; all other files are ignored.

Mirrors Kafka's `LogFileUtils` (segments: 20 digits of base offset) and `org.apache.kafka.snapshot.Snapshots`
(checkpoints: 20 digits of end offset, 10 digits of epoch, `.checkpoint`; `.part` while being written, `.deleted`
while being removed). `.index`, `.timeindex` and `.snapshot` files can be rebuilt and are not read. Beside a checkpoint
there may be its image file, of the same name with `.image`, which only aclog knows.
"""

import os
import re
from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.filesystem import log_error

METADATA_DIRECTORY = "__cluster_metadata-0"
"""The metadata log's directory, in the log directory of a node."""
PARTIAL_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"
CHECKPOINT_SUFFIX = ".checkpoint"
IMAGE_SUFFIX = ".image"
_SEGMENT = re.compile(r"([0-9]{20})\.log")
_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_MAX_OFFSET = 2**63 - 1
_MAX_EPOCH = 2**31 - 1


@frozen(kw_only=True)
class SegmentFile:
    """A segment: its path, and the offset of its first record, from its name."""

    base_offset: int
    path: Path


@frozen(kw_only=True)
class CheckpointFile:
    """A finished checkpoint: its path, and its end offset (exclusive) and epoch, from its name."""

    end_offset: int
    epoch: int
    path: Path


def segment_name(base_offset: int) -> str:
    """Return the file name of the segment whose first record has this offset."""
    return f"{base_offset:020d}.log"


def parse_segment_name(name: str) -> int | None:
    """Return the base offset in a segment's file name; None for any other name."""
    found = _SEGMENT.fullmatch(name)
    if found is None or int(found[1]) > _MAX_OFFSET:
        return None
    return int(found[1])


def checkpoint_name(end_offset: int, epoch: int) -> str:
    """Return the file name of the checkpoint of all records below `end_offset`, the last of which has this epoch."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


def parse_checkpoint_name(name: str) -> tuple[int, int] | None:
    """Return (end offset, epoch) of a finished checkpoint's file name; None for others, `.part` and `.deleted` too."""
    found = _CHECKPOINT.fullmatch(name)
    if found is None or int(found[1]) > _MAX_OFFSET or int(found[2]) > _MAX_EPOCH:
        return None
    return int(found[1]), int(found[2])


def image_path(checkpoint: Path) -> Path:
    """Return the path of the image file of a checkpoint, whether there is one or not."""
    return checkpoint.with_suffix(IMAGE_SUFFIX)


def image_checkpoint(path: Path) -> Path | None:
    """Return the path of the checkpoint that an image file belongs to; None if the name is not an image file's."""
    checkpoint = path.with_suffix(".checkpoint")
    return checkpoint if path.suffix == IMAGE_SUFFIX and parse_checkpoint_name(checkpoint.name) is not None else None


def list_images(directory: Path) -> tuple[Path, ...]:
    """Return the image files of a directory, sorted by name.

    Raises:
        LogError: the directory cannot be listed.

    """
    paths = (directory / name for name in sorted(_listed(directory)) if name.endswith(IMAGE_SUFFIX))
    return tuple(path for path in paths if image_checkpoint(path) is not None)


def list_segments(directory: Path) -> tuple[SegmentFile, ...]:
    """Return the segments of a directory, sorted by base offset.

    Raises:
        LogError: the directory cannot be listed.

    """
    found = ((parse_segment_name(name), name) for name in _listed(directory))
    bases = sorted((base, name) for base, name in found if base is not None)
    return tuple(SegmentFile(base_offset=base, path=directory / name) for base, name in bases)


def list_checkpoints(directory: Path) -> tuple[CheckpointFile, ...]:
    """Return the finished checkpoints of a directory, sorted by end offset and epoch: the newest is the last.

    Raises:
        LogError: the directory cannot be listed.

    """
    found = ((parse_checkpoint_name(name), name) for name in _listed(directory))
    ids = sorted((key, name) for key, name in found if key is not None)
    return tuple(CheckpointFile(end_offset=end, epoch=epoch, path=directory / name) for (end, epoch), name in ids)


def list_deleted_segments(directory: Path) -> tuple[Path, ...]:
    """Return segments that were renamed for removal but still exist because a process died before unlinking them."""
    suffixed = (name for name in _listed(directory) if name.endswith(DELETED_SUFFIX))
    return tuple(directory / name for name in suffixed if _SEGMENT.fullmatch(name.removesuffix(DELETED_SUFFIX)))


def find_segments(directory: Path) -> tuple[SegmentFile, ...]:
    """Return the segments of a log directory, sorted by base offset.

    Raises:
        LogError: it does not exist, is not a directory, or has no segment.

    """
    if not directory.is_dir():
        raise LogError(f"{directory}: {'not a directory' if directory.exists() else 'no such directory'}")
    segments = list_segments(directory)
    if not segments:
        inner = directory / "__cluster_metadata-0"
        hint = f"; did you mean {inner}?" if inner.is_dir() else ""
        raise LogError(f"{directory}: not a metadata log: no segment (such as {segment_name(0)}) in it{hint}")
    return segments


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - done for every read, and Path objects cost ten times as much
    except OSError as error:
        raise log_error(error, directory, "cannot list") from error
