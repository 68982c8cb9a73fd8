"""Requests about the cluster, the quorum and the features."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation
from aclog.authorizer.generation import CIDR_FEATURE, deciding_level
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_QUORUM, METADATA
from aclog.nodes.wire.message_builder import build
from aclog.snapshots.features import METADATA_VERSION, NEWEST_METADATA_VERSION
from aclog.snapshots.newer_kafka import KAFKA_VERSION_CONFIG

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types of DescribeCluster (KIP-919): brokers describe brokers only, controllers controllers only."""

NO_TIMESTAMP = -1

_FIRST_WITH_ALL_TOPICS, _FIRST_WITH_CLUSTER_ID, _NEWEST_METADATA = 1, 2, 13


@frozen(kw_only=True)
class ClusterNode:
    """A broker or a controller, and whether it is fenced."""

    node_id: int
    address: HostPort
    fenced: bool = False


@frozen(kw_only=True)
class ClusterDescription:
    """A cluster's id, its active controller (a broker may name any broker), and its nodes of one endpoint type."""

    cluster_id: str
    controller_id: int
    nodes: tuple[ClusterNode, ...]
    operations: frozenset[AclOperation] | None = None
    """What the login may do with the cluster; None if that was not asked, or is not told."""

    def may(self, operation: AclOperation) -> bool | None:
        """Return whether the login may do this with the cluster; None if that is not known."""
        return None if self.operations is None else operation in self.operations


@frozen(kw_only=True)
class ReplicaDescription:
    """A voter or an observer as the leader sees it; timestamps in ms since 1970, -1 if unknown."""

    replica_id: int
    directory_id: UUID | None
    log_end_offset: int
    last_fetch_timestamp: int = NO_TIMESTAMP
    last_caught_up_timestamp: int = NO_TIMESTAMP


@frozen(kw_only=True)
class QuorumDescription:
    """The quorum as its leader sees it (org.apache.kafka.clients.admin.QuorumInfo)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]
    addresses: Mapping[int, HostPort] = field(factory=dict)
    """By voter, where it listens as a controller; empty if the server does not say (before Kafka 3.9)."""


@frozen(kw_only=True)
class FeaturesDescription:
    """The finalized feature levels and their epoch, and the supported ones as (min, max)."""

    finalized: dict[str, int]
    finalized_epoch: int
    supported: dict[str, tuple[int, int]]

    @property
    def cidr(self) -> bool:
        """Whether the server is a node of ours that decides by CIDR ranges (aclog.cidr.enabled)."""
        return CIDR_FEATURE in self.supported

    @property
    def deciding_level(self) -> int:
        """The level of metadata.version by which the server decides (aclog.authorizer.generation)."""
        return deciding_level(self.supported.get(METADATA_VERSION, (0, 0))[1], has_ranges=self.cidr)

    def upgrade_warning(self, server: HostPort, newest: int = NEWEST_METADATA_VERSION) -> str | None:
        """Return a warning if the cluster could be raised to a metadata.version at which nodes of ours stop.

        `newest` is the highest level that the node asking supports.
        """
        _, most = self.supported.get(METADATA_VERSION, (0, 0))
        if most <= newest:
            return None
        if newest < NEWEST_METADATA_VERSION:
            return (
                f"{server} supports metadata.version up to {most}, and this node up to {newest}: it stops at a higher "
                f"one. Set {KAFKA_VERSION_CONFIG}=4.4 when the cluster's brokers run Kafka 4.4, before you raise it"
            )
        return (
            f"{server} supports metadata.version up to {most}, and this aclog up to {NEWEST_METADATA_VERSION}: nodes "
            "of aclog stop at a higher one. Upgrade aclog before you raise the cluster's"
        )


async def describe_cluster(
    connection: Connection, endpoint_type: int = BROKERS, *, with_operations: bool = False
) -> ClusterDescription:
    """Return the cluster and its nodes of this endpoint type; with what the login may do with it, if asked.

    Raises:
        RequestError: the server refuses, or is of the other type; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the server is too old.

    """
    # Version 1 has endpoint types (KIP-919), version 2 fenced brokers (KIP-1073).
    oldest, newest = (0, 2) if endpoint_type == BROKERS else (1, 1)
    version = connection.version(DESCRIBE_CLUSTER, oldest, newest)
    response = await connection.ask(
        build(
            DESCRIBE_CLUSTER,
            version,
            "request",
            endpoint_type=endpoint_type,
            include_fenced_brokers=True,
            include_cluster_authorized_operations=with_operations,
        )
    )
    _check(response)
    nodes = tuple(
        ClusterNode(
            node_id=node.broker_id,
            address=HostPort(host=node.host, port=node.port),
            fenced=getattr(node, "is_fenced", False),
        )
        for node in response.brokers
    )
    return ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=nodes,
        operations=_operations(response.cluster_authorized_operations) if with_operations else None,
    )


async def cluster_of_brokers(connection: Connection) -> ClusterDescription:
    """Return the cluster and its brokers by Metadata, for brokers that are too old for DescribeCluster (KIP-700).

    Raises:
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the broker is older than 0.10.1.

    """
    version = connection.version(METADATA, _FIRST_WITH_CLUSTER_ID, _NEWEST_METADATA)
    response = await connection.ask(build(METADATA, version, "request", topics=()))
    nodes = tuple(
        ClusterNode(node_id=node.node_id, address=HostPort(host=node.host, port=node.port)) for node in response.brokers
    )
    return ClusterDescription(cluster_id=response.cluster_id or "", controller_id=response.controller_id, nodes=nodes)


def _operations(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations of a bit field; a server that does not tell sends the least number."""
    return None if bits < 0 else frozenset(each for each in AclOperation if bits >> each & 1)


