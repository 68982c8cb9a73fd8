"""Admission control over all listeners: connections, requests and memory."""

import asyncio
import logging
import resource
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import field

from aclog.config.node_config import Limits
from aclog.metalog.values import define
from aclog.server.connection_budget import ConnectionBudget, Shares, Slot, network_of
from aclog.server.http_endpoint import HTTP_CONNECTIONS
from aclog.server.telemetry import Metrics

# The memory that large requests share (org.apache.kafka.common.memory.SimpleMemoryPool).


UNCHARGED_BYTES = 64 << 10
"""Frames up to this size are not charged to a pool: every connection may buffer that much anyway."""


@define(eq=False)
class MemoryPool:
    """A number of bytes shared by connections, granted in order of request.

    A request larger than the pool is granted once the pool is empty, so that it can be read at all.
    """

    size: int
    used: int = field(default=0, init=False)
    _waiting: deque[tuple[int, "asyncio.Future[None]"]] = field(factory=deque, init=False)

    async def take(self, amount: int) -> None:
        """Wait for `amount` bytes; the caller returns them with `give`."""
        if not self._waiting and self._fits(amount):
            self.used += amount
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        try:
            await turn
        except asyncio.CancelledError:
            # Granted in the same turn of the loop as the cancellation: return it, or it would be lost for good.
            if turn.done() and not turn.cancelled():
                self.give(amount)
            raise

    def give(self, amount: int) -> None:
        """Return bytes to the pool."""
        self.used -= amount
        while self._waiting and (self._waiting[0][1].done() or self._fits(self._waiting[0][0])):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.used += size
                turn.set_result(None)

    def _fits(self, amount: int) -> bool:
        return self.used == 0 or self.used + amount <= self.size


# Admission control over all listeners: connections, requests in flight, memory (kafka.network.ConnectionQuotas).
#
# Connections beyond a limit are closed on accept, or replace an idle, unauthenticated one of a network that holds
# clearly more. Requests beyond a limit are not refused but wait, unread in the socket, which pushes back on the
# client by TCP.


OWN_FILES = 256 + HTTP_CONNECTIONS
"""File descriptors reserved for segments, checkpoints, listeners, connections to other nodes and the HTTP endpoint's.

A node that cannot open its own files any more stops."""

_log = logging.getLogger(__name__)

_UNAUTHENTICATED_SHARE = 8
"""Unauthenticated clients share 1/8 of the memory in a pool of their own, so they cannot starve the others."""


@define(eq=False, kw_only=True)
class Admission:
    """The limits of a node and their current use, shared by its listeners. Used on the event loop's thread only.

    Connections beyond the limits are refused; requests and large frames wait. If unread responses pile up beyond the
    memory limit, the clients that have been slow for longest are disconnected.
    """

    limits: Limits
    metrics: Metrics
    budget: ConnectionBudget = field(init=False)
    memory: MemoryPool = field(init=False)
    unauthenticated_memory: MemoryPool = field(init=False)
    _by_host: dict[str, int] = field(factory=dict, init=False)
    _slots: int = field(init=False)
    """Free request slots."""
    _waiting: deque["asyncio.Future[None] | Callable[[], None]"] = field(factory=deque, init=False)
    """Requests without a slot, in order; a slot that becomes free goes to the first one."""
    _unsent: dict[Callable[[], None], int] = field(factory=dict, init=False)
    """Unsent response bytes of slow readers by the function that disconnects them, slowest first."""
    _unsent_bytes: int = field(default=0, init=False)
    _in_flight: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.memory = MemoryPool(self.limits.in_flight_bytes)
        self.unauthenticated_memory = MemoryPool(self.limits.in_flight_bytes // _UNAUTHENTICATED_SHARE)
        most = connections_within_files(self.limits.connections)
        self.budget = ConnectionBudget(shares=Shares.equal(most), keeps_evenly=True)
        self._slots = self.limits.in_flight_requests
        self.metrics.in_flight_requests.set_function(lambda: self._in_flight)
        self.metrics.in_flight_bytes.set_function(lambda: self.memory.used + self.unauthenticated_memory.used)
        self.metrics.unsent_bytes.set_function(lambda: self._unsent_bytes)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self.budget)

    def admit(self, host: str, end: Callable[[object], object]) -> Slot | None:
        """Count a connection from this address until `release`; return None if a limit is reached.

        `end` is called to close it if a connection of another network needs its place: only while it is idle and
        unauthenticated.
        """
        of_host = self._by_host.get(host, 0)
        if of_host >= self.limits.connections_per_ip:
            return None
        slot = self.budget.open(network_of(host), end)
        if slot is not None:
            self._by_host[host] = of_host + 1
        return slot

    def release(self, host: str, slot: Slot) -> None:
        """Release an admitted connection."""
        self.budget.close(slot)
        remaining = self._by_host[host] - 1
        if remaining:
            self._by_host[host] = remaining
        else:
            del self._by_host[host]

    async def enter(self) -> None:
        """Wait for a request slot (queued.max.requests); `leave` frees it."""
        if self._slots > 0:
            self._slots -= 1
        else:
            await self._handed()
        self._in_flight += 1

    def enter_soon(self, begin: Callable[[], None]) -> None:
        """Call `begin` once there is a request slot, at once or in turn with those that wait; `leave` frees it.

        `begin` must not free it before it returns.
        """
        if self._slots > 0:
            self._slots -= 1
            self._in_flight += 1
            begin()
        else:
            self._waiting.append(begin)

    def leave(self) -> None:
        """Free the request slot."""
        self._in_flight -= 1
        while self._waiting:
            turn = self._waiting.popleft()
            if not isinstance(turn, asyncio.Future):
                self._in_flight += 1
                turn()
                return
            if not turn.done():
                turn.set_result(None)
                return
        self._slots += 1

    async def _handed(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # Handed over in the same turn of the loop as the cancellation: pass it on, or it would be lost for good.
            if turn.done() and not turn.cancelled():
                self._in_flight += 1
                self.leave()
            raise

    @contextmanager
    def unsent(self, amount: int, cut_off: Callable[[], None]) -> Iterator[None]:
        """Count a response whose client is slow to read it; over the limit, disconnect the slowest clients."""
        self._unsent[cut_off] = amount
        self._unsent_bytes += amount
        over = self._unsent_bytes - self.limits.in_flight_bytes
        # Oldest first, so a burst of new responses cannot push out clients that keep reading.
        for slow, size in tuple(self._unsent.items()) if over > 0 else ():
            slow()
            over -= size
            if over <= 0:
                break
        try:
            yield
        finally:
            del self._unsent[cut_off]
            self._unsent_bytes -= amount


def connections_within_files(connections: int) -> int:
    """Return how many of the `connections` the limit of open files permits.

    The soft limit is raised as far as the hard limit permits, as the JVM does. If that is too low, fewer connections
    are served and a warning is logged: clients could otherwise exhaust the descriptors that the log needs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    served = max(1, soft - OWN_FILES)
    _log.warning(
        "serving at most %d connections instead of %d: the limit is %d files (ulimit -n)", served, connections, soft
    )
    return served
