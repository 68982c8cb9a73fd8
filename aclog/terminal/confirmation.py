"""Questions that a command asks before it changes something."""

import sys

from aclog.metalog.errors import ConfigError
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
