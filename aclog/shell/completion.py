"""What could come next in a line: commands, paths, and the words that a command takes."""

from collections.abc import Iterable, Iterator
from itertools import islice

from attrs import frozen

from aclog.metalog.errors import MetadataError
from aclog.shell.command import Command
from aclog.shell.engine import COMMANDS
from aclog.shell.path_names import encode_name
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory
from aclog.shell.walk import places, sure_prefix
from aclog.shell.words import Split, Word, quoted, split_line

MOST_CANDIDATES = 300
MOST_KINDS = 50
"""More candidates than this are not looked up to learn which of them are directories."""


@frozen(kw_only=True)
class Candidate:
    """A word that fits: `text` takes the place of the line's last word, `display` is what a menu shows."""

    text: str
    display: str


@frozen(kw_only=True)
class Completion:
    """Where in the line the last word begins, and what could stand there; at most MOST_CANDIDATES."""

    start: int
    candidates: tuple[Candidate, ...]


def complete(line: str, state: ShellState) -> Completion:
    """What the line, up to the cursor, could be completed to. A state that cannot be read completes to nothing."""
    split = split_line(line)
    try:
        candidates = tuple(islice(_candidates(line, split, state), MOST_CANDIDATES))
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


def _words_of(command: Command, given: list[str], state: ShellState) -> Iterable[str]:
    """The words that a command's next argument may be, where they are known."""
    options = {option.flag for option in command.signature.options}
    if given and given[-1] in options:
        return ()
    return command.suggestions(state, len(given))


def _plain(words: Iterable[str], beginning: str) -> Iterator[Candidate]:
    return (Candidate(text=quoted(word), display=word) for word in words if word.startswith(beginning))


def _paths(typed: str, word: Word, state: ShellState) -> Iterator[Candidate]:
    parent, slash, beginning = word.text.rpartition("/")
    directory = word.glob.rpartition("/")[0] + slash or "."
    place = next(places(state.tree(), state.working_directory, directory), None)
    if place is None or not isinstance(place.node, Directory):
        return
    names = (name for name in place.node.names(sure_prefix(beginning)) if encode_name(name).startswith(beginning))
    found = list(islice(names, MOST_CANDIDATES))
    for name in found:
        is_directory = len(found) <= MOST_KINDS and isinstance(place.node.child(name), Directory)
        shown = encode_name(name) + ("/" if is_directory else "")
        # a glob in the parent stays one: only the name is quoted, unless the word already holds quotes
        whole = quoted(parent + slash + shown) if _has_quotes(typed) else parent + slash + quoted(shown)
        yield Candidate(text=whole, display=shown)


def _has_quotes(typed: str) -> bool:
    return any(character in typed for character in "'\"\\")
