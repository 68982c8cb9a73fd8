"""Makes the image files of a node's checkpoints, each in a process of its own (aclog.snapshots.image_process)."""

import asyncio
import logging
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path

from attrs import define, field

from aclog.metalog.errors import DecodeError
from aclog.metalog.printable import printable
from aclog.snapshots.image_reader import read_image_file
from aclog.snapshots.image_writer import remove_partial_images

_log = logging.getLogger(__name__)

WORTH_A_FILE = 64 << 10
"""A smaller checkpoint, of about 900 rules, is read in 4 ms: its image file would not be worth a process."""

_MODULE = "aclog.snapshots.image_process"
_MOST_OF_AN_ERROR = 1 << 10


@define(eq=False, kw_only=True)
class ImageMaker:
    """Used on one event loop, which never waits for it; one process at a time. A failure is a line in the log.

    `directory` is the node's own: nobody else makes image files there.
    """

    directory: Path
    _wanted: Path | None = field(default=None, init=False)
    """The checkpoint to make one of next: the newest, if several came meanwhile."""
    _making: "asyncio.Task[None] | None" = field(default=None, init=False)

    def make(self, checkpoint: Path) -> None:
        """Make the image file of a checkpoint, in the background, unless there is a good one."""
        self._wanted = checkpoint
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._run(), name="image files")

    async def stop(self) -> None:
        """End a process that is running; idempotent."""
        making, self._making, self._wanted = self._making, None, None
        if making is not None:
            making.cancel()
            await asyncio.gather(making, return_exceptions=True)

    async def _run(self) -> None:
        while self._wanted is not None:
            checkpoint, self._wanted = self._wanted, None
            try:
                if await asyncio.to_thread(_needs_one, checkpoint):
                    await self._make(checkpoint)
            except Exception:  # noqa: BLE001 - the checkpoint is what counts
                _log.exception("cannot make the image file of %s", checkpoint.name)

    async def _make(self, checkpoint: Path) -> None:
        try:
            why = await _run_process(checkpoint)
        finally:
            # Also where this node stops meanwhile, in whatever step: nothing of the process stays.
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
    """Run the process, and end it if this is cancelled; return what was wrong, None if nothing was."""
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
    """Wait for the process; return the last line of what it says on stderr."""
    if process.stderr is None:
        raise AssertionError("stderr is a pipe")
    said = b""
    while piece := await process.stderr.read(_MOST_OF_AN_ERROR):
        said = (said + piece)[-_MOST_OF_AN_ERROR:]
    await process.wait()
    lines = said.decode(errors="replace").strip().splitlines()
    return printable(lines[-1]) if lines else ""
