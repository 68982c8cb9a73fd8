"""`history`: the lines typed in this session and, at a prompt, in earlier ones."""

from collections.abc import Iterator

from aclog.metalog.errors import ConfigError
from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line
from aclog.shell.state import ShellState


def _history(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    word = arguments.one("numEntriesToShow")
    count = _count(word.text) if word else len(state.history)
    for number in range(max(0, len(state.history) - count), len(state.history)):
        yield Line(f"{number:5d}  {state.history[number]}")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ConfigError(f"history: {text!r} is not a number of lines: expected 0 or more")
    return int(text)


HISTORY = Command(
    name="history",
    description="Print the lines that were typed.",
    signature=Signature(
        arguments=(
            Argument(name="numEntriesToShow", count=Count.OPTIONAL, help="How many of the last lines; by default all."),
        )
    ),
    run=_history,
    at_prompt_only=True,
)
