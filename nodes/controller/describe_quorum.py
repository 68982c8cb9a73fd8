"""DescribeQuorum: who leads, who votes, who follows and how far (KIP-595, KIP-836, KIP-853)."""

from typing import Any

from attrs import frozen

from nodes.controller.quorum import METADATA_TOPIC, Quorum, ReplicaState
from nodes.request import Request
from nodes.wire.apis import DESCRIBE_QUORUM
from nodes.wire.building import answer, build
from nodes.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION


@frozen(kw_only=True)
class QuorumDescription:
    """What a leader can tell of its quorum at `now`, in ms since 1970."""

    quorum: Quorum
    high_watermark: int
    end_offset: int
    now: int

    def encoded(self, request: Request) -> bytes:
        """The body of the answer to a DescribeQuorumRequest (versions 0 to 2).

        Where anything but the metadata partition is asked for, every partition of the request is unknown.
        """
        version = request.header.api_version
        asked = [(topic.topic_name, each.partition_index) for topic in request.body.topics for each in topic.partitions]
        if asked != [(METADATA_TOPIC, 0)]:
            return answer(
                DESCRIBE_QUORUM, version, topics=tuple(_unknown(version, each) for each in request.body.topics)
            )
        topic = _part(version, "TopicData", topic_name=METADATA_TOPIC, partitions=(self._partition(version),))
        return answer(DESCRIBE_QUORUM, version, topics=(topic,), nodes=(self._node(version),) if version >= 2 else ())

    def _partition(self, version: int) -> Any:
        leader = ReplicaState(
            replica_id=self.quorum.leader_id,
            directory_id=self.quorum.directory_id,
            log_end_offset=self.end_offset,
            last_fetch_timestamp=self.now,
            last_caught_up_timestamp=self.now,
        )
        return _part(
            version,
            "PartitionData",
            partition_index=0,
            leader_id=self.quorum.leader_id,
            leader_epoch=self.quorum.leader_epoch,
            high_watermark=self.high_watermark,
            current_voters=(_replica(version, leader),),
            observers=tuple(_replica(version, each) for each in self.quorum.observers(self.now)),
        )

    def _node(self, version: int) -> Any:
        """This node, by its controller listeners, whichever listener the request came by."""
        listeners = tuple(
            _part(version, "Listener", name=name, host=at.host, port=at.port)
            for name, at in self.quorum.advertised.items()
            if name in self.quorum.listener_names
        )
        return _part(version, "Node", node_id=self.quorum.leader_id, listeners=listeners)


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
