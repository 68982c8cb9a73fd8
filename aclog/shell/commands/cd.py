"""`cd`, `pwd` and `exit`: where one is."""

from collections.abc import Iterator
from itertools import islice

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command
from aclog.shell.output import Line, complaint
from aclog.shell.path_names import path_text
from aclog.shell.path_targets import found_at
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory
from aclog.shell.words import Word

_ROOT = Word(text="/", glob="/")


def _cd(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    target = arguments.one("target") or _ROOT
    found = list(islice(found_at(state, target), 2))
    if not found:
        yield complaint(f"cd: {target.text}: no such directory.")
    elif len(found) > 1:
        yield complaint(f"cd: {target.text}: more than one node is meant.")
    elif not isinstance(found[0].node, Directory):
        yield complaint(f"cd: {target.text}: not a directory.")
    else:
        state.working_directory = found[0].names


def _pwd(state: ShellState, _: Arguments) -> Iterator[Line]:
    yield Line(path_text(state.working_directory))


def _exit(state: ShellState, _: Arguments) -> Iterator[Line]:
    state.done = True
    yield from ()


CD = Command(
    name="cd",
    description="Go to another directory.",
    signature=Signature(
        arguments=(Argument(name="target", count=Count.OPTIONAL, help="Where to go; the root if not given."),)
    ),
    run=_cd,
    path_arguments=True,
    at_prompt_only=True,
)
PWD = Command(
    name="pwd",
    description="Print the working directory.",
    signature=Signature(),
    run=_pwd,
    at_prompt_only=True,
)
EXIT = Command(
    name="exit",
    description="Leave the shell.",
    signature=Signature(),
    run=_exit,
    at_prompt_only=True,
)
