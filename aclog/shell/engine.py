"""The shell without a terminal: a line in, lines of output out."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.shell.command import Command, Line, ShellState, Word, complaint, parse_arguments, parse_line
from aclog.shell.commands import (
    AT,
    CAT,
    CD,
    DIFF,
    EXIT,
    FIND,
    HISTORY,
    LS,
    PWD,
    TREE,
    WATCH,
    WHY,
    help_command,
    man_command,
)


def _all_commands() -> Mapping[str, Command]:
    by_name: dict[str, Command] = {}
    view = MappingProxyType(by_name)  # help and man describe all commands, themselves included
    commands = (
        AT,
        CAT,
        CD,
        DIFF,
        EXIT,
        FIND,
        HISTORY,
        LS,
        PWD,
        TREE,
        WATCH,
        WHY,
        help_command(view),
        man_command(view),
    )
    by_name.update((command.name, command) for command in sorted(commands, key=lambda command: command.name))
    return MappingProxyType(by_name)


COMMANDS = _all_commands()
"""Every command by name, sorted by name."""

ONE_SHOT_COMMANDS = MappingProxyType({name: c for name, c in COMMANDS.items() if not c.at_prompt_only})
"""The commands that make sense as the only one of a process."""


def start_command(
    words: Sequence[Word], state: ShellState, commands: Mapping[str, Command] = COMMANDS
) -> Iterator[Line]:
    """Parse a command and return its output; the command runs as the output is consumed. Without words nothing runs.

    The iterator raises any MetadataError or OSError of the command.

    Raises:
        ConfigError: there is no such command, or its arguments are invalid.

    """
    if not words:
        return iter(())
    command = commands.get(words[0].text)
    if command is None:
        choices = ", ".join(f"'{name}'" for name in commands)
        raise ConfigError(f"invalid choice: '{words[0].text}' (choose from {choices})")
    return command.run(state, parse_arguments(command.signature, words[1:]))


def run_command(line: str, state: ShellState) -> Iterator[Line]:
    """Run a typed line and add it to the history; an error becomes a line of output, and the session continues."""
    if not line.strip():
        return
    state.history.append(line.strip())
    try:
        yield from start_command(parse_line(line), state)
    except (MetadataError, OSError) as error:
        yield complaint(str(error))
