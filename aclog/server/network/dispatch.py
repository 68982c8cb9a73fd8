"""Dispatch of requests and SASL authentication of connections.

Without a socket (KafkaApis.handle, SaslServerAuthenticator).
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Any, Protocol, TypeAlias

from attrs import field

from aclog.authorizer.audit import api_name
from aclog.authorizer.interface import AclRequestError, AuthorizerNotReadyError
from aclog.config.node_config import Listener
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.machine import clock
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.acls import decode_create_acls
from aclog.protocol.headers import (
    Handler,
    MalformedRequestError,
    OutcomeUnknownError,
    Request,
    RequestError,
    RequestHeader,
    ShortHandler,
    decode_header,
    make_request,
    response_header,
)
from aclog.protocol.messages import build_response, decode_request, warm_up
from aclog.protocol.responses import (
    AUTHORIZER_NOT_READY,
    ApiVersion,
    Features,
    api_versions_response,
    decode_envelope_request,
    error_response,
)
from aclog.protocol.session import Session
from aclog.security.principals import AuthenticationError, AuthenticationNotReadyError, Credentials
from aclog.security.sasl import SaslServer, sasl_server
from aclog.server.loops import MANY_BYTES, MANY_ENTRIES_BYTES, LoopFuture, committed, offload_if
from aclog.server.telemetry import Metrics

# Dispatch of requests: decode a frame, call the API's handler, turn errors into responses (KafkaApis.handle).


NOT_READY = "AUTHORIZER_NOT_READY"
"""The start of the error message if the authorizer is not ready: Kafka has no error code for it outside KIP-801."""

_BUILT_IN_APIS = (api_keys.API_VERSIONS, api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE)
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The valid client software names and versions (KIP-511)."""

_NOT_READY_BY_CLOSING = {
    api_keys.DESCRIBE_ACLS: (0, 1, 2),
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: (0,),
    api_keys.DESCRIBE_CLUSTER: (2,),
}
"""The versions in which a client must not be sent an error. The connection is closed, and clients try again.

librdkafka takes an error of DescribeAcls for an empty list (Java sends newer versions); one of
DescribeUserScramCredentials corrupts its memory. After one of DescribeCluster, Java's Admin retries the same controller
until its timeout, after a lost connection the next one; aclog's commands, which show the error, send older versions.
"""

_IDENTITY_SINCE = 5
"""The first version of ApiVersions that names the cluster and the node."""

_WARM_OLDER_VERSIONS = 1
"""How many versions before the newest are warmed up at the start; others on an older client's first request."""

_log = logging.getLogger(__name__)

Outcome: TypeAlias = tuple[bytes, bytes] | Callable[[], Awaitable[tuple[bytes, bytes]]]
"""The header and the body of a response, or a function that returns what is to be awaited for it, once."""


@frozen(kw_only=True)
class NodeIdentity:
    """The cluster and the node id of a broker."""

    cluster_id: str
    node_id: int

    def is_meant(self, cluster_id: str, node_id: int) -> bool:
        """Return whether a client that names these means this broker."""
        return (cluster_id, node_id) == (self.cluster_id, self.node_id)


