"""The fields of a plan's head: a PLAN file may come from anywhere, so each is checked before it is used."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from aclog.metalog.errors import ConfigError


@frozen
class HeadFields:
    """An object in the head of a plan. Every method raises ConfigError if a field is missing or something else."""

    _value: Mapping[str, Any]
    _path: str = ""
    """How errors name it: nothing, or its key and a full stop."""

    def text(self, key: str) -> str:
        """Return a text, which has no NUL: no path and no name can hold one."""
        found = self._get(key)
        if not isinstance(found, str) or "\0" in found:
            raise self._wrong(key, "a text")
        return found

    def text_or_none(self, key: str) -> str | None:
        """Return a text, or None for null."""
        return None if self._get(key) is None else self.text(key)

    def number(self, key: str) -> int:
        """Return a number from 0."""
        found = self._get(key)
        if type(found) is not int or found < 0:
            raise self._wrong(key, "a number from 0")
        return found

    def number_or_none(self, key: str) -> int | None:
        """Return a number from 0, or None for null."""
        return None if self._get(key) is None else self.number(key)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        found = self._get(key)
        if not isinstance(found, bool):
            raise self._wrong(key, "true or false")
        return found

    def texts(self, key: str) -> list[str]:
        """Return a list of texts."""
        found = self._get(key)
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self._wrong(key, "a list of texts")
        return found

    def named_texts(self, key: str) -> dict[str, str]:
        """Return texts by name."""
        found = self._get(key)
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            raise self._wrong(key, "an object of texts")
        return found

    def objects(self, key: str) -> list[dict[str, Any]]:
        """Return a list of objects."""
        found = self._get(key)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self._wrong(key, "a list of objects")
        return found

    def fields(self, key: str) -> "HeadFields":
        """Return the fields of an object."""
        found = self._get(key)
        if not isinstance(found, dict):
            raise self._wrong(key, "an object")
        return HeadFields(found, f"{self._path}{key}.")

    def fields_or_none(self, key: str) -> "HeadFields | None":
        """Return the fields of an object, or None for null."""
        return None if self._get(key) is None else self.fields(key)

    def list_of_fields(self, key: str) -> list["HeadFields"]:
        """Return the fields of each object of a list."""
        return [HeadFields(each, f"{self._path}{key}.") for each in self.objects(key)]

    def has(self, key: str) -> bool:
        """Return whether there is a field that not all plans have."""
        return key in self._value

    def _get(self, key: str) -> object:
        if key not in self._value:
            raise ConfigError(f"the head of a plan lacks {self._path}{key}")
        return self._value[key]

    def _wrong(self, key: str, expected: str) -> ConfigError:
        return ConfigError(f"{self._path}{key} is {str(self._value[key])[:40]!r}: expected {expected}")
