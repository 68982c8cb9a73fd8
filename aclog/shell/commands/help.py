"""`help`: the list of commands."""

from collections.abc import Iterator, Mapping

from aclog.shell.arguments import Arguments, Signature, described
from aclog.shell.command import Command, Line
from aclog.shell.state import ShellState


def help_page(commands: Mapping[str, Command]) -> list[str]:
    """Return the lines that `help` prints."""
    choices = "{" + ",".join(commands) + "}"
    page = ["The aclog shell: a metadata image as a tree of files.", "", f"usage:  {choices} ...", ""]
    page += ["positional arguments:", f"  {choices}"]
    for command in commands.values():
        page += described(command.name, command.description, indent=4)
    return [*page, "", "See man COMMAND for more. Paths may contain the globs *, ? and {a,b}; quotes disable them."]


def help_command(commands: Mapping[str, Command]) -> Command:
    """Return the command that lists `commands`, which may be filled in later: it lists itself, too."""

    def show_help(_: ShellState, __: Arguments) -> Iterator[Line]:
        yield from map(Line, help_page(commands))

    return Command(name="help", description="Print this list of commands.", signature=Signature(), run=show_help)
