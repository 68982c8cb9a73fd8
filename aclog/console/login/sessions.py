"""Sessions of viewers: how they begin and end."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import Any, Protocol
from urllib.parse import unquote_plus

from attrs import field
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from aclog.authorizer.acl import host_address
from aclog.console.login.forms import Cookies
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen

# The viewer of the console.


@frozen(kw_only=True)
class Viewer:
    """A viewer: logged in, or any client where no login is required."""

    name: str
    """The name on pages; empty where no login is required."""
    principal: str | None
    """The Kafka principal, such as `User:alice`; None where no login is required."""
    sees_all: bool
    """By the newest state, when the request came."""


ANONYMOUS_VIEWER = Viewer(name="", principal=None, sees_all=True)
"""The viewer where no login is required."""


# Sessions of viewers; kept on the server, so that a logout really ends them.


SESSION_S = 8 * 3600.0
_MOST, _MOST_OF_ONE = 10_000, 20
"""Sessions at all, and of one principal; beyond, the oldest ends."""


def new_id() -> str:
    """Return an unguessable id: 256 random bits."""
    return secrets.token_urlsafe(32)


@frozen(kw_only=True)
class Session:
    """A login."""

    name: str
    principal: str
    proof: bytes | None = field(default=None, repr=False)
    """The proof of the login, in the form of its method."""
    until: float = field(default=0.0)

    def viewer(self, *, sees_all: bool) -> Viewer:
        """Return the viewer."""
        return Viewer(name=self.name, principal=self.principal, sees_all=sees_all)


@define(eq=False, kw_only=True)
class Sessions:
    """All sessions, by id; owned by the guard, and used from one event loop."""

    clock: Callable[[], float] = elapsed_seconds
    seconds: float = SESSION_S
    """The lifetime of a session after the login, independent of its use."""
    _open: "OrderedDict[str, Session]" = field(factory=OrderedDict, init=False, repr=False)

    def begin(self, name: str, principal: str, proof: bytes | None = None) -> str:
        """Begin a session; return its id."""
        self._forget_old()
        own = [each for each, session in self._open.items() if session.principal == principal]
        for each in own[: max(len(own) - _MOST_OF_ONE + 1, 0)]:
            del self._open[each]
        if len(self._open) >= _MOST:
            self._open.popitem(last=False)
        session_id = new_id()
        until = self.clock() + self.seconds
        self._open[session_id] = Session(name=name, principal=principal, proof=proof, until=until)
        return session_id

    def get(self, session_id: str) -> Session | None:
        """Return a session that has not ended."""
        session = self._open.get(session_id)
        return None if session is None or self.clock() >= session.until else session

    def end(self, session_id: str) -> None:
        """End a session, if it is there."""
        self._open.pop(session_id, None)

    def end_where(self, ended: Callable[[Session], bool]) -> None:
        """End the sessions whose login is no longer valid."""
        for each in [each for each, session in self._open.items() if ended(session)]:
            del self._open[each]

    def _forget_old(self) -> None:
        now = self.clock()
        while self._open and next(iter(self._open.values())).until <= now:  # all last as long: the oldest end first
            self._open.popitem(last=False)


def same_proof(one: bytes | None, other: bytes | None) -> bool:
    """Return whether two proofs are there and are one."""
    return one is not None and other is not None and compare_digest(one, other)


# One request, and the findings of the guard about it.


_KEY = "aclog.visit"
_LOGIN_PATHS = ("/login", "/logout")
_MOST_TEXT = 4096
"""At most so many characters of an unauthenticated request are audited. A viewer's request is audited whole."""
_SECRET = frozenset({"access_token", "client_secret", "csrf_token", "id_token", "passwd", "password", "secret"})


