"""Errors, warnings and notes on stderr, each on one line."""

import sys

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), 127)} | {
    0x85: "\\x85",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def one_line(text: str) -> str:
    """Return the text with control characters and line ends escaped, so that a name cannot forge a line."""
    return text.translate(_CONTROLS)


def complain(text: str) -> None:
    """Print an error."""
    _print(text)


def warn(text: str) -> None:
    """Print a warning: the command continues."""
    _print(f"warning: {text}")


def note(text: str) -> None:
    """Print a note on something the user may not expect: a torn tail, a lowered offset."""
    _print(f"note: {text}")


def _print(text: str) -> None:
    sys.stdout.flush()  # so that a notice appears after the output that precedes it
    print(f"aclog: {one_line(text)}", file=sys.stderr, flush=True)
