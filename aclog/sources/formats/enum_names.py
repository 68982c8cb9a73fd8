"""Kafka's enum names in the spellings of other tools: TRANSACTIONAL_ID, TransactionalId, transactionalid."""

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

_Enum = TypeVar("_Enum", bound=IntEnum)


def folded_name(name: str) -> str:
    """Return a name without underscores and case; two spellings of one name are then equal."""
    return name.replace("_", "").upper()


def find_name(values: Iterable[_Enum], name: str) -> _Enum | None:
    """Return the value that has this name in any spelling; None if there is none. Spaces are part of a name."""
    wanted = folded_name(name)
    if not name.isascii():  # some letters become ASCII ones in upper case
        return None
    return next((value for value in values if folded_name(value.name) == wanted), None)


def concrete(kind: type[_Enum]) -> tuple[_Enum, ...]:
    """Return the values that a rule of a tool may have: neither UNKNOWN nor ANY, nor the pattern type MATCH."""
    return tuple(value for value in kind if value.name not in {"UNKNOWN", "ANY", "MATCH"})
