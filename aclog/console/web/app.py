"""The console's application: each view under its path, and what tells whether there is something new to see."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from aclog.console.pages.asked import Asked, BadAskedError
from aclog.console.pages.console import Console
from aclog.console.pages.page import Mark, Notice, Page
from aclog.console.pages.states import NotReadyError
from aclog.console.pages.views import VIEWS, View
from aclog.console.web.page_json import page_object, table_csv
from aclog.console.web.rendering import STATIC, Around, answer_html, page_html
from aclog.metalog.errors import MetadataError
from aclog.terminal.json_text import json_text

_AT_ONCE = 4
"""Views that are made at the same time: more of them would only wait for each other."""
_KEPT = 64
_OLD_S = 5.0
"""When nobody has confirmed a state for so long, it is called old."""


@define(eq=False, kw_only=True)
class WebConsole:
    """The application; what it shows is kept until the state changes, so that many viewers of a page cost as one."""

    console: Console
    _limiter: CapacityLimiter | None = field(default=None, init=False)
    _kept: "OrderedDict[tuple[object, ...], tuple[Page, str]]" = field(factory=OrderedDict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                *(Route(path, self._endpoint(path, view)) for path, view in VIEWS.items()),
                Route("/live", self._live),
                Route("/healthz", self._healthy),
                Mount("/static", StaticFiles(directory=STATIC)),
            ],
            exception_handlers={404: self._not_found, 500: self._failed},
        )

    def _endpoint(self, path: str, view: View) -> Callable[[Request], "Response"]:
        async def endpoint(request: Request) -> Response:
            """Answer a view."""
            if self._limiter is None:
                self._limiter = CapacityLimiter(_AT_ONCE)
            return await run_sync(self._answered, path, view, request, limiter=self._limiter)

        return endpoint  # type: ignore[return-value]

    def _answered(self, path: str, view: View, request: Request) -> Response:
        asked, status = Asked(), 200
        try:
            asked = Asked.of(request.scope.get("query_string", b""))
            page, html = self._made(path, view, asked, wants_html=not asked.word("format"))
        except BadAskedError as error:
            page, status = _trouble(path, "This cannot be asked", str(error)), 400
        except NotReadyError as error:
            page, status = _trouble(path, "Nothing is known yet", f"There is no state to show: {error}"), 503
        except (MetadataError, OSError) as error:
            page, status = _trouble(path, "This cannot be answered", str(error)), 503
        if status != 200:
            html = answer_html(page, asked)
        form = asked.word("format")
        if form == "json":
            return _json(page_object(page), status)
        if form == "csv":
            return _csv(page, asked.word("table"))
        return HTMLResponse(page_html(page, asked, html, self._around()), status)

    def _made(self, path: str, view: View, asked: Asked, *, wants_html: bool) -> tuple[Page, str]:
        """Return a page and its answer as HTML, made anew only if the state has changed since."""
        key = (path, tuple(sorted(asked.given.items())), self.console.states.now())
        with self._lock:
            known = self._kept.get(key)
        if known is None:
            page = view(self.console, asked)
            known = page, answer_html(page, asked) if wants_html else ""
            with self._lock:
                self._kept[key] = known
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return known

    def _around(self) -> Around:
        status, trouble, version = self._status()
        return Around(source=self.console.name, status=status, trouble=trouble, version=version)

    def _status(self) -> tuple[str, str | None, str]:
        """Return a line about the state, why it may be old, and its version."""
        states = self.console.states
        seen, trouble, age = states.live.newest, states.live.trouble, states.live.age()
        if seen is None or age is None:
            return "no state yet", f"No state could be read yet: {trouble}", "none"
        status = f"at offset {seen.image.end_offset:,}" if seen.image.end_offset else "one state"
        if trouble is not None or age > _OLD_S:
            why = trouble or "the source is silent"
            return status, f"Nobody has confirmed this state for {age:.0f} s: {why}", states.version
        return status, None, states.version

    async def _live(self, _request: Request) -> Response:
        status, trouble, version = self._status()
        found = {"status": status, "trouble": trouble, "version": version}
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    async def _healthy(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _not_found(self, request: Request, _error: Exception) -> Response:
        page = _trouble(request.url.path, "There is no such page", "The views are in the menu above.")
        return self._plain(page, 404)

    async def _failed(self, request: Request, _error: Exception) -> Response:
        page = _trouble(request.url.path, "This failed", "It is an error of the console itself; its log says more.")
        return self._plain(page, 500)

    def _plain(self, page: Page, status: int) -> Response:
        asked = Asked()
        return HTMLResponse(page_html(page, asked, answer_html(page, asked), self._around()), status)


def _trouble(path: str, title: str, text: str) -> Page:
    return Page(path=path, title=title, notices=(Notice(text=text, mark=Mark.ERROR),))


def _json(found: dict[str, object], status: int) -> Response:
    # Lone surrogates of hostile names have no UTF-8: JSON has escapes for them.
    data = json_text(found).encode("utf-8", "backslashreplace")
    return Response(data, status, media_type="application/json")


def _csv(page: Page, key: str) -> Response:
    table = next((each for each in page.tables() if each.key == key), None)
    if table is None:
        return PlainTextResponse("no such table\n", 404)
    name = f'attachment; filename="{key}.csv"' if key.replace("-", "").isalnum() and key.isascii() else "attachment"
    return Response(table_csv(table), media_type="text/csv", headers={"Content-Disposition": name})
