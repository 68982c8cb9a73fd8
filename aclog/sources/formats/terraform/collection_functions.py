"""Functions of Terraform's language: their definition, and those on lists, sets, tuples, maps and objects."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from aclog.metalog.values import frozen
from aclog.sources.formats.terraform.values import (
    BOOL,
    DYNAMIC,
    MAPPINGS,
    NUMBER,
    SEQUENCES,
    STRING,
    Kind,
    Type,
    Unknown,
    Value,
    ValueFault,
    boolean,
    convert,
    equal,
    first_unknown,
    list_of,
    map_of,
    number,
    object_value,
    set_of,
    string,
    tuple_value,
    unify,
    with_sensitivity,
)

# A function of Terraform's language.


@frozen(kw_only=True)
class Function:
    """The types of its parameters, and its result for arguments of these types."""

    body: Callable[..., Value]
    parameters: tuple[Type, ...] = ()
    rest: Type | None = None
    """The type of all further arguments, if there may be more."""
    optional: int = 0
    """How many of the last parameters may be left out."""
    nulls: bool = False
    """Whether an argument may be null."""
    unknowns: bool = False
    """Whether an argument may be unknown."""
    structural: bool = False
    """Whether elements of an argument may be unknown: it moves them and does not look at them."""

    def call(self, arguments: Sequence[Value]) -> Value:
        """Return the result; unknown if an argument is.

        Raises:
            ValueFault: the wrong number of arguments, or of the wrong types.

        """
        count, total = len(self.parameters), len(arguments)
        if total < count - self.optional or (total > count and self.rest is None):
            raise ValueFault(f"takes {self._count_text()}, and {total} are given")
        types = (*self.parameters[:total], *([self.rest or DYNAMIC] * (total - count)))
        ready = [
            self._argument(n, value, kind) for n, (value, kind) in enumerate(zip(arguments, types, strict=True), 1)
        ]
        if not self.unknowns:
            for value in ready:
                missing = value.unknown if self.structural else first_unknown(value)
                if missing is not None:
                    return with_sensitivity(Value(DYNAMIC, missing), *arguments)
        return with_sensitivity(self.body(*ready), *arguments)

    def _argument(self, position: int, value: Value, kind: Type) -> Value:
        if value.is_null and not self.nulls:
            raise ValueFault(f"argument {position} is null")
        try:
            return convert(value, kind)
        except ValueFault as fault:
            raise ValueFault(f"argument {position}: {fault}") from fault

    def _count_text(self) -> str:
        count = len(self.parameters)
        least = count - self.optional
        if self.rest is not None:
            return f"at least {least} arguments"
        return f"{count} arguments" if not self.optional else f"{least} to {count} arguments"


# Functions on lists, sets, tuples, maps and objects.


def listed(items: Iterable[Value], element: Type) -> Value:
    """Return a list of values of one type."""
    return Value(list_of(element), tuple(items))


def sequence_of(value: Value) -> tuple[Value, ...]:
    """Return the elements of a list, set or tuple. Raises ValueFault: another type."""
    if value.type.kind not in SEQUENCES:
        raise ValueFault(f"a list, set or tuple is required, and this is a {value.type}")
    return value.items


def _mapping(value: Value) -> Mapping[str, Value]:
    if value.type.kind not in MAPPINGS:
        raise ValueFault(f"a map or an object is required, and this is a {value.type}")
    return value.entries


def whole(value: Value) -> int:
    """Return a whole number. Raises ValueFault: it has a fraction."""
    if not isinstance(value.number, int):
        raise ValueFault("a whole number is required")
    return value.number


def _length(value: Value) -> Value:
    if value.type.kind is Kind.STRING:
        return number(len(value.text))
    if value.type.kind not in SEQUENCES and value.type.kind not in MAPPINGS:
        raise ValueFault(f"a string, a collection or a structure is required, and this is a {value.type}")
    payload = value.payload
    return number(len(payload if isinstance(payload, tuple) else value.entries))


def _coalesce(*values: Value) -> Value:
    kind = unify([value.type for value in values])
    if kind is None:
        raise ValueFault("the arguments have no type in common")
    for value in values:
        if value.unknown is not None:
            return Value(kind, value.unknown)
        converted = convert(value, kind)
        if not converted.is_null and converted.payload != "":
            return converted
    raise ValueFault("all arguments are null or empty strings")


def _coalescelist(*values: Value) -> Value:
    for value in values:
        if value.unknown is not None:
            return value
        if value.type.kind not in (Kind.LIST, Kind.TUPLE):
            raise ValueFault("all arguments must be lists or tuples")
    for value in values:
        if not value.is_null and value.items:
            return value
    raise ValueFault("all arguments are null or empty")


def _concat(*values: Value) -> Value:
    if not values:
        raise ValueFault("at least one argument is required")
    if any(value.type.kind not in (Kind.LIST, Kind.TUPLE) for value in values):
        raise ValueFault("all arguments must be lists or tuples")
    if all(value.type.kind is Kind.LIST for value in values):
        common = unify([value.type for value in values])
        if common is not None:
            return listed((item for value in values for item in convert(value, common).items), common.item)
    return tuple_value(item for value in values for item in value.items)


def _contains(collection: Value, value: Value) -> Value:
    if collection.is_null:
        raise ValueFault("the list is null")
    missing: Unknown | None = None
    for item in sequence_of(collection):
        same = equal(value, item)
        if same is True:
            return boolean(True)
        missing = missing or (same if isinstance(same, Unknown) else None)
    return boolean(False) if missing is None else Value(BOOL, missing)


def _distinct(values: Value) -> Value:
    result: list[Value] = []
    payloads: set[object] = set()
    for item in values.items:
        if values.type.item.is_primitive:
            if item.payload in payloads:
                continue
            payloads.add(item.payload)
            result.append(item)
        elif not any(equal(item, each) is True for each in result):
            result.append(item)
    return listed(result, values.type.item)


def _element(values: Value, index: Value) -> Value:
    if values.type.kind not in (Kind.LIST, Kind.TUPLE):
        raise ValueFault(f"a list or tuple is required, and this is a {values.type}")
    if not values.items:
        raise ValueFault("an empty list has no element")
    return values.items[whole(index) % len(values.items)]


def _flatten(values: Value) -> Value:
    return tuple_value(_flat(sequence_of(values)))


def _flat(items: Sequence[Value]) -> Iterable[Value]:
    for item in items:
        if item.type.kind in SEQUENCES and not item.is_null:
            yield from _flat(item.items)
        else:
            yield item


def _index(values: Value, value: Value) -> Value:
    for position, item in enumerate(sequence_of(values)):
        if equal(item, value) is True:
            return number(position)
    raise ValueFault("there is no such element")


def _keys(value: Value) -> Value:
    names = [string(name) for name in _mapping(value)]
    return listed(names, STRING) if value.type.kind is Kind.MAP else tuple_value(names)


def _values(value: Value) -> Value:
    items = list(_mapping(value).values())
    return listed(items, value.type.item) if value.type.kind is Kind.MAP else tuple_value(items)


def _lookup(value: Value, key: Value, *default: Value) -> Value:
    if value.is_null or key.is_null:
        raise ValueFault("an argument is null")
    missing = value.unknown or key.unknown
    if missing is not None:
        return Value(DYNAMIC, missing)
    entry = _mapping(value).get(key.text)
    if entry is not None:
        return entry
    if not default:
        raise ValueFault("there is no such key, and no default is given")
    return convert(default[0], value.type.item) if value.type.kind is Kind.MAP else default[0]


def _matchkeys(values: Value, keys: Value, searchset: Value) -> Value:
    if len(values.items) != len(keys.items):
        raise ValueFault("there must be as many keys as values")
    common = unify([keys.type, searchset.type])
    if common is None:
        raise ValueFault("keys and wanted keys must be of one type")
    sought = convert(searchset, common).items
    result = [
        item
        for item, key in zip(values.items, convert(keys, common).items, strict=True)
        if any(equal(key, each) is True for each in sought)
    ]
    return listed(result, values.type.item)


def _merge(*values: Value) -> Value:
    merged: dict[str, Value] = {}
    for value in values:
        if value.is_null and value.type.kind is Kind.DYNAMIC:
            continue
        if value.type.kind not in MAPPINGS:
            raise ValueFault(f"all arguments must be maps or objects, and one is a {value.type}")
        if not value.is_null:
            merged.update(value.entries)
    first = values[0].type if values else None
    if first is not None and first.kind is Kind.MAP and all(value.type == first for value in values):
        return Value(first, {name: merged[name] for name in sorted(merged)})
    return object_value(merged)


def _one(value: Value) -> Value:
    items = sequence_of(value)
    if len(items) > 1:
        raise ValueFault("a list, set or tuple with none or one element is required")
    return items[0] if items else Value(value.type.element or DYNAMIC, None)


def _range(*limits: Value) -> Value:
    numbers = [limit.number for limit in limits]
    if len(numbers) > 3 or not numbers:
        raise ValueFault("takes one to three arguments")
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else (1 if end >= start else -1)
    if step == 0 or ((step > 0) != (end >= start) and start != end):
        raise ValueFault("the step leads nowhere")
    result = []
    current = start
    while (current < end) if step > 0 else (current > end):
        result.append(number(current))
        current += step
        if len(result) > 1024:
            raise ValueFault("more than 1,024 elements")
    return listed(result, NUMBER)


def _reverse(value: Value) -> Value:
    items = sequence_of(value)[::-1]
    return tuple_value(items) if value.type.kind is Kind.TUPLE else listed(items, value.type.item)


def _slice(value: Value, start: Value, end: Value) -> Value:
    if value.type.kind not in (Kind.LIST, Kind.TUPLE):
        raise ValueFault(f"a list or tuple is required, and this is a {value.type}")
    first, last = whole(start), whole(end)
    if not 0 <= first <= last <= len(value.items):
        raise ValueFault(f"the indexes must be in order, and within the {len(value.items)} elements")
    items = value.items[first:last]
    return tuple_value(items) if value.type.kind is Kind.TUPLE else listed(items, value.type.item)


def _sort(value: Value) -> Value:
    if any(item.is_null for item in value.items):
        raise ValueFault("an element is null: it cannot be sorted")
    return listed(sorted(value.items, key=lambda item: item.text), STRING)


def _transpose(value: Value) -> Value:
    turned: dict[str, list[Value]] = {}
    for name, items in value.entries.items():
        for item in items.items:
            if item.is_null:
                raise ValueFault("an element is null")
            turned.setdefault(item.text, []).append(string(name))
    return Value(map_of(list_of(STRING)), {name: listed(turned[name], STRING) for name in sorted(turned)})


def _zipmap(keys: Value, values: Value) -> Value:
    if len(keys.items) != len(sequence_of(values)):
        raise ValueFault(f"there are {len(keys.items)} keys and {len(values.items)} values")
    if any(key.is_null for key in keys.items):
        raise ValueFault("a key is null")
    entries = dict(zip((key.text for key in keys.items), values.items, strict=True))
    if values.type.kind is Kind.LIST:
        return Value(map_of(values.type.item), {name: entries[name] for name in sorted(entries)})
    if values.type.kind is not Kind.TUPLE:
        raise ValueFault("the values must be a list or tuple")
    return object_value(entries)


def _chunklist(values: Value, size: Value) -> Value:
    count = whole(size)
    if count < 0:
        raise ValueFault("the size must not be negative")
    items = values.items
    chunks = (
        [items[start : start + count] for start in range(0, len(items), count)] if count else [items] if items else []
    )
    return listed((Value(values.type, chunk) for chunk in chunks), values.type)


def _truth(value: Value, *, every: bool) -> Value:
    """Return whether all elements are true, or whether any is; null is not."""
    missing: Unknown | None = None
    for item in value.items:
        missing = missing or item.unknown
        if item.unknown is None and (item.payload is True) is not every:
            return boolean(not every)
    return boolean(every) if missing is None else Value(BOOL, missing)


def _keep(value: Value) -> Value:
    return value


_STRINGS, _ANYTHINGS = list_of(STRING), list_of(DYNAMIC)
_ANY_SET = set_of(DYNAMIC)

COLLECTION_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "alltrue": Function(parameters=(list_of(BOOL),), body=lambda value: _truth(value, every=True), structural=True),
        "anytrue": Function(
            parameters=(list_of(BOOL),), body=lambda value: _truth(value, every=False), structural=True
        ),
        "chunklist": Function(parameters=(_ANYTHINGS, NUMBER), body=_chunklist, structural=True),
        "coalesce": Function(rest=DYNAMIC, body=_coalesce, nulls=True, unknowns=True),
        "coalescelist": Function(rest=DYNAMIC, body=_coalescelist, nulls=True, unknowns=True),
        "compact": Function(
            parameters=(_STRINGS,), body=lambda value: listed((item for item in value.items if item.payload), STRING)
        ),
        "concat": Function(rest=DYNAMIC, body=_concat, structural=True),
        "contains": Function(parameters=(DYNAMIC, DYNAMIC), body=_contains, nulls=True, structural=True),
        "distinct": Function(parameters=(_ANYTHINGS,), body=_distinct),
        "element": Function(parameters=(DYNAMIC, NUMBER), body=_element, structural=True),
        "flatten": Function(parameters=(DYNAMIC,), body=_flatten, structural=True),
        "index": Function(parameters=(DYNAMIC, DYNAMIC), body=_index),
        "keys": Function(parameters=(DYNAMIC,), body=_keys, structural=True),
        "length": Function(parameters=(DYNAMIC,), body=_length, structural=True),
        "lookup": Function(parameters=(DYNAMIC, STRING, DYNAMIC), optional=1, body=_lookup, nulls=True, unknowns=True),
        "matchkeys": Function(parameters=(_ANYTHINGS, _ANYTHINGS, _ANYTHINGS), body=_matchkeys),
        "merge": Function(rest=DYNAMIC, body=_merge, nulls=True, structural=True),
        "one": Function(parameters=(DYNAMIC,), body=_one, structural=True),
        "range": Function(rest=NUMBER, body=_range),
        "reverse": Function(parameters=(DYNAMIC,), body=_reverse, structural=True),
        "slice": Function(parameters=(DYNAMIC, NUMBER, NUMBER), body=_slice, structural=True),
        "sort": Function(parameters=(_STRINGS,), body=_sort),
        "tolist": Function(parameters=(_ANYTHINGS,), body=_keep, nulls=True, unknowns=True),
        "tomap": Function(parameters=(map_of(DYNAMIC),), body=_keep, nulls=True, unknowns=True),
        "toset": Function(parameters=(_ANY_SET,), body=_keep, nulls=True, unknowns=True),
        "transpose": Function(parameters=(map_of(_STRINGS),), body=_transpose),
        "values": Function(parameters=(DYNAMIC,), body=_values, structural=True),
        "zipmap": Function(parameters=(_STRINGS, DYNAMIC), body=_zipmap, structural=True),
    }
)
