"""JSON bodies as I-JSON (RFC 7493): what two readers could take for two things is refused."""

import json
from typing import Any

from aclog.console.pdp.errors import BadRequestError

MOST_BYTES = 4 << 20
_DEEPEST = 32


def parse_body(data: bytes) -> dict[str, Any]:
    """Return the object in a body.

    Raises:
        BadRequestError: not UTF-8, not JSON, not an object, a key twice, a number that is none, or nested too deeply.

    """
    if not data.strip():
        raise BadRequestError("the body is empty: expected a JSON object")
    if data.count(b"[") + data.count(b"{") > _DEEPEST and _depth(data) > _DEEPEST:
        raise BadRequestError(f"the body is nested more than {_DEEPEST} deep")
    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError:
        raise BadRequestError("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadRequestError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"not JSON: {str(error)[:80]}") from None
    if not isinstance(value, dict):
        raise BadRequestError("expected a JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _depth(data: bytes) -> int:
    """Return how deep brackets are nested, outside of strings."""
    depth = deepest = 0
    inside = escaped = False
    for byte in data:
        if inside:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > _DEEPEST:
                return deepest
        elif byte in b"]}":
            depth -= 1
    return deepest
