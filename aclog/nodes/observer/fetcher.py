"""The task that follows a quorum: it finds the leader, fetches without end, and shares what is committed."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import TypeAlias

from attrs import define, field

from aclog.metalog.errors import ConfigError, DecodeError, LogError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import CONTROLLERS, describe_cluster
from aclog.nodes.client.connection import Connection
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.committed_log import SharedLog
from aclog.nodes.observer.errors import CommittedRecordsLostError, OtherClusterError, QuorumRefusedError
from aclog.nodes.observer.fetch_messages import (
    FETCH,
    NEWEST_VERSION,
    OLDEST_VERSION,
    FetchAnswer,
    Position,
    fetch_request,
    parse_fetch_response,
)
from aclog.nodes.observer.fetch_options import ObserverOptions
from aclog.nodes.observer.fetch_steps import Again, Elsewhere, Progress, SnapshotNeeded
from aclog.nodes.observer.observer_state import QuorumFollowing
from aclog.nodes.observer.refusals import Refusals
from aclog.nodes.observer.server_rotation import Servers

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
    """Of the one cluster that is followed; learned where it is not given."""
    following: QuorumFollowing = field(factory=QuorumFollowing)
    leader: HostPort | None = field(default=None, init=False)
    """Where the last good answer came from."""
    refusals: Refusals = field(init=False)
    room: asyncio.Event = field(factory=asyncio.Event, init=False)
    _turns: int = field(default=0, init=False)
    """Since the last good answer."""
    _damaged: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.refusals = Refusals(self.servers.known)

    async def run(self) -> None:
        """Follow until committed records are lost, all servers are of another cluster, or the task is cancelled."""
        hopped = False
        while True:
            address, named = self.servers.next(), None
            try:
                async with await self.connect(address) as connection:
                    await self._learn_cluster(connection)
                    moved = await self._follow(connection)
                named = moved.leader
                self.servers.name_leader(named)
                pause = self._tell(address, LogError(f"{address}: {moved.why}"))
            except CommittedRecordsLostError as error:
                self.shared.fail(CommittedRecordsLostError(f"{address}: {error}"))
                return
            except (LogError, ConfigError, DecodeError) as error:
                pause = self._tell(address, self._placed(address, error))
            if (final := self.refusals.final) is not None:
                self.shared.fail(final)
                return
            hopped = named is not None and not hopped  # nor is there a pause on the way from one to who it names
            if not hopped:
                await asyncio.sleep(max(pause, self._pause()))

    async def _learn_cluster(self, connection: Connection) -> None:
        """Where nobody has said which cluster it is, it is that of the first server: no other is followed after it.

        Without this, a server of another cluster whose epochs happen to fit would go on with the log.
        """
        if self.cluster_id is None:
            # Where it is no controller, too old a one, or there is no right to ask, Fetch has better words.
            with suppress(RequestError, ConfigError):
                self.cluster_id = (await describe_cluster(connection, CONTROLLERS)).cluster_id

    def _placed(self, address: HostPort, error: MetadataError) -> MetadataError:
        """The error with the server that it came from; those of connections have it."""
        if isinstance(error, OtherClusterError):
            return OtherClusterError(f"{address}: {error}: expected {self.cluster_id}")
        if isinstance(error, QuorumRefusedError):
            return QuorumRefusedError(f"{address}: {error}")
        return error.at(path=str(address)) if isinstance(error, DecodeError) else error

    def _tell(self, address: HostPort, trouble: MetadataError) -> float:
        """Tell that a server was no help; how long it is at least until the next try."""
        self.leader = None
        trouble = self.refusals.note(address, trouble)
        if isinstance(trouble, DecodeError):
            self._damaged += 1
            self.shared.report(trouble, lasting=self._damaged >= _DAMAGED_ANSWERS)
            return 0.0
        lasting = self.refusals.lasting
        self.shared.report(lasting or trouble, lasting=lasting is not None)
        return self.options.refused_pause if lasting is not None else 0.0

    def _pause(self) -> float:
        """None at first, then longer each time, up to a limit; not the same for all who follow a leader."""
        self._turns += 1
        if self._turns <= _QUICK_TURNS:
            return 0.0
        grown: float = self.options.first_pause * 2 ** min(self._turns - _QUICK_TURNS, 16)
        return min(grown, self.options.longest_pause) * _JITTER.uniform(0.5, 1)

    async def _follow(self, connection: Connection) -> Elsewhere:
        """Fetch until another server is to be asked."""
        again = 0
        while True:
            full = await self._wait_for_room()
            max_bytes = 1 if full else self.options.fetch_bytes
            position = self.following.position
            answer = await fetch(connection, position, self.options, max_bytes=max_bytes, cluster_id=self.cluster_id)
            match self.following.take(answer, keep=not full):
                case Progress(committed=committed):
                    self._followed(connection)
                    again = 0
                    self.shared.add(committed, self.following.high_watermark)
                case SnapshotNeeded(snapshot=snapshot):
                    self._followed(connection)
                    self.following.loaded(snapshot)
                    self.shared.begin_at(snapshot, self.following.high_watermark)
                case Again():
                    again += 1
                    await asyncio.sleep(self._pause() if again > _QUICK_TURNS else 0)
                case Elsewhere() as moved:
                    return moved

    def _followed(self, connection: Connection) -> None:
        """There was a good answer."""
        self.leader, self._turns, self._damaged = connection.address, 0, 0
        self.refusals.clear()

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
