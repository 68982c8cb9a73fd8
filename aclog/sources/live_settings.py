"""The settings of the authorizer of a running cluster, as far as its nodes answer (DescribeConfigs)."""

from collections.abc import Iterable, Sequence

from aclog.authorizer.cluster_settings import READ_CONFIGS, ClusterSettings, NodeSettings
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import ClusterNode
from aclog.nodes.client.config_requests import node_configs
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from aclog.sources.bootstrap import connect_to_first
from aclog.sources.live_nodes import LiveNodes

_OF_BROKERS = "a controller does not answer for a broker that is another process; --bootstrap-server asks brokers"


async def broker_settings(servers: Sequence[HostPort], security: ClientSecurity) -> ClusterSettings:
    """Return what every broker that is alive answers of its own settings; one of them has described ACLs.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.BROKER) as connection:
        try:
            brokers = await LiveNodes.brokers(connection, security)
        except RequestError as error:
            return ClusterSettings(nodes=(NodeSettings(node="the brokers", problem=refusal_text(error, "DESCRIBE")),))
        return ClusterSettings(nodes=await _settings(brokers), serves_acls=True)


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
            live = await LiveNodes.controllers(connection, security)
        except RequestError as error:
            return ClusterSettings(nodes=(NodeSettings(node="the controllers", problem=refusal_text(error, "ALTER")),))
        controllers = await _settings(live)
    by_id = {node.node_id: answer for node, answer in zip(live.nodes, controllers, strict=False)}
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


async def _settings(live: LiveNodes) -> tuple[NodeSettings, ...]:
    """Return what each node answers."""
    kind = live.role.name.lower()
    if not live.nodes:
        return (NodeSettings(node="the cluster", problem=f"it names no {kind} that is alive"),)

    async def ask(connection: Connection, node: ClusterNode) -> NodeSettings:
        return await _answered(f"{kind} {node.node_id}", connection, node.node_id)

    answers = await live.ask(ask)
    return tuple(
        NodeSettings(node=f"{kind} {node.node_id}", problem=answer) if isinstance(answer, str) else answer
        for node, answer in zip(live.nodes, answers, strict=True)
    )


async def _answered(name: str, connection: Connection, node_id: int) -> NodeSettings:
    try:
        configs = await node_configs(connection, node_id, READ_CONFIGS)
    except RequestError as error:
        return NodeSettings(node=name, problem=refusal_text(error, "DESCRIBE_CONFIGS"))
    except MetadataError as error:
        return NodeSettings(node=name, problem=str(error))
    return NodeSettings(node=name, values={key: config.value for key, config in configs.items()})


def refusal_text(error: RequestError, right: str) -> str:
    """Return why a node does not answer, as a clause; `right`: the operation that the question takes."""
    if error.code == CLUSTER_AUTHORIZATION_FAILED:  # a Kafka's own text is the memory address of its request
        return f"the user of --command-config needs {right} on the cluster"
    return str(error)
