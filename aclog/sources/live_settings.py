"""The settings of the authorizer of a running cluster, as far as its nodes answer (DescribeConfigs)."""

import asyncio
from collections.abc import Iterable, Sequence

from aclog.authorizer.cluster_settings import READ_CONFIGS, ClusterSettings, NodeSettings
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import CONTROLLERS, ClusterNode, cluster_of_brokers, describe_cluster
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
        return ClusterSettings(nodes=await _of_nodes(alive, "broker", connection, security), serves_acls=True)


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
        controllers = await _of_nodes(described.nodes, "controller", connection, security)
    by_id = {node.node_id: found for node, found in zip(described.nodes, controllers, strict=True)}
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


async def _of_nodes(
    nodes: Sequence[ClusterNode], kind: str, first: Connection, security: ClientSecurity
) -> tuple[NodeSettings, ...]:
    if len(nodes) == 1:  # by the address that was given: it may be the only way to it
        return (await _answered(f"{kind} {nodes[0].node_id}", first, nodes[0].node_id),)
    return tuple(await asyncio.gather(*(_of_node(node, kind, security) for node in nodes)))


async def _of_node(node: ClusterNode, kind: str, security: ClientSecurity) -> NodeSettings:
    name = f"{kind} {node.node_id}"
    try:
        async with await connect(node.address, security, timeout=_CONNECT_S) as connection:
            return await _answered(name, connection, node.node_id)
    except MetadataError as error:
        return NodeSettings(node=name, problem=str(error))


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
