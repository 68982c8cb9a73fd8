"""Completion of `aclog shell` command lines in the user's shell: commands and their arguments."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from attrs import evolve

from aclog.cli.completion.in_child import words_in_child
from aclog.cli.completion.names import SECONDS
from aclog.cli.flags.groups import group_from
from aclog.cli.flags.source import SourceFlags
from aclog.shell.completion import complete
from aclog.shell.engine import ONE_SHOT_COMMANDS
from aclog.shell.state import ShellState
from aclog.shell.words import quoted, split_line
from aclog.sources.text_lines import STDIN

_SPECIAL = re.compile(r"""[\s*?{}\\'"$`!&;|<>()#~\[\]]""")
"""Characters that some shell, or our globs, treat specially; percent-encoded they are safe everywhere."""


def complete_words(context: typer.Context, incomplete: str) -> list[str]:
    """Return the completions of the last word on the command line; none if the source cannot be read in time."""
    before = context.params.get("command") or []
    if not before:
        return [name for name in ONE_SHOT_COMMANDS if name.startswith(incomplete)]
    if before[0] not in ONE_SHOT_COMMANDS:
        return []
    # The state is read where nothing can ask for a password or keep the user waiting.
    words = words_in_child(lambda: list(_words(before, incomplete, _state(context.params))), wait_seconds=SECONDS)
    return list(words)


def _state(given: Mapping[str, Any]) -> ShellState:
    """Return the state that the options before the command name. Raises as choose_source and ShellState.go_to."""
    flags = group_from(SourceFlags, given)
    if flags.acls == STDIN:  # completion must not consume the input of the command
        flags = evolve(flags, acls=None)
    chosen = flags.choose(notify=lambda _: None)
    state = ShellState(source=chosen.source)
    state.go_to(chosen.moment)
    return state


def _words(before: list[str], incomplete: str, state: ShellState) -> Iterator[str]:
    line = " ".join(map(quoted, [*before, incomplete])) if incomplete else " ".join(map(quoted, before)) + " "
    for candidate in complete(line, state).candidates:
        [word] = split_line(candidate.text).words
        yield _path(word.text) if ONE_SHOT_COMMANDS[before[0]].path_arguments else word.text


def _path(text: str) -> str:
    """Return the path with its last name, which completion adds, encoded; the part that was typed is unchanged."""
    parent, slash, name = text.removesuffix("/").rpartition("/")
    return parent + slash + _SPECIAL.sub(_encoded, name) + text[len(parent + slash + name) :]


def _encoded(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())
