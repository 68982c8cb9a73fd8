"""Lines on stdout; errors, warnings and notes on stderr; times as text in the zone of the terminal; confirmations."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from aclog.metalog.errors import ConfigError, printable

# Output of commands on stdout: no other module of the command line prints.


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
    """Print a note on something unexpected: a torn tail, a lowered offset; or a text that begins with `warning: `."""
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


def has_notices_taken() -> bool:
    """Return whether notices are taken in this thread or task instead of printed."""
    return _TAKER.get() is not None


def _print(text: str) -> None:
    take = _TAKER.get()
    if take is not None:
        take(printable(text))
        return
    sys.stdout.flush()  # so that a notice appears after the output that precedes it
    print(f"aclog: {printable(text)}", file=sys.stderr, flush=True)


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
