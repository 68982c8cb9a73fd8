"""How much clients may take of a node, over all its listeners: connections, requests, memory (ConnectionQuotas)."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import define, field

from aclog.nodes.config.node_config import Limits
from aclog.nodes.server.file_limit import connections_within_files
from aclog.nodes.telemetry.metrics import Metrics

UNCHARGED_BYTES = 64 << 10
"""A frame up to this size is not charged to a pool: it fits into what each connection may hold anyway."""

_UNAUTHENTICATED_SHARE = 8
"""Clients that have not said who they are get this part of the memory, so that they cannot take it from the others."""


@define(eq=False)
class BytePool:
    """Bytes that many share. Who asks waits in line until there is room; a piece larger than all has it alone."""

    size: int
    used: int = field(default=0, init=False)
    _waiting: deque[tuple[int, "asyncio.Future[None]"]] = field(factory=deque, init=False)

    async def take(self, amount: int) -> None:
        """Wait until `amount` bytes are this caller's; it gives them back by `give`."""
        if not self._waiting and self._fits(amount):
            self.used += amount
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(amount)
            raise

    def give(self, amount: int) -> None:
        """Give back what was taken."""
        self.used -= amount
        while self._waiting and (self._waiting[0][1].done() or self._fits(self._waiting[0][0])):
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self.used += wanted
                turn.set_result(None)

    def _fits(self, amount: int) -> bool:
        return self.used == 0 or self.used + amount <= self.size


@define(eq=False, kw_only=True)
class Admission:
    """A node's accounts, shared by its listeners and used on the event loop's thread only.

    Connections beyond a limit are refused; requests and large frames beyond one wait; where clients do not take their
    answers and too much piles up, those that have been slow for longest are cut off.
    """

    limits: Limits
    metrics: Metrics
    connections: int = field(default=0, init=False)
    memory: BytePool = field(init=False)
    unauthenticated_memory: BytePool = field(init=False)
    _most: int = field(init=False)
    _by_host: dict[str, int] = field(factory=dict, init=False)
    _turns: asyncio.Semaphore = field(init=False)
    _unsent: dict[Callable[[], None], int] = field(factory=dict, init=False)
    """What slow readers have not taken, by how to cut them off, in the order in which they became slow."""
    _unsent_bytes: int = field(default=0, init=False)
    _handled: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.memory = BytePool(self.limits.in_flight_bytes)
        self.unauthenticated_memory = BytePool(self.limits.in_flight_bytes // _UNAUTHENTICATED_SHARE)
        self._most = connections_within_files(self.limits.connections)
        self._turns = asyncio.Semaphore(self.limits.in_flight_requests)
        self.metrics.in_flight_requests.set_function(lambda: self._handled)
        self.metrics.in_flight_bytes.set_function(lambda: self.memory.used + self.unauthenticated_memory.used)
        self.metrics.unsent_bytes.set_function(lambda: self._unsent_bytes)

    def admit(self, host: str) -> bool:
        """Whether one more connection from this address may be; if so it counts until `release`."""
        of_host = self._by_host.get(host, 0)
        if self.connections >= self._most or of_host >= self.limits.connections_per_ip:
            return False
        self.connections += 1
        self._by_host[host] = of_host + 1
        return True

    def release(self, host: str) -> None:
        """A connection that was admitted is gone."""
        self.connections -= 1
        left = self._by_host[host] - 1
        if left:
            self._by_host[host] = left
        else:
            del self._by_host[host]

    async def enter(self) -> None:
        """Wait for this request's turn; `leave` ends it."""
        await self._turns.acquire()
        self._handled += 1

    def leave(self) -> None:
        """A request that had its turn is answered."""
        self._handled -= 1
        self._turns.release()

    @contextmanager
    def unsent(self, amount: int, cut_off: Callable[[], None]) -> Iterator[None]:
        """Count an answer that its client is slow to take, until it is taken; beyond the limit `cut_off` is called."""
        self._unsent[cut_off] = amount
        self._unsent_bytes += amount
        over = self._unsent_bytes - self.limits.in_flight_bytes
        for slow, held in tuple(self._unsent.items()) if over > 0 else ():
            slow()
            over -= held
            if over <= 0:
                break
        try:
            yield
        finally:
            del self._unsent[cut_off]
            self._unsent_bytes -= amount
