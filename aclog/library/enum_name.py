"""Enum values that callers give by name."""

from enum import IntEnum
from typing import TypeAlias, TypeVar

from aclog.authorizer.acl import parse_name

_Enum = TypeVar("_Enum", bound=IntEnum)
Named: TypeAlias = str | _Enum | None
"""An enum value or its name, in any case; None for ANY."""


def enum_code(kind: type[_Enum], value: Named[_Enum]) -> int:
    """Return the code of an enum value or name; that of ANY for None.

    Raises:
        ConfigError: an unknown name.

    """
    if value is None:
        return int(kind["ANY"])
    return int(parse_name(kind, value)) if isinstance(value, str) else int(value)
