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
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigError(no_answer)
    return answer.strip().lower() == "y"


def confirms_on_terminal(question: str, nobody: str) -> bool:
    """Ask on stderr; return whether the answer is yes. What stdin is not typed at a terminal confirms nothing.

    Raises:
        ConfigError: stdin is no terminal, or ends; its text is `nobody`.

    """
    if not sys.stdin.isatty():
        raise ConfigError(nobody)
    sys.stdout.flush()
    sys.stderr.write(f"{printable(question)} ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigError(nobody)
    return answer.strip().lower() in {"y", "yes"}
