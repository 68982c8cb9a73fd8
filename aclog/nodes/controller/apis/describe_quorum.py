"""DescribeQuorum: leader, voters, observers and their log end offsets (KIP-595, KIP-836, KIP-853)."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from aclog.nodes.apis.request import Request
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.controller.apis.quorum_state import METADATA_TOPIC, Quorum, ReplicaState
from aclog.nodes.wire.api_keys import DESCRIBE_QUORUM
from aclog.nodes.wire.error_codes import NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
from aclog.nodes.wire.message_builder import build, build_response


@frozen(kw_only=True)
class QuorumDescription:
    """The quorum as this controller sees it at `now`, in ms since 1970.

    A controller that is not the leader responds with NOT_LEADER_OR_FOLLOWER and the leader it knows. Controllers that
    share a log on a topic are all reported as voters, since any may lead; the offsets of the others are unknown (-1).
    """

    quorum: Quorum
    high_watermark: int
    end_offset: int
    now: int

    def encoded(self, request: Request) -> bytes:
        """Return the encoded body of the DescribeQuorumResponse (versions 0 to 2) on the metadata partition."""
        version = request.header.api_version
        topic = _part(version, "TopicData", topic_name=METADATA_TOPIC, partitions=(self._partition(version),))
        return build_response(
            DESCRIBE_QUORUM, version, topics=(topic,), nodes=self._nodes(version) if version >= 2 else ()
        )

    def _partition(self, version: int) -> Any:
        return self._led(version) if self.quorum.leads else self._refused(version)

    def _refused(self, version: int) -> Any:
        known = self.quorum.leader()
        return _part(
            version,
            "PartitionData",
            partition_index=0,
            error_code=NOT_LEADER_OR_FOLLOWER,
            error_message="This node does not lead the metadata log.",
            leader_id=known.leader_id,
            leader_epoch=known.epoch,
        )

    def _led(self, version: int) -> Any:
        quorum = self.quorum
        # The leader reports itself as caught up now, as in LeaderState.describeReplicaState.
        leader = ReplicaState(
            replica_id=quorum.node_id,
            directory_id=quorum.directory_id,
            log_end_offset=self.end_offset,
            last_fetch_timestamp=self.now,
            last_caught_up_timestamp=self.now,
        )
        others = [_not_known(voter_id) for voter_id in sorted(quorum.voters.keys() - {quorum.node_id})]
        return _part(
            version,
            "PartitionData",
            partition_index=0,
            leader_id=quorum.node_id,
            leader_epoch=quorum.leader().epoch,
            high_watermark=self.high_watermark,
            current_voters=tuple(_replica(version, each) for each in (leader, *others)),
            observers=tuple(_replica(version, each) for each in quorum.observers(self.now)),
        )

    def _nodes(self, version: int) -> tuple[Any, ...]:
        """Return the voters' endpoints: this node's controller listeners, and the others' configured addresses."""
        quorum = self.quorum
        if not quorum.leads:
            return ()
        first = quorum.listener_names[0]
        nodes = {voter: {first: at} for voter, at in quorum.voters.items()}
        nodes[quorum.node_id] = {name: at for name, at in quorum.advertised.items() if name in quorum.listener_names}
        return tuple(_node(version, node_id, nodes[node_id]) for node_id in sorted(nodes))


def names_metadata_partition(request: Request) -> bool:
    """Whether a DescribeQuorum request names the metadata partition and no other."""
    topics = [topic for topic in request.body.topics if topic.partitions]
    return (
        len(topics) == 1
        and topics[0].topic_name == METADATA_TOPIC
        and [each.partition_index for each in topics[0].partitions] == [0]
    )


def unknown_partitions(request: Request) -> bytes:
    """Return the encoded response to a request that names another partition: all are unknown then, as in Kafka."""
    version = request.header.api_version
    return build_response(
        DESCRIBE_QUORUM, version, topics=tuple(_unknown(version, each) for each in request.body.topics)
    )


def _not_known(voter_id: int) -> ReplicaState:
    return ReplicaState(
        replica_id=voter_id,
        directory_id=None,
        log_end_offset=-1,
        last_fetch_timestamp=-1,
        last_caught_up_timestamp=-1,
    )


def _node(version: int, node_id: int, addresses: Mapping[str, HostPort]) -> Any:
    listeners = tuple(
        _part(version, "Listener", name=name, host=at.host, port=at.port) for name, at in addresses.items()
    )
    return _part(version, "Node", node_id=node_id, listeners=listeners)


def _unknown(version: int, topic: Any) -> Any:
    partitions = tuple(
        _part(
            version,
            "PartitionData",
            partition_index=each.partition_index,
            error_code=UNKNOWN_TOPIC_OR_PARTITION,
            error_message="This server does not host this topic-partition.",
        )
        for each in topic.partitions
    )
    return _part(version, "TopicData", topic_name=topic.topic_name, partitions=partitions)


def _replica(version: int, state: ReplicaState) -> Any:
    return _part(
        version,
        "ReplicaState",
        replica_id=state.replica_id,
        replica_directory_id=state.directory_id,
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp=state.last_fetch_timestamp,
        last_caught_up_timestamp=state.last_caught_up_timestamp,
    )


def _part(version: int, structure: str, /, **values: Any) -> Any:
    return build(DESCRIBE_QUORUM, version, "response", structure, **values)
