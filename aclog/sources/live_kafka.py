"""Which Kafka each broker of a running cluster runs, by the features that it says it supports (ApiVersions)."""

import asyncio
from collections.abc import Sequence

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import cluster_of_brokers, describe_cluster, describe_features
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.login import connect
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import DESCRIBE_CLUSTER
from aclog.snapshots.deciding_kafka import RANGES_FEATURE, deciding_level
from aclog.snapshots.features import METADATA_VERSION
from aclog.sources.bootstrap import connect_to_first

_CONNECT_S = 5.0
"""How long a broker may take to be connected to: others than those that were given may be out of reach."""


async def broker_levels(servers: Sequence[HostPort], security: ClientSecurity) -> dict[int, int | None]:
    """Return the newest level of metadata.version that each broker which is alive supports, by id.

    It is None for a broker that does not answer, and 0 for one without metadata.version, before Kafka 3.3. Empty if the
    brokers cannot be listed.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.BROKER) as connection:
        try:
            if DESCRIBE_CLUSTER in connection.apis:
                described = await describe_cluster(connection)
            else:
                described = await cluster_of_brokers(connection)
        except RequestError:
            return {}
        alive = [node for node in described.nodes if not node.fenced]
        if len(alive) == 1:  # by the address that was given: it may be the only way to it
            return {alive[0].node_id: await _level(connection)}
        levels = await asyncio.gather(*(_level_at(node.address, security) for node in alive))
        return dict(zip((node.node_id for node in alive), levels, strict=True))


async def _level_at(address: HostPort, security: ClientSecurity) -> int | None:
    try:
        async with await connect(address, security, timeout=_CONNECT_S) as connection:
            return await _level(connection)
    except MetadataError:
        return None


async def _level(connection: Connection) -> int | None:
    try:
        supported = (await describe_features(connection)).supported
    except ConfigError:
        return 0  # ApiVersions has no features: a Kafka before 2.4
    except MetadataError:
        return None
    newest = supported.get(METADATA_VERSION, (0, 0))[1]
    return deciding_level(newest, has_ranges=supported.get(RANGES_FEATURE, (0, 0))[1] > 0)
