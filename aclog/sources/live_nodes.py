"""The nodes of a running cluster that are alive, each asked over a connection of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Self, TypeVar

from attrs import frozen

from aclog.metalog.errors import MetadataError
from aclog.nodes.client.cluster_requests import (
    CONTROLLERS,
    ClusterNode,
    broker_cluster_id,
    cluster_of_brokers,
    describe_cluster,
)
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.login import connect
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity
from aclog.nodes.wire.api_keys import DESCRIBE_CLUSTER

T = TypeVar("T")

_CONNECT_S = 5.0
"""How long a node may take to be connected to, and to answer: others than those that were given may be out of reach."""


@frozen(kw_only=True)
class LiveNodes:
    """The nodes of a cluster in one role."""

    cluster_id: str
    role: Role
    nodes: Sequence[ClusterNode]
    security: ClientSecurity
    first: Connection | None = None
    """To the server that named the nodes, if it is one of them."""

    @classmethod
    async def brokers(cls, connection: Connection, security: ClientSecurity) -> Self:
        """Return the brokers that are alive. Raises RequestError: the broker does not list them."""
        if DESCRIBE_CLUSTER in connection.apis:
            described = await describe_cluster(connection)
        else:
            described = await cluster_of_brokers(connection)
        alive = [node for node in described.nodes if not node.fenced]
        return cls(cluster_id=described.cluster_id, role=Role.BROKER, nodes=alive, first=connection, security=security)

    @classmethod
    async def controllers(cls, connection: Connection, security: ClientSecurity) -> Self:
        """Return the controllers. Raises RequestError: the controller does not list them."""
        described = await describe_cluster(connection, CONTROLLERS)
        return cls(
            cluster_id=described.cluster_id,
            role=Role.CONTROLLER,
            nodes=described.nodes,
            first=connection,
            security=security,
        )

    async def ask(self, question: Callable[[Connection, ClusterNode], Awaitable[T]]) -> list[T | str]:
        """Return what each node answers, all asked at the same time; or why it cannot be asked."""
        if self.first is not None and len(self.nodes) == 1:  # the address that was given may be the only way to it
            return [await question(self.first, self.nodes[0])]
        return list(await asyncio.gather(*(self._ask(node, question) for node in self.nodes)))

    async def _ask(self, node: ClusterNode, question: Callable[[Connection, ClusterNode], Awaitable[T]]) -> T | str:
        try:
            async with await connect(node.address, self.security, timeout=_CONNECT_S) as connection:
                if await self._id_at(connection) == self.cluster_id:
                    return await question(connection, node)
        except MetadataError as error:
            return str(error)
        return f"{node.address} leads to another cluster from here"

    async def _id_at(self, connection: Connection) -> str:
        if self.role is Role.BROKER:
            return await broker_cluster_id(connection)
        return (await describe_cluster(connection, CONTROLLERS)).cluster_id
