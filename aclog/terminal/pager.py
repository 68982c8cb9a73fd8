"""Long output goes through a pager on a terminal, as git's does.

`ACLOG_PAGER`, else `PAGER`, else less; `cat` or nothing for none. It is started at the first line that is printed:
earlier output, such as a progress bar, goes to the terminal. Leaving it early does not end the command: the output
printed after that goes nowhere, and the exit code is the command's.
"""

import io
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any, TextIO

from aclog.terminal.output import note

if TYPE_CHECKING:
    from subprocess import Popen


class PagerProcess:
    """A pager, started at the first output. Not of attrs: its import takes a fifth of the time of `--help`."""

    def __init__(self, *, command: str, terminal: TextIO) -> None:
        """`command`: a line for the shell; `terminal`: stdout as it was."""
        self.command = command
        self.terminal = terminal
        self.is_gone = False
        self._process: Popen[str] | None = None

    def write(self, text: str) -> None:
        """Show a text."""
        if self.is_gone:
            return
        with self._unless_gone() as pipe:
            pipe.write(text)

    def flush(self) -> None:
        """Write the buffer to the pager."""
        if self._process is not None and not self.is_gone:
            with self._unless_gone() as pipe:
                pipe.flush()

    def end(self) -> None:
        """Wait until the reader has left."""
        if self._process is None:
            return
        # Ctrl-C reaches the pager too, which has its own use for it.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with suppress(BrokenPipeError):
                self._pipe().close()
            if (code := self._process.wait()) > 0:  # its output may not have been seen
                note(f"the pager failed with exit code {code}: {self.command}: use --no-pager")
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def _unless_gone(self) -> Iterator[IO[str]]:
        try:
            yield self._pipe()
        except BrokenPipeError:
            self.is_gone = True

    def _pipe(self) -> IO[str]:
        if self._process is None:
            self._process = self._started()
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101 - stdin=PIPE
        return pipe

    def _started(self) -> "Popen[str]":
        from subprocess import PIPE, Popen

        self.terminal.flush()
        if sys.stderr.isatty():  # as git does: messages on stderr are not lost behind the pager
            sys.stderr = PagedOutput(self, is_terminal=False)
        return Popen(  # noqa: S602 - the user's own command, which may have flags and pipes
            self.command,
            shell=True,
            stdin=PIPE,
            env={"LESS": "FRX", "LV": "-c", **os.environ},
            encoding="utf-8",
            errors="backslashreplace",
        )


class PagedOutput(io.TextIOBase):
    """The replacement of stdout: `isatty` is still true, since a person reads the output."""

    encoding = "utf-8"

    def __init__(self, paged: PagerProcess, *, is_terminal: bool = True) -> None:
        """`is_terminal`: false for stderr, so that no progress bar is drawn into the pager."""
        self._paged = paged
        self._is_terminal = is_terminal

    def write(self, text: str) -> int:
        """Show a text."""
        self._paged.write(text)
        return len(text)

    def flush(self) -> None:
        """Write the buffer to the pager."""
        self._paged.flush()

    def isatty(self) -> bool:
        """Return whether names are escaped, and tables fit the terminal."""
        return self._is_terminal

    def fileno(self) -> int:
        """Return the file descriptor of the terminal, whose size may be read."""
        return self._paged.terminal.fileno()

    def writable(self) -> bool:
        """See io.IOBase."""
        return True


VARIABLE = "ACLOG_PAGER"
_NONE = ("", "cat")
_SHELL = frozenset("|&;<>()$`\\\"'*?[#~=% \t\n")
"""With one of these variables a shell completes the command line."""

_REFUSED: ContextVar[bool] = ContextVar("aclog_no_pager", default=False)
"""Whether this invocation of a command has --no-pager."""
_PAGED: ContextVar["PagerProcess | None"] = ContextVar("aclog_pager", default=None)


def refuse_pager() -> None:
    """Use no pager for the rest of this invocation (--no-pager)."""
    _REFUSED.set(True)


def page_output() -> None:
    """Send the output of this invocation through a pager, if stdout is a terminal and a pager is configured."""
    if _REFUSED.get() or _PAGED.get() is not None or not sys.stdout.isatty():
        return
    if (command := pager_command(os.environ)) is not None:
        paged = PagerProcess(command=command, terminal=sys.stdout)
        _PAGED.set(paged)
        sys.stdout = PagedOutput(paged)


def pager_command(environment: Any) -> str | None:
    """Return the pager to use; None: none is configured, or it is not installed."""
    if environment.get("TERM", "dumb") == "dumb":
        return None
    setting = next((text for name in (VARIABLE, "PAGER") if (text := environment.get(name)) is not None), "less")
    command = setting.strip()
    if command in _NONE:
        return None
    program = command.split()[0]
    return None if not _SHELL & set(program) and shutil.which(program) is None else command


def is_reader_gone() -> bool:
    """Return whether the reader has closed the output: a list may end."""
    paged = _PAGED.get()
    return paged is not None and paged.is_gone


@contextmanager
def paging() -> Iterator[None]:
    """Around an invocation: at its end wait until the reader has left the pager."""
    outside = sys.stdout, sys.stderr
    try:
        yield
    finally:
        if (paged := _PAGED.get()) is not None:
            sys.stdout, sys.stderr = outside
            paged.end()
