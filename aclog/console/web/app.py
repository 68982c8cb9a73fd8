"""The console's application: each view under its path, and what tells whether there is something new to see."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, TypeVarTuple

from attrs import define, evolve, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from aclog.authorizer.origin import NO_ORIGINS
from aclog.console.login.forms import FormError
from aclog.console.login.guard import Guard, csrf_token_of
from aclog.console.login.visibility import All, decides_alone, may_alter
from aclog.console.login.visit import Visit
from aclog.console.pages.asked import Asked, BadAskedError
from aclog.console.pages.console import Console, NotShownError
from aclog.console.pages.own_states import OwnStates
from aclog.console.pages.page import File, Form, Mark, Notice, Page
from aclog.console.pages.states import NotReadyError, States, UnknownStateError
from aclog.console.pages.views import DOWNLOADS, MENU, OWN_VIEWS, VIEWS, View
from aclog.console.precedence import Precedence
from aclog.console.refusals import Refusals
from aclog.console.turns import NoTurnError
from aclog.console.web.draft_forms import Sent, read_sent
from aclog.console.web.kept_pages import KeptPages
from aclog.console.web.made_page import MadePage
from aclog.console.web.page_json import page_object, table_csv
from aclog.console.web.pools import Pools, is_costly
from aclog.console.web.receivers import RECEIVERS, Receiver
from aclog.console.web.rendering import STATIC, Around
from aclog.metalog.errors import MetadataError
from aclog.nodes.connection_budget import network_of
from aclog.terminal.json_text import json_text

_Args = TypeVarTuple("_Args")
_R = TypeVar("_R")

_KEPT, _KEPT_COSTLY, _VIEWERS = 64, 32, 256
_RETRY_S = 1
"""Retry-After of a refusal, and the delay with which it is sent: a client that goes on asking does so once a second."""
_OTHERS_DECIDE = (
    "Rules that you do not see can decide for you, too: what is listed here may not be all, or less; Why is exact."
)
_ONE_AT_A_TIME = "States of the past, differences and drafts are made one at a time for each viewer."
_NOT_TOLD = "the console cannot read it; why is shown to who may DESCRIBE the cluster"
_MOMENTS = ("as_of", "since", "until")
"""What may be counted from now: `yesterday` is another day tomorrow."""
_OLD_S = 5.0
"""When nobody has confirmed a state for so long, it is called old."""


@define(eq=False, kw_only=True)
class WebConsole:
    """The application; what it shows is kept until the state changes, so that many viewers of a page cost as one."""

    console: Console
    """As it is for who sees all."""
    guard: Guard | None = None
    """What stands before it and tells who looks; None: everybody sees all, and nothing is guarded."""
    precedence: Precedence = field(factory=Precedence)
    """Of pages over what else works in this process."""
    refusals: Refusals = field(factory=Refusals)
    retry_s: float = _RETRY_S
    """After how many seconds a refusal is sent."""
    _pools: Pools = field(init=False)
    _kept: dict[tuple[bool, bool], KeptPages] = field(factory=dict, init=False)
    """By whether the viewer sees all, and whether the page is costly: pages of one kind evict no others."""
    _own: "OrderedDict[str, OwnStates]" = field(factory=OrderedDict, init=False)
    """By principal, for those who see their own rights only."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._pools = Pools(precedence=self.precedence, refusals=self.refusals)
        for sees_all in (False, True):
            for costs_more in (False, True):
                most = _KEPT_COSTLY if costs_more else _KEPT
                self._kept[sees_all, costs_more] = KeptPages(most=most)

    def app(self) -> ASGIApp:
        """Return the application, guarded."""
        app = Starlette(
            routes=[
                *(Route(path, self._endpoint(path, view)) for path, view in VIEWS.items()),
                *(Route(path, self._receiver(path, taken), methods=["POST"]) for path, taken in RECEIVERS.items()),
                Route("/live", self._live),
                Route("/healthz", self._healthy),
                Mount("/static", _Static(directory=STATIC)),
            ],
            exception_handlers={404: self._not_found, 500: self._failed},
        )
        return app if self.guard is None else self.guard.around(app)

    def _endpoint(self, path: str, view: View) -> Callable[[Request], "Response"]:
        async def endpoint(request: Request) -> Response:
            """Answer a view."""
            return await self._answered(path, view, request)

        return endpoint  # type: ignore[return-value]

    def _receiver(self, path: str, taken: Receiver) -> Callable[[Request], "Response"]:
        async def receiver(request: Request) -> Response:
            """Take what a form sends."""
            try:
                sent = await read_sent(request)
            except FormError as error:
                return await self._plain(request, _trouble(path, "This cannot be taken", str(error)), error.status)
            try:
                return await self._pools.costly(
                    self._viewer(request), self._taken, path, taken, request, sent, is_lasting=True
                )
            except NoTurnError:
                return await self._busy(request, path)

        return receiver  # type: ignore[return-value]

    def _viewer(self, request: Request) -> Hashable:
        """Return the viewer: a principal, or where no login is required all of a network."""
        if self.guard is not None:
            visit = Visit.in_scope(request.scope)
            if visit.session is not None:
                return visit.session.principal
        return ("network", network_of("" if request.client is None else request.client.host))

    async def _in_thread(
        self, request: Request, costs_more: bool, function: Callable[[*_Args], _R], *args: *_Args
    ) -> _R:
        """Call what a viewer waits for. Raises NoTurnError: it is costly, and the viewer has asked for another one."""
        viewer = self._viewer(request)
        if costs_more:
            return await self._pools.costly(viewer, function, *args)
        return await self._pools.newest(viewer if isinstance(viewer, str) else None, function, *args)

    async def _busy(self, request: Request, path: str) -> Response:
        """Return the refusal of a costly page beyond the one that is made for a viewer at a time."""
        await asyncio.sleep(self.retry_s)
        response = await self._plain(request, _trouble(path, "Ask again in a moment", _ONE_AT_A_TIME), 429)
        response.headers["Retry-After"] = str(_RETRY_S)
        return response

    def _taken(self, path: str, taken: Receiver, request: Request, sent: Sent) -> Response:
        console = self._console_of(request)
        try:
            _check_shown(console, path)
            return taken(request, console, sent, self)
        except FormError as error:
            page, status = _trouble(path, "This cannot be taken", str(error)), error.status
        except _REFUSALS as error:
            page, status = _refused(path, error, console)
        return self.page(request, page, Asked(), status)

    async def _answered(self, path: str, view: View, request: Request) -> Response:
        console = self._console_of(request)
        await self._know_version(request, console)
        around = self._around(request, console)  # a page may be newer than its version
        asked = Asked()
        try:
            asked = Asked.of(request.scope.get("query_string", b""))
            download = DOWNLOADS.get(path, {}).get(asked.word("format"))
            if download is not None:
                _check_shown(console, path)
                return _file(await self._in_thread(request, True, download, console, asked))
            made = await self._page(request, console, path, view, asked)
        except NoTurnError:
            return await self._busy(request, path)
        except _REFUSALS as error:
            page, status = _refused(path, error, console)
            made = MadePage.of(page, asked, status)
        form = asked.word("format")
        if form == "json":
            return await self._pools.newest(None, _json, _confirmed(made.page, around), made.status)
        if form == "csv":
            return await self._pools.newest(None, _csv, made.page, asked.word("table"))
        return HTMLResponse(made.document(around), made.status)

    async def _know_version(self, request: Request, console: Console) -> None:
        """Compute the version of what one viewer sees in a thread, so that the event loop need not."""
        states = console.states
        while isinstance(states, OwnStates) and not states.is_version_known:
            await self._in_thread(request, False, getattr, states, "version")

    def _console_of(self, request: Request) -> Console:
        """Return the console as it is for who looks."""
        if self.guard is None:
            return self.console if self.console.editing is None else evolve(self.console, editing=None)
        sight = self.guard.sight(request)
        if isinstance(sight, All) or not isinstance(self.console.states, States):
            return self._editable(Visit.in_scope(request.scope))
        with self._lock:
            states = self._own.get(sight.principal)
            if states is None:
                states = OwnStates(states=self.console.states, sights=self.guard.sights, own=sight)
                self._own[sight.principal] = states
                while len(self._own) > _VIEWERS:
                    self._own.popitem(last=False)
            self._own.move_to_end(sight.principal)
        return evolve(
            self.console,
            states=states,
            own=sight,
            command=self.console.command.without_super_users(),
            origins=NO_ORIGINS,  # a rule's line tells how many are before it
            history=None,
            lookout=None,  # as the uses of a rule of everybody's tell of others
            editing=None,
            viewer=sight.principal,
        )

    def _editable(self, visit: Visit) -> Console:
        """Return the console for who sees all; without a login everybody writes who may at all, else who may ALTER."""
        viewer, console = visit.viewer, self.console
        if console.editing is None or viewer is None:
            return console if console.editing is None else evolve(console, editing=None)
        if viewer.principal is None:
            return console
        try:
            may = visit.host is not None and may_alter(viewer.principal, visit.host, console.states.now().authorizer)
        except NotReadyError:
            may = False
        return evolve(console, editing=console.editing if may else None, viewer=viewer.principal)

    async def _page(self, request: Request, console: Console, path: str, view: View, asked: Asked) -> MadePage:
        """Return a page, made anew only if the state has changed since.

        Raises:
            NotShownError, NotReadyError, NoTurnError: as they say.

        """
        _check_shown(console, path)
        whole = self.console.states.now()
        key = (console.own, console.editing is None, console.version, path, tuple(sorted(asked.given.items())))
        costs_more, is_own = is_costly(path, asked), False
        for each in self._kept.values():
            each.follow(whole)
        kept = self._kept[console.own is None, costs_more]

        async def make() -> MadePage:
            nonlocal is_own
            is_own = True
            return await self._in_thread(request, costs_more, self._made, console, path, view, asked)

        while True:
            try:
                return await kept.get(whole, key, make, is_moving=any(map(asked.word, _MOMENTS)))
            except NoTurnError:
                if is_own:
                    raise
                # It was being made for another viewer, who gave it up: it is made for this one.

    def _made(self, console: Console, path: str, view: View, asked: Asked) -> MadePage:
        try:
            page, status = self._noticed(view(console, asked), console), 200
        except _REFUSALS as error:
            page, status = _refused(path, error, console)
            if isinstance(error, BadAskedError):
                page = evolve(page, parts=_forms(console, view, asked))
        return MadePage.of(page, asked, status, wants_html=not asked.word("format"))

    def _noticed(self, page: Page, console: Console) -> Page:
        """Return a page that says that there may be more than its viewer sees, or than is known."""
        premises = console.states.now().premises
        unknown = tuple(Notice(text=each.note()) for each in premises.unknown)
        page = evolve(page, notices=(*unknown, *page.notices))
        if console.own is None:
            return page
        whole = self.console.states.now()
        notices = [Notice(text=console.own.notice)]
        if not decides_alone(whole.image, whole.policy.settings):
            notices.append(Notice(text=_OTHERS_DECIDE))
        return evolve(page, notices=(*notices, *page.notices))

    def _around(self, request: Request, console: Console | None = None) -> Around:
        viewer = None if self.guard is None else Visit.in_scope(request.scope).viewer
        if self.guard is not None and viewer is None:  # a stranger, at what needs no login
            return Around(source="", status="", trouble=None, version="", menu=())
        status, trouble, version = self._status(console or self._console_of(request))
        found = Around(source=self.console.name, status=status, trouble=trouble, version=version)
        if viewer is None:
            return found
        menu = MENU if viewer.sees_all else [(path, name) for path, name in MENU if path in OWN_VIEWS]
        return evolve(found, menu=menu, viewer=viewer.name, csrf_token=csrf_token_of(request))

    def _status(self, console: Console) -> tuple[str, str | None, str]:
        """Return a line about the state, why it may be old, and its version, as a viewer may know them."""
        states = console.states
        seen, trouble, age = states.live.newest, states.live.trouble, states.live.age()
        if trouble is not None and console.own is not None:
            trouble = _NOT_TOLD
        if seen is None or age is None:
            return "no state yet", f"No state could be read yet: {trouble}", "none"
        status = f"at offset {seen.image.end_offset:,}" if seen.image.end_offset else "one state"
        if trouble is not None or age > _OLD_S:
            why = trouble or "the source is silent"
            return status, f"Nobody has confirmed this state for {age:.0f} s: {why}", console.version
        return status, None, console.version

    async def _live(self, request: Request) -> Response:
        console = self._console_of(request)
        await self._know_version(request, console)
        status, trouble, version = self._status(console)
        found = {"status": status, "trouble": trouble, "version": version}
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    async def _healthy(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _not_found(self, request: Request, _error: Exception) -> Response:
        page = _trouble("/", "There is no such page", "The views are in the menu above.")
        return await self._plain(request, page, 404)

    async def _failed(self, request: Request, _error: Exception) -> Response:
        page = _trouble(request.url.path, "This failed", "It is an error of the console itself; its log says more.")
        return await self._plain(request, page, 500)

    async def _plain(self, request: Request, page: Page, status: int) -> Response:
        await self._know_version(request, self._console_of(request))
        return self.page(request, page, Asked(), status)

    def page(self, request: Request, page: Page, asked: Asked, status: int) -> Response:
        """Return a page as it is shown to who asks."""
        return HTMLResponse(MadePage.of(page, asked, status).document(self._around(request)), status)


class _Static(StaticFiles):
    """Files whose addresses change with them: a browser asks once."""

    def file_response(self, *args: Any, **named: Any) -> Response:
        """Return a file, to be kept."""
        response = super().file_response(*args, **named)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def _trouble(path: str, title: str, text: str) -> Page:
    return Page(path=path, title=title, notices=(Notice(text=text, mark=Mark.ERROR),))


def _forms(console: Console, view: View, asked: Asked) -> tuple[Form, ...]:
    """Return the forms of a view with what was asked in them, to be put right."""
    try:
        forms = [part for part in view(console, Asked()).parts if isinstance(part, Form)]
    except _REFUSALS:
        return ()
    return tuple(
        evolve(form, fields=tuple(evolve(each, value=asked.text(each.name, each.value)) for each in form.fields))
        for form in forms
    )


def _check_shown(console: Console, path: str) -> None:
    if console.own is not None and path not in OWN_VIEWS:
        raise NotShownError("This view tells of all rules: it is shown to who may DESCRIBE the cluster.")


_REFUSALS = (NotShownError, NotReadyError, MetadataError, OSError)


def _refused(path: str, error: Exception, console: Console) -> tuple[Page, int]:
    """Return what is shown of an error, and its status; a source's error may name rules of others."""
    text = str(error) if console.own is None else _NOT_TOLD
    if isinstance(error, UnknownStateError):
        return _trouble(path, "This cannot be asked", text), 400
    if isinstance(error, BadAskedError):
        return _trouble(path, "This cannot be asked", str(error)), 400
    if isinstance(error, NotShownError):
        return _trouble(path, "This is not shown to you", str(error)), 403
    if isinstance(error, NotReadyError):
        return _trouble(path, "Nothing is known yet", f"There is no state to show: {text}"), 503
    return _trouble(path, "This cannot be answered", text), 503


def _file(file: File) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"', "Cache-Control": "no-store"}
    return Response(file.content.encode(), media_type="application/jsonl", headers=headers)


def _confirmed(page: Page, around: Around) -> Page:
    """Return a page that says so itself if its state may be old."""
    if around.trouble is None:
        return page
    return evolve(page, notices=(Notice(text=around.trouble, mark=Mark.ERROR), *page.notices))


def _json(page: Page, status: int) -> Response:
    # Lone surrogates of hostile names have no UTF-8: JSON has escapes for them.
    data = json_text(page_object(page)).encode("utf-8", "backslashreplace")
    return Response(data, status, media_type="application/json")


def _csv(page: Page, key: str) -> Response:
    table = next((each for each in page.tables() if each.key == key), None)
    if table is None:
        return PlainTextResponse("no such table\n", 404)
    name = f'attachment; filename="{key}.csv"' if key.replace("-", "").isalnum() and key.isascii() else "attachment"
    return Response(table_csv(table), media_type="text/csv", headers={"Content-Disposition": name})
