"""What the nodes of a cluster tell of themselves, each asked on a connection of its own."""

import asyncio

from attrs import frozen

from aclog.authorizer.acl import AclBindingFilter
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.acl_requests import describe_acls
from aclog.nodes.client.cluster_requests import ClusterDescription, FeaturesDescription, describe_features
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.error_codes import SECURITY_DISABLED

_SECONDS = 5.0
"""For a connection, and for each response: a node that is down must not keep the others waiting."""
_AT_ONCE = 16
_NO_ACL = AclBindingFilter(principal="", host="")
"""A filter that matches nothing, as no ACL has a principal without a colon."""


@frozen(kw_only=True)
class NodeFeatures:
    """A node's features, and whether it has an authorizer; None for what it did not tell."""

    features: FeaturesDescription | None = None
    authorizer: bool | None = None


async def features_of_nodes(cluster: ClusterDescription, security: ClientSecurity) -> dict[HostPort, NodeFeatures]:
    """Return what each node that a cluster names tells."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(address: HostPort) -> NodeFeatures:
        """Ask one node."""
        async with slots:
            try:
                async with await connect(address, security, timeout=_SECONDS) as connection:
                    features = await describe_features(connection)
                    return NodeFeatures(features=features, authorizer=await has_authorizer(connection))
            except (MetadataError, RequestError):
                return NodeFeatures()

    addresses = list(dict.fromkeys(node.address for node in cluster.nodes))
    return dict(zip(addresses, await asyncio.gather(*map(ask, addresses)), strict=True))


async def has_authorizer(connection: Connection) -> bool | None:
    """Whether a server has an authorizer, by its answer to DescribeAcls; None if it does not let this login ask."""
    try:
        await describe_acls(connection, _NO_ACL)
    except RequestError as error:
        return False if error.code == SECURITY_DISABLED else None
    except MetadataError:
        return None
    return True
