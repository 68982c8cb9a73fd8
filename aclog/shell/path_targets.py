"""The paths that a command was given, each with the places it means."""

from collections.abc import Iterator

from aclog.shell.glob import parse_glob
from aclog.shell.state import ShellState
from aclog.shell.walk import Place, places
from aclog.shell.words import Word

HERE = Word(text=".", glob=".")


def found_at(state: ShellState, target: Word) -> Iterator[Place]:
    """The places that a target means, lazily."""
    return places(state.tree(), state.working_directory, target.glob)


def called(target: Word, place: Place) -> str:
    """What messages call a place: as it was typed, or its path where a glob was typed."""
    is_glob = any(parse_glob(component).pattern for component in target.glob.split("/"))
    return place.path if is_glob else target.text
