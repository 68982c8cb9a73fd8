"""Which Kafka the nodes of a running cluster run, by the features that each says it supports (ApiVersions)."""

from collections.abc import Mapping, Sequence

from attrs import frozen

from aclog.authorizer.generation import RANGES_LEVEL
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import ClusterNode, describe_features, describe_quorum
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import DESCRIBE_QUORUM
from aclog.snapshots.features import METADATA_VERSION
from aclog.sources.bootstrap import connect_to_first
from aclog.sources.live_nodes import LiveNodes


@frozen(kw_only=True)
class LiveLevels:
    """The newest level by which each node decides, by id: None for a node that does not answer.

    It is 0 for one without metadata.version, before Kafka 3.3.
    """

    brokers: Mapping[int, int | None]
    """Of the brokers that are alive; empty if they cannot be listed."""
    controllers: Mapping[int, int | None] | None = None
    """None if they were not asked, or cannot be listed."""


async def live_levels(servers: Sequence[HostPort], security: ClientSecurity, *, controllers: bool) -> LiveLevels:
    """Return what the brokers of a cluster answer, and, if it matters, its controllers.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.BROKER) as connection:
        try:
            live = await LiveNodes.brokers(connection, security)
        except RequestError:
            return LiveLevels(brokers={})
        brokers = await _levels(live)
        also = await _of_quorum(connection, security, live.cluster_id, brokers) if controllers else None
        least = await _finalized(connection)
    return LiveLevels(brokers=_at_least(least, brokers), controllers=None if also is None else _at_least(least, also))


async def live_controller_levels(servers: Sequence[HostPort], security: ClientSecurity) -> dict[int, int | None] | None:
    """Return what the controllers of a cluster answer; None if they cannot be listed.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.CONTROLLER) as connection:
        try:
            return await _levels(await LiveNodes.controllers(connection, security))
        except RequestError:
            return None


async def _of_quorum(
    connection: Connection, security: ClientSecurity, cluster_id: str, brokers: Mapping[int, int | None]
) -> dict[int, int | None] | None:
    """Return what the controllers of a cluster answer whose brokers did: all voters of the quorum that a broker names.

    A controller with the id of a broker is the same process. Others are asked where they say that they listen, with the
    login of the brokers. None if the broker does not name them.
    """
    if DESCRIBE_QUORUM not in connection.apis:  # with ZooKeeper, one of the brokers is the controller
        return dict(brokers)
    try:
        quorum = await describe_quorum(connection)
    except MetadataError:
        return None
    voters = sorted(each.replica_id for each in quorum.voters)
    places = ((voter, quorum.addresses.get(voter)) for voter in voters if voter not in brokers)
    found: dict[int, int | None] = {voter: brokers.get(voter) for voter in voters}
    found |= await _levels(
        LiveNodes(
            cluster_id=cluster_id,
            role=Role.CONTROLLER,
            nodes=[ClusterNode(node_id=voter, address=at) for voter, at in places if at is not None],
            security=security,
        )
    )
    return found


async def _finalized(connection: Connection) -> int:
    """Return the level at which the cluster is finalized: all of its nodes support it. 0 if that is unknown."""
    try:
        return (await describe_features(connection)).finalized.get(METADATA_VERSION, 0)
    except MetadataError:
        return 0


def _at_least(level: int, levels: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the levels with that of the cluster for nodes that did not answer, if it states their generation."""
    known = level if level >= RANGES_LEVEL else None
    return {node: known if found is None else found for node, found in levels.items()}


async def _levels(live: LiveNodes) -> dict[int, int | None]:
    levels = await live.ask(_level)
    return {
        node.node_id: None if isinstance(level, str) else level for node, level in zip(live.nodes, levels, strict=True)
    }


async def _level(connection: Connection, _node: ClusterNode) -> int | None:
    try:
        return (await describe_features(connection)).deciding_level
    except ConfigError:
        return 0  # ApiVersions has no features: a Kafka before 2.4
    except MetadataError:
        return None
