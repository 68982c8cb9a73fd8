"""The decision point as a web application: tokens, metrics and Envoy's external authorization."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any
from uuid import uuid4

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from attrs import field
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from aclog.console.connections import Refusals, TimedConnection, authenticate, identity_of
from aclog.console.http import BodyBudget, BusyError, Hosts, Share, TooLargeError, check_private, collected
from aclog.console.pdp.authzen import EVALUATION, EVALUATIONS, SEARCHES, WELL_KNOWN, AuthZen, metadata
from aclog.console.pdp.deciding import PREFIX, REQUEST_ID, Asker, Deciders, Reply, envoy_answer
from aclog.console.pdp.direct import AT_ONCE, SHORT, DirectAnswer, DirectRequest
from aclog.console.pdp.mapping import MOST_BYTES, BadRequestError, NotReadyError, levels, parse_body
from aclog.console.pdp.opa import ALLOW, PATH, Audit, DecisionLog, opa_answer
from aclog.console.shared import NoTurnError, Turns
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# Bearer tokens of clients: kept as digests, compared in constant time.


_LEAST = 16
"""Characters of a token."""


@frozen
class Tokens:
    """Digests of tokens."""

    _digests: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Tokens":
        """Return the digests of some tokens."""
        return cls(tuple(sha256(token.encode()).digest() for token in tokens))

    def holder(self, authorization: str | None) -> bytes | None:
        """Return the digest of the token in an Authorization header, or None if the token is unknown."""
        kind, _, token = (authorization or "").partition(" ")
        digest = sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        matches = [compare_digest(digest, own) for own in self._digests]  # compare all: constant time
        return digest if kind.lower() == "bearer" and any(matches) else None


def read_tokens(path: Path) -> Tokens:
    """Return the tokens of a file, one per line; blank lines and lines that begin with # are skipped.

    Raises:
        ConfigError: none is in it, one is short, or others may read the file.
        OSError: the file cannot be read.

    """
    check_private(path, ", and use its tokens")
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8: expected tokens, one per line") from None
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise ConfigError(f"{path}: no token in it: expected one per line")
    if any(len(token) < _LEAST for token in tokens):
        raise ConfigError(f"{path}: a token with less than {_LEAST} characters can be guessed")
    return Tokens.of(tokens)


# Metrics of a decision point.


_ANSWERS = ("/access/", "/v1/data/")


@define(eq=False)
class Measures:
    """Counters in Prometheus's form."""

    registry: CollectorRegistry = field(factory=CollectorRegistry, init=False)
    _decisions: Counter = field(init=False)
    _requests: Counter = field(init=False)
    _seconds: Histogram = field(init=False)
    refusals: Refusals = field(init=False)
    age: Gauge = field(init=False)
    """Seconds since something confirmed the state."""

    def __attrs_post_init__(self) -> None:
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.refusals = Refusals(self.registry)
        self._decisions = Counter("aclog_pdp_decisions", "Decisions.", ["decision"], registry=self.registry)
        self._requests = Counter("aclog_pdp_requests", "Requests.", ["status"], registry=self.registry)
        self._seconds = Histogram("aclog_pdp_request_seconds", "Time of a request.", registry=self.registry)
        self.age = Gauge("aclog_age_seconds", "Time since the state was confirmed.", registry=self.registry)

    def answered(self, reply: Reply) -> None:
        """Count the decisions of an answer."""
        for decision, count in (("true", reply.allowed), ("false", reply.denied)):
            if count:
                self._decisions.labels(decision).inc(count)

    def took(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(str(status)).inc()
        if path.startswith(_ANSWERS):
            self._seconds.observe(seconds)


# The decision point as a web application.


Endpoint = Callable[[Request], Awaitable[Response]]
Answering = Callable[[dict[str, Any], Asker], Reply]

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE")
_THREADS, _THREADS_OF_THE_PAST = 4, 2
_WAITING = 16
"""Requests about the past that may wait, per sender."""
_RETRY_S = 1
"""Retry-After of a refusal, and the delay before it is sent: a client that keeps retrying does so once per second."""
_RETRY = {"Retry-After": str(_RETRY_S)}
_REQUEST_ID = REQUEST_ID.lower().encode()


@define(eq=False, kw_only=True)
class DecisionPoint:
    """The dependencies of the endpoints."""

    authzen: AuthZen
    deciders: Deciders
    base_url: str
    tokens: Tokens | None
    """None: no token is required."""
    audit: Audit | None
    decision_log: DecisionLog | None
    measures: Measures
    tell: Callable[[str], None]
    """Called with the reason when the audit cannot be written, once for each reason in a row."""
    hosts: Hosts = field(default=Hosts(None))
    """The names under which it answers."""
    all_metrics: Callable[[bytes], bytes] = bytes
    """Returns the metrics of all processes, from those of this one."""
    retry_s: float = _RETRY_S
    """The delay of a refusal, in seconds."""
    _problem: str | None = field(default=None, init=False)
    _threads: CapacityLimiter = field(factory=lambda: CapacityLimiter(_THREADS), init=False)
    _past: CapacityLimiter = field(factory=lambda: CapacityLimiter(_THREADS_OF_THE_PAST), init=False)
    """For questions about the past; no other question waits for them."""
    _turns: Turns = field(factory=lambda: Turns(waiting=_WAITING), init=False)
    _bodies: BodyBudget = field(factory=BodyBudget, init=False)

    _at_once: Mapping[str, Answering] = field(init=False)
    """What answers the paths of `AT_ONCE`."""

    def __attrs_post_init__(self) -> None:
        self._at_once = {
            EVALUATION: lambda body, _: self.authzen.evaluation(body),
            EVALUATIONS: lambda body, _: self.authzen.evaluations(body),
            PATH: partial(self._opa, PATH),
            ALLOW: partial(self._opa, ALLOW),
        }

    @property
    def refusals(self) -> Refusals:
        """Rejected connections and requests, for the metrics."""
        return self.measures.refusals

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route(WELL_KNOWN, self._open(self._metadata)),
                Route("/healthz", self._open(self._healthy)),
                Route("/readyz", self._open(self._ready)),
                Route("/metrics", self._guarded(self._metrics)),
                *(self._post(path, self._at_once[path]) for path in AT_ONCE),
                *(self._post(path, self._searching(kind)) for kind, path in SEARCHES.items()),
                # Envoy passes on the host that its own client named.
                Route(f"{PREFIX}/{{path:path}}", self._guarded(self._envoy, any_host=True), methods=list(_METHODS)),
            ],
            exception_handlers={404: _not_found, 405: _not_found, 500: _failed},
        )

    def _searching(self, kind: str) -> Answering:
        return lambda body, _: self.authzen.search(kind, body)

    def _opa(self, path: str, body: dict[str, Any], asker: Asker) -> Reply:
        answer = opa_answer(body, self.deciders.at, str(uuid4()), only_allow=path == ALLOW)
        if self.decision_log is not None:
            self.decision_log.write(path, asker, body, answer)
        return answer.reply()

    def _post(self, path: str, answering: Answering) -> Route:
        async def endpoint(request: Request) -> Response:
            """Answer one request."""
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return _error(400, "Content-Type: expected application/json")
            return await self._answer(path, answering, request)

        return Route(path, self._guarded(endpoint), methods=["POST"])

    async def _answer(self, path: str, answering: Answering, request: Request) -> Response:
        sender = identity_of(request.scope)
        with self._bodies.share(sender) as share:
            try:
                body = await collected(request.stream(), MOST_BYTES, share)
            except TooLargeError as error:
                return _error(400, str(error))
            except BusyError as error:
                self.refusals.request("body")
                return _error(503, str(error))
            answer = partial(self._answered, path, answering, Asker.of(request), body)
            is_short = path in AT_ONCE and len(body) <= SHORT
            if _may_ask_for_the_past(body):
                # Parsed again by the handler: while it waits for its turn, it holds no more than its bytes.
                asks = partial(_asks_for_the_past, body)
                if asks() if is_short else await run_sync(asks, limiter=self._threads):
                    return await self._of_the_past(answer, sender)
            return answer() if is_short else await run_sync(answer, limiter=self._threads)

    async def _of_the_past(self, answer: Callable[[], Response], sender: Hashable) -> Response:
        """Return an answer from states of the past, one at a time for each sender."""
        try:
            async with self._turns.turn(sender):
                return await run_sync(answer, limiter=self._past)
        except NoTurnError:
            self.refusals.request("past")
            await asyncio.sleep(self.retry_s)
            return _error(429, "too many requests about the past at once: retry later", _RETRY)

    def admits(self, request: DirectRequest, connection: TimedConnection) -> bool:
        """Return whether the sender may have an answer, and count the connection as its; a refusal has no effect."""
        holder = None if self.tokens is None else self.tokens.holder(request.authorization)
        is_known = self.tokens is None or holder is not None
        is_ours = is_known and self.hosts.answer([request.host])
        return is_ours and authenticate(_scope(connection), holder, is_counted=False)

    def share(self, connection: TimedConnection) -> Share:
        """Return an empty share of the budget of bodies, for a body that is not whole yet."""
        return Share(self._bodies, identity_of(_scope(connection)))

    def answer_directly(self, request: DirectRequest, body: bytes, connection: TimedConnection) -> DirectAnswer | None:
        """Answer a request as the application does; None: the application is to answer, and nothing was counted."""
        begin = time.perf_counter()
        if _may_ask_for_the_past(body) or not self.admits(request, connection):
            return None
        status, answer = self._from_bytes(request, body, _scope(connection))
        headers = [(b"content-length", b"%d" % len(answer)), (b"content-type", b"application/json")]
        if request.request_id is not None:
            headers.append((_REQUEST_ID, request.request_id.encode()))
        self.measures.took(request.path, status, time.perf_counter() - begin)
        return DirectAnswer(status, headers, answer)

    def _from_bytes(self, request: DirectRequest, body: bytes, scope: Scope) -> tuple[int, bytes]:
        with self._bodies.share(identity_of(scope)) as share:
            try:
                share.take(len(body))
            except BusyError as error:
                self.refusals.request("body")
                return 503, _error_body(str(error))
            asker = Asker.at(scope["client"], request.request_id)
            return self._decided(request.path, self._at_once[request.path], asker, body)

    def _answered(self, path: str, answering: Answering, asker: Asker, data: bytearray) -> Response:
        """Return the answer to a body, once it is written down."""
        status, body = self._decided(path, answering, asker, data)
        return Response(body, status, media_type="application/json")

    def _decided(self, path: str, answering: Answering, asker: Asker, data: bytes | bytearray) -> tuple[int, bytes]:
        """Return the status and the answer to a body, once it is written down.

        An error ends here: a thread would keep it, and with it the frames that hold the parsed body.
        """
        try:
            body = parse_body(data)
            reply = answering(body, asker)
            self._written_down(path, asker, body, reply)
        except BadRequestError as error:
            return 400, _error_body(str(error))
        except NotReadyError as error:
            return 503, _error_body(str(error))
        except OSError as error:
            return 503, self._not_written(error)
        return 200, reply.text.encode("utf-8", "backslashreplace")

    def _written_down(self, path: str, asker: Asker, body: dict[str, Any], reply: Reply) -> None:
        if self.audit is not None:
            self.audit.write(path, asker.request_id, body, reply.text)
        self._problem = None
        self.measures.answered(reply)

    def _not_written(self, why: OSError) -> bytes:
        text = f"nothing is answered: answers cannot be written down: {why}"
        if text != self._problem:
            self.tell(text)
        self._problem = text
        return _error_body("answers cannot be written down")

    def _guarded(self, endpoint: Endpoint, *, any_host: bool = False) -> Endpoint:
        """Return an endpoint that requires a token; `any_host`: with any Host header."""

        async def checked(request: Request) -> Response:
            """Answer requests with a valid token."""
            tokens, holder = self.tokens, None
            if tokens is not None:
                holder = tokens.holder(request.headers.get("authorization"))
                if holder is None:
                    return _error(401, "expected a token", {"WWW-Authenticate": "Bearer"})
            if not authenticate(request.scope, holder):
                return _error(429, "too many connections with this token: retry later", _RETRY)
            return await endpoint(request)

        return self._open(checked, any_host=any_host)

    def _open(self, endpoint: Endpoint, *, any_host: bool = False) -> Endpoint:
        """Return an endpoint that names each request as its sender did, and is measured."""

        async def named(request: Request) -> Response:
            """Answer one request."""
            begin = time.perf_counter()
            try:
                if any_host or self.hosts.answer(request.headers.getlist("host")):
                    response = await endpoint(request)
                else:
                    response = _error(421, "this server does not have that name: expected --base-url")
            except ClientDisconnect:
                return Response(status_code=400)
            name = request.headers.get(REQUEST_ID)
            if name is not None:
                response.headers[REQUEST_ID] = name
            self.measures.took(request.url.path, response.status_code, time.perf_counter() - begin)
            return response

        return named

    async def _envoy(self, request: Request) -> Response:
        mapping = self.deciders.mapping.envoy
        raw = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        subjects = [] if mapping is None else request.headers.getlist(mapping.header)
        try:
            answer, offset = envoy_answer(mapping, request.method, raw, subjects, self.deciders.at)
            question = {"subject": subjects, "action": request.method, "resource": raw}
            reply = Reply.of_decision(answer.text(offset), decision=answer.decision)
            self._written_down(PREFIX, Asker.of(request), question, reply)
        except NotReadyError as error:
            return _error(503, str(error))
        except OSError as error:
            return Response(self._not_written(error), 503, media_type="application/json")
        return Response(status_code=200 if answer.decision else 403)

    async def _metadata(self, _request: Request) -> Response:
        return JSONResponse(metadata(self.base_url))

    async def _healthy(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _request: Request) -> Response:
        why = self.deciders.why_not_ready()
        return PlainTextResponse("ok\n") if why is None else PlainTextResponse(f"{why}\n", 503)

    async def _metrics(self, _request: Request) -> Response:
        return Response(self.all_metrics(self.refusals.text()), media_type=CONTENT_TYPE_LATEST)


def _scope(connection: TimedConnection) -> Scope:
    """Return what budgets read of the scope that a request of a connection would have."""
    return {"client": connection.client, "state": connection.app_state}


def _may_ask_for_the_past(data: bytes | bytearray) -> bool:
    """Return whether a body may have the key `as_of`, which JSON can also write with escapes."""
    return b"as_of" in data or b"\\" in data


def _asks_for_the_past(data: bytearray) -> bool:
    """Return whether a body has the key `as_of` anywhere; not if it cannot be read."""
    try:
        body = parse_body(data)
    except BadRequestError:
        return False
    return any(type(each) is dict and each.get("as_of") is not None for level in levels(body) for each in level)


def _error_body(text: str) -> bytes:
    return bytes(JSONResponse({"error": text}).body)


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)


async def _not_found(request: Request, error: Exception) -> Response:
    status = int(getattr(error, "status_code", 404))
    response = _error(status, "no such endpoint" if status == 404 else "expected another method")
    if name := request.headers.get(REQUEST_ID):
        response.headers[REQUEST_ID] = name
    return response


async def _failed(_request: Request, _why: Exception) -> Response:
    return JSONResponse({"error": "this failed, and nothing was decided"}, 500)
