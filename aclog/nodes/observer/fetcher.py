"""The task that follows a quorum: finds the leader, fetches in a loop, and shares what is committed."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import TypeAlias

from attrs import define, evolve, field

from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import ConfigError, DecodeError, LogError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import CONTROLLERS, describe_cluster, describe_features
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.peer import Role, role_of
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.errors import CommittedRecordsLostError, OtherClusterError, QuorumRefusedError
from aclog.nodes.observer.fetch_buffer import Confirmation, FetchBuffer
from aclog.nodes.observer.fetch_messages import (
    FETCH,
    NEWEST_VERSION,
    OLDEST_VERSION,
    FetchResponse,
    Position,
    fetch_request,
    parse_fetch_response,
)
from aclog.nodes.observer.fetch_options import ObserverOptions
from aclog.nodes.observer.fetch_response_handler import (
    CONTROLLER_EXPECTED,
    FetchAgain,
    ObserverState,
    Progress,
    Redirect,
    SnapshotNeeded,
)
from aclog.nodes.observer.log_identity import FetchAt, LogIdentity, OlderLeaders
from aclog.nodes.observer.server_selection import Refusals, ServerRotation

Connect: TypeAlias = Callable[[HostPort], Awaitable[Connection]]
"""Opens an authenticated connection."""

_DAMAGED_RESPONSES = 3
"""After this many in a row, waiting readers get the error; fewer may be damage in transit, which a retry repairs."""

_IMMEDIATE_RETRIES = 3
"""Retries without backoff: learning the leader and its epoch takes a few."""

_JITTER = Random()  # noqa: S311 - not a secret; an instance of its own leaves the program's seed alone


async def fetch(
    connection: Connection, position: Position, options: ObserverOptions, *, max_bytes: int, cluster_id: str | None
) -> FetchResponse:
    """Send one Fetch and return its response.

    Raises:
        UnreachableError: the connection was closed, or no response arrived in time.
        ConfigError: the server supports no Fetch version that we support.
        DecodeError: the response is malformed.

    """
    version = connection.version(FETCH, OLDEST_VERSION, NEWEST_VERSION)
    request = fetch_request(
        position, version, max_bytes=max_bytes, max_wait_ms=options.max_wait_ms, cluster_id=cluster_id
    )
    seconds = options.response_seconds + options.max_wait_ms / 1000
    return parse_fetch_response(await connection.ask(request, seconds))


def _require_controller(connection: Connection) -> None:
    """Refuse a broker before it refuses a Fetch, with an error that would not say so."""
    if role_of(connection.apis) is Role.BROKER:
        raise QuorumRefusedError(f"not a controller's listener but a broker's: {CONTROLLER_EXPECTED}")


@define(kw_only=True, eq=False)
class Fetcher:
    """Runs on one event loop until cancelled; errors are reported to the readers, and retried."""

    servers: ServerRotation
    connect: Connect
    buffer: FetchBuffer
    options: ObserverOptions
    notify: Callable[[str], None] | None = None
    """Called once with each warning about a server, on the event loop."""
    cluster_id: str | None = None
    """The only cluster to follow; learned from the first server unless given."""
    state: ObserverState = field(factory=ObserverState)
    identity: LogIdentity = field(factory=LogIdentity)
    leader: HostPort | None = field(default=None, init=False)
    """The address of the last successful fetch."""
    refusals: Refusals = field(init=False)
    room: asyncio.Event = field(factory=asyncio.Event, init=False)
    _warned: set[str] = field(factory=set, init=False)
    _retries: int = field(default=0, init=False)
    """Since the last successful fetch."""
    _damaged: int = field(default=0, init=False)
    _older_leaders: OlderLeaders = field(factory=OlderLeaders, init=False)

    def __attrs_post_init__(self) -> None:
        self.refusals = Refusals(self.servers.known)

    async def run(self) -> None:
        """Follow until committed records are lost, all servers belong to another cluster, or the task is cancelled."""
        redirected = False
        while True:
            address, named = self.servers.next(), None
            try:
                async with await self.connect(address) as connection:
                    _require_controller(connection)
                    await self._learn_cluster(connection)
                    await self._warn_of_upgrades(connection)
                    redirect = await self._follow(connection)
                self._note_older_leader(address, redirect.older_epoch)
                named = redirect.leader
                self.servers.name_leader(named)
                backoff = self._report(address, LogError(f"{address}: {redirect.why}"))
            except CommittedRecordsLostError as error:
                self.buffer.fail(CommittedRecordsLostError(f"{address}: {error}"))
                return
            except (LogError, ConfigError, DecodeError) as error:
                self._note_older_leader(address, None)
                backoff = self._report(address, self._with_address(address, error))
            if self.buffer.failure is not None:
                return
            # No backoff on the way to a named leader, but only once: two nodes may name each other during an election.
            redirected = named is not None and not redirected
            if not redirected:
                await asyncio.sleep(max(backoff, self._next_backoff()))

    async def _learn_cluster(self, connection: Connection) -> None:
        """Pin the observer to the cluster of the first server, unless a cluster id was given.

        Otherwise a server of another cluster whose epochs happen to fit would continue the log.
        """
        if self.cluster_id is None:
            # If it is not a controller, is too old, or denies DESCRIBE, the error of the Fetch is more to the point.
            with suppress(RequestError, ConfigError):
                self.cluster_id = (await describe_cluster(connection, CONTROLLERS)).cluster_id

    async def _warn_of_upgrades(self, connection: Connection) -> None:
        """Warn if the server could raise the cluster's metadata.version beyond what a replay here accepts."""
        if self.notify is None:
            return
        with suppress(RequestError, ConfigError):  # no features: too old to be ahead of us
            warning = (await describe_features(connection)).upgrade_warning(
                connection.address, self.options.newest_level
            )
            if warning is not None and warning not in self._warned:
                self._warned.add(warning)
                self.notify(warning)

    def _with_address(self, address: HostPort, error: MetadataError) -> MetadataError:
        """Name the server in the error; errors of connections name it already."""
        if isinstance(error, OtherClusterError):
            return OtherClusterError(f"{address}: {error}: expected {self.cluster_id}")
        if isinstance(error, QuorumRefusedError):
            return QuorumRefusedError(f"{address}: {error}")
        return error.at(path=str(address)) if isinstance(error, DecodeError) else error

    def _report(self, address: HostPort, error: MetadataError) -> float:
        """Report a server's error to the readers, or that it is final; return the minimum backoff in seconds."""
        self.leader = None
        error = self.refusals.note(address, error)
        if (final := self.refusals.final) is not None:
            # Not after a report: a reader would see the refusal first, which is not final by itself.
            self.buffer.fail(final)
            return 0.0
        if isinstance(error, DecodeError):
            self._damaged += 1
            self.buffer.report(error, retriable=self._damaged < _DAMAGED_RESPONSES)
            return 0.0
        permanent = self.refusals.permanent
        waits = self.options.wait_for_servers or self.buffer.confirmed is not None or self.refusals.unreachable is None
        self.buffer.report(permanent or error, retriable=permanent is None and waits)
        return self.options.refused_backoff if permanent is not None else 0.0

    def _next_backoff(self) -> float:
        """Return an exponential backoff with jitter, so that followers of a failed leader do not retry in lockstep."""
        self._retries += 1
        if self._retries <= _IMMEDIATE_RETRIES:
            return 0.0
        grown: float = self.options.retry_backoff * 2 ** min(self._retries - _IMMEDIATE_RETRIES, 16)
        return min(grown, self.options.max_retry_backoff) * _JITTER.uniform(0.5, 1)

    async def _follow(self, connection: Connection) -> Redirect:
        """Fetch until another server has to be asked."""
        again, is_same_log = 0, False
        while True:
            full = await self._wait_for_room()
            # A full buffer stops the batches, not the fetches: the mark must keep moving, and Kafka sends at least
            # one batch whatever the limit.
            max_bytes = 1 if full else self.options.fetch_bytes
            position, asked = self.state.position, elapsed_seconds()
            response = await fetch(connection, position, self.options, max_bytes=max_bytes, cluster_id=self.cluster_id)
            if not (is_same_log or response.error or response.diverging):
                # On each connection: the server may have been formatted again since the last one, and offsets and
                # epochs may fit by chance. Nothing of its response has been taken over yet.
                is_same_log = await self.identity.check(self._fetch_at(connection, self.state.leader_epoch))
                if not is_same_log:
                    return Redirect(why="ceased to lead while its log was compared with the one that was followed")
            match self.state.handle(response, keep=not full):
                case Progress(committed=committed):
                    self._succeeded(connection)
                    again = 0
                    self.identity.add(committed)
                    self.buffer.add(committed, self.state.high_watermark, self._confirmation(asked, response))
                case SnapshotNeeded(snapshot=snapshot):
                    # The fetcher only skips ahead; SnapshotDownload fetches the snapshot when a caller needs the state.
                    self._succeeded(connection)
                    self.state.loaded(snapshot)
                    self.identity.skip()
                    confirmed = self._confirmation(asked, response)
                    self.buffer.begin_at(snapshot, self.state.high_watermark, confirmed)
                case FetchAgain():
                    again += 1
                    await asyncio.sleep(self._next_backoff() if again > _IMMEDIATE_RETRIES else 0)
                case Redirect(older_epoch=int(epoch)) as redirect:
                    # With its own epoch, only a leader responds without an error.
                    leads = await self.identity.check(self._fetch_at(connection, epoch), committed_only=True)
                    return redirect if leads else evolve(redirect, older_epoch=None)
                case Redirect() as redirect:
                    return redirect

    def _fetch_at(self, connection: Connection, epoch: int) -> FetchAt:
        """Return a function that fetches one batch from the leader of an epoch, anywhere in its log."""

        async def fetch_at(offset: int) -> FetchResponse:
            """Fetch one batch. The leader's own epoch passes its check of the last fetched epoch."""
            position = Position(
                offset=offset, last_fetched_epoch=epoch if offset else 0, leader_epoch=epoch, high_watermark=-1
            )
            return await fetch(connection, position, self.options, max_bytes=1, cluster_id=self.cluster_id)

        return fetch_at

    def _note_older_leader(self, address: HostPort, epoch: int | None) -> None:
        """Note whether a server leads in an older epoch than the newest known one.

        Raises:
            CommittedRecordsLostError: it has done so for too long to be a leader that is merely cut off.

        """
        seconds = self._older_leaders.note(address, leads=epoch is not None, now=time.monotonic())
        if epoch is not None and seconds >= self.options.older_leader_seconds:
            raise CommittedRecordsLostError(
                f"has been leading in epoch {epoch} for {seconds:.0f} s, although epoch {self.state.leader_epoch} was "
                "known: the quorum was formatted again, or restored from a backup; expected epochs to grow"
            )

    def _succeeded(self, connection: Connection) -> None:
        self.leader, self._retries, self._damaged = connection.address, 0, 0
        self.refusals.clear()
        self._older_leaders.clear()

    def _confirmation(self, asked: float, response: FetchResponse) -> Confirmation | None:
        """Return what confirms that the known mark is current; None if the response does not.

        The mark of a new leader is unknown, or below what is known, until the quorum has confirmed it.
        """
        if self.leader is None or response.high_watermark < max(self.state.high_watermark, 0):
            return None
        return Confirmation(server=self.leader, asked=asked)

    async def _wait_for_room(self) -> bool:
        """Wait a moment for room in the buffer; return whether it is still full."""
        if self.state.pending_bytes >= self.options.pending_bytes:
            await asyncio.sleep(self.options.retry_backoff)
            return True
        # Clear before looking: a reader that makes room in between sets the event again, and is not missed.
        self.room.clear()
        if not self.buffer.full:
            return False
        try:
            async with asyncio.timeout(self.options.max_wait_ms / 1000):
                await self.room.wait()
        except TimeoutError:
            return True
        return False
