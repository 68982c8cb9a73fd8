"""Image files of logs that aclog may not write to: kept in a cache of this user's, and named by the log's content.

A Kafka's directory is not aclog's to add files to (docs/decisions/0016-image-file.md), so each command would replay it.
The cache has the state that was replayed, and a digest of every byte that it was replayed from: the newest
checkpoint, the segments up to the state's end, and the leader epochs. If any of them differs, the log is replayed.
"""

import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.files import CheckpointFile, SegmentFile, list_segments, read_at, read_epochs, written_whole
from aclog.metalog.values import frozen
from aclog.snapshots.checkpoints import checked_rest, flat_of, laid_out, mapped_image, write_contents
from aclog.snapshots.image import Image
from aclog.snapshots.image_file import HEADER_BYTES, CheckpointIdentity, ImageHeader, decode_header, digest_of_file

CACHE_VARIABLE = "ACLOG_CACHE"
"""The directory of the cache, or 0 for none; by default `aclog` below $XDG_CACHE_HOME, which is ~/.cache."""
_REPLAY = 1
"""Raised whenever the same bytes are replayed into another state than before."""
_SETTLED_NS = 2_000_000_000
"""A file that changed less than this ago may change again without another time."""
LEAST_BYTES = 16 << 20
"""Of a log: a smaller one is replayed as soon as its file would be checked."""
_MOST_FILES = 4
_SUFFIX = ".image"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def cache_directory(environment: Mapping[str, str], home: Path) -> Path | None:
    """Return the directory of the cache; None if there is to be none."""
    stated = environment.get(CACHE_VARIABLE, "")
    if stated:
        return Path(stated) if Path(stated).is_absolute() else None
    base = environment.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else home / ".cache") / "aclog"


@frozen(kw_only=True)
class LogImages:
    """The image files in one directory."""

    directory: Path

    def read(self, log: Path, checkpoints: Sequence[CheckpointFile], end: int) -> Image | None:
        """Return a state of a log up to an end offset, if the files that it was replayed from are unchanged.

        An image file that cannot be used is no error: the log is replayed.
        """
        path = self._path(log)
        with suppress(OSError, MetadataError):
            fd = os.open(path, _FLAGS)
            try:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
                    return None
                header = decode_header(read_at(fd, 0, HEADER_BYTES))
                if header.file_size != status.st_size or not self._is_of(header, log, checkpoints, end):
                    return None
                image = mapped_image(fd, path, header)
            finally:
                os.close(fd)
            os.utime(path)  # the cache drops what was used longest ago
            return image
        return None

    def _is_of(self, header: ImageHeader, log: Path, checkpoints: Sequence[CheckpointFile], end: int) -> bool:
        made_from = header.checkpoint
        size, end_offset = made_from.size, made_from.end_offset
        return end_offset <= end and _identity(log, checkpoints, end_offset, made_from.epoch, size) == made_from

    def write(self, log: Path, checkpoints: Sequence[CheckpointFile], image: Image, before: "Stamps") -> None:
        """Keep a state that has just been replayed from all of a log; `before` are the stamps from before that.

        Nothing is kept of a log that may have changed meanwhile, nor without space or rights; nor a state with
        credentials or tokens, so that no copy of secrets is made.
        """
        if (
            len(image.scram)
            or len(image.tokens)
            or time.time_ns() - max((changed for *_, changed in before), default=0) < _SETTLED_NS
        ):
            return
        with suppress(OSError, MetadataError):
            rest = checked_rest(image)
            identity = _identity(log, checkpoints, image.end_offset, image.epoch)
            if identity is None or identity.size < LEAST_BYTES or stamps_of(log, checkpoints) != before:
                return
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(log)
            with written_whole(path) as fd:
                os.fchmod(fd, 0o600)
                write_contents(fd, laid_out(identity, rest, flat_of(image.acls)), None)
            self._drop_oldest()

    def _path(self, log: Path) -> Path:
        return self.directory / f"{sha256(os.fsencode(log.resolve())).hexdigest()[:32]}{_SUFFIX}"

    def _drop_oldest(self) -> None:
        files = sorted(self.directory.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in files[_MOST_FILES:]:
            path.unlink(missing_ok=True)


Stamps: TypeAlias = tuple[tuple[int, ...], ...]
"""By file: what changes when it is replaced or written to. The last is its change time, which cannot be set."""


def stamps_of(log: Path, checkpoints: Sequence[CheckpointFile]) -> Stamps:
    """Return the stamps of the files of a log. Raises OSError: one was removed."""
    paths = [*(each.path for each in checkpoints), *(each.path for each in list_segments(log))]
    stats = [path.stat() for path in paths]
    return tuple((each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in stats)


def _identity(
    log: Path, checkpoints: Sequence[CheckpointFile], end_offset: int, epoch: int, size: int | None = None
) -> CheckpointIdentity | None:
    """Return the identity of the bytes that lead to a state; None if they are not there.

    `size` is how many there are; by default all that the segments have.
    """
    before = checkpoints[-1] if checkpoints else None
    start = 0 if before is None else before.end_offset
    segments = list_segments(log)
    used = _segments_from(segments, start)
    if used is None or end_offset < start:
        return None
    epochs = [each for each in read_epochs(log) or () if each.start_offset < end_offset]
    digest = sha256(repr((_REPLAY, end_offset, epoch, epochs)).encode())
    paths = [*(() if before is None else (before.path,)), *(segment.path for segment in used)]
    sizes = [path.stat().st_size for path in paths]
    total = sum(sizes) if size is None else size
    if sum(sizes) < total:  # before all of it is read
        return None
    remaining = total
    for path, whole in zip(paths, sizes, strict=True):
        if not remaining:
            break
        count = min(remaining, whole)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            digest.update(f"{path.name} {count} ".encode() + digest_of_file(fd, count))
        finally:
            os.close(fd)
        remaining -= count
    return CheckpointIdentity(end_offset=end_offset, epoch=epoch, size=total, digest=digest.digest())


def _segments_from(segments: Sequence[SegmentFile], offset: int) -> Sequence[SegmentFile] | None:
    """Return the segment with an offset and those after it; None if the log does not have it."""
    if not segments or segments[0].base_offset > offset:
        return None
    first = max(number for number, segment in enumerate(segments) if segment.base_offset <= offset)
    return segments[first:]
