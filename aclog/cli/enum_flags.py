"""Values of flags that name something in an enum: parsers and completers for typer."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeVar

import typer

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType
from aclog.authorizer.enum_names import parse_name
from aclog.metalog.errors import ConfigError

_Enum = TypeVar("_Enum", bound=IntEnum)

OPERATIONS = tuple(op for op in AclOperation if op not in {AclOperation.UNKNOWN, AclOperation.ANY})
RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind not in {ResourceType.UNKNOWN, ResourceType.ANY})
PATTERN_TYPES = tuple(kind for kind in PatternType if kind is not PatternType.UNKNOWN)


def named(values: Sequence[_Enum]) -> Callable[[str], _Enum]:
    """A parser of one of these names; it raises BadParameter, which names all that would be accepted."""

    def parse(text: str) -> _Enum:
        try:
            return parse_name(values, text)
        except ConfigError as error:
            raise typer.BadParameter(str(error)) from error

    return parse


def completions(values: Sequence[IntEnum]) -> Callable[[str], list[str]]:
    """A completer of these names for the shell."""
    return lambda incomplete: [value.name for value in values if value.name.startswith(incomplete.upper())]
