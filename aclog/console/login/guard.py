"""The guard of every page: it authenticates viewers, and limits what each may see."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, urlsplit
from weakref import WeakKeyDictionary

from attrs import evolve, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD_PRINCIPAL, AclOperation, ResourceType
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import Premises, StandardAuthorizer
from aclog.console.connections import authenticate
from aclog.console.http import BodyBudget, Hosts, Share
from aclog.console.login.forms import (
    CSP_REPORT,
    MOST_BYTES,
    SAFE,
    TOKEN_HEADER,
    Cookies,
    CspReports,
    FormError,
    check_fields,
    is_form,
    is_of_own_page,
    may_read,
    read_body,
    replayed,
    token_in,
    with_security,
)
from aclog.console.login.oidc import OidcWay, read_settings
from aclog.console.login.passwords import PasswordWay
from aclog.console.login.sessions import ANONYMOUS_VIEWER, Entry, Pages, Sessions, Visit, Way, local_path, new_id
from aclog.console.shared import LineFile
from aclog.metalog.values import define, frozen
from aclog.server.connection_budget import network_of
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image

# A response on its way out: cookies and headers are added, and the audit line is written before it is sent.


_FAILED = b"The audit cannot be written, so nothing is answered.\n"


@define(eq=False, kw_only=True)
class Answering:
    """Sends the messages of one answer."""

    visit: Visit
    cookies: Cookies
    audit: LineFile | None
    report: Callable[[str], None]
    """Called when the audit cannot be written, with the reason."""
    send: Send
    _is_written: bool = field(default=False, init=False)
    _failed: bool = field(default=False, init=False)

    async def __call__(self, message: Message) -> None:
        """Send one message."""
        if self._failed:
            return
        if message["type"] != "http.response.start":
            await self.send(message)
            return
        try:
            self.tell(message["status"])
        except OSError as error:
            await self.fail(error)
            return
        await self.send({**message, "headers": self._headers(message)})

    def tell(self, status: int | None) -> None:
        """Write the audit line of the request, once; `status`: None without a response. Raises OSError."""
        if self.audit is not None and not self._is_written:
            self._is_written = True
            self.audit.write(self.visit.to_dict(status))

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        visit, headers = self.visit, list(message.get("headers", ()))
        if visit.is_new and not visit.cookies and any(_is_page(name, value) for name, value in headers):
            visit.cookies = [self.cookies.set_session(visit.session_id, None)]
        return with_security([*headers, *((b"set-cookie", cookie.encode("latin-1")) for cookie in visit.cookies)])

    async def fail(self, why: OSError) -> None:
        """Answer that the audit cannot be written; nothing else is sent."""
        self._failed = True
        self.report(f"nothing is answered: the audit cannot be written: {why}")
        headers = with_security([(b"content-type", b"text/plain; charset=utf-8")])
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": _FAILED})


def _is_page(name: bytes, value: bytes) -> bool:
    return name.lower() == b"content-type" and value.lower().startswith(b"text/html")


# What a viewer may see by the cluster's rules: everything, or only the viewer's own permissions.
#
# Kafka lists all rules for principals with DESCRIBE on the cluster, and so does the console, by the same authorizer.
# Other viewers see the rules that apply to them: those of their principal and of `User:*`, ALLOW and DENY, with hosts.
# No hidden rule can match a request of the viewer, so the rule of each decision is among the visible ones.
# Hidden: rules of other principals, their names and locations; other super users; topics, brokers, users and tokens
# of the cluster.
#
# `allow.everyone.if.no.acl.found` and a rule whose principal has no colon (on which Kafka throws) are the two ways in
# which rules of others decide for the viewer. The viewer's permissions are therefore decided from all rules
# (`State.authorizer`, of aclog.console.pages.states), which reveals no more than a request to the cluster would;
# visible rules explain a decision, and never make it. `OwnStates`, of aclog.console.pages.states, makes the states of
# the viewer's pages.


_NOT_SHOWN = "the cluster does not show it to you"
_DESCRIBE_CLUSTER, _ALTER_CLUSTER = (
    Action(
        operation=operation,
        resource_pattern=ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME),
        log_if_allowed=False,
        log_if_denied=False,
    )
    for operation in (AclOperation.DESCRIBE, AclOperation.ALTER)
)


@frozen
class All:
    """Everything."""


@frozen
class Own:
    """The rights of one principal."""

    principal: str

    @property
    def notice(self) -> str:
        """The notice of a page for this viewer. It is shown whether or not anything is hidden."""
        return (
            f"You see the rules of {self.principal} and of {WILDCARD_PRINCIPAL}. There may be more: all are shown to "
            "users with DESCRIBE on the cluster."
        )


def may_alter(principal: str, host: str, authorizer: StandardAuthorizer) -> bool:
    """Return whether a principal may change rules from an address: as kafka-acls --add from there."""
    try:
        return bool(authorizer.decide(RequestContext(principal=principal, host=host), _ALTER_CLUSTER))
    except InvalidRequestError:
        return False


def visibility(principal: str, host: str, authorizer: StandardAuthorizer) -> All | Own:
    """Return what a principal may see from an address: as kafka-acls --list from there.

    A principal that Kafka's authorizer would throw on sees its own rights.
    """
    try:
        decision = authorizer.decide(RequestContext(principal=principal, host=host), _DESCRIBE_CLUSTER)
    except InvalidRequestError:
        return Own(principal)
    return All() if decision else Own(principal)


def authorizer_of(image: Image, settings: Settings) -> StandardAuthorizer:
    """Return the authorizer of a state. Raises ConfigError: a super user has no colon."""
    return Policy(image.acls.with_options(documented=settings.documented, cidr=settings.cidr), settings).authorizer


def visible_image(image: Image, sight: All | Own) -> Image:
    """Return a state with the rules that a viewer may see; offset, epoch and time stay the same."""
    if isinstance(sight, All):
        return image
    acls = AclsImage.from_acls(_rules(image.acls, sight.principal))
    acls = acls.with_options(documented=image.acls.documented, cidr=image.acls.cidr)
    return Image(acls=acls, features=image.features, provenance=image.provenance)


def visible_premises(premises: Premises) -> Premises:
    """Return the unknown premises without the values that nodes have: they name super users."""
    hidden = (evolve(each, problem=_NOT_SHOWN, settled_by="the operator of this console") for each in premises.unknown)
    return Premises(tuple(hidden))


def visible_settings(settings: Settings, sight: All | Own) -> Settings:
    """Return settings without the super users that a viewer may not see."""
    if isinstance(sight, All):
        return settings
    return evolve(settings, super_users=settings.super_users & {sight.principal})


def decides_alone(image: Image, settings: Settings) -> bool:
    """Return whether visible rules decide the viewer's requests as all rules do; if not, hidden ones can."""
    return not settings.allow_everyone and not image.acls.index.has_colonless


