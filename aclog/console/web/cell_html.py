"""Cells and rows as HTML. A page has a thousand cells, and macros of a template take ten times as long for them."""

from markupsafe import Markup, escape

from aclog.console.pages.page import Cell, Mark, Row, Table
from aclog.metalog.printable import printable


def cell_html(cell: Cell) -> Markup:
    """Return a cell, and those below it."""
    return Markup(_cell(cell))  # noqa: S704 (its texts are escaped)


def rows_html(table: Table) -> Markup:
    """Return the rows of a table."""
    begins = [_NUMBER if column.is_number else _TEXT for column in table.columns]
    return Markup("\n".join(_row(row, begins) for row in table.rows))  # noqa: S704 (its texts are escaped)


_TEXT, _NUMBER = "<td>", '<td class="number">'


def _row(row: Row, begins: list[str]) -> str:
    cells = "".join(f"{begin}{_cell(cell)}</td>" for begin, cell in zip(begins, row.cells, strict=True))
    mark = "" if row.mark is None else f' class="row-{row.mark}"'
    return f'<tr data-key="{escape(printable(row.key))}"{mark}>{cells}</tr>'


def _cell(cell: Cell) -> str:
    text = f"<bdi>{escape(printable(cell.text))}</bdi>"
    if cell.url:
        text = f'<a href="{escape(cell.url)}"{_mark(cell.mark)}>{text if cell.text else "<bdi>(empty)</bdi>"}</a>'
    elif cell.mark is not None:
        text = f"<span{_mark(cell.mark)}>{text}</span>"
    return "<br>".join((text, *map(_cell, cell.others))) if cell.others else text


def _mark(mark: Mark | None) -> str:
    return "" if mark is None else f' class="mark {mark}"'
