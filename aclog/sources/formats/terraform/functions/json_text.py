"""Values as JSON text, and back (cty's json package)."""

import json
from collections.abc import Mapping, Sequence

from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.numbers import number_text, parse_number
from aclog.sources.formats.terraform.values.types import Kind
from aclog.sources.formats.terraform.values.value import (
    NULL,
    Value,
    boolean,
    number,
    object_value,
    string,
    tuple_value,
)

_FOR_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_text(value: Value) -> str:
    """Return a known value as JSON, without spaces, keys sorted, with Go's escapes for HTML."""
    payload = value.payload
    if payload is None:
        return "null"
    if isinstance(payload, bool):
        return "true" if payload else "false"
    if isinstance(payload, str):
        return _quoted(payload)
    if value.type.kind is Kind.NUMBER:
        return number_text(value.number)
    if isinstance(payload, tuple):
        return "[" + ",".join(map(json_text, payload)) + "]"
    return "{" + ",".join(f"{_quoted(name)}:{json_text(item)}" for name, item in value.entries.items()) + "}"


def _quoted(text: str) -> str:
    quoted = (
        json.dumps(text, ensure_ascii=False).replace("\\b", "\\u0008")
        if "\b" in text
        else json.dumps(text, ensure_ascii=False)
    )
    for character, escape in _FOR_HTML.items():
        quoted = quoted.replace(character, escape)
    return quoted


def value_of_json(text: str) -> Value:
    """Return the value in a text of JSON: arrays are tuples, objects objects.

    Raises:
        ValueFault: not JSON.

    """
    try:
        decoded = json.loads(text, parse_float=_Digits, parse_int=_Digits, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueFault(f"not JSON: {error}") from error
    return value_of(decoded)


class _Digits(str):
    """A number as it is written."""

    __slots__ = ()


def _refuse(word: str) -> None:
    raise ValueFault(f"not JSON: {word}")


def value_of(decoded: object) -> Value:
    """Return what decoded JSON means."""
    if decoded is None:
        return NULL
    if isinstance(decoded, bool):
        return boolean(decoded)
    if isinstance(decoded, _Digits):
        parsed = parse_number(decoded)
        if parsed is None:
            raise ValueFault("a number that is too large")
        return number(parsed)
    if isinstance(decoded, str):
        return string(decoded)
    if isinstance(decoded, Mapping):
        return object_value({string(name).text: value_of(item) for name, item in decoded.items()})
    if isinstance(decoded, Sequence):
        return tuple_value(map(value_of, decoded))
    raise ValueFault("not JSON")
