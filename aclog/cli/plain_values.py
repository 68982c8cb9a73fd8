"""Values of flags that need no validation, read without pydantic.

typer 0.29 reads every value through pydantic, the default of a flag that is not given too; importing that takes longer
than deciding on a thousand ACLs. Text, paths, whole numbers and names of an enum are what they look like; anything
else, and all that is wrong, is left to typer, so that its errors stay its own.
"""

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.models import ParameterInfo

_Process = Callable[[Any, Any], Any]


class _NotPlainError(Exception):
    """A value that typer must look at."""


def read_plainly(command: TyperCommand | TyperGroup) -> None:
    """Make a command, and those below it, read plain values without typer."""
    by_typer = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        """Return the parameters; --help is one that typer adds only here."""
        return plain_parameters(by_typer(ctx))

    command.get_params = get_params  # type: ignore[method-assign]
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            if isinstance(below, (TyperCommand, TyperGroup)):
                read_plainly(below)


def plain_parameters(parameters: list[Any]) -> list[Any]:
    """Return the parameters of a command, each of which now reads plain values itself."""
    for parameter in parameters:
        if "process_value" not in vars(parameter):
            parameter.process_value = _plain_first(parameter, parameter.process_value)
    return parameters


def _plain_first(parameter: TyperOption | TyperArgument, by_typer: _Process) -> _Process:
    """Return what reads a value: as typer does, but plain values without it."""

    def process_value(ctx: Any, value: Any) -> Any:
        """See typer's Parameter.process_value."""
        try:
            plain = _plain(parameter, value)
        except _NotPlainError:
            return by_typer(ctx, value)
        return plain if parameter.callback is None else parameter.callback(ctx, parameter, plain)

    return process_value


def _plain(parameter: TyperOption | TyperArgument, value: Any) -> Any:
    many = parameter.multiple or parameter.nargs == -1
    if value is None or (many and not value):
        if parameter.required:
            raise _NotPlainError
        return () if many else None
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None:  # in a typer that is newer than what this was tested with
        raise _NotPlainError
    annotation, info = descriptor.annotation, descriptor.parameter_info
    if not many:
        return _one(annotation, info, value)
    if get_origin(annotation) is not list or not isinstance(value, (list, tuple)):
        raise _NotPlainError
    return [_one(get_args(annotation)[0], info, item) for item in value]


def _one(annotation: Any, info: ParameterInfo, value: Any) -> Any:
    if info.parser is None and (type(value) is annotation or isinstance(value, Enum)):
        return value  # text, or a default
    if not isinstance(value, str):
        raise _NotPlainError
    if info.parser is not None:
        return info.parser(value)
    if issubclass(annotation, Enum):
        return _choice(annotation, value)
    if annotation is Path and not _is_checked(info):
        return _path(value)
    if annotation is int:
        return _number(info, value)
    raise _NotPlainError


def _choice(names: type[Enum], value: str) -> Enum:
    for choice in names:
        if choice.value == value:
            return choice
    raise _NotPlainError


def _is_checked(info: ParameterInfo) -> bool:
    """Whether a path must be more than readable, if it is there."""
    kind = not info.file_okay or not info.dir_okay or info.path_type is not None
    return kind or info.exists or info.writable or info.resolve_path or info.allow_dash


def _path(value: str) -> Path:
    if "\0" in value or (not os.access(value, os.R_OK) and Path(value).exists()):
        raise _NotPlainError
    return Path(value)


def _number(info: ParameterInfo, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 19) or info.clamp:
        raise _NotPlainError
    number = int(value)
    if (info.min is not None and number < info.min) or (info.max is not None and number > info.max):
        raise _NotPlainError
    return number
