"""Pages as HTML, JSON and CSV, each made once."""

import asyncio
import csv
import io
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from attrs import define, evolve, field, frozen
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from aclog.console.pages.page import (
    Cell,
    Facts,
    Form,
    Lines,
    Links,
    Mark,
    Page,
    Parameters,
    Row,
    Table,
    exact_field,
    url,
)
from aclog.console.pages.views import MENU
from aclog.metalog.errors import printable
from aclog.terminal.tables import formula_free

# Cells and rows as HTML. A page has a thousand cells, and macros of a template take ten times as long for them.


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


# A page as JSON, and a table as CSV.


def page_object(page: Page) -> dict[str, object]:
    """Return a page as a JSON object: its answer, and its parts by key; texts as they are."""
    fields: dict[str, object] = {
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
            fields[part.key] = {"title": part.title, "total": total, "note": part.note, "rows": rows}
        elif isinstance(part, Facts):
            fields[part.key] = {name: cell.text for name, cell in part.items}
        elif isinstance(part, Lines):
            fields[part.key] = list(part.lines)
        elif isinstance(part, Links):
            fields[part.key] = [{"text": cell.text, "url": cell.url} for cell in part.links]
    if page.data:
        fields["data"] = list(page.data)
    return fields


def table_csv(table: Table) -> str:
    """Return a table as CSV (RFC 4180), printable; a text that a spreadsheet would compute gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(column.key for column in table.columns)
    for row in table.rows:
        writer.writerow(printable(formula_free(cell.whole)) for cell in row.cells)
    return out.getvalue()


# Pages as HTML.


_HERE = Path(__file__).parent
STATIC = _HERE / "static"
HTMX = "htmx-2.0.11.min.js"


@frozen(kw_only=True)
class Around:
    """The frame of a page: the source, the age of its state, and the viewer."""

    source: str
    status: str
    """A line about the state."""
    trouble: str | None
    """Why the state may be old; None if it is not."""
    version: str
    """The version of the state; it changes when there is something new to show."""
    menu: Sequence[tuple[str, str]] = MENU
    """The views that the viewer may see."""
    viewer: str = ""
    """The name of the viewer; empty without a login."""
    csrf_token: str = ""
    """The CSRF token of the session, for forms that write."""


def answer_html(page: Page, parameters: Parameters) -> str:
    """Return the answer: all of a page except its forms."""
    parts = [part for part in page.parts if not isinstance(part, Form)]
    return _environment().get_template("answer.html").render(page=page, parts=parts, here=_here(page, parameters))


def page_html(page: Page, parameters: Parameters, answer: str, around: Around) -> str:
    """Return a page as a document; `answer` is that of `answer_html`."""
    forms = [part for part in page.parts if isinstance(part, Form)]
    above, below = ([form for form in forms if form.is_below is is_below] for is_below in (False, True))
    template = _environment().get_template("page.html")
    # Not the page itself: macros keep their arguments in a cycle, and its tables would wait for the collector.
    return template.render(
        page_path=page.path,
        title=page.title,
        above=above,
        below=below,
        answer=answer,
        around=around,
        here=_here(page, parameters),
    )


@cache
def asset_version() -> str:
    """Return a hash of the style and the script, for their addresses."""
    digest = sha256()
    for file in sorted(STATIC.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _here(page: Page, parameters: Parameters) -> str:
    values = {name: value for name, value in parameters.values.items() if name not in ("format", "table")}
    return url(page.path, **values)


def _with(address: str, **more: str) -> str:
    """Return an address with more parameters."""
    joint = "&" if "?" in address else "?"
    return address + joint + url("", **more).removeprefix("?")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = printable
    environment.filters["with"] = _with
    environment.filters["cell"] = cell_html
    environment.filters["rows"] = rows_html
    environment.filters["sendable"] = lambda text: text.encode("utf-8", "replace").decode()
    environment.tests["table"] = lambda part: isinstance(part, Table)
    environment.tests["facts"] = lambda part: isinstance(part, Facts)
    environment.tests["lines"] = lambda part: isinstance(part, Lines)
    environment.tests["links"] = lambda part: isinstance(part, Links)
    environment.globals["asset_version"] = asset_version
    environment.globals["exact_field"] = exact_field
    environment.globals["htmx"] = HTMX
    return environment


# A page that was made, and its HTML document for each viewer.


@define(eq=False, kw_only=True)
class MadePage:
    """A page and its answer as HTML. The frame differs between viewers; the last document is kept."""

    page: Page
    parameters: Parameters
    status: int
    answer: str
    """The answer as HTML; empty for other formats."""
    _around: Around | None = field(default=None, init=False)
    _pieces: list[bytes] = field(factory=list, init=False)
    """The document with `_around`, cut where the token of a session goes."""

    @classmethod
    def of(cls, page: Page, parameters: Parameters, status: int, *, wants_html: bool = True) -> "MadePage":
        """Return a page, made."""
        answer = answer_html(page, parameters) if wants_html else ""
        return cls(page=page, parameters=parameters, status=status, answer=answer)

    def document(self, around: Around) -> bytes:
        """Return the page as a document."""
        if self._around is None or self._around != evolve(around, csrf_token=self._around.csrf_token):
            slot = token_hex(16)  # random, and drawn after the page was made: the page cannot contain it
            self._around = evolve(around, csrf_token=slot)
            document = page_html(self.page, self.parameters, self.answer, self._around).encode()
            self._pieces = document.split(slot.encode())
        return around.csrf_token.encode().join(self._pieces)


# The pages of the newest state: each is made once, in a thread, for all requests.


_REFUSED = 400
"""The lowest status of an error page."""


@define(eq=False, kw_only=True)
class KeptPages:
    """Owned by the event loop: no call but those of the pages themselves runs elsewhere."""

    most: int
    _of: object = field(default=None, init=False)
    """The newest state; no other is held on to."""
    _pages: "OrderedDict[Hashable, MadePage]" = field(factory=OrderedDict, init=False)
    _making: "dict[Hashable, asyncio.Task[MadePage]]" = field(factory=dict, init=False)

    async def get(
        self, state: object, key: Hashable, make: Callable[[], Awaitable[MadePage]], *, is_moving: bool = False
    ) -> MadePage:
        """Return a page of a state; concurrent requests wait while it is being made.

        `is_moving`: the key means another page later, so that it is made anew for later requests.
        """
        self.follow(state)
        page = self._pages.get(key)
        if page is not None:
            self._pages.move_to_end(key)
            return page
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(self._render(state, key, make, is_kept=not is_moving))
            making.add_done_callback(_consume_error)
        return await asyncio.shield(making)  # a cancelled request does not cancel it for the others

    def follow(self, state: object) -> None:
        """Keep pages of this state only."""
        if self._of is not state:
            self._of = state
            self._pages.clear()
            self._making.clear()  # requests that wait still get it

    async def _render(
        self, state: object, key: Hashable, make: Callable[[], Awaitable[MadePage]], *, is_kept: bool
    ) -> MadePage:
        try:
            page = await make()
        finally:
            if self._making.get(key) is asyncio.current_task():
                del self._making[key]
        if is_kept and self._of is state and page.status < _REFUSED and page.page.is_settled:
            self._pages[key] = page
            while len(self._pages) > self.most:
                self._pages.popitem(last=False)
        return page


def _consume_error(task: "asyncio.Task[MadePage]") -> None:
    """Retrieve an exception that no request waits for any more."""
    if not task.cancelled():
        task.exception()
