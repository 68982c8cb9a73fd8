"""SASL authentication of a connection, without a socket (SaslServerAuthenticator)."""

import re
from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Protocol

from attrs import define, field, frozen

from aclog.authorizer.api_keys import api_name
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import DecodeError
from aclog.nodes.config.node_config import Listener
from aclog.nodes.security.errors import AuthenticationError, AuthenticationNotReadyError
from aclog.nodes.security.login_credentials import Credentials
from aclog.nodes.security.sasl_server import SaslServer, sasl_server
from aclog.nodes.wire.api_keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from aclog.nodes.wire.error_codes import ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM
from aclog.nodes.wire.error_responses import error_response
from aclog.nodes.wire.headers import RequestHeader, decode_header, response_header
from aclog.nodes.wire.message_builder import build_response
from aclog.nodes.wire.messages import decode_request

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
        """The completed login. Raises AuthenticationError if there is none."""
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
        if header.api_key == API_VERSIONS and self._state is _State.INITIAL:
            body, has_versions = self.versions.api_versions(header, payload, position)
            if has_versions:
                self._state = _State.HANDSHAKE
            return Step(response=_response(header, body))
        if header.api_key == SASL_HANDSHAKE and header.api_version in _HANDSHAKE_VERSIONS:
            return self._handshake(header, payload, position)
        raise DecodeError(
            f"API key {header.api_key} version {header.api_version} before authentication: expected {self._state.value}"
        )

    def _handshake(self, header: RequestHeader, payload: bytes, position: int) -> Step:
        version = header.api_version
        mechanism = decode_request(SASL_HANDSHAKE, version, payload, position).mechanism
        offered = self.listener.sasl_mechanisms
        known = mechanism in offered
        code = 0 if known else UNSUPPORTED_SASL_MECHANISM
        body = build_response(SASL_HANDSHAKE, version, error_code=code, mechanisms=tuple(offered))
        if not known:
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
        if header.api_key != SASL_AUTHENTICATE:
            request = decode_request(header.api_key, version, payload, position)
            text = f"Unexpected Kafka request of type {_enum_name(header.api_key)} during SASL authentication."
            body = error_response(request, header.api_key, version, ILLEGAL_SASL_STATE, message=text)
            return Step(response=_response(header, body), failure="unexpected request during authentication")
        if version not in _AUTHENTICATE_VERSIONS:
            raise DecodeError(f"API key {header.api_key} version {version} during authentication")
        token = decode_request(SASL_AUTHENTICATE, version, payload, position).auth_bytes
        try:
            challenge = self._step(sasl, token)
        except AuthenticationError as error:
            body = error_response(None, SASL_AUTHENTICATE, version, SASL_AUTHENTICATION_FAILED, message=str(error))
            return Step(response=_response(header, body), failure=str(error))
        except AuthenticationNotReadyError as error:
            return Step(failure=str(error), final=False)
        # Only the last response carries the lifetime: the client re-authenticates within it (KIP-368).
        lifetime = timedelta(milliseconds=self._lifetime_ms if sasl.complete else 0)
        body = build_response(SASL_AUTHENTICATE, version, auth_bytes=challenge, session_lifetime=lifetime)
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
