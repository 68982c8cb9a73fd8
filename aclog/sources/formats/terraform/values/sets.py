"""Sets: which elements are the same, and the order in which Terraform visits them."""

from collections.abc import Iterable
from fractions import Fraction

from aclog.sources.formats.terraform.values.numbers import Number, number_text
from aclog.sources.formats.terraform.values.types import Kind, Type, set_of
from aclog.sources.formats.terraform.values.value import Unknown, Value, first_unknown


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
