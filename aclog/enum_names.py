"""Values of flags that name something in an enum."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeVar

import typer

from authorizer.acl import AclOperation, PatternType, ResourceType

_Enum = TypeVar("_Enum", bound=IntEnum)

OPERATIONS = tuple(op for op in AclOperation if op not in {AclOperation.UNKNOWN, AclOperation.ANY})
RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind not in {ResourceType.UNKNOWN, ResourceType.ANY})
PATTERN_TYPES = tuple(kind for kind in PatternType if kind is not PatternType.UNKNOWN)


def named(values: Sequence[_Enum]) -> Callable[[str], _Enum]:
    """A parser of one of these names, in any case, with or without underscores (`AlterConfigs`, as kafka-acls has it).

    It raises BadParameter, which names all that would be accepted.
    """
    by_name = {_folded(value.name): value for value in values}

    def parse(text: str) -> _Enum:
        value = by_name.get(_folded(text))
        if value is None:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(each.name for each in values)}")
        return value

    return parse


def completions(values: Sequence[IntEnum]) -> Callable[[str], list[str]]:
    """A completer of these names for the shell."""
    return lambda incomplete: [value.name for value in values if value.name.startswith(incomplete.upper())]


def _folded(name: str) -> str:
    return name.strip().upper().replace("_", "")
