"""Cases of a mapping: what a foreign thing is for us, by its properties; the first case that fits counts."""

from collections.abc import Iterator, Mapping, Sequence
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


def check_reachable(cases: Sequence[Case[_T]], where: str) -> None:
    """Refuse cases that never count. Raises ConfigError: a case after one that fits always, or twice the same."""
    for number, case in enumerate(cases):
        for earlier in cases[:number]:
            if all(key in case.when and _equal(case.when[key], value) for key, value in earlier.when.items()):
                raise ConfigError(f"{where}: case {number + 1} never counts: an earlier one fits whenever it does")


def _equal(one: object, other: object) -> bool:
    """Return whether two values of JSON are the same; true is not 1."""
    return (type(one) is type(other) and one == other) or (_is_number(one) and _is_number(other) and one == other)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
