"""Forwarding of writes from a broker to the active controller (kafka.server.ForwardingManager, KIP-590).

A request is retried until its timeout while no controller is known, while it certainly has not reached one, and after
AUTHORIZER_NOT_READY or NOT_CONTROLLER, which mean that nothing was done. If the controller disappears after the request
was sent, the outcome is unknown and a retry could apply it twice: the client's connection is closed, as if this broker
had crashed, and the client decides.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import define, field

from aclog.metalog.errors import ConfigError, DecodeError
from aclog.nodes.apis.request import Handler, OutcomeUnknownError, Request, RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import LoginError, UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import ENVELOPE
from aclog.nodes.wire.envelope import (
    AUTHORIZER_NOT_READY,
    EnvelopeRequest,
    EnvelopeResponse,
    decode_envelope_response,
    encode_envelope_request,
    encode_principal,
)
from aclog.nodes.wire.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
)
from aclog.nodes.wire.headers import decode_response_header

FORWARD_SECONDS = 60.0
"""The timeout for forwarding a request, as in Kafka's NodeToControllerChannelManager."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_LEADER_CHECK_S = 1.0
"""Interval for checking whether a controller that has not responded is still the active one."""

CONNECTIONS = 64
"""The most connections to the controller. A connection carries one request at a time until it is committed, so this
bounds how many forwarded requests share a group commit."""


class Forwarder(Protocol):
    """Passes requests to the active controller."""

    async def forward(self, request: Request) -> bytes:
        """Return the encoded body of the controller's response, without a header; raises as a Handler."""
        ...

    async def close(self) -> None:
        """Close the connections; idempotent."""
        ...


@define
class LocalForwarder:
    """Forwards to the controller in the same process."""

    handlers: Mapping[int, Handler]

    async def forward(self, request: Request) -> bytes:
        """See Forwarder."""
        return await self.handlers[request.header.api_key](request)

    async def close(self) -> None:
        """Do nothing."""


class _NotSentError(Exception):
    """The request has not reached a controller, so sending it again is safe."""


@define(eq=False, kw_only=True)
class EnvelopeForwarder:
    """Forwards to a remote controller in Envelopes, one at a time per connection. Owned by one event loop.

    Concurrent requests share the controller's group commits, as if their clients were connected to it directly.
    """

    leader: Callable[[], HostPort | None]
    """Returns the active controller's address, if known."""
    security: ClientSecurity
    client_id: str
    seconds: float = FORWARD_SECONDS
    _idle: list[Connection] = field(factory=list, init=False)
    """Idle authenticated connections."""
    _busy: dict[Connection, float] = field(factory=dict, init=False)
    """The connections that wait for a response, and since when."""
    _check: asyncio.TimerHandle | None = field(default=None, init=False)
    """The next check of the leader; None while no connection is busy."""
    _connection_slots: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONNECTIONS), init=False)

    async def forward(self, request: Request) -> bytes:
        """See Forwarder.

        Raises:
            RequestError: REQUEST_TIMED_OUT: no controller accepted the request in time; nothing was done.
            OutcomeUnknownError: The request was sent, and the response was lost.

        """
        pause, last = _FIRST_PAUSE_S, "no controller is known"
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    try:
                        response = await self._send(request)
                    except _NotSentError as error:
                        last = str(error)
                    else:
                        if response.error_code not in (AUTHORIZER_NOT_READY, NOT_CONTROLLER):
                            return _unwrap(request, response)
                        last = f"the controller returned error {response.error_code}"
                        if response.error_code == NOT_CONTROLLER:
                            # A deposed controller keeps its connections open: drop the idle ones, so that the
                            # retry connects to whichever controller is active by then.
                            await self.close()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
        except TimeoutError:
            raise RequestError(REQUEST_TIMED_OUT, f"Not forwarded within {self.seconds:g} s: {last}") from None

    async def close(self) -> None:
        """Close the idle connections; idempotent."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    async def _send(self, request: Request) -> EnvelopeResponse:
        # Taken while connecting as well: a controller that comes back must not be met by a flood of logins.
        async with self._connection_slots:
            connection = await self._take_connection()
            try:
                response = await self._exchange(connection, request)
            except BaseException:
                await connection.close()  # a response may still be due on it, or the peer may be dead
                raise
            self._idle.append(connection)
            return response

    async def _exchange(self, connection: Connection, request: Request) -> EnvelopeResponse:
        # Nothing has been written up to here, so the request may be retried; from `send` on it may not.
        try:
            version = connection.version(ENVELOPE, 0, 1)
        except ConfigError as error:
            raise _NotSentError(str(error)) from None
        session = request.session
        envelope = EnvelopeRequest(
            request_data=request.frame,
            request_principal=encode_principal(session.principal, token_authenticated=session.token_authenticated),
            client_host_address=session.address,
        )
        try:
            body = encode_envelope_request(envelope)
            payload, position = await self._unless_deposed(connection, version, body)
            return decode_envelope_response(payload, position)
        except (UnreachableError, DecodeError) as error:
            raise OutcomeUnknownError(f"forwarded, but the controller's response was lost: {error}") from None

    async def _unless_deposed(self, connection: Connection, version: int, body: bytes) -> tuple[bytes, int]:
        """Send and wait for the response, unless another controller becomes active first.

        A paused or partitioned controller keeps the TCP connection open without ever responding.
        """
        loop = asyncio.get_running_loop()
        self._busy[connection] = loop.time()
        if self._check is None:
            self._check = loop.call_later(_LEADER_CHECK_S, self._check_leader)
        try:
            return await connection.send(ENVELOPE, version, body, self.seconds)
        finally:
            del self._busy[connection]

    def _check_leader(self) -> None:
        """Give up the connections to a former leader that have waited for a while. One timer serves all requests."""
        loop, leader = asyncio.get_running_loop(), self.leader()
        waited = loop.time() - _LEADER_CHECK_S
        for connection, since in self._busy.items():
            if since <= waited and leader not in (None, connection.address):
                what = f"{connection.address}: no response, and {leader} is the active controller"
                connection.give_up(UnreachableError(what))
        self._check = loop.call_later(_LEADER_CHECK_S, self._check_leader) if self._busy else None

    async def _take_connection(self) -> Connection:
        """Take an idle connection to the active controller, or open one."""
        address = self.leader()
        # Idle connections to a former leader are of no use, and a failed one must not be handed out.
        while self._idle:
            connection = self._idle.pop()
            if connection.failure is None and address in (None, connection.address):
                return connection
            await connection.close()
        if address is None:
            raise _NotSentError("no controller is known")
        try:
            return await connect(address, self.security, client_id=self.client_id)
        except (UnreachableError, LoginError, DecodeError) as error:
            raise _NotSentError(str(error)) from None


def _unwrap(request: Request, response: EnvelopeResponse) -> bytes:
    """Return the embedded response body.

    CLUSTER_AUTHORIZATION_FAILED on the envelope concerns this broker's principal; the client must not take it for its
    own, so it becomes UNKNOWN_SERVER_ERROR, as in Kafka.
    """
    if response.error_code == CLUSTER_AUTHORIZATION_FAILED:
        raise RequestError(UNKNOWN_SERVER_ERROR, "The controller does not let this broker forward requests")
    if response.error_code or response.response_data is None:
        raise RequestError(response.error_code or UNKNOWN_SERVER_ERROR)
    header = request.header
    _, position = decode_response_header(header.api_key, header.api_version, response.response_data)
    return response.response_data[position:]
