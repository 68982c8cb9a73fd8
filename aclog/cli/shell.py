"""`aclog shell`: the tree of a state."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import click
from attrs import evolve
from click.exceptions import Exit

from aclog.cli.app import source_among
from aclog.cli.completion import SECONDS, words_in_child
from aclog.cli.flags.common import ShowSecrets, group_from
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Argument, Group
from aclog.shell.command import ShellState, quoted, split_line
from aclog.shell.engine import ONE_SHOT_COMMANDS, complete
from aclog.sources.acl_lines import STDIN

# `aclog shell`: the tree of a state.


app = Group()


def _complete(context: click.Context, incomplete: str) -> list[str]:

    return complete_words(context, incomplete)


def _split(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the source before a shell command, if the first word is no shell command."""
    return (None, words) if not words or words[0] in ONE_SHOT_COMMANDS else (words[0], words[1:])


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@source_among("command", _split)
def shell(
    source: SourceFlags,
    command: Annotated[
        list[str] | None,
        Argument(
            metavar="[COMMAND...]",
            help="One shell command; without it, a prompt is started.",
            autocompletion=_complete,
        ),
    ] = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Browse the state as a tree: /acl/id/<uuid>, /acl/resource, /acl/principal, /image, /scram, /delegationToken, ...

    The commands are those of kafka-metadata-shell (ls, cat, cd, find, tree,
    man, ...), plus at, why, diff and watch.

    [bold]Examples[/]

      aclog shell DIR
      aclog shell --log DIR ls /acl/resource/TOPIC
      aclog shell --snapshot FILE cat '/acl/id/*'
    """
    from aclog.shell.command import ShellState
    from aclog.shell.session import run_shell

    choice = source.choose()
    state = ShellState(source=choice.source, show_secrets=show_secrets)
    with choice.reading():
        state.go_to(choice.moment)
    state.origins, state.premises = choice.origins, choice.premises
    raise Exit(run_shell(state, command or ()))


# Completion of `aclog shell` command lines in the user's shell: commands and their arguments.


_SPECIAL = re.compile(r"""[\s*?{}\\'"$`!&;|<>()#~\[\]]""")
"""Characters that some shell, or our globs, treat specially; percent-encoded they are safe everywhere."""


def complete_words(context: click.Context, incomplete: str) -> list[str]:
    """Return the completions of the last word on the command line; none if the source cannot be read in time."""
    before = context.params.get("command") or []
    if not before:
        return [name for name in ONE_SHOT_COMMANDS if name.startswith(incomplete)]
    if before[0] not in ONE_SHOT_COMMANDS:
        return []
    # The state is read in a process that cannot prompt for a password or keep the user waiting.
    words = words_in_child(lambda: list(_words(before, incomplete, _state(context.params))), wait_seconds=SECONDS)
    return list(words)


def _state(values: Mapping[str, Any]) -> ShellState:
    """Return the state that the options before the command name. Raises as choose_source and ShellState.go_to."""
    flags = group_from(SourceFlags, values)
    if flags.acls == STDIN:  # completion must not consume the input of the command
        flags = evolve(flags, acls=None)
    choice = flags.choose(notify=lambda _: None)
    state = ShellState(source=choice.source)
    state.go_to(choice.moment)
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


def _encoded(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
