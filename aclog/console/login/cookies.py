"""Signed cookies: of a browser's session, and of a login that has begun."""

import secrets
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Any

from attrs import field, frozen
from itsdangerous import BadData, Signer, URLSafeTimedSerializer
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

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
        given = _cookie(headers, self.session_name)
        if given is None:
            return None
        try:
            return self._signer().unsign(given).decode("ascii")
        except (BadData, UnicodeError):
            return None

    def set_session(self, session_id: str, seconds: float | None) -> str:
        """Return the Set-Cookie of a session; without `seconds` it is the browser's session's."""
        return self._set(self.session_name, self._signer().sign(session_id).decode(), seconds)

    def login(self, headers: Headers) -> Any:
        """Return what a login that has begun kept; None without one of the last ten minutes."""
        given = _cookie(headers, self.login_name)
        if given is None:
            return None
        try:
            return self._serializer().loads(given, max_age=LOGIN_S)
        except BadData:
            return None

    def set_login(self, kept: Any) -> str:
        """Return the Set-Cookie that keeps something for a login; signed, and readable by its browser."""
        return self._set(self.login_name, str(self._serializer().dumps(kept)), LOGIN_S)

    def drop_login(self) -> str:
        """Return the Set-Cookie that ends a login's cookie."""
        return self._set(self.login_name, "", 0)

    def csrf_token(self, session_id: str) -> str:
        """Return what a form of this session has to say."""
        return hmac_digest(self._key, b"csrf " + session_id.encode(), "sha256").hex()

    def is_csrf_token(self, session_id: str, given: str | None) -> bool:
        """Return whether a form said it."""
        wanted = self.csrf_token(session_id).encode()
        return given is not None and compare_digest(wanted, given.encode("utf-8", "replace"))

    def _signer(self) -> Signer:
        return Signer(self._key, salt="aclog session", key_derivation="hmac", digest_method=sha256)

    def _serializer(self) -> URLSafeTimedSerializer:
        options = {"key_derivation": "hmac", "digest_method": sha256}
        return URLSafeTimedSerializer(self._key, salt="aclog login", signer_kwargs=options)

    def _set(self, name: str, value: str, seconds: float | None) -> str:
        age = "" if seconds is None else f"; Max-Age={int(seconds)}"
        return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}{'; Secure' if self.secure else ''}"


def _cookie(headers: Headers, name: str) -> str | None:
    """Return the value of a cookie; None if there is none, or it is there twice or long."""
    found = [
        pair for each in headers.getlist("cookie") for pair in each.split(";") if pair.strip().startswith(f"{name}=")
    ]
    if len(found) != 1:
        return None
    value = cookie_parser(found[0]).get(name, "")
    return value if value and len(value) <= _MOST else None
