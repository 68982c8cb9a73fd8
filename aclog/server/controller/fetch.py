"""Fetch and FetchSnapshot on the metadata partition."""

import asyncio
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from attrs import field

from aclog.authorizer.interface import AuthorizerNotReadyError
from aclog.config.node_config import HostPort
from aclog.metalog.committed_log import EpochStart, LogReader, ServedLog
from aclog.metalog.errors import LogError
from aclog.metalog.filelog.files import CheckpointFile, checkpoint_name, log_error
from aclog.metalog.machine import clock, disk
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.headers import Request, RequestError
from aclog.protocol.messages import build, build_response
from aclog.server.controller.quorum_controller import QuorumController
from aclog.server.controller.registrations import BrokerWriter, TokenWriter

# The quorum as a controller reports it: leader, epochs, checkpoints, observers (org.apache.kafka.raft.LeaderState).


METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)

OBSERVER_SECONDS = 300.0
"""How long an observer is reported after its last fetch (LeaderState.OBSERVER_SESSION_TIMEOUT_MS)."""

_MOST_OBSERVERS = 1000
"""Replica ids are chosen by clients, so their number is bounded."""


@frozen(kw_only=True)
class OffsetAndEpoch:
    """The end of an epoch, or a checkpoint's id (OffsetAndEpoch)."""

    offset: int
    epoch: int


@frozen(kw_only=True)
class ReplicaState:
    """The fetch state of a replica; timestamps in ms since 1970."""

    replica_id: int
    directory_id: UUID | None
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


@frozen(kw_only=True)
class LeaderAndEpoch:
    """The known leader and epoch; leader_id is -1 without a leader (org.apache.kafka.raft.LeaderAndEpoch)."""

    leader_id: int = -1
    epoch: int = 0


@define(eq=False, kw_only=True)
class Quorum:
    """The quorum state of one controller; used on its event loop."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None
    leader: Callable[[], LeaderAndEpoch]
    """Evaluated for every response: the leader changes if several controllers share a log."""
    voters: Mapping[int, HostPort] = field(factory=dict)
    """Addresses of the controllers that may lead, by id; may include this one."""
    epochs: Sequence[EpochStart] = ()
    advertised: Mapping[str, HostPort]
    """This node's advertised addresses by listener name; filled in once the ports are known."""
    listener_names: tuple[str, ...]
    """The names of the controller listeners."""
    checkpoints: tuple[CheckpointFile, ...] = ()
    """Complete checkpoints by offset; the tuple is replaced when one is written or removed."""
    _observers: dict[tuple[int, UUID | None], ReplicaState] = field(factory=dict, init=False)

    @property
    def leads(self) -> bool:
        """Whether this node leads."""
        return self.leader().leader_id == self.node_id

    def leader_address(self, listener_name: str) -> HostPort | None:
        """Return the leader's address for clients of a listener; None if the leader or its address is unknown."""
        leader_id = self.leader().leader_id
        return self.advertised[listener_name] if leader_id == self.node_id else self.voters.get(leader_id)

    def addresses(self, listener_name: str) -> dict[int, HostPort]:
        """Return the controllers' addresses for clients of a listener, ordered by id."""
        addresses = {**self.voters, self.node_id: self.advertised[listener_name]}
        return {node_id: addresses[node_id] for node_id in sorted(addresses)}

    @property
    def newest_checkpoint(self) -> OffsetAndEpoch | None:
        """The id of the newest checkpoint; the empty one that `format` writes at offset 0 does not count."""
        if not self.checkpoints or not self.checkpoints[-1].end_offset:
            return None
        return OffsetAndEpoch(offset=self.checkpoints[-1].end_offset, epoch=self.checkpoints[-1].epoch)

    def is_checkpoint(self, offset: int, epoch: int) -> bool:
        """Whether a checkpoint with this id exists."""
        return any((each.end_offset, each.epoch) == (offset, epoch) for each in self.checkpoints)

    def end_of_epoch(self, epoch: int, high_watermark: int) -> OffsetAndEpoch:
        """Return the end of `epoch`, or of the largest epoch below it (LeaderEpochFileCache.endOffsetFor)."""
        later = bisect_right(self.epochs, epoch, key=lambda start: start.epoch)
        end = self.epochs[later].start_offset if later < len(self.epochs) else high_watermark
        return OffsetAndEpoch(offset=end, epoch=self.epochs[later - 1].epoch if later else epoch)

    def leader_error(self, current_leader_epoch: int) -> int:
        """Return the error code for a request to the leader of `current_leader_epoch`; 0 if this node is that leader.

        The epoch is checked before the node, as in KafkaRaftClient.validateLeaderOnlyRequest: an epoch error makes the
        client update its epoch, NOT_LEADER_OR_FOLLOWER makes it look for another node.
        """
        leader = self.leader()
        if current_leader_epoch < 0:
            return error_codes.INVALID_REQUEST
        if current_leader_epoch != leader.epoch:
            return (
                error_codes.FENCED_LEADER_EPOCH
                if current_leader_epoch < leader.epoch
                else error_codes.UNKNOWN_LEADER_EPOCH
            )
        return 0 if leader.leader_id == self.node_id else error_codes.NOT_LEADER_OR_FOLLOWER

    def observe(self, replica_id: int, directory_id: UUID | None, offset: int, *, end_offset: int, now: int) -> None:
        """Record a fetch from `offset` at `now`, when the log ended at `end_offset`."""
        key = (replica_id, directory_id)
        before = self._observers.pop(key, None)  # re-inserted below: insertion order is the order of eviction
        caught_up = now if offset >= end_offset else -1 if before is None else before.last_caught_up_timestamp
        self._observers[key] = ReplicaState(
            replica_id=replica_id,
            directory_id=directory_id,
            log_end_offset=offset,
            last_fetch_timestamp=now,
            last_caught_up_timestamp=caught_up,
        )
        if len(self._observers) > _MOST_OBSERVERS:
            del self._observers[next(iter(self._observers))]

    def observers(self, now: int) -> tuple[ReplicaState, ...]:
        """Return the observers that fetched within OBSERVER_SECONDS."""
        oldest = now - OBSERVER_SECONDS * 1000
        expired = [key for key, each in self._observers.items() if each.last_fetch_timestamp < oldest]
        for key in expired:
            del self._observers[key]
        return tuple(self._observers.values())


