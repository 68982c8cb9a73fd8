"""The nodes of one cluster, each with a connection of its own."""

import asyncio
from collections.abc import Callable, Mapping

from attrs import define, field

from aclog.metalog.errors import LogError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import (
    BROKERS,
    CONTROLLERS,
    ClusterDescription,
    ClusterNode,
    QuorumDescription,
    cluster_of_brokers,
    describe_cluster,
    describe_quorum,
)
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import DESCRIBE_CLUSTER, DESCRIBE_QUORUM
from aclog.nodes.wire.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    NOT_CONTROLLER,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    SECURITY_DISABLED,
    UNSUPPORTED_VERSION,
)
from aclog.sources.bootstrap import connect_to_first

_HINTS: Mapping[int, str] = {
    SECURITY_DISABLED: "a cluster without authorizer.class.name has no ACLs",
}

_LEADERLESS = frozenset({NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, NOT_CONTROLLER})
"""Errors of a quorum that is electing a leader."""


@define(eq=False)
class ClusterNodes:
    """Brokers or controllers, found by some of their addresses; owned by one event loop.

    A connection that was lost is opened again by the next call.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    role: Role
    notify: Callable[[str], None]
    _cluster_id: str | None = field(default=None, init=False)
    """Of the first node that was asked; all others must be of the same cluster. None before that."""
    _tells_no_mark: bool = field(default=False, init=False)
    _first: Connection | None = field(default=None, init=False)
    _kept: dict[HostPort, Connection] = field(factory=dict, init=False)

    @property
    def name(self) -> str:
        """The servers that were given."""
        return ",".join(map(str, self.servers))

    async def first(self) -> Connection:
        """Return a connection to the first of the given servers that responds.

        Raises:
            LogError: none responds, one is of the other role, or of another cluster than before.
            RequestError: it does not name its cluster to this login.

        """
        if self._first is None or self._first.failure is not None:
            self._first = await self._responding()
        return self._first

    async def _responding(self) -> Connection:
        for server in self.servers[:-1]:
            try:
                return await self._to(server)
            except UnreachableError:
                continue
        return await self._to(self.servers[-1])

    async def _to(self, server: HostPort) -> Connection:
        return await self._of_this_cluster(await connect_to_first((server,), self.security, self.role))

    async def at(self, address: HostPort) -> Connection:
        """Return a connection to this node. Raises as aclog.nodes.client.login.connect, and as `first`."""
        kept = self._kept.get(address)
        if kept is None or kept.failure is not None:
            kept = self._kept[address] = await self._of_this_cluster(await connect(address, self.security))
        return kept

    async def _of_this_cluster(self, connection: Connection) -> Connection:
        """Return the connection if it leads to the cluster of all others: a name may lead to another one meanwhile."""
        try:
            self._check_cluster((await self._describe(connection)).cluster_id, connection.address)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _check_cluster(self, found: str, address: HostPort) -> None:
        if self._cluster_id not in {None, found}:
            expected = f"expected one of cluster {self._cluster_id}, as the others"
            raise LogError(f"{address}: a node of cluster {found}: {expected}")
        self._cluster_id = found

    async def description(self) -> ClusterDescription:
        """Return the cluster's id and its nodes of this role, fenced ones included. Raises RequestError, LogError."""
        return await self._describe(await self.first())

    async def _describe(self, connection: Connection) -> ClusterDescription:
        try:
            if self.role is Role.BROKER and DESCRIBE_CLUSTER not in connection.apis:
                return await cluster_of_brokers(connection)
            return await describe_cluster(connection, BROKERS if self.role is Role.BROKER else CONTROLLERS)
        except RequestError as error:
            # Controllers want more of it than brokers do (ControllerApis.handleDescribeCluster).
            right = "DESCRIBE" if self.role is Role.BROKER else "ALTER"
            raise explained(connection, "DescribeCluster", error, right) from None

    async def serving(self) -> tuple[tuple[ClusterNode, Connection], ...]:
        """Return the nodes that are not fenced, each with a connection; of controllers, those that respond.

        Nobody fences a controller that died. So most of them must respond: no minority holds anything newer.

        Raises:
            UnreachableError: a broker does not respond, or half of the controllers do not.
            MetadataError: as `description` and `at`.

        """
        nodes = [node for node in (await self.description()).nodes if not node.fenced]
        if not nodes:
            raise UnreachableError(f"{self.name}: the cluster names no {self.role.name.lower()} that is not fenced")
        if len(nodes) == 1:
            return ((nodes[0], await self.first()),)  # by the address that was given: it may be the only way to it
        connections = await asyncio.gather(*(self.at(node.address) for node in nodes), return_exceptions=True)
        found, failures = [], []
        for node, connection in zip(nodes, connections, strict=True):
            if isinstance(connection, BaseException):
                failures.append(self._unreachable(node, connection))
            else:
                found.append((node, connection))
        needed = len(nodes) if self.role is Role.BROKER else len(nodes) // 2 + 1
        if len(found) < needed:
            raise failures[0]
        return tuple(found)

    def _unreachable(self, node: ClusterNode, error: BaseException) -> BaseException:
        if not isinstance(error, UnreachableError):
            return error
        return UnreachableError(
            f"{error} (node {node.node_id} of {self.name}: what the nodes answer is compared, so "
            f"{'each broker that serves' if self.role is Role.BROKER else 'most of them'} must be reachable from here)"
        )

    async def writing(self) -> Connection:
        """Return a connection to a node that takes changes: any broker, or the active controller. Raises as `at`."""
        if self.role is Role.BROKER:
            return await self.first()
        found = await self.description()
        active = next((node for node in found.nodes if node.node_id == found.controller_id), None)
        if active is None:
            raise UnreachableError(f"{self.name}: no controller is active now: try again in a few seconds")
        return await (self.first() if len(found.nodes) == 1 else self.at(active.address))

    async def quorum(self) -> QuorumDescription | None:
        """Return the quorum as its leader sees it; None if the cluster has none, or never tells this login of it.

        What a Kafka lets describe ACLs may also describe the quorum; a service may serve the one and not the other.

        Raises:
            RequestError, LogError: it does not tell now; UnreachableError if it may soon.

        """
        connection = await self.writing()
        if DESCRIBE_QUORUM not in connection.apis or self._tells_no_mark:
            return None
        try:
            return await describe_quorum(connection)
        except RequestError as error:
            if error.code in {CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION}:
                self._tells_no_mark = True
                self.notify(
                    f"{connection.address}: does not tell the quorum's high-water mark, so that its nodes are only "
                    f"compared with one another: {error}"
                )
                return None
            found = explained(connection, "DescribeQuorum", error, "DESCRIBE")
            raise UnreachableError(str(found)) if error.code in _LEADERLESS else found from None

    async def close(self) -> None:
        """Close all connections."""
        kept = [*self._kept.values(), *([] if self._first is None else [self._first])]
        await asyncio.gather(*(connection.close() for connection in kept), return_exceptions=True)


def explained(connection: Connection, request: str, error: MetadataError, right: str) -> RequestError:
    """Return the error of a request that a server refused, with the server, and with the right that it needs."""
    code = error.code if isinstance(error, RequestError) else -1
    if code == CLUSTER_AUTHORIZATION_FAILED:  # a Kafka's own text is the memory address of its request
        what = f"not authorized: the user of --command-config needs {right} on the cluster"
    else:
        hint = _HINTS.get(code)
        what = f"{error}{f' ({hint})' if hint else ''}"
    return RequestError(code, f"{connection.address}: {request}: {what}")
