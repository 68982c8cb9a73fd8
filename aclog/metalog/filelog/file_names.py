"""The names of the files of a log directory: segments and checkpoints; everything else is not ours to read.

Mirrors Kafka's `LogFileUtils` (segments: 20 digits of base offset) and `org.apache.kafka.snapshot.Snapshots`
(checkpoints: 20 digits of end offset, 10 digits of epoch, `.checkpoint`; `.part` while it is written, `.deleted`
while it is removed). `.index`, `.timeindex` and `.snapshot` files can be rebuilt and are ignored.
"""

import os
import re
from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.filesystem import log_error

PARTIAL_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"
_SEGMENT = re.compile(r"([0-9]{20})\.log")
_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_MAX_OFFSET = 2**63 - 1
_MAX_EPOCH = 2**31 - 1


@frozen(kw_only=True)
class SegmentFile:
    """A segment: the offset of its first record, from its name, and where it is."""

    base_offset: int
    path: Path


@frozen(kw_only=True)
class CheckpointFile:
    """A finished checkpoint: its end offset (exclusive) and epoch, from its name, and where it is."""

    end_offset: int
    epoch: int
    path: Path


def segment_name(base_offset: int) -> str:
    """The file name of the segment whose first record has this offset."""
    return f"{base_offset:020d}.log"


def parse_segment_name(name: str) -> int | None:
    """The base offset in a segment's file name; None for any other name."""
    found = _SEGMENT.fullmatch(name)
    if found is None or int(found[1]) > _MAX_OFFSET:
        return None
    return int(found[1])


def checkpoint_name(end_offset: int, epoch: int) -> str:
    """The file name of the checkpoint of everything below `end_offset`, whose last record is of `epoch`."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


def parse_checkpoint_name(name: str) -> tuple[int, int] | None:
    """End offset and epoch in a finished checkpoint's file name; None for any other (`.part` and `.deleted` too)."""
    found = _CHECKPOINT.fullmatch(name)
    if found is None or int(found[1]) > _MAX_OFFSET or int(found[2]) > _MAX_EPOCH:
        return None
    return int(found[1]), int(found[2])


def list_segments(directory: Path) -> tuple[SegmentFile, ...]:
    """The segments of a directory, by base offset.

    Raises:
        LogError: the directory cannot be listed.

    """
    found = ((parse_segment_name(name), name) for name in _listed(directory))
    bases = sorted((base, name) for base, name in found if base is not None)
    return tuple(SegmentFile(base_offset=base, path=directory / name) for base, name in bases)


def list_checkpoints(directory: Path) -> tuple[CheckpointFile, ...]:
    """The finished checkpoints of a directory, by end offset and epoch: the newest is the last.

    Raises:
        LogError: the directory cannot be listed.

    """
    found = ((parse_checkpoint_name(name), name) for name in _listed(directory))
    ids = sorted((key, name) for key, name in found if key is not None)
    return tuple(CheckpointFile(end_offset=end, epoch=epoch, path=directory / name) for (end, epoch), name in ids)


def list_deleted_segments(directory: Path) -> tuple[Path, ...]:
    """Segments that were renamed for removal and are still there: a process died in between."""
    suffixed = (name for name in _listed(directory) if name.endswith(DELETED_SUFFIX))
    return tuple(directory / name for name in suffixed if _SEGMENT.fullmatch(name.removesuffix(DELETED_SUFFIX)))


def find_segments(directory: Path) -> tuple[SegmentFile, ...]:
    """The segments of what must be a log directory, by base offset.

    Raises:
        LogError: it is not there, is no directory, or has no segment.

    """
    if not directory.is_dir():
        raise LogError(f"{directory}: {'not a directory' if directory.exists() else 'no such directory'}")
    segments = list_segments(directory)
    if not segments:
        inner = directory / "__cluster_metadata-0"
        hint = f"; is {inner} meant?" if inner.is_dir() else ""
        raise LogError(f"{directory}: not a metadata log: it holds no segment (such as {segment_name(0)}){hint}")
    return segments


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - a reader lists at each read, and paths would cost ten times that
    except OSError as error:
        raise log_error(error, directory, "cannot list") from error
