"""Listeners and their client connections.

Sockets, frames, deadlines, memory and handshakes (kafka.network.SocketServer).
"""

import asyncio
import contextlib
import errno
import logging
import math
import socket
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from ipaddress import IPv6Address, ip_address
from ssl import MemoryBIO, SSLContext, SSLError, SSLObject, SSLSession, SSLSyscallError, SSLWantReadError
from struct import Struct
from typing import Any, Literal, TypeAlias, cast

from attrs import field
from prometheus_client import Counter

from aclog.authorizer.acl import host_address
from aclog.authorizer.settings import KafkaPrincipal
from aclog.config.node_config import HostPort, Listener
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.machine import sockets
from aclog.metalog.values import define
from aclog.protocol import api_keys
from aclog.protocol.headers import MIN_REQUEST, MalformedRequestError, OutcomeUnknownError, frame_length
from aclog.protocol.session import ANONYMOUS, SecurityProtocol, Session
from aclog.security.principals import AuthenticationError, Credentials
from aclog.server.connection_budget import Slot
from aclog.server.network.admission import UNCHARGED_BYTES, Admission, MemoryPool
from aclog.server.network.dispatch import Authentication, Dispatcher, Outcome
from aclog.server.telemetry import Metrics

# Accepts connections on a listening socket, so that a refused one costs neither a handshake nor a task.


_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE = 0.5
"""Seconds without accepting when the process has run out of file descriptors."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Acceptor:
    """Hands each connection of a listening, non-blocking socket to `take`, on the running event loop."""

    listening: socket.socket
    name: str
    """The name of the listener, for the log."""
    take: Callable[[socket.socket], None]
    """Owns the socket from then on."""
    at_end: Callable[[], None] = lambda: None
    """Called after each batch."""
    at_once: int = 64
    """The most connections accepted before existing ones get a turn on the event loop."""
    _is_open: bool = field(default=True, init=False)

    def start(self) -> None:
        """Begin to accept."""
        if self._is_open:
            asyncio.get_running_loop().add_reader(self.listening, self._accept)

    def stop(self) -> None:
        """Accept no more, and close the socket."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self.listening)
            self.listening.close()

    def _accept(self) -> None:
        try:
            self._accept_some()
        finally:
            self.at_end()

    def _accept_some(self) -> None:
        for _ in range(self.at_once):
            if not self._is_open:
                return
            try:
                connected, _address = self.listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self.take(connected)

    def _pause(self, error: OSError) -> None:
        """Pause accepting. The socket stays readable, so the event loop would otherwise spin on it."""
        _log.warning("listener %s: pausing accept: %s", self.name, error.strerror or error)
        loop = asyncio.get_running_loop()
        if error.errno in _OUT_OF_FILES:
            loop.remove_reader(self.listening)
            loop.call_later(_PAUSE, self.start)


# A socket as a stream of frames with deadlines and back-pressure.


Reason: TypeAlias = Literal[
    "client",
    "authentication",
    "crowded",
    "idle",
    "slow_writer",
    "slow_reader",
    "malformed",
    "unanswered",
    "error",
    "expired",
    "stopped",
]
"""Why a connection ended. `client`: the client closed it; `crowded`: its network held more than others, who came when
there was no room; `unanswered`: the outcome of a request is unknown."""

_LENGTH = Struct(">i")
_READ_BYTES = 64 << 10
_AHEAD_BYTES = 16 << 10
"""Buffered bytes of pipelined requests while one is handled; the rest waits in the socket."""
_WRITE_BYTES = 256 << 10
"""Responses are written in chunks of this size, which bounds the copy in the transport's buffer."""


