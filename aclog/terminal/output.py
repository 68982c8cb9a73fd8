"""Output: lines on stdout.

Errors, warnings and notes on stderr; times as text; confirmations; and long output through a pager on a terminal,
as git does it.
"""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, TextIO

import click

from aclog.metalog.errors import ConfigError, printable, without_marks

if TYPE_CHECKING:
    from subprocess import Popen


# Lines on stdout; errors, warnings and notes on stderr; times as text in the zone of the terminal; confirmations.


# Output of commands on stdout: no other module of the command line prints.


def value_formatter() -> Callable[[object], str]:
    """Return how a value of one line is shown on stdout: escaped on a terminal, in a pipe as it is."""
    return _printable if sys.stdout.isatty() else _plain


def say(line: object = "", *, end: str = "\n", flush: bool = False) -> None:
    """Print a line for people, in the form of `value_formatter`; with colors, where there are some."""
    print(_painted(_printable(line)) if has_colors() else value_formatter()(line), end=end, flush=flush)


def emit(text: str, *, flush: bool = False) -> None:
    """Print a text as it is: JSON (aclog.terminal.columns), or lines whose values `value_formatter` has formatted."""
    print(text, flush=flush)


def print_lines(lines: Iterable[str], *, live: bool = False) -> None:
    """Print lines as they are, many at once unless each is to be seen `live`."""
    lines = iter(lines)
    while (block := list(islice(lines, 1 if live else _BLOCK))) and not is_reader_gone():
        emit("\n".join(block), flush=live)


_BLOCK = 512
"""Lines per print: one print per line would dominate the time for a million rows."""


def _plain(value: object) -> str:
    return without_marks(str(value))


def _printable(value: object) -> str:
    return printable(str(value))


# Colors: on a terminal, unless NO_COLOR is set; `--color` decides otherwise.


class ColorChoice(StrEnum):
    """A value of --color."""

    AUTO = "auto"
    """On a terminal only."""
    ALWAYS = "always"
    NEVER = "never"


_COLORS: ContextVar[ColorChoice] = ContextVar("aclog_color", default=ColorChoice.AUTO)
"""The value of --color of this invocation of a command."""


def color_choice() -> ColorChoice:
    """Return the value of --color: AUTO without it."""
    return _COLORS.get()


def use_color(when: ColorChoice) -> None:
    """Print colors like that for the rest of this invocation."""
    _COLORS.set(when)


def has_colors(stream: Any = None) -> bool:
    """Return whether a stream, by default stdout, gets colors."""
    when = _COLORS.get()
    if when is not ColorChoice.AUTO:
        return when is ColorChoice.ALWAYS
    is_terminal: bool = (sys.stdout if stream is None else stream).isatty()
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def styled(text: str, *, stream: Any = None, **style: Any) -> str:
    """Return a text with a style of click.style where a stream, by default stdout, has colors."""
    return click.style(text, **style) if has_colors(stream) else text


def colored(line: str, stream: Any = None) -> str:
    """Return a line, whose control characters are escaped, with colors where a stream, by default stdout, has them."""
    return _painted(line) if has_colors(stream) else line


def cell_painter() -> Callable[[str, str, bool], str] | None:
    """Return what colors a cell by the key of its column, the heads if true; None where stdout has no colors."""
    if not has_colors():
        return None
    from aclog.terminal.colors import painted_cell

    return lambda key, text, is_head: painted_cell(key, text, is_head=is_head)


def _painted(text: str) -> str:
    from aclog.terminal.colors import has_links, painted

    is_paged = isinstance(sys.stdout, PagedOutput)  # not every pager takes hyperlinks
    links = sys.stdout.isatty() and not is_paged and has_links()
    return "\n".join(painted(line, links=links) for line in text.split("\n"))


# Errors, warnings and notes on stderr, each on one line.


def complain(text: str) -> None:
    """Print an error."""
    _print(text)


def warn(text: str) -> None:
    """Print a warning: the command continues."""
    _print(f"warning: {text}")


def note(text: str) -> None:
    """Print a note on something unexpected: a torn tail, a lowered offset; or a text that begins with `warning: `."""
    _print(text if text.startswith("warning: ") else f"note: {text}")


def note_each(reasons: Iterable[str]) -> None:
    """Print notes with names of clients in them."""
    for text in reasons:
        note(printable(text))


_TAKER: ContextVar[Callable[[str], None] | None] = ContextVar("aclog_notices", default=None)
"""What takes notices instead of stderr."""


@contextmanager
def notices_to(take: Callable[[str], None]) -> Iterator[None]:
    """Have `take` called with each notice during the `with`, in this thread or task; no progress is shown meanwhile."""
    token = _TAKER.set(take)
    try:
        yield
    finally:
        _TAKER.reset(token)


_NAMES: ContextVar[Mapping[str, str]] = ContextVar("aclog_names", default=MappingProxyType({}))
"""What notices print for paths."""


