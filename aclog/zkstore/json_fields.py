"""JSON objects in nodes: their fields read, and the whole written as Kafka writes them."""

import json
from collections.abc import Mapping
from typing import Any

from aclog.metalog.errors import DecodeError


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """A field that is a string. Raises DecodeError."""
    value = _field(fields, name)
    if not isinstance(value, str):
        raise DecodeError(f"{name}: {value!r}: expected a string")
    return value


def texts_field(fields: Mapping[str, Any], name: str) -> list[str]:
    """A field that is an array of strings. Raises DecodeError."""
    value = _field(fields, name)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DecodeError(f"{name}: expected an array of strings")
    return value


def integer_field(fields: Mapping[str, Any], name: str, *, bits: int = 64) -> int:
    """A field that is a whole number of so many bits, signed. Raises DecodeError."""
    value = _field(fields, name)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise DecodeError(f"{name}: {value!r}: expected a whole number of {bits} bits")
    return value


def _field(fields: Mapping[str, Any], name: str) -> Any:
    try:
        return fields[name]
    except KeyError:
        raise DecodeError(f"no field {name!r}") from None


def compact_json(value: object) -> bytes:
    """A value as Jackson writes it: no spaces, UTF-8 for what is not ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
