"""TOML files whose errors name their line, and the versions of Kafka that they state."""

import re
import tomllib
from collections.abc import Collection, Iterator
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from attrs import field

from aclog.authorizer.settings import named_generation
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

# A TOML file with the lines of its keys, which tomllib does not return, for messages with locations.


KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys, and positions in arrays, that lead to a value: ("lint", "ignore", 0, "reason")."""

_LARGEST = 1 << 20
"""The largest file, in bytes: settings take a page, and a list of suppressions a few."""
_MOST_LINES_TRIED = 200
_SENTINEL = "aclog-sought-key"
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@frozen(kw_only=True)
class TomlDocument:
    """The parsed content of a file, and its text."""

    name: str
    """The name in messages."""
    text: str
    values: dict[str, object]

    def error(self, path: KeyPath, what: str) -> ConfigError:
        """Return an error about a value: file, line, key, and the problem."""
        return ConfigError(f"{self.place(path)}: {key_text(path)}: {what}")

    def place(self, path: KeyPath) -> str:
        """Return such as `aclog.toml:12`; the name alone if the line is not found."""
        line = self.line(path)
        return self.name if line is None else f"{self.name}:{line}"

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, from 1; that of an array's element is the line of its first key.

        A line is right if, with the key replaced in it, the file parses to the same under another key; so no text in
        a string or a comment is taken for a key.
        """
        value = _value_at(self.values, path)
        if path and isinstance(path[-1], int):
            return self.line((*path, next(iter(value)))) if isinstance(value, dict) and value else self.line(path[:-1])
        if not path or value is None:
            return None
        tried, lines = 0, self.text.split("\n")
        for number, line in enumerate(lines):
            for position in _positions(line, str(path[-1])):
                tried += 1
                if tried > _MOST_LINES_TRIED:
                    return None
                changed = line[: position[0]] + _SENTINEL + line[position[1] :]
                if _has_moved("\n".join((*lines[:number], changed, *lines[number + 1 :])), path, value):
                    return number + 1
        return None


def read_toml(path: Path, name: str | None = None) -> TomlDocument:
    """Read a TOML file; `name` is how messages call it.

    Raises:
        ConfigError: too large, not UTF-8, or not TOML, with the line; OSError: it cannot be read.

    """
    display = str(path) if name is None else name
    with path.open("rb") as file:
        return parse_toml(file.read(_LARGEST + 1), display)


def parse_toml(content: bytes, display: str) -> TomlDocument:
    """Parse the content of a TOML file; `display` is how messages call it. Raises ConfigError as read_toml."""
    if len(content) > _LARGEST:
        raise ConfigError(f"{display}: larger than {_LARGEST:,} bytes: expected a file of settings")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{display}:{line}: byte {error.start} of the file is not UTF-8") from error
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{display}: nested too deeply") from error
    except ValueError as error:  # a TOMLDecodeError, or a number that is too long
        raise _not_toml(display, str(error)) from error
    return TomlDocument(name=display, text=text.replace("\r\n", "\n"), values=values)


def key_text(path: KeyPath) -> str:
    """Return such as `lint.ignore[2].reason`, elements counted from 1."""
    parts = "".join(f"[{each + 1}]" if isinstance(each, int) else f".{each}" for each in path)
    return parts.removeprefix(".")


def _not_toml(name: str, what: str) -> ConfigError:
    match = _PLACE.search(what)
    if match is None or match[1] is None:
        return ConfigError(f"{name}: not TOML: {what}")
    return ConfigError(f"{name}:{match[1]}: not TOML: {what[: match.start()]} at column {match[2]}")


def _positions(line: str, key: str) -> list[tuple[int, int]]:
    """Return where a line has the key as a word, with its quotes if it has any."""
    word = re.escape(key)
    matches = re.finditer(rf""""{word}"|'{word}'|(?<![\w-]){word}(?![\w-])""", line)
    return [each.span() for each in matches]


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


# A table of a TOML file whose keys are taken one by one: leftover keys, and wrong types, are errors.


