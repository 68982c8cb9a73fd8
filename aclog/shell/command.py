"""What a command of the shell is."""

from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

from aclog.shell.arguments import Arguments, Signature
from aclog.shell.output import Line
from aclog.shell.state import ShellState


def _nothing(_: ShellState, __: int) -> Iterable[str]:
    return ()


@frozen(kw_only=True)
class Command:
    """A command: its name, a sentence about it, what it takes, and what it does.

    `run` yields its output lazily and may raise any MetadataError. For completion, `path_arguments` tells whether its
    arguments are paths, and `suggestions(state, number)` which words its argument of that number may be.
    `at_prompt_only` marks what has no sense as a single command on a command line.
    """

    name: str
    description: str
    signature: Signature
    run: Callable[[ShellState, Arguments], Iterator[Line]]
    path_arguments: bool = False
    suggestions: Callable[[ShellState, int], Iterable[str]] = _nothing
    at_prompt_only: bool = False
    notes: tuple[str, ...] = ()
