"""A provider: what it says of itself, its keys, and its exchange of codes for tokens."""

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
from attrs import define, field, frozen
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from joserfc.jwk import KeySet

from aclog.console.login.oidc.errors import LoginError
from aclog.console.login.oidc.id_token import UnknownKeyError, claims_of, read_keys
from aclog.console.login.oidc.settings import OidcSettings, check_url
from aclog.metalog.clock import current_time_ms, elapsed_seconds
from aclog.metalog.errors import ConfigError

_WELL_KNOWN = "/.well-known/openid-configuration"
_TIMEOUT_S, _IN_ALL_S = 10.0, 30.0
"""For each step of an answer, and for all of it: one that comes a byte at a time would never end."""
_KEPT_S, _READ_AGAIN_S = 3600.0, 10.0
_MOST = 1 << 20
_ERROR_CODE = re.compile(r"[a-z_]{1,60}")
_UNREACHABLE = "The provider cannot be asked. Try again later."


@frozen(kw_only=True)
class Metadata:
    """What a provider says of itself (OpenID Connect Discovery 1.0)."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    algorithms: tuple[str, ...]
    auth_methods: tuple[str, ...]
    names_itself: bool
    """Whether its redirects have `iss` (RFC 9207)."""


@define(eq=False, kw_only=True)
class Provider:
    """One provider; owned by the login."""

    settings: OidcSettings
    now: Callable[[], int] = lambda: current_time_ms() // 1000
    clock: Callable[[], float] = elapsed_seconds
    _tls: ssl.SSLContext = field(init=False, repr=False)
    _metadata: tuple[Metadata, float] | None = field(default=None, init=False)
    _reading: "asyncio.Task[Metadata] | None" = field(default=None, init=False)
    _keys: tuple[KeySet, float] | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        ca_file = self.settings.ca_file
        try:
            self._tls = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        except ssl.SSLError as error:
            raise ConfigError(f"{ca_file}: not a certificate in PEM: {error.reason or error}") from None

    async def metadata(self) -> Metadata:
        """Return what it says of itself, as of the last hour. Raises LoginError: it cannot be asked, or it is odd."""
        known = self._metadata
        if known is not None and self.clock() - known[1] <= _KEPT_S:
            return known[0]
        reading = self._reading
        if reading is None:  # anybody can ask for this without a login: however many do, it is read once
            reading = self._reading = asyncio.ensure_future(self._read_metadata())
            reading.add_done_callback(self._has_read)
        return await asyncio.shield(reading)

    async def _read_metadata(self) -> Metadata:
        found = _metadata(await self._get(self.settings.issuer.rstrip("/") + _WELL_KNOWN), self.settings.issuer)
        self._metadata = found, self.clock()
        return found

    def _has_read(self, reading: "asyncio.Task[Metadata]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # taken note of, though nobody may wait for it any more

    async def address(self, *, state: str, nonce: str, verifier: str) -> str:
        """Return where a browser logs in. Raises LoginError: as `metadata`."""
        metadata = await self.metadata()
        async with self._client(metadata) as client:
            url, _ = client.create_authorization_url(
                metadata.authorization_endpoint, state=state, code_verifier=verifier, nonce=nonce
            )
        return str(url)

    async def claims(self, *, code: str, nonce: str, verifier: str) -> Mapping[str, Any]:
        """Exchange a code; return what the ID token claims. Raises LoginError: there is none for this login."""
        metadata = await self.metadata()
        token = await self._token(metadata, code, verifier)
        for fresh in (False, True):
            keys = await self._key_set(metadata, fresh=fresh)
            try:
                return claims_of(
                    token.get("id_token"),
                    keys,
                    issuer=self.settings.issuer,
                    client_id=self.settings.client_id,
                    nonce=nonce,
                    access_token=token.get("access_token"),
                    algorithms=metadata.algorithms,
                    now=self.now(),
                )
            except UnknownKeyError:
                if fresh:
                    raise
        raise AssertionError  # the second round returns or raises

    async def _token(self, metadata: Metadata, code: str, verifier: str) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(_IN_ALL_S), self._client(metadata) as client:
                found = await client.fetch_token(
                    metadata.token_endpoint,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                    redirect_uri=self.settings.redirect_uri,
                )
        except OAuthError as error:
            detail = f"the token endpoint refused the code: {error_code(error.error)}"
            raise LoginError("The provider does not confirm this login.", detail) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise LoginError(_UNREACHABLE, f"token endpoint: {type(error).__name__}", status=502) from None
        except (ValueError, TypeError, AttributeError, KeyError):
            raise LoginError(_UNREACHABLE, "the token endpoint's answer is not JSON of a token", status=502) from None
        if not isinstance(found, dict):
            raise LoginError(_UNREACHABLE, "the token endpoint's answer is not a token", status=502)
        return found

    async def _key_set(self, metadata: Metadata, *, fresh: bool) -> KeySet:
        known = self._keys
        age = _KEPT_S + 1 if known is None else self.clock() - known[1]
        if known is None or age > (_READ_AGAIN_S if fresh else _KEPT_S):
            known = self._keys = read_keys(await self._get(metadata.jwks_uri)), self.clock()
        return known[0]

    def _client(self, metadata: Metadata) -> AsyncOAuth2Client:
        settings = self.settings
        return AsyncOAuth2Client(
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            token_endpoint_auth_method=_auth_method(settings, metadata),
            redirect_uri=settings.redirect_uri,
            scope=settings.scope,
            code_challenge_method="S256",
            timeout=_TIMEOUT_S,
            verify=self._tls,
        )

    async def _get(self, url: str) -> Any:
        """Return the JSON at an address. Raises LoginError: it cannot be read."""
        body = bytearray()
        try:
            async with (
                asyncio.timeout(_IN_ALL_S),
                httpx2.AsyncClient(timeout=_TIMEOUT_S, verify=self._tls) as client,
                client.stream("GET", url, headers={"Accept": "application/json"}) as answer,
            ):
                if answer.status_code != 200:
                    raise LoginError(_UNREACHABLE, f"{url}: status {answer.status_code}", status=502)
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > _MOST:
                        raise LoginError(_UNREACHABLE, f"{url}: more than {_MOST:,} bytes", status=502)
            return json.loads(bytes(body))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise LoginError(_UNREACHABLE, f"{url}: {type(error).__name__}: {error}"[:300], status=502) from None
        except (ValueError, RecursionError):
            raise LoginError(_UNREACHABLE, f"{url}: not JSON", status=502) from None


def error_code(given: object) -> str:
    """Return an error's code as OAuth has them; what else it is may hold anything, and is not repeated."""
    return given if isinstance(given, str) and _ERROR_CODE.fullmatch(given) else "an error of its own"


