"""Requests that change metadata, on their way from a broker to the active controller (ForwardingManager, KIP-590).

A request that certainly has not reached the controller is sent again until its time is up, and so is one that the
controller answered with AUTHORIZER_NOT_READY or NOT_CONTROLLER: it did nothing then. One whose answer was lost is not:
it may have been carried out, and whoever sent it has to decide, as if this broker had died: its connection is closed.
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
"""How long a broker tries: Kafka's controller channel manager gives up after as much."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_LOOK_S = 1.0
"""How often it is seen whether a controller that has not answered is still the active one."""

CONNECTIONS = 16
"""At most so many to the controller: it answers one request of a connection at a time, each when it is committed."""


class Forwarder(Protocol):
    """Has a request carried out by the active controller."""

    async def forward(self, request: Request) -> bytes:
        """The encoded body of the controller's answer, without a header; raises as a Handler."""
        ...

    async def close(self) -> None:
        """Let go of connections; a second close is nothing."""
        ...


@define
class LocalForwarder:
    """To the controller in the same process."""

    handlers: Mapping[int, Handler]

    async def forward(self, request: Request) -> bytes:
        """See Forwarder."""
        return await self.handlers[request.header.api_key](request)

    async def close(self) -> None:
        """Nothing is held."""


class _NotSentError(Exception):
    """The controller has not seen the request."""


@define(eq=False, kw_only=True)
class EnvelopeForwarder:
    """To a controller elsewhere, in Envelopes over a few connections, one on each at a time; owned by one event loop.

    Requests that are under way together are committed together, as if their clients were connected there.
    """

    leader: Callable[[], HostPort | None]
    """Where the active controller is, as far as this node knows."""
    security: ClientSecurity
    client_id: str
    seconds: float = FORWARD_SECONDS
    _free: list[Connection] = field(factory=list, init=False)
    """Logged in, and not in use."""
    _places: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONNECTIONS), init=False)

    async def forward(self, request: Request) -> bytes:
        """See Forwarder.

        Raises:
            RequestError: REQUEST_TIMED_OUT, where there was no controller in time: nothing was done.
            OutcomeUnknownError: a controller has got it, and its answer was lost.

        """
        pause, last = _FIRST_PAUSE_S, "no controller is known"
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    try:
                        answer = await self._send(request)
                    except _NotSentError as error:
                        last = str(error)
                    else:
                        if answer.error_code not in (AUTHORIZER_NOT_READY, NOT_CONTROLLER):
                            return _unwrapped(request, answer)
                        last = f"the controller answered with error {answer.error_code}"
                        if answer.error_code == NOT_CONTROLLER:
                            await self.close()  # it stays connected: ask again who is the controller now
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
        except TimeoutError:
            raise RequestError(REQUEST_TIMED_OUT, f"Not forwarded within {self.seconds:g} s: {last}") from None

    async def close(self) -> None:
        """Close the connections that are not in use; a second close is nothing."""
        free, self._free = self._free, []
        for connection in free:
            await connection.close()

    async def _send(self, request: Request) -> EnvelopeResponse:
        async with self._places:
            connection = await self._connected()
            try:
                answer = await self._exchange(connection, request)
            except BaseException:
                await connection.close()  # an answer may still be due on it, and it may have gone silent
                raise
            self._free.append(connection)
            return answer

    async def _exchange(self, connection: Connection, request: Request) -> EnvelopeResponse:
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
            raise OutcomeUnknownError(f"sent to the controller, whose answer was lost: {error}") from None

    async def _unless_deposed(self, connection: Connection, version: int, body: bytes) -> tuple[bytes, int]:
        """The answer, unless another controller is known to be active first: this one may be silent for ever."""
        sending = asyncio.ensure_future(connection.send(ENVELOPE, version, body, self.seconds))
        try:
            while not (await asyncio.wait((sending,), timeout=_LOOK_S))[0]:
                if (leader := self.leader()) not in (None, connection.address):
                    raise UnreachableError(f"{connection.address}: silent, and {leader} is the active controller now")
            return sending.result()
        finally:
            sending.cancel()

    async def _connected(self) -> Connection:
        """A connection to the controller that nobody uses."""
        address = self.leader()
        while self._free:
            connection = self._free.pop()
            if connection.failure is None and address in (None, connection.address):
                return connection
            await connection.close()
        if address is None:
            raise _NotSentError("no controller is known")
        try:
            return await connect(address, self.security, client_id=self.client_id)
        except (UnreachableError, LoginError, DecodeError) as error:
            raise _NotSentError(str(error)) from None


def _unwrapped(request: Request, answer: EnvelopeResponse) -> bytes:
    """The body inside the envelope; what is wrong with the envelope itself is this node's trouble, not the client's."""
    if answer.error_code == CLUSTER_AUTHORIZATION_FAILED:
        raise RequestError(UNKNOWN_SERVER_ERROR, "The controller does not let this broker forward requests")
    if answer.error_code or answer.response_data is None:
        raise RequestError(answer.error_code or UNKNOWN_SERVER_ERROR)
    header = request.header
    _, position = decode_response_header(header.api_key, header.api_version, answer.response_data)
    return answer.response_data[position:]
