"""OpenID Connect: providers, ID tokens, and login at a provider."""

import asyncio
import json
import re
import ssl
import tomllib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
from attrs import field
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError, SecurityWarning
from joserfc.jwk import Key, KeySet, import_key
from joserfc.jws import JWSRegistry
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from aclog.console.http import check_private
from aclog.console.login.passwords import Attempts
from aclog.console.login.sessions import Entry, Session, Visit, local_path, new_id, same_proof
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import current_time_ms, elapsed_seconds
from aclog.metalog.values import define, frozen

# Logins that do not succeed.


class LoginError(Exception):
    """A failed login: the text for the viewer, and `detail` for the operator. Neither contains a secret."""

    def __init__(self, text: str, detail: str | None = None, *, status: int = 403) -> None:
        super().__init__(text)
        self.detail = detail
        self.status = status


# ID tokens: signature, audience, nonce and expiry (OpenID Connect Core 3.1.3.7).


ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by the provider's private keys. Neither `none`, nor HMAC: its key would be one that is public here."""
_LEEWAY_S = 60
_MOST = 64 << 10
_KINDS = ("RSA", "EC", "OKP")


class UnknownKeyError(LoginError):
    """The token's key is not among the provider's, as far as they were read."""


def read_keys(document: Any) -> KeySet:
    """Return the keys of a JWKS that may sign tokens. Raises LoginError: no such key."""
    listed = document.get("keys") if isinstance(document, dict) else None
    keys = [key for each in listed if (key := _key(each)) is not None] if isinstance(listed, list) else []
    if not keys:
        raise LoginError("The provider has no keys.", "the provider's JWKS holds no key that can be used", status=502)
    return KeySet(keys)


