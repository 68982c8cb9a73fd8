"""The values and types of Terraform's language, and their conversions."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from itertools import starmap
from types import MappingProxyType
from typing import TypeAlias, cast

from attrs import Factory, evolve, field

from aclog.authorizer.symbols import expression_of, literal_part, symbol_part
from aclog.metalog.errors import ConfigError, without_marks
from aclog.metalog.values import frozen

# Why an expression has no value; the evaluator adds file and line.


class TooLargeError(ConfigError):
    """A value beyond any use: a few lines can double one until no memory holds it. `try` does not catch this."""


class ValueFault(Exception):  # noqa: N818
    """The error of an operand, an argument or a conversion, in words; it never shows a value."""


# Numbers: binary floating point with 512 bits of mantissa, as go-cty has them (math/big.Float).


Number: TypeAlias = int | Fraction
"""An int where the number is whole, else a Fraction whose denominator is a power of two."""

_PRECISION = 512
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_LARGEST_BITS = 13_000
_LONGEST, _LARGEST_EXPONENT = 4_000, 3_800
"""The limits of a parsed decimal number: beyond any use, and a bound on the time of parsing one."""


def rounded(exact: Number) -> Number:
    """Return the nearest number of 512 bits; a tie goes to the even one."""
    if isinstance(exact, int):
        if exact.bit_length() <= _PRECISION:
            return exact
    elif exact.denominator == 1:
        return rounded(exact.numerator)
    numerator, denominator = (exact, 1) if isinstance(exact, int) else (exact.numerator, exact.denominator)
    if max(numerator.bit_length(), denominator.bit_length()) > _LARGEST_BITS:
        raise ValueFault("a number that is too large, or too small")
    shift = _PRECISION - (abs(numerator).bit_length() - denominator.bit_length())
    mantissa = _nearest(numerator, denominator, shift)
    while mantissa.bit_length() > _PRECISION:
        shift -= 1
        mantissa = _nearest(numerator, denominator, shift)
    value = Fraction(mantissa, 1 << shift) if shift >= 0 else Fraction(mantissa << -shift)
    return value.numerator if value.denominator == 1 else value


def _nearest(numerator: int, denominator: int, shift: int) -> int:
    return round(
        Fraction(numerator << shift, denominator) if shift >= 0 else Fraction(numerator, denominator << -shift)
    )


def parse_number(text: str) -> Number | None:
    """Return the number in a text, as cty.ParseNumberVal reads it; None: not a number."""
    if _NUMBER.match(text) is None or len(text) > _LONGEST:
        return None
    _, _, exponent = text.lower().partition("e")
    if exponent and (len(exponent) > 6 or abs(int(exponent)) > _LARGEST_EXPONENT):
        return None
    return rounded(Fraction(text))


def number_text(value: Number) -> str:
    """Return the shortest decimal that is read back as the same number, without an exponent (big.Float's 'f', -1)."""
    if isinstance(value, int) and value.bit_length() <= _PRECISION:
        return str(value)
    sign = "-" if value < 0 else ""
    digits, point = _shortest(Fraction(-value if value < 0 else value))
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits.ljust(point, "0")
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _shortest(value: Fraction) -> tuple[str, int]:
    """Return the digits, and how many of them are before the decimal point."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if _power(2, exponent) > value:
        exponent -= 1
    ulp = _power(2, exponent - _PRECISION + 1)
    half = ulp / 2
    low, high = value - (half / 2 if value == _power(2, exponent) else half), value + half
    point = len(str(int(value))) if value >= 1 else 0
    while value < _power(10, point - 1):
        point -= 1
    for count in range(1, 400):
        unit = _power(10, point - count)
        below = value // unit
        best = min((below, below + 1), key=lambda n: abs(n * unit - value))
        for digits in (best, below, below + 1):
            if low < digits * unit < high:
                text = str(digits)
                return text.rstrip("0") or "0", point + len(text) - count
    return str(value), point


def _power(base: int, exponent: int) -> Fraction:
    return Fraction(base**exponent) if exponent >= 0 else Fraction(1, base**-exponent)


# The types of Terraform's language.


class Kind(Enum):
    """The kind of a type. The values are the words of a type constraint."""

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


# Which types convert into which, and the one type to which several convert.


def convertible(source: Type, target: Type, *, unsafe: bool) -> bool:
    """Return whether a value of one type may be converted into the other; unsafe: if its content allows it."""
    if source == target or target.kind is Kind.DYNAMIC:
        return True
    if source.kind is Kind.DYNAMIC:
        return unsafe
    if source.is_primitive and target.is_primitive:
        return target.kind is Kind.STRING or (unsafe and source.kind is Kind.STRING)
    return _structure_convertible(source, target, unsafe=unsafe)


def _structure_convertible(source: Type, target: Type, *, unsafe: bool) -> bool:  # noqa: PLR0911
    match source.kind, target.kind:
        case Kind.OBJECT, Kind.OBJECT:
            return all(
                convertible(source.attributes[name], kind, unsafe=unsafe)
                if name in source.attributes
                else name in target.optional
                for name, kind in target.attributes.items()
            )
        case Kind.TUPLE, Kind.TUPLE:
            return len(source.elements) == len(target.elements) and all(
                convertible(one, other, unsafe=unsafe)
                for one, other in zip(source.elements, target.elements, strict=True)
            )
        case (Kind.LIST | Kind.SET, Kind.LIST | Kind.SET) | (Kind.MAP, Kind.MAP):
            if source.kind is Kind.LIST and target.kind is Kind.SET and not unsafe:
                return False
            return convertible(source.item, target.item, unsafe=unsafe)
        case Kind.TUPLE, Kind.LIST | Kind.SET:
            return _parts_convertible(source.elements, target.item, unsafe=unsafe)
        case Kind.OBJECT, Kind.MAP:
            return _parts_convertible(tuple(source.attributes.values()), target.item, unsafe=unsafe)
        case Kind.MAP, Kind.OBJECT:
            return unsafe and all(
                convertible(source.item, kind, unsafe=True) or name in target.optional
                for name, kind in target.attributes.items()
            )
    return False


def _parts_convertible(parts: Sequence[Type], target: Type, *, unsafe: bool) -> bool:
    if not parts:
        return True
    if target.kind is Kind.DYNAMIC:
        unified = unify(parts, unsafe=unsafe)
        return unified is not None
    return all(convertible(part, target, unsafe=unsafe) for part in parts)


def unify_all(types: Sequence[Type]) -> Type | None:
    """Return the type to which all convert without looking at their content; None without one."""
    return unify(types, unsafe=False)


def unify(types: Sequence[Type], *, unsafe: bool = True) -> Type | None:
    """Return the type to which values of all these types convert; None without one."""
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
            unified = merged and unify([merged if kind.kind is structure else kind for kind in types], unsafe=unsafe)
            if unified and unified.kind is collection:
                return unified
    return _preferred(types, unsafe=unsafe)


def _preferred(types: Sequence[Type], *, unsafe: bool) -> Type | None:
    for index in _preference(types):
        candidate = types[index]
        if all(convertible(kind, candidate, unsafe=unsafe) for kind in types):
            return candidate
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


# The values of Terraform's language.


@frozen
class Unknown:
    """A value that only Terraform knows, during apply: an id, a data source, a variable without a value."""

    what: str
    """The name of the value, such as `var.principal, which has no value`."""
    where: str = ""
    """`FILE:LINE` of the reference, if known."""
    fix: str = ""
    """What gives it a value, such as `expected --var principal=VALUE`; empty if nothing but Terraform does."""

    def __str__(self) -> str:
        """Return the unknown value's name, and its location."""
        return f"{self.what} (at {self.where})" if self.where else self.what


class OpenEntries(dict[str, "Value"]):
    """Attributes of a resource: those that its configuration sets; only Terraform knows the values of all others."""

    def __init__(self, entries: "Mapping[str, Value]", others: Unknown) -> None:
        """The configured attributes, and the text for the others."""
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
    symbol: str = field(default="", eq=False, kw_only=True)
    """Of an unknown value: the text of which it is the value (aclog.authorizer.symbols); empty without such a text."""
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
        """The reason why the value is unknown; None: it is known (its elements may not be)."""
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
"""The limit of `size`: thousands of times the rules of a large company."""
_LONGEST_TEXT = 1 << 20
"""Characters of a string."""


def _size(payload: Payload) -> int:
    """Return the size of a payload. Raises TooLargeError: it is beyond any use."""
    if isinstance(payload, str):
        size = 1 + (len(payload) >> 5)
        if len(payload) > _LONGEST_TEXT:
            raise TooLargeError(f"a string of more than {_LONGEST_TEXT:,} characters")
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


def unknown_name(what: Unknown, expression: str, kind: Type = DYNAMIC) -> Value:
    """Return an unknown value that an expression denotes wherever it occurs, such as an attribute of a resource."""
    return Value(kind, what, symbol=symbol_part(expression))


_LONGEST_SYMBOL = 1_000


def _member_symbol(value: Value, step: str) -> str:
    """Return the symbol of a member of an unknown value."""
    expression = expression_of(value.symbol)
    return "" if expression is None else bounded_symbol(symbol_part(f"{expression}{step}"))


def bounded_symbol(text: str) -> str:
    """Return a symbol; an empty text instead of one that is beyond any use."""
    return text if len(text) <= _LONGEST_SYMBOL else ""


def expression_text(value: Value) -> str | None:
    """Return an expression whose value is this one, for a symbol; None without one, or if it must not be shown."""
    if value.sensitive:
        return None
    if value.unknown is not None:
        if not value.symbol:
            return None
        return expression_of(value.symbol) or f'"{without_marks(value.symbol)}"'
    if isinstance(value.payload, tuple):
        return _listed_text(list(map(expression_text, value.items)), "[]")
    if isinstance(value.payload, Mapping):
        texts = [(literal_part(quoted(key)), expression_text(item)) for key, item in value.entries.items()]
        return _listed_text([None if text is None else f"{key} = {text}" for key, text in texts], "{}")
    return _scalar_text(value)


def _scalar_text(value: Value) -> str:
    if value.is_null:
        return "null"
    if isinstance(value.payload, str):
        return literal_part(quoted(value.payload))
    if isinstance(value.payload, bool):
        return "true" if value.payload else "false"
    return number_text(value.number)


def _listed_text(texts: Sequence[str | None], brackets: str) -> str | None:
    stated = [text for text in texts if text is not None]
    return f"{brackets[0]}{', '.join(stated)}{brackets[1]}" if len(stated) == len(texts) else None


def with_sensitivity(value: Value, *causes: Value) -> Value:
    """Return the value, marked as sensitive if one of the causes is."""
    for cause in causes:
        if cause.sensitive and not value.sensitive:
            return evolve(value, sensitive=True)
    return value


def first_unknown(value: Value) -> Unknown | None:
    """Return the first unknown value in it, at any depth; None: wholly known."""
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


# Sets: which elements are the same, and the order in which Terraform visits them.


def set_value(items: Iterable[Value], element: Type) -> Value:
    """Return a set of values of one type: each once, in Terraform's order. One unknown element makes it unknown."""
    kind, unique = set_of(element), dict[object, Value]()
    for item in items:
        missing = first_unknown(item)
        if missing is not None:
            return Value(kind, missing)
        unique.setdefault(_identity(item), item)
    return Value(kind, tuple(sorted(unique.values(), key=lambda item: _order(item, element))))


def _identity(item: Value) -> object:
    payload = item.payload
    if isinstance(payload, tuple):
        return tuple(map(_identity, payload))
    if payload is None or isinstance(payload, (str, bool, Unknown)) or not hasattr(payload, "items"):
        return item.type.kind, payload
    return tuple((key, _identity(value)) for key, value in payload.items())


def _order(item: Value, element: Type) -> tuple[bool, object]:
    """Strings by code point, numbers by size, false before true, others by their text; null comes last."""
    if item.is_null:
        return True, 0 if element.kind in (Kind.NUMBER, Kind.BOOL) else (b"" if not element.is_primitive else "")
    return False, item.payload if element.is_primitive else "".join(_hash_text(item)).encode()


def _hash_text(item: Value) -> Iterable[str]:
    payload = item.payload
    if payload is None:
        yield "~"
    elif isinstance(payload, bool):
        yield "T" if payload else "F"
    elif isinstance(payload, str):
        yield quoted(payload)
    elif isinstance(payload, tuple):
        yield from _hash_sequence(item, payload)
    elif isinstance(payload, (int, Fraction)):
        yield _ten_digits(payload)
    else:
        yield from _hash_mapping(item)


def _hash_sequence(item: Value, payload: tuple[Value, ...]) -> Iterable[str]:
    is_tuple = item.type.kind is Kind.TUPLE
    yield "<" if is_tuple else "["
    for part in payload:
        yield from _hash_text(part)
        yield ";"
    yield ">" if is_tuple else "]"


def _hash_mapping(item: Value) -> Iterable[str]:
    is_map = item.type.kind is Kind.MAP
    yield "{" if is_map else "<"
    for key, part in item.entries.items():
        if is_map:
            yield quoted(key) + ":"
        yield from _hash_text(part)
        yield ";"
    yield "}" if is_map else ">"


def quoted(text: str) -> str:
    """Return the text in quotes as Go's %q writes it."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}


def _quoted_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _ten_digits(value: Number) -> str:
    """Return the number as Go's %.10g writes it (big.Float.String)."""
    text = number_text(value)
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    if len(digits) <= 10 and -10 < len(text) <= 10:
        return text
    return f"{float(value):.10g}"


# Conversion of values to types, and the one type to which several convert (go-cty's convert package).


_BOOLS: Mapping[str, Value] = {"true": TRUE, "1": TRUE, "false": FALSE, "0": FALSE}


def convert(value: Value, target: Type) -> Value:
    """Return the value as one of the type wanted; `any` in it is replaced by the type of the value there.

    Raises:
        ValueFault: it cannot be converted.

    """
    source = value.type
    if source is target or target.kind is Kind.DYNAMIC or source == target:
        return value
    payload = value.payload
    if payload is None or isinstance(payload, Unknown):
        if not convertible(value.type, target, unsafe=True):
            raise mismatch(value.type, target)
        return Value(_without_any(target, value.type), payload, value.sensitive, symbol=value.symbol)
    return with_sensitivity(_converted(value, target), value)


def convert_to_unified(values: Sequence[Value]) -> tuple[Type, list[Value]] | None:
    """Return the values converted to their common type; None: no common type."""
    kind = unify([value.type for value in values])
    return None if kind is None else (kind, [convert(value, kind) for value in values])


def mismatch(source: Type, target: Type) -> ValueFault:
    """Return the fault that one type is given where another is wanted."""
    return ValueFault(f"a {target} is required, and this is a {source}")


def _converted(value: Value, target: Type) -> Value:
    kind, source = target.kind, value.type
    if target.is_primitive:
        return _primitive(value, target)
    if value.unknown is not None and kind is not Kind.OBJECT:
        return Value(target, value.unknown, symbol=value.symbol)
    if kind is Kind.OBJECT and source.kind in (Kind.OBJECT, Kind.MAP):
        return _to_object(value, target)
    if kind is Kind.TUPLE and source.kind is Kind.TUPLE:
        if len(value.items) != len(target.elements):
            raise ValueFault(f"a tuple of {len(target.elements)} elements is required, and this has {len(value.items)}")
        return tuple_value(convert(item, each) for item, each in zip(value.items, target.elements, strict=True))
    if kind is Kind.MAP and source.kind in (Kind.MAP, Kind.OBJECT):
        return _to_map(value, target)
    if kind in (Kind.LIST, Kind.SET) and source.kind in SEQUENCES:
        return _to_collection(value, target)
    raise mismatch(source, target)


def _primitive(value: Value, target: Type) -> Value:
    payload = value.payload
    if target.kind is Kind.STRING:
        if isinstance(payload, bool):
            return string("true" if payload else "false")
        if value.type.kind is Kind.NUMBER:
            return string(number_text(value.number))
    elif isinstance(payload, str):
        if target.kind is Kind.BOOL and payload in _BOOLS:
            return _BOOLS[payload]
        if target.kind is Kind.NUMBER and (parsed := parse_number(payload)) is not None:
            return number(parsed)
        raise ValueFault(f"a {target} is required, and this string is not one")
    raise mismatch(value.type, target)


def _to_object(value: Value, target: Type) -> Value:
    entries = {}
    for name, kind in target.attributes.items():
        if name in value.entries:
            entries[name] = convert(value.entries[name], kind)
        elif value.unknown is not None:
            entries[name] = Value(kind, value.unknown, symbol=_member_symbol(value, f".{name}"))
        elif name in target.optional:
            entries[name] = Value(_without_any(kind, DYNAMIC), None)
        else:
            raise ValueFault(f"attribute {name!r} is required")
    return object_value(entries)


def _to_map(value: Value, target: Type) -> Value:
    names = list(value.entries)
    kind, items = _uniform(list(value.entries.values()), target, value.type)
    missing = next(filter(None, map(first_unknown, items)), None) if kind.kind is Kind.DYNAMIC and items else None
    if missing is not None:
        return Value(map_of(kind), missing)
    return Value(map_of(kind), dict(zip(names, items, strict=True)))


def _to_collection(value: Value, target: Type) -> Value:
    kind, items = _uniform(value.items, target, value.type)
    if target.kind is Kind.SET:
        return set_value(items, kind)
    missing = next(filter(None, map(first_unknown, items)), None) if kind.kind is Kind.DYNAMIC and items else None
    return Value(list_of(kind), tuple(items) if missing is None else missing)


def _uniform(items: Sequence[Value], target: Type, source: Type) -> tuple[Type, Sequence[Value]]:
    """Return the elements of a collection as the type wanted, all of one type, and that type."""
    element = target.item
    if not items:
        if source.element and not convertible(source.element, element, unsafe=True):
            raise mismatch(source, target)
        return _without_any(element, source.item if source.element else DYNAMIC), items
    if element.kind is Kind.DYNAMIC:
        unified = unify([item.type for item in items])
        if unified is None:
            raise ValueFault("the elements have no type in common")
        return _solid(unified, [convert(item, unified) for item in items])
    converted = [convert(item, element) for item in items]
    if not has_dynamic(element):
        return converted[0].type, converted
    unified = unify([item.type for item in converted])
    if unified is None:
        raise ValueFault("the elements have no type in common")
    return _solid(unified, [convert(item, unified) for item in converted])


def _solid(kind: Type, items: Sequence[Value]) -> tuple[Type, Sequence[Value]]:
    """Return the elements converted to the type of all that are not null."""
    if kind.kind is not Kind.DYNAMIC:
        return kind, items
    types = [item.type for item in items if item.type.kind is not Kind.DYNAMIC]
    if any(each != types[0] for each in types[1:]):
        raise ValueFault("the elements have no type in common")
    kind = types[0] if types else DYNAMIC
    return kind, [convert(item, kind) for item in items]


def _without_any(target: Type, source: Type) -> Type:
    """Return the type wanted, with `any` replaced by the given types, and no attribute optional."""
    if target.kind is Kind.DYNAMIC:
        return source
    if target.element is not None:
        return Type(target.kind, _without_any(target.element, source.element or DYNAMIC))
    if target.attributes:
        attributes = {
            name: _without_any(kind, source.attributes.get(name, DYNAMIC)) for name, kind in target.attributes.items()
        }
        return Type(Kind.OBJECT, attributes=attributes)
    if target.elements:
        return Type(Kind.TUPLE, elements=tuple(_without_any(each, DYNAMIC) for each in target.elements))
    return target


def as_text(value: Value) -> str:
    """Return a known value as a string. Raises ValueFault: another type, or null."""
    if value.is_null:
        raise ValueFault("a string is required, and this is null")
    return convert(value, STRING).text


__all__ = ["as_text", "convert", "convert_to_unified", "mismatch", "unify", "unify_all"]


# The content of a value: attributes, elements, equality.


def get_attribute(value: Value, name: str) -> Value:
    """Return `value.name`. Raises ValueFault: there is no such attribute."""
    payload = value.payload
    if payload is None:
        raise ValueFault(f"attribute {name!r} of null")
    if isinstance(payload, Unknown):
        kind = value.type.attributes.get(name) or value.type.element or DYNAMIC
        return Value(kind, payload, value.sensitive, symbol=_member_symbol(value, f".{name}"))
    if value.type.kind not in MAPPINGS:
        raise ValueFault(f"attribute {name!r} of a {value.type}: it has none")
    member = value.entries.get(name)
    if member is not None:
        return with_sensitivity(member, value)
    if isinstance(payload, OpenEntries):
        what = Unknown(f"{payload.others.what.split(',')[0]}.{name}, which only Terraform knows", payload.others.where)
        return Value(DYNAMIC, what, value.sensitive, symbol=_member_symbol(value, f".{name}"))
    raise ValueFault(f"there is no attribute {name!r}")


def get_index(value: Value, key: Value) -> Value:
    """Return `value[key]`. Raises ValueFault: there is no such element."""
    if value.is_null or key.is_null:
        raise ValueFault("an index of null" if value.is_null else "an index that is null")
    kind = value.type.kind
    if isinstance(value.payload, Unknown) or key.unknown is not None:
        missing = key.unknown or value.unknown
        index = expression_text(key)
        symbol = "" if index is None or value.unknown is None else _member_symbol(value, f"[{index}]")
        return with_sensitivity(Value(value.type.element or DYNAMIC, missing, symbol=symbol), value, key)
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


# Errors of evaluation.


class EvaluationError(ConfigError):
    """An expression that has no value, with file and line; `try` and `can` catch these, and no other errors."""
