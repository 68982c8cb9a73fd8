"""`cd`: change the working directory."""

from collections.abc import Iterator
from itertools import islice

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line, complaint
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory
from aclog.shell.walk import find_target
from aclog.shell.words import Word

_ROOT = Word(text="/", glob="/")


def _cd(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    target = arguments.one("target") or _ROOT
    found = list(islice(find_target(state, target), 2))
    if not found:
        yield complaint(f"cd: {target.text}: no such directory.")
    elif len(found) > 1:
        yield complaint(f"cd: {target.text}: matches more than one node.")
    elif not isinstance(found[0].node, Directory):
        yield complaint(f"cd: {target.text}: not a directory.")
    else:
        state.working_directory = found[0].names


CD = Command(
    name="cd",
    description="Change the working directory.",
    signature=Signature(
        arguments=(Argument(name="target", count=Count.OPTIONAL, help="Where to go; by default the root."),)
    ),
    run=_cd,
    path_arguments=True,
    at_prompt_only=True,
)