def _rules(acls: AclsImage, principal: str) -> list[StandardAclWithId]:
    # Either filter reads only the rules of its principal, independent of the number of others.
    return [
        rule
        for each in dict.fromkeys((principal, WILDCARD_PRINCIPAL))
        for rule in acls.matching(AclBindingFilter(principal=each))
    ]


# The visible part of the newest state, cached until the state changes.


_SIGHTS, _VIEWERS = 10_000, 256
"""How many are kept: of principals at addresses, and of each state as principals see it."""


@define(eq=False, kw_only=True)
class Sights:
    """Decides what each viewer sees; owned by the server. Safe for any number of threads."""

    newest: Callable[[], Image | None]
    """The newest state; None before the first."""
    settings: Settings
    _image: Image | None = field(default=None, init=False)
    _authorizers: Sequence[StandardAuthorizer] = field(default=(), init=False)
    """Of each generation of Kafka that may decide."""
    _sights: dict[tuple[str, str], All | Own] = field(factory=dict, init=False)
    _images: "WeakKeyDictionary[Image, OrderedDict[str, Image]]" = field(factory=WeakKeyDictionary, init=False)
    """Weak references: kept only while the state is used elsewhere."""
    _lock: Lock = field(factory=Lock, init=False)
    _making: Lock = field(factory=Lock, init=False)
    """Held while an image is made, which takes longer than `of`: the event loop waits for that one."""

    def of(self, principal: str, host: str | None) -> All | Own:
        """Return what a principal may see from an address, by the newest state; before the first, its own rules.

        The same for an unknown address (None): a rule that denies that address there would not count.
        """
        image = self.newest()
        if image is None or host is None:
            return Own(principal)
        with self._lock:
            if image is not self._image:
                generations = deciding_kafka(image, self.settings.generation).generations
                self._authorizers = [authorizer_of(image, self.settings.of_generation(each)) for each in generations]
                self._image = image
                self._sights.clear()
            sight = self._sights.get((principal, host))
            if sight is None:
                if len(self._sights) >= _SIGHTS:
                    self._sights.clear()
                sight = self._sights[principal, host] = self._decided(principal, host)
            return sight

    def _decided(self, principal: str, host: str) -> All | Own:
        """Return everything only if each generation of Kafka that may decide allows it."""
        sights = [visibility(principal, host, authorizer) for authorizer in self._authorizers]
        return next((each for each in sights if isinstance(each, Own)), All())

    def image(self, image: Image, sight: All | Own) -> Image:
        """Return a state, of any moment, as a viewer may see it."""
        if isinstance(sight, All):
            return image
        with self._making:
            images = self._images.setdefault(image, OrderedDict())
            visible = images.get(sight.principal)
            if visible is None:
                visible = images[sight.principal] = visible_image(image, sight)
                if len(images) > _VIEWERS:
                    images.popitem(last=False)
            images.move_to_end(sight.principal)
            return visible


