"""Lists in the formats of commands: tables that fit the terminal, JSON, CSV."""

import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from typing import TypeAlias

from attrs import evolve

from aclog.metalog.errors import printable
from aclog.terminal.columns import Column, OutputFormat, Row, cell_text, json_text, selected, value_of
from aclog.terminal.output import cell_painter, note, print_lines, value_formatter

# Aligned columns, streamed: widths are those of the rows seen so far, so a million rows need no memory.


_LOOKAHEAD = 1000


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield lines without line ends: the header, then the rows. Control characters in cells are escaped."""
    from rich.cells import cell_len  # here: nearly every command may print a table, few do

    rows = iter(rows)
    widths = [cell_len(title) for title in header]
    heading: Sequence[str] | None = header
    while block := [tuple(map(printable, row)) for row in islice(rows, _LOOKAHEAD)]:
        widths = [
            max(width, *map(cell_len, column)) for width, column in zip(widths, zip(*block, strict=True), strict=True)
        ]
        for row in block if heading is None else (heading, *block):
            cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(cells).rstrip()
        heading = None


# Prints rows in the requested format, as they come: a million rows need no memory.


_UNSEEN = r"\x00-\x08\x0b\x0c\x0e- \x7f-\xa0\xad\u061c\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
_FORMULA = re.compile(rf"(?:\A|[;\t\r\n])[{_UNSEEN}]*(?=[=+\-@\uff1d\uff0b\uff0d\uff20'])")
"""The prefix of a formula, or an apostrophe, at the beginning of a cell: also behind separators of other formats, and
behind blanks and invisible characters. The last four signs are wide forms of the first, and spreadsheets treat them
alike."""

_Lines: TypeAlias = Callable[[Sequence[Column], Iterable[Row]], Iterator[str]]


def print_rows(
    columns: Sequence[Column],
    rows: Iterable[Row],
    form: OutputFormat,
    *,
    keys: Sequence[str] = (),
    live: bool = False,
) -> None:
    """Print rows as a table, JSON, JSON lines, csv or Markdown; `form` is one of ROW_FORMATS.

    `keys`: those of `--columns`, in order; without any, JSON has the rows as they are, the other formats all
    columns. `live`: print each row at once; a table then has no columns that fit.

    Raises:
        ConfigError: a column of `keys` does not exist.

    """
    picked = selected(columns, keys)
    if keys:
        rows = ({column.key: value_of(row, column.key) for column in picked} for row in rows)
        picked = tuple(evolve(column, spare=False) for column in picked)  # requested columns are not left out
    left_out: list[str] = []
    make = partial(_table, left_out=left_out.extend) if form is OutputFormat.TABLE else _LINES[form]
    print_lines(make(picked, rows), live=live)
    if left_out:
        note(f"no room for {', '.join(left_out)}: a wider terminal, --columns, or a pipe shows more")


def terminal_width() -> int | None:
    """Return the width of the terminal, None if stdout is not a terminal: there nothing is cut."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def csv_cell(value: object) -> str:
    """Return a value as a cell of csv; all but numbers and flags as `formula_free`."""
    text = cell_text(value)
    return text if isinstance(value, int | float) else formula_free(text)


def formula_free(text: str) -> str:
    """Return a text with an apostrophe before each prefix that a spreadsheet would read as a formula.

    A leading tab or line end is such a prefix, and an apostrophe in such a position is doubled: removing the first of
    each restores the text.
    """
    covered = _FORMULA.sub(r"\g<0>'", text)
    return f"'{covered}" if text.startswith(("\t", "\r", "\n")) else covered


def _table(
    columns: Sequence[Column], rows: Iterable[Row], *, left_out: Callable[[Sequence[str]], None]
) -> Iterator[str]:
    from aclog.terminal.fitted_table import fitted  # here: nearly every command may print a table, few do

    cells = (tuple(column.text(value_of(row, column.key)) for column in columns) for row in rows)
    return fitted(columns, cells, width=terminal_width(), left_out=left_out, paint=cell_painter())


def _json(_columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    yield "["
    last = None
    for row in rows:
        if last is not None:
            yield f"{last},"
        last = json_text(row)
    if last is not None:
        yield last
    yield "]"


def _jsonl(_columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    return map(json_text, rows)


_REMEMBERED = 1 << 12
"""Texts whose cells are kept: most texts of a column are those of earlier rows."""


def _csv(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    show = value_formatter()
    line = io.StringIO()
    write = csv.writer(line, lineterminator="\n" if sys.stdout.isatty() else "\r\n").writerow
    heads = [column.key for column in columns]
    of_text = lru_cache(_REMEMBERED)(lambda text: show(formula_free(text)))

    def cell(value: object) -> str:
        return of_text(value) if isinstance(value, str) else show(csv_cell(value))

    for cells in chain([heads], ([cell(value_of(row, column.key)) for column in columns] for row in rows)):
        write(cells)
        yield line.getvalue().removesuffix("\n")  # which ends each line anyway
        line.seek(0)
        line.truncate()


def _markdown(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    from aclog.analysis.rows.report import markdown_text

    yield _markdown_line(column.key for column in columns)
    yield "|---" * len(columns) + "|"
    for row in rows:
        yield _markdown_line(markdown_text(printable(column.text(value_of(row, column.key)))) for column in columns)


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_LINES: dict[OutputFormat, _Lines] = {
    OutputFormat.JSON: _json,
    OutputFormat.JSONL: _jsonl,
    OutputFormat.CSV: _csv,
    OutputFormat.MARKDOWN: _markdown,
}
