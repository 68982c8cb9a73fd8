"""The decision point as a web application."""

import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from anyio.to_thread import run_sync
from attrs import define
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from aclog.console.pdp.audit import Audit
from aclog.console.pdp.authzen import EVALUATION, EVALUATIONS, SEARCHES, WELL_KNOWN, AuthZen, metadata
from aclog.console.pdp.deciders import Deciders
from aclog.console.pdp.envoy import PREFIX, envoy_answer
from aclog.console.pdp.errors import BadRequestError, NotReadyError
from aclog.console.pdp.json_body import MOST_BYTES, parse_body
from aclog.console.pdp.measures import Measures
from aclog.console.pdp.opa import ALLOW, PATH, opa_answer
from aclog.console.pdp.tokens import Tokens

Endpoint = Callable[[Request], Awaitable[Response]]
Answering = Callable[[dict[str, Any]], Any]

_REQUEST_ID = "X-Request-ID"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE")
_FEW = 64
"""Questions of a batch that are answered at once; more of them in a thread."""


@define(eq=False, kw_only=True)
class DecisionPoint:
    """What the endpoints share."""

    authzen: AuthZen
    deciders: Deciders
    base_url: str
    tokens: Tokens | None
    """None: everybody may ask."""
    audit: Audit | None
    measures: Measures

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route(WELL_KNOWN, self._open(self._metadata)),
                Route("/healthz", self._open(self._healthy)),
                Route("/readyz", self._open(self._ready)),
                Route("/metrics", self._asked(self._metrics)),
                self._post(EVALUATION, self.authzen.evaluation),
                self._post(EVALUATIONS, self.authzen.evaluations),
                *(self._post(path, self._searching(kind)) for kind, path in SEARCHES.items()),
                self._post(PATH, lambda body: self._opa(body, only_allow=False)),
                self._post(ALLOW, lambda body: self._opa(body, only_allow=True)),
                Route(f"{PREFIX}/{{path:path}}", self._asked(self._envoy), methods=list(_METHODS)),
            ],
            exception_handlers={404: _not_found, 405: _not_found, 500: _failed},
        )

    def _searching(self, kind: str) -> Answering:
        return lambda body: self.authzen.search(kind, body)

    def _opa(self, body: dict[str, Any], *, only_allow: bool) -> dict[str, Any]:
        return opa_answer(body, self.deciders.at, secrets.token_hex(16), only_allow=only_allow)

    def _post(self, path: str, answering: Answering) -> Route:
        async def endpoint(request: Request) -> Response:
            """Answer one request."""
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return _error(400, "Content-Type: expected application/json")
            try:
                body = parse_body(await _read(request))
                if path in {EVALUATION, PATH, ALLOW} or (path == EVALUATIONS and _is_small(body)):
                    answer = answering(body)
                else:
                    answer = await run_sync(answering, body)
            except BadRequestError as error:
                return _error(400, str(error))
            except NotReadyError as error:
                return _error(503, str(error))
            if self.audit is not None:
                self.audit.write(path, request.headers.get(_REQUEST_ID), body, answer)
            self.measures.answered(answer)
            return JSONResponse(answer)

        return Route(path, self._asked(endpoint), methods=["POST"])

    def _asked(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint for those who may ask."""

        async def checked(request: Request) -> Response:
            """Answer those who have a token."""
            tokens = self.tokens
            if tokens is not None and not tokens.has(request.headers.get("authorization")):
                return _error(401, "expected a token", {"WWW-Authenticate": "Bearer"})
            return await endpoint(request)

        return self._open(checked)

    def _open(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint that names each request as its sender did, and is measured."""

        async def named(request: Request) -> Response:
            """Answer one request."""
            begin = time.perf_counter()
            try:
                response = await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=400)
            name = request.headers.get(_REQUEST_ID)
            if name is not None:
                response.headers[_REQUEST_ID] = name
            self.measures.took(request.url.path, response.status_code, time.perf_counter() - begin)
            return response

        return named

    async def _envoy(self, request: Request) -> Response:
        mapping = self.deciders.mapping.envoy
        raw = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        subjects = [] if mapping is None else request.headers.getlist(mapping.header)
        try:
            answer = envoy_answer(mapping, request.method, raw, subjects, self.deciders.at)
        except NotReadyError as error:
            return _error(503, str(error))
        told = answer.to_dict(0)
        if self.audit is not None:
            asked = {"subject": subjects, "action": request.method, "resource": raw}
            self.audit.write(PREFIX, request.headers.get(_REQUEST_ID), asked, told)
        self.measures.answered(told)
        return Response(status_code=200 if answer.decision else 403)

    async def _metadata(self, _request: Request) -> Response:
        return JSONResponse(metadata(self.base_url))

    async def _healthy(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _request: Request) -> Response:
        why = self.deciders.why_not_ready()
        return PlainTextResponse("ok\n") if why is None else PlainTextResponse(f"{why}\n", 503)

    async def _metrics(self, _request: Request) -> Response:
        return Response(generate_latest(self.measures.registry), media_type=CONTENT_TYPE_LATEST)


async def _read(request: Request) -> bytes:
    """Return the body. Raises BadRequestError: it is too large."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > MOST_BYTES:
            raise BadRequestError(f"the body has more than {MOST_BYTES:,} bytes")
    return bytes(found)


def _is_small(body: dict[str, Any]) -> bool:
    asked = body.get("evaluations")
    return not isinstance(asked, list) or len(asked) <= _FEW


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)


async def _not_found(request: Request, error: Exception) -> Response:
    status = int(getattr(error, "status_code", 404))
    response = _error(status, "no such endpoint" if status == 404 else "expected another method")
    if name := request.headers.get(_REQUEST_ID):
        response.headers[_REQUEST_ID] = name
    return response


async def _failed(_request: Request, _why: Exception) -> Response:
    return JSONResponse({"error": "this failed, and nothing was decided"}, 500)
