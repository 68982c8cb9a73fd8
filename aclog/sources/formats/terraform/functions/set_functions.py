"""Functions on sets."""

from collections.abc import Callable, Mapping
from itertools import product
from types import MappingProxyType

from aclog.sources.formats.terraform.functions.collection_functions import listed, sequence_of
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.values.access import equal
from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import TooLargeError, ValueFault
from aclog.sources.formats.terraform.values.sets import set_value
from aclog.sources.formats.terraform.values.types import DYNAMIC, SEQUENCES, Kind, Type, set_of
from aclog.sources.formats.terraform.values.unification import unify
from aclog.sources.formats.terraform.values.value import Value, tuple_value

_LONGEST = 100_000
"""Elements of a product: beyond any use, and a bound on time and memory."""


def _element_type(value: Value) -> Type:
    if value.type.kind is not Kind.TUPLE:
        return value.type.item
    kind = unify(value.type.elements) if value.type.elements else DYNAMIC
    if kind is None:
        raise ValueFault("all elements must be of one type")
    return kind


def _setproduct(*values: Value) -> Value:
    if len(values) < 2:
        raise ValueFault("at least two arguments are required")
    columns, size = [], 1
    for value in values:
        kind = _element_type(value) if value.type.kind in SEQUENCES else DYNAMIC
        columns.append([convert(item, kind) for item in sequence_of(value)])
        size *= len(columns[-1])
        if size > _LONGEST:
            raise TooLargeError(f"setproduct() makes more than {_LONGEST:,} elements")
    rows = [tuple_value(row) for row in product(*columns)]
    element = rows[0].type if rows else Type(Kind.TUPLE, elements=tuple(map(_element_type, values)))
    return set_value(rows, element) if any(value.type.kind is Kind.SET for value in values) else listed(rows, element)


def _set_operation(choose: Callable[[list[Value], list[Value]], list[Value]]) -> Callable[..., Value]:
    def _operate(*values: Value) -> Value:
        if not values:
            raise ValueFault("at least one argument is required")
        kinds = [value.type.item for value in values if value.items or value.type.item.kind is not Kind.DYNAMIC]
        element = unify(kinds) if kinds else DYNAMIC
        if element is None:
            raise ValueFault("the elements of the sets have no type in common")
        result, *others = [list(convert(value, set_of(element)).items) for value in values]
        for other in others:
            result = choose(result, other)
        return set_value(result, element)

    return _operate


def _in(item: Value, items: list[Value]) -> bool:
    return any(item.payload == each.payload if item.type.is_primitive else equal(item, each) is True for each in items)


_ANY_SET = set_of(DYNAMIC)

SET_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "setintersection": Function(
            rest=_ANY_SET, body=_set_operation(lambda one, other: [item for item in one if _in(item, other)])
        ),
        "setproduct": Function(rest=DYNAMIC, body=_setproduct, structural=True),
        "setsubtract": Function(
            parameters=(_ANY_SET, _ANY_SET),
            body=_set_operation(lambda one, other: [item for item in one if not _in(item, other)]),
        ),
        "setunion": Function(rest=_ANY_SET, body=_set_operation(lambda one, other: one + other)),
    }
)
