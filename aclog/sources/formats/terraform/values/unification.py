"""Which types convert into which, and the one type to which several convert."""

from collections.abc import Callable, Sequence

from aclog.sources.formats.terraform.values.types import (
    COLLECTIONS,
    DYNAMIC,
    MAPPINGS,
    Kind,
    Type,
    list_of,
    map_of,
)


def convertible(given: Type, wanted: Type, *, unsafe: bool) -> bool:
    """Return whether a value of one type may be converted into the other; unsafe: if its content allows it."""
    if given == wanted or wanted.kind is Kind.DYNAMIC:
        return True
    if given.kind is Kind.DYNAMIC:
        return unsafe
    if given.is_primitive and wanted.is_primitive:
        return wanted.kind is Kind.STRING or (unsafe and given.kind is Kind.STRING)
    return _structure_convertible(given, wanted, unsafe=unsafe)


def _structure_convertible(given: Type, wanted: Type, *, unsafe: bool) -> bool:  # noqa: PLR0911
    match given.kind, wanted.kind:
        case Kind.OBJECT, Kind.OBJECT:
            return all(
                convertible(given.attributes[name], kind, unsafe=unsafe)
                if name in given.attributes
                else name in wanted.optional
                for name, kind in wanted.attributes.items()
            )
        case Kind.TUPLE, Kind.TUPLE:
            return len(given.elements) == len(wanted.elements) and all(
                convertible(one, other, unsafe=unsafe)
                for one, other in zip(given.elements, wanted.elements, strict=True)
            )
        case (Kind.LIST | Kind.SET, Kind.LIST | Kind.SET) | (Kind.MAP, Kind.MAP):
            if given.kind is Kind.LIST and wanted.kind is Kind.SET and not unsafe:
                return False
            return convertible(given.item, wanted.item, unsafe=unsafe)
        case Kind.TUPLE, Kind.LIST | Kind.SET:
            return _parts_convertible(given.elements, wanted.item, unsafe=unsafe)
        case Kind.OBJECT, Kind.MAP:
            return _parts_convertible(tuple(given.attributes.values()), wanted.item, unsafe=unsafe)
        case Kind.MAP, Kind.OBJECT:
            return unsafe and all(
                convertible(given.item, kind, unsafe=True) or name in wanted.optional
                for name, kind in wanted.attributes.items()
            )
    return False


def _parts_convertible(parts: Sequence[Type], wanted: Type, *, unsafe: bool) -> bool:
    if not parts:
        return True
    if wanted.kind is Kind.DYNAMIC:
        found = unify(parts, unsafe=unsafe)
        return found is not None
    return all(convertible(part, wanted, unsafe=unsafe) for part in parts)


def unify_all(types: Sequence[Type]) -> Type | None:
    """Return the type to which all convert without looking at their content; None: there is none."""
    return unify(types, unsafe=False)


def unify(types: Sequence[Type], *, unsafe: bool = True) -> Type | None:
    """Return the type to which values of all these types convert; None: there is none."""
    if not types:
        return None
    first = types[0]
    if all(kind == first for kind in types):
        return first
    kinds = {kind.kind for kind in types}
    solid = kinds - {Kind.DYNAMIC}
    if len(solid) == 1 and (only := next(iter(solid))) in _SAME_KIND:
        return DYNAMIC if Kind.DYNAMIC in kinds else _SAME_KIND[only](types, unsafe)
    if kinds >= {Kind.OBJECT, Kind.TUPLE}:
        return None
    for collection, structure, merge in (
        (Kind.MAP, Kind.OBJECT, _objects_to_map),
        (Kind.LIST, Kind.TUPLE, _tuples_to_list),
    ):
        if solid == {collection, structure}:
            merged = merge([kind for kind in types if kind.kind is structure], unsafe)
            found = merged and unify([merged if kind.kind is structure else kind for kind in types], unsafe=unsafe)
            if found and found.kind is collection:
                return found
    return _preferred(types, unsafe=unsafe)


