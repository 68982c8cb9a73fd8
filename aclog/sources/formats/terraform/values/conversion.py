"""Conversion of values to types, and the one type to which several convert (go-cty's convert package)."""

from collections.abc import Mapping, Sequence

from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.numbers import number_text, parse_number
from aclog.sources.formats.terraform.values.sets import set_value
from aclog.sources.formats.terraform.values.types import (
    DYNAMIC,
    SEQUENCES,
    STRING,
    Kind,
    Type,
    has_dynamic,
    list_of,
    map_of,
)
from aclog.sources.formats.terraform.values.unification import convertible, unify, unify_all
from aclog.sources.formats.terraform.values.value import (
    FALSE,
    TRUE,
    Unknown,
    Value,
    first_unknown,
    number,
    object_value,
    string,
    tuple_value,
    with_sensitivity,
)

_BOOLS: Mapping[str, Value] = {"true": TRUE, "1": TRUE, "false": FALSE, "0": FALSE}


def convert(value: Value, wanted: Type) -> Value:
    """Return the value as one of the type wanted; `any` in it stands for what the value has there.

    Raises:
        ValueFault: it cannot be converted.

    """
    given = value.type
    if given is wanted or wanted.kind is Kind.DYNAMIC or given == wanted:
        return value
    payload = value.payload
    if payload is None or isinstance(payload, Unknown):
        if not convertible(value.type, wanted, unsafe=True):
            raise mismatch(value.type, wanted)
        return Value(_without_any(wanted, value.type), payload, value.sensitive)
    return with_sensitivity(_converted(value, wanted), value)


def convert_to_unified(values: Sequence[Value]) -> tuple[Type, list[Value]] | None:
    """Return the values as ones of the one type to which all of them convert; None: there is none."""
    kind = unify([value.type for value in values])
    return None if kind is None else (kind, [convert(value, kind) for value in values])


def mismatch(given: Type, wanted: Type) -> ValueFault:
    """Return the fault that one type is given where another is wanted."""
    return ValueFault(f"a {wanted} is required, and this is a {given}")


def _converted(value: Value, wanted: Type) -> Value:
    kind, given = wanted.kind, value.type
    if wanted.is_primitive:
        return _primitive(value, wanted)
    if value.unknown is not None and kind is not Kind.OBJECT:
        return Value(wanted, value.unknown)
    if kind is Kind.OBJECT and given.kind in (Kind.OBJECT, Kind.MAP):
        return _to_object(value, wanted)
    if kind is Kind.TUPLE and given.kind is Kind.TUPLE:
        if len(value.items) != len(wanted.elements):
            raise ValueFault(f"a tuple of {len(wanted.elements)} elements is required, and this has {len(value.items)}")
        return tuple_value(convert(item, each) for item, each in zip(value.items, wanted.elements, strict=True))
    if kind is Kind.MAP and given.kind in (Kind.MAP, Kind.OBJECT):
        return _to_map(value, wanted)
    if kind in (Kind.LIST, Kind.SET) and given.kind in SEQUENCES:
        return _to_collection(value, wanted)
    raise mismatch(given, wanted)


def _primitive(value: Value, wanted: Type) -> Value:
    payload = value.payload
    if wanted.kind is Kind.STRING:
        if isinstance(payload, bool):
            return string("true" if payload else "false")
        if value.type.kind is Kind.NUMBER:
            return string(number_text(value.number))
    elif isinstance(payload, str):
        if wanted.kind is Kind.BOOL and payload in _BOOLS:
            return _BOOLS[payload]
        if wanted.kind is Kind.NUMBER and (parsed := parse_number(payload)) is not None:
            return number(parsed)
        raise ValueFault(f"a {wanted} is required, and this string is none")
    raise mismatch(value.type, wanted)


def _to_object(value: Value, wanted: Type) -> Value:
    entries = {}
    for name, kind in wanted.attributes.items():
        if name in value.entries:
            entries[name] = convert(value.entries[name], kind)
        elif value.unknown is not None:
            entries[name] = Value(kind, value.unknown)
        elif name in wanted.optional:
            entries[name] = Value(_without_any(kind, DYNAMIC), None)
        else:
            raise ValueFault(f"attribute {name!r} is required")
    return object_value(entries)


def _to_map(value: Value, wanted: Type) -> Value:
    names = list(value.entries)
    kind, items = _uniform(list(value.entries.values()), wanted, value.type)
    missing = next(filter(None, map(first_unknown, items)), None) if kind.kind is Kind.DYNAMIC and items else None
    if missing is not None:
        return Value(map_of(kind), missing)
    return Value(map_of(kind), dict(zip(names, items, strict=True)))


def _to_collection(value: Value, wanted: Type) -> Value:
    kind, items = _uniform(value.items, wanted, value.type)
    if wanted.kind is Kind.SET:
        return set_value(items, kind)
    missing = next(filter(None, map(first_unknown, items)), None) if kind.kind is Kind.DYNAMIC and items else None
    return Value(list_of(kind), tuple(items) if missing is None else missing)


def _uniform(items: Sequence[Value], wanted: Type, given: Type) -> tuple[Type, Sequence[Value]]:
    """Return the elements of a collection as the type wanted, all of one type, and that type."""
    element = wanted.item
    if not items:
        if given.element and not convertible(given.element, element, unsafe=True):
            raise mismatch(given, wanted)
        return _without_any(element, given.item if given.element else DYNAMIC), items
    if element.kind is Kind.DYNAMIC:
        found = unify([item.type for item in items])
        if found is None:
            raise ValueFault("the elements have no type in common")
        return _solid(found, [convert(item, found) for item in items])
    converted = [convert(item, element) for item in items]
    if not has_dynamic(element):
        return converted[0].type, converted
    found = unify([item.type for item in converted])
    if found is None:
        raise ValueFault("the elements have no type in common")
    return _solid(found, [convert(item, found) for item in converted])


def _solid(kind: Type, items: Sequence[Value]) -> tuple[Type, Sequence[Value]]:
    """Return the elements as the one type that all have but those that are null."""
    if kind.kind is not Kind.DYNAMIC:
        return kind, items
    given = [item.type for item in items if item.type.kind is not Kind.DYNAMIC]
    if any(each != given[0] for each in given[1:]):
        raise ValueFault("the elements have no type in common")
    kind = given[0] if given else DYNAMIC
    return kind, [convert(item, kind) for item in items]


def _without_any(wanted: Type, given: Type) -> Type:
    """Return the type wanted, with what is given in place of `any`, and no attribute optional."""
    if wanted.kind is Kind.DYNAMIC:
        return given
    if wanted.element is not None:
        return Type(wanted.kind, _without_any(wanted.element, given.element or DYNAMIC))
    if wanted.attributes:
        attributes = {
            name: _without_any(kind, given.attributes.get(name, DYNAMIC)) for name, kind in wanted.attributes.items()
        }
        return Type(Kind.OBJECT, attributes=attributes)
    if wanted.elements:
        return Type(Kind.TUPLE, elements=tuple(_without_any(each, DYNAMIC) for each in wanted.elements))
    return wanted


def as_text(value: Value) -> str:
    """Return a known value as a string. Raises ValueFault: it is none, or null."""
    if value.is_null:
        raise ValueFault("a string is required, and this is null")
    return convert(value, STRING).text


__all__ = ["as_text", "convert", "convert_to_unified", "mismatch", "unify", "unify_all"]
