"""The columns of a list: their keys, which are those of its JSON, and what a table shows of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.terminal.json_text import json_text

Row: TypeAlias = Mapping[str, Any]
"""A JSON object: the key of each column, and maybe more keys; a key without a value may be missing."""


def cell_text(value: object) -> str:
    """Return a value of JSON as the text of a cell: text as it is, nothing for null, else JSON on one line."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)


def value_of(row: Row, key: str) -> Any:
    """Return what a row has under a key, None if it has nothing; `from.offset` is `offset` of the object `from`."""
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
    key in capitals. `cut`: a table that does not fit the terminal may cut its cells in the middle: names, never what
    one would copy, such as ids and flags. `spare`: such a table may leave it out. `flows`: the last column, whose cells
    the terminal may wrap. `text`: what tables and Markdown show for people, by default `cell_text`.
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
    """Return the columns of these keys, in their order; all if there are none. Keys match in any case.

    Raises:
        ConfigError: there is no such column; its text names those that exist.

    """
    known = {column.key.lower(): column for column in columns}
    names = list(keys)
    for name in names:
        if name.lower() not in known:
            raise ConfigError(
                f"--columns: no column {name[:80]!r}: expected some of {', '.join(column.key for column in columns)}"
            )
    return tuple(known[name.lower()] for name in names) or tuple(columns)
