"""Which Kafka each broker of a running cluster runs, by the features that it says it supports (ApiVersions)."""

from collections.abc import Sequence

from aclog.authorizer.generation import CIDR_FEATURE
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import ClusterNode, describe_features
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.snapshots.deciding_kafka import deciding_level
from aclog.snapshots.features import METADATA_VERSION
from aclog.sources.bootstrap import connect_to_first
from aclog.sources.live_nodes import LiveNodes


async def broker_levels(servers: Sequence[HostPort], security: ClientSecurity) -> dict[int, int | None]:
    """Return the newest level of metadata.version that each broker which is alive supports, by id.

    It is None for a broker that does not answer, and 0 for one without metadata.version, before Kafka 3.3. Empty if the
    brokers cannot be listed.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.BROKER) as connection:
        try:
            brokers = await LiveNodes.brokers(connection, security)
        except RequestError:
            return {}
        levels = await brokers.ask(_level)
    return {
        node.node_id: None if isinstance(level, str) else level
        for node, level in zip(brokers.nodes, levels, strict=True)
    }


async def _level(connection: Connection, _node: ClusterNode) -> int | None:
    try:
        supported = (await describe_features(connection)).supported
    except ConfigError:
        return 0  # ApiVersions has no features: a Kafka before 2.4
    except MetadataError:
        return None
    newest = supported.get(METADATA_VERSION, (0, 0))[1]
    return deciding_level(newest, has_ranges=supported.get(CIDR_FEATURE, (0, 0))[1] > 0)
