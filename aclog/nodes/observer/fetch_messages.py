"""Fetch requests and responses, reduced to the metadata partition (KIP-595, KIP-853)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from attrs import field, frozen

from aclog.metalog.errors import DecodeError
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.wire.messages import message_type

FETCH = 1
"""The API key."""

OLDEST_VERSION = 17
"""The first version whose response carries the leader's endpoint."""

NEWEST_VERSION = 18
"""Adds the follower's high-water mark to the request (KIP-1166)."""

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)

# Never send a voter's id: its fetch offsets advance the leader's high-water mark, so records could count as committed
# that no majority has.
NO_REPLICA = -1
"""The replica id of an observer that the quorum does not track."""


@frozen(kw_only=True)
class EpochEnd:
    """A leader epoch and an offset: a snapshot's id, or where an epoch ends in the leader's log."""

    epoch: int
    end_offset: int


@frozen(kw_only=True)
class Position:
    """Where to fetch from: FetchRequest's fields for the partition.

    `last_fetched_epoch` is the epoch of the batch before `offset`, by which the leader detects divergence;
    `leader_epoch` is the epoch of the leader that the request is sent to.
    """

    offset: int
    last_fetched_epoch: int
    leader_epoch: int
    high_watermark: int


@frozen(kw_only=True)
class FetchResponse:
    """The metadata partition of a FetchResponse. `error` is the response's, else the partition's; 0 for none.

    `leader_id` and `leader_epoch` are -1 if the sender does not know them.
    """

    error: int = 0
    high_watermark: int = -1
    log_start_offset: int = -1
    leader_id: int = -1
    leader_epoch: int = -1
    endpoints: Mapping[int, HostPort] = field(factory=dict)
    diverging: EpochEnd | None = None
    snapshot: EpochEnd | None = None
    records: bytes = field(default=b"", repr=lambda data: f"{len(data)} bytes")


def fetch_request(
    position: Position, version: int, *, max_bytes: int, max_wait_ms: int, cluster_id: str | None = None
) -> Any:
    """Build the FetchRequest of an observer."""
    request = message_type(FETCH, version, "request")
    partition = message_type(FETCH, version, "request", "FetchPartition")
    topic = message_type(FETCH, version, "request", "FetchTopic")
    # With its mark in the request, a leader that has a higher one responds at once instead of waiting for records.
    mark = {"high_watermark": position.high_watermark} if version >= NEWEST_VERSION else {}
    wanted = partition(
        partition=0,
        current_leader_epoch=position.leader_epoch,
        fetch_offset=position.offset,
        last_fetched_epoch=position.last_fetched_epoch,
        partition_max_bytes=max_bytes,
        **mark,
    )
    return request(
        cluster_id=cluster_id,
        max_wait=timedelta(milliseconds=max_wait_ms),
        min_bytes=1,
        max_bytes=max_bytes,
        topics=(topic(topic_id=METADATA_TOPIC_ID, partitions=(wanted,)),),
        forgotten_topics_data=(),
    )


def parse_fetch_response(response: Any) -> FetchResponse:
    """Parse a FetchResponse of version 17 or 18.

    Raises:
        DecodeError: it is not about the metadata partition alone, or has an invalid port.

    """
    endpoints = dict(map(_endpoint, response.node_endpoints))
    if response.error_code:
        return FetchResponse(error=int(response.error_code), endpoints=endpoints)
    partitions = [partition for topic in response.responses for partition in topic.partitions]
    topics = [topic.topic_id for topic in response.responses]
    if topics != [METADATA_TOPIC_ID] or len(partitions) != 1 or partitions[0].partition_index:
        raise DecodeError(
            f"a Fetch response of topics {topics}, {len(partitions)} partitions: expected partition 0 of 1"
        )
    found = partitions[0]
    return FetchResponse(
        error=int(found.error_code),
        high_watermark=found.high_watermark,
        log_start_offset=found.log_start_offset,
        leader_id=found.current_leader.leader_id,
        leader_epoch=found.current_leader.leader_epoch,
        endpoints=endpoints,
        diverging=_epoch_end(found.diverging_epoch),
        snapshot=_epoch_end(found.snapshot_id),
        records=bytes(found.records or b""),
    )


def _endpoint(node: Any) -> tuple[int, HostPort]:
    if not 0 < node.port < 1 << 16:
        raise DecodeError(f"node {node.node_id} at port {node.port}: expected 1 to 65535")
    return node.node_id, HostPort(host=node.host, port=node.port)


def _epoch_end(found: Any) -> EpochEnd | None:
    """Return None for the default (-1, -1), which stands for an absent tagged field."""
    if found.epoch < 0 or found.end_offset < 0:
        return None
    return EpochEnd(epoch=found.epoch, end_offset=found.end_offset)
