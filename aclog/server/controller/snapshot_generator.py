"""Makes the image files of a node's checkpoints, each in a process of its own (aclog.snapshots.image_process)."""

import asyncio
import logging
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from attrs import field

from aclog.config.node_config import CheckpointPolicy
from aclog.metalog.errors import DecodeError, MetadataError, printable
from aclog.metalog.filelog import files
from aclog.metalog.machine import clock
from aclog.metalog.values import define
from aclog.snapshots.checkpoints import (
    read_image_file,
    remove_old_checkpoints,
    remove_orphaned_images,
    remove_partial_images,
    write_checkpoint,
)
from aclog.snapshots.image import Image

_log = logging.getLogger(__name__)

WORTH_A_FILE = 64 << 10
"""A smaller checkpoint, of about 900 rules, is read in 4 ms: its image file would not be worth a process."""

_MODULE = "aclog.snapshots.image_process"
_MOST_OF_AN_ERROR = 1 << 10


@define(eq=False, kw_only=True)
class ImageMaker:
    """Used on one event loop, which never waits for it; one process at a time. A failure is a line in the log.

    `directory` is the node's own: no other process makes image files there.
    """

    directory: Path
    _next_checkpoint: Path | None = field(default=None, init=False)
    """The checkpoint to make one of next: the newest, if several came meanwhile."""
    _making: "asyncio.Task[None] | None" = field(default=None, init=False)

    def make(self, checkpoint: Path) -> None:
        """Make the image file of a checkpoint, in the background, unless there is a good one."""
        self._next_checkpoint = checkpoint
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._run(), name="image files")

    async def stop(self) -> None:
        """End a process that is running; idempotent."""
        making, self._making, self._next_checkpoint = self._making, None, None
        if making is not None:
            making.cancel()
            await asyncio.gather(making, return_exceptions=True)

    async def _run(self) -> None:
        while self._next_checkpoint is not None:
            checkpoint, self._next_checkpoint = self._next_checkpoint, None
            try:
                if await asyncio.to_thread(_needs_one, checkpoint):
                    await self._make(checkpoint)
            except Exception:  # noqa: BLE001 - the checkpoint is what counts
                _log.exception("cannot make the image file of %s", checkpoint.name)

    async def _make(self, checkpoint: Path) -> None:
        try:
            why = await _run_process(checkpoint)
        finally:
            # Also if this node stops meanwhile, at any step: no part of the process remains.
            remove_partial_images(self.directory)
        if why is None:
            _log.info("wrote the image file of %s", checkpoint.name)
        else:
            _log.warning("no image file of %s: %s", checkpoint.name, why)


def _needs_one(checkpoint: Path) -> bool:
    """Return whether a checkpoint is worth an image file and has no good one."""
    try:
        return checkpoint.stat().st_size >= WORTH_A_FILE and read_image_file(checkpoint) is None
    except OSError:  # retention has removed it
        return False
    except DecodeError as error:
        _log.info("%s; it is made anew", error)
        return True


def _command(checkpoint: Path) -> tuple[str, ...]:
    """Return the command line: nothing is imported from a working directory (-P), nor from where this node would not.

    The process finds its modules as this one did: by the interpreter's own directories and, unless this one is
    isolated, the environment.
    """
    isolation = "-I" if sys.flags.isolated else "-P"
    return sys.executable, isolation, "-m", _MODULE, str(checkpoint.absolute())


async def _run_process(checkpoint: Path) -> str | None:
    """Run the process, and end it if this is cancelled; return the error, None on success."""
    process = await asyncio.create_subprocess_exec(
        *_command(checkpoint), stdin=PIPE, stdout=DEVNULL, stderr=PIPE, cwd="/", start_new_session=True
    )
    try:
        error = await _error_of(process)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return (error or f"its process ended with {process.returncode}") if process.returncode else None


async def _error_of(process: Process) -> str:
    """Wait for the process; return the last line of its stderr."""
    if process.stderr is None:
        raise AssertionError("stderr is a pipe")
    output = b""
    while piece := await process.stderr.read(_MOST_OF_AN_ERROR):
        output = (output + piece)[-_MOST_OF_AN_ERROR:]
    await process.wait()
    lines = output.decode(errors="replace").strip().splitlines()
    return printable(lines[-1]) if lines else ""


