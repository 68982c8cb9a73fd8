"""Rows of an export as JSON lines: the fields of the Avro schema, bytes as base64, null and empty lists omitted."""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, TypeAlias

from aclog.cli.transfer.avro.files import Row, load_schema
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import check_unicode
from aclog.terminal.json_text import json_text

_Node: TypeAlias = Any
"""Part of a schema: a name, a list (union), or an object."""

_BITS = {"int": 31, "long": 63}


def row_line(row: Row) -> str:
    """Return the row as one line of JSON, without a line end."""
    return json_text(_without_empty(row))


def _without_empty(value: object) -> object:
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item is not None and item != []}
    return value


class RowReader:
    """Reads rows of one schema (avro/*.avsc) from JSON lines."""

    def __init__(self, name: str) -> None:
        """Load the schema of this name."""
        self._schema = load_schema(name)
        self._names = dict(_named_types(self._schema))

    def row(self, value: dict[str, object]) -> Row:
        """Return the row in a JSON object, checked against the schema, with the schema's defaults for missing fields.

        Raises:
            ConfigError: a field is missing, unknown, of the wrong type, or out of range.

        """
        return self._record(self._schema, value, "row")

    def _value(self, schema: _Node, value: object, where: str) -> object:
        schema = self._names.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, str):
            return _leaf(schema, value, where)
        if isinstance(schema, list):  # every union in the schemas is of null and one other type
            return None if value is None else self._value(next(each for each in schema if each != "null"), value, where)
        if schema["type"] == "record":
            return self._record(schema, value, where)
        if not isinstance(value, list):
            raise ConfigError(f"{where} must be a list")
        return [self._value(schema["items"], item, where) for item in value]

    def _record(self, schema: _Node, value: object, where: str) -> Row:
        if not isinstance(value, dict):
            raise ConfigError(f"{where} must be an object")
        fields = {field["name"]: field for field in schema["fields"]}
        if unknown := value.keys() - fields.keys():
            raise ConfigError(f"{where} has no field {min(unknown)[:40]!r}: expected {', '.join(fields)}")
        return {name: self._field(field, value, f"{where}.{name}") for name, field in fields.items()}

    def _field(self, field: _Node, value: dict[str, object], where: str) -> object:
        if field["name"] in value:
            return self._value(field["type"], value[field["name"]], where)
        if "default" in field:
            return field["default"]
        raise ConfigError(f"{where} is missing")


def _named_types(schema: _Node) -> Iterator[tuple[str, _Node]]:
    """Yield every record type in the schema with its name."""
    if isinstance(schema, list):
        for each in schema:
            yield from _named_types(each)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema["name"], schema
        for field in schema.get("fields", ()):
            yield from _named_types(field["type"])
        yield from _named_types(schema.get("items", "null"))


def _leaf(kind: str, value: object, where: str) -> object:
    if kind in _BITS:
        return _integer(_BITS[kind], value, where)
    wanted = bool if kind == "boolean" else str
    if not isinstance(value, wanted):
        raise ConfigError(f"{where} must be a {kind}")
    if kind == "string":
        check_unicode(where, str(value))
    if kind != "bytes":
        return value
    try:
        return b64decode(str(value), validate=True)
    except ValueError as error:
        raise ConfigError(f"{where} is not base64: {error}") from error


def _integer(bits: int, value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits) <= value < 1 << bits:
        raise ConfigError(f"{where} must be an integer of {bits + 1} bits")
    return value
