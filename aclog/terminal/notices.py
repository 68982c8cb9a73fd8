"""What is said on stderr: errors, warnings and notes, each in one line."""

import sys

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), 127)} | {
    0x85: "\\x85",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def one_line(text: str) -> str:
    """The text with control characters and line ends spelled out, so that a name cannot forge a line."""
    return text.translate(_CONTROLS)


def complain(text: str) -> None:
    """Say what went wrong."""
    _say(text)


def warn(text: str) -> None:
    """Say what the user should look at, while the work goes on."""
    _say(f"warning: {text}")


def note(text: str) -> None:
    """Say what was done that the user may not expect: a torn tail, an offset that was lowered."""
    _say(f"note: {text}")


def _say(text: str) -> None:
    sys.stdout.flush()
    print(f"aclog: {one_line(text)}", file=sys.stderr, flush=True)
