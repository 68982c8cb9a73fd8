"""The answer to a shell that completes: a line that says what to do with the others, then one line a candidate.

Each is the word, and after a tab what it means (not for bash, which shows words alone). Nothing else is ever printed,
and no error: it would stand in the middle of what the user types.
"""

import os
import sys
from collections.abc import Iterator, Sequence

import typer
from typer.main import get_command

from aclog.cli.completion.bash_line import parse_line, to_type
from aclog.cli.completion.candidates import candidates


def complete(shell: str, arguments: Sequence[str], app: typer.Typer) -> int:
    """Print what completes a command line, and return 0.

    zsh and fish pass the words, the one that is completed last; bash passes the line up to the cursor, and the part of
    it that is replaced.
    """
    try:
        lines = list(_bash(app, *arguments) if shell == "bash" else _words(app, arguments))
    except Exception:  # noqa: BLE001 - whatever it is, the prompt of the user's shell is no place to say it
        return 0
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _words(app: typer.Typer, arguments: Sequence[str]) -> Iterator[str]:
    *before, word = arguments or [""]
    answer = candidates(get_command(app), _expanded(before), word)
    yield answer.kind
    yield from (f"{item.value}\t{item.help}" if item.help else item.value for item in answer.found)


def _bash(app: typer.Typer, line: str, tail: str) -> Iterator[str]:
    typed = parse_line(line)
    answer = candidates(get_command(app), _expanded(typed.words[1:-1]), typed.word)
    yield answer.kind
    yield from filter(None, (to_type(item.value, typed, tail) for item in answer.found))


def _expanded(words: Sequence[str]) -> list[str]:
    """Return words with `~` and exported variables as the shell will expand them: paths of sources have them."""
    return [os.path.expanduser(os.path.expandvars(word)) for word in words]  # noqa: PTH111 - a word may be no path
