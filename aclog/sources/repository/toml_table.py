"""A table of a TOML file whose keys are taken one by one: what is left over, or of a wrong type, is refused."""

from collections.abc import Collection, Iterator
from datetime import date, datetime
from difflib import get_close_matches

from attrs import field, frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.repository.toml_document import KeyPath, TomlDocument, key_text


@frozen(kw_only=True)
class TomlTable:
    """A table, and where it stands. Each reader returns None, or nothing, for a key that is not there."""

    document: TomlDocument
    path: KeyPath = ()
    values: dict[str, object] = field(repr=False)

    def error(self, key: str, what: str) -> ConfigError:
        """Return an error about a value of this table: file, line, key, and what is wrong."""
        return self.document.error((*self.path, key), what)

    def only(self, known: Collection[str]) -> None:
        """Refuse every other key. Raises ConfigError."""
        for key in self.values:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(sorted(known))}"
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
