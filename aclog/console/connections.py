"""Connections of a web server.

Admitted within budgets before TLS, with deadlines, and refused with a reason that is counted.
"""

import asyncio
import contextlib
import hashlib
import logging
import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable, Hashable, Mapping, MutableMapping
from typing import Any
from weakref import WeakValueDictionary

import h11
from attrs import field
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from aclog.console.shared import Budget, RateBudget
from aclog.metalog.values import define
from aclog.server.connection_budget import ConnectionBudget, Reason, Shares, Slot, network_of
from aclog.server.network.listeners import Acceptor, prepare

# Counters of refused connections and requests, by reason (Prometheus).


_CONNECTIONS = ("network", "unauthenticated", "identity", "header", "handshake", "rate")
_REQUESTS = ("identity", "body", "past")


@define(eq=False)
class Refusals:
    """Counters of one server, which owns them."""

    registry: CollectorRegistry = field(factory=CollectorRegistry)
    _connections: Counter = field(init=False)
    _requests: Counter = field(init=False)
    _open: Gauge = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._connections = Counter(
            "aclog_web_connections_refused",
            "Closed connections by reason: over the limit of a network (network), of unauthenticated connections "
            "(unauthenticated) or of an identity (identity); no complete header in time (header); no TLS handshake in "
            "time (handshake); over the rate of unauthenticated requests of a network (rate).",
            ["reason"],
            registry=self.registry,
        )
        self._requests = Counter(
            "aclog_web_requests_refused",
            "Requests that were refused: too many of one identity (identity), bodies (body), or states of the past "
            "(past) at once.",
            ["reason"],
            registry=self.registry,
        )
        self._open = Gauge("aclog_web_connections", "Open connections.", ["kind"], registry=self.registry)
        for counter, reasons in ((self._connections, _CONNECTIONS), (self._requests, _REQUESTS)):
            for reason in reasons:
                counter.labels(reason)

    def connection(self, reason: str) -> None:
        """Count a connection that was closed."""
        self._connections.labels(reason).inc()

    def request(self, reason: str) -> None:
        """Count a request that was refused."""
        self._requests.labels(reason).inc()

    def watch(self, strangers: Callable[[], float], authenticated: Callable[[], float]) -> None:
        """Show how many connections are open: unauthenticated ones, and those of authenticated clients."""
        self._open.labels("unauthenticated").set_function(strangers)
        self._open.labels("authenticated").set_function(authenticated)

    def text(self) -> bytes:
        """Return all metrics of the registry in Prometheus's text format."""
        return generate_latest(self.registry)


# The gate of a web server: it admits connections within budgets when they are accepted, before TLS.
#
# uvicorn's own limit counts all connections alike, and answers 503 to every client once there are too many.


CONNECTIONS = 1000
"""The most connections at the same time."""
HEADER_S = 5.0
"""The time from the accept to the end of the first header of an unauthenticated connection, in seconds."""
_HANDSHAKES = 8
"""Concurrent TLS handshakes of one network: each takes about a millisecond of the event loop."""
_ACCEPTED_AT_ONCE, _REPLACED_AT_ONCE = 1024, 16
"""Connections that are accepted, and of one network replace others, before existing ones get a turn on the event loop.

The newest replace others; those beyond are closed, which takes microseconds: a flood of one network must not stay in
the queue of the system, in which the connections of all networks wait in one line.
"""
RATE = Budget(burst=50, seconds=0.01)
"""The rate of responses to unauthenticated requests of one network: 50 at once, and 100 a second."""
_BACKLOG = 4096
_KEY = "aclog.arrival"

_log = logging.getLogger(__name__)


