"""Columns of lists, the formats of output, and JSON."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from aclog.metalog.errors import ConfigError, printable_json
from aclog.metalog.values import frozen

# The formats in which commands print lists and answers.


class OutputFormat(StrEnum):
    """A format of `--format`; each command supports some formats."""

    TEXT = "text"
    """Lines for people."""
    TABLE = "table"
    """Columns that fit the terminal."""
    KAFKA = "kafka"
    """The text of Kafka's own tool."""
    JSON = "json"
    """One JSON value: an array of rows, or an object."""
    JSONL = "jsonl"
    """A JSON object a line."""
    CSV = "csv"
    """RFC 4180, with a header."""
    MARKDOWN = "markdown"
    """A table of Markdown, or a report in it."""
    SARIF = "sarif"
    """SARIF 2.1.0, for code scanning."""


ROW_FORMATS = (OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.MARKDOWN)
"""The formats of every list: rows of the same keys."""


# JSON that a terminal shows as it is.


def json_text(value: object) -> str:
    r"""Return a value as JSON on one line; unprintable characters are `\uXXXX`, other characters as they are."""
    return printable_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


# The columns of a list: the keys of its JSON, and their texts in a table.


Row: TypeAlias = Mapping[str, Any]
"""A JSON object: the key of each column, and maybe more keys; a key without a value may be missing."""


def cell_text(value: object) -> str:
    """Return a value of JSON as the text of a cell: text as it is, nothing for null, else JSON on one line."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)


def value_of(row: Row, key: str) -> Any:
    """Return the value of a row under a key, None if missing; `from.offset` is `offset` of the object `from`."""
    if key in row:
        return row[key]
    value: Any = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


@frozen(kw_only=True)
class Column:
    """A column.

    `key`: of JSON, csv and `--columns`; `a.b` for a key `b` of an object. `title`: the head in a table, by default the
    key in capitals. `cut`: a table that does not fit the terminal may cut its cells in the middle: names, never texts
    to copy, such as ids and flags. `spare`: such a table may leave it out. `flows`: the last column, whose cells
    the terminal may wrap. `text`: the text of a cell in tables and Markdown, by default `cell_text`.
    """

    key: str
    title: str = ""
    cut: bool = False
    spare: bool = False
    flows: bool = False
    text: Callable[[Any], str] = cell_text

    @property
    def head(self) -> str:
        """The head in a table."""
        return self.title or self.key.upper()


def selected(columns: Sequence[Column], keys: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of these keys, in their order; all without keys. Keys match in any case.

    Raises:
        ConfigError: there is no such column; its text names those that exist.

    """
    by_key = {column.key.lower(): column for column in columns}
    names = list(keys)
    for name in names:
        if name.lower() not in by_key:
            raise ConfigError(
                f"--columns: no column {name[:80]!r}: expected some of {', '.join(column.key for column in columns)}"
            )
    return tuple(by_key[name.lower()] for name in names) or tuple(columns)
