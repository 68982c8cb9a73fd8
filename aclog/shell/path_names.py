"""The name of a node in a path: percent-encoded where a path could not hold it.

A topic may be called `a/b`, a user `..`, a principal may hold a NUL or a line's end. In paths the characters `/`, `%`
and all that do not print (control, format and other separators: nothing that could garble a terminal) stand as the
percent-encoded bytes of their UTF-8; `.` and `..` as `%2E` and `%2E%2E`; the empty name as a lone `%`.
"""

import re
from urllib.parse import unquote_to_bytes

EMPTY_NAME = "%"
"""How the empty name is shown: no encoded name is a `%` without two digits after it."""

_RESERVED = {"": EMPTY_NAME, ".": "%2E", "..": "%2E%2E"}
_ENCODED = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)


def encode_name(name: str) -> str:
    """The name as paths show it; `decode_name` gives the name back exactly, whatever it holds."""
    if name in _RESERVED:
        return _RESERVED[name]
    if name.isprintable() and "/" not in name and "%" not in name:
        return name
    return "".join(map(_encode_character, name))


def printable(text: str) -> str:
    """A text fit for one line of a terminal: what does not print is percent-encoded, all else stands as it is."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _encode_character(c) for c in text)


def decode_name(shown: str) -> str | None:
    """The name that a path's component stands for; any character may be encoded. None if no name looks so."""
    if shown == EMPTY_NAME:
        return ""
    if "%" not in shown:
        return shown
    if not _ENCODED.fullmatch(shown):
        return None
    try:
        # surrogatepass: JSON lines and command lines can carry halves of a pair
        return unquote_to_bytes(shown.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def path_text(names: tuple[str, ...]) -> str:
    """The absolute path of these names, as the shell shows it."""
    return "/" + "/".join(map(encode_name, names))


def _encode_character(character: str) -> str:
    if character.isprintable() and character not in "/%":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
