"""The types of Terraform's language."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from attrs import field, frozen


class Kind(Enum):
    """What sort of type it is. The values are the words of a type constraint."""

    DYNAMIC = "any"
    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"
    LIST = "list"
    SET = "set"
    MAP = "map"
    TUPLE = "tuple"
    OBJECT = "object"


NO_ATTRIBUTES: Mapping[str, "Type"] = MappingProxyType({})


@frozen
class Type:
    """A type: `element` of a list, set or map; `elements` of a tuple; `attributes` of an object."""

    kind: Kind
    element: "Type | None" = None
    elements: tuple["Type", ...] = ()
    attributes: Mapping[str, "Type"] = field(default=NO_ATTRIBUTES, hash=False)
    optional: frozenset[str] = frozenset()
    """Attributes of an object that a value may lack; only in type constraints."""

    @property
    def is_primitive(self) -> bool:
        """Whether it is string, number or bool."""
        return self.kind in _PRIMITIVES

    @property
    def item(self) -> "Type":
        """The type of the elements of a collection."""
        return self.element or DYNAMIC

    def __str__(self) -> str:
        """Return the type as Terraform's messages have it, without attributes."""
        return f"{self.kind.value} of {self.element}" if self.element else self.kind.value


_PRIMITIVES = frozenset({Kind.STRING, Kind.NUMBER, Kind.BOOL})
SEQUENCES = frozenset({Kind.LIST, Kind.SET, Kind.TUPLE})
COLLECTIONS = frozenset({Kind.LIST, Kind.SET, Kind.MAP})
MAPPINGS = frozenset({Kind.MAP, Kind.OBJECT})

DYNAMIC = Type(Kind.DYNAMIC)
STRING = Type(Kind.STRING)
NUMBER = Type(Kind.NUMBER)
BOOL = Type(Kind.BOOL)


def list_of(element: Type) -> Type:
    """Return the type of lists of these."""
    return Type(Kind.LIST, element)


def set_of(element: Type) -> Type:
    """Return the type of sets of these."""
    return Type(Kind.SET, element)


def map_of(element: Type) -> Type:
    """Return the type of maps of these."""
    return Type(Kind.MAP, element)


def has_dynamic(kind: Type) -> bool:
    """Return whether `any` occurs in the type."""
    if kind.kind is Kind.DYNAMIC:
        return True
    if kind.element is not None:
        return has_dynamic(kind.element)
    return any(map(has_dynamic, (*kind.elements, *kind.attributes.values())))
