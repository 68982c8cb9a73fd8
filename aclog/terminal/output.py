"""Lines on stdout; errors, warnings, notes and progress on stderr."""

import io
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeAlias, TypeVar

from attrs import define, field

from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import ConfigError, printable
from aclog.snapshots.freshness import Freshness

if TYPE_CHECKING:
    from subprocess import Popen

    from aclog.terminal.bar import Bar


# What commands print on stdout: no other module of the command line prints.


def value_formatter() -> Callable[[object], str]:
    """Return how a value of one line is shown on stdout: escaped on a terminal, in a pipe as it is."""
    return _printable if sys.stdout.isatty() else str


def say(line: object = "", *, end: str = "\n", flush: bool = False) -> None:
    """Print a line for people, in the form of `value_formatter`."""
    print(value_formatter()(line), end=end, flush=flush)


def emit(text: str, *, flush: bool = False) -> None:
    """Print a text as it is: JSON (aclog.terminal.columns), or lines whose values `value_formatter` has formatted."""
    print(text, flush=flush)


def _printable(value: object) -> str:
    return printable(str(value))


# Errors, warnings and notes on stderr, each on one line.


def complain(text: str) -> None:
    """Print an error."""
    _print(text)


def warn(text: str) -> None:
    """Print a warning: the command continues."""
    _print(f"warning: {text}")


def note(text: str) -> None:
    """Print a note on something the user may not expect: a torn tail, a lowered offset; or a warning that says so."""
    _print(text if text.startswith("warning: ") else f"note: {text}")


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


def _print(text: str) -> None:
    take = _TAKER.get()
    if take is not None:
        take(printable(text))
        return
    sys.stdout.flush()  # so that a notice appears after the output that precedes it
    print(f"aclog: {printable(text)}", file=sys.stderr, flush=True)


# Progress on stderr: what a command does, how far it is and how long it will take; nothing if it is not a terminal.
#
# Work of less than a second shows nothing. A thread draws, so that work which does not report its progress is seen to
# be under way too; to report it costs two assignments.


_T = TypeVar("_T")

Advance: TypeAlias = Callable[[int, int | None], None]
"""Called with the amount done and the total, if it is known."""

BYTES = "bytes"
"""The unit of amounts that are shown as MB and the like."""

DELAY_SECONDS = 1.0
_STEP = 1024
"""How many items pass between two reports."""


