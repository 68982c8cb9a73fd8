"""Pages as HTML, JSON and CSV, each made once."""

import asyncio
import csv
import gzip
import io
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Generic, TypeVar

from attrs import evolve, field
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from aclog.console.pages.page import (
    Bar,
    Cell,
    Chart,
    Facts,
    Form,
    Kind,
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
from aclog.console.pages.views import GROUPS, MENU, is_at_moment
from aclog.metalog.errors import printable
from aclog.metalog.values import define, frozen
from aclog.terminal.tables import formula_free

# Cells and rows as HTML. A page has a thousand cells, and macros of a template take ten times as long for them.


def cell_html(cell: Cell) -> Markup:
    """Return a cell, and those below it."""
    return Markup(_cell(cell))  # noqa: S704 (its texts are escaped)


def rows_html(table: Table) -> Markup:
    """Return the rows of a table."""
    begins = tuple(_NUMBER if column.is_number else _WHOLE if column.is_whole else _TEXT for column in table.columns)
    rows = ((_short_row if _is_short(row) else _row)(row, begins) for row in table.rows)
    return Markup("\n".join(rows))  # noqa: S704 (its texts are escaped)


def lines_html(table: Table) -> Markup:
    """Return the rows of a table as a list: a line for each, which opens its other cells; grouped, with counts."""
    keys = [column.key for column in table.columns]
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        name = row.cells[keys.index(table.group)].text if table.group else ""
        groups.setdefault(name, []).append(row)
    parts = []
    for name, rows in groups.items():
        if name:
            parts.append(f'<h3 class="group">{escape(printable(name))} <span class="count">{len(rows):,}</span></h3>')
        parts += (_line(row, keys, table) for row in rows)
    return Markup("\n".join(parts))  # noqa: S704 (its texts are escaped)


def _line(row: Row, keys: list[str], table: Table) -> str:
    cells = dict(zip(keys, row.cells, strict=True))
    spans = "".join(f"<span{_mark(cells[key].mark)}>{_bdi(cells[key].text)}</span>" for key in table.lines)
    others = "".join(
        f"<div><dt>{escape(column.title)}</dt><dd>{_cell(cells[column.key])}</dd></div>"
        for column in table.columns
        if cells[column.key].text
    )
    key = escape(printable(row.key))
    begin = f'<details class="line {_look(row)}" name="{table.key}" data-key="{key}">'
    return f"{begin}<summary>{spans}</summary><dl>{others}</dl></details>"


def chart_html(chart: Chart) -> Markup:
    """Return a chart as SVG: a bar for each period, added rules above the axis and removed ones below it."""
    most = max((max(bar.added, bar.removed) for bar in chart.bars), default=0) or 1
    bars = "".join(_bar(place, bar, most) for place, bar in enumerate(chart.bars))
    width, ends = max(len(chart.bars), 1) * _BAR, [bar.label for bar in (*chart.bars[:1], *chart.bars[-1:])]
    ends.insert(1, "added above the line, removed below")
    labels = "".join(f"<span>{escape(printable(label))}</span>" for label in ends)
    size = f'viewBox="0 0 {width} {2 * _HALF}" preserveAspectRatio="none"'
    axis = f'<line class="axis" x1="0" x2="{width}" y1="{_HALF}" y2="{_HALF}"></line>'
    return Markup(  # noqa: S704 (its texts are escaped)
        f'<svg class="chart" {size} aria-labelledby="h-{chart.key}">{bars}{axis}</svg><p class="ends">{labels}</p>'
    )


_BAR, _HALF = 10, 30
"""The width of a bar and the height of its halves, in units of the drawing."""


def _bar(place: int, bar: Bar, most: int) -> str:
    up, down = (0 if not count else max(count * (_HALF - 2) / most, 1.5) for count in (bar.added, bar.removed))
    x = place * _BAR
    text = escape(printable(f"{bar.label}: {bar.added:,} added, {bar.removed:,} removed"))
    shapes = f'<title>{text}</title><rect class="ground" x="{x}" y="0" width="{_BAR}" height="{2 * _HALF}"></rect>'
    if up:
        shapes += f'<rect class="plus" x="{x + 1}" y="{_HALF - up:.1f}" width="{_BAR - 2}" height="{up:.1f}"></rect>'
    if down:
        shapes += f'<rect class="minus" x="{x + 1}" y="{_HALF}" width="{_BAR - 2}" height="{down:.1f}"></rect>'
    mark = ' class="chosen"' if bar.is_chosen else ""
    if bar.url is None:
        return f"<g{mark}>{shapes}</g>"
    return f'<a href="{escape(bar.url)}" aria-label="{text}"{mark}>{shapes}</a>'


_TEXT, _NUMBER, _WHOLE = "<td>", '<td class="number">', '<td class="whole">'
_SHARED_ROWS, _SHORT = 4_096, 1_000
"""Rows that are kept for the next page, and the most characters of a cell in one, with its address."""


def _is_short(row: Row) -> bool:
    return not any(len(cell.text) + len(cell.url or "") > _SHORT or cell.others for cell in row.cells)


@lru_cache(_SHARED_ROWS)
def _short_row(row: Row, begins: tuple[str, ...]) -> str:
    """Return a row of a table: most are as on the page of the state before."""
    return _row(row, begins)


def _row(row: Row, begins: tuple[str, ...]) -> str:
    cells = "".join(f"{begin}{_cell(cell)}</td>" for begin, cell in zip(begins, row.cells, strict=True))
    look = _look(row)
    mark = f' class="{look}"' if look else ""
    return f'<tr data-key="{escape(printable(row.key))}"{mark}>{cells}</tr>'


def _look(row: Row) -> str:
    look = row.look or row.mark
    return "" if look is None else f"row-{look}"


_PLAIN = re.compile("[A-Za-z0-9 %()*+,./:=?_-]*")
"""Texts that are printable, and need no escapes: most of a page's."""


def _bdi(text: str) -> str:
    return f"<bdi>{text if _PLAIN.fullmatch(text) else escape(printable(text))}</bdi>"


def _cell(cell: Cell) -> str:
    text = _bdi(cell.text)
    if cell.url:
        address = cell.url if _PLAIN.fullmatch(cell.url) else escape(cell.url)
        text = f'<a href="{address}"{_mark(cell.mark)}>{text if cell.text else "<bdi>(empty)</bdi>"}</a>'
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
        elif isinstance(part, Chart):
            fields[part.key] = [{"label": bar.label, "added": bar.added, "removed": bar.removed} for bar in part.bars]
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
    cluster_id: str = ""
    """Empty if the source does not record it."""
    time: str = ""
    """The time of the newest record, in ISO 8601; empty if it is unknown, or not for this viewer."""
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
    template = _environment().get_template("answer.html")
    return template.render(page=page, parts=parts, here=_here(page.path, parameters), **_moment(page.path, parameters))


def page_html(page: Page, parameters: Parameters, answer: str, around: Around) -> str:
    """Return a page as a document; `answer` is that of `answer_html`."""
    forms = [part for part in page.parts if isinstance(part, Form)]
    above, below = ([form for form in forms if form.is_below is is_below] for is_below in (False, True))
    groups: dict[str, list[tuple[str, str]]] = {}
    for path, name in around.menu:
        groups.setdefault(GROUPS.get(path, ""), []).append((path, name))
    template = _environment().get_template("page.html")
    # Not the page itself: macros keep their arguments in a cycle, and its tables would wait for the collector.
    return template.render(
        page_path=page.path,
        title=page.title,
        above=above,
        below=below,
        is_split=any(each.kind is Kind.AREA for form in above for each in form.fields),
        answer=answer,
        around=around,
        groups=list(groups.items()),
        others=[item for item in _form_values(parameters).items() if item[0] != "as_of"],
        **_moment(page.path, parameters),
    )


def _moment(path: str, parameters: Parameters) -> dict[str, object]:
    """Return the moment of a page, whether the page is of that moment, and the link to the same page of now."""
    present = Parameters({name: value for name, value in parameters.values.items() if name != "as_of"})
    return {
        "as_of": parameters.word("as_of"),
        "keeps_moment": is_at_moment(path, parameters),
        "present": _here(path, present),
    }


@cache
def asset_version() -> str:
    """Return a hash of the style and the script, for their addresses."""
    digest = sha256()
    for file in sorted(STATIC.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _here(path: str, parameters: Parameters) -> str:
    return url(path, **_form_values(parameters))


def _form_values(parameters: Parameters) -> dict[str, str]:
    return {name: value for name, value in parameters.values.items() if name not in ("format", "table")}


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
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = printable
    environment.filters["with"] = _with
    environment.filters["cell"] = cell_html
    environment.filters["rows"] = rows_html
    environment.filters["list_lines"] = lines_html
    environment.filters["chart"] = chart_html
    environment.filters["at"] = lambda path, as_of: url(path, as_of=as_of)
    environment.filters["sendable"] = lambda text: text.encode("utf-8", "replace").decode()
    environment.tests["table"] = lambda part: isinstance(part, Table)
    environment.tests["facts"] = lambda part: isinstance(part, Facts)
    environment.tests["lines"] = lambda part: isinstance(part, Lines)
    environment.tests["chart"] = lambda part: isinstance(part, Chart)
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
    _compressed: bytes = field(default=b"", init=False)
    """The document without a token, compressed; empty until it is needed."""

    @classmethod
    def of(cls, page: Page, parameters: Parameters, status: int, *, wants_html: bool = True) -> "MadePage":
        """Return a page, made."""
        answer = answer_html(page, parameters) if wants_html else ""
        return cls(page=page, parameters=parameters, status=status, answer=answer)

    @property
    def lasts(self) -> bool:
        """Whether it is the page of later requests of the same state."""
        return self.status < _REFUSED and self.page.is_settled

    def prepare(self, around: Around) -> None:
        """Make the document for a viewer now, in the thread of the page: the event loop answers others meanwhile."""
        if around.csrf_token:  # each session has a document of its own
            self.document(around)
        else:
            self.compressed(around)

    def document(self, around: Around) -> bytes:
        """Return the page as a document."""
        if self._around is None or self._around != evolve(around, csrf_token=self._around.csrf_token):
            slot = token_hex(16)  # random, and drawn after the page was made: the page cannot contain it
            self._around = evolve(around, csrf_token=slot)
            document = page_html(self.page, self.parameters, self.answer, self._around).encode()
            self._pieces, self._compressed = document.split(slot.encode()), b""
        return around.csrf_token.encode().join(self._pieces)

    def compressed(self, around: Around) -> bytes:
        """Return the same by gzip; without a login, all viewers get the same bytes, which are made once."""
        document = self.document(around)
        if around.csrf_token:
            return gzip.compress(document, _LEVEL, mtime=0)
        self._compressed = self._compressed or gzip.compress(document, _LEVEL, mtime=0)
        return self._compressed


_LEVEL = 3
"""Of gzip: a page takes less than a millisecond, and higher levels save little."""


# The answers of the newest state: each is made once, in a thread, for all requests.


_REFUSED = 400
"""The lowest status of an error page."""
_Page = TypeVar("_Page")


@define(eq=False, kw_only=True)
class Kept(Generic[_Page]):
    """Owned by the event loop: no call but those of the answers themselves runs elsewhere."""

    most: int
    lasts: Callable[[_Page], bool]
    """Whether an answer is that of later requests of the same state."""
    _of: object = field(default=None, init=False)
    """The newest state; no other is held on to."""
    _pages: "OrderedDict[Hashable, _Page]" = field(factory=OrderedDict, init=False)
    _making: "dict[Hashable, asyncio.Task[_Page]]" = field(factory=dict, init=False)

    async def get(
        self, state: object, key: Hashable, make: Callable[[], Awaitable[_Page]], *, is_moving: bool = False
    ) -> _Page:
        """Return an answer of a state; concurrent requests wait while it is being made.

        `is_moving`: the key means another answer later, so that it is made anew for later requests.
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
        """Keep answers of this state only."""
        if self._of is not state:
            self._of = state
            self._pages.clear()
            self._making.clear()  # requests that wait still get it

    async def _render(
        self, state: object, key: Hashable, make: Callable[[], Awaitable[_Page]], *, is_kept: bool
    ) -> _Page:
        try:
            page = await make()
        finally:
            if self._making.get(key) is asyncio.current_task():
                del self._making[key]
        if is_kept and self._of is state and self.lasts(page):
            self._pages[key] = page
            while len(self._pages) > self.most:
                self._pages.popitem(last=False)
        return page


def _consume_error(task: "asyncio.Task[_Page]") -> None:
    """Retrieve an exception that no request waits for any more."""
    if not task.cancelled():
        task.exception()
