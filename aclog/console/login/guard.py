"""What stands before every page of the console: who asks, from where, and whether he may."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from aclog.console.body_budget import BodyBudget, Share
from aclog.console.gate import authenticate
from aclog.console.hosts import Hosts
from aclog.console.line_file import LineFile
from aclog.console.login.answering import Answering
from aclog.console.login.cookies import Cookies
from aclog.console.login.csp_reports import MOST_BYTES, CspReports
from aclog.console.login.entry import Entry
from aclog.console.login.forms import TOKEN_HEADER, FormError, check_fields, is_form, read_body, replayed, token_in
from aclog.console.login.headers import CSP_REPORT
from aclog.console.login.pages import Pages, local_path
from aclog.console.login.same_origin import SAFE, is_of_own_page, may_read
from aclog.console.login.sessions import Sessions, new_id
from aclog.console.login.sights import Sights
from aclog.console.login.viewer import ANYBODY
from aclog.console.login.visibility import All, Own
from aclog.console.login.visit import Visit
from aclog.console.login.way import Way
from aclog.nodes.connection_budget import network_of

_MOST, _MOST_OF_LARGE = 64 << 10, 8 << 20
"""Bytes of a body, and of one that may be large."""
_STRANGERS, _VIEWERS = 16 << 20, 32 << 20
"""Bytes of bodies that are held at once: of those who have not logged in, and of those who have."""


@define(eq=False, kw_only=True)
class Guard:
    """Guards one application; serve `around(application)`, whose endpoints ask `sight` and `csrf_token_of`.

    Who asks is in `Visit.in_scope(request.scope).viewer`; None in what needs no login (`public`).
    """

    way: Way | None
    """None: no login is asked for, and everybody sees all."""
    sights: Sights
    hosts: Hosts
    cookies: Cookies
    audit: LineFile | None = None
    stylesheet: str | None = None
    icon: str | None = None
    """The paths of the login pages' style and icon."""
    public: Sequence[str] = ("/static/", "/healthz")
    """Paths that need no login; one that ends in `/` with all below it."""
    large: Sequence[str] = ("/draft",)
    """Paths whose bodies may be large, if who sends them sees all."""
    sessions: Sessions = field(factory=Sessions)
    reports: CspReports = field(factory=CspReports)
    _own: Mapping[str, ASGIApp] = field(init=False)
    """What the guard answers itself, by path."""
    _of_strangers: BodyBudget = field(factory=lambda: BodyBudget(_STRANGERS), init=False)
    _of_viewers: BodyBudget = field(factory=lambda: BodyBudget(_VIEWERS), init=False)

    def __attrs_post_init__(self) -> None:
        entry = Entry(
            sessions=self.sessions, cookies=self.cookies, pages=Pages(stylesheet=self.stylesheet, icon=self.icon)
        )
        routes = [
            Route(CSP_REPORT, self._report, methods=["POST"]),
            Route(CSP_REPORT, self._reported, methods=["GET"]),
        ]
        if self.way is not None:
            routes += [*self.way.routes(entry), Route("/logout", _leaving(entry), methods=["POST"])]
        application = Starlette(routes=routes)
        self._own = {route.path: application for route in routes}

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return an application, guarded."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            """Answer one request."""
            if scope["type"] == "http":
                await self._answer(app, {**scope}, receive, send)
            elif scope["type"] == "lifespan":
                await app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})

        return guarded

    def reload(self) -> None:
        """Read the login's settings again, and end the sessions of those who could not log in any more.

        Raises:
            ConfigError, OSError: they cannot be used; everything stays as it was.

        """
        way = self.way
        if way is not None:
            way.reload()
            self.sessions.end_where(lambda session: not way.still_good(session))

    def is_open(self, request: Request) -> bool:
        """Return whether a request's session has not ended: what is answered for long, such as a stream, asks this."""
        return self.way is None or self.sessions.get(Visit.in_scope(request.scope).session_id) is not None

    def sight(self, request: Request) -> All | Own:
        """Return what the viewer of a request may see by the newest state, which may be newer than the request's."""
        visit = Visit.in_scope(request.scope)
        if visit.session is None:
            return All() if self.way is None else Own("")
        return self.sights.of(visit.session.principal, visit.host)

    async def _answer(self, app: ASGIApp, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        visit = Visit.of(scope)
        answering = Answering(visit=visit, cookies=self.cookies, audit=self.audit, send=send)
        try:
            self._recognize(visit)
            refused = self._refusal(visit) or self._crowd(visit, scope)
            bodies = self._of_strangers if visit.viewer is None else self._of_viewers
            with bodies.share(_sender(visit)) as share:
                if refused is None:
                    try:
                        receive = await self._checked(visit, scope, receive, share)
                    except FormError as error:
                        refused = PlainTextResponse(f"{error}\n", error.status)
                await (refused or self._own.get(visit.path, app))(scope, receive, answering)
        finally:
            answering.tell(None)

    def _recognize(self, visit: Visit) -> None:
        """Find out who asks."""
        known = self.cookies.session_id(visit.headers)
        visit.is_new, visit.session_id = known is None, known or new_id()
        visit.csrf_token = self.cookies.csrf_token(visit.session_id)
        if self.way is None:
            visit.viewer = ANYBODY
            return
        session = visit.session = self.sessions.get(visit.session_id)
        if session is not None:
            sees_all = isinstance(self.sights.of(session.principal, visit.host), All)
            visit.viewer = session.viewer(sees_all=sees_all)

    def _refusal(self, visit: Visit) -> Response | None:
        """Return the answer to who may not ask this; None if he may."""
        if not self.hosts.answer(visit.headers.getlist("host")):
            return PlainTextResponse("This server does not have that name.\n", 421)
        if not may_read(visit.method, visit.headers):
            return PlainTextResponse("Other sites may link here, but not include this.\n", 403)
        if visit.path in self._own or visit.viewer is not None or self._is_public(visit.path):
            return None
        return _login_needed(visit)

    def _crowd(self, visit: Visit, scope: Scope) -> Response | None:
        """Return the answer to a viewer who has too many connections; None if he has not, or is a stranger."""
        if visit.viewer is None or authenticate(scope, visit.viewer.principal):
            return None
        return PlainTextResponse("Too many connections of one viewer.\n", 429, {"Retry-After": "1"})

    def _is_public(self, path: str) -> bool:
        return any(path.startswith(each) if each.endswith("/") else path == each for each in self.public)

    async def _checked(self, visit: Visit, scope: Scope, receive: Receive, share: Share) -> Receive:
        """Return what the body is received from. Raises FormError: it would change something, and may not.

        A body is read whole if only a token can be missing, which a form may have in it.
        """
        if visit.method in SAFE or visit.path == CSP_REPORT:
            return receive
        if not is_of_own_page(visit.headers):
            raise FormError(403, "This was sent from another site.")
        token, kind = visit.headers.get(TOKEN_HEADER), visit.headers.get("content-type", "")
        if token or not is_form(kind):
            self._check_token(visit, token)
        sees_all = visit.viewer is not None and visit.viewer.sees_all
        body = await read_body(receive, _MOST_OF_LARGE if sees_all and visit.path in self.large else _MOST, share)
        check_fields(kind, body)
        if not token:
            self._check_token(visit, await token_in(scope, body, receive))
        return replayed(body, receive)

    def _check_token(self, visit: Visit, token: str | None) -> None:
        if not self.cookies.is_csrf_token(visit.session_id, token):
            raise FormError(403, "This form is of another session or of none: go back, reload the page, send it again.")

    async def _report(self, request: Request) -> Response:
        try:
            self.reports.add(await read_body(request.receive, MOST_BYTES))
        except FormError as error:
            return PlainTextResponse(f"{error}\n", error.status)
        return Response(status_code=204)

    async def _reported(self, request: Request) -> Response:
        viewer = Visit.in_scope(request.scope).viewer
        if viewer is None or not viewer.sees_all:
            return JSONResponse({"error": "this is shown to who sees all"}, 403)
        return JSONResponse(self.reports.to_dict())


def _sender(visit: Visit) -> Hashable:
    """Return whose bodies are counted together."""
    principal = None if visit.viewer is None else visit.viewer.principal
    return ("network", network_of(visit.address)) if principal is None else principal


def csrf_token_of(request: Request) -> str:
    """Return what a form of the answer has to send back, as its field csrf_token or the header X-CSRF-Token."""
    return Visit.in_scope(request.scope).csrf_token


def _leaving(entry: Entry) -> Callable[[Request], Awaitable[Response]]:
    async def leave(request: Request) -> Response:
        """End the session."""
        return entry.leave(Visit.in_scope(request.scope))

    return leave


def _login_needed(visit: Visit) -> Response:
    """Lead a reader to the login, and tell a program."""
    headers = {"WWW-Authenticate": "Cookie"}
    if visit.headers.get("hx-request") == "true":
        headers["HX-Redirect"] = _login_path(*_path_of(visit.headers.get("hx-current-url", "")))
        return PlainTextResponse("log in first\n", 401, headers)
    if visit.method in {"GET", "HEAD"} and "text/html" in visit.headers.get("accept", ""):
        return RedirectResponse(_login_path(quote(visit.path, safe="/"), visit.query), 303)
    return JSONResponse({"error": "log in first"}, 401, headers)


def _path_of(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "/", ""
    return parts.path, parts.query


def _login_path(path: str, query: str) -> str:
    wanted = local_path(f"{path}?{query}" if query else path)
    return "/login" if wanted == "/" else f"/login?next={quote(wanted, safe='')}"
