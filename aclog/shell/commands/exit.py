"""`exit`: leave the shell."""

from collections.abc import Iterator

from aclog.shell.arguments import Arguments, Signature
from aclog.shell.command import Command, Line
from aclog.shell.state import ShellState


def _exit(state: ShellState, _: Arguments) -> Iterator[Line]:
    state.done = True
    yield from ()


EXIT = Command(
    name="exit",
    description="Leave the shell.",
    signature=Signature(),
    run=_exit,
    at_prompt_only=True,
)