@contextmanager
def progress(what: str, unit: str = "", *, streams: bool = False) -> Iterator[Advance]:
    """Show what is being done during the `with`, from the end of its first second; it is removed at the end.

    `unit` is a noun in the plural, or BYTES. Inside another `progress` that is shown, nothing is. `streams`: the work
    writes to stdout, and nothing is shown if that is a terminal, since the output is its progress.
    """
    if (
        _TAKER.get() is not None
        or not sys.stderr.isatty()
        or (streams and sys.stdout.isatty())
        or os.environ.get("TERM") == "dumb"
    ):
        yield _ignore
        return
    amounts = Amounts()
    line = _ProgressLine(printable(what), unit, amounts)
    timer = threading.Timer(DELAY_SECONDS, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield amounts.set
    finally:
        timer.cancel()
        line.stop()


def tracked(
    items: Iterable[_T], what: str, unit: str, total: int | None = None, *, streams: bool = False
) -> Iterator[_T]:
    """Yield the items, and show how many meanwhile, as `progress` does.

    With `streams`, each item becomes output: if that goes to a terminal, the first one is waited for only.
    """
    if streams and sys.stdout.isatty():
        iterator = iter(items)
        with progress(what, unit):
            first = list(islice(iterator, 1))
        yield from first
        yield from iterator
        return
    with progress(what, unit, streams=streams) as advance:
        if advance is _ignore:
            yield from items
            return
        for number, item in enumerate(items):
            if not number % _STEP:
                advance(number, total)
            yield item


@define(eq=False)
class Amounts:
    """How far the work is: written by it, read by the thread that draws."""

    done: int = 0
    total: int | None = None

    def set(self, done: int, total: int | None) -> None:
        """Take the amount done and the total."""
        self.done, self.total = done, total

    def get(self) -> tuple[int, int | None]:
        """Return the amount done and the total."""
        return self.done, self.total


@define(eq=False)
class _ProgressLine:
    """A bar that may be on the screen; started by the timer's thread, stopped by the one that works."""

    what: str
    unit: str
    amounts: Amounts
    _guard: threading.Lock = field(factory=threading.Lock)
    _stopped: bool = False
    _bar: "Bar | None" = None

    def start(self) -> None:
        """Draw from now on, unless the work has ended."""
        from aclog.terminal.bar import Bar, is_shown  # takes a tenth of a second, which only long work pays

        with self._guard:
            if not self._stopped and not is_shown():
                self._bar = Bar(self.what, self.unit, self.amounts.get)
                self._bar.start()

    def stop(self) -> None:
        """Remove what is drawn, and draw no more."""
        with self._guard:
            self._stopped = True
            if self._bar is not None:
                self._bar.stop()


def _ignore(_done: int, _total: int | None) -> None:
    """Take an amount that nobody is shown."""


# Notices of a server, of which at most so many of a kind are printed.
#
# Apart from the other notices, which `--help` imports: attrs takes a fifth of the time to print a help.


@define(eq=False, kw_only=True)
class FewNotices:
    """Prints notices of one kind, so many a minute at most: a server repeats some for each request. Thread-safe."""

    tell: Callable[[str], None]
    most: int = 20
    seconds: float = 60.0
    clock: Callable[[], float] = elapsed_seconds
    _began: float | None = field(default=None, init=False)
    _printed: int = field(default=0, init=False)
    _left_out: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __call__(self, text: str) -> None:
        """Print a notice, or leave it out; the first one after those that were left out says how many they were."""
        left_out = self.admit()
        if left_out is None:
            return
        if left_out:
            self.tell(
                f"{left_out:,} notices such as the next one were left out: at most {self.most} a minute are shown"
            )
        self.tell(text)

    def admit(self) -> int | None:
        """Return how many were left out before one that is printed; None if this one is left out."""
        with self._lock:
            now, left_out = self.clock(), 0
            if self._began is None or now - self._began >= self.seconds:
                left_out, self._left_out = self._left_out, 0
                self._began, self._printed = now, 0
            if self._printed == self.most:
                self._left_out += 1
                return None
            self._printed += 1
            return left_out


# The time zone of the person at the terminal: how times without a zone are read, and how times are shown.


TIMEZONE_VARIABLE = "ACLOG_TIMEZONE"

_ZONE: ContextVar[tzinfo | None] = ContextVar("aclog_timezone", default=None)
"""Of this invocation of a command, which runs in a context of its own (aclog.cli.invocation.run)."""


def use_zone(text: str) -> None:
    """Use a zone for the rest of this invocation: a name such as Europe/Berlin, an offset, UTC or `local`.

    Raises:
        ConfigError: no such zone.

    """
    _ZONE.set(_parsed("--timezone", text))


def chosen_zone() -> tzinfo | None:
    """Return the zone of --timezone, or of ACLOG_TIMEZONE; None if nobody chose one.

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


def utc_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as ISO 8601 in UTC; the number itself if it is outside the calendar."""
    return _text(timestamp, UTC)


@lru_cache(64)  # the changes of a poll all have the same
def _text(timestamp: int, zone: tzinfo) -> str:
    try:
        time = datetime.fromtimestamp(timestamp / 1000, UTC).astimezone(zone)
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp} ms"


# Warnings on stderr that a state is old.


STALE_SECONDS = 5.0
"""From this age on a state is said to be old. A leader that works answers an observer at least every second."""


