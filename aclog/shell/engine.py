"""The shell without a terminal: a line in, lines of output out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.values import frozen
from aclog.shell.command import (
    Command,
    Line,
    ShellState,
    Split,
    Word,
    complaint,
    parse_arguments,
    parse_line,
    quoted,
    split_line,
)
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
    QUIT,
    TREE,
    WATCH,
    WHY,
    help_command,
    man_command,
)
from aclog.shell.tree import Directory, encode_name
from aclog.shell.walk import common_prefix, resolve


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
        QUIT,
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


# Completion of a line: commands, paths, and the words that a command suggests.


MAX_CANDIDATES = 300
MAX_LOOKED_UP = 50
"""With more candidates than this, directories are not marked by a slash: each would have to be looked up."""


@frozen(kw_only=True)
class Candidate:
    """A candidate: `text` replaces the line's last word, `display` is its text in a menu."""

    text: str
    display: str


@frozen(kw_only=True)
class Completion:
    """The start of the line's last word, and the candidates for it, at most MAX_CANDIDATES."""

    start: int
    candidates: tuple[Candidate, ...]


def complete(line: str, state: ShellState) -> Completion:
    """Complete a line up to the cursor; there are no candidates if the state cannot be read."""
    split = split_line(line)
    try:
        candidates = tuple(islice(_candidates(line, split, state), MAX_CANDIDATES))
    except (MetadataError, OSError):
        candidates = ()
    return Completion(start=split.last_start, candidates=candidates)


def _candidates(line: str, split: Split, state: ShellState) -> Iterator[Candidate]:
    typed = line[split.last_start :]
    *before, last = split.words if typed else (*split.words, Word(text="", glob=""))
    if not before:
        return _plain(COMMANDS, last.text)
    command = COMMANDS.get(before[0].text)
    if command is None:
        return iter(())
    if last.text.startswith("-"):
        return _plain((option.flag for option in command.signature.options), last.text)
    if command.path_arguments:
        return _paths(typed, last, state)
    return _plain(_words_of(command, [word.text for word in before[1:]], state), last.text)


def _words_of(command: Command, arguments: list[str], state: ShellState) -> Iterable[str]:
    """Return the words that a command suggests for its next argument."""
    options = {option.flag for option in command.signature.options}
    if arguments and arguments[-1] in options:
        return ()
    return command.suggestions(state, len(arguments))


def _plain(words: Iterable[str], beginning: str) -> Iterator[Candidate]:
    return (
        Candidate(text=quoted(word), display=word)
        for word in words
        if word.startswith(beginning) and word.isprintable()
    )


def _paths(typed: str, word: Word, state: ShellState) -> Iterator[Candidate]:
    parent, slash, beginning = word.text.rpartition("/")
    directory = word.glob.rpartition("/")[0] + slash or "."
    location = next(resolve(state.tree(), state.working_directory, directory), None)
    if location is None or not isinstance(location.node, Directory):
        return
    names = (name for name in location.node.names(common_prefix(beginning)) if encode_name(name).startswith(beginning))
    matches = list(islice(names, MAX_CANDIDATES))
    for name in matches:
        is_directory = len(matches) <= MAX_LOOKED_UP and isinstance(location.node.child(name), Directory)
        display = encode_name(name) + ("/" if is_directory else "")
        # Only the name is quoted, so that a glob in the parent stays active; unless the word contains quotes already.
        whole = quoted(parent + slash + display) if _has_quotes(typed) else parent + slash + quoted(display)
        yield Candidate(text=whole, display=display)


def _has_quotes(typed: str) -> bool:
    return any(character in typed for character in "'\"\\")
