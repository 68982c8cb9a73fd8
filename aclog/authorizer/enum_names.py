"""Enum values by their names, as people type them."""

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from aclog.metalog.errors import ConfigError

_Enum = TypeVar("_Enum", bound=IntEnum)


def parse_name(values: Iterable[_Enum], text: str) -> _Enum:
    """The value of this name, in any case, with or without underscores (`AlterConfigs`, as kafka-acls has it).

    Raises:
        ConfigError: it is the name of none of them; all are named.

    """
    values = list(values)
    for value in values:
        if _folded(value.name) == _folded(text):
            return value
    raise ConfigError(f"{text[:40]!r} is not one of {', '.join(each.name for each in values)}")


def _folded(name: str) -> str:
    return name.strip().upper().replace("_", "").replace("-", "")