class FrameStream(asyncio.BufferedProtocol):
    """The server's end of a connection. One task reads and writes; the event loop feeds it on the same thread.

    All connections read into one scratch buffer, so an idle connection holds no buffer of its own. At `deadline`, on
    the event loop's clock, the listener aborts the connection with the reason `waiting_for`; it polls the deadlines,
    which is cheaper than a timer per request.
    """

    def __init__(self, admission: Admission, scratch: memoryview) -> None:
        """`scratch` is shared by all connections of an event loop; see `scratch_buffer`."""
        self.max_bytes = admission.limits.unauthenticated_frame_bytes
        self.min_bytes = MIN_REQUEST
        self.pool = admission.unauthenticated_memory
        self.latest_deadline = math.inf
        """The upper bound of all deadlines: the end of the time to authenticate."""
        self.deadline = math.inf
        self.waiting_for: Reason = "idle"
        self.ended: Reason | None = None
        self.at_end = False
        """Whether nothing more is read: the client disconnected or closed its side, or this node stops."""
        self.on_end: Callable[[], object] | None = None
        """Called when reading ends; cancels a long poll whose client is gone."""
        self.take: Callable[[bytes], bool] | None = None
        """Given a small frame that came in one piece while the task waits for one: returns whether it handles it.

        If so, `respond` or `hand_over` ends that, and until then the task receives no other frame. A task costs as much
        as a small request does.
        """
        self._admission, self._scratch = admission, scratch
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._charge: tuple[MemoryPool, int] | None = None
        """The bytes taken for the last frame, and the pool to return them to, which is not always `pool`."""
        self._needed = 0
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._readable: asyncio.Future[None] | None = None
        self._is_taken = False
        self._rest: Callable[[], Awaitable[None]] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._writable = True
        self._paused = False

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        transport.set_write_buffer_limits(high=UNCHARGED_BYTES)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """See asyncio."""
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Append the bytes read; pause reading once enough is buffered."""
        waiting = self._readable
        if waiting is not None and not (self._is_taken or self._data or waiting.done()) and self._take(nbytes):
            return
        self._data += self._scratch[:nbytes]
        size = len(self._data)
        if waiting is not None and size >= self._needed and not self._is_taken:
            self._wake_reader()
        # Back-pressure: unread bytes in the socket close the client's TCP window.
        if size > max(self._needed, _AHEAD_BYTES) and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """End reading; requests received before are still answered."""
        self._finish()
        return self.ssl_object is None  # TLS in asyncio cannot be half-closed

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """End reading and writing."""
        self.ended = self.ended or "client"
        self._data.clear()
        self._finish()
        self.resume_writing()
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """See asyncio."""
        self._writable = False

    def resume_writing(self) -> None:
        """See asyncio."""
        self._writable = True
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _take(self, nbytes: int) -> bool:
        """Have the bytes read handled if they are one frame that is taken; return whether they are."""
        take, scratch = self.take, self._scratch
        length = nbytes - 4
        if take is None or not self.min_bytes <= length <= self.max_bytes or _LENGTH.unpack_from(scratch)[0] != length:
            return False
        self._is_taken = True
        if take(scratch[4:nbytes].tobytes()):
            return True
        self._is_taken = False
        return False

    # Called for a frame that is taken

    def begin_taken(self) -> None:
        """Let no deadline run while the frame is handled."""
        self.deadline = self.latest_deadline

    def respond(self, head: bytes, body: bytes) -> None:
        """End the handling of a frame with a small response."""
        transport = self._transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
            self.hand_over(lambda: self.send(head, body))  # a client that reads slowly, or that is gone
            return
        transport.write((len(head) + len(body)).to_bytes(4, "big") + head + body)
        self._set_deadline("idle", self._admission.limits.idle_seconds)
        self._is_taken = False
        if self.at_end or len(self._data) >= self._needed:
            self._wake_reader()

    def hand_over(self, rest: Callable[[], Awaitable[None]]) -> None:
        """Let the connection's task do the rest of the handling; it fails if the rest does."""
        self._rest = rest
        self._wake_reader()

    # Called by the connection's task

    async def next(self) -> bytes | None:
        """Return the next frame without its length; None at the end of the stream.

        The memory charged for a frame is returned when the next one is requested.

        Raises:
            FrameError: An invalid length; the stream is unusable afterwards.

        """
        self._release_memory()
        self._set_deadline("idle", self._admission.limits.idle_seconds)
        if not await self._read(4):
            return None
        length = frame_length(self._data[:4], self.max_bytes, self.min_bytes)
        if len(self._data) < 4 + length:
            # Charged before reading: the announced length alone must not make this node allocate memory.
            if length > UNCHARGED_BYTES:
                self.deadline = self.latest_deadline  # the node makes the client wait for memory, so no timeout runs
                pool = self.pool
                await pool.take(length)
                self._charge = pool, length
            self._set_deadline("slow_writer", self._admission.limits.request_seconds)
            if not await self._read(4 + length):
                return None
        with memoryview(self._data) as data:  # slicing the bytearray itself would copy the frame twice
            frame = bytes(data[4 : 4 + length])
        del self._data[: 4 + length]
        self.deadline = self.latest_deadline
        return frame

    async def send(self, head: bytes, body: bytes) -> None:
        """Write length, head and body, and wait until the client has read nearly all bytes.

        Raises:
            ConnectionResetError: The connection is closed.

        """
        size = len(head) + len(body)
        # Length, header and the start of the body in one write: small responses take one packet.
        await self._write(size.to_bytes(4, "big") + head + body[:_WRITE_BYTES], size)
        for start in range(_WRITE_BYTES, len(body), _WRITE_BYTES):
            with memoryview(body) as rest:
                await self._write(rest[start : start + _WRITE_BYTES], size)

    def finish(self) -> None:
        """Stop reading because the node stops; frames received before are still returned."""
        self.ended = self.ended or "stopped"
        self._finish()

    def abort(self, reason: Reason) -> None:
        """Close at once, dropping unsent data."""
        self.ended = self.ended or reason
        if self._transport is not None:
            self._transport.abort()

    def give_up(self, connected: socket.socket) -> None:
        """Close at once in favour of another network's connection, also during the TLS handshake on `connected`."""
        self.abort("crowded")
        if self._transport is None:
            with contextlib.suppress(OSError):  # closed already
                connected.shutdown(socket.SHUT_RDWR)

    def close(self, reason: Reason) -> None:
        """Close once everything written is sent, within the time limit for slow readers."""
        self.ended = self.ended or reason
        self._release_memory()
        if self._transport is not None:
            self._set_deadline("slow_reader", self._admission.limits.request_seconds)
            self._transport.close()

    async def closed(self) -> None:
        """Wait until everything written is sent or dropped."""
        if self._transport is not None:
            await self._closed

    def abort_waiting(self) -> None:
        """Close at once because the deadline has passed."""
        self.abort("authentication" if self.deadline == self.latest_deadline else self.waiting_for)

    @property
    def ssl_object(self) -> object:
        """The connection's ssl.SSLObject; None without TLS."""
        return None if self._transport is None else self._transport.get_extra_info("ssl_object")

    async def _read(self, size: int) -> bool:
        """Wait until `size` bytes are buffered; return False at the end of the stream."""
        while len(self._data) < size:
            if self.at_end or self._transport is None:
                return False
            self._needed = size
            self._readable = self._loop.create_future()
            if self._paused:
                self._paused = False
                self._transport.resume_reading()
            try:
                await self._readable
            finally:
                self._readable, self._needed = None, 0
            if self._rest is not None:
                rest, self._rest = self._rest, None
                await rest()
                self._is_taken = False
                self._set_deadline("idle", self._admission.limits.idle_seconds)
        return True

    async def _write(self, data: bytes | memoryview, size: int) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError
        self._transport.write(data)
        if self._writable:
            return
        self._set_deadline("slow_reader", self._admission.limits.request_seconds)
        # The whole response counts, not just this chunk: its bytes are held until the last chunk is written.
        with self._admission.unsent(size, self._cut_off):
            self._drained = self._loop.create_future()
            await self._drained
        self.deadline = self.latest_deadline
        if self._transport.is_closing():
            raise ConnectionResetError

    def _cut_off(self) -> None:
        self.abort("slow_reader")

    def _set_deadline(self, what: Reason, seconds: float) -> None:
        self.waiting_for = what
        self.deadline = min(self._loop.time() + seconds, self.latest_deadline)

    def _finish(self) -> None:
        self.at_end = True
        if not self._is_taken:
            self._wake_reader()
        if self.on_end is not None:
            self.on_end()

    def _wake_reader(self) -> None:
        if self._readable is not None and not self._readable.done():
            self._readable.set_result(None)

    def _release_memory(self) -> None:
        if self._charge is not None:
            (pool, length), self._charge = self._charge, None
            pool.give(length)


