"""FetchSnapshot requests and responses, reduced to the metadata partition (KIP-630)."""

from typing import Any

from attrs import field, frozen

from aclog.metalog.errors import DecodeError
from aclog.nodes.observer.fetch_messages import METADATA_TOPIC, EpochEnd
from aclog.nodes.wire.messages import message_type

FETCH_SNAPSHOT = 59
OLDEST_VERSION = 0
NEWEST_VERSION = 1


@frozen(kw_only=True)
class SnapshotChunk:
    """Bytes of a snapshot file from `position` on, not aligned to batches; `size` is that of the whole file.

    `error` is the response's, else the partition's; 0 for none.
    """

    error: int = 0
    size: int = -1
    position: int = -1
    data: bytes = field(default=b"", repr=lambda data: f"{len(data)} bytes")


def snapshot_request(
    snapshot: EpochEnd, position: int, leader_epoch: int, version: int, *, max_bytes: int, cluster_id: str | None
) -> Any:
    """Build the FetchSnapshotRequest for a snapshot's bytes from `position` on."""
    request = message_type(FETCH_SNAPSHOT, version, "request")
    topic = message_type(FETCH_SNAPSHOT, version, "request", "TopicSnapshot")
    partition = message_type(FETCH_SNAPSHOT, version, "request", "PartitionSnapshot")
    snapshot_id = message_type(FETCH_SNAPSHOT, version, "request", "SnapshotId")
    wanted = partition(
        partition=0,
        current_leader_epoch=leader_epoch,
        snapshot_id=snapshot_id(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
    )
    topics = (topic(name=METADATA_TOPIC, partitions=(wanted,)),)
    return request(cluster_id=cluster_id, max_bytes=max_bytes, topics=topics)


def parse_snapshot_response(response: Any) -> SnapshotChunk:
    """Parse a FetchSnapshotResponse.

    Raises:
        DecodeError: it is not about the metadata partition alone.

    """
    if response.error_code:
        return SnapshotChunk(error=int(response.error_code))
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    names = [topic.name for topic in response.topics]
    if names != [METADATA_TOPIC] or len(partitions) != 1 or partitions[0].index:
        raise DecodeError(f"a FetchSnapshot response of topics {names}: expected partition 0 of {METADATA_TOPIC}")
    found = partitions[0]
    return SnapshotChunk(
        error=int(found.error_code), size=found.size, position=found.position, data=bytes(found.unaligned_records)
    )
