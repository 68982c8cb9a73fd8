"""What a leader answers to Fetch on the metadata partition (FetchResponse versions 13 to 18)."""

from datetime import timedelta
from typing import Any

from attrs import frozen

from aclog.metalog.log import LogReader
from aclog.nodes.apis.request import Request
from aclog.nodes.controller.apis.quorum_state import METADATA_TOPIC_ID, OffsetAndEpoch, Quorum
from aclog.nodes.wire.apis import FETCH
from aclog.nodes.wire.message_builder import answer, build


@frozen(kw_only=True)
class FetchAnswer:
    """The partition's part of an answer: an error, where to go first, or records."""

    error_code: int = 0
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: bytes = b""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell yet."""
        return not (self.error_code or self.diverging or self.snapshot or self.records)


def encode_answer(request: Request, found: FetchAnswer, quorum: Quorum, log: LogReader) -> bytes:
    """The body of the answer; every one says who leads, and since version 17 where."""
    version, leader = request.header.api_version, quorum.leader()
    partition = _part(
        version,
        "PartitionData",
        partition_index=0,
        error_code=found.error_code,
        high_watermark=log.high_watermark(),
        last_stable_offset=-1,
        log_start_offset=log.start_offset(),
        aborted_transactions=None,
        records=found.records,
        current_leader=_part(version, "LeaderIdAndEpoch", leader_id=leader.leader_id, leader_epoch=leader.epoch),
        **_elsewhere(version, found),
    )
    topic = _part(version, "FetchableTopicResponse", topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    nodes = _nodes(version, quorum, request.session.listener_name) if version >= 17 else ()
    return answer(FETCH, version, throttle_time=timedelta(0), responses=(topic,), node_endpoints=nodes)


def _elsewhere(version: int, found: FetchAnswer) -> dict[str, Any]:
    """Where the follower must go first; what is left out has the default that stands for nothing."""
    parts = {}
    if (end := found.diverging) is not None:
        parts["diverging_epoch"] = _part(version, "EpochEndOffset", epoch=end.epoch, end_offset=end.offset)
    if (id := found.snapshot) is not None:  # noqa: A001  # Kafka's name
        parts["snapshot_id"] = _part(version, "SnapshotId", epoch=id.epoch, end_offset=id.offset)
    return parts


def _nodes(version: int, quorum: Quorum, listener_name: str) -> tuple[Any, ...]:
    leader_id, at = quorum.leader().leader_id, quorum.leader_address(listener_name)
    if at is None:
        return ()
    return (_part(version, "NodeEndpoint", node_id=leader_id, host=at.host, port=at.port, rack=None),)


def _part(version: int, structure: str, /, **values: Any) -> Any:
    return build(FETCH, version, "response", structure, **values)
