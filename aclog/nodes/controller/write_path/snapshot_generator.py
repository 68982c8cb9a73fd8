"""Checkpoints by bytes and by time, and retention (SnapshotGenerator, KafkaMetadataLog.maybeClean).

Both run in threads without locking: images are immutable, and retention removes only what a newer checkpoint covers.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from attrs import define, field

from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.file_names import (
    PARTIAL_SUFFIX,
    CheckpointFile,
    list_checkpoints,
    list_segments,
    parse_checkpoint_name,
)
from aclog.nodes.config.node_config import CheckpointPolicy
from aclog.nodes.controller.write_path.image_maker import ImageMaker
from aclog.snapshots.checkpoint_retention import remove_old_checkpoints
from aclog.snapshots.checkpoint_writer import write_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.image_writer import remove_orphaned_images, remove_partial_images

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 60.0
"""Delay after a failed checkpoint, such as on a full disk."""


@define(eq=False, kw_only=True)
class SnapshotGenerator:
    """Writes checkpoints by bytes and by time; `run` is its task. Used on one event loop's thread.

    `committed_bytes` returns the bytes committed since startup, as Kafka counts; `image` returns the published image.
    """

    directory: Path
    policy: CheckpointPolicy
    image: Callable[[], Image]
    committed_bytes: Callable[[], int]
    changed: Callable[[tuple[CheckpointFile, ...]], None]
    """Receives the list of checkpoints whenever it has changed."""
    trim: Callable[[int], object] = lambda _: None
    """Trims the log below an offset, if this node may. Runs in a thread."""
    clock: Callable[[], float] = time.time
    _images: ImageMaker = field(init=False)
    _writing: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _due: asyncio.Event = field(factory=asyncio.Event, init=False)
    _failed: bool = field(default=False, init=False)
    """Whether the last attempt failed: the next is made after the retry delay, not at the next commit."""
    _bytes_at_last: int = field(default=0, init=False)
    _offset_at_last: int = field(default=-1, init=False)

    def __attrs_post_init__(self) -> None:
        self._images = ImageMaker(directory=self.directory)
        self._bytes_at_last = self.committed_bytes()
        newest = list_checkpoints(self.directory)[-1:]
        self._offset_at_last = newest[0].end_offset if newest else 0

    def consider(self, _high_watermark: int = -1) -> None:
        """Check after a commit whether a checkpoint is due by bytes."""
        if not self._failed and self.committed_bytes() - self._bytes_at_last >= self.policy.bytes_between:
            self._due.set()

    async def run(self) -> None:
        """Write checkpoints when due, until cancelled; failures are logged and retried."""
        if newest := list_checkpoints(self.directory)[-1:]:
            self._images.make(newest[0].path)  # this start may have found a damaged one, or none
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_SECONDS if self._failed else self._interval):
                    await self._due.wait()
            self._due.clear()
            self._failed = not await self._tried()

    async def _tried(self) -> bool:
        try:
            await self.write()
        except MetadataError as error:
            _log.error("cannot write a checkpoint: %s", error)
        except Exception:  # noqa: BLE001 - the log is intact without a new checkpoint
            _log.exception("cannot write a checkpoint")
        else:
            return True
        return False

    @property
    def _interval(self) -> float | None:
        return self.policy.interval_ms / 1000 if self.policy.interval_ms > 0 else None

    async def write(self) -> bool:
        """Write a checkpoint of the published image unless one exists, and apply retention.

        Returns:
            Whether a checkpoint was written.

        Raises:
            LogError: The disk is full, or an I/O error.
            CheckpointError: The image cannot be encoded.

        """
        async with self._writing:
            return await self._write()

    async def stop(self, task: "asyncio.Task[None]") -> None:
        """End the task of `run`, waiting for a checkpoint in progress, but not for its image file."""
        # Cancelling under the lock never interrupts a write half way: its thread would continue in the background.
        async with self._writing:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._images.stop()

    async def _write(self) -> bool:
        image, written = self.image(), self.committed_bytes()
        if image.end_offset <= self._offset_at_last:
            return False
        self._bytes_at_last = written  # what is committed from here on counts for the next one
        path = await asyncio.to_thread(write_checkpoint, image, self.directory)
        self._offset_at_last = image.end_offset
        self.changed(list_checkpoints(self.directory))
        _log.info("wrote checkpoint of offset %d, epoch %d", image.end_offset, image.epoch)
        self._images.make(path)
        try:
            await asyncio.to_thread(clean, self.directory, self.policy, self.trim, now=self.clock())
        finally:
            self.changed(list_checkpoints(self.directory))
        return True


def clean(directory: Path, policy: CheckpointPolicy, trim: Callable[[int], object], *, now: float) -> None:
    """Remove the oldest checkpoints beyond the retention size or time, and `trim` the log below the remaining ones.

    The newest checkpoint is always kept. `now` is in seconds since 1970.

    Raises:
        LogError: An I/O error.

    """
    checkpoints = list_checkpoints(directory)
    paths = [*(each.path for each in checkpoints), *(each.path for each in list_segments(directory))]
    sizes = {path: _size(path) for path in paths}
    total, gone = sum(sizes.values()), 0
    for oldest, after in pairwise(checkpoints):
        too_much = 0 <= policy.retention_bytes < total
        too_old = policy.retention_ms >= 0 and (now - _written_at(oldest.path)) * 1000 > policy.retention_ms
        if not (too_much or too_old):
            break
        gone += 1
        total -= sizes[oldest.path] + _segments_between(directory, sizes, oldest, after)
    # Checkpoints go before the log below them: if the process dies in between, the log merely starts earlier.
    if gone:
        remove_old_checkpoints(directory, keep=len(checkpoints) - gone)
    kept = list_checkpoints(directory)
    if kept and kept[0].end_offset:
        trim(kept[0].end_offset)


def _segments_between(directory: Path, sizes: dict[Path, int], oldest: CheckpointFile, after: CheckpointFile) -> int:
    """Return the bytes of segments that become removable when the log starts at `after` instead of `oldest`."""
    segments = list_segments(directory)
    ends = {file.path: following.base_offset for file, following in pairwise(segments)}
    low, high = oldest.end_offset, after.end_offset
    return sum(sizes.get(path, 0) for path, end in ends.items() if low < end <= high)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def remove_partial_checkpoints(directory: Path) -> tuple[Path, ...]:
    """Remove partially written checkpoints, and image files that are partial or without a checkpoint.

    They are those of a crashed process. Returns the paths of the checkpoints.

    The caller must hold the directory's lock: nobody else may be writing a checkpoint.
    """
    found = [path for path in directory.glob(f"*{PARTIAL_SUFFIX}") if _is_partial_checkpoint(path)]
    for path in found:
        path.unlink(missing_ok=True)
    remove_partial_images(directory)
    remove_orphaned_images(directory)
    return tuple(found)


def _is_partial_checkpoint(path: Path) -> bool:
    """Whether the name has the form `<end offset>-<epoch>-<random>.checkpoint.part`."""
    stem, dot, rest = path.name.partition(".")
    offset_and_epoch = "-".join(stem.split("-")[:2])
    return (
        rest == f"checkpoint{PARTIAL_SUFFIX}"
        and parse_checkpoint_name(f"{offset_and_epoch}{dot}checkpoint") is not None
    )
