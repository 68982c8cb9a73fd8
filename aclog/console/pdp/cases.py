"""Cases of a mapping: what a foreign thing is for us, by its properties; the first case that fits counts."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Generic, TypeVar

from attrs import field, frozen

from aclog.metalog.errors import ConfigError

_T = TypeVar("_T")

Properties = Mapping[str, Any]


@frozen(kw_only=True)
class Case(Generic[_T]):
    """What a thing is if it has these properties; with none, always."""

    to: _T
    when: Properties = field(factory=dict)

    def fits(self, properties: Properties) -> bool:
        """Return whether a thing with these properties is of this case."""
        if not self.when:
            return True
        return all(key in properties and _equal(properties[key], value) for key, value in self.when.items())


@frozen
class Cases(Generic[_T]):
    """Cases in order."""

    cases: Sequence[Case[_T]]

    def first(self, properties: Properties) -> Case[_T] | None:
        """Return the case of a thing with these properties; None if it is of none."""
        for case in self.cases:
            if case.fits(properties):
                return case
        return None

    def __iter__(self) -> Iterator[Case[_T]]:
        return iter(self.cases)


def unreachable_cases(cases: Sequence[Case[_T]]) -> Iterator[str]:
    """Yield which cases never count, such as one after a case that fits always.

    It is exact: what fits a case, and has no other properties, fits an earlier one only if all it asks for is asked for
    by this case.
    """
    for number, case in enumerate(cases):
        for earlier in cases[:number]:
            if all(key in case.when and _equal(case.when[key], value) for key, value in earlier.when.items()):
                yield f"case {number + 1} never counts: an earlier one fits whenever it does"
                break


def check_json(value: object, where: str) -> None:
    """Refuse what no value in a question can be equal to: the next, wider case would decide. Raises ConfigError."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise ConfigError(f"{where}: the key {str(key)[:80]} is no text: expected quotes around it")
            check_json(each, f"{where}: {key[:80]}")
    elif isinstance(value, list):
        for each in value:
            check_json(each, where)
    elif isinstance(value, float) and not isfinite(value):
        raise ConfigError(f"{where}: {value} is no number of JSON: no question can have it")
    elif value is not None and not isinstance(value, str | int | float):
        kind = type(value).__name__
        raise ConfigError(f"{where}: {str(value)[:80]} is a {kind}, no value of JSON: expected quotes around it")


def _equal(one: object, other: object) -> bool:
    """Return whether two values of JSON are the same; true is not 1, nor is it in lists and objects."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    return (type(one) is type(other) and one == other) or (_is_number(one) and _is_number(other) and one == other)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
