"""What the nodes of a cluster tell of themselves, each asked on a connection of its own."""

import asyncio

from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import ClusterDescription, FeaturesDescription, describe_features
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort

_SECONDS = 5.0
"""For a connection, and for each response: a node that is down must not keep the others waiting."""
_AT_ONCE = 16


async def features_of_nodes(
    cluster: ClusterDescription, security: ClientSecurity
) -> dict[HostPort, FeaturesDescription | None]:
    """Return the features of each node that a cluster names; None for one that does not tell them."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(address: HostPort) -> FeaturesDescription | None:
        """Ask one node."""
        async with slots:
            try:
                async with await connect(address, security, timeout=_SECONDS) as connection:
                    return await describe_features(connection)
            except (MetadataError, RequestError):
                return None

    addresses = list(dict.fromkeys(node.address for node in cluster.nodes))
    return dict(zip(addresses, await asyncio.gather(*map(ask, addresses)), strict=True))
