"""Rows in the forms of notebooks and data frames: Arrow, pandas and HTML."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_ROWS = 20
"""Rows of an HTML table: a notebook keeps what it shows."""
MOST_CHARACTERS = 80
"""Characters of one of its cells."""

Cell: TypeAlias = str | int | bool | None


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    NUMBER = "number"
    TIME = "time"
    """In ms since 1970; negative if it is unknown."""
    FLAG = "flag"


def arrow_table(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> "pa.Table":
    """Return rows as an Arrow table; times are timestamps in UTC.

    Raises:
        ConfigError: pyarrow is not installed.

    """
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("to_arrow needs pyarrow: pip install 'aclog[parquet]'") from None
    types = {
        Kind.TEXT: pa.string(),
        Kind.NUMBER: pa.int64(),
        Kind.TIME: pa.timestamp("ms", "UTC"),
        Kind.FLAG: pa.bool_(),
    }
    columns = _columns(kinds, rows)
    return pa.table({name: pa.array(columns[name], types[kind]) for name, kind in kinds.items()})


def pandas_frame(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> "pd.DataFrame":
    """Return rows as a data frame; times are timestamps in UTC.

    Raises:
        ConfigError: pandas is not installed.

    """
    try:
        import pandas as pd  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("to_pandas needs pandas: pip install pandas") from None
    columns: dict[str, Any] = _columns(kinds, rows)
    for name, kind in kinds.items():
        if kind is Kind.TIME:
            columns[name] = pd.to_datetime(pd.Series(columns[name], dtype="Int64"), unit="ms", utc=True)
        elif kind is Kind.TEXT:
            columns[name] = pd.Series(columns[name], dtype="object")
    return pd.DataFrame(columns, columns=list(kinds))


def html_table(titles: Sequence[str], rows: Iterable[Sequence[Cell]], *, caption: str, total: int | None = None) -> str:
    """Return the first rows as an HTML table, everything escaped; `total` is how many there are, if it is known."""
    shown = list(islice(rows, MOST_ROWS + 1))
    more = len(shown) > MOST_ROWS
    head = "".join(f"<th>{_html(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{_html(cell)}</td>' for cell in row)}</tr>" for row in shown[:MOST_ROWS])
    rest = "more" if total is None else f"{total - MOST_ROWS:,} more"
    foot = f'<tr><td colspan="{len(titles)}">... and {rest}</td></tr>' if more else ""
    return (
        f"<table><caption>{_html(caption, 4 * MOST_CHARACTERS)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}{foot}</tbody></table>"
    )


def html_text(text: str) -> str:
    """Return lines as preformatted HTML, with the caps of a table."""
    lines = text.splitlines()
    shown = [_html(line, 2 * MOST_CHARACTERS) for line in lines[: 2 * MOST_ROWS]]
    if len(lines) > len(shown):
        shown.append(f"... and {len(lines) - len(shown):,} more lines")
    return f"<pre>{'<br>'.join(shown)}</pre>"


def _html(cell: Cell, most: int = MOST_CHARACTERS) -> str:
    text = printable("" if cell is None else str(cell))
    return escape(text if len(text) <= most else f"{text[: most - 1]}\u2026")


def _columns(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> dict[str, list[Cell]]:
    values = list(zip(*rows, strict=True)) or [()] * len(kinds)
    columns = {name: list(column) for name, column in zip(kinds, values, strict=True)}
    for name, kind in kinds.items():
        if kind is Kind.TIME:
            columns[name] = [None if not isinstance(time, int) or time < 0 else time for time in columns[name]]
    return columns
