"""Fetch on the metadata partition: the leader's side of KIP-595 for observers (KafkaRaftClient.handleFetchRequest).

Only committed bytes are served. Otherwise the response says why, as Kafka's does: an epoch error with the current
epoch, the diverging epoch of a follower's log, or a snapshot id for an offset before the log's start.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from attrs import define, field, frozen

from aclog.metalog.errors import LogError
from aclog.metalog.log import LogReader
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.controller.apis.quorum_state import METADATA_TOPIC_ID, OffsetAndEpoch, Quorum
from aclog.nodes.wire.api_keys import FETCH
from aclog.nodes.wire.error_codes import INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, UNKNOWN_SERVER_ERROR
from aclog.nodes.wire.message_builder import build, build_response

OLDEST_VERSION = 13
"""The first version with topic ids, the only ones that raft uses."""

MAX_BYTES = 8 << 20
"""The most record bytes in a response, unless a single batch is larger (KafkaRaftClient.MAX_FETCH_SIZE_BYTES)."""

MAX_WAIT_SECONDS = 30.0
"""Longer polls get an empty response after this time, so that a dead connection is noticed."""

_NEAR = 10_000
"""Reads within this many records of the end stay on the event loop: recent segments are in the page cache."""


@frozen(kw_only=True)
class _Wanted:
    """The parameters of a valid FetchRequest."""

    partition: Any
    offset: int
    last_fetched_epoch: int
    replica_id: int
    directory_id: UUID | None
    max_bytes: int
    max_wait: float


@frozen(kw_only=True)
class PartitionResponse:
    """The partition part of a FetchResponse: an error, a diverging epoch, a snapshot id, or records."""

    error_code: int = 0
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: bytes = b""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to report yet."""
        return not (self.error_code or self.diverging or self.snapshot or self.records)


