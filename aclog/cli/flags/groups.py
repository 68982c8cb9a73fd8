"""Groups of command-line flags: attrs classes whose fields are annotated as typer expects.

A command takes a group as one parameter; typer sees one flag for each of its fields:

    @frozen
    class Limits:
        most: Annotated[int, typer.Option("--most", help="Stop after this many.")] = 10

    @app.command()
    @with_flags
    def list_(limits: Limits) -> None: ...
"""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_type_hints

import attrs

_Returned = TypeVar("_Returned")
_Group = TypeVar("_Group")


def with_flags(command: Callable[..., _Returned]) -> Callable[..., _Returned]:
    """Return the command with every parameter that is a group replaced by the fields of that group.

    Raises:
        TypeError: two groups have a field of the same name.

    """
    hints = get_type_hints(command, include_extras=True)
    parameters = signature(command).parameters
    groups: dict[str, type] = {name: hints[name] for name in parameters if attrs.has(hints[name])}
    flags: list[Parameter] = []
    for parameter in parameters.values():
        if parameter.name in groups:
            flags += _parameters(groups[parameter.name])
        else:
            flags.append(parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY))
    names = [flag.name for flag in flags]
    if len(set(names)) < len(names):
        raise TypeError(f"{command.__name__}: two groups have a field of the same name: {sorted(names)}")

    @wraps(command)
    def flattened(**values: Any) -> _Returned:
        """Collect the flags of each group again and run the command."""
        made = {name: _take(group, values) for name, group in groups.items()}
        return command(**made, **values)

    # typer reads both: the signature for the order and defaults, the annotations for the options.
    flattened.__signature__ = Signature(flags)  # type: ignore[attr-defined]
    flattened.__annotations__ = {flag.name: flag.annotation for flag in flags}
    return flattened


def group_from(group: type[_Group], values: Mapping[str, Any]) -> _Group:
    """Return the group with those of its fields that are in `values`; the others have their defaults."""
    return group(**{field.alias: values[field.name] for field in attrs.fields(group) if field.name in values})  # type: ignore[arg-type]


def _take(group: type, values: dict[str, Any]) -> Any:
    return group(**{field.alias: values.pop(field.name) for field in attrs.fields(group)})


def _parameters(group: type) -> list[Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field.default), annotation=types[field.name])
        for field in attrs.fields(group)
    ]


def _default(default: Any) -> Any:
    if default is attrs.NOTHING:
        return Parameter.empty
    # Each command gets its own default; typer passes a new list to each invocation, so the default is never changed.
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
