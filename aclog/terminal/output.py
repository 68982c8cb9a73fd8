"""What commands print on stdout: no other module of the command line prints."""

import sys
from collections.abc import Callable

from aclog.metalog.printable import printable


def shown() -> Callable[[object], str]:
    """Return how a value of one line is shown on stdout: escaped on a terminal, in a pipe as it is."""
    return _printable if sys.stdout.isatty() else str


def say(line: object = "", *, end: str = "\n", flush: bool = False) -> None:
    """Print a line for people, as `shown`."""
    print(shown()(line), end=end, flush=flush)


def emit(text: str, *, flush: bool = False) -> None:
    """Print a text as it is: JSON (aclog.terminal.json_text), or lines whose values are `shown`."""
    print(text, flush=flush)


def _printable(value: object) -> str:
    return printable(str(value))
