"""A small OpenID Connect provider on loopback: it logs everybody in, and does wrong what a test tells it to."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import uvicorn
from attrs import define, field
from joserfc import jws
from joserfc.jwk import ECKey, KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT, SECRET = "console", "s+cret of the client"
Claims = dict[str, Any]


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@define(eq=False)
class OidcProvider:
    """Issues codes and signed tokens. Tests set the fields to what is to be wrong."""

    port: int = 0
    claims: Claims = field(factory=lambda: {"sub": "alice"})
    metadata: Claims = field(factory=dict)
    """What is other than right."""
    change: Callable[[Claims], None] = lambda claims: None
    encode: Callable[[Claims], str] | None = None
    """How a token is made, if not as it should be."""
    answer: Callable[[], Response] | None = None
    """What the token endpoint answers, if not a token."""
    secret: str | None = SECRET
    requests: list[str] = field(factory=list)
    key: Any = field(factory=lambda: RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig"}))
    published: list[Any] = field(factory=list)
    _codes: dict[str, dict[str, str]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        other = ECKey.generate_key("P-256", parameters={"kid": "other", "use": "sig"})
        self.published = [self.key, other]

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/realm"

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/realm/.well-known/openid-configuration", self._metadata),
                Route("/realm/keys", self._keys),
                Route("/realm/authorize", self._authorize),
                Route("/realm/token", self._token, methods=["POST"]),
            ]
        )

    async def _metadata(self, _request: Request) -> Response:
        self.requests.append("metadata")
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
            "authorization_response_iss_parameter_supported": True,
        }
        return JSONResponse({**document, **self.metadata})

    async def _keys(self, _request: Request) -> Response:
        self.requests.append("keys")
        return JSONResponse(KeySet(self.published).as_dict(private=False))

    async def _authorize(self, request: Request) -> Response:
        parameters = dict(request.query_params)
        assert parameters["response_type"] == "code"
        assert parameters["client_id"] == CLIENT
        assert parameters["code_challenge_method"] == "S256"
        assert "openid" in parameters["scope"].split()
        code = secrets.token_urlsafe(16)
        self._codes[code] = parameters
        back = {"code": code, "state": parameters["state"], "iss": self.issuer}
        return RedirectResponse(f"{parameters['redirect_uri']}?{urlencode(back)}", 302)

    async def _token(self, request: Request) -> Response:
        self.requests.append("token")
        form = {key: values[0] for key, values in parse_qs((await request.body()).decode()).items()}
        if self.answer is not None:
            return self.answer()
        login = self._codes.pop(form["code"], None)  # a code is good once
        challenge = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if not self._is_client(request, form):
            return JSONResponse({"error": "invalid_client"}, 401)
        if login is None or challenge != login["code_challenge"] or form["redirect_uri"] != login["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant", "error_description": form["code"]}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": login["nonce"]}
        claims |= self.claims
        self.change(claims)
        encode = self.encode or self.signed
        return JSONResponse({"access_token": "at", "token_type": "Bearer", "id_token": encode(claims)})

    def signed(self, claims: Claims) -> str:
        # as ASCII, since a lone surrogate has no UTF-8
        return jws.serialize_compact({"alg": "RS256", "kid": self.key.kid}, json.dumps(claims), self.key)

    def _is_client(self, request: Request, form: dict[str, str]) -> bool:
        if self.secret is None:
            return form.get("client_id") == CLIENT
        basic = request.headers.get("authorization", "").removeprefix("Basic ")
        name, _, secret = base64.b64decode(basic).decode().partition(":")
        return (unquote(name), secret) == (CLIENT, self.secret) or (
            (form.get("client_id"), form.get("client_secret")) == (CLIENT, self.secret)
        )


@contextmanager
def served(provider: OidcProvider) -> Iterator[OidcProvider]:
    """Serve it on a free port of loopback."""
    config = uvicorn.Config(provider.app(), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < deadline
            assert thread.is_alive()
            time.sleep(0.01)
        provider.port = server.servers[0].sockets[0].getsockname()[1]
        yield provider
    finally:
        server.should_exit = True
        thread.join(30)
    assert not thread.is_alive()


def path_of(url: str) -> str:
    """The path and query of a URL."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"