def scratch_buffer() -> memoryview:
    """Return the buffer that the sockets of one event loop are read into."""
    return memoryview(bytearray(_READ_BYTES))


# TLS handshakes that send their alert on failure (SslTransportLayer.handshakeFailure).
#
# When a handshake fails, asyncio closes the socket without sending the alert. Clients then cannot distinguish a
# rejected certificate from a broken connection, and reconnect in a tight loop.


_UNTIL_CLOSED = 0.1
"""Seconds for a client to read the alert and close."""
_RECORD_BYTES = 18 << 10
"""The size of the largest TLS record; asyncio's default would reserve 256 KiB for every connection."""


def prepare(context: SSLContext) -> None:
    """Prepare a context for `Handshake`, and reduce asyncio's buffer per TLS connection."""
    context.sslobject_class = _Watched
    SSLProtocol.max_size = _RECORD_BYTES


@define(eq=False, kw_only=True)
class Handshake:
    """The handshake of one connection. Poses as an SSLContext: asyncio uses nothing but its wrap_bio."""

    context: SSLContext
    connected: socket.socket
    error: SSLError | None = field(default=None, init=False)
    """Why the handshake failed; asyncio itself only reports a closed connection."""

    def as_context(self) -> SSLContext:
        """Return self with the type that asyncio expects."""
        return cast("SSLContext", self)

    def wrap_bio(
        self,
        incoming: MemoryBIO,
        outgoing: MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: SSLSession | None = None,
    ) -> SSLObject:
        """See SSLContext."""
        ssl_object = self.context.wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        if isinstance(ssl_object, _Watched):
            ssl_object.handshake, ssl_object.incoming = self, incoming
        return ssl_object

    def failed(self, error: SSLError) -> None:
        """Record the error, and close the connection after giving the client time to read the alert."""
        self.error = error
        asyncio.get_running_loop().call_later(_UNTIL_CLOSED, self._shut)

    def _shut(self) -> None:
        with contextlib.suppress(OSError):  # closed already
            self.connected.shutdown(socket.SHUT_RDWR)


