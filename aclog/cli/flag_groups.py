"""Groups of command-line flags: attrs classes whose fields are annotated as typer wants them.

A command takes a group as one parameter; typer sees a flag for each of its fields:

    @frozen
    class Limits:
        most: Annotated[int, typer.Option("--most", help="Stop after this many.")] = 10

    @app.command()
    @with_flags
    def list_(limits: Limits) -> None: ...
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import attrs


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a group replaced by the fields of that group.

    Raises:
        TypeError: two groups have a field of one name.

    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {name: hint for name, hint in hints.items() if attrs.has(hint)}
    flags: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name in groups:
            flags += _fields(groups[parameter.name])
        else:
            flags.append(parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY))
    names = [flag.name for flag in flags]
    if len(set(names)) < len(names):
        raise TypeError(f"{command.__name__}: two groups have a field of one name: {sorted(names)}")

    @wraps(command)
    def flat(**values: Any) -> None:
        made = {
            name: group(**{field.alias: values.pop(field.name) for field in attrs.fields(group)})
            for name, group in groups.items()
        }
        command(**made, **values)

    flat.__signature__ = Signature(flags)  # type: ignore[attr-defined] # typer reads it, and the annotations
    flat.__annotations__ = {flag.name: flag.annotation for flag in flags}
    return flat


def _fields(group: type) -> list[Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is attrs.NOTHING else field.default,
            annotation=types[field.name],
        )
        for field in attrs.fields(group)
    ]
