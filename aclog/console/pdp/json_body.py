"""JSON bodies as I-JSON (RFC 7493): what two readers could take for two things is refused."""

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any

from aclog.console.pdp.errors import BadRequestError

MOST_BYTES = 4 << 20
_DEEPEST = 32


def parse_body(data: bytes | bytearray) -> dict[str, Any]:
    """Return the object in a body.

    Raises:
        BadRequestError: not UTF-8, not JSON, not an object, a key twice, a number that is none, or nested too deeply.

    """
    if not data.strip():
        raise BadRequestError("the body is empty: expected a JSON object")
    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=_once, parse_float=_number, parse_constant=_number)
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()  # fails on half of a pair of surrogates
    except UnicodeDecodeError:
        raise BadRequestError("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise BadRequestError("not JSON: half of a pair of surrogates") from None
    except json.JSONDecodeError as error:
        raise BadRequestError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"not JSON: {str(error)[:80]}") from None
    if not isinstance(value, dict):
        raise BadRequestError("expected a JSON object")
    if any(depth == _DEEPEST for depth, _ in enumerate(levels(value))):
        raise BadRequestError(f"the body is nested more than {_DEEPEST} deep")
    return value


def levels(value: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the objects and arrays of each level of nesting, from that of the value itself on."""
    level: list[Any] = [value]
    while level:
        yield level
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _number(text: str) -> float:
    found = float(text)
    if not isfinite(found):
        raise ValueError(f"{text[:80]} is no number of JSON")
    return found
