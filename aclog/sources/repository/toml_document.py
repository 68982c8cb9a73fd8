"""A TOML file with the lines of its keys, which tomllib does not tell, for messages that say where."""

import re
import tomllib
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from aclog.metalog.errors import ConfigError

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys, and positions in arrays, that lead to a value: ("lint", "ignore", 0, "reason")."""

_LARGEST = 1 << 20
"""In bytes: a file of settings is a page, and a list of suppressions a few."""
_MOST_LINES_TRIED = 200
_SENTINEL = "aclog-sought-key"
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@frozen(kw_only=True)
class TomlDocument:
    """What a file says, and its text."""

    name: str
    """As shown to people."""
    text: str
    values: dict[str, object]

    def error(self, path: KeyPath, what: str) -> ConfigError:
        """Return an error about a value: file, line, key, and what is wrong."""
        return ConfigError(f"{self.place(path)}: {key_text(path)}: {what}")

    def place(self, path: KeyPath) -> str:
        """Return such as `aclog.toml:12`; the name alone if the line is not found."""
        line = self.line(path)
        return self.name if line is None else f"{self.name}:{line}"

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, from 1; that of an array's element is the line of its first key.

        A line is right if, with the key replaced in it, the file says the same under another key; so no text in
        a string or a comment is taken for a key.
        """
        found = _value_at(self.values, path)
        if path and isinstance(path[-1], int):
            return self.line((*path, next(iter(found)))) if isinstance(found, dict) and found else self.line(path[:-1])
        if not path or found is None:
            return None
        tried, lines = 0, self.text.split("\n")
        for number, line in enumerate(lines):
            for position in _positions(line, str(path[-1])):
                tried += 1
                if tried > _MOST_LINES_TRIED:
                    return None
                changed = line[: position[0]] + _SENTINEL + line[position[1] :]
                if _has_moved("\n".join((*lines[:number], changed, *lines[number + 1 :])), path, found):
                    return number + 1
        return None


def read_toml(path: Path, name: str | None = None) -> TomlDocument:
    """Read a TOML file; `name` is how messages call it.

    Raises:
        ConfigError: too large, not UTF-8, or not TOML, with the line; OSError: it cannot be read.

    """
    shown = str(path) if name is None else name
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ConfigError(f"{shown}: larger than {_LARGEST:,} bytes: expected a file of settings")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}:{line}: byte {error.start} of the file is not UTF-8") from error
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{shown}: nested too deeply") from error
    except ValueError as error:  # a TOMLDecodeError, or a number that is too long
        raise _not_toml(shown, str(error)) from error
    return TomlDocument(name=shown, text=text.replace("\r\n", "\n"), values=values)


def key_text(path: KeyPath) -> str:
    """Return such as `lint.ignore[2].reason`, elements counted from 1."""
    parts = "".join(f"[{each + 1}]" if isinstance(each, int) else f".{each}" for each in path)
    return parts.removeprefix(".")


def _not_toml(name: str, what: str) -> ConfigError:
    found = _PLACE.search(what)
    if found is None or found[1] is None:
        return ConfigError(f"{name}: not TOML: {what}")
    return ConfigError(f"{name}:{found[1]}: not TOML: {what[: found.start()]} at column {found[2]}")


def _positions(line: str, key: str) -> list[tuple[int, int]]:
    """Return where a line has the key as a word, with its quotes if it has any."""
    word = re.escape(key)
    found = re.finditer(rf""""{word}"|'{word}'|(?<![\w-]){word}(?![\w-])""", line)
    return [each.span() for each in found]


def _has_moved(text: str, path: KeyPath, value: object) -> bool:
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    # By their text: nan is not equal to itself.
    return repr(_value_at(values, (*path[:-1], _SENTINEL))) == repr(value) and _value_at(values, path) is None


def _value_at(values: object, path: KeyPath) -> object:
    """Return the value that a path leads to; None if it leads to none (TOML has no null)."""
    for key in path:
        if isinstance(key, int):
            values = values[key] if isinstance(values, list) and key < len(values) else None
        else:
            values = values.get(key) if isinstance(values, dict) else None
    return values