class _Watched(SSLObject):
    """Turns a failed handshake into SSLWantReadError, upon which asyncio flushes the outgoing BIO with the alert."""

    handshake: Handshake | None = None
    incoming: MemoryBIO | None = None

    def do_handshake(self) -> None:
        """See SSLObject."""
        watching = self.handshake
        if watching is not None and watching.error is not None:
            if self.incoming is not None:
                self.incoming.read()  # discarded: the input must not accumulate
            raise SSLWantReadError
        try:
            super().do_handshake()
        except (SSLWantReadError, SSLSyscallError):
            raise
        except SSLError as error:
            if watching is None:
                raise
            watching.failed(error)
            raise SSLWantReadError from error
        self.handshake = self.incoming = None


# A client connection: authentication, then one request at a time until it is closed.


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
    """Its slot in the budget of connections."""
    certificate_principal: Callable[[object], KafkaPrincipal]
    """Returns the principal of an SSLObject's peer, or raises AuthenticationError."""
    _authentication: Authentication = field(init=False)
    _client: Session | None = field(default=None, init=False)
    """The session of requests that are handled without the task."""

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
        if self.dispatcher.short_handlers:
            self._client, stream.take = session, self._begin
        while (payload := await stream.next()) is not None:
            # SaslHandshake starts re-authentication, also on an expired session: the client may just be late.
            # In a session without an end it gets ILLEGAL_SASL_STATE from the dispatcher, as in Kafka.
            if self._authentication.ends and _api_key(payload) == api_keys.SASL_HANDSHAKE:
                stream.max_bytes = limits.unauthenticated_frame_bytes
                failed = await self._log_in(payload)
                if failed is not None:
                    return failed
                stream.max_bytes = limits.frame_bytes
                self._client = session = self._session()
                self._count_as(session.principal)
            # Checked per request, not by a timer: Kafka also closes an expired session at its next request (KIP-368).
            elif self._authentication.expired:
                return "expired"
            else:
                self.slot.is_busy = True
                await self._handle(payload, session)
                self.slot.is_busy = False
        return "client"

    def _begin(self, payload: bytes) -> bool:
        """Handle a short request without the task (FrameStream.take); it then has the same limits, and a response."""
        client = self._client
        if client is None or self._authentication.ends or not self.dispatcher.is_short(payload):
            return False
        self.slot.is_busy = True
        self.stream.begin_taken()
        self.admission.enter_soon(partial(self.dispatcher.begin, payload, client, self._end))
        return True

    def _end(self, outcome: Outcome) -> None:
        """Send the response to a short request, or leave the rest of it to the task."""
        if callable(outcome):
            self.stream.hand_over(partial(self._finish, outcome))
            return
        self.slot.is_busy = False
        self.stream.respond(*outcome)
        self.admission.leave()

    async def _finish(self, outcome: Callable[[], Awaitable[tuple[bytes, bytes]]]) -> None:
        try:
            head, body = await outcome()
        finally:
            self.admission.leave()
        await self.stream.send(head, body)
        self.slot.is_busy = False

    async def _handle(self, payload: bytes, session: Session) -> None:
        # Observers' long polls last up to 30 s: within the request limit they would block everything else.
        if _api_key(payload) == api_keys.FETCH:
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


