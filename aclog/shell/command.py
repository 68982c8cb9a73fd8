"""A command of the shell, and the lines that it prints."""

from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

from aclog.shell.arguments import Arguments, Signature
from aclog.shell.state import ShellState


@frozen
class Line:
    """A line of output without its terminator. Names and ACLs in it may contain any character, line feeds included.

    `failed` marks an error: in one-shot mode it goes to stderr and makes the exit code 1. `flush` is set if the next
    line may take long.
    """

    text: str
    failed: bool = False
    flush: bool = False


def complaint(text: str) -> Line:
    """Return an error line."""
    return Line(text, failed=True)


def _no_suggestions(_: ShellState, __: int) -> Iterable[str]:
    return ()


@frozen(kw_only=True)
class Command:
    """A command: its name, description and signature, and the function that runs it.

    `run` yields its output lazily and may raise any MetadataError. For completion, `path_arguments` says that the
    arguments are paths, and `suggestions(state, number)` returns the words that argument `number` may be.
    `at_prompt_only` marks a command that makes no sense as the only one of a process.
    """

    name: str
    description: str
    signature: Signature
    run: Callable[[ShellState, Arguments], Iterator[Line]]
    path_arguments: bool = False
    suggestions: Callable[[ShellState, int], Iterable[str]] = _no_suggestions
    at_prompt_only: bool = False
    notes: tuple[str, ...] = ()
