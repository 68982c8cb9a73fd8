"""The task that follows a quorum: it finds the leader, fetches without end, and shares what is committed."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeAlias

from attrs import define, field

from metalog.errors import ConfigError, DecodeError, LogError, MetadataError
from nodes.client.connection import Connection
from nodes.client.errors import LoginError
from nodes.config.node_config import HostPort
from nodes.observer.errors import CommittedRecordsLostError, QuorumRefusedError
from nodes.observer.fetch_messages import (
    FETCH,
    NEWEST_VERSION,
    OLDEST_VERSION,
    FetchAnswer,
    Position,
    fetch_request,
    parse_fetch_response,
)
from nodes.observer.following import QuorumFollowing
from nodes.observer.options import ObserverOptions
from nodes.observer.servers import Servers
from nodes.observer.shared_log import SharedLog
from nodes.observer.steps import Again, Elsewhere, Progress, SnapshotNeeded

Connect: TypeAlias = Callable[[HostPort], Awaitable[Connection]]
"""Opens a connection that is logged in."""

_DAMAGED_ANSWERS = 3
"""So many in a row, and those who wait for these bytes are told: bytes that were damaged on their way come better."""

_QUICK_TURNS = 3
"""So many times in a row the next step follows at once; then there is a pause."""

_JITTER = Random()  # noqa: S311 - it keeps no secret; our own, so that a program's seed is left alone


async def fetch(
    connection: Connection, position: Position, options: ObserverOptions, *, max_bytes: int, cluster_id: str | None
) -> FetchAnswer:
    """One fetch.

    Raises:
        UnreachableError: the connection was cut, or no answer came in time.
        ConfigError: the server does not serve a Fetch that we speak.
        DecodeError: the answer is none.

    """
    version = connection.version(FETCH, OLDEST_VERSION, NEWEST_VERSION)
    request = fetch_request(
        position, version, max_bytes=max_bytes, max_wait_ms=options.max_wait_ms, cluster_id=cluster_id
    )
    seconds = options.answer_seconds + options.max_wait_ms / 1000
    return parse_fetch_response(await connection.ask(request, seconds))


@define(kw_only=True, eq=False)
class Fetcher:
    """Runs on one event loop, for ever; whatever fails is told to those who read, and tried again."""

    servers: Servers
    connect: Connect
    shared: SharedLog
    options: ObserverOptions
    cluster_id: str | None = None
    following: QuorumFollowing = field(factory=QuorumFollowing)
    leader: HostPort | None = field(default=None, init=False)
    """Where the last good answer came from."""
    room: asyncio.Event = field(factory=asyncio.Event, init=False)
    _turns: int = field(default=0, init=False)
    """Since the last good answer."""
    _damaged: int = field(default=0, init=False)

    async def run(self) -> None:
        """Follow until committed records are lost, or the task is cancelled."""
        while True:
            address = self.servers.next()
            pause = 0.0
            try:
                async with await self.connect(address) as connection:
                    moved = await self._follow(connection)
                self.servers.name_leader(moved.leader)
                self.shared.report(LogError(f"{address}: {moved.why}"), lasting=False)
            except CommittedRecordsLostError as error:
                self.shared.fail(CommittedRecordsLostError(f"{address}: {error}"))
                return
            except (LogError, ConfigError, DecodeError) as error:
                pause = self._report(address, error)
            await asyncio.sleep(max(pause, self._pause()))

    def _report(self, address: HostPort, error: MetadataError) -> float:
        """Tell what went wrong; how long it is at least until the next try."""
        self.leader = None
        if isinstance(error, DecodeError):
            self._damaged += 1
            self.shared.report(error.at(path=str(address)), lasting=self._damaged >= _DAMAGED_ANSWERS)
            return 0.0
        if isinstance(error, QuorumRefusedError):
            error = QuorumRefusedError(f"{address}: {error}")
        refused = isinstance(error, (QuorumRefusedError, LoginError, ConfigError))
        self.shared.report(error, lasting=refused)
        return self.options.refused_pause if refused else 0.0

    def _pause(self) -> float:
        """None at first, then longer each time, up to a limit; not the same for all who follow a leader."""
        self._turns += 1
        if self._turns <= _QUICK_TURNS:
            return 0.0
        grown: float = self.options.first_pause * 2 ** min(self._turns - _QUICK_TURNS, 16)
        return min(grown, self.options.longest_pause) * _JITTER.uniform(0.5, 1)

    async def _follow(self, connection: Connection) -> Elsewhere:
        """Fetch until another server is to be asked."""
        while True:
            full = await self._wait_for_room()
            max_bytes = 1 if full else self.options.fetch_bytes
            position = self.following.position
            answer = await fetch(connection, position, self.options, max_bytes=max_bytes, cluster_id=self.cluster_id)
            match self.following.take(answer, keep=not full):
                case Progress(committed=committed):
                    self.leader, self._turns, self._damaged = connection.address, 0, 0
                    self.shared.add(committed, self.following.high_watermark)
                case SnapshotNeeded(snapshot=snapshot):
                    self.leader = connection.address
                    self.following.loaded(snapshot)
                    self.shared.begin_at(snapshot, self.following.high_watermark)
                case Again():
                    await asyncio.sleep(self._pause())
                case Elsewhere() as moved:
                    return moved

    async def _wait_for_room(self) -> bool:
        """Whether there is none, after a while: the marks are to be asked for all the same, one batch at a time."""
        if self.following.pending_bytes >= self.options.pending_bytes:
            await asyncio.sleep(self.options.first_pause)
            return True
        self.room.clear()
        if not self.shared.full:
            return False
        try:
            async with asyncio.timeout(self.options.max_wait_ms / 1000):
                await self.room.wait()
        except TimeoutError:
            return True
        return False
