"""Questions that a command asks before it changes something."""

import sys

from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.terminal.output import emit


def confirms(question: str, no_answer: str) -> bool:
    """Ask on stdout; return whether the answer on stdin is yes. Values in the question are `shown`.

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
    seen = next((stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty()), None)
    if seen is None or sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(nobody)
    seen.write(f"{printable(question)} ")
    seen.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigError(nobody)
    return answer.strip().lower() in {"y", "yes"}
