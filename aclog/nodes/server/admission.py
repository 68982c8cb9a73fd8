"""How much clients may take of a node, over all its listeners: connections, requests, memory (ConnectionQuotas)."""

import asyncio
import logging
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import define, field

from aclog.nodes.config.node_config import Limits
from aclog.nodes.server.memory_pool import MemoryPool
from aclog.nodes.telemetry.metrics import Metrics

OWN_FILES = 256
"""Segments, checkpoints, listeners, connections to other nodes: without them a node cannot go on."""
_log = logging.getLogger(__name__)

_UNAUTHENTICATED_SHARE = 8
"""Clients that have not said who they are get this part of the memory, so that they cannot take it from the others."""


@define(eq=False, kw_only=True)
class Admission:
    """A node's accounts, shared by its listeners and used on the event loop's thread only.

    Connections beyond a limit are refused; requests and large frames beyond one wait; where clients do not take their
    answers and too much piles up, those that have been slow for longest are cut off.
    """

    limits: Limits
    metrics: Metrics
    connections: int = field(default=0, init=False)
    memory: MemoryPool = field(init=False)
    unauthenticated_memory: MemoryPool = field(init=False)
    _most: int = field(init=False)
    _by_host: dict[str, int] = field(factory=dict, init=False)
    _turns: asyncio.Semaphore = field(init=False)
    _unsent: dict[Callable[[], None], int] = field(factory=dict, init=False)
    """What slow readers have not taken, by how to cut them off, in the order in which they became slow."""
    _unsent_bytes: int = field(default=0, init=False)
    _handled: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.memory = MemoryPool(self.limits.in_flight_bytes)
        self.unauthenticated_memory = MemoryPool(self.limits.in_flight_bytes // _UNAUTHENTICATED_SHARE)
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


def connections_within_files(wanted: int) -> int:
    """At most `wanted` connections, and no more than there are files for.

    The process's limit of open files is raised as far as it goes without privileges, as the Java machine does; if it
    still is too low, fewer connections are served and a warning says so, since clients could otherwise take the files
    that the log needs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    served = max(1, soft - OWN_FILES)
    _log.warning("%d connections at most, not %d: this process may open %d files (ulimit -n)", served, wanted, soft)
    return served
