"""Percent-encoding of names in paths.

Names are arbitrary: a transactional id may be `a/b`, a user `..`, and a principal may contain NUL or a line feed. In
paths `/`, `%` and all unprintable characters, which could garble a terminal, are the percent-encoded bytes of their
UTF-8; `.` and `..` are `%2E` and `%2E%2E`; the empty name is a lone `%`.
"""

import re
from urllib.parse import unquote_to_bytes

EMPTY_NAME = "%"
"""The encoded empty name; unambiguous, since other encoded names have two digits after each `%`."""

_RESERVED = {"": EMPTY_NAME, ".": "%2E", "..": "%2E%2E"}
_ENCODED = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)


def encode_name(name: str) -> str:
    """Encode a name for a path; `decode_name` is the exact inverse."""
    if name in _RESERVED:
        return _RESERVED[name]
    if name.isprintable() and "/" not in name and "%" not in name:
        return name
    return "".join(map(_encode_character, name))


def decode_name(shown: str) -> str | None:
    """Decode a component of a path, in which any character may be encoded; None if it is malformed."""
    if shown == EMPTY_NAME:
        return ""
    if "%" not in shown:
        return shown
    if not _ENCODED.fullmatch(shown):
        return None
    try:
        # surrogatepass: JSON and command lines may contain lone surrogates
        return unquote_to_bytes(shown.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def path_text(names: tuple[str, ...]) -> str:
    """Return the absolute path of these names, encoded."""
    return "/" + "/".join(map(encode_name, names))


def _encode_character(character: str) -> str:
    if character.isprintable() and character not in "/%":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