@define(eq=False, kw_only=True)
class FetchHandler:
    """Serves Fetch from a log; `wake` announces commits. Used on one event loop's thread."""

    log: LogReader
    quorum: Quorum
    clock: Callable[[], float] = time.time
    _waiting: set["asyncio.Future[None]"] = field(factory=set, init=False)
    _closed: bool = field(default=False, init=False)

    async def fetch(self, request: Request) -> bytes:
        """Return the body of the FetchResponse (versions 13 to 18); the client is authorized already.

        Raises:
            RequestError: 42 for anything but the metadata partition, 104 for another cluster id.

        """
        if request.header.api_version < OLDEST_VERSION:
            return build_response(FETCH, request.header.api_version, error_code=INVALID_REQUEST)
        wanted = self._wanted(request)
        response = self._refusal(wanted) or await self._read(wanted)
        if response.is_empty and wanted.max_wait > 0 and not self._closed:
            await self._wait_for_more(wanted)
            # Validated again: the leader or the epoch may have changed during the wait.
            response = self._refusal(wanted) or await self._read(wanted)
        self._observe(wanted)
        return encode_response(request, response, self.quorum, self.log)

    def wake(self, _high_watermark: int = -1) -> None:
        """Complete the waiting fetches after a commit."""
        waiting, self._waiting = self._waiting, set()
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Complete the waiting fetches; later ones do not wait."""
        self._closed = True
        self.wake()

    def _wanted(self, request: Request) -> _Wanted:
        body, version = request.body, request.header.api_version
        if body.cluster_id is not None and body.cluster_id != self.quorum.cluster_id:
            raise RequestError(INCONSISTENT_CLUSTER_ID)
        topics = [topic.topic_id for topic in body.topics]
        partitions = [each for topic in body.topics for each in topic.partitions]
        if topics != [METADATA_TOPIC_ID] or [each.partition for each in partitions] != [0]:
            raise RequestError(INVALID_REQUEST, "expected partition 0 of the metadata topic, and nothing else")
        (partition,) = partitions
        return _Wanted(
            partition=partition,
            offset=partition.fetch_offset,
            last_fetched_epoch=partition.last_fetched_epoch,
            replica_id=body.replica_state.replica_id if version >= 15 else body.replica_id,
            directory_id=getattr(partition, "replica_directory_id", None),
            max_bytes=min(body.max_bytes, MAX_BYTES),
            max_wait=min(body.max_wait.total_seconds(), MAX_WAIT_SECONDS),
        )

    def _refusal(self, wanted: _Wanted) -> PartitionResponse | None:
        """Return the error of a request that is invalid whatever the log contains."""
        if wanted.offset < 0 or wanted.last_fetched_epoch < 0 or wanted.max_wait < 0:
            return PartitionResponse(error_code=INVALID_REQUEST)
        error = self.quorum.leader_error(wanted.partition.current_leader_epoch)
        if error:
            return PartitionResponse(error_code=error)
        if wanted.last_fetched_epoch > wanted.partition.current_leader_epoch:
            return PartitionResponse(error_code=INVALID_REQUEST)
        # A fetch with this node's own id: two nodes are configured with the same node.id.
        if wanted.replica_id == self.quorum.node_id:
            return PartitionResponse(error_code=UNKNOWN_SERVER_ERROR)
        return None

    async def _read(self, wanted: _Wanted) -> PartitionResponse:
        """Read the log for a valid request."""
        mark = self.log.high_watermark()
        elsewhere = self._elsewhere(wanted.offset, wanted.last_fetched_epoch, mark)
        if elsewhere is not None or wanted.offset == mark:
            return elsewhere or PartitionResponse()
        try:
            if mark - wanted.offset <= _NEAR:
                records = self.log.read(wanted.offset, wanted.max_bytes)
            else:
                records = await asyncio.to_thread(self.log.read, wanted.offset, wanted.max_bytes)
        except LogError:
            # Retention may have trimmed the segment since _elsewhere looked.
            snapshot = self.quorum.newest_checkpoint
            if snapshot is None or wanted.offset >= self.log.start_offset():
                raise
            return PartitionResponse(snapshot=snapshot)
        return PartitionResponse(records=records)

    def _elsewhere(self, offset: int, epoch: int, mark: int) -> PartitionResponse | None:
        """Return where the follower must go first, a snapshot or the point of divergence; None if it can read here."""
        start, snapshot = self.log.start_offset(), self.quorum.newest_checkpoint
        # Also at offset 0 of an untrimmed log: loading a checkpoint is faster than replaying from the start.
        if snapshot is not None and (offset == 0 or offset < start):
            return PartitionResponse(snapshot=snapshot)
        # A follower that has just loaded a checkpoint fetches from its id, whose epoch may precede the log's start.
        if self.quorum.is_checkpoint(offset, epoch) and offset <= mark:
            return None
        end = self.quorum.end_of_epoch(epoch, mark)
        if end.epoch == epoch and offset <= end.offset:
            return None
        if snapshot is not None and end.offset < start:
            return PartitionResponse(snapshot=snapshot)
        return PartitionResponse(diverging=end)

    async def _wait_for_more(self, wanted: _Wanted) -> None:
        """Wait for the next commit, at most for the client's max_wait."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            async with asyncio.timeout(wanted.max_wait):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(waiter)

    def _observe(self, wanted: _Wanted) -> None:
        if wanted.replica_id >= 0 and wanted.replica_id != self.quorum.node_id and not self._refusal(wanted):
            now, end = int(self.clock() * 1000), self.log.high_watermark()
            self.quorum.observe(wanted.replica_id, wanted.directory_id, wanted.offset, end_offset=end, now=now)


def encode_response(request: Request, found: PartitionResponse, quorum: Quorum, log: LogReader) -> bytes:
    """Encode the response body; it always names the leader, and since version 17 its endpoint."""
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
    return build_response(FETCH, version, throttle_time=timedelta(0), responses=(topic,), node_endpoints=nodes)


def _elsewhere(version: int, found: PartitionResponse) -> dict[str, Any]:
    """Return the diverging epoch or snapshot id; the schema default of an omitted field means none."""
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
