"""Values of Kafka's enums by their names."""

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from aclog.sources.formats.node import Node

_Enum = TypeVar("_Enum", bound=IntEnum)


def named_value(node: Node, what: str, values: Iterable[_Enum], *, any_case: bool = False) -> _Enum:
    """Return the value whose name a scalar holds; `what` names it in errors. Raises ConfigError: no value has it."""
    text = node.text(what)
    known = {value.name: value for value in values}
    found = known.get(text.upper() if any_case and text.isascii() else text)
    if found is None:
        raise node.error(f"{what} is {text[:60]!r}: expected one of {', '.join(known)}")
    return found
