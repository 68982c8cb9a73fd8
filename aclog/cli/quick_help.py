"""Help without the parts of rich that typer imports for it and aclog never shows: a third of the time that it takes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from typer.core import TyperCommand, TyperGroup

_UNUSED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
"""Modules that typer.rich_utils imports, and what from them: help in Markdown, and tracebacks, which are turned off."""


def help_quickly(command: TyperCommand | TyperGroup) -> None:
    """Make a command, and those below it, show their help without these."""
    by_typer = command.format_help

    def format_help(ctx: Any, formatter: Any) -> None:
        """See typer's Command.format_help."""
        with _without_unused():
            by_typer(ctx, formatter)

    command.format_help = format_help  # type: ignore[method-assign]
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            if isinstance(below, (TyperCommand, TyperGroup)):
                help_quickly(below)


@contextmanager
def _without_unused() -> Iterator[None]:
    """Have empty modules in the place of those that are not imported yet, while typer imports its own."""
    made = [name for name in _UNUSED if name not in sys.modules and "typer.rich_utils" not in sys.modules]
    for name in made:
        module = ModuleType(name)
        setattr(module, _UNUSED[name], type(_UNUSED[name], (), {}))
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in made:
            del sys.modules[name]
