"""The gate of a web server: it admits connections within budgets when they are accepted, before TLS.

uvicorn's own limit counts all connections alike, and answers 503 to every client once there are too many.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Hashable, Mapping, MutableMapping
from typing import Any
from weakref import WeakValueDictionary

from attrs import define, field

from aclog.console.rate_budget import Budget, RateBudget
from aclog.console.refusals import Refusals
from aclog.nodes.connection_budget import ConnectionBudget, Reason, Shares, Slot, network_of
from aclog.nodes.server.acceptor import Acceptor
from aclog.nodes.server.handshake import prepare

CONNECTIONS = 1000
"""At the same time."""
HEADER_S = 5.0
"""From the accept to the end of the first header of an unauthenticated connection."""
_HANDSHAKES = 8
"""Of one network at the same time: each takes about a millisecond of the event loop."""
_ACCEPTED_AT_ONCE, _REPLACED_AT_ONCE = 1024, 16
"""Connections that are accepted, and of one network replace others, before existing ones get a turn on the event loop.

The newest replace others; those beyond are closed, which takes microseconds: a flood of one network must not stay in
the queue of the system, in which the connections of all networks wait in one line.
"""
RATE = Budget(burst=50, seconds=0.01)
"""Of answers to unauthenticated requests of one network: 50 at once, and 100 a second."""
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
    """A connection from when it was accepted, and what it holds of the budget."""

    socket: socket.socket
    deadline: float
    """On the event loop's clock: when its first header must be there."""
    budget: ConnectionBudget
    refusals: Refusals
    rates: RateBudget
    """Of answers to unauthenticated requests, by network."""
    slot: Slot = field(init=False)
    """Set once it is admitted: who serves it has it."""
    is_of_proxy: bool = field(default=False, init=False)
    """Whether it carries requests of many clients."""
    _transport: asyncio.Transport | None = field(default=None, init=False)
    _task: "asyncio.Task[None] | None" = field(default=None, init=False)
    _is_connecting: bool = field(default=False, init=False)
    _is_ended: bool = field(default=False, init=False)

    @property
    def is_stranger(self) -> bool:
        """Whether it is unauthenticated."""
        return self.slot.identity is None

    @property
    def network(self) -> str:
        """Of its peer."""
        return self.slot.network

    def connected(self, transport: asyncio.Transport) -> None:
        """Note what carries it, after the TLS handshake."""
        self._transport = transport
        if self._is_ended:
            transport.abort()

    def authenticate(self, identity: Hashable) -> bool:
        """Count it as one of an identity; False: that one has too many connections with requests in progress."""
        if self.is_of_proxy or self.budget.authenticate(self.slot, identity):
            return True
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
        """Close the connection at once, in whatever state it is."""
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
        left = None if tls is None else max(self.deadline - loop.time(), 0.001)
        await loop.connect_accepted_socket(make, self.socket, ssl=tls, ssl_handshake_timeout=left)

    def begin(self, task: "asyncio.Task[None]") -> None:
        """Note what connects it."""
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


def authenticate(scope: Mapping[str, Any], identity: Hashable | None) -> bool:
    """Count the connection of a request as one of its client; None: of its network, where no client authenticates.

    Return False if the client has too many connections with requests in progress: refuse this one.
    """
    arrival: Arrival | None = scope.get("state", {}).get(_KEY)
    if arrival is None or (identity is None and not arrival.is_stranger):  # no gate, or a certificate tells
        return True
    return arrival.authenticate(("network", arrival.network) if identity is None else identity)


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
    """Returns what serves an admitted connection, and calls its `connected`, `busy` and `close`."""
    budget: ConnectionBudget
    refusals: Refusals
    tls: ssl.SSLContext | None = None
    proxy: str | None = None
    """The address of a trusted proxy: its connections carry requests of many clients, and count as one identity's."""
    _acceptor: Acceptor | None = field(default=None, init=False)
    _arrivals: dict["asyncio.Task[None]", Arrival] = field(factory=dict, init=False)
    """Those that are being connected."""
    _rates: RateBudget = field(factory=lambda: RateBudget(RATE), init=False)
    _replacing: dict[str, deque[socket.socket]] = field(factory=dict, init=False)
    """Of this batch, by network, the newest ones of those that have to replace others."""
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
        """Stop accepting, and close connections whose handshake has not ended; the others go on."""
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
        """Admit the newest ones of a batch in the places of others."""
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
