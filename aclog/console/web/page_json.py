"""A page as JSON, and a table as CSV."""

import csv
import io

from aclog.console.pages.page import Cell, Facts, Lines, Links, Page, Table
from aclog.metalog.printable import printable
from aclog.terminal.rows import formula_free


def page_object(page: Page) -> dict[str, object]:
    """Return a page as a JSON object: its answer, and its parts by key; texts as they are."""
    found: dict[str, object] = {
        "title": page.title,
        "answer": page.answer,
        "offset": page.offset,
        "command": page.command,
        "notices": [notice.text for notice in page.notices],
    }
    for part in page.parts:
        if isinstance(part, Table):
            keys = [column.key for column in part.columns]
            rows = [
                {key: cell.whole for key, cell in zip(keys, row.cells, strict=True)}
                | ({} if row.mark is None else {"mark": row.mark.value})
                for row in part.rows
            ]
            total = len(rows) if part.total is None else part.total
            found[part.key] = {"title": part.title, "total": total, "note": part.note, "rows": rows}
        elif isinstance(part, Facts):
            found[part.key] = {name: cell.text for name, cell in part.items}
        elif isinstance(part, Lines):
            found[part.key] = list(part.lines)
        elif isinstance(part, Links):
            found[part.key] = [_link(cell) for cell in part.links]
    if page.data:
        found["data"] = list(page.data)
    return found


def table_csv(table: Table) -> str:
    """Return a table as CSV (RFC 4180), printable; a text that a spreadsheet would compute gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(column.key for column in table.columns)
    for row in table.rows:
        writer.writerow(printable(formula_free(cell.whole)) for cell in row.cells)
    return out.getvalue()


def _link(cell: Cell) -> dict[str, str | None]:
    return {"text": cell.text, "url": cell.url}
