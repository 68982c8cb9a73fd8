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
from aclog.nodes.client.node_features import features_of_nodes
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
    cidr: dict[HostPort, bool | None]
    """By node of `cluster`: whether it decides by CIDR ranges; None for one that did not tell."""
    authorizers: dict[HostPort, bool | None]
    """By node of `cluster`: whether it has an authorizer; None for one that did not tell."""
    logged_in: bool = False
    """Whether the nodes were asked with a login: it is for nothing without an authorizer."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to do something about, in sentences."""
        found = (self.features.upgrade_warning(self.address), self._cidr_warning(), self._authorizer_warning())
        return tuple(filter(None, found))

    @property
    def open_nodes(self) -> tuple[HostPort, ...]:
        """The nodes without an authorizer."""
        return tuple(at for at, has_one in self.authorizers.items() if has_one is False)

    def _authorizer_warning(self) -> str | None:
        """Return a warning unless the whole cluster is open, to everybody without a login, as is probably meant."""
        if not self.open_nodes or not (self.logged_in or True in self.authorizers.values()):
            return None
        return (
            f"no authorizer at {', '.join(map(str, self.open_nodes))}: everybody who connects may do everything there. "
            "Set authorizer.class.name"
        )

    def _cidr_warning(self) -> str | None:
        on, off = ([str(at) for at, cidr in self.cidr.items() if cidr is wanted] for wanted in (True, False))
        if not on or not off:
            return None
        return (
            f"aclog.cidr.enabled is true at {', '.join(on)} and false at {', '.join(off)}: the same request is decided "
            "differently. Set it alike at all nodes, controllers too"
        )


async def describe_status(connection: Connection, security: ClientSecurity, *, controller: bool) -> Status:
    """Query a controller (--bootstrap-controller) or a broker; the quorum is queried at its leader.

    Raises:
        RequestError: a server refuses, for example without DESCRIBE on the cluster; has its code and message.
        UnreachableError, LoginError, ConfigError, DecodeError: as connect and Connection.ask.

    """
    cluster = await describe_cluster(connection, CONTROLLERS if controller else BROKERS)
    nodes = await features_of_nodes(cluster, security)
    return Status(
        address=connection.address,
        controller=controller,
        cidr={at: each.features.cidr if each.features is not None else None for at, each in nodes.items()},
        authorizers={at: each.authorizer for at, each in nodes.items()},
        logged_in=_logs_in(security),
        cluster=cluster,
        quorum=await _quorum(connection, cluster, security),
        features=await describe_features(connection),
    )


def _logs_in(security: ClientSecurity) -> bool:
    tls = security.tls
    return security.sasl_mechanism is not None or bool(tls and (tls.keystore or tls.certificate_chain_pem))


async def _quorum(connection: Connection, cluster: ClusterDescription, security: ClientSecurity) -> QuorumDescription:
    try:
        return await describe_quorum(connection)
    except RequestError as error:
        active = next((node for node in cluster.nodes if node.node_id == cluster.controller_id), None)
        if error.code != NOT_LEADER_OR_FOLLOWER or active is None or active.address == connection.address:
            raise
    async with await connect(active.address, security, timeout=connection.timeout) as leader:
        return await describe_quorum(leader)
