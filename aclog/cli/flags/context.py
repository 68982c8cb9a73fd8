"""The flag that names a context for any command, and the context that this invocation uses."""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, TypeAlias

from aclog.cli.options import Option

if TYPE_CHECKING:
    from aclog.sources.contexts import ChosenContext


def complete_contexts(incomplete: str) -> list[str]:
    """Return the names of contexts that begin so, for shell completion."""
    from aclog.sources.contexts import read_context_file

    return [name for name in read_context_file().names if name.startswith(incomplete)]


ContextName: TypeAlias = Annotated[
    str | None,
    Option(
        "--context",
        "-c",
        metavar="NAME",
        autocompletion=complete_contexts,
        help="Take source and settings from this context (`aclog context`), unless a flag names a source. "
        "[dim]Default: $ACLOG_CONTEXT, or that of `context use`[/]",
    ),
]


class _Invocation:
    """What one command line states about contexts. A plain class: `aclog --help` imports no attrs."""

    __slots__ = ("_choice", "_is_found", "name")

    def __init__(self, name: str | None) -> None:
        self.name = name
        self._choice: ChosenContext | None = None
        self._is_found = False

    def choice(self) -> "ChosenContext | None":
        """Return the context, as it was when this was first called. Raises as chosen_context."""
        if not self._is_found:
            from aclog.sources.contexts import choose_context

            self._choice, self._is_found = choose_context(self.name), True
        return self._choice


_THIS: ContextVar[_Invocation | None] = ContextVar("aclog_context", default=None)
"""Of this invocation of a command, which runs in a context of its own (aclog.cli.app.run)."""


def use_context(name: str | None) -> None:
    """Use the context of this name for the rest of this invocation; None: that of the environment, or the current one.

    Raises:
        ConfigError, OSError: as aclog.sources.contexts.choose_context, if one is named.

    """
    this = _Invocation(name)
    _THIS.set(this)
    if name is not None:
        this.choice()


def named_context() -> str | None:
    """Return the name that this command line gives; None if it names none."""
    this = _THIS.get()
    return None if this is None else this.name or None


def chosen_context() -> "ChosenContext | None":
    """Return the context of this invocation; None without one. The file is read once, when this is first called.

    Raises:
        ConfigError, OSError: as aclog.sources.contexts.choose_context.

    """
    this = _THIS.get()
    if this is None:
        this = _Invocation(None)
        _THIS.set(this)
    return this.choice()