# Checkpoints by bytes and by time, and retention (SnapshotGenerator, KafkaMetadataLog.maybeClean).
#
# Both run in threads without locking: images are immutable, and retention removes only what a newer checkpoint
# covers.


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
    changed: Callable[[tuple[files.CheckpointFile, ...]], None]
    """Receives the list of checkpoints whenever it has changed."""
    trim: Callable[[int], object] = lambda _: None
    """Trims the log below an offset, if this node may. Runs in a thread."""
    clock: Callable[[], float] = clock.wall_seconds
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
        newest = files.list_checkpoints(self.directory)[-1:]
        self._offset_at_last = newest[0].end_offset if newest else 0

    def consider(self, _high_watermark: int = -1) -> None:
        """Check after a commit whether a checkpoint is due by bytes."""
        if not self._failed and self.committed_bytes() - self._bytes_at_last >= self.policy.bytes_between:
            self._due.set()

    async def run(self) -> None:
        """Write checkpoints when due, until cancelled; failures are logged and retried."""
        if newest := files.list_checkpoints(self.directory)[-1:]:
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
        self._bytes_at_last = written  # later bytes count for the next one
        path = await asyncio.to_thread(write_checkpoint, image, self.directory)
        self._offset_at_last = image.end_offset
        self.changed(files.list_checkpoints(self.directory))
        _log.info("wrote checkpoint of offset %d, epoch %d", image.end_offset, image.epoch)
        self._images.make(path)
        try:
            await asyncio.to_thread(clean, self.directory, self.policy, self.trim, now=self.clock())
        finally:
            self.changed(files.list_checkpoints(self.directory))
        return True


def clean(directory: Path, policy: CheckpointPolicy, trim: Callable[[int], object], *, now: float) -> None:
    """Remove the oldest checkpoints beyond the retention size or time, and `trim` the log below the remaining ones.

    The newest checkpoint is always kept. `now` is in seconds since 1970.

    Raises:
        LogError: An I/O error.

    """
    checkpoints = files.list_checkpoints(directory)
    paths = [*(each.path for each in checkpoints), *(each.path for each in files.list_segments(directory))]
    sizes = {path: _size(path) for path in paths}
    total, excess = sum(sizes.values()), 0
    for oldest, after in pairwise(checkpoints):
        too_much = 0 <= policy.retention_bytes < total
        too_old = policy.retention_ms >= 0 and (now - _written_at(oldest.path)) * 1000 > policy.retention_ms
        if not (too_much or too_old):
            break
        excess += 1
        total -= sizes[oldest.path] + _segments_between(directory, sizes, oldest, after)
    # Checkpoints go before the log below them: if the process dies in between, the log merely starts earlier.
    if excess:
        remove_old_checkpoints(directory, keep=len(checkpoints) - excess)
    remaining = files.list_checkpoints(directory)
    if remaining and remaining[0].end_offset:
        trim(remaining[0].end_offset)


def _segments_between(
    directory: Path, sizes: dict[Path, int], oldest: files.CheckpointFile, after: files.CheckpointFile
) -> int:
    """Return the bytes of segments that become removable when the log starts at `after` instead of `oldest`."""
    segments = files.list_segments(directory)
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

    The caller must hold the directory's lock: no other process may write a checkpoint.
    """
    paths = [path for path in directory.glob(f"*{files.PARTIAL_SUFFIX}") if _is_partial_checkpoint(path)]
    for path in paths:
        path.unlink(missing_ok=True)
    remove_partial_images(directory)
    remove_orphaned_images(directory)
    return tuple(paths)


def _is_partial_checkpoint(path: Path) -> bool:
    """Whether the name has the form `<end offset>-<epoch>-<random>.checkpoint.part`."""
    stem, dot, rest = path.name.partition(".")
    offset_and_epoch = "-".join(stem.split("-")[:2])
    return (
        rest == f"checkpoint{files.PARTIAL_SUFFIX}"
        and files.parse_checkpoint_name(f"{offset_and_epoch}{dot}checkpoint") is not None
    )