@define(eq=False, kw_only=True)
class Dispatcher:
    """Handles the requests of authenticated clients of one kind of listener, on the event loop's thread.

    The `apis` that have a handler are served and advertised; ApiVersions and the SASL APIs are served here.
    `features` is evaluated for each ApiVersions request.
    """

    handlers: Mapping[int, Handler]
    apis: Iterable[ApiVersion]
    metrics: Metrics
    features: Callable[[], Features] = Features
    identity: NodeIdentity | None = None
    """The identity of a broker, which rejects clients that mean another cluster or node (KIP-1242)."""
    short_handlers: Mapping[int, ShortHandler] = field(factory=dict)
    """For `begin`: those of some of the `handlers`."""
    _served: dict[int, ApiVersion] = field(init=False)
    _versions: dict[int, tuple[Features, bytes]] = field(factory=dict, init=False)
    """The last ApiVersions response by version: clients send the request once or twice per connection."""
    _timers: dict[int, Callable[[float], None]] = field(init=False)
    _warm: set[tuple[int, int]] = field(init=False)
    """The API keys and versions whose messages are imported."""

    def __attrs_post_init__(self) -> None:
        self._served = {
            api.api_key: api for api in self.apis if api.api_key in self.handlers or api.api_key in _BUILT_IN_APIS
        }
        self._timers = {key: self.metrics.requests.labels(api_name(key)).observe for key in self._served}
        self._warm = {
            (api.api_key, version)
            for api in self._served.values()
            for version in range(max(api.min_version, api.max_version - _WARM_OLDER_VERSIONS), api.max_version + 1)
        }
        warm_up(self._warm)

    async def handle(self, payload: bytes, session: Session) -> tuple[bytes, bytes]:
        """Handle a frame; return the header and the body of the response.

        Raises:
            DecodeError, MalformedRequestError: Not a valid or served request: close the connection.
            OutcomeUnknownError: The request may or may not have been applied: close the connection.

        """
        start = clock.perf_counter()
        header, position = decode_header(payload)
        key, version = header.api_key, header.api_version
        # Any version of ApiVersions must be answered, unsupported ones with error 35 (KIP-511).
        if key == api_keys.API_VERSIONS:
            body, has_versions = self.api_versions(header, payload, position)
            if has_versions:
                body = self._misdirected(header, payload, position) or body
        else:
            if version not in self._served.get(key, ()):
                raise DecodeError(f"API key {key} version {version}: not served on this listener")
            body = await self._call_handler(header, payload, position, session)
        return self._response(header, body, start)

    def is_short(self, payload: bytes) -> bool:
        """Whether `begin` takes a frame: one that is small, and of an API with a short handler."""
        return len(payload) <= MANY_ENTRIES_BYTES and int.from_bytes(payload[:2]) in self.short_handlers

    def begin(self, payload: bytes, session: Session, done: Callable[[Outcome], None]) -> None:
        """Handle a frame that `is_short` as `handle` does, with the same responses, but without a coroutine.

        `done` is called once, on this thread: with the response, later, or with what is left to await for it.
        """
        start = clock.perf_counter()
        try:
            header, position = decode_header(payload)
            key, version = header.api_key, header.api_version
            request = None
            if version in self._served.get(key, ()) and (key, version) in self._warm:
                body = _decoded(key, version, payload, position)
                request = make_request(header, body, session, payload, None)
        except Exception:  # noqa: BLE001 - `handle` finds the same, where it closes the connection
            request = None
        if request is None:
            done(partial(self.handle, payload, session))
            return
        try:
            begun = self.short_handlers[key](request)
        except Exception as error:  # noqa: BLE001 - the client gets a response for any failure of the handler
            done(partial(self._failed, request, error, start))
            return
        if begun is None:
            done(partial(self.handle, payload, session))
            return
        future, encode = begun
        if isinstance(future, LoopFuture) and not future.done():
            future.add_done_callback(partial(self._ended, request, encode, start, done))
        else:
            done(partial(self._awaited, request, future, encode, start))

    def _ended(
        self,
        request: Request,
        encode: Callable[[int, Any], bytes],
        start: float,
        done: Callable[[Outcome], None],
        future: "Future[Any]",
    ) -> None:
        """Respond to a short request whose future has ended."""
        try:
            body = encode(request.header.api_version, future.result())
        except Exception as error:  # noqa: BLE001 - as above
            done(partial(self._failed, request, error, start))
        else:
            done(self._response(request.header, body, start))

    async def _awaited(
        self, request: Request, future: "Future[Any]", encode: Callable[[int, Any], bytes], start: float
    ) -> tuple[bytes, bytes]:
        try:
            body = encode(request.header.api_version, await committed(future))
        except Exception as error:  # noqa: BLE001 - as above
            return await self._failed(request, error, start)
        return self._response(request.header, body, start)

    async def _failed(self, request: Request, error: Exception, start: float) -> tuple[bytes, bytes]:
        return self._response(request.header, await self._failure(request, error), start)

    def _response(self, header: RequestHeader, body: bytes, start: float) -> tuple[bytes, bytes]:
        """Return the header and the body of a response, after counting its request."""
        key = header.api_key
        self._timers[key](clock.perf_counter() - start)
        return response_header(key, header.api_version, header.correlation_id), body

    def api_versions(self, header: RequestHeader, payload: bytes, position: int) -> tuple[bytes, bool]:
        """Return the body of the ApiVersions response, and whether it holds versions rather than an error.

        Raises:
            DecodeError: The body is malformed.

        """
        version = header.api_version
        if version not in self._served.get(api_keys.API_VERSIONS, ()):
            return error_response(None, api_keys.API_VERSIONS, version, error_codes.UNSUPPORTED_VERSION), False
        request = decode_request(api_keys.API_VERSIONS, version, payload, position)
        if version >= 3 and not (
            _SOFTWARE_NAME.fullmatch(request.client_software_name)
            and _SOFTWARE_NAME.fullmatch(request.client_software_version)
        ):
            return error_response(request, api_keys.API_VERSIONS, version, error_codes.INVALID_REQUEST), False
        features = self.features()
        # The finalized epoch changes with each commit, so the cached response is compared, not merely looked up.
        cached = self._versions.get(version)
        if cached is None or cached[0] != features:
            body = api_versions_response(version, self._served.values(), features)
            self._versions[version] = cached = features, body
        return cached[1], True

    def _misdirected(self, header: RequestHeader, payload: bytes, position: int) -> bytes | None:
        """Return the error for a client that means another cluster or node; None for any other.

        Like Kafka's, only once a client is authenticated: without a login, that is at once. Raises DecodeError.
        """
        version = header.api_version
        if self.identity is None or version < _IDENTITY_SINCE:
            return None
        request = decode_request(api_keys.API_VERSIONS, version, payload, position)
        if request.cluster_id is None or self.identity.is_meant(request.cluster_id, request.node_id):
            return None
        return error_response(request, api_keys.API_VERSIONS, version, error_codes.REBOOTSTRAP_REQUIRED)

    async def _call_handler(self, header: RequestHeader, payload: bytes, position: int, session: Session) -> bytes:
        key, version = header.api_key, header.api_version
        if (key, version) not in self._warm:
            await self._warm_up(self._served[key])
        if len(payload) > MANY_BYTES:
            body = await asyncio.to_thread(_decoded, key, version, payload, position)
        else:
            body = _decoded(key, version, payload, position)
        request = make_request(header, body, session, payload, None)
        if key in _BUILT_IN_APIS:
            text = "SaslAuthenticate request received after successful authentication"
            return await self._error(request, error_codes.ILLEGAL_SASL_STATE, text)
        try:
            return await self.handlers[key](request)
        except Exception as error:  # noqa: BLE001 - the client gets a response for any failure of the handler
            return await self._failure(request, error)

    async def _failure(self, request: Request, error: Exception) -> bytes:
        """Return the body of the response to a request whose handler raised an error, or raise what has none."""
        key, version = request.header.api_key, request.header.api_version
        match error:
            case RequestError() | AclRequestError():
                return await self._error(request, error.code, error.message)
            case AuthorizerNotReadyError():
                if version in _NOT_READY_BY_CLOSING.get(key, ()):
                    raise OutcomeUnknownError(f"{NOT_READY}: {error}") from None
                # KIP-801's code is defined in Envelopes only: the broker that sent one retries.
                code = AUTHORIZER_NOT_READY if key == api_keys.ENVELOPE else error_codes.UNKNOWN_SERVER_ERROR
                return await self._error(request, code, f"{NOT_READY}: {error}")
            case MalformedRequestError() | OutcomeUnknownError():
                raise error
            case MetadataError():
                _log.error("%s failed: %s", api_name(key), error, extra=_log_context(request.session))
            case _:
                _log.error("%s failed", api_name(key), exc_info=error, extra=_log_context(request.session))
        return await self._error(request, error_codes.UNKNOWN_SERVER_ERROR, None)

    async def _warm_up(self, api: ApiVersion) -> None:
        """Import the messages of all versions of an API in a thread, as that takes up to 50 ms."""
        versions = [(api.api_key, version) for version in range(api.min_version, api.max_version + 1)]
        await asyncio.to_thread(warm_up, versions)
        self._warm.update(versions)

    async def _error(self, request: Request, code: int, message: str | None) -> bytes:
        key, version = request.header.api_key, request.header.api_version
        self.metrics.request_errors.labels(api_name(key), str(code)).inc()
        much = len(request.frame) > MANY_ENTRIES_BYTES
        return await offload_if(much, error_response, request.body, key, version, code, message=message)


