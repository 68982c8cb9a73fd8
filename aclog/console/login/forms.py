"""Cookies, forms and headers of every answer."""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Any, TypeVar

from anyio.to_thread import run_sync
from attrs import asdict, field
from itsdangerous import BadData, Signer, URLSafeTimedSerializer
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.types import Message, Receive

from aclog.console.http import BusyError, Share, TooLargeError, collected
from aclog.metalog.values import define, frozen

# Signed cookies: of a browser's session, and of a login that has begun.


LOGIN_S = 600
"""For how long a login at a provider may take, in seconds."""
_MOST = 4096


@frozen(kw_only=True)
class Cookies:
    """Names and keys of the cookies of one console; the keys are new at each start, and so ends every session.

    Browsers send cookies to every port of a host, so the port is in their names. Where there is HTTPS they have the
    prefix `__Host-`: no other host, and no page without TLS, can set them.
    """

    secure: bool
    port: int
    _key: bytes = field(repr=False, factory=lambda: secrets.token_bytes(32))

    @property
    def session_name(self) -> str:
        """The name of the session's cookie."""
        return f"{'__Host-' if self.secure else ''}aclog-{self.port}"

    @property
    def login_name(self) -> str:
        """The name of the cookie of a login that has begun."""
        return f"{self.session_name}-login"

    def session_id(self, headers: Headers) -> str | None:
        """Return the id in a request's cookie; None without one that was signed here."""
        cookie = _cookie(headers, self.session_name)
        if cookie is None:
            return None
        try:
            return self._signer().unsign(cookie).decode("ascii")
        except (BadData, UnicodeError):
            return None

    def set_session(self, session_id: str, seconds: float | None) -> str:
        """Return the Set-Cookie of a session; without `seconds` it is the browser's session's."""
        return self._set(self.session_name, self._signer().sign(session_id).decode(), seconds)

    def login(self, headers: Headers) -> Any:
        """Return the data of a login in progress; None without one of the last ten minutes."""
        cookie = _cookie(headers, self.login_name)
        if cookie is None:
            return None
        try:
            return self._serializer().loads(cookie, max_age=LOGIN_S)
        except BadData:
            return None

    def set_login(self, login: Any) -> str:
        """Return the Set-Cookie that keeps something for a login; signed, and readable by its browser."""
        return self._set(self.login_name, str(self._serializer().dumps(login)), LOGIN_S)

    def drop_login(self) -> str:
        """Return the Set-Cookie that ends a login's cookie."""
        return self._set(self.login_name, "", 0)

    def csrf_token(self, session_id: str) -> str:
        """Return the CSRF token of a session."""
        return hmac_digest(self._key, b"csrf " + session_id.encode(), "sha256").hex()

    def is_csrf_token(self, session_id: str, token: str | None) -> bool:
        """Return whether a token is that of a session."""
        expected = self.csrf_token(session_id).encode()
        return token is not None and compare_digest(expected, token.encode("utf-8", "replace"))

    def _signer(self) -> Signer:
        return Signer(self._key, salt="aclog session", key_derivation="hmac", digest_method=sha256)

    def _serializer(self) -> URLSafeTimedSerializer:
        options = {"key_derivation": "hmac", "digest_method": sha256}
        return URLSafeTimedSerializer(self._key, salt="aclog login", signer_kwargs=options)

    def _set(self, name: str, value: str, seconds: float | None) -> str:
        age = "" if seconds is None else f"; Max-Age={int(seconds)}"
        return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}{'; Secure' if self.secure else ''}"


def _cookie(headers: Headers, name: str) -> str | None:
    """Return the value of a cookie; None if missing, duplicate or too long."""
    cookies = [
        pair for each in headers.getlist("cookie") for pair in each.split(";") if pair.strip().startswith(f"{name}=")
    ]
    if len(cookies) != 1:
        return None
    value = cookie_parser(cookies[0]).get(name, "")
    return value if value and len(value) <= _MOST else None


# Bodies of forms, read once by the guard and again by the handler.


_Parsed = TypeVar("_Parsed")

TOKEN_FIELD, TOKEN_HEADER = "csrf_token", "x-csrf-token"
_URL_ENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_MOST_FIELDS = 1000
_SHORT = 64 << 10
"""Bytes of a form that is parsed between requests; a longer one is parsed in a thread."""