def claims_of(
    id_token: Any,
    keys: KeySet,
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: Any,
    algorithms: Sequence[str],
    now: int,
) -> Mapping[str, Any]:
    """Return the claims of an ID token that is for this client and this login. `now`: seconds since 1970.

    Raises:
        UnknownKeyError: its key is not there. LoginError: it is not such a token.

    """
    if not isinstance(id_token, str) or len(id_token) > _MOST:
        raise LoginError("The provider sent no ID token.", "the token endpoint's answer holds no id_token")
    registry = JWSRegistry(algorithms=[each for each in ALGORITHMS if each in algorithms], strict_check_header=False)
    try:
        with warnings.catch_warnings():  # `EdDSA` is deprecated (RFC 9864), but providers use it
            warnings.simplefilter("ignore", SecurityWarning)
            token = jwt.decode(id_token, keys, registry=registry)
        claims = CodeIDToken(
            token.claims,
            token.header,
            {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
            {"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(now=now, leeway=_LEEWAY_S)
    except InvalidKeyIdError:
        raise UnknownKeyError("The provider's ID token is signed by an unknown key.") from None
    except (JoseError, ValueError, TypeError) as error:
        # The error names a claim or a reason, never the token.
        raise LoginError("The provider's ID token is invalid.", f"ID token refused: {_reason(error)}") from None
    return dict(claims)


def principal_of(claims: Mapping[str, Any], claim: str, prefix: str) -> str:
    """Return the principal that claims name.

    Raises:
        LoginError: the claim is missing, not text that a name can be, or an address of mail that was not verified.

    """
    value = claims.get(claim)
    if (
        not isinstance(value, str)
        or not value
        or len(value) > 1024
        or not value.isprintable()
        or value.strip() != value
    ):
        raise LoginError(f"The provider's ID token has no {claim}.", f"claim {claim} is missing or no name")
    if claim == "email" and claims.get("email_verified") is not True:
        raise LoginError("Your email address is not verified.", "claim email without email_verified true")
    if value in {"*", "ANONYMOUS"}:
        raise LoginError("This name cannot log in.", f"claim {claim} holds a name that means others")
    return prefix + value


def _key(value: Any) -> Key | None:
    if not isinstance(value, dict) or value.get("kty") not in _KINDS or value.get("use", "sig") != "sig":
        return None
    try:
        return import_key(value)
    except (JoseError, ValueError, TypeError):
        return None


def _reason(error: Exception) -> str:
    text = str(error)
    return text[:200] if text.isprintable() else type(error).__name__


# The settings: the provider, this client, and the claim of the principal; from the environment, or a file.


CALLBACK = "/login/callback"
_VARIABLES = {
    "issuer": "ACLOG_OIDC_ISSUER",
    "client_id": "ACLOG_OIDC_CLIENT_ID",
    "client_secret_file": "ACLOG_OIDC_CLIENT_SECRET_FILE",
    "claim": "ACLOG_OIDC_CLAIM",
    "prefix": "ACLOG_OIDC_PREFIX",
    "scope": "ACLOG_OIDC_SCOPE",
    "ca_file": "ACLOG_OIDC_CA_FILE",
}
"""The keys of a file, and their environment variables."""
_SECRET = "ACLOG_OIDC_CLIENT_SECRET"  # noqa: S105 - the name of a variable
_SCOPES = {"preferred_username": "openid profile", "email": "openid email"}
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})


@frozen(kw_only=True)
class OidcSettings:
    """A provider, and this console as its client."""

    issuer: str
    client_id: str
    redirect_uri: str
    client_secret: str | None = field(default=None, repr=False)
    """None: a public client, which PKCE alone protects."""
    claim: str = "sub"
    """The claim of the ID token that becomes the principal's name."""
    prefix: str = "User:"
    scope: str = "openid"
    ca_file: Path | None = None
    """The CA of the provider's certificate; None: the CAs of this machine."""


def read_settings(path: Path | None, environment: Mapping[str, str], base_url: str) -> OidcSettings:
    """Return the settings of a TOML file, or without one of the variables ACLOG_OIDC_ISSUER, and so on.

    `base_url` is how browsers reach the console. The client's secret is in a separate file (client_secret_file), or
    in the variable ACLOG_OIDC_CLIENT_SECRET.

    Raises:
        ConfigError: something is missing, unknown or malformed, or others may read the secret's file.
        OSError: a file cannot be read.

    """
    values = _of_environment(environment) if path is None else _of_file(path)
    where = "--login oidc" if path is None else str(path)
    for key in ("issuer", "client_id"):
        if not values.get(key):
            name = f"{_VARIABLES[key]} is not set" if path is None else f"{key} is missing"
            raise ConfigError(f"{where}: {name}")
    check_url(values["issuer"], f"{where}: issuer")
    base = base_url.rstrip("/")
    check_url(base, "--base-url")
    claim, prefix = values.get("claim", "sub"), values.get("prefix", "User:")
    if prefix.find(":") < 1:
        raise ConfigError(f"{where}: prefix {prefix[:40]!r}: expected one with a type, such as User:")
    beside = Path() if path is None else path.parent
    return OidcSettings(
        issuer=values["issuer"],
        client_id=values["client_id"],
        redirect_uri=base + CALLBACK,
        client_secret=_secret(values, environment, beside),
        claim=claim,
        prefix=prefix,
        scope=values.get("scope") or _SCOPES.get(claim, "openid"),
        ca_file=beside / values["ca_file"] if values.get("ca_file") else None,
    )


def check_url(url: str, what: str) -> None:
    """Check an address that secrets go to. Raises ConfigError: neither https nor on this machine, or not plain."""
    try:
        parts = urlsplit(url)
        local, host = parts.hostname in _LOCAL, parts.hostname
    except ValueError:
        host, local = None, False
        parts = urlsplit("")
    if not host or parts.scheme not in {"https", "http"} or parts.query or parts.fragment or parts.username is not None:
        raise ConfigError(f"{what}: {url[:200]!r}: expected a URL such as https://HOST/PATH")
    if parts.scheme == "http" and not local:
        raise ConfigError(f"{what}: {url[:200]!r}: expected https: secrets go there")


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: environment[name] for key, name in _VARIABLES.items() if name in environment}


def _of_file(path: Path) -> dict[str, str]:
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {str(error)[:80]}") from None
    for key, value in values.items():
        if key == "client_secret":
            raise ConfigError(f"{path}: client_secret: put it into a separate file, and name it: client_secret_file")
        if key not in _VARIABLES:
            raise ConfigError(f"{path}: {key[:40]!r}: expected one of {', '.join(_VARIABLES)}")
        if not isinstance(value, str):
            raise ConfigError(f"{path}: {key}: expected a string")
    return values


def _secret(values: Mapping[str, str], environment: Mapping[str, str], beside: Path) -> str | None:
    name = values.get("client_secret_file")
    if not name:
        return environment.get(_SECRET) or None
    path = beside / name
    check_private(path, ", and impersonate the console at the provider")
    secret = path.read_text("utf-8", "replace").strip()
    if not secret:
        raise ConfigError(f"{path}: no secret in it")
    return secret


# A provider: its metadata, its keys, and its exchange of codes for tokens.


_WELL_KNOWN = "/.well-known/openid-configuration"
_TIMEOUT_S, _IN_ALL_S = 10.0, 30.0
"""Timeouts of each read of a response, and of the whole response: one that arrives byte by byte would never end."""
_CACHE_S, _READ_AGAIN_S = 3600.0, 10.0
_MOST_BYTES = 1 << 20
_ERROR_CODE = re.compile(r"[a-z_]{1,60}")
_UNREACHABLE = "The provider is unavailable. Try again later."