def _metadata(found: Any, issuer: str) -> Metadata:
    if not isinstance(found, dict) or found.get("issuer") != issuer:
        said = found.get("issuer") if isinstance(found, dict) else None
        raise LoginError(_UNREACHABLE, f"the provider is {str(said)[:200]!r}, not the issuer {issuer!r}", status=502)
    addresses = dict[str, str]()
    for key in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        value = found.get(key)
        try:
            check_url(value.partition("?")[0] if isinstance(value, str) else "", key)
        except ConfigError as error:
            raise LoginError(_UNREACHABLE, f"the provider's {error}", status=502) from None
        addresses[key] = str(value)
    return Metadata(
        **addresses,
        algorithms=_texts(found.get("id_token_signing_alg_values_supported")) or ("RS256",),
        auth_methods=_texts(found.get("token_endpoint_auth_methods_supported")) or ("client_secret_basic",),
        names_itself=found.get("authorization_response_iss_parameter_supported") is True,
    )


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()


def _auth_method(settings: OidcSettings, metadata: Metadata) -> str:
    if settings.client_secret is None:
        return "none"
    for method in ("client_secret_basic", "client_secret_post"):
        if method in metadata.auth_methods:
            return method
    raise LoginError(_UNREACHABLE, "the provider takes the client's secret neither as basic nor as post", status=502)
