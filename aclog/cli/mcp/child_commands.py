"""Runs the commands that answer: each in a process of its own, for a limited time, without a terminal to ask on."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import ByteReceiveStream, Process
from attrs import define, field, frozen

from aclog.cli.mcp.command_line import CommandLine
from aclog.metalog.errors import ConfigError

_AT_ONCE = 4
_STDERR_BYTES = 64 << 10
_NOTICES = 20
_NOTICE_LENGTH = 1000
_PREFIX = "aclog: "
_NOT_ERRORS = (f"{_PREFIX}note: ", f"{_PREFIX}warning: ")


@frozen(kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    """Its exit code; negative: the signal that ended it."""
    notices: tuple[str, ...]
    """Its notes and warnings."""
    error: str | None
    """What else it said: the error, if it is one of ours."""


@define(eq=False)
class ChildCommands:
    """The commands that run now; owned by the server."""

    seconds: float
    """For which a command may run."""
    _limiter: anyio.CapacityLimiter = field(factory=lambda: anyio.CapacityLimiter(_AT_ONCE), init=False)
    _running: set[Process] = field(factory=set, init=False)
    _starting: int = field(default=0, init=False)
    _then: Callable[[], None] | None = field(default=None, init=False)
    """What is called once nothing is being started."""

    async def run(self, line: CommandLine, take: Callable[[bytes], None]) -> Ended:
        """Run a command, and hand over what it prints as it arrives, to `take`, which raises nothing.

        It waits if many run already.

        It is killed, with all that it has started, when its time is over or this is cancelled.

        Raises:
            ConfigError: it took too long. OSError: it cannot be started.

        """
        async with self._limiter:
            process = await self._start(line)
            try:
                return await self._ended(process, line.stdin, take)
            finally:
                _kill(process)
                self._running.discard(process)
                with anyio.CancelScope(shield=True):
                    await process.aclose()

    def end(self, then: Callable[[], None]) -> None:
        """Kill all that run, and call `then`; for a signal handler.

        A command that is being started is not known yet: it is waited for.
        """
        if self._starting:
            self._then = then
            return
        self.kill()
        then()

    def kill(self) -> None:
        """Kill all that run."""
        for process in tuple(self._running):
            _kill(process)

    async def _start(self, line: CommandLine) -> Process:
        self._starting += 1
        try:
            with anyio.CancelScope(shield=True):  # what is started is known, and so is ended
                # -P: a module in the working directory, which may be anybody's repository, is not taken for one of ours
                process = await anyio.open_process(
                    [sys.executable, "-P", "-m", "aclog", *line.words],
                    stdin=DEVNULL if line.stdin is None else PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    start_new_session=True,  # no terminal to ask on, and a group that can be killed
                )
            self._running.add(process)
        finally:
            self._starting -= 1
        if self._then is not None:
            self.end(self._then)
        return process

    async def _ended(self, process: Process, stdin: str | None, take: Callable[[bytes], None]) -> Ended:
        said = bytearray()
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - both are pipes
        with anyio.move_on_after(self.seconds) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_keep, process.stderr, said)
                tasks.start_soon(_feed, process, stdin)
                async for data in process.stdout:
                    take(data)
            await process.wait()
        if limit.cancelled_caught:
            how = "narrow the question, or start aclog mcp with a longer --time-limit"
            raise ConfigError(f"no answer after {self.seconds:g} s: {how}")
        assert process.returncode is not None  # noqa: S101 - it has ended
        return _ended(process.returncode, said.decode(errors="replace"))


async def _keep(stream: ByteReceiveStream, said: bytearray) -> None:
    async for data in stream:
        said += data[: max(_STDERR_BYTES - len(said), 0)]


async def _feed(process: Process, stdin: str | None) -> None:
    if process.stdin is None or stdin is None:
        return
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it ended without reading all of it
        await process.stdin.send(stdin.encode())
        await process.stdin.aclose()


def _kill(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _ended(code: int, said: str) -> Ended:
    lines = [line for line in said.splitlines() if line.strip()]
    notices = [line.removeprefix(_PREFIX)[:_NOTICE_LENGTH] for line in lines if line.startswith(_NOT_ERRORS)]
    others = [line for line in lines if not line.startswith(_NOT_ERRORS)]
    error = others[-1].removeprefix(_PREFIX)[:_NOTICE_LENGTH] if others else None
    if len(notices) > _NOTICES:
        notices = [*notices[:_NOTICES], f"note: and {len(notices) - _NOTICES} more such lines"]
    return Ended(code=code, notices=tuple(notices), error=error)
