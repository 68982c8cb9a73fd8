"""One object of a line of JSON, strictly: no key twice, nothing after the object; and what is at a place in it."""

import json
import re
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from aclog.authorizer.access_reject import Reason

JsonObject: TypeAlias = dict[str, Any]

SIGNS_OF_OBJECTS: Final = (b'"', b"{", b"}")
"""Of which a part of an object's line has one, however it was torn."""
_BLANK: Final = re.compile(rb"\s*")


def once(pairs: list[tuple[str, object]]) -> JsonObject:
    """Return an object of these keys and values. Raises ValueError: one is there twice."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key twice")
    return value


def once_each(names: Collection[str]) -> Callable[[list[tuple[str, object]]], JsonObject]:
    """Return what makes an object of keys and values, and raises ValueError if one of these keys is there twice."""

    def built(pairs: list[tuple[str, object]]) -> JsonObject:
        """Return the object."""
        value = dict(pairs)
        if len(value) != len(pairs):
            keys = [key for key, _ in pairs]
            if any(keys.count(name) > 1 for name in names):
                raise ValueError("a key twice")
        return value

    return built


def object_of(line: bytes, build: Callable[[list[tuple[str, object]]], JsonObject] = once) -> "JsonObject | Reason":
    """Return the object in a line, or the reason why there is none; `build` makes one of its keys and values."""
    if _BLANK.fullmatch(line):
        return Reason.BLANK
    try:
        value = json.loads(line.decode(), object_pairs_hook=build)
    except UnicodeDecodeError:
        return Reason.NOT_UTF8
    except (ValueError, RecursionError):
        return Reason.MALFORMED
    return value if isinstance(value, dict) else Reason.MALFORMED


def at(value: object, *path: str | int) -> Any:
    """Return what is at a path of keys and places in lists; None if nothing is."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def text_at(value: object, *path: str | int) -> str | None:
    """Return the text at a path; None if there is none, or one that UTF-8 cannot encode."""
    found = at(value, *path)
    if not isinstance(found, str):
        return None
    try:
        found.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    return found


def number_at(value: object, *path: str | int) -> int | None:
    """Return the integer at a path; None if there is none."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
