"""Errors, warnings and notes on stderr, each on one line."""

import sys

from aclog.metalog.printable import printable


def complain(text: str) -> None:
    """Print an error."""
    _print(text)


def warn(text: str) -> None:
    """Print a warning: the command continues."""
    _print(f"warning: {text}")


def note(text: str) -> None:
    """Print a note on something the user may not expect: a torn tail, a lowered offset; or a warning that says so."""
    _print(text if text.startswith("warning: ") else f"note: {text}")


def _print(text: str) -> None:
    sys.stdout.flush()  # so that a notice appears after the output that precedes it
    print(f"aclog: {printable(text)}", file=sys.stderr, flush=True)
