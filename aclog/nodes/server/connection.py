"""A client connection: authentication, then one request at a time until it is closed."""

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any

from attrs import define, field
from prometheus_client import Counter

from aclog.authorizer.principals import KafkaPrincipal
from aclog.metalog.errors import DecodeError
from aclog.nodes.apis.request import MalformedRequestError, OutcomeUnknownError
from aclog.nodes.config.node_config import Listener
from aclog.nodes.connection_budget import Slot
from aclog.nodes.security.errors import AuthenticationError
from aclog.nodes.security.login_credentials import Credentials
from aclog.nodes.server.admission import Admission
from aclog.nodes.server.authentication import Authentication
from aclog.nodes.server.dispatch import Dispatcher
from aclog.nodes.server.frame_stream import FrameStream, Reason
from aclog.nodes.session import ANONYMOUS, SecurityProtocol, Session
from aclog.nodes.wire.api_keys import FETCH, SASL_HANDSHAKE
from aclog.nodes.wire.frames import MIN_REQUEST

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Connection:
    """A client connection after the TLS handshake, if there is one.

    Requests are handled one at a time and in order, as in Kafka; pipelined requests wait in the socket.
    """

    stream: FrameStream
    listener: Listener
    dispatcher: Dispatcher
    admission: Admission
    credentials: Credentials
    host: str
    address: bytes
    slot: Slot
    """What it holds of the budget of connections."""
    certificate_principal: Callable[[object], KafkaPrincipal]
    """Returns the principal of an SSLObject's peer, or raises AuthenticationError."""
    _authentication: Authentication = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._authentication = Authentication(
            listener=self.listener, credentials=self.credentials, versions=self.dispatcher
        )

    async def run(self) -> None:
        """Serve the client until the connection is closed; raises only on cancellation."""
        reason: Reason = "stopped"
        try:
            reason = await self._serve()
        except (DecodeError, MalformedRequestError) as error:
            reason = "malformed"
            _log.info("connection closed: %s", error, extra=self._log_context())
        except OutcomeUnknownError as error:
            reason = "unanswered"
            _log.warning("connection closed without a response: %s", error, extra=self._log_context())
        except AuthenticationError as error:
            reason = "authentication"
            self.admission.metrics.authentication_failures.labels(self.listener.name, "TLS").inc()
            _log.info("login failed: %s", error, extra=self._log_context())
            # Delayed to slow down guessing (connection.failed.authentication.delay.ms).
            await asyncio.sleep(self.admission.limits.failed_authentication_seconds)
        except ConnectionResetError:
            reason = "client"
        except Exception:  # noqa: BLE001 - a failure ends this connection only
            reason = "error"
            _log.exception("connection closed", extra=self._log_context())
        finally:
            self.stream.close(reason)

    async def _serve(self) -> Reason:
        stream, limits, sasl = self.stream, self.admission.limits, self.listener.security_protocol.sasl
        stream.latest_deadline = asyncio.get_running_loop().time() + limits.authentication_seconds
        failed = await self._log_in(await stream.next()) if sasl else None
        if failed is not None:
            return failed
        session = self._session()
        self._count_as(session.principal)
        # Only now may the client send large frames, and draw on the main memory pool.
        stream.latest_deadline, stream.max_bytes, stream.pool = math.inf, limits.frame_bytes, self.admission.memory
        while (payload := await stream.next()) is not None:
            # SaslHandshake starts re-authentication, also on an expired session: the client may just be late.
            # In a session without an end it gets ILLEGAL_SASL_STATE from the dispatcher, as in Kafka.
            if self._authentication.ends and _api_key(payload) == SASL_HANDSHAKE:
                stream.max_bytes = limits.unauthenticated_frame_bytes
                failed = await self._log_in(payload)
                if failed is not None:
                    return failed
                stream.max_bytes = limits.frame_bytes
                session = self._session()
                self._count_as(session.principal)
            # Checked per request, not by a timer: Kafka also closes an expired session at its next request (KIP-368).
            elif self._authentication.expired:
                return "expired"
            else:
                self.slot.is_busy = True
                await self._handle(payload, session)
                self.slot.is_busy = False
        return "client"

    async def _handle(self, payload: bytes, session: Session) -> None:
        # Observers' long polls last up to 30 s: within the request limit they would block everything else.
        if _api_key(payload) == FETCH:
            if self.stream.at_end:
                raise ConnectionResetError
            head, body = await self._long_poll(self.dispatcher.handle(payload, session))
        else:
            await self.admission.enter()
            try:
                head, body = await self.dispatcher.handle(payload, session)
            finally:
                self.admission.leave()
        await self.stream.send(head, body)

    async def _long_poll(self, handling: Coroutine[Any, Any, tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
        """Await a long poll, outside the request limit; it ends when its client disconnects."""
        response = asyncio.ensure_future(handling)
        self.stream.on_end = response.cancel
        try:
            return await response
        except asyncio.CancelledError:
            if self.stream.at_end:
                raise ConnectionResetError from None
            raise
        finally:
            self.stream.on_end = None

    async def _log_in(self, payload: bytes | None) -> Reason | None:
        """Run a login from its first message; return why it failed, or None."""
        while (failed := await self._log_in_step(payload)) is None and not self._authentication.complete:
            payload = await self.stream.next()
        return failed

    async def _log_in_step(self, payload: bytes | None) -> Reason | None:
        authentication, stream = self._authentication, self.stream
        if payload is None:
            return "client"
        step = authentication.receive(payload)
        if step.failure is not None:
            await self._slow_down(step.failure, final=step.final)
        if step.response is not None:
            await stream.send(step.response, b"")
        if step.failure is not None:
            return "authentication"
        # Raw SASL tokens (SaslHandshake version 0) have no header and may even be empty.
        stream.min_bytes = 0 if authentication.raw else MIN_REQUEST
        if authentication.complete:
            self._count(self.admission.metrics.authentications)
        return None

    async def _slow_down(self, why: str, *, final: bool) -> None:
        if final:
            self._count(self.admission.metrics.authentication_failures)
        _log.info("login failed: %s", why, extra=self._log_context())
        await asyncio.sleep(self.admission.limits.failed_authentication_seconds)

    def _count(self, counter: Counter) -> None:
        counter.labels(self.listener.name, self._authentication.mechanism).inc()

    def _count_as(self, principal: KafkaPrincipal) -> None:
        if principal != ANONYMOUS:
            self.admission.budget.authenticate(self.slot, principal)

    def _session(self) -> Session:
        protocol, token_authenticated, principal = self.listener.security_protocol, False, ANONYMOUS
        if protocol.sasl:
            login = self._authentication.login
            principal, token_authenticated = login.principal, login.token_authenticated
        elif protocol is SecurityProtocol.SSL:
            principal = self.certificate_principal(self.stream.ssl_object)
        return Session(
            listener_name=self.listener.name,
            security_protocol=protocol,
            host=self.host,
            address=self.address,
            principal=principal,
            token_authenticated=token_authenticated,
        )

    def _log_context(self) -> dict[str, str]:
        return {"listener": self.listener.name, "host": self.host}


def _api_key(payload: bytes) -> int:
    return int.from_bytes(payload[:2], "big", signed=True)
