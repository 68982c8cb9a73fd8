"""The settings of the authorizer of a running cluster, as far as its nodes answer (DescribeConfigs)."""

import asyncio
from collections.abc import Iterable, Sequence

from attrs import frozen

from aclog.authorizer.cluster_settings import READ_CONFIGS, ClusterSettings, NodeSettings
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import (
    CONTROLLERS,
    ClusterNode,
    broker_cluster_id,
    cluster_of_brokers,
    describe_cluster,
)
from aclog.nodes.client.config_requests import node_configs
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.login import connect
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import DESCRIBE_CLUSTER
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from aclog.sources.bootstrap import connect_to_first

_CONNECT_S = 5.0
"""How long a node may take to be connected to, and to answer: others than those that were given may be out of reach."""
_OF_BROKERS = "a controller does not answer for a broker that is another process; --bootstrap-server asks brokers"


async def broker_settings(servers: Sequence[HostPort], security: ClientSecurity) -> ClusterSettings:
    """Return what every broker that is alive answers of its own settings; one of them has described ACLs.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.BROKER) as connection:
        try:
            if DESCRIBE_CLUSTER in connection.apis:
                described = await describe_cluster(connection)
            else:
                described = await cluster_of_brokers(connection)
        except RequestError as error:
            return ClusterSettings(nodes=(NodeSettings(node="the brokers", problem=_refused(error, "DESCRIBE")),))
        alive = [node for node in described.nodes if not node.fenced]
        asked = _Asked(cluster_id=described.cluster_id, role=Role.BROKER, first=connection, security=security)
        return ClusterSettings(nodes=await asked.nodes(alive), serves_acls=True)


async def controller_settings(
    servers: Sequence[HostPort], security: ClientSecurity, brokers: Iterable[int]
) -> ClusterSettings:
    """Return what is known of the settings of these brokers by what the controllers answer.

    A controller answers for its own process only, which is a broker as well if both have the same id. Without brokers
    it is what the controllers answer of themselves.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.CONTROLLER) as connection:
        try:
            described = await describe_cluster(connection, CONTROLLERS)
        except RequestError as error:
            return ClusterSettings(nodes=(NodeSettings(node="the controllers", problem=_refused(error, "ALTER")),))
        asked = _Asked(cluster_id=described.cluster_id, role=Role.CONTROLLER, first=connection, security=security)
        controllers = await asked.nodes(described.nodes)
    by_id = {node.node_id: answer for node, answer in zip(described.nodes, controllers, strict=False)}
    lacking = any(each.authorizer == "" for each in controllers)
    alive = sorted(brokers)
    if not alive:
        return ClusterSettings(nodes=controllers)
    return ClusterSettings(
        nodes=tuple(
            by_id.get(each) or NodeSettings(node=f"broker {each}", problem=_OF_BROKERS, may_lack_authorizer=lacking)
            for each in alive
        )
    )


def refuse_without_authorizer(settings: ClusterSettings, name: str) -> None:
    """Raise RequestError, as a broker answers it, if no node of the cluster has an authorizer."""
    if settings.has_no_authorizer:
        raise RequestError(
            SECURITY_DISABLED,
            f"{name}: DescribeConfigs: no node has an authorizer (a cluster without authorizer.class.name has no ACLs, "
            "and allows everything)",
        )


@frozen(kw_only=True)
class _Asked:
    """A cluster whose nodes are asked."""

    cluster_id: str
    role: Role
    first: Connection
    """To the server that named the nodes."""
    security: ClientSecurity

    async def nodes(self, nodes: Sequence[ClusterNode]) -> tuple[NodeSettings, ...]:
        """Return what each node answers, asked at the same time."""
        if not nodes:
            return (NodeSettings(node="the cluster", problem=f"it names no {self._kind} that is alive"),)
        if len(nodes) == 1:  # by the address that was given: it may be the only way to it
            return (await _answered(self._name(nodes[0]), self.first, nodes[0].node_id),)
        return tuple(await asyncio.gather(*map(self._node, nodes)))

    @property
    def _kind(self) -> str:
        return self.role.name.lower()

    def _name(self, node: ClusterNode) -> str:
        return f"{self._kind} {node.node_id}"

    async def _node(self, node: ClusterNode) -> NodeSettings:
        name = self._name(node)
        try:
            async with await connect(node.address, self.security, timeout=_CONNECT_S) as connection:
                if await self._id_at(connection) == self.cluster_id:
                    return await _answered(name, connection, node.node_id)
        except MetadataError as error:
            return NodeSettings(node=name, problem=str(error))
        return NodeSettings(node=name, problem=f"{node.address} leads to another cluster from here")

    async def _id_at(self, connection: Connection) -> str:
        if self.role is Role.BROKER:
            return await broker_cluster_id(connection)
        return (await describe_cluster(connection, CONTROLLERS)).cluster_id


async def _answered(name: str, connection: Connection, node_id: int) -> NodeSettings:
    try:
        configs = await node_configs(connection, node_id, READ_CONFIGS)
    except RequestError as error:
        return NodeSettings(node=name, problem=_refused(error, "DESCRIBE_CONFIGS"))
    except MetadataError as error:
        return NodeSettings(node=name, problem=str(error))
    return NodeSettings(node=name, values={key: config.value for key, config in configs.items()})


def _refused(error: RequestError, right: str) -> str:
    if error.code == CLUSTER_AUTHORIZATION_FAILED:  # a Kafka's own text is the memory address of its request
        return f"the user of --command-config needs {right} on the cluster"
    return str(error)