@define(eq=False, kw_only=True)
class Visit:
    """A request in progress; handlers record changes of the session here."""

    method: str
    path: str
    query: str
    address: str
    """The client's address, from its connection, or from a trusted proxy."""
    host: str | None
    """The address in the form of rules' hosts; None: not an address, so that no rule's host can match it."""
    headers: Headers
    began: float = field(factory=time.perf_counter)
    session_id: str = ""
    """The id of this browser; browsers without a login have one too, for the tokens of their forms."""
    is_new: bool = True
    """Whether its browser sent no such id."""
    session: Session | None = None
    viewer: Viewer | None = None
    csrf_token: str = ""
    cookies: list[str] = field(factory=list)
    """Set-Cookie of the answer."""

    @classmethod
    def of(cls, scope: dict[str, Any]) -> "Visit":
        """Return the visit of a request, and keep it in its scope."""
        client = scope.get("client")
        address = client[0] if client else ""
        visit = cls(
            method=scope["method"],
            path=scope["path"],
            query=scope.get("query_string", b"").decode("latin-1"),
            address=address,
            host=_host_of(address),
            headers=Headers(scope=scope),
        )
        scope[_KEY] = visit
        return visit

    @staticmethod
    def in_scope(scope: Any) -> "Visit":
        """Return the visit of a request that the guard let through."""
        visit: Visit = scope[_KEY]
        return visit

    def to_dict(self, status: int | None) -> dict[str, Any]:
        """Return the line of the audit: no cookie, no body, and nothing of a login's query."""
        principal = None if self.viewer is None else self.viewer.principal
        milliseconds = round(1000 * (time.perf_counter() - self.began), 3)
        return {
            "viewer": principal,
            "address": self.address,
            "method": self.method,
            "path": self._logged_path(),
            "status": status,
            "ms": milliseconds,
        }

    def _logged_path(self) -> str:
        text = self.path
        if self.query and not any(self.path == each or self.path.startswith(f"{each}/") for each in _LOGIN_PATHS):
            text = f"{self.path}?{'&'.join(map(_without_secret, self.query.split('&')))}"
        return text if self.viewer is not None else text[:_MOST_TEXT]


def _host_of(address: str) -> str | None:
    try:
        return host_address(address)
    except ConfigError:
        return None


def _without_secret(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}=..." if equals and unquote_plus(name).lower() in _SECRET else pair


# The pages of a login.


_CONTROLS = frozenset(map(chr, (*range(0x21), 0x7F)))


def _environment() -> Environment:
    return Environment(loader=PackageLoader("aclog.console.login"), autoescape=True, undefined=StrictUndefined)


@frozen(kw_only=True)
class Pages:
    """Renders them; without script, and with the console's stylesheet if there is one."""

    stylesheet: str | None = None
    icon: str | None = None
    """Their paths."""
    _templates: Environment = field(factory=_environment, init=False, repr=False)

    def form(self, visit: Visit, target: str, *, status: int = 200, problem: str = "") -> HTMLResponse:
        """Return the form for name and password."""
        return self._page("password.html", "Log in", problem, status, csrf_token=visit.csrf_token, next=target)

    def link(self, provider: str, start: str) -> HTMLResponse:
        """Return the page that leads to a provider's login."""
        return self._page("provider.html", "Log in", "", 200, provider=provider, start=start)

    def message(self, title: str, problem: str = "", *, status: int = 200) -> HTMLResponse:
        """Return a page with a message and a link to the login."""
        return self._page("message.html", title, problem, status)

    def _page(self, template: str, title: str, problem: str, status: int, **more: str) -> HTMLResponse:
        page = self._templates.get_template(template)
        around = {"stylesheet": self.stylesheet, "icon": self.icon}
        text = page.render(title=title, problem=problem, **around, **more)
        return HTMLResponse(text, status)


def local_path(text: str | None) -> str:
    """Return where to go after a login: a path of this console; `/` for anything else, which may be another host."""
    if not text or len(text) > 4096 or not text.startswith("/") or text[1:2] in {"/", "\\"}:
        return "/"
    return "/" if not _CONTROLS.isdisjoint(text) or not text.isascii() else text


# Going in and out: sessions begin and end here.


@frozen(eq=False, kw_only=True)
class Entry:
    """The dependencies of every login method."""

    sessions: Sessions
    cookies: Cookies
    pages: Pages

    def enter(self, visit: Visit, name: str, principal: str, proof: bytes | None = None) -> None:
        """Begin a session under a new id, so that a leaked old id does not give access to it."""
        self.sessions.end(visit.session_id)
        visit.session_id = self.sessions.begin(name, principal, proof)
        visit.session = self.sessions.get(visit.session_id)
        visit.viewer = None if visit.session is None else visit.session.viewer(sees_all=False)
        visit.cookies = [self.cookies.set_session(visit.session_id, self.sessions.seconds)]

    def leave(self, visit: Visit) -> Response:
        """End the session."""
        self.sessions.end(visit.session_id)
        visit.session_id, visit.session = new_id(), None
        visit.cookies = [self.cookies.set_session(visit.session_id, None), self.cookies.drop_login()]
        return RedirectResponse("/login?out", 303)


# A way to log in.


class Way(Protocol):
    """A login method."""

    def routes(self, entry: Entry) -> Sequence[Route]:
        """Return its pages: `/login`, and pages below it."""

    def still_good(self, session: Session) -> bool:
        """Return whether the login of a session would still succeed."""

    def reload(self) -> None:
        """Read its settings again. Raises ConfigError, OSError: they cannot be used, and the old ones stay."""
