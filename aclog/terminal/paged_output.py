"""A pager's process, and what stands for stdout while it shows what is printed."""

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, TextIO

from attrs import define, field

from aclog.terminal.notices import note

if TYPE_CHECKING:
    from subprocess import Popen


@define(eq=False, kw_only=True)
class PagerProcess:
    """A pager that is started when there is something to show."""

    command: str
    terminal: TextIO
    is_gone: bool = field(default=False, init=False)
    _process: "Popen[str] | None" = field(default=None, init=False)

    def write(self, text: str) -> None:
        """Show a text."""
        if self.is_gone:
            return
        with self._unless_gone() as pipe:
            pipe.write(text)

    def flush(self) -> None:
        """Show what was written now."""
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
            if (code := self._process.wait()) > 0:  # what it was to show may not have been seen
                note(f"the pager ended with exit code {code}: {self.command}: --no-pager shows all without it")
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
        assert pipe is not None  # noqa: S101 - it was asked for
        return pipe

    def _started(self) -> "Popen[str]":
        from subprocess import PIPE, Popen

        self.terminal.flush()
        if sys.stderr.isatty():  # as git does: what is said meanwhile is not lost behind the pager
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
    """What stdout is meanwhile: still a terminal to those who ask, since a person reads it."""

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
        """Show what was written now."""
        self._paged.flush()

    def isatty(self) -> bool:
        """Return whether names are escaped, and tables fit the terminal."""
        return self._is_terminal

    def fileno(self) -> int:
        """Return that of the terminal, whose size may be asked."""
        return self._paged.terminal.fileno()

    def writable(self) -> bool:
        """See io.IOBase."""
        return True
