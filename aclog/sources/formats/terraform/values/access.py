"""What is inside a value: attributes, elements, equality."""

from collections.abc import Iterator, Mapping
from itertools import starmap

from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.types import (
    DYNAMIC,
    MAPPINGS,
    NUMBER,
    SEQUENCES,
    STRING,
    Kind,
)
from aclog.sources.formats.terraform.values.value import (
    OpenEntries,
    Unknown,
    Value,
    number,
    string,
    with_sensitivity,
)


def get_attribute(value: Value, name: str) -> Value:
    """Return `value.name`. Raises ValueFault: there is no such attribute."""
    payload = value.payload
    if payload is None:
        raise ValueFault(f"attribute {name!r} of null")
    if isinstance(payload, Unknown):
        kind = value.type.attributes.get(name) or value.type.element or DYNAMIC
        return Value(kind, payload, value.sensitive)
    if value.type.kind not in MAPPINGS:
        raise ValueFault(f"attribute {name!r} of a {value.type}: it has none")
    found = value.entries.get(name)
    if found is not None:
        return with_sensitivity(found, value)
    if isinstance(payload, OpenEntries):
        what = Unknown(f"{payload.others.what.split(',')[0]}.{name}, which only Terraform learns", payload.others.where)
        return Value(DYNAMIC, what, value.sensitive)
    raise ValueFault(f"there is no attribute {name!r}")


def get_index(value: Value, key: Value) -> Value:
    """Return `value[key]`. Raises ValueFault: there is no such element."""
    if value.is_null or key.is_null:
        raise ValueFault("an index of null" if value.is_null else "an index that is null")
    kind = value.type.kind
    if isinstance(value.payload, Unknown) or key.unknown is not None:
        missing = key.unknown or value.unknown
        return with_sensitivity(Value(value.type.element or DYNAMIC, missing), value, key)
    if kind in MAPPINGS:
        name = convert(key, STRING).text
        if isinstance(value.payload, OpenEntries) or name in value.entries:
            return with_sensitivity(get_attribute(value, name), key)
        raise ValueFault("there is no element with this key")
    if kind not in (Kind.LIST, Kind.TUPLE):
        raise ValueFault(f"an index of a {value.type}: it has none")
    position = convert(key, NUMBER).number
    if not isinstance(position, int) or not 0 <= position < len(value.items):
        raise ValueFault(f"there is no element with this index: there are {len(value.items)}")
    return with_sensitivity(value.items[position], value, key)


def elements(value: Value) -> Iterator[tuple[Value, Value]]:
    """Yield the keys and elements of a known list, set, tuple, map or object; an element of a set is its own key."""
    payload = value.payload
    if isinstance(payload, Mapping):
        for name, item in payload.items():
            yield string(name), item
    elif isinstance(payload, tuple):
        for position, item in enumerate(payload):
            yield (item if value.type.kind is Kind.SET else number(position)), item


def is_iterable(value: Value) -> bool:
    """Return whether it is of a type that has elements."""
    return value.type.kind in SEQUENCES or value.type.kind in MAPPINGS


def equal(one: Value, other: Value) -> bool | Unknown:
    """Return whether two values are equal: of one type, with equal content."""
    if one.is_null or other.is_null:
        payload = one.payload or other.payload
        return payload if isinstance(payload, Unknown) else one.is_null and other.is_null
    missing = one.unknown or other.unknown
    if missing is not None:
        return missing
    return _same_content(one, other) if one.type == other.type else False


def _same_content(one: Value, other: Value) -> bool | Unknown:
    if isinstance(one.payload, tuple):
        if len(one.items) != len(other.items):
            return False
        return _all_equal(starmap(equal, zip(one.items, other.items, strict=True)))
    if isinstance(one.payload, Mapping):
        if one.entries.keys() != other.entries.keys():
            return False
        return _all_equal(equal(item, other.entries[name]) for name, item in one.entries.items())
    return one.payload == other.payload


def _all_equal(answers: Iterator[bool | Unknown]) -> bool | Unknown:
    missing: Unknown | None = None
    for answer in answers:
        if answer is False:
            return False
        if isinstance(answer, Unknown):
            missing = missing or answer
    return missing or True