def _preferred(types: Sequence[Type], *, unsafe: bool) -> Type | None:
    for index in _preference(types):
        wanted = types[index]
        if all(convertible(kind, wanted, unsafe=unsafe) for kind in types):
            return wanted
    return None


def _collections(types: Sequence[Type], unsafe: bool) -> Type | None:
    element = unify([kind.item for kind in types], unsafe=unsafe)
    return element and Type(types[0].kind, element)


def _objects(types: Sequence[Type], unsafe: bool) -> Type | None:
    names = set(types[0].attributes)
    if any(set(kind.attributes) != names for kind in types):
        return _objects_to_map(types, unsafe)
    merged = {}
    for name in sorted(names):
        kind = unify([each.attributes[name] for each in types], unsafe=unsafe)
        if kind is None:
            return None
        merged[name] = kind
    return Type(Kind.OBJECT, attributes=merged)


def _objects_to_map(types: Sequence[Type], unsafe: bool) -> Type | None:
    element = unify([part for kind in types for part in kind.attributes.values()], unsafe=unsafe)
    return element and map_of(element)


def _tuples(types: Sequence[Type], unsafe: bool) -> Type | None:
    if len({len(kind.elements) for kind in types}) > 1:
        return _tuples_to_list(types, unsafe)
    merged = []
    for parts in zip(*(kind.elements for kind in types), strict=True):
        kind = unify(parts, unsafe=unsafe)
        if kind is None:
            return None
        merged.append(kind)
    return Type(Kind.TUPLE, elements=tuple(merged))


def _tuples_to_list(types: Sequence[Type], unsafe: bool) -> Type | None:
    element = unify([part for kind in types for part in kind.elements], unsafe=unsafe)
    return element and list_of(element)


_SAME_KIND: dict[Kind, Callable[[Sequence[Type], bool], Type | None]] = {
    Kind.OBJECT: _objects,
    Kind.TUPLE: _tuples,
    **dict.fromkeys(COLLECTIONS, _collections),
}


def _preference(types: Sequence[Type]) -> list[int]:
    """Return the positions of the types, those first into which others convert (a topological order)."""
    count = len(types)
    after: list[list[int]] = [[] for _ in types]
    before = [0] * count
    for one in range(count):
        for other in range(one + 1, count):
            order = _compare(types[one], types[other])
            if order:
                first, second = (one, other) if order < 0 else (other, one)
                after[first].append(second)
                before[second] += 1
    queue = [index for index in range(count) if before[index] == 0]
    for index in queue:
        for following in after[index]:
            before[following] -= 1
            if before[following] == 0:
                queue.append(following)
    return queue


_RANK = {Kind.LIST: 0, Kind.TUPLE: 1, Kind.SET: 2}


def _compare(one: Type, other: Type) -> int:
    """Return whether the first is preferred (-1), the second (1), or neither (0)."""
    if one.kind is Kind.DYNAMIC or other.kind is Kind.DYNAMIC:
        return (one.kind is Kind.DYNAMIC) - (other.kind is Kind.DYNAMIC)
    if Kind.STRING in (one.kind, other.kind) and one.is_primitive and other.is_primitive:
        return (other.kind is Kind.STRING) - (one.kind is Kind.STRING)
    if one.kind is other.kind:
        return _compare_parts(one, other)
    if one.kind in _RANK and other.kind in _RANK:
        first, second = _RANK[one.kind], _RANK[other.kind]
        return (first > second) - (first < second)
    if one.kind in MAPPINGS and other.kind in MAPPINGS:
        return -1 if one.kind is Kind.MAP else 1
    return 0


def _compare_parts(one: Type, other: Type) -> int:
    if one.kind in COLLECTIONS:
        return _compare(one.item, other.item)
    if one.kind is Kind.OBJECT and set(one.attributes) == set(other.attributes):
        orders = {_compare(one.attributes[name], other.attributes[name]) for name in one.attributes}
    elif one.kind is Kind.TUPLE and len(one.elements) == len(other.elements):
        orders = {_compare(first, second) for first, second in zip(one.elements, other.elements, strict=True)}
    else:
        return 0
    return (1 in orders) - (-1 in orders)