class FormError(Exception):
    """A form that cannot be read, with the status of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def is_form(content_type: str) -> bool:
    """Return whether a body is that of a form."""
    return _kind(content_type) in {_URL_ENCODED, _MULTIPART}


async def read_body(receive: Receive, most: int, share: Share | None = None) -> bytes:
    """Return a body, held in a share. Raises FormError: it has more bytes than `most`, or its sender has gone."""
    try:
        return bytes(await collected(Request({"type": "http"}, receive).stream(), most, share))
    except ClientDisconnect as error:
        raise FormError(400, "the request ended early") from error
    except TooLargeError as error:
        raise FormError(413, str(error)) from error
    except BusyError as error:
        raise FormError(503, str(error)) from error


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays a body, and then continues with the original."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        """Receive the next message."""
        return waiting.pop() if waiting else await receive()

    return again


def check_fields(content_type: str, body: bytes) -> None:
    """Refuse a form of very many fields, before anything parses it: FormError."""
    if _kind(content_type) == _URL_ENCODED and body.count(b"&") >= _MOST_FIELDS:
        raise FormError(400, f"the form has more than {_MOST_FIELDS:,} fields")


async def token_in(scope: Any, body: bytes, receive: Receive) -> str | None:
    """Return the token in a form with a bounded number of fields. Raises FormError: it is malformed."""
    content_type = Headers(scope=scope).get("content-type", "")
    if _kind(content_type) == _URL_ENCODED:
        name = f"{TOKEN_FIELD}=".encode()
        pairs = [pair for pair in body.split(b"&") if pair.startswith(name)]
        return pairs[-1].removeprefix(name).decode("latin-1") if pairs else None
    return await parsed(body, lambda: _parsed_token(scope, body, receive))


async def parsed(body: bytes, parse: Callable[[], Coroutine[Any, Any, _Parsed]]) -> _Parsed:
    """Parse a body: on the event loop, or in a thread if that takes long."""
    return await (parse() if len(body) <= _SHORT else run_sync(lambda: asyncio.run(parse())))


async def _parsed_token(scope: Any, body: bytes, receive: Receive) -> str | None:
    request = Request(scope, replayed(body, receive))
    try:
        async with request.form(max_files=10, max_fields=_MOST_FIELDS, max_part_size=len(body)) as form:
            token = form.get(TOKEN_FIELD)
    except (MultiPartException, HTTPException, ClientDisconnect, ValueError) as error:
        raise FormError(400, "the form cannot be read") from error
    return token if isinstance(token, str) else None


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


# The headers of every answer.


CSP_REPORT = "/csp-report"
CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        f"report-uri {CSP_REPORT}",
    )
)
"""Only scripts and styles in files of the console: neither inline nor from elsewhere."""

_ALWAYS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_UNLESS_SET = ((b"cache-control", b"no-store"),)


def with_security(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with these; only Cache-Control may be the answer's own, as a static file's is."""
    ours = {name for name, _ in _ALWAYS}
    remaining = [(name, value) for name, value in headers if name.lower() not in ours]
    names = {name.lower() for name, _ in remaining}
    return [*remaining, *_ALWAYS, *((name, value) for name, value in _UNLESS_SET if name not in names)]


# Whether a request comes from this console's own pages, by the headers of its browser.


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def is_of_own_page(headers: Headers) -> bool:
    """Return whether a request may change state, by the browser's headers (Sec-Fetch-Site, Origin).

    Other clients send neither; they still need the right token. Origins are compared by host and port,
    since a proxy may have taken TLS away.
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    scheme, mark, authority = origin.partition("://")
    return bool(mark) and scheme in {"http", "https"} and authority.lower() == headers.get("host", "").lower()


def may_read(method: str, headers: Headers) -> bool:
    """Return whether a request may be answered at all: other sites may link here, and embed or fetch nothing."""
    site = headers.get("sec-fetch-site")
    if site in {None, "same-origin", "none"}:
        return True
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return opened and method in SAFE


# Reports of browsers on violations of the Content-Security-Policy.


MOST_BYTES = 16 << 10
_MOST_REPORTS = 50


@frozen(kw_only=True)
class CspReport:
    """One report, cut to lengths that a page can show. Any client can send one: it is untrusted text."""

    directive: str
    blocked: str
    page: str
    """The path of the page, without its query."""


@define(eq=False)
class CspReports:
    """The number of reports, and the most recent ones; memory is bounded."""

    count: int = 0
    last: "deque[CspReport]" = field(factory=lambda: deque(maxlen=_MOST_REPORTS), init=False)

    def add(self, body: bytes) -> None:
        """Count a report; a malformed one is counted, but not kept."""
        self.count += 1
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return
        report = document.get("csp-report") if isinstance(document, dict) else None
        if isinstance(report, dict):
            self.last.append(
                CspReport(
                    directive=_text(report, "effective-directive") or _text(report, "violated-directive"),
                    blocked=_text(report, "blocked-uri"),
                    page=_text(report, "document-uri"),
                )
            )

    def to_dict(self) -> dict[str, Any]:
        """Return their number, and the most recent ones."""
        return {"count": self.count, "last": [asdict(each) for each in self.last]}


def _text(report: dict[str, Any], key: str) -> str:
    value = report.get(key)
    text = value.partition("?")[0][:200] if isinstance(value, str) else ""
    return text.encode("utf-8", "replace").decode()  # JSON can name lone surrogates, which an answer cannot hold