# Fetch on the metadata partition: the leader's side of KIP-595 for observers (KafkaRaftClient.handleFetchRequest).
#
# Only committed bytes are served. Otherwise the response has the reason, as in Kafka: an epoch error with the current
# epoch, the diverging epoch of a follower's log, or a snapshot id for an offset before the log's start.


OLDEST_VERSION = 13
"""The first version with topic ids, the only ones that raft uses."""

MAX_BYTES = 8 << 20
"""The most record bytes in a response, unless a single batch is larger (KafkaRaftClient.MAX_FETCH_SIZE_BYTES)."""

MAX_WAIT_SECONDS = 30.0
"""Longer polls get an empty response after this time, so that a dead connection is noticed."""

_NEAR = 10_000
"""Local reads within this many records of the end stay on the event loop: recent segments are in the page cache."""


@frozen(kw_only=True)
class _FetchParameters:
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

    log: ServedLog
    quorum: Quorum
    clock: Callable[[], float] = clock.wall_seconds
    _waiting: dict["asyncio.Future[None]", None] = field(factory=dict, init=False)
    """In order of arrival, so that responses go out in that order."""
    _closed: bool = field(default=False, init=False)
    _reads: ThreadPoolExecutor = field(init=False)
    """For reads far behind or over the network, one at a time: they would fill the default executor, which also closes
    the log. Queued reads end with their clients."""

    @_reads.default
    def _one_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="fetch")

    async def fetch(self, request: Request) -> bytes:
        """Return the body of the FetchResponse (versions 13 to 18); the client is authorized already.

        Raises:
            RequestError: 42 for anything but the metadata partition, 104 for another cluster id.

        """
        if request.header.api_version < OLDEST_VERSION:
            return build_response(api_keys.FETCH, request.header.api_version, error_code=error_codes.INVALID_REQUEST)
        parameters = self._parameters(request)
        response = self._refusal(parameters) or await self._read(parameters)
        if response.is_empty and parameters.max_wait > 0 and not self._closed:
            await self._wait_for_more(parameters)
            # Validated again: the leader or the epoch may have changed during the wait.
            response = self._refusal(parameters) or await self._read(parameters)
        self._observe(parameters)
        return encode_response(request, response, self.quorum, self.log)

    def wake(self, _high_watermark: int = -1) -> None:
        """Complete the waiting fetches after a commit."""
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Complete the waiting fetches; later ones do not wait, and read nothing in a thread."""
        self._closed = True
        self._reads.shutdown(wait=False)
        self.wake()

    def _parameters(self, request: Request) -> _FetchParameters:
        body, version = request.body, request.header.api_version
        if body.cluster_id is not None and body.cluster_id != self.quorum.cluster_id:
            raise RequestError(error_codes.INCONSISTENT_CLUSTER_ID)
        topics = [topic.topic_id for topic in body.topics]
        partitions = [each for topic in body.topics for each in topic.partitions]
        if topics != [METADATA_TOPIC_ID] or [each.partition for each in partitions] != [0]:
            raise RequestError(
                error_codes.INVALID_REQUEST, "expected partition 0 of the metadata topic, and nothing else"
            )
        (partition,) = partitions
        return _FetchParameters(
            partition=partition,
            offset=partition.fetch_offset,
            last_fetched_epoch=partition.last_fetched_epoch,
            replica_id=body.replica_state.replica_id if version >= 15 else body.replica_id,
            directory_id=getattr(partition, "replica_directory_id", None),
            max_bytes=min(body.max_bytes, MAX_BYTES),
            max_wait=min(body.max_wait.total_seconds(), MAX_WAIT_SECONDS),
        )

    def _refusal(self, parameters: _FetchParameters) -> PartitionResponse | None:
        """Return the error of a request that is invalid for any log."""
        if parameters.offset < 0 or parameters.last_fetched_epoch < 0 or parameters.max_wait < 0:
            return PartitionResponse(error_code=error_codes.INVALID_REQUEST)
        error = self.quorum.leader_error(parameters.partition.current_leader_epoch)
        if error:
            return PartitionResponse(error_code=error)
        if parameters.last_fetched_epoch > parameters.partition.current_leader_epoch:
            return PartitionResponse(error_code=error_codes.INVALID_REQUEST)
        # A fetch with this node's own id: two nodes are configured with the same node.id.
        if parameters.replica_id == self.quorum.node_id:
            return PartitionResponse(error_code=error_codes.UNKNOWN_SERVER_ERROR)
        return None

    async def _read(self, parameters: _FetchParameters) -> PartitionResponse:
        """Read the log for a valid request."""
        mark = self.log.high_watermark()
        elsewhere = self._elsewhere(parameters.offset, parameters.last_fetched_epoch, mark)
        if elsewhere is not None or parameters.offset == mark:
            return elsewhere or PartitionResponse()
        try:
            near = mark - parameters.offset <= _NEAR
            records = self.log.read_local(parameters.offset, parameters.max_bytes) if near else None
            if records is None:
                self._check_open()
                loop = asyncio.get_running_loop()
                records = await loop.run_in_executor(
                    self._reads, self._read_in_thread, parameters.offset, parameters.max_bytes
                )
        except LogError:
            # Retention may have trimmed the segment since _elsewhere looked.
            snapshot = self.quorum.newest_checkpoint
            if snapshot is None or parameters.offset >= self.log.start_offset():
                raise
            return PartitionResponse(snapshot=snapshot)
        return PartitionResponse(records=records)

    def _read_in_thread(self, offset: int, max_bytes: int) -> bytes:
        self._check_open()  # it may have been closed while the read was queued
        return self.log.read(offset, max_bytes)

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"{self.log.name}: closed")

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

    async def _wait_for_more(self, parameters: _FetchParameters) -> None:
        """Wait for the next commit, at most for the client's max_wait."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        try:
            async with asyncio.timeout(parameters.max_wait):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(waiter, None)

    def _observe(self, parameters: _FetchParameters) -> None:
        if (
            parameters.replica_id >= 0
            and parameters.replica_id != self.quorum.node_id
            and not self._refusal(parameters)
        ):
            now, end = int(self.clock() * 1000), self.log.high_watermark()
            self.quorum.observe(
                parameters.replica_id, parameters.directory_id, parameters.offset, end_offset=end, now=now
            )


