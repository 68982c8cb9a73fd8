"""The values of Terraform's language."""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from attrs import Factory, evolve, field, frozen

from aclog.sources.formats.terraform.values.errors import TooLargeError
from aclog.sources.formats.terraform.values.numbers import Number
from aclog.sources.formats.terraform.values.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    Kind,
    Type,
)


@frozen
class Unknown:
    """Stands for what only Terraform learns while it applies: an id, a data source, a variable without a value."""

    what: str
    """Such as `var.principal, which has no value`."""
    where: str = ""
    """`FILE:LINE` of the reference, if known."""

    def __str__(self) -> str:
        """Return what is unknown, and where it is asked for."""
        return f"{self.what} (at {self.where})" if self.where else self.what


class OpenEntries(dict[str, "Value"]):
    """Attributes of a resource: those that its configuration sets; of all others only Terraform learns the values."""

    def __init__(self, entries: "Mapping[str, Value]", others: Unknown) -> None:
        """Hold what is configured, and what to say of the others."""
        super().__init__(entries)
        self.others = others


Payload: TypeAlias = "str | bool | Number | tuple[Value, ...] | Mapping[str, Value] | Unknown | None"


@frozen
class Value:
    """A value and its type.

    The payload is None for null, an Unknown, a str, bool or number, a tuple of values (list, set in its order, tuple),
    or values by key in the order of the keys (map, object).
    """

    type: Type
    payload: Payload
    sensitive: bool = False
    """Whether it came from a sensitive variable or output: no message may show it."""
    size: int = field(
        init=False, eq=False, repr=False, default=Factory(lambda self: _size(self.payload), takes_self=True)
    )
    """How many values there are in it, one that occurs twice counted twice."""

    @property
    def is_null(self) -> bool:
        """Whether it is null."""
        return self.payload is None

    @property
    def unknown(self) -> Unknown | None:
        """What is unknown about the value itself; None: it is known (its elements may not be)."""
        if isinstance(self.payload, OpenEntries):
            return self.payload.others
        return self.payload if isinstance(self.payload, Unknown) else None

    @property
    def text(self) -> str:
        """The text of a known string."""
        return cast("str", self.payload)

    @property
    def number(self) -> Number:
        """The number of a known number."""
        return cast("Number", self.payload)

    @property
    def items(self) -> "tuple[Value, ...]":
        """The elements of a known list, set or tuple."""
        return cast("tuple[Value, ...]", self.payload)

    @property
    def entries(self) -> "Mapping[str, Value]":
        """The elements of a known map or object, in the order of their keys."""
        return cast("Mapping[str, Value]", self.payload)


LARGEST = 2_000_000
"""Of `size`: thousands of times what the rules of a large company take."""
_LONGEST = 1 << 20
"""Characters of a string."""


def _size(payload: Payload) -> int:
    """Return the size of a payload. Raises TooLargeError: it is beyond any use."""
    if isinstance(payload, str):
        size = 1 + (len(payload) >> 5)
        if len(payload) > _LONGEST:
            raise TooLargeError(f"a string of more than {_LONGEST:,} characters")
        return size
    if isinstance(payload, tuple):
        size = 1 + sum([item.size for item in payload])
    elif isinstance(payload, Mapping):
        size = 1 + sum([item.size for item in payload.values()])
    else:
        return 1
    if size > LARGEST:
        raise TooLargeError(f"a value of more than {LARGEST:,} parts")
    return size


TRUE = Value(BOOL, payload=True)
FALSE = Value(BOOL, payload=False)
NULL = Value(DYNAMIC, None)


def string(text: str) -> Value:
    """Return a string, in Unicode's normal form C as every string of Terraform is."""
    return Value(STRING, text if text.isascii() else unicodedata.normalize("NFC", text))


def number(value: Number) -> Value:
    """Return a number."""
    return Value(NUMBER, value)


def boolean(value: bool) -> Value:
    """Return true or false."""
    return TRUE if value else FALSE


def tuple_value(items: Iterable[Value]) -> Value:
    """Return a tuple."""
    items = tuple(items)
    return Value(Type(Kind.TUPLE, elements=tuple(item.type for item in items)), items)


def object_value(entries: Mapping[str, Value]) -> Value:
    """Return an object."""
    ordered = {key: entries[key] for key in sorted(entries)}
    return Value(Type(Kind.OBJECT, attributes={key: item.type for key, item in ordered.items()}), ordered)


def unknown(what: Unknown, kind: Type = DYNAMIC) -> Value:
    """Return an unknown value."""
    return Value(kind, what)


def with_sensitivity(value: Value, *causes: Value) -> Value:
    """Return the value, marked as sensitive if one of the causes is."""
    for cause in causes:
        if cause.sensitive and not value.sensitive:
            return evolve(value, sensitive=True)
    return value


def first_unknown(value: Value) -> Unknown | None:
    """Return what is unknown in the value or deep in its elements; None: it is wholly known."""
    if value.unknown is not None:
        return value.unknown
    payload = value.payload
    if isinstance(payload, tuple):
        return next(filter(None, map(first_unknown, payload)), None)
    if isinstance(payload, Mapping):
        return next(filter(None, map(first_unknown, payload.values())), None)
    return None


def is_sensitive(value: Value) -> bool:
    """Return whether the value or something deep in it is sensitive."""
    if value.sensitive:
        return True
    payload = value.payload
    if isinstance(payload, tuple):
        return any(map(is_sensitive, payload))
    return isinstance(payload, Mapping) and any(map(is_sensitive, payload.values()))