@frozen(kw_only=True)
class TomlTable:
    """A table, and its location. Each reader returns None, or nothing, for a missing key."""

    document: TomlDocument
    path: KeyPath = ()
    values: dict[str, object] = field(repr=False)

    def error(self, key: str, what: str) -> ConfigError:
        """Return an error about a value of this table: file, line, key, and the problem."""
        return self.document.error((*self.path, key), what)

    def only(self, keys: Collection[str]) -> None:
        """Refuse every other key. Raises ConfigError."""
        for key in self.values:
            if key not in keys:
                near = get_close_matches(key, keys, n=1)
                hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(sorted(keys))}"
                where = f" in [{key_text(self.path)}]" if self.path else ""
                raise ConfigError(f"{self.document.place((*self.path, key))}: unknown key {key[:80]!r}{where}: {hint}")

    def text(self, key: str) -> str | None:
        """Return a string. Raises ConfigError: another type."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.error(key, f"expected a string, not {_type_name(value)}")

    def choice(self, key: str, words: Collection[str]) -> str | None:
        """Return one of these words. Raises ConfigError: another value."""
        value = self.text(key)
        if value is None or value in words:
            return value
        raise self.error(key, f"{value[:40]!r} is not one of {', '.join(words)}")

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return an array of strings; a string alone is an array of one. Raises ConfigError: another type."""
        value = self.values.get(key)
        if value is None:
            return None
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list):
            raise self.error(key, f"expected a string or an array of strings, not {_type_name(value)}")
        for each in listed:
            if not isinstance(each, str):
                raise self.error(key, f"expected strings in the array, not {_type_name(each)}")
        return tuple(listed)

    def flag(self, key: str) -> bool | None:
        """Return true or false. Raises ConfigError: another type."""
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.error(key, f"expected true or false, not {_type_name(value)}")

    def number(self, key: str, *, least: float, most: float) -> float | None:
        """Return a number within bounds. Raises ConfigError: another type, or beyond them."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, f"expected a number, not {_type_name(value)}")
        if not least <= value <= most:
            raise self.error(key, f"expected a number from {least:g} to {most:g}, not {str(value)[:40]}")
        return value

    def day(self, key: str) -> date | None:
        """Return a date. Raises ConfigError: another type, a time included."""
        value = self.values.get(key)
        if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
            return value
        raise self.error(key, f"expected a date without quotes, such as 2027-01-31, not {_type_name(value)}")

    def mapping(self, key: str) -> dict[str, str]:
        """Return a table of strings. Raises ConfigError: another type."""
        inner = self.table(key)
        return {name: inner.text(name) or "" for name in inner.values}

    def table(self, key: str) -> "TomlTable":
        """Return a table, empty if it is not there. Raises ConfigError: another type."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f"expected a table, not {_type_name(value)}")
        return TomlTable(document=self.document, path=(*self.path, key), values=value)

    def tables(self, key: str) -> "Iterator[TomlTable]":
        """Yield the tables of an array (`[[key]]`). Raises ConfigError: another type."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.error(key, f"expected [[{key_text((*self.path, key))}]], an array of tables")
        for place, each in enumerate(value):
            yield TomlTable(document=self.document, path=(*self.path, key, place), values=each)


def _type_name(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case dict():
            return "a table"
        case list():
            return "an array"
        case _:
            return "a date or time"


# The Kafka that decides, as settings files name it: `kafka-version = "4.4.0"`, or `cidr = true` from 4.4 on.


VERSION, RANGES = "kafka-version", "cidr"


def ranges_of(table: TomlTable) -> bool | None:
    """Return whether the Kafka that decides takes a host with a slash for a range; None if the table does not set it.

    Raises:
        ConfigError: no version of a known Kafka, or the two keys differ, with file and line.

    """
    ranges, path = table.flag(RANGES), (*table.path, VERSION)
    try:
        named = named_generation(
            table.text(VERSION),
            ranges,
            version_name=key_text(path),
            ranges_text=f"{RANGES} = {str(ranges).lower()}",
        )
    except ConfigError as error:
        raise ConfigError(f"{table.document.place(path)}: {error}") from None
    return None if named is None else named.has_ranges