def _log_context(session: Session) -> dict[str, str]:
    return {"client": str(session.principal), "host": session.host}


def _decoded(api_key: int, version: int, payload: bytes, position: int) -> Any:
    """Decode a request body; Envelope is decoded by hand because kio lacks its version 1."""
    if api_key == api_keys.ENVELOPE:
        return decode_envelope_request(payload, position)
    if api_key == api_keys.CREATE_ACLS and (common := decode_create_acls(version, payload, position)) is not None:
        return common
    return decode_request(api_key, version, payload, position)


# SASL authentication of a connection, without a socket (SaslServerAuthenticator).


_HANDSHAKE_VERSIONS = range(2)
_AUTHENTICATE_VERSIONS = range(3)


class ApiVersionsHandler(Protocol):
    """Handles ApiVersions before and after authentication."""

    def api_versions(self, header: RequestHeader, payload: bytes, position: int) -> tuple[bytes, bool]:
        """Return the response body, and whether it holds versions rather than an error; raises DecodeError."""
        ...


class _State(Enum):
    INITIAL = "SaslHandshake or ApiVersions"
    HANDSHAKE = "SaslHandshake"
    AUTHENTICATE = "SaslAuthenticate"
    COMPLETE = "requests"


@frozen(kw_only=True)
class Step:
    """The result of a message: a response without its length prefix, if any, and the reason if the login failed.

    A failed login ends the connection. If the failure is not `final`, the client should retry later.
    """

    response: bytes | None = None
    failure: str | None = None
    final: bool = True


