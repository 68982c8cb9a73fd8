"""`help`, `man` and `history`: what the shell says about itself."""

from collections.abc import Iterator, Mapping

from aclog.metalog.errors import ConfigError
from aclog.shell.arguments import Argument, Arguments, Count, Signature, described, manual
from aclog.shell.command import Command
from aclog.shell.output import Line, complaint
from aclog.shell.state import ShellState


def help_page(commands: Mapping[str, Command]) -> list[str]:
    """The list of commands that `help` prints."""
    choices = "{" + ",".join(commands) + "}"
    page = ["The aclog shell: a metadata image as a tree of files.", "", f"usage:  {choices} ...", ""]
    page += ["positional arguments:", f"  {choices}"]
    for command in commands.values():
        page += described(command.name, command.description, indent=4)
    return [*page, "", "man COMMAND tells more. Paths may hold the globs *, ? and {a,b}; quotes keep them plain."]


def telling_commands(commands: Mapping[str, Command]) -> tuple[Command, ...]:
    """The commands that speak of all `commands`, which may be filled in later."""

    def show_help(_: ShellState, __: Arguments) -> Iterator[Line]:
        yield from map(Line, help_page(commands))

    def show_manual(_: ShellState, arguments: Arguments) -> Iterator[Line]:
        """The help page of one command."""
        word = arguments.one("cmd")
        command = commands.get(word.text) if word else None
        if word and command:
            page = manual(command.name, command.description, command.signature)
            yield from map(Line, [*page, *(["", *command.notes] if command.notes else [])])
        elif word:
            yield complaint(f"man: unknown command {word.text}. Type help to get a list of commands.")

    return (
        Command(name="help", description="Print this list of commands.", signature=Signature(), run=show_help),
        Command(
            name="man",
            description="Print what a command does and takes.",
            signature=Signature(arguments=(Argument(name="cmd", count=Count.ONE, help="The command."),)),
            run=show_manual,
            suggestions=lambda _, __: commands,
        ),
    )


def _history(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    word = arguments.one("numEntriesToShow")
    count = _count(word.text) if word else len(state.history)
    for number in range(max(0, len(state.history) - count), len(state.history)):
        yield Line(f"{number:5d}  {state.history[number]}")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ConfigError(f"history: {text!r} is no number of lines: expected 0 or more")
    return int(text)


HISTORY = Command(
    name="history",
    description="Print the lines that were typed.",
    signature=Signature(
        arguments=(
            Argument(
                name="numEntriesToShow", count=Count.OPTIONAL, help="How many of the last lines; all if not given."
            ),
        )
    ),
    run=_history,
    at_prompt_only=True,
)
