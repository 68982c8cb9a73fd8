"""`pwd`: the working directory."""

from collections.abc import Iterator

from aclog.shell.arguments import Arguments, Signature
from aclog.shell.command import Command, Line
from aclog.shell.path_names import path_text
from aclog.shell.state import ShellState


def _pwd(state: ShellState, _: Arguments) -> Iterator[Line]:
    yield Line(path_text(state.working_directory))


PWD = Command(
    name="pwd",
    description="Print the working directory.",
    signature=Signature(),
    run=_pwd,
    at_prompt_only=True,
)
