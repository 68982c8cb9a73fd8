"""`man`: the help page of a command."""

from collections.abc import Iterator, Mapping

from aclog.shell.arguments import Argument, Arguments, Count, Signature, manual
from aclog.shell.command import Command, Line, complaint
from aclog.shell.state import ShellState


def man_command(commands: Mapping[str, Command]) -> Command:
    """Return the command that describes one of `commands`, which may be filled in later: it describes itself, too."""

    def show_manual(_: ShellState, arguments: Arguments) -> Iterator[Line]:
        """Print the help page of one command."""
        word = arguments.one("cmd")
        command = commands.get(word.text) if word else None
        if word and command:
            page = manual(command.name, command.description, command.signature)
            yield from map(Line, [*page, *(["", *command.notes] if command.notes else [])])
        elif word:
            yield complaint(f"man: unknown command {word.text}. Type help to get a list of commands.")

    return Command(
        name="man",
        description="Print the manual of a command.",
        signature=Signature(arguments=(Argument(name="cmd", count=Count.ONE, help="The command."),)),
        run=show_manual,
        suggestions=lambda _, __: commands,
    )