def shares_of(connections: int) -> Shares:
    """Return how many connections one network and one identity may hold; half are for authenticated clients."""
    reserve = connections // 2
    return Shares(
        connections=connections,
        reserve=reserve,
        of_network=max(connections // 8, 1),
        of_identity=max(reserve * 4 // 5, 1),
    )


@define(eq=False, kw_only=True)
class Arrival:
    """An accepted connection, and its slot in the budget."""

    socket: socket.socket
    deadline: float
    """When its first header must be complete, on the event loop's clock."""
    budget: ConnectionBudget
    refusals: Refusals
    rates: RateBudget
    """The rates of responses to unauthenticated requests, by network."""
    slot: Slot = field(init=False)
    """Set once it is admitted: who serves it has it."""
    is_of_proxy: bool = field(default=False, init=False)
    """Whether it carries requests of many clients."""
    _transport: "asyncio.Transport | GatheredWrites | None" = field(default=None, init=False)
    _task: "asyncio.Task[None] | None" = field(default=None, init=False)
    _is_connecting: bool = field(default=False, init=False)
    _is_ended: bool = field(default=False, init=False)

    @property
    def is_stranger(self) -> bool:
        """Whether it is unauthenticated."""
        return self.slot.identity is None

    @property
    def network(self) -> str:
        """The network of its peer."""
        return self.slot.network

    def connected(self, transport: "asyncio.Transport | GatheredWrites") -> None:
        """Note what carries it, after the TLS handshake."""
        self._transport = transport
        if self._is_ended:
            transport.abort()

    def authenticate(self, identity: Hashable, *, is_counted: bool = True) -> bool:
        """Count it as one of an identity; False: that one has too many connections with requests in progress.

        `is_counted`: whether False counts as a refused request.
        """
        if self.is_of_proxy or self.budget.authenticate(self.slot, identity):
            return True
        if is_counted:
            self.refusals.request("identity")
        return False

    def answered(self) -> bool:
        """Count an answer; False: its network has had too many without authentication, and it is to be closed."""
        if not self.is_stranger:
            return True
        now = asyncio.get_running_loop().time()
        self.rates.spend(self.network, now, 1.0)
        if self.rates.wait(self.network, now) == 0:
            return True
        self.refusals.connection("rate")
        return False

    def busy(self, is_busy: bool) -> None:
        """Note whether a request is in progress."""
        self.slot.is_busy = is_busy

    def close(self) -> None:
        """Note that the connection has ended."""
        self.budget.close(self.slot)

    def end(self, reason: Reason) -> None:
        """Close the connection at once, in any state."""
        self._is_ended = True
        self.refusals.connection(reason)
        if self._transport is not None:
            self._transport.abort()
        elif self._is_connecting:  # its file belongs to the event loop
            with contextlib.suppress(OSError):  # closed already
                self.socket.shutdown(socket.SHUT_RDWR)
        else:
            self.socket.close()
            if self._task is not None:
                self._task.cancel()

    async def attach(self, make: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None) -> None:
        """Attach a protocol. Raises OSError: the TLS handshake fails, or takes too long."""
        self._is_connecting = True
        loop = asyncio.get_running_loop()
        timeout = None if tls is None else max(self.deadline - loop.time(), 0.001)
        await loop.connect_accepted_socket(make, self.socket, ssl=tls, ssl_handshake_timeout=timeout)

    def begin(self, task: "asyncio.Task[None]") -> None:
        """Register the protocol that drives this connection."""
        self._task = task

    def abandon(self) -> None:
        """Close it, if no protocol serves it."""
        if self._transport is None:
            self.close()
            if not self._is_connecting:
                self.socket.close()


def keep_arrival(state: MutableMapping[str, Any], arrival: Arrival) -> None:
    """Put the arrival of a connection into the state that the scopes of its requests have."""
    state[_KEY] = arrival


def authenticate(scope: Mapping[str, Any], identity: Hashable | None, *, is_counted: bool = True) -> bool:
    """Count the connection of a request as one of its client; None: of its network, where no client authenticates.

    Return False if the client has too many connections with requests in progress: refuse this one, and count that
    unless another will.
    """
    arrival: Arrival | None = scope.get("state", {}).get(_KEY)
    if arrival is None or (identity is None and not arrival.is_stranger):  # no gate, or the client has a certificate
        return True
    own = ("network", arrival.network) if identity is None else identity
    return arrival.authenticate(own, is_counted=is_counted)


def identity_of(scope: Mapping[str, Any]) -> Hashable:
    """Return the identity whose budgets a request draws on: that of its connection, else its network."""
    arrival: Arrival | None = scope.get("state", {}).get(_KEY)
    if arrival is None:
        client = scope.get("client")
        return ("network", network_of(client[0] if client else ""))
    return ("network", arrival.network) if arrival.slot.identity is None else arrival.slot.identity


@define(eq=False, kw_only=True)
class Gate:
    """Accepts the connections of one listener, on the running event loop."""

    listening: socket.socket
    """Bound, and owned by the gate."""
    name: str
    serve: Callable[[Arrival], asyncio.Protocol]
    """Returns the handler of an admitted connection; the gate calls its `connected`, `busy` and `close`."""
    budget: ConnectionBudget
    refusals: Refusals
    tls: ssl.SSLContext | None = None
    proxy: str | None = None
    """The address of a trusted proxy: its connections carry requests of many clients and count as one identity."""
    _acceptor: Acceptor | None = field(default=None, init=False)
    _arrivals: dict["asyncio.Task[None]", Arrival] = field(factory=dict, init=False)
    """Connections whose handshake is in progress."""
    _rates: RateBudget = field(factory=lambda: RateBudget(RATE), init=False)
    _replacing: dict[str, deque[socket.socket]] = field(factory=dict, init=False)
    """The newest connections of this batch that have to replace others, by network."""
    _turns: "WeakValueDictionary[str, asyncio.Semaphore]" = field(factory=WeakValueDictionary, init=False)
    """For TLS handshakes, by network."""

    def start(self) -> None:
        """Listen, and accept."""
        if self.tls is not None:
            prepare(self.tls)
        self.listening.setblocking(False)
        self.listening.listen(_BACKLOG)
        self.refusals.watch(lambda: self.budget.strangers, lambda: self.budget.authenticated)
        self._acceptor = Acceptor(
            listening=self.listening,
            name=self.name,
            take=self._take,
            at_end=self._replace,
            at_once=_ACCEPTED_AT_ONCE,
        )
        self._acceptor.start()

    async def stop(self) -> None:
        """Stop accepting, and close connections whose handshake is incomplete; the others stay open."""
        if self._acceptor is None:
            return
        self._acceptor.stop()
        for task in tuple(self._arrivals):
            task.cancel()
        await asyncio.gather(*self._arrivals, return_exceptions=True)

    def _take(self, connected: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            network = network_of(connected.getpeername()[0])
        except OSError:  # disconnected already
            connected.close()
            return
        if self._rates.wait(network, loop.time()) > 0:
            self.refusals.connection("rate")
            connected.close()
            return
        if self.budget.needs_place(network):
            newest = self._replacing.setdefault(network, deque())
            newest.append(connected)
            if len(newest) > _REPLACED_AT_ONCE:
                self.refusals.connection("network")
                newest.popleft().close()
            return
        self._admit(connected, network)

    def _replace(self) -> None:
        """Admit the newest ones of a batch, replacing others."""
        replacing, self._replacing = self._replacing, {}
        for network, newest in replacing.items():
            for connected in newest:
                self._admit(connected, network)

    def _admit(self, connected: socket.socket, network: str) -> None:
        loop = asyncio.get_running_loop()
        connected.setblocking(False)
        arrival = Arrival(
            socket=connected,
            deadline=loop.time() + HEADER_S,
            budget=self.budget,
            refusals=self.refusals,
            rates=self._rates,
        )
        slot = self.budget.open(network, arrival.end)
        if slot is None:
            self.refusals.connection("unauthenticated")
            connected.close()
            return
        arrival.slot = slot
        if self.proxy is not None and arrival.network == network_of(self.proxy):
            arrival.is_of_proxy = self.budget.authenticate(arrival.slot, ("proxy", self.proxy))
        task = loop.create_task(self._connect(arrival))
        self._arrivals[task] = arrival
        arrival.begin(task)
        task.add_done_callback(self._connected)

    def _connected(self, task: "asyncio.Task[None]") -> None:
        arrival = self._arrivals.pop(task)
        arrival.abandon()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("connection failed", exc_info=error)

    async def _connect(self, arrival: Arrival) -> None:
        if self.tls is None:
            with contextlib.suppress(OSError):
                await arrival.attach(lambda: self.serve(arrival), None)
            return
        turn = self._turns.get(arrival.network)
        if turn is None:
            turn = self._turns[arrival.network] = asyncio.Semaphore(_HANDSHAKES)
        try:
            async with asyncio.timeout_at(arrival.deadline):
                await turn.acquire()
        except TimeoutError:
            self.refusals.connection("handshake")
            return
        try:
            await arrival.attach(lambda: self.serve(arrival), self.tls)
        except OSError:
            self.refusals.connection("handshake")
        finally:
            turn.release()


# Deadlines of connections: one until a request is complete, and one for its response.


_SLOWEST = 1024
"""The least rate, in bytes a second, at which a client must read a response."""
_ACKNOWLEDGED = slice(120, 128)
"""Where Linux's `struct tcp_info` holds tcpi_bytes_acked."""
_GATHERED = 64 << 10
"""Bytes that are sent without waiting for the end of the step."""
_WHOLE = {h11.DONE, h11.MUST_CLOSE}
"""States of the other side when it has sent all of a request."""


class GatheredWrites:
    """A transport that sends what one step of the event loop writes at once.

    uvicorn writes head and body of a response apart. Each write is a call of the kernel, which delivers it to the
    client and may wake it up; over loopback that takes longer than making the response.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """All but writing and closing is that of the transport."""
        self._transport, self._loop = transport, loop
        self._pending: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        """Return what the transport has under this name."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes before the event loop waits again; many of them at once, so that the transport can pause us."""
        if not data:
            return
        if not self._pending:
            self._loop.call_soon(self.flush)
        self._pending.append(data)
        self._size += len(data)
        if self._size >= _GATHERED:
            self.flush()

    def flush(self) -> None:
        """Send what is pending, unless the connection has ended meanwhile."""
        if self._pending:
            data, self._pending, self._size = b"".join(self._pending), [], 0
            if not self._transport.is_closing():
                self._transport.write(data)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are not sent yet."""
        return self._size + self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Send what is pending, and close."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close without sending what is pending."""
        self._pending, self._size = [], 0
        self._transport.abort()


class TimedConnection(H11Protocol):
    """uvicorn's connection, which ends if a request and its answer take longer than `seconds`.

    A client could hold a connection open for ever with headers or a body sent byte by byte, or by never reading a
    response. While the client has not authenticated, the header of its first request must be complete within
    `header_seconds` of the accept, and that of a later one within the same time from its first byte.
    """

    transport: GatheredWrites  # type: ignore[assignment]
    seconds = 30.0
    header_seconds = HEADER_S
    arrival: Arrival | None = None
    """Its slot in the connection budget, if a gate has admitted it."""
    _since = 0.0
    """When the deadline was set, on the event loop's clock."""
    _is_short = False
    """Whether the deadline is that of a header."""
    _deadline: asyncio.TimerHandle | None = None
    _acknowledged = 0
    """Bytes that the other side had taken when the deadline was set."""
    _has_ended = False
    """Whether the other side sends no more."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(GatheredWrites(transport, self.loop))  # type: ignore[arg-type]
        if self.arrival is not None:
            self.app_state = dict(self.app_state)
            keep_arrival(self.app_state, self.arrival)
            self.arrival.connected(self.transport)
            certificate = _certificate_of(transport)
            if certificate is not None and not self.arrival.authenticate(certificate):
                transport.abort()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._stop()
        if self.arrival is not None:
            self.arrival.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take note of a header that is whole, and of one that begins after an answer."""
        super().data_received(data)
        self._note()
        if self._is_of_stranger and not self._is_asked and not self._is_short:
            self._is_short = True
            self._set_deadline(self.loop.time() + self.header_seconds)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether it stays open: a half-closed client still gets its responses, but not over TLS."""
        self._has_ended = True
        self.transport.flush()  # without it, the transport closes on False
        if self.scheme != "http" or self.conn.their_state not in _WHOLE:
            return False
        return not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._wait()
        if self.arrival is not None and not self.arrival.answered():  # before the next one of a pipeline begins
            self.transport.close()
        super().on_response_complete()
        self._note()
        if self._has_ended and self.cycle.response_complete:
            self.transport.close()

    @property
    def _is_asked(self) -> bool:
        """Whether a header was received whose request was not answered yet."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def _is_first(self) -> bool:
        """Whether no header was received yet."""
        earlier: object = self.cycle
        return earlier is None

    @property
    def _is_of_stranger(self) -> bool:
        return self.arrival is not None and self.arrival.is_stranger

    def _note(self) -> None:
        """Note whether a request is in progress; with its header whole, its body may take longer."""
        if self.arrival is not None:
            self.arrival.busy(self._is_asked)
        if self._is_short and self._is_asked:
            self._is_short = False
            self._set_deadline(self._since + self.seconds)

    def shutdown(self) -> None:
        """Close when the server stops: at once within a request, otherwise after the current response."""
        if self._is_half_sent():
            self.transport.flush()
            self.transport.abort()  # not `close`: over TLS that waits for the other side's farewell
        else:
            super().shutdown()

    def _is_half_sent(self) -> bool:
        if self.conn.their_state is h11.IDLE:
            return self._is_first or bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY

    def _wait(self) -> None:
        self._acknowledged, self._since = self._taken_bytes(), self.loop.time()
        end = self._since + self.seconds
        # Between two requests uvicorn applies a shorter timeout to an idle client.
        self._is_short = self._is_first and self._is_of_stranger
        if self._is_short and self.arrival is not None:  # since it was accepted, which was before a TLS handshake
            end = min(self._since + self.header_seconds, max(self.arrival.deadline, self._since))
        self._set_deadline(end)

    def _set_deadline(self, end: float) -> None:
        self._stop()
        self._deadline = self.loop.call_at(end, self._end)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _taken_bytes(self) -> int:
        """Return how many bytes the other side has taken so far.

        The size of the transport's buffer is not enough: the kernel holds megabytes more, and TLS has a buffer of its
        own.
        """
        peer = self.transport.get_extra_info("socket")
        try:
            counter = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.stop)[_ACKNOWLEDGED]
            return int.from_bytes(counter, sys.byteorder)
        except (AttributeError, OSError):  # not Linux
            return -self.transport.get_write_buffer_size()

    def _end(self) -> None:
        if self._is_short and self.arrival is not None:
            self.arrival.refusals.connection("header")
        self.transport.abort()


def _certificate_of(transport: asyncio.Transport) -> tuple[str, str] | None:
    """Return the identity in the client certificate, which the handshake has verified; None: no certificate."""
    tls = transport.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert(binary_form=True)
    return None if certificate is None else ("certificate", hashlib.sha256(certificate).hexdigest())


class PatientConnection(TimedConnection):
    """A connection whose requests must be complete within `seconds`; answers have no time limit.

    It also ends if the client reads a pending answer slower than a kilobyte per second, within `seconds`.
    """

    def data_received(self, data: bytes) -> None:
        """Stop to wait once the request is whole."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, unless it is there already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Begin to wait for the answer to be read."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Stop to wait for it."""
        super().resume_writing()
        self._look()

    def _look(self) -> None:
        """Suspend the deadline while the console computes a response: the client is not at fault."""
        is_asked = self.conn.their_state in _WHOLE and not self.cycle.response_complete
        if is_asked and not self.flow.write_paused:
            self._stop()

    def _end(self) -> None:
        """End, unless enough of an answer was read meanwhile."""
        if not self._is_short and self._taken_bytes() - self._acknowledged >= self.seconds * _SLOWEST:
            self._wait()
        else:
            super()._end()


# Requests whose end is not certain: two servers in a row could find it at different positions (request smuggling).


_TWO_LENGTHS = "Content-Length and Transfer-Encoding exclude each other (RFC 9112, section 6.3).\n"
_OLD = "HTTP/1.0 has no Transfer-Encoding (RFC 9112, section 6.1).\n"


def well_framed(app: ASGIApp) -> ASGIApp:
    """Return an application that gets no request with two lengths: such a one is 400, and its connection ends.

    h11 takes the chunks and ignores the Content-Length; a proxy in front may have done otherwise.
    """

    async def framed(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        problem = _problem(scope) if scope["type"] == "http" else None
        answer = app if problem is None else PlainTextResponse(problem, 400, {"Connection": "close"})
        await answer(scope, receive, send)

    return framed


def _problem(scope: Scope) -> str | None:
    names = {name.lower() for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names:
        return None
    if b"content-length" in names:
        return _TWO_LENGTHS
    return _OLD if scope.get("http_version") == "1.0" else None
