"""Pages as HTML."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from attrs import frozen
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from aclog.console.pages.asked import Asked, exact_field, url
from aclog.console.pages.page import Facts, Form, Lines, Links, Page, Table
from aclog.console.pages.views import MENU
from aclog.console.web.cell_html import cell_html, rows_html
from aclog.metalog.printable import printable

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
HTMX = "htmx-2.0.11.min.js"


@frozen(kw_only=True)
class Around:
    """What stands around a page: the source, how old its state is, and who looks."""

    source: str
    status: str
    """A line about the state."""
    trouble: str | None
    """Why the state may be old; None if it is not."""
    version: str
    """Of the state; another one when there is something new to see."""
    menu: Sequence[tuple[str, str]] = MENU
    """The views that the viewer may see."""
    viewer: str = ""
    """His name; empty where no login is asked for."""
    csrf_token: str = ""
    """Of the session, for forms that write."""


def answer_html(page: Page, asked: Asked) -> str:
    """Return what answers: all of a page but its forms."""
    parts = [part for part in page.parts if not isinstance(part, Form)]
    return _environment().get_template("answer.html").render(page=page, parts=parts, here=_here(page, asked))


def page_html(page: Page, asked: Asked, answer: str, around: Around) -> str:
    """Return a page as a document; `answer` is that of `answer_html`."""
    forms = [part for part in page.parts if isinstance(part, Form)]
    above, below = ([form for form in forms if form.is_below is is_below] for is_below in (False, True))
    template = _environment().get_template("page.html")
    # Not the page itself: macros keep what they are given in a cycle, and its tables would wait for the collector.
    return template.render(
        page_path=page.path,
        title=page.title,
        above=above,
        below=below,
        answer=answer,
        around=around,
        here=_here(page, asked),
    )


@cache
def asset_version() -> str:
    """Return what changes with the style or the script, for their addresses."""
    digest = sha256()
    for file in sorted(STATIC.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _here(page: Page, asked: Asked) -> str:
    kept = {name: value for name, value in asked.given.items() if name not in ("format", "table")}
    return url(page.path, **kept)


def _with(address: str, **more: str) -> str:
    """Return an address with more parameters."""
    joint = "&" if "?" in address else "?"
    return address + joint + url("", **more).removeprefix("?")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = printable
    made.filters["with"] = _with
    made.filters["cell"] = cell_html
    made.filters["rows"] = rows_html
    made.filters["sendable"] = lambda text: text.encode("utf-8", "replace").decode()
    made.tests["table"] = lambda part: isinstance(part, Table)
    made.tests["facts"] = lambda part: isinstance(part, Facts)
    made.tests["lines"] = lambda part: isinstance(part, Lines)
    made.tests["links"] = lambda part: isinstance(part, Links)
    made.globals["asset_version"] = asset_version
    made.globals["exact_field"] = exact_field
    made.globals["htmx"] = HTMX
    return made