@define(eq=False, kw_only=True)
class Authentication:
    """The authentication and re-authentications (KIP-368) of one connection.

    A SCRAM login before the credentials are replayed ends without a response, as Kafka does for retriable failures
    (Kerberos): clients see a lost connection and retry. On any error code the Java client either gives up (58) or logs
    an unexpected error.
    """

    listener: Listener
    credentials: Credentials
    versions: ApiVersionsHandler
    clock: Callable[[], int] = current_time_ms
    """Returns ms since 1970."""
    mechanism: str = field(default="none", init=False)
    """The mechanism in use, one that the listener offers; `none` before the handshake."""
    _state: _State = field(default=_State.INITIAL, init=False)
    _sasl: SaslServer | None = field(default=None, init=False)
    _previous: SaslServer | None = field(default=None, init=False)
    _raw: bool = field(default=False, init=False)
    _lifetime_ms: int = field(default=0, init=False)
    """The session lifetime sent to the client; 0 means unlimited."""
    _ends_ms: int | None = field(default=None, init=False)
    """When the session ends unless the client re-authenticates before; None means never."""

    @property
    def complete(self) -> bool:
        """Whether the client is authenticated and may send requests."""
        return self._state is _State.COMPLETE

    @property
    def login(self) -> SaslServer:
        """The completed login. Raises AuthenticationError: it is not complete."""
        if self._sasl is None or not self.complete:
            raise AuthenticationError("the login is not complete")
        return self._sasl

    @property
    def ends(self) -> bool:
        """Whether the session ends at some time, by connections.max.reauth.ms or its token's expiry.

        Only then may the client re-authenticate (KafkaChannel.maybeBeginServerReauthentication).
        """
        return self.complete and self._ends_ms is not None

    @property
    def expired(self) -> bool:
        """Whether the session has ended without re-authentication."""
        return self.complete and self._ends_ms is not None and self.clock() >= self._ends_ms

    @property
    def raw(self) -> bool:
        """Whether bare SASL tokens follow, without a request header (after SaslHandshake version 0)."""
        return self._raw and self._state is _State.AUTHENTICATE

    def receive(self, payload: bytes) -> Step:
        """Process the client's next message; if the session `ends`, a SaslHandshake starts re-authentication.

        Raises:
            DecodeError: The message is malformed or not allowed in this state; close the connection without a response.

        """
        if self._state is _State.AUTHENTICATE and self._sasl is not None:
            return self._raw_token(self._sasl, payload) if self._raw else self._token(self._sasl, payload)
        header, position = decode_header(payload)
        # ApiVersions is allowed once, before SaslHandshake; an error response leaves the client another attempt.
        if header.api_key == api_keys.API_VERSIONS and self._state is _State.INITIAL:
            body, has_versions = self.versions.api_versions(header, payload, position)
            if has_versions:
                self._state = _State.HANDSHAKE
            return Step(response=_response(header, body))
        if header.api_key == api_keys.SASL_HANDSHAKE and header.api_version in _HANDSHAKE_VERSIONS:
            return self._handshake(header, payload, position)
        raise DecodeError(
            f"API key {header.api_key} version {header.api_version} before authentication: expected {self._state.value}"
        )

    def _handshake(self, header: RequestHeader, payload: bytes, position: int) -> Step:
        version = header.api_version
        mechanism = decode_request(api_keys.SASL_HANDSHAKE, version, payload, position).mechanism
        offered = self.listener.sasl_mechanisms
        supported = mechanism in offered
        code = 0 if supported else error_codes.UNSUPPORTED_SASL_MECHANISM
        body = build_response(api_keys.SASL_HANDSHAKE, version, error_code=code, mechanisms=tuple(offered))
        if not supported:
            return Step(response=_response(header, body), failure="the requested SASL mechanism is not enabled")
        # Kept until re-authentication completes: mechanism and principal must stay the same (KIP-368).
        self._previous = self._sasl if self.complete else None
        self._sasl = sasl_server(
            mechanism,
            listener=self.listener,
            credentials=self.credentials,
            reauthentication=self._previous is not None,
        )
        self.mechanism, self._raw, self._state = mechanism, version == 0, _State.AUTHENTICATE
        return Step(response=_response(header, body))

    def _token(self, sasl: SaslServer, payload: bytes) -> Step:
        header, position = decode_header(payload)
        version = header.api_version
        if header.api_key != api_keys.SASL_AUTHENTICATE:
            request = decode_request(header.api_key, version, payload, position)
            text = f"Unexpected Kafka request of type {_enum_name(header.api_key)} during SASL authentication."
            body = error_response(request, header.api_key, version, error_codes.ILLEGAL_SASL_STATE, message=text)
            return Step(response=_response(header, body), failure="unexpected request during authentication")
        if version not in _AUTHENTICATE_VERSIONS:
            raise DecodeError(f"API key {header.api_key} version {version} during authentication")
        token = decode_request(api_keys.SASL_AUTHENTICATE, version, payload, position).auth_bytes
        try:
            challenge = self._step(sasl, token)
        except AuthenticationError as error:
            body = error_response(
                None, api_keys.SASL_AUTHENTICATE, version, error_codes.SASL_AUTHENTICATION_FAILED, message=str(error)
            )
            return Step(response=_response(header, body), failure=str(error))
        except AuthenticationNotReadyError as error:
            return Step(failure=str(error), final=False)
        # Only the last response carries the lifetime: the client re-authenticates within it (KIP-368).
        lifetime = timedelta(milliseconds=self._lifetime_ms if sasl.complete else 0)
        body = build_response(api_keys.SASL_AUTHENTICATE, version, auth_bytes=challenge, session_lifetime=lifetime)
        return Step(response=_response(header, body))

    def _raw_token(self, sasl: SaslServer, payload: bytes) -> Step:
        try:
            return Step(response=self._step(sasl, payload))
        except AuthenticationError as error:
            return Step(failure=str(error))
        except AuthenticationNotReadyError as error:
            return Step(failure=str(error), final=False)

    def _step(self, sasl: SaslServer, token: bytes) -> bytes:
        before = self._previous
        if before is not None and before.mechanism != sasl.mechanism:
            raise AuthenticationError(
                f"SASL mechanism '{sasl.mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{before.mechanism}'"
            )
        challenge = sasl.step(token)
        if sasl.complete:
            if before is not None and before.principal != sasl.principal:
                old, new = before.principal, sasl.principal
                raise AuthenticationError(
                    "Cannot change principals during re-authentication from "
                    f"{old.type}.{old.name}: {new.type}.{new.name}"
                )
            self._previous, self._state = None, _State.COMPLETE
            self._begin_session(sasl)
        return challenge

    def _begin_session(self, sasl: SaslServer) -> None:
        """Set the session's end: the token's expiry or connections.max.reauth.ms, whichever is earlier (KIP-368).

        Renewing the token later does not extend the session.
        """
        now, lifetime = self.clock(), self.listener.session_lifetimes_ms.get(sasl.mechanism)
        ends = [] if lifetime is None else [now + lifetime]
        if sasl.expiry_ms is not None:
            ends.append(max(now, sasl.expiry_ms))  # a token may have expired during the login
        self._lifetime_ms, self._ends_ms = (min(ends) - now, min(ends)) if ends else (0, None)


def _enum_name(api_key: int) -> str:
    """Return the API's name in Kafka's ApiKeys enum, such as DESCRIBE_ACLS."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api_name(api_key)).upper()


def _response(header: RequestHeader, body: bytes) -> bytes:
    return response_header(header.api_key, header.api_version, header.correlation_id) + body
