"""Polls the ACLs of one cluster over the admin API."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.cli.sync.changes import check_acls
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError, DecodeError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import describe_cluster, describe_quorum
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.error_codes import (
    BROKER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
)
from aclog.sources.admin import describe_all_acls, describe_cluster_id
from aclog.sources.bootstrap import connect_to_first

_SETTLE_SECONDS = 2.0
"""Within this time a broker that reaches its controller applies what was committed before: fetches wait 0.5 s at most,
and are retried after 0.5 s at most.
"""

_OUT_OF_REACH = {
    UNKNOWN_SERVER_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    BROKER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NOT_CONTROLLER,
}
"""How brokers say that no controller has answered. Other errors say nothing about that."""

_MOST_BROKERS = 6
"""How many are asked again; each response has all ACLs."""


class WrongClusterError(ConfigError):
    """The servers belong to a different cluster than the recorded one."""


@frozen(kw_only=True)
class Poll:
    """All ACLs of a cluster, its id, and when the response had arrived (ms since 1970).

    `is_settled`: the state is no older than that of the poll before. Each broker applies changes in order, but one that
    has just been connected to may be behind the one that was asked before, or behind itself before it was restarted.
    """

    cluster_id: str
    acls: tuple[StandardAcl, ...]
    timestamp: int
    is_settled: bool = False


@define(eq=False, kw_only=True)
class ClusterPoller:
    """A client of one cluster, owned by one event loop.

    It stays with the same broker as long as polls succeed: another broker may lag behind, and an older state would be
    recorded as a change. `cluster_id` is the expected cluster; None accepts any, and expects it from then on.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    cluster_id: str | None
    _clock: Callable[[], int] = field(default=current_time_ms)
    _connection: Connection | None = field(default=None, init=False)

    async def poll(self) -> Poll:
        """Return the current ACLs.

        Raises:
            WrongClusterError: the server belongs to a different cluster.
            MetadataError: no server is reachable, or the response is malformed or an error. The next poll tries another
                server first.

        """
        try:
            return await self._try()
        except BaseException:  # also cancelled: a response may be in flight
            await self._move_to_end()
            raise

    async def poll_settled(self) -> Poll:
        """Poll the broker that was asked last once it must have applied what its controller has committed by now.

        The first that answers, if none was asked. A broker that does not reach its controller has an old state, for
        any time.

        Raises:
            MetadataError: as `poll`; also if the broker does not reach its controller.

        """
        try:
            connection = self._connection
            if connection is None or connection.failure is not None:
                await self.close()
                self._connection = connection = await connect_to_first(self.servers, self.security, Role.BROKER)
                await self._check_cluster(connection)  # before a pause: it may be a wrong address
            await _check_reaches_controller(connection)
            await asyncio.sleep(_SETTLE_SECONDS)
            return evolve(await self._describe(connection), is_settled=True)
        except BaseException:
            await self._move_to_end()
            raise

    async def poll_again(self, is_plausible: Callable[[Poll], bool]) -> Poll | None:
        """Ask the same broker again, then others; return the first plausible response, None if there is none.

        A broker that cannot be asked is skipped, and so is one of another cluster that was not given: brokers name
        themselves for their clients, and such a name may be another server's here. The poller stays with the broker
        whose response it returns, if any.

        Raises:
            WrongClusterError: as `poll`.

        """
        given = self.servers
        for address in await self._brokers():
            try:
                await self.close()
                self._connection = await connect(address, self.security)
                poll = await self._describe(self._connection)
            except MetadataError as error:
                if isinstance(error, WrongClusterError) and address in given:
                    raise
                continue
            if is_plausible(poll):
                return poll
        await self.close()  # what it tells next is that of a new broker: not settled
        return None

    async def _brokers(self) -> tuple[HostPort, ...]:
        """Return the broker that was asked last, the other given ones, and those that the cluster names, a few."""
        named: tuple[HostPort, ...] = ()
        if self._connection is not None:
            with suppress(MetadataError):  # too old for it, or not allowed
                named = tuple(node.address for node in (await describe_cluster(self._connection)).nodes)
        return tuple(dict.fromkeys((*self.servers, *named)))[:_MOST_BROKERS]

    async def _try(self) -> Poll:
        kept = self._connection
        if kept is not None and kept.failure is None:
            with suppress(UnreachableError):  # closed while idle, or its session expired (KIP-368): reconnect
                return evolve(await self._describe(kept), is_settled=True)
        await self.close()
        self._connection = await connect_to_first(self.servers, self.security, Role.BROKER)
        return await self._describe(self._connection)

    async def _move_to_end(self) -> None:
        """Close the connection, and make its server the last one to try."""
        failed = self.servers[0] if self._connection is None else self._connection.address
        self.servers = (*self._others(failed), failed)
        await self.close()

    def _others(self, one: HostPort) -> tuple[HostPort, ...]:
        return tuple(server for server in self.servers if server != one)

    async def _check_cluster(self, connection: Connection) -> str:
        cluster_id = await describe_cluster_id(connection)
        if self.cluster_id not in {None, cluster_id}:
            raise WrongClusterError(
                f"{connection.address}: belongs to cluster {cluster_id}: expected {self.cluster_id}, the recorded one"
            )
        return cluster_id

    async def _describe(self, connection: Connection) -> Poll:
        cluster_id = await self._check_cluster(connection)
        acls = await describe_all_acls(connection)
        # After the response: at this time, the cluster was known to have these ACLs.
        timestamp = self._clock()
        try:
            check_acls(acls)
        except DecodeError as error:
            raise error.at(path=str(connection.address)) from None
        self.cluster_id = cluster_id
        self.servers = (connection.address, *self._others(connection.address))
        return Poll(cluster_id=cluster_id, acls=tuple(acls), timestamp=timestamp)

    async def close(self) -> None:
        """Close the connection, if any."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _check_reaches_controller(connection: Connection) -> None:
    """See that the broker forwards a request to its controller, and gets an answer.

    Nothing is known of a broker that is too old for DescribeQuorum, or does not allow it.

    Raises:
        MetadataError: it does not, or does not respond.

    """
    try:
        await describe_quorum(connection)
    except ConfigError:
        return
    except RequestError as error:
        if error.code in _OUT_OF_REACH:
            raise RequestError(
                error.code, f"{connection.address}: DescribeQuorum: {error}: its rules may be old, and are not recorded"
            ) from None