async def cluster_id_of(controllers: Sequence[HostPort], security: ClientSecurity) -> str:
    """Return the id of these controllers' cluster, from the first one that responds.

    Raises:
        MetadataError: none responds; the last one's error.

    """
    last: MetadataError = UnreachableError("no controller is known")
    for address in controllers:
        try:
            return await _controller_cluster_id(address, security)
        except MetadataError as error:
            last = error
    raise last


async def broker_cluster_id(connection: Connection) -> str:
    """Return the id of a broker's cluster, by DescribeCluster, or by Metadata if the broker is too old for that.

    Raises:
        RequestError: the broker refuses; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; also if the cluster has no id.
        ConfigError: the broker supports neither request.

    """
    if DESCRIBE_CLUSTER in connection.apis:
        found = (await describe_cluster(connection)).cluster_id
    else:
        found = (await cluster_of_brokers(connection)).cluster_id
    if not found:
        raise DecodeError("no cluster id: expected one, as every Kafka has since 0.10.1", path=str(connection.address))
    return str(found)


async def topic_names(connection: Connection) -> list[str]:
    """Return the names of all topics that a broker shows to the connection's user, internal ones included (Metadata).

    Raises:
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the broker is too old.

    """
    version = connection.version(METADATA, _FIRST_WITH_ALL_TOPICS, _NEWEST_METADATA)
    response = await connection.ask(build(METADATA, version, "request", topics=None))
    # A topic that the user may not describe is left out, or has an error and perhaps no name.
    return [topic.name for topic in response.topics if topic.error_code == 0 and topic.name]


async def _controller_cluster_id(address: HostPort, security: ClientSecurity) -> str:
    async with await connect(address, security) as connection:
        return (await describe_cluster(connection, CONTROLLERS)).cluster_id


async def describe_quorum(connection: Connection) -> QuorumDescription:
    """Return the quorum as its leader sees it; brokers forward the request to the leader.

    Raises:
        RequestError: as describe_cluster; code 6 (NOT_LEADER_OR_FOLLOWER) from a controller that is not active.
        UnreachableError, DecodeError, ConfigError: as describe_cluster.

    """
    version = connection.version(DESCRIBE_QUORUM, 0, 2)
    partition = build(DESCRIBE_QUORUM, version, "request", "PartitionData", partition_index=0)
    topic = build(
        DESCRIBE_QUORUM, version, "request", "TopicData", topic_name="__cluster_metadata", partitions=(partition,)
    )
    response = await connection.ask(build(DESCRIBE_QUORUM, version, "request", topics=(topic,)))
    _check(response)
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    if len(partitions) != 1:
        raise DecodeError(
            f"a DescribeQuorum response of {len(partitions)} partitions: expected 1", path=str(connection.address)
        )
    found = partitions[0]
    _check(found)
    return QuorumDescription(
        leader_id=found.leader_id,
        leader_epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        voters=tuple(map(_replica, found.current_voters)),
        observers=tuple(map(_replica, found.observers)),
        addresses={
            int(node.node_id): HostPort(host=first.host, port=first.port)
            for node in getattr(response, "nodes", ())
            for first in node.listeners[:1]
        },
    )


def _replica(found: Any) -> ReplicaDescription:
    return ReplicaDescription(
        replica_id=found.replica_id,
        directory_id=getattr(found, "replica_directory_id", None),
        log_end_offset=found.log_end_offset,
        last_fetch_timestamp=getattr(found, "last_fetch_timestamp", NO_TIMESTAMP),
        last_caught_up_timestamp=getattr(found, "last_caught_up_timestamp", NO_TIMESTAMP),
    )


async def describe_features(connection: Connection) -> FeaturesDescription:
    """Return the cluster's finalized features and the server's supported ones. Raises as describe_cluster."""
    # Features are in the tagged fields of version 3 and later (KIP-584).
    version = connection.version(API_VERSIONS, 3, 4)
    response = await connection.ask(
        build(API_VERSIONS, version, "request", client_software_name="aclog", client_software_version="0")
    )
    _check(response)
    return FeaturesDescription(
        finalized={found.name: found.max_version_level for found in response.finalized_features},
        finalized_epoch=response.finalized_features_epoch,
        supported={found.name: (found.min_version, found.max_version) for found in response.supported_features},
    )


def _check(response: Any) -> None:
    if response.error_code:
        raise RequestError(int(response.error_code), getattr(response, "error_message", None))
