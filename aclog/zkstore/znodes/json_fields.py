"""JSON in znodes: objects and typed fields, decoded with the znode's path in errors, and Jackson's compact encoding."""

import json
from collections.abc import Mapping
from typing import Any

from aclog.metalog.errors import DecodeError


def json_object(data: bytes, *, path: str) -> dict[str, Any]:
    """Decode the JSON object that a znode holds.

    Raises:
        DecodeError: not UTF-8, not JSON, or not an object; with the byte position if it is known.

    """
    try:
        whole = json.loads(data.decode())
    except UnicodeDecodeError as e:
        raise DecodeError("expected UTF-8", position=e.start, path=path) from e
    except json.JSONDecodeError as e:
        # e.pos counts characters; errors report byte positions.
        position = len(e.doc[: e.pos].encode())
        raise DecodeError(f"expected JSON: {e.msg}", position=position, path=path) from e
    except (ValueError, RecursionError) as e:  # integers with too many digits, arrays nested too deeply
        raise DecodeError(f"expected JSON: {e}", path=path) from e
    if not isinstance(whole, dict):
        raise DecodeError(f"{brief_json(whole)}: expected a JSON object", path=path)
    return whole


def brief_json(value: object) -> str:
    """Return a value as JSON for an error message, cut after 40 characters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def check_version(fields: Mapping[str, Any], expected: int, *, path: str) -> None:
    """Check the `version` field of a znode's JSON object. Raises DecodeError."""
    version = fields.get("version")
    # isinstance() would accept true, which is an int in Python.
    if type(version) is not int or version != expected:
        raise DecodeError(f"version {version!r}: expected {expected}", path=path)


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a string field. Raises DecodeError."""
    value = _field(fields, name)
    if not isinstance(value, str):
        raise DecodeError(f"{name}: {value!r}: expected a string")
    return value


def texts_field(fields: Mapping[str, Any], name: str) -> list[str]:
    """Return a field that is an array of strings. Raises DecodeError."""
    value = _field(fields, name)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DecodeError(f"{name}: expected an array of strings")
    return value


def integer_field(fields: Mapping[str, Any], name: str, *, bits: int = 64) -> int:
    """Return a signed integer field of the given width. Raises DecodeError."""
    value = _field(fields, name)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise DecodeError(f"{name}: {value!r}: expected a signed {bits}-bit integer")
    return value


def _field(fields: Mapping[str, Any], name: str) -> Any:
    try:
        return fields[name]
    except KeyError:
        raise DecodeError(f"no field {name!r}") from None


def compact_json(value: object) -> bytes:
    """Encode a value as Kafka's Jackson does: no whitespace, and non-ASCII text as UTF-8, not escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