@frozen(kw_only=True)
class Metadata:
    """A provider's metadata (OpenID Connect Discovery 1.0)."""

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
        """Return its metadata, at most an hour old. Raises LoginError: unavailable, or invalid."""
        cached = self._metadata
        if cached is not None and self.clock() - cached[1] <= _CACHE_S:
            return cached[0]
        reading = self._reading
        if reading is None:  # no login is needed to get here: concurrent requests share one read
            reading = self._reading = asyncio.ensure_future(self._read_metadata())
            reading.add_done_callback(self._has_read)
        return await asyncio.shield(reading)

    async def _read_metadata(self) -> Metadata:
        metadata = _metadata(await self._get(self.settings.issuer.rstrip("/") + _WELL_KNOWN), self.settings.issuer)
        self._metadata = metadata, self.clock()
        return metadata

    def _has_read(self, reading: "asyncio.Task[Metadata]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # retrieved even if no request waits for it any more

    async def address(self, *, state: str, nonce: str, verifier: str) -> str:
        """Return where a browser logs in. Raises LoginError: as `metadata`."""
        metadata = await self.metadata()
        async with self._client(metadata) as client:
            url, _ = client.create_authorization_url(
                metadata.authorization_endpoint, state=state, code_verifier=verifier, nonce=nonce
            )
        return str(url)

    async def claims(self, *, code: str, nonce: str, verifier: str) -> Mapping[str, Any]:
        """Exchange a code; return the claims of the ID token. Raises LoginError: no valid token for this login."""
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
                response = await client.fetch_token(
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
        if not isinstance(response, dict):
            raise LoginError(_UNREACHABLE, "the token endpoint's answer is not a token", status=502)
        return response

    async def _key_set(self, metadata: Metadata, *, fresh: bool) -> KeySet:
        cached = self._keys
        age = _CACHE_S + 1 if cached is None else self.clock() - cached[1]
        if cached is None or age > (_READ_AGAIN_S if fresh else _CACHE_S):
            cached = self._keys = read_keys(await self._get(metadata.jwks_uri)), self.clock()
        return cached[0]

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
                    if len(body) > _MOST_BYTES:
                        raise LoginError(_UNREACHABLE, f"{url}: more than {_MOST_BYTES:,} bytes", status=502)
            return json.loads(bytes(body))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise LoginError(_UNREACHABLE, f"{url}: {type(error).__name__}: {error}"[:300], status=502) from None
        except (ValueError, RecursionError):
            raise LoginError(_UNREACHABLE, f"{url}: not JSON", status=502) from None


def error_code(value: object) -> str:
    """Return an OAuth error code; any other text is untrusted, and not repeated."""
    return value if isinstance(value, str) and _ERROR_CODE.fullmatch(value) else "an error of its own"


def _metadata(document: Any, issuer: str) -> Metadata:
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        stated = document.get("issuer") if isinstance(document, dict) else None
        raise LoginError(_UNREACHABLE, f"the provider is {str(stated)[:200]!r}, not the issuer {issuer!r}", status=502)
    addresses = dict[str, str]()
    for key in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        value = document.get(key)
        try:
            check_url(value.partition("?")[0] if isinstance(value, str) else "", key)
        except ConfigError as error:
            raise LoginError(_UNREACHABLE, f"the provider's {error}", status=502) from None
        addresses[key] = str(value)
    return Metadata(
        **addresses,
        algorithms=_texts(document.get("id_token_signing_alg_values_supported")) or ("RS256",),
        auth_methods=_texts(document.get("token_endpoint_auth_methods_supported")) or ("client_secret_basic",),
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _auth_method(settings: OidcSettings, metadata: Metadata) -> str:
    if settings.client_secret is None:
        return "none"
    for method in ("client_secret_basic", "client_secret_post"):
        if method in metadata.auth_methods:
            return method
    raise LoginError(_UNREACHABLE, "the provider takes the client's secret neither as basic nor as post", status=502)


# Logging in at a provider: there and back.


_START = "/login/start"
_USED = 10_000
_BEGIN_AGAIN = "This login was started in another browser, or has expired."


@define(eq=False, kw_only=True)
class OidcWay:
    """Logins at one provider."""

    read: Callable[[], OidcSettings]
    """Reads the settings."""
    tell: Callable[[str], None]
    """Called with the reason of each failed login, for the operator's log."""
    provider: Provider = field(init=False)
    attempts: Attempts = field(factory=Attempts)
    _used: "OrderedDict[str, None]" = field(factory=OrderedDict, init=False)
    """States of logins that have come back."""

    def __attrs_post_init__(self) -> None:
        self.provider = Provider(settings=self.read())

    def routes(self, entry: Entry) -> Sequence[Route]:
        """Return the login page, the redirect to the provider, and the callback."""

        async def link(request: Request) -> Response:
            """Show where to log in."""
            target = local_path(request.query_params.get("next"))
            if Visit.in_scope(request.scope).session is not None:
                return RedirectResponse(target, 303)
            host = urlsplit(self.provider.settings.issuer).hostname or ""
            return entry.pages.link(host, f"{_START}?next={quote(target, safe='')}")

        return [
            Route("/login", link),
            Route(_START, self._failing(entry, self._begin)),
            Route(CALLBACK, self._failing(entry, self._come_back)),
        ]

    def still_good(self, session: Session) -> bool:
        """Return whether a session's login is still valid; the provider is not contacted before the session's end."""
        return same_proof(session.proof, _proof(self.provider.settings))

    def reload(self) -> None:
        """Read the settings again. Raises as `read`."""
        self.provider = Provider(settings=self.read())

    def _failing(self, entry: Entry, step: Callable[[Entry, Visit, Request], Any]) -> Callable[[Request], Any]:
        """Return an endpoint with a page for failed steps."""

        async def endpoint(request: Request) -> Response:
            """Take the step."""
            visit = Visit.in_scope(request.scope)
            try:
                answer: Response = await step(entry, visit, request)
            except LoginError as error:
                self.tell(f"login: {error.detail or error}")
                answer = entry.pages.message("Login failed", str(error), status=error.status)
            return answer

        return endpoint

    async def _begin(self, entry: Entry, visit: Visit, request: Request) -> Response:
        begun = {"state": new_id(), "nonce": new_id(), "verifier": new_id()}
        url = await self.provider.address(**begun)
        login = {**begun, "next": local_path(request.query_params.get("next"))}
        visit.cookies.append(entry.cookies.set_login(login))
        return RedirectResponse(url, 303)

    async def _come_back(self, entry: Entry, visit: Visit, request: Request) -> Response:
        begun = entry.cookies.login(visit.headers)
        visit.cookies.append(entry.cookies.drop_login())
        parameters = {key: request.query_params.getlist(key) for key in ("state", "code", "iss", "error")}
        if begun is None or any(len(values) > 1 for values in parameters.values()):
            raise LoginError(_BEGIN_AGAIN, status=400)
        answer = {key: values[0] for key, values in parameters.items() if values}
        self._check_state(begun["state"], answer.get("state", ""))
        provider, settings = self.provider, self.provider.settings  # the settings may be read again on the way
        await _check_issuer(provider, answer.get("iss"))
        if "error" in answer:
            raise LoginError(f"The provider refuses: {error_code(answer['error'])}.")
        if not answer.get("code"):
            raise LoginError(_BEGIN_AGAIN, "the provider sent neither a code nor an error", status=400)
        if self.attempts.begin(visit.address, begun["state"]) > 0:
            raise LoginError("Too many attempts. Try again in a minute.", status=429)
        claims = await provider.claims(code=answer["code"], nonce=begun["nonce"], verifier=begun["verifier"])
        if not same_proof(_proof(settings), _proof(self.provider.settings)):
            raise LoginError(_BEGIN_AGAIN, "the login's settings have changed on the way", status=400)
        principal = principal_of(claims, settings.claim, settings.prefix)
        self.attempts.succeeded(visit.address, begun["state"])
        entry.enter(visit, principal.removeprefix(settings.prefix), principal, _proof(settings))
        visit.cookies.append(entry.cookies.drop_login())
        return RedirectResponse(local_path(begun["next"]), 303)

    def _check_state(self, expected: str, state: str) -> None:
        """Check that a browser comes back from its own login, and once. Raises LoginError."""
        if not compare_digest(expected.encode(), state.encode("utf-8", "replace")):
            raise LoginError(_BEGIN_AGAIN, "a callback whose state is not its browser's", status=400)
        if expected in self._used:
            raise LoginError(_BEGIN_AGAIN, "a callback that was used before", status=400)
        self._used[expected] = None
        if len(self._used) > _USED:
            self._used.popitem(last=False)


async def _check_issuer(provider: Provider, issuer: str | None) -> None:
    """Check whose answer it is (RFC 9207). Raises LoginError: another provider's."""
    metadata = await provider.metadata()
    if (issuer is not None or metadata.names_itself) and issuer != provider.settings.issuer:
        raise LoginError(_BEGIN_AGAIN, "a callback from another provider", status=400)


def _proof(settings: OidcSettings) -> bytes:
    """Return a digest of the settings that identify principals."""
    identity = (settings.issuer, settings.client_id, settings.claim, settings.prefix)
    return sha256(repr(identity).encode("utf-8", "surrogateescape")).digest()