# A listener: its socket, its connections and their deadlines (kafka.network.SocketServer).


_BACKLOG = 512
_EXPIRY_SECONDS = 1.0
"""How often the deadlines of connections are checked, at most."""


@define(eq=False, kw_only=True)
class ListenerServer:
    """Serves one listener on the running event loop. Created, started and stopped once.

    `admission` and `credentials` are shared by the node, `dispatcher` by listeners of the same kind. `tls` is the TLS
    context, if any; its owner may load new certificates into it at any time. `certificate_principal` returns the
    principal of an SSLObject's peer, or raises AuthenticationError.
    """

    listener: Listener
    dispatcher: Dispatcher
    admission: Admission
    credentials: Credentials
    tls: SSLContext | None = None
    certificate_principal: Callable[[object], KafkaPrincipal] = lambda _: ANONYMOUS
    _acceptor: Acceptor | None = field(default=None, init=False)
    _scratch: memoryview = field(factory=scratch_buffer, init=False)
    _connections: dict["asyncio.Task[None]", FrameStream] = field(factory=dict, init=False)
    _deadline_task: "asyncio.Task[None] | None" = field(default=None, init=False)

    async def start(self) -> None:
        """Bind, listen, and serve clients. Raises ConfigError if the address cannot be bound."""
        if self.tls is not None:
            prepare(self.tls)
        listening = listen(self.listener.bind, f"listener {self.listener.name}")
        self._acceptor = Acceptor(listening=listening, name=self.listener.name, take=self._start_connection)
        self._deadline_task = asyncio.create_task(self._abort_expired())
        self._acceptor.start()
        self._metrics.connections.labels(self.listener.name).set_function(lambda: len(self._connections))

    @property
    def port(self) -> int:
        """The bound port, also if port 0 is configured."""
        if self._acceptor is None:
            raise RuntimeError(f"listener {self.listener.name} is not listening")
        return int(self._acceptor.listening.getsockname()[1])

    async def stop(self, grace: float = 5.0) -> None:
        """Stop accepting and reading, give in-flight requests `grace` seconds, then close all connections."""
        if self._acceptor is None or self._deadline_task is None:
            return
        self._acceptor.stop()
        self._acceptor = None
        for stream in self._connections.values():
            stream.finish()
        if self._connections:
            await asyncio.wait(self._connections, timeout=grace)
        # Only after the grace period: aborting earlier would lose responses to requests that are committed already.
        self._deadline_task.cancel()
        for task, stream in tuple(self._connections.items()):
            stream.abort("stopped")
            task.cancel()
        await asyncio.gather(self._deadline_task, *self._connections, return_exceptions=True)

    @property
    def _metrics(self) -> Metrics:
        return self.admission.metrics

    def _start_connection(self, connected: socket.socket) -> None:
        try:
            host, address = peer(connected)
        except (OSError, ValueError, ConfigError):
            connected.close()  # disconnected already, or an address that no ACL could name
            return
        stream = FrameStream(self.admission, self._scratch)
        # Before the TLS handshake, the expensive part of a connection.
        slot = self.admission.admit(host, lambda _: stream.give_up(connected))
        if slot is None:
            self._metrics.refused.labels(self.listener.name).inc()
            connected.close()
            return
        self._metrics.accepted.labels(self.listener.name).inc()
        connected.setblocking(False)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        task = asyncio.create_task(self._serve(connected, stream, host, address, slot))
        self._connections[task] = stream
        task.add_done_callback(lambda ended: self._on_closed(ended, host, slot))

    def _on_closed(self, task: "asyncio.Task[None]", host: str, slot: Slot) -> None:
        stream = self._connections.pop(task)
        self.admission.release(host, slot)
        self._metrics.closed.labels(self.listener.name, stream.ended or "stopped").inc()
        if not task.cancelled() and task.exception() is not None:
            _log.error("connection failed", exc_info=task.exception())

    async def _serve(
        self, connected: socket.socket, stream: FrameStream, host: str, address: bytes, slot: Slot
    ) -> None:
        if not await self._connect(connected, stream, host):
            return
        await Connection(
            stream=stream,
            listener=self.listener,
            dispatcher=self.dispatcher,
            admission=self.admission,
            credentials=self.credentials,
            host=host,
            address=address,
            slot=slot,
            certificate_principal=self.certificate_principal,
        ).run()
        await stream.closed()

    async def _connect(self, connected: socket.socket, stream: FrameStream, host: str) -> bool:
        """Attach the stream to the socket, after a TLS handshake if the listener has TLS; return success."""
        loop = asyncio.get_running_loop()
        handshake = Handshake(context=self.tls, connected=connected) if self.tls is not None else None
        tls = None if handshake is None else handshake.as_context()
        seconds = self.admission.limits.authentication_seconds if tls is not None else None
        try:
            await loop.connect_accepted_socket(lambda: stream, connected, ssl=tls, ssl_handshake_timeout=seconds)
        except ConnectionAbortedError:
            stream.ended = "authentication"  # asyncio raises this on its handshake timeout
            self._refused("timed out", host)
            return False
        except OSError:
            if stream.ended is not None:  # it had to give way
                return False
            stream.ended = "client"
            if handshake is not None and handshake.error is not None:
                stream.ended = "authentication"
                self._refused(handshake.error.reason, host)
            return False
        return True

    def _refused(self, why: str, host: str) -> None:
        self._metrics.authentication_failures.labels(self.listener.name, "TLS").inc()
        _log.info("TLS handshake failed: %s", why, extra={"listener": self.listener.name, "host": host})

    async def _abort_expired(self) -> None:
        """Abort the connections whose deadline has passed, polling at a quarter of the shortest timeout."""
        limits, loop = self.admission.limits, asyncio.get_running_loop()
        shortest = min(limits.idle_seconds, limits.authentication_seconds, limits.request_seconds)
        while True:
            await asyncio.sleep(min(_EXPIRY_SECONDS, shortest / 4))
            now = loop.time()
            for stream in tuple(self._connections.values()):
                if stream.deadline <= now:
                    stream.abort_waiting()


