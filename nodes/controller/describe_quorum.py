"""DescribeQuorum: who leads, who votes, who follows and how far (KIP-595, KIP-836, KIP-853)."""

from typing import Any
from uuid import UUID

from nodes.controller.quorum import METADATA_TOPIC, UNKNOWN_TOPIC_OR_PARTITION, Quorum
from nodes.request import Request, RequestError
from nodes.wire.apis import DESCRIBE_QUORUM
from nodes.wire.building import build
from nodes.wire.messages import encode_response


def describe_quorum(request: Request, quorum: Quorum, *, high_watermark: int, end_offset: int, now: int) -> bytes:
    """The body of the answer to a DescribeQuorumRequest (versions 0 to 2); `now` in ms since 1970.

    Raises:
        RequestError: 3 for anything but the metadata partition.

    """
    version = request.header.api_version
    asked = [(topic.topic_name, each.partition_index) for topic in request.body.topics for each in topic.partitions]
    if asked != [(METADATA_TOPIC, 0)]:
        raise RequestError(UNKNOWN_TOPIC_OR_PARTITION, f"expected partition 0 of {METADATA_TOPIC}, and nothing else")

    def part(structure: str, /, **values: Any) -> Any:
        return build(DESCRIBE_QUORUM, version, "response", structure, **values)

    def replica(replica_id: int, directory_id: UUID | None, offset: int, fetched: int, caught_up: int) -> Any:
        return part(
            "ReplicaState",
            replica_id=replica_id,
            replica_directory_id=directory_id,
            log_end_offset=offset,
            last_fetch_timestamp=fetched,
            last_caught_up_timestamp=caught_up,
        )

    partition = part(
        "PartitionData",
        partition_index=0,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=high_watermark,
        current_voters=(replica(quorum.leader_id, quorum.directory_id, end_offset, now, now),),
        observers=tuple(
            replica(
                each.replica_id,
                each.directory_id,
                each.log_end_offset,
                each.last_fetch_timestamp,
                each.last_caught_up_timestamp,
            )
            for each in quorum.observers(now)
        ),
    )
    return encode_response(
        build(
            DESCRIBE_QUORUM,
            version,
            "response",
            error_message=None,
            topics=(part("TopicData", topic_name=METADATA_TOPIC, partitions=(partition,)),),
            nodes=_nodes(request, quorum) if version >= 2 else (),
        )
    )


def _nodes(request: Request, quorum: Quorum) -> tuple[Any, ...]:
    name, version = request.session.listener_name, request.header.api_version
    at = quorum.advertised[name]
    listener = build(DESCRIBE_QUORUM, version, "response", "Listener", name=name, host=at.host, port=at.port)
    return (build(DESCRIBE_QUORUM, version, "response", "Node", node_id=quorum.leader_id, listeners=(listener,)),)
