"""The shell without its terminal: a line in, lines out."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.shell.arguments import parse_arguments
from aclog.shell.command import Command
from aclog.shell.commands.at import AT
from aclog.shell.commands.cat import CAT, FIND, TREE
from aclog.shell.commands.cd import CD, EXIT, PWD
from aclog.shell.commands.diff import DIFF
from aclog.shell.commands.help import HISTORY, telling_commands
from aclog.shell.commands.ls import LS
from aclog.shell.commands.watch import WATCH
from aclog.shell.commands.why import WHY
from aclog.shell.output import Line, complaint
from aclog.shell.state import ShellState
from aclog.shell.words import Word, parse_line


def _all_commands() -> Mapping[str, Command]:
    found: dict[str, Command] = {}
    telling = telling_commands(MappingProxyType(found))
    every = (AT, CAT, CD, DIFF, EXIT, FIND, HISTORY, LS, PWD, TREE, WATCH, WHY, *telling)
    found.update((command.name, command) for command in sorted(every, key=lambda command: command.name))
    return MappingProxyType(found)


COMMANDS = _all_commands()
"""Every command, by its name, in the order of the names."""

ONE_SHOT_COMMANDS = MappingProxyType({name: c for name, c in COMMANDS.items() if not c.at_prompt_only})
"""Those that make sense as a single command on a command line."""


def start_command(
    words: Sequence[Word], state: ShellState, commands: Mapping[str, Command] = COMMANDS
) -> Iterator[Line]:
    """Choose the command and read its arguments; what comes back runs it as it is consumed. No words: nothing runs.

    Raises:
        ConfigError: there is no such command, or it does not take these arguments.

    The iterator raises any MetadataError or OSError that the command meets.
    """
    if not words:
        return iter(())
    command = commands.get(words[0].text)
    if command is None:
        choices = ", ".join(f"'{name}'" for name in commands)
        raise ConfigError(f"invalid choice: '{words[0].text}' (choose from {choices})")
    return command.run(state, parse_arguments(command.signature, words[1:]))


def run_command(line: str, state: ShellState) -> Iterator[Line]:
    """Run a line as it was typed, and remember it; errors come as lines that say so, and the session goes on."""
    if not line.strip():
        return
    state.history.append(line.strip())
    try:
        yield from start_command(parse_line(line), state)
    except (MetadataError, OSError) as error:
        yield complaint(str(error))
