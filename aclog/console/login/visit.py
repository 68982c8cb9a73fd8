"""One request, and what the guard has found out about it."""

import time
from typing import Any
from urllib.parse import unquote_plus

from attrs import define, field
from starlette.datastructures import Headers

from aclog.authorizer.hosts import host_address
from aclog.console.login.sessions import Session
from aclog.console.login.viewer import Viewer
from aclog.metalog.errors import ConfigError

_KEY = "aclog.visit"
_LOGIN_PATHS = ("/login", "/logout")
_MOST = 4096
"""Characters of a stranger's request that are written down. A viewer's is written whole: what he asked is in it."""
_SECRET = frozenset({"access_token", "client_secret", "csrf_token", "id_token", "passwd", "password", "secret"})


@define(eq=False, kw_only=True)
class Visit:
    """A request on its way; what changes the session says so here."""

    method: str
    path: str
    query: str
    address: str
    """Whence it comes, as its connection says, or a proxy that is trusted."""
    host: str | None
    """The address in the form of rules' hosts; None if it is none, so that no rule's host can be compared with it."""
    headers: Headers
    began: float = field(factory=time.perf_counter)
    session_id: str = ""
    """Of this browser; those who have not logged in have one too, for their forms' tokens."""
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
        found: Visit = scope[_KEY]
        return found

    def to_dict(self, status: int | None) -> dict[str, Any]:
        """Return the line of the audit: no cookie, no body, and nothing of a login's query."""
        principal = None if self.viewer is None else self.viewer.principal
        milliseconds = round(1000 * (time.perf_counter() - self.began), 3)
        return {
            "viewer": principal,
            "address": self.address,
            "method": self.method,
            "path": self._shown(),
            "status": status,
            "ms": milliseconds,
        }

    def _shown(self) -> str:
        shown = self.path
        if self.query and not any(self.path == each or self.path.startswith(f"{each}/") for each in _LOGIN_PATHS):
            shown = f"{self.path}?{'&'.join(map(_without_secret, self.query.split('&')))}"
        return shown if self.viewer is not None else shown[:_MOST]


def _host_of(address: str) -> str | None:
    try:
        return host_address(address)
    except ConfigError:
        return None


def _without_secret(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}=..." if equals and unquote_plus(name).lower() in _SECRET else pair
