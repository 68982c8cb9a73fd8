"""Marks of commands: what they do with the source that their flags, or a context, name."""

from collections.abc import Callable
from typing import Any, TypeVar

_WRITES = "writes_to_source"
_WRITES_WITH = "writes_to_source_with"
_ABOUT = "is_about_contexts"
_EXAMINES = "examines_contexts"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def writes_to_source(*, unless: tuple[str, ...] = ()) -> Callable[[_Command], _Command]:
    """Mark a command that changes what its source flags name; with one of the flags in `unless` it only reads."""

    def mark(command: _Command) -> _Command:
        """Return the same command."""
        setattr(command, _WRITES, unless)
        return command

    return mark


def writes_only_with(*flags: str) -> Callable[[_Command], _Command]:
    """Mark a command that changes what its source flags name with one of these flags, and else only reads it."""

    def mark(command: _Command) -> _Command:
        """Return the same command."""
        setattr(command, _WRITES_WITH, flags)
        return command

    return mark


def is_about_contexts(command: _Command) -> _Command:
    """Mark a command that is about contexts itself: none of its flags comes from one."""
    setattr(command, _ABOUT, True)
    return command


def examines_contexts(command: _Command) -> _Command:
    """Mark a command that says itself what is wrong with a context that it does not name, and goes on without it."""
    setattr(command, _EXAMINES, True)
    return command


def goes_on_without(command: Any) -> bool:
    """Return whether a command of typer goes on without a context that cannot be used."""
    return getattr(command.callback, _EXAMINES, False) is True


def written_unless(command: Any) -> tuple[str, ...] | None:
    """Return with which flags a command does not change its source; None if it never does, or with some flags only."""
    found: tuple[str, ...] | None = getattr(command.callback, _WRITES, None)
    return found


def written_with(command: Any) -> tuple[str, ...]:
    """Return with which flags alone a command changes its source."""
    found: tuple[str, ...] = getattr(command.callback, _WRITES_WITH, ())
    return found


def takes_no_context(command: Any) -> bool:
    """Return whether a command of typer is about contexts itself."""
    return getattr(command.callback, _ABOUT, False) is True