# The checks before every page of the console: the viewer, the address, and the permission.


_MOST, _MOST_OF_LARGE = 64 << 10, 8 << 20
"""Bytes of a body, and of one that may be large."""
_STRANGERS, _GUARDED_VIEWERS = 16 << 20, 32 << 20
"""Bytes of bodies that are held at once: of unauthenticated clients, and of viewers."""


@define(eq=False, kw_only=True)
class Guard:
    """Guards one application; serve `around(application)`, whose endpoints call `sight` and `csrf_token_of`.

    The viewer is in `Visit.in_scope(request.scope).viewer`; None at paths that need no login (`public`).
    """

    way: Way | None
    """None: no login is required, and all viewers see everything."""
    sights: Sights
    hosts: Hosts
    cookies: Cookies
    audit: LineFile | None = None
    report: Callable[[str], None] = lambda _: None
    """Called when the audit cannot be written, with the reason."""
    stylesheet: str | None = None
    icon: str | None = None
    """The paths of the login pages' style and icon."""
    public: Sequence[str] = ("/static/", "/healthz")
    """Paths that need no login; one that ends in `/` with all below it."""
    large: Sequence[str] = ("/draft",)
    """Paths whose bodies may be large, for viewers who see everything."""
    sessions: Sessions = field(factory=Sessions)
    reports: CspReports = field(factory=CspReports)
    _own: Mapping[str, ASGIApp] = field(init=False)
    """The responses of the guard itself, by path."""
    _of_strangers: BodyBudget = field(factory=lambda: BodyBudget(_STRANGERS), init=False)
    _of_viewers: BodyBudget = field(factory=lambda: BodyBudget(_GUARDED_VIEWERS), init=False)

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
        """Reload the login's settings, and end the sessions of viewers who could not log in any more.

        Raises:
            ConfigError, OSError: they cannot be used; everything stays as it was.

        """
        way = self.way
        if way is not None:
            way.reload()
            self.sessions.end_where(lambda session: not way.still_good(session))

    def is_open(self, request: Request) -> bool:
        """Return whether a request's session is still open: for long responses, such as streams."""
        return self.way is None or self.sessions.get(Visit.in_scope(request.scope).session_id) is not None

    def sight(self, request: Request) -> All | Own:
        """Return what the viewer of a request may see by the newest state, which may be newer than the request's."""
        visit = Visit.in_scope(request.scope)
        if visit.session is None:
            return All() if self.way is None else Own("")
        return self.sights.of(visit.session.principal, visit.host)

    async def _answer(self, app: ASGIApp, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        visit = Visit.of(scope)
        answering = Answering(visit=visit, cookies=self.cookies, audit=self.audit, report=self.report, send=send)
        try:
            if self.audit is not None:
                self.audit.check()  # before a form changes anything
        except OSError as error:
            await answering.fail(error)
            return
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
        """Authenticate the viewer."""
        session_id = self.cookies.session_id(visit.headers)
        visit.is_new, visit.session_id = session_id is None, session_id or new_id()
        visit.csrf_token = self.cookies.csrf_token(visit.session_id)
        if self.way is None:
            visit.viewer = ANONYMOUS_VIEWER
            return
        session = visit.session = self.sessions.get(visit.session_id)
        if session is not None:
            sees_all = isinstance(self.sights.of(session.principal, visit.host), All)
            visit.viewer = session.viewer(sees_all=sees_all)

    def _refusal(self, visit: Visit) -> Response | None:
        """Return the response that refuses a request; None if it is permitted."""
        if not self.hosts.answer(visit.headers.getlist("host")):
            return PlainTextResponse("This server does not have that name.\n", 421)
        if not may_read(visit.method, visit.headers):
            return PlainTextResponse("Other sites may link here, but not include this.\n", 403)
        if visit.path in self._own or visit.viewer is not None or self._is_public(visit.path):
            return None
        return _login_needed(visit)

    def _crowd(self, visit: Visit, scope: Scope) -> Response | None:
        """Return the response to a viewer with too many connections; None within the limit, or without a login."""
        if visit.viewer is None or authenticate(scope, visit.viewer.principal):
            return None
        return PlainTextResponse("Too many connections of one viewer.\n", 429, {"Retry-After": "1"})

    def _is_public(self, path: str) -> bool:
        return any(path.startswith(each) if each.endswith("/") else path == each for each in self.public)

    async def _checked(self, visit: Visit, scope: Scope, receive: Receive, share: Share) -> Receive:
        """Return the `receive` for the body. Raises FormError: it would change state without permission.

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
            raise FormError(
                403, "This form is from another or an expired session: go back, reload the page, and send it again."
            )

    async def _report(self, request: Request) -> Response:
        try:
            self.reports.add(await read_body(request.receive, MOST_BYTES))
        except FormError as error:
            return PlainTextResponse(f"{error}\n", error.status)
        return Response(status_code=204)

    async def _reported(self, request: Request) -> Response:
        viewer = Visit.in_scope(request.scope).viewer
        if viewer is None or not viewer.sees_all:
            return JSONResponse({"error": "this needs DESCRIBE on the cluster"}, 403)
        return JSONResponse(self.reports.to_dict())


def _sender(visit: Visit) -> Hashable:
    """Return whose bodies are counted together."""
    principal = None if visit.viewer is None else visit.viewer.principal
    return ("network", network_of(visit.address)) if principal is None else principal


def csrf_token_of(request: Request) -> str:
    """Return the CSRF token that a form has to return, as its field csrf_token or the header X-CSRF-Token."""
    return Visit.in_scope(request.scope).csrf_token


def _leaving(entry: Entry) -> Callable[[Request], Awaitable[Response]]:
    async def leave(request: Request) -> Response:
        """End the session."""
        return entry.leave(Visit.in_scope(request.scope))

    return leave


def _login_needed(visit: Visit) -> Response:
    """Redirect a browser to the login, and refuse other clients."""
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
    target = local_path(f"{path}?{query}" if query else path)
    return "/login" if target == "/" else f"/login?next={quote(target, safe='')}"


# The way to log in that `--login` names.


_OIDC = "oidc"


def way_of(login: str, *, base_url: str, environment: Mapping[str, str], tell: Callable[[str], None]) -> Way:
    """Return the way of `oidc`, of `oidc:FILE`, or of a file of passwords.

    `base_url` is how browsers reach the console; the callback gets the reason of each failed login at a provider.

    Raises:
        ConfigError: settings or passwords that cannot be used. OSError: a file cannot be read.

    """
    kind, colon, name = login.partition(":")
    if kind != _OIDC or (colon and not name):
        return PasswordWay.read(Path(login))
    path = Path(name) if colon else None
    return OidcWay(read=partial(read_settings, path, environment, base_url), tell=tell)