@contextmanager
def notices_renaming(names: Mapping[str, str]) -> Iterator[None]:
    """Have notices print the name of each of these paths during the `with`, in this thread or task."""
    token = _NAMES.set({**_NAMES.get(), **names})
    try:
        yield
    finally:
        _NAMES.reset(token)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the name of each of these paths in its place; a path precedes its parents."""
    for path, name in names.items():
        text = text.replace(path, name)
    return text


def repeat_notice(text: str) -> None:
    """Print a notice that `notices_to` has taken, perhaps in another process."""
    _print(text)


def has_notices_taken() -> bool:
    """Return whether notices are taken in this thread or task instead of printed."""
    return _TAKER.get() is not None


def _print(text: str) -> None:
    text = renamed(text, _NAMES.get())
    take = _TAKER.get()
    if take is not None:
        take(printable(text))
        return
    sys.stdout.flush()  # so that a notice appears after the output that precedes it
    line = f"aclog: {printable(text)}"
    if has_colors(sys.stderr):
        kind = next((kind for kind in _KINDS if text.startswith(kind)), "")
        color, rest = _KINDS[kind], printable(text.removeprefix(kind))
        line = f"{click.style('aclog:', fg=color)} {click.style(kind, fg=color) if kind else ''}{rest}"
    print(line, file=sys.stderr, flush=True)


_KINDS = {"warning: ": "yellow", "note: ": "cyan", "": "red"}
"""Colors of notices by their beginnings."""


# The time zone of the person at the terminal: how times without a zone are read, and how times are shown.


TIMEZONE_VARIABLE = "ACLOG_TIMEZONE"

_ZONE: ContextVar[tzinfo | None] = ContextVar("aclog_timezone", default=None)
"""The zone of this invocation of a command, which runs in a context of its own (aclog.cli.app.run)."""


def use_zone(text: str) -> None:
    """Use a zone for the rest of this invocation: a name such as Europe/Berlin, an offset, UTC or `local`.

    Raises:
        ConfigError: no such zone.

    """
    _ZONE.set(_parsed("--timezone", text))


def chosen_zone() -> tzinfo | None:
    """Return the zone of --timezone, or of ACLOG_TIMEZONE; None if neither is set.

    Raises:
        ConfigError: ACLOG_TIMEZONE is no zone.

    """
    zone = _ZONE.get()
    if zone is None and (text := os.environ.get(TIMEZONE_VARIABLE)):
        zone = _parsed(TIMEZONE_VARIABLE, text)
        _ZONE.set(zone)
    return zone


def shown_zone() -> tzinfo:
    """Return the chosen zone, or UTC. Raises as `chosen_zone`."""
    return chosen_zone() or UTC


def _parsed(where: str, text: str) -> tzinfo:
    from aclog.snapshots.moments import parse_zone

    try:
        return parse_zone(text)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


# Record timestamps as text.


def time_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as ISO 8601, for people: in the chosen zone, which is UTC unless one is."""
    return _text(timestamp, shown_zone())


def optional_time_text(timestamp: int | None) -> str:
    """Return a time as time_text does, and nothing for None: the text of a cell."""
    return "" if timestamp is None else time_text(timestamp)


def utc_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as ISO 8601 in UTC; the number itself if it is outside the calendar."""
    return _text(timestamp, UTC)


def as_of_text(time: datetime) -> str:
    """Return a time in the form that --as-of accepts, in the chosen zone."""
    return time.astimezone(shown_zone()).isoformat(timespec="seconds").replace("+00:00", "Z")


@lru_cache(64)  # the changes of a poll all have the same
def _text(timestamp: int, zone: tzinfo) -> str:
    try:
        time = datetime.fromtimestamp(timestamp / 1000, UTC).astimezone(zone)
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp} ms"


# Confirmations of a command before it changes data.


def confirms(question: str, no_answer: str) -> bool:
    """Print a question on stdout; return whether the answer on stdin is yes. `value_formatter` formats its values.

    Raises:
        ConfigError: stdin ends without an answer; its text is `no_answer`.

    """
    emit(question, flush=True)
    answer = "" if sys.stdin is None else sys.stdin.readline()  # None: it was closed before the command began
    if not answer:
        raise ConfigError(no_answer)
    return answer.strip().lower() == "y"


def confirms_on_terminal(question: str, refusal: str) -> bool:
    """Prompt at the terminal; return whether the answer is yes. stdin may be a pipe, and cannot confirm.

    Raises:
        ConfigError: stdin is not a terminal, or ends, or the question cannot be seen; its text is `refusal`.

    """
    terminal = next((stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty()), None)
    if terminal is None or sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(refusal)
    terminal.write(f"{printable(question)} ")
    terminal.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigError(refusal)
    return answer.strip().lower() in {"y", "yes"}


# Long output goes through a pager on a terminal, as git's does.
#
# `ACLOG_PAGER`, else `PAGER`, else less; `cat` or nothing for none. It is started at the first line that is printed:
# earlier output, such as a progress bar, goes to the terminal. Leaving it early does not end the command: the output
# printed after that goes nowhere, and the exit code is the command's.


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
    from shutil import which  # a terminal alone has a pager

    program = command.split()[0]
    return None if not _SHELL & set(program) and which(program) is None else command


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
