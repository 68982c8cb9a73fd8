"""Commands whose modules are imported when they are called: `--help` and completion know their names and first lines.

A command that imports all the others before it runs takes longer to start than to decide on a million ACLs.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from aclog.cli.plain_values import plain_parameters, read_plainly
from aclog.cli.quick_help import help_quickly
from aclog.cli.repeated_options import refuse_repeats


class LazyCommand(TyperCommand):
    """What stands in a group for a command that is not imported yet: enough for `--help` and completion."""

    def __init__(self, name: str, line: str) -> None:
        """Stand for the command of this name, whose help begins with this line."""
        super().__init__(name, help=line, rich_markup_mode="rich")
        self._name = name
        self._loaded: TyperCommand | TyperGroup | None = None

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command's module, once, and return the command, or the group of commands."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> TyperCommand | TyperGroup:
        from aclog.cli.from_context.command_lines import take_from_context  # nothing that --help needs

        holder = typer.Typer(rich_markup_mode="rich")
        holder.add_typer(_module(self._name).app)
        command = get_group(holder).commands[self._name]
        assert isinstance(command, (TyperCommand, TyperGroup))  # noqa: S101 - typer makes no other
        read_plainly(command)
        help_quickly(command)
        for leaf in _leaves(command):
            take_from_context(leaf)
            refuse_repeats(leaf)
        return command


class LazyGroup(TyperGroup):
    """A group that imports a command when it is called.

    A subclass says in `lines` which commands there are and how their help begins. The command `who-can` is the `app` in
    aclog/cli/who_can.py, or in aclog/cli/who_can/command.py.
    """

    lines: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **attributes: Any) -> None:
        """Take what typer passes to a group."""
        super().__init__(**attributes)
        self.commands.update({name: LazyCommand(name, line) for name, line in self.lines.items()})
        help_quickly(self)
        refuse_repeats(self)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group itself."""
        return plain_parameters(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name of the command that is called, the command itself, and the words after it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest


def _leaves(command: TyperCommand | TyperGroup) -> Iterator[Any]:
    if not isinstance(command, TyperGroup):
        yield command
        return
    for below in command.commands.values():
        if isinstance(below, (TyperCommand, TyperGroup)):
            yield from _leaves(below)


def _module(name: str) -> Any:
    path = f"aclog.cli.{name.replace('-', '_')}{'_' * iskeyword(name)}"
    module = import_module(path)
    return import_module(f"{path}.command") if hasattr(module, "__path__") else module
