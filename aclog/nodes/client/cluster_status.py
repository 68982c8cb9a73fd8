"""The state of a cluster, as `aclog status` shows it."""

from attrs import frozen

from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import (
    BROKERS,
    CONTROLLERS,
    ClusterDescription,
    FeaturesDescription,
    QuorumDescription,
    describe_cluster,
    describe_features,
    describe_quorum,
)
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.error_codes import NOT_LEADER_OR_FOLLOWER


@frozen(kw_only=True)
class Status:
    """One server's view of its cluster; `cluster.nodes` are controllers if a controller was asked, else brokers."""

    address: HostPort
    controller: bool
    cluster: ClusterDescription
    quorum: QuorumDescription
    features: FeaturesDescription

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to do something about, in sentences."""
        found = (self.features.upgrade_warning(self.address),)
        return tuple(filter(None, found))


async def describe_status(connection: Connection, security: ClientSecurity, *, controller: bool) -> Status:
    """Query a controller (--bootstrap-controller) or a broker; the quorum is queried at its leader.

    Raises:
        RequestError: a server refuses, for example without DESCRIBE on the cluster; has its code and message.
        UnreachableError, LoginError, ConfigError, DecodeError: as connect and Connection.ask.

    """
    cluster = await describe_cluster(connection, CONTROLLERS if controller else BROKERS)
    return Status(
        address=connection.address,
        controller=controller,
        cluster=cluster,
        quorum=await _quorum(connection, cluster, security),
        features=await describe_features(connection),
    )


async def _quorum(connection: Connection, cluster: ClusterDescription, security: ClientSecurity) -> QuorumDescription:
    try:
        return await describe_quorum(connection)
    except RequestError as error:
        active = next((node for node in cluster.nodes if node.node_id == cluster.controller_id), None)
        if error.code != NOT_LEADER_OR_FOLLOWER or active is None or active.address == connection.address:
            raise
    async with await connect(active.address, security, timeout=connection.timeout) as leader:
        return await describe_quorum(leader)