def encode_response(request: Request, partition_response: PartitionResponse, quorum: Quorum, log: LogReader) -> bytes:
    """Encode the response body; it always names the leader, and since version 17 its endpoint."""
    version, leader = request.header.api_version, quorum.leader()
    partition = _part(
        version,
        "PartitionData",
        partition_index=0,
        error_code=partition_response.error_code,
        high_watermark=log.high_watermark(),
        last_stable_offset=-1,
        log_start_offset=log.start_offset(),
        aborted_transactions=None,
        records=partition_response.records,
        current_leader=_part(version, "LeaderIdAndEpoch", leader_id=leader.leader_id, leader_epoch=leader.epoch),
        **_elsewhere(version, partition_response),
    )
    topic = _part(version, "FetchableTopicResponse", topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    nodes = _nodes(version, quorum, request.session.listener_name) if version >= 17 else ()
    return build_response(api_keys.FETCH, version, throttle_time=timedelta(0), responses=(topic,), node_endpoints=nodes)


def _elsewhere(version: int, partition: PartitionResponse) -> dict[str, Any]:
    """Return the diverging epoch or snapshot id; the schema default of an omitted field means none."""
    parts = {}
    if (end := partition.diverging) is not None:
        parts["diverging_epoch"] = _part(version, "EpochEndOffset", epoch=end.epoch, end_offset=end.offset)
    if (id := partition.snapshot) is not None:  # noqa: A001  # Kafka's name
        parts["snapshot_id"] = _part(version, "SnapshotId", epoch=id.epoch, end_offset=id.offset)
    return parts


def _nodes(version: int, quorum: Quorum, listener_name: str) -> tuple[Any, ...]:
    leader_id, at = quorum.leader().leader_id, quorum.leader_address(listener_name)
    if at is None:
        return ()
    return (_part(version, "NodeEndpoint", node_id=leader_id, host=at.host, port=at.port, rack=None),)


def _part(version: int, structure: str, /, **values: Any) -> Any:
    return build(api_keys.FETCH, version, "response", structure, **values)


# FetchSnapshot: a checkpoint's bytes in chunks (KIP-630; KafkaRaftClient.handleFetchSnapshotRequest).
#
# Kafka 4.3.1 turns every partition error into UNKNOWN_SERVER_ERROR; here the response carries the actual code.


_MOST_OPEN = 16
_KEEP_SECONDS = 60.0


_INLINE_BYTES = 256 << 10


@define(eq=False, kw_only=True)
class OpenCheckpoints:
    """Open checkpoint files of a log directory. Used on one event loop's thread.

    A file stays open for a minute after its last use, so that retention cannot remove a checkpoint under its reader.
    """

    directory: Path
    monotonic: Callable[[], float] = clock.monotonic_seconds
    _files: "OrderedDict[str, tuple[int, int, float]]" = field(factory=OrderedDict, init=False)
    """Descriptor, size and time of last use by file name, least recently used first."""

    def find(self, end_offset: int, epoch: int) -> tuple[int, int] | None:
        """Return the descriptor and size of a checkpoint; None if no checkpoint has this id.

        Raises:
            LogError: The file cannot be opened.

        """
        now = self.monotonic()
        self._evict(now)
        name = checkpoint_name(end_offset, epoch)
        entry = self._files.pop(name, None)
        if entry is None:
            opened = self._open(self.directory / name)
            if opened is None:
                return None
            entry = (*opened, now)
        self._files[name] = (entry[0], entry[1], now)
        return entry[0], entry[1]

    @staticmethod
    def _open(path: Path) -> tuple[int, int] | None:
        try:
            fd = disk.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise log_error(error, path, "cannot open") from error
        return fd, disk.fstat(fd).st_size

    def _evict(self, now: float) -> None:
        while self._files:
            fd, _, used = next(iter(self._files.values()))
            if len(self._files) < _MOST_OPEN and now - used < _KEEP_SECONDS:
                return
            self._files.popitem(last=False)
            disk.close(fd)

    def close(self) -> None:
        """Close all files."""
        while self._files:
            disk.close(self._files.popitem(last=False)[1][0])


@frozen(kw_only=True)
class _Chunk:
    """A part of a checkpoint, or an error; `size` is that of the whole checkpoint."""

    error_code: int = 0
    size: int = 0
    data: bytes = b""


@define(eq=False, kw_only=True)
class FetchSnapshotHandler:
    """Serves FetchSnapshot. Used on one event loop's thread."""

    quorum: Quorum
    files: OpenCheckpoints

    async def fetch(self, request: Request) -> bytes:
        """Return the body of the FetchSnapshotResponse (versions 0 and 1); the client is authorized already.

        Raises:
            RequestError: 104 for another cluster id, 42 unless there is exactly one partition.
            LogError: The checkpoint cannot be read.

        """
        body = request.body
        if body.cluster_id is not None and body.cluster_id != self.quorum.cluster_id:
            raise RequestError(error_codes.INCONSISTENT_CLUSTER_ID)
        partitions = [(topic.name, each) for topic in body.topics for each in topic.partitions]
        if len(body.topics) != 1 or len(partitions) != 1:
            raise RequestError(
                error_codes.INVALID_REQUEST, "expected partition 0 of the metadata topic, and nothing else"
            )
        ((topic, partition_request),) = partitions
        chunk = await self._read(topic, partition_request, min(max(body.max_bytes, 0), MAX_BYTES))
        return self._encoded(request, topic, partition_request, chunk)

    async def _read(self, topic: str, partition_request: Any, max_bytes: int) -> _Chunk:
        """Read the bytes at the requested position."""
        if topic != METADATA_TOPIC or partition_request.partition != 0:
            return _Chunk(error_code=error_codes.UNKNOWN_TOPIC_OR_PARTITION)
        error = self.quorum.leader_error(partition_request.current_leader_epoch)
        if error:
            return _Chunk(error_code=error)
        id = partition_request.snapshot_id  # noqa: A001  # Kafka's name
        if id.end_offset < 0 or id.epoch < 0:
            return _Chunk(error_code=error_codes.SNAPSHOT_NOT_FOUND)
        checkpoint = self.files.find(id.end_offset, id.epoch)
        if checkpoint is None:
            return _Chunk(error_code=error_codes.SNAPSHOT_NOT_FOUND)
        fd, size = checkpoint
        if not 0 <= partition_request.position < size:
            return _Chunk(error_code=error_codes.POSITION_OUT_OF_RANGE, size=size)
        data = await self._piece(fd, min(max_bytes, size - partition_request.position), partition_request.position)
        return _Chunk(size=size, data=data)

    @staticmethod
    async def _piece(fd: int, length: int, position: int) -> bytes:
        try:
            if length <= _INLINE_BYTES:
                return disk.pread(fd, length, position)
            return await asyncio.to_thread(_pread_and_close, disk.dup(fd), length, position)
        except OSError as error:
            raise LogError(f"cannot read a checkpoint at byte {position}: {error.strerror}") from error

    def _encoded(self, request: Request, topic: str, partition_request: Any, chunk: _Chunk) -> bytes:
        version, leader, id = request.header.api_version, self.quorum.leader(), partition_request.snapshot_id  # noqa: A001
        partition = _snapshot_part(
            version,
            "PartitionSnapshot",
            index=partition_request.partition,
            error_code=chunk.error_code,
            snapshot_id=_snapshot_part(version, "SnapshotId", end_offset=id.end_offset, epoch=id.epoch),
            current_leader=_snapshot_part(
                version, "LeaderIdAndEpoch", leader_id=leader.leader_id, leader_epoch=leader.epoch
            ),
            size=chunk.size,
            position=partition_request.position,
            unaligned_records=chunk.data,
        )
        topics = (_snapshot_part(version, "TopicSnapshot", name=topic, partitions=(partition,)),)
        at, nodes = self.quorum.leader_address(request.session.listener_name), []
        if version >= 1 and at is not None:
            nodes.append(_snapshot_part(version, "NodeEndpoint", node_id=leader.leader_id, host=at.host, port=at.port))
        return build_response(
            api_keys.FETCH_SNAPSHOT, version, throttle_time=timedelta(0), topics=topics, node_endpoints=tuple(nodes)
        )


def _snapshot_part(version: int, structure: str, /, **values: Any) -> Any:
    return build(api_keys.FETCH_SNAPSHOT, version, "response", structure, **values)


def _pread_and_close(fd: int, length: int, position: int) -> bytes:
    """Read from a duplicated descriptor: OpenCheckpoints may close the original meanwhile."""
    try:
        return disk.pread(fd, length, position)
    finally:
        disk.close(fd)


# The state that a controller serves requests from once its log is open.


@define(eq=False, kw_only=True)
class ServingState:
    """An open log and the objects that serve it.

    `controller`, `tokens` and `brokers` are None unless writes are accepted: after the log is replayed completely and,
    if several controllers share it, while this one is active.
    """

    log: ServedLog
    replayed: Callable[[], bool]
    """Whether the image covers everything that was committed when this node started."""
    quorum: Quorum
    fetching: FetchHandler
    snapshots: FetchSnapshotHandler
    controller: QuorumController | None = None
    tokens: TokenWriter | None = None
    brokers: BrokerWriter | None = None

    @classmethod
    def of(
        cls, log: ServedLog, quorum: Quorum, files: OpenCheckpoints, *, replayed: Callable[[], bool]
    ) -> "ServingState":
        """Return the state of an open log that does not accept writes yet."""
        return cls(
            log=log,
            replayed=replayed,
            quorum=quorum,
            fetching=FetchHandler(log=log, quorum=quorum),
            snapshots=FetchSnapshotHandler(quorum=quorum, files=files),
        )

    def active(self) -> QuorumController:
        """Return the QuorumController of this node.

        Raises:
            AuthorizerNotReadyError: The log is not replayed yet.
            RequestError: NOT_CONTROLLER: this node is not active; another one may be.

        """
        self.check_replayed()
        if self.controller is None:
            raise RequestError(error_codes.NOT_CONTROLLER, "This node is not the active controller.")
        return self.controller

    def check_replayed(self) -> None:
        """Require a complete image.

        Raises:
            AuthorizerNotReadyError: The log is not replayed yet.

        """
        if not self.replayed():
            raise AuthorizerNotReadyError("the controller has not replayed its log yet")