def age_text(freshness: Freshness) -> str:
    """Return how old a state is, from when, from whom, and why it is no newer."""
    time = time_text(freshness.time)
    if not freshness.followed:
        return f"this state was read {freshness.seconds:.0f} s ago from {freshness.server}, at {time}"
    why = f": {freshness.problem}" if freshness.problem else ""
    return (
        f"the cluster has not answered for {freshness.seconds:.0f} s; this state is from {time}, "
        f"by {freshness.server}{why}"
    )


def warn_if_stale(freshness: Freshness | None) -> None:
    """Warn if the state may be out of date; None is the age of a state that no cluster has told."""
    if freshness is not None and freshness.seconds >= STALE_SECONDS:
        warn(age_text(freshness))


@define
class AgeWatch:
    """Warns when a state becomes old, and again whenever its age has doubled."""

    _next: float = field(default=0.0, init=False)

    def tell(self, freshness: Freshness | None) -> None:
        """Warn if it is time to."""
        if freshness is None or freshness.seconds < STALE_SECONDS:
            self._next = 0.0
        elif freshness.seconds >= self._next:
            self._next = 2 * freshness.seconds
            warn(age_text(freshness))


# A pager's process, and what stands for stdout while it shows what is printed.


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


# Long output goes through a pager on a terminal, as git's does.
#
# `ACLOG_PAGER`, else `PAGER`, else less; `cat` or nothing for none. It is started at the first line that is printed:
# what comes before, such as a progress bar, has the terminal for itself. Who leaves it early ends no command: what is
# printed after that goes nowhere, and the exit code is the command's.


VARIABLE = "ACLOG_PAGER"
_NONE = ("", "cat")
_SHELL = frozenset("|&;<>()$`\\\"'*?[#~=% \t\n")
"""In a command with one of these a shell finds out what is to be run."""

_REFUSED: ContextVar[bool] = ContextVar("aclog_no_pager", default=False)
"""Whether this invocation of a command has --no-pager."""
_PAGED: ContextVar["PagerProcess | None"] = ContextVar("aclog_pager", default=None)


def refuse_pager() -> None:
    """Use no pager for the rest of this invocation (--no-pager)."""
    _REFUSED.set(True)


def page_output() -> None:
    """Let what this invocation prints from now on go through a pager, if it prints on a terminal and one is wanted."""
    if _REFUSED.get() or _PAGED.get() is not None or not sys.stdout.isatty():
        return
    if (command := pager_command(os.environ)) is not None:
        paged = PagerProcess(command=command, terminal=sys.stdout)
        _PAGED.set(paged)
        sys.stdout = PagedOutput(paged)


def pager_command(environment: Any) -> str | None:
    """Return the pager to use, None for none: a program that is not installed is none."""
    if environment.get("TERM", "dumb") == "dumb":
        return None
    setting = next((text for name in (VARIABLE, "PAGER") if (text := environment.get(name)) is not None), "less")
    command = setting.strip()
    if command in _NONE:
        return None
    program = command.split()[0]
    return None if not _SHELL & set(program) and shutil.which(program) is None else command


def is_reader_gone() -> bool:
    """Return whether nobody reads what is printed any more: a list may end."""
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


# Questions that a command asks before it changes something.


def confirms(question: str, no_answer: str) -> bool:
    """Ask on stdout; return whether the answer on stdin is yes. Values in the question: see `value_formatter`.

    Raises:
        ConfigError: stdin ends without an answer; its text is `no_answer`.

    """
    emit(question, flush=True)
    answer = "" if sys.stdin is None else sys.stdin.readline()  # None: it was closed before the command began
    if not answer:
        raise ConfigError(no_answer)
    return answer.strip().lower() == "y"


def confirms_on_terminal(question: str, nobody: str) -> bool:
    """Ask at the terminal; return whether the answer is yes. Without one nobody can confirm: stdin may be anything.

    Raises:
        ConfigError: stdin is no terminal, or ends, or the question cannot be seen; its text is `nobody`.

    """
    terminal = next((stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty()), None)
    if terminal is None or sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(nobody)
    terminal.write(f"{printable(question)} ")
    terminal.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigError(nobody)
    return answer.strip().lower() in {"y", "yes"}