def listen(address: HostPort, what: str) -> socket.socket:
    """Return a non-blocking listening socket; an empty host binds all IPv6 and IPv4 addresses.

    A host name resolves to its first address, IPv4 preferred, as in Java. Error texts begin with `what`.

    Raises:
        ConfigError: The address does not exist or is in use.

    """
    try:
        family, where = _resolve(address)
        listening: socket.socket = sockets.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _failed(address, what, error) from error
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(address.host)))
        listening.bind(where)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _failed(address, what, error) from error
    return listening


def _resolve(address: HostPort) -> tuple[int, tuple[str, int]]:
    if not address.host:
        both = socket.has_dualstack_ipv6()
        return (socket.AF_INET6, ("::", address.port)) if both else (socket.AF_INET, ("0.0.0.0", address.port))  # noqa: S104 - as configured
    addresses = sockets.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, _, _, _, where = min(addresses, key=lambda each: each[0] != socket.AF_INET)
    return family, where


def _failed(address: HostPort, what: str, error: OSError) -> ConfigError:
    return ConfigError(f"{what}: cannot listen on {address}: {error.strerror or error}")


def peer(connected: socket.socket) -> tuple[str, bytes]:
    """Return the client's address in the form of Java's getHostAddress, and as 4 or 16 bytes.

    Raises:
        OSError: The client has disconnected already.

    """
    text: str = connected.getpeername()[0]
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return host_address(text), (mapped or address).packed
