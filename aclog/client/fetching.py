"""The task that follows a quorum: fetch requests, their responses, and the buffer of committed batches."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, NoReturn, Self, TypeAlias
from uuid import UUID

from attrs import evolve, field

from aclog.client.connection import Connection, Role, role_of
from aclog.client.errors import (
    CommittedRecordsLostError,
    LoginError,
    OtherClusterError,
    QuorumRefusedError,
    UnreachableError,
)
from aclog.client.requests import CONTROLLERS, describe_cluster, describe_features
from aclog.config.node_config import HostPort
from aclog.metalog.batches import HEADER_SIZE, BatchRun, read_header
from aclog.metalog.committed_log import CommittedLog
from aclog.metalog.errors import ConfigError, DecodeError, LogError, MetadataError, ReplayError
from aclog.metalog.machine import clock, randomness
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.protocol import error_codes
from aclog.protocol.headers import RequestError
from aclog.protocol.messages import message_type
from aclog.snapshots.image import NEWEST_METADATA_VERSION

# Fetch requests and responses, reduced to the metadata partition (KIP-595, KIP-853).


FETCH = 1
"""The API key."""

OLDEST_VERSION = 17
"""The first version whose response carries the leader's endpoint."""

NEWEST_VERSION = 18
"""Adds the follower's high-water mark to the request (KIP-1166)."""

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)


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
    """Build the FetchRequest of an observer: its replica id is the default, -1, which the quorum does not track.

    A voter's fetch offsets advance the leader's high-water mark: with its id here, records could count as committed
    that no majority has.
    """
    request = message_type(FETCH, version, "request")
    partition = message_type(FETCH, version, "request", "FetchPartition")
    topic = message_type(FETCH, version, "request", "FetchTopic")
    # With its mark in the request, a leader that has a higher one responds at once instead of waiting for records.
    mark = {"high_watermark": position.high_watermark} if version >= NEWEST_VERSION else {}
    partition_request = partition(
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
        topics=(topic(topic_id=METADATA_TOPIC_ID, partitions=(partition_request,)),),
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
    partition_data = partitions[0]
    return FetchResponse(
        error=int(partition_data.error_code),
        high_watermark=partition_data.high_watermark,
        log_start_offset=partition_data.log_start_offset,
        leader_id=partition_data.current_leader.leader_id,
        leader_epoch=partition_data.current_leader.leader_epoch,
        endpoints=endpoints,
        diverging=_epoch_end(partition_data.diverging_epoch),
        snapshot=_epoch_end(partition_data.snapshot_id),
        records=bytes(partition_data.records or b""),
    )


def _endpoint(node: Any) -> tuple[int, HostPort]:
    if not 0 < node.port < 1 << 16:
        raise DecodeError(f"node {node.node_id} at port {node.port}: expected 1 to 65535")
    return node.node_id, HostPort(host=node.host, port=node.port)


def _epoch_end(epoch_end: Any) -> EpochEnd | None:
    """Return None for the default (-1, -1), which means an absent tagged field."""
    if epoch_end.epoch < 0 or epoch_end.end_offset < 0:
        return None
    return EpochEnd(epoch=epoch_end.epoch, end_offset=epoch_end.end_offset)


# Buffer sizes and timeouts of an observer.


@frozen(kw_only=True)
class ObserverOptions:
    """Sizes are in bytes, times in seconds unless the name has another unit."""

    fetch_bytes: int = 8 << 20
    """The maximum size of one Fetch response."""
    buffer_bytes: int = 32 << 20
    """The maximum size of batches not read yet; beyond it, fetching pauses."""
    kept_bytes: int = 4 << 20
    """How much is kept after it was read, for other readers."""
    pending_bytes: int = 16 << 20
    """The maximum size of batches above the high-water mark; beyond it, fetching pauses."""
    max_wait_ms: int = 500
    """How long a leader without new records may delay its response (replica.fetch.wait.max.ms)."""
    response_seconds: float = 4.0
    """How long to wait for a connection, and for a response beyond `max_wait_ms`, before the server is given up."""
    read_seconds: float = 30.0
    """How long a read waits for batches that are already committed."""
    retry_backoff: float = 0.05
    """The delay before another server is tried; doubles with each retry."""
    max_retry_backoff: float = 0.5
    newest_level: int = NEWEST_METADATA_VERSION
    """The highest level of metadata.version that a replay accepts: a server that supports a higher one is warned of."""
    wait_for_servers: bool = True
    """Whether servers none of which can be reached at first are a passing trouble; if not, waiting readers get the
    error at once."""
    refused_backoff: float = 5.0
    """The delay after a failed login or a refusal, which only an operator can resolve."""
    older_leader_seconds: float = 30.0
    """How long a server may lead in an older epoch than the newest known one: longer than any value of one and a half
    times controller.quorum.fetch.timeout.ms (3 s by default), after which a leader that is cut off resigns.
    """


# Committed batches between the task that fetches them and the threads that read them.


@frozen(kw_only=True)
class Confirmation:
    """A fetch that a leader answered: its address, and its time (aclog.metalog.primitives.elapsed_seconds)."""

    server: HostPort
    request_time: float


@define(kw_only=True, eq=False)
class FetchBuffer(CommittedLog):
    """A bounded buffer. Thread-safe; one thread adds.

    `made_room` is called by a reading thread when a full buffer is no longer full.
    """

    options: ObserverOptions
    made_room: Callable[[], None]
    snapshot: EpochEnd | None = field(default=None, init=False)
    """The snapshot that replaces all records below `start_offset`."""
    confirmed: Confirmation | None = field(default=None, init=False)
    """The last answer of a leader by which the mark is current."""
    _read_to: int = field(default=0, init=False)

    @property
    def full(self) -> bool:
        """Whether to stop fetching for now."""
        return self._window.size >= self.options.buffer_bytes

    def add(self, committed: Iterable[BatchRun], high_watermark: int, confirmed: Confirmation | None = None) -> None:
        """Append newly committed batches, and clear the error; `confirmed` if the mark is current."""
        with self._changed:
            for run in committed:
                self._window.append(run)
            self.high_watermark = max(self.high_watermark, high_watermark)
            # After the mark: a caller that reads the age first, then the mark, never gets too low an age.
            self.confirmed = confirmed or self.confirmed
            self._clear_error()
            self._changed.notify_all()

    def begin_at(self, snapshot: EpochEnd, high_watermark: int, confirmed: Confirmation | None = None) -> None:
        """Restart after this snapshot: batches below its end offset are dropped."""
        with self._changed:
            self.start_offset, self.snapshot = snapshot.end_offset, snapshot
            if self._window.end < snapshot.end_offset:
                self._window.restart(snapshot.end_offset)
            # An unknown mark stays unknown: the snapshot's end is committed, but more may be committed beyond it,
            # and a node that takes the snapshot for everything would report itself caught up too early.
            if max(self.high_watermark, high_watermark) >= 0:
                self.high_watermark = max(self.high_watermark, high_watermark, snapshot.end_offset)
            self.confirmed = confirmed or self.confirmed
            self._changed.notify_all()

    def start_at(self, offset: int) -> None:
        """Start at an offset below which the caller has everything; called before anything is added."""
        with self._changed:
            self.start_offset = self._read_to = offset
            self._window.restart(offset)

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """Read as LogReader.read; None if the batch is no longer, or not yet, in the buffer.

        Waits up to `read_seconds` for the next batch if it is already committed.
        """
        with self._changed:
            self.check_bounds(offset)
            if offset == self.high_watermark:
                return b""
            self._mark_read(offset)
            end = clock.monotonic() + self.options.read_seconds
            # The mark may run ahead of the batches: a full buffer is fetched one batch at a time (Fetcher).
            while offset == self._window.end and not self.closed and not self._stuck:
                remaining = end - clock.monotonic()
                if remaining <= 0:
                    raise self.reason(f"offset {offset} did not arrive within {self.options.read_seconds:g} s")
                self._changed.wait(remaining)
            if offset == self._window.end:
                raise self.reason("no more batches arrive")
            return self._take(offset, max_bytes)

    @property
    def _silent(self) -> str:
        return "no leader"

    def _take(self, offset: int, max_bytes: int) -> bytes | None:
        batches = self._window.read(offset, max_bytes)
        if batches is None:
            return None
        data, end = batches
        self._mark_read(end)
        return data

    def _mark_read(self, offset: int) -> None:
        """Release batches below `offset`, except for `kept_bytes` that a second reader may want."""
        was_full = self.full
        self._read_to = max(self._read_to, offset)
        self._window.drop(self._read_to, self.options.kept_bytes)
        if was_full and not self.full:
            self.made_room()


# The observer's state machine: the next fetch, and the effect of a fetch response (KafkaRaftClient, no I/O).
#
# A response has batches, or reports that the logs diverge, that a snapshot must be fetched instead, or that another
# node leads. Batches above the high-water mark are held back: the next fetch continues after them, but no reader sees
# them until the mark passes them. Neither the mark nor the visible batches ever go back.


_WRONG_EPOCH = frozenset(
    {error_codes.INVALID_REQUEST, error_codes.FENCED_LEADER_EPOCH, error_codes.UNKNOWN_LEADER_EPOCH}
)
CONTROLLER_EXPECTED = "expected an address of a controller, or a broker's with --bootstrap-server"
"""The fix for the address of a broker."""
_REFUSALS = {
    3: f"not a controller's listener (UNKNOWN_TOPIC_OR_PARTITION): {CONTROLLER_EXPECTED}",
    31: "CLUSTER_AUTHORIZATION_FAILED: expected a user with CLUSTER_ACTION on Cluster:kafka-cluster",
    35: "UNSUPPORTED_VERSION: expected a controller of Kafka 3.9 or later",
    100: f"not a controller's listener (UNKNOWN_TOPIC_ID): {CONTROLLER_EXPECTED}",
}


@frozen(kw_only=True)
class Progress:
    """The batches that are committed now, one run for each response they came in. May be empty."""

    committed: tuple[BatchRun, ...] = ()


@frozen(kw_only=True)
class SnapshotNeeded:
    """The leader no longer has the records at the fetch offset: fetch this snapshot, then continue after it."""

    snapshot: EpochEnd


@frozen(kw_only=True)
class FetchAgain:
    """Fetch from the same node again: the leader epoch is known now, or diverging batches were truncated."""


@frozen(kw_only=True)
class Redirect:
    """Fetch from another node: from `leader` if it is known, else from any. `why` is for an operator.

    `older_epoch` is the epoch of a node that has none newer than that, although the quorum had one.
    """

    why: str
    leader: HostPort | None = None
    older_epoch: int | None = None


FetchOutcome: TypeAlias = Progress | SnapshotNeeded | FetchAgain | Redirect


@define(kw_only=True, eq=False)
class ObserverState:
    """An observer's position in the log. Not thread-safe; `committed_end` is the offset after the last committed batch.

    The first fetch is sent with the epoch of the committed records, or 0; an error response carries the actual leader
    and epoch. A leader of an epoch below that has another log.
    """

    committed_end: int = 0
    high_watermark: int = -1
    leader_id: int = field(default=-1, init=False)
    leader_epoch: int = field(default=0, init=False)
    _committed_epoch: int = 0
    _pending: list[BatchRun] = field(factory=list, init=False)
    """Batches above the high-water mark."""

    def __attrs_post_init__(self) -> None:
        self.leader_epoch = self._committed_epoch

    @property
    def position(self) -> Position:
        """The position of the next fetch."""
        last = self._pending[-1] if self._pending else None
        return Position(
            offset=self.committed_end if last is None else last.end_offset,
            last_fetched_epoch=self._committed_epoch if last is None else last.epoch,
            leader_epoch=self.leader_epoch,
            high_watermark=self.high_watermark,
        )

    @property
    def pending_bytes(self) -> int:
        """The size of the batches held above the high-water mark."""
        return sum(run.size for run in self._pending)

    def handle(self, response: FetchResponse, *, keep: bool = True) -> FetchOutcome:
        """Handle the response to a fetch at `position`; without `keep`, its records are dropped and fetched again.

        Raises:
            DecodeError: damaged batches, or ReplayError if they do not follow `position`. The state is unchanged.
            QuorumRefusedError: the node refuses to be followed.
            CommittedRecordsLostError: the leader's log lacks records that were committed.

        """
        new_epoch = self._update_leader(response)
        if response.error:
            return self._handle_error(response, new_epoch=new_epoch)
        if response.diverging is not None:
            return self._handle_divergence(response.diverging)
        if response.snapshot is not None:
            self.high_watermark = max(self.high_watermark, response.high_watermark)
            return self._handle_snapshot_id(response.snapshot)
        if response.records and keep:
            self._hold(response.records)
        # Only after the records were accepted: a damaged response must not move the mark.
        self.high_watermark = max(self.high_watermark, response.high_watermark)
        return Progress(committed=self._commit())

    def loaded(self, snapshot: EpochEnd) -> None:
        """Continue after a snapshot."""
        self.committed_end, self._committed_epoch = snapshot.end_offset, snapshot.epoch
        self._pending.clear()

    def _update_leader(self, response: FetchResponse) -> bool:
        """Take over the leader; return whether the epoch is new. A lower epoch comes from a partitioned node."""
        if response.leader_epoch > self.leader_epoch:
            self.leader_id, self.leader_epoch = response.leader_id, response.leader_epoch
            return True
        if response.leader_epoch == self.leader_epoch and response.leader_id >= 0:
            self.leader_id = response.leader_id
        return False

    def _handle_error(self, response: FetchResponse, *, new_epoch: bool) -> FetchOutcome:
        if response.error == error_codes.INCONSISTENT_CLUSTER_ID:
            raise OtherClusterError("INCONSISTENT_CLUSTER_ID: it is another cluster")
        if response.error in _REFUSALS:
            raise QuorumRefusedError(_REFUSALS[response.error])
        # Kafka answers epoch 0 with INVALID_REQUEST; with the epoch it named, the same node may well be the leader.
        if response.error in _WRONG_EPOCH and new_epoch:
            return FetchAgain()
        if response.error == error_codes.NOT_LEADER_OR_FOLLOWER:
            leader = response.endpoints.get(response.leader_id)
            return Redirect(why=f"not the leader of epoch {self.leader_epoch}", leader=leader)
        if response.error == error_codes.UNKNOWN_LEADER_EPOCH:
            why = f"does not know leader epoch {self.leader_epoch}, only {response.leader_epoch}"
            return Redirect(why=why, older_epoch=response.leader_epoch if response.leader_epoch >= 0 else None)
        return Redirect(why=f"responds with error {response.error}")

    def _handle_divergence(self, diverging: EpochEnd) -> FetchOutcome:
        """Truncate to the diverging epoch's end in the leader's log: the largest common prefix is at or below it.

        Only uncommitted batches can diverge. The next fetch shows whether the rest matches, as in KIP-595.
        """
        if not self._pending:
            self._lost(f"its log of epoch {diverging.epoch} ends at {diverging.end_offset}")
        runs = [self._common_part(run, diverging) for run in self._pending]
        before = self.position
        self._pending = [run for run in runs if run is not None]
        if self.position == before:
            # Nothing was truncated, so the same fetch would diverge again, forever: drop all that may.
            self._pending.clear()
        return FetchAgain()

    @staticmethod
    def _common_part(run: BatchRun, diverging: EpochEnd) -> BatchRun | None:
        """Return the batches of a run that the leader may have as well."""
        epochs = int((run.epochs <= diverging.epoch).sum())
        return run.slice(0, min(epochs, run.below(diverging.end_offset)))

    def _handle_snapshot_id(self, snapshot: EpochEnd) -> FetchOutcome:
        """Decide whether to fetch a snapshot.

        The leader names its newest one if the fetch offset is below its log's start, or the last fetched epoch is below
        that of its oldest snapshot (ReplicatedLog.validateOffsetAndEpoch). In the latter case the snapshot may end
        within the committed records here: then the uncommitted batches do not fit, and are dropped.
        """
        if snapshot.end_offset > self.committed_end and snapshot.epoch >= self._committed_epoch:
            return SnapshotNeeded(snapshot=snapshot)
        if not self._pending:
            self._lost(f"it offers a snapshot of offset {snapshot.end_offset}, epoch {snapshot.epoch}")
        self._pending.clear()
        return FetchAgain()

    def _lost(self, what: str) -> NoReturn:
        raise CommittedRecordsLostError(
            f"the leader of epoch {self.leader_epoch} does not have the log that was committed up to offset "
            f"{self.committed_end}, epoch {self._committed_epoch}: {what}; expected every committed record to be there"
        )

    def _hold(self, records: bytes) -> None:
        run = BatchRun.of(records)
        position = self.position
        run.check_follows(position.offset, position.last_fetched_epoch)
        if run.epoch > self.leader_epoch:
            raise ReplayError(
                f"a batch of epoch {run.epoch}: expected none beyond the leader's, {self.leader_epoch}",
                offset=run.end_offset - 1,
            )
        self._pending.append(run)

    def _commit(self) -> tuple[BatchRun, ...]:
        """Remove the batches below the high-water mark from the pending ones, and return them."""
        committed: list[BatchRun] = []
        while self._pending and self._pending[0].base_offset < self.high_watermark:
            run = self._pending[0]
            count = run.below(self.high_watermark)
            passed, rest = run.slice(0, count), run.slice(count, len(run))
            if passed is not None:
                committed.append(passed)
                self.committed_end, self._committed_epoch = passed.end_offset, passed.epoch
            if rest is not None:
                self._pending[0] = rest
                break
            self._pending.pop(0)
        return tuple(committed)


# Which server to connect to next, and when all of them have refused.


_SERVER_REFUSALS = (QuorumRefusedError, LoginError, ConfigError)


@define
class ServerRotation:
    """The configured servers in turn, interrupted by the leader that one of them names.

    A follower may name a leader that is dead: a named leader is tried once, then the rotation continues.
    """

    addresses: tuple[HostPort, ...]
    _leader: HostPort | None = field(default=None, init=False)
    _turn: int = field(default=-1, init=False)

    def name_leader(self, address: HostPort | None) -> None:
        """Try this address next."""
        self._leader = address

    def next(self) -> HostPort:
        """Return the address to connect to."""
        if self._leader is not None:
            leader, self._leader = self._leader, None
            return leader
        self._turn = (self._turn + 1) % len(self.addresses)
        return self.addresses[self._turn]


@define
class Refusals:
    """The errors of each server since the last successful fetch.

    A single server may be misconfigured: it belongs to another cluster, or does not have our password yet. So
    refusals count as permanent only once every one of the `addresses` has been tried without success, and
    another cluster is final only if every one of them belongs to one. While a server does not respond, or does not
    lead, those of another cluster are not permanent either: it may be of the expected one.
    """

    addresses: tuple[HostPort, ...]
    _tried: dict[HostPort, MetadataError] = field(factory=dict, init=False)

    def note(self, address: HostPort, error: MetadataError) -> MetadataError:
        """Record a server's error; return the error to report, which is not final by itself.

        The address may be that of a leader which is not among the `addresses`.
        """
        self._tried[address] = error
        return _not_final(error)

    def clear(self) -> None:
        """Forget all errors, after a successful fetch."""
        self._tried.clear()

    @property
    def permanent(self) -> MetadataError | None:
        """The refusal that only an operator can resolve, once all known servers have failed."""
        if not self._tried.keys() >= set(self.addresses):
            return None
        refusals = [error for error in self._tried.values() if isinstance(error, _SERVER_REFUSALS)]
        if len(refusals) < len(self._tried):
            refusals = [error for error in refusals if not isinstance(error, OtherClusterError)]
        return next(map(_not_final, refusals), None)

    @property
    def unreachable(self) -> MetadataError | None:
        """The last error if not one of the known servers could be reached."""
        errors = [self._tried.get(address) for address in self.addresses]
        return errors[-1] if all(isinstance(error, UnreachableError) for error in errors) else None

    @property
    def final(self) -> OtherClusterError | None:
        """The error that ends following, once all known servers belong to another cluster."""
        errors = [self._tried.get(address) for address in self.addresses]
        others = [error for error in errors if isinstance(error, OtherClusterError)]
        return others[0] if len(others) == len(self.addresses) else None


def _not_final(error: MetadataError) -> MetadataError:
    """One server of another cluster is a refusal like any other: OtherClusterError is a FollowingEndedError."""
    return QuorumRefusedError(str(error)) if isinstance(error, OtherClusterError) else error


# Whether a leader's log is the one that was followed before: a quorum may have been formatted again, or restored.


FetchAt: TypeAlias = Callable[[int], Awaitable[FetchResponse]]
"""Fetches from an offset, with any epoch before it."""

_CRC_START = 17
"""From the CRC on, a batch's header is covered by the CRC, or is the CRC: damage in transit cannot look like another
batch. Offsets and epochs are checked by the fetch itself.
"""


@define(eq=False)
class LogIdentity:
    """The headers of the first and of the last committed batch that were seen; empty if none was.

    Offsets, epochs and the cluster id may be the same after a quorum was wiped: timestamps and ids in its batches are
    not. The first batch is there for a new log that is still shorter than the old one.
    """

    _first: bytes = b""
    _last: bytes = b""

    @classmethod
    def of(cls, first: bytes, last: bytes) -> Self:
        """Return the identity of a log that holds these batches; both may be empty."""
        return cls(first[:HEADER_SIZE], last[:HEADER_SIZE])

    def add(self, committed: Iterable[BatchRun]) -> None:
        """Note the batches that have been committed now."""
        for run in committed:
            self._first = self._first or run.data[:HEADER_SIZE]
            start = int(run.positions[-2])
            self._last = run.data[start : start + HEADER_SIZE]

    def skip(self) -> None:
        """Note that a snapshot replaces the batches up to its end."""
        self._last = b""

    async def check(self, fetch_at: FetchAt, *, committed_only: bool = False) -> bool:
        """Compare the leader's batches with the known ones; return whether the server responds as the leader.

        A batch that the leader no longer has, or does not have yet, is not compared. `committed_only`: neither is one
        above its high-water mark, which a leader that is about to be deposed may lose again.

        Raises:
            CommittedRecordsLostError: the leader has a different batch at the offset of a committed one.
            DecodeError: a damaged response.

        """
        for batch in dict.fromkeys((self._last, self._first)):
            offset = read_header(batch).base_offset if batch else 0
            response = await fetch_at(offset)
            if response.error:
                return False
            if not batch or not response.records:
                continue
            run = BatchRun.of(response.records)
            run.check_follows(offset, 0)
            if committed_only and int(run.ends[0]) > response.high_watermark:
                continue
            if run.data[_CRC_START:HEADER_SIZE] != batch[_CRC_START:]:
                raise CommittedRecordsLostError(
                    f"the leader of epoch {response.leader_epoch} has another batch than was committed before offset "
                    f"{read_header(batch).end_offset}: it was formatted again, or restored from a backup; expected "
                    "every committed record to be there"
                )
        return True


@define
class OlderLeaders:
    """Since when servers have been leading in an older epoch than the newest known one, on the clock of `note`.

    A leader that is cut off does so until it notices (one and a half times controller.quorum.fetch.timeout.ms); one
    that continues has voters that have forgotten the newer epoch.
    """

    _since: dict[HostPort, float] = field(factory=dict, init=False)

    def note(self, address: HostPort, *, leads: bool, now: float) -> float:
        """Note a server's response; return for how many seconds it has led without interruption, 0 if it does not."""
        if not leads:
            self._since.pop(address, None)
            return 0.0
        return now - self._since.setdefault(address, now)

    def clear(self) -> None:
        """Forget all: a server leads in the newest epoch."""
        self._since.clear()


# The task that follows a quorum: finds the leader, fetches in a loop, and shares the committed batches.


Connect: TypeAlias = Callable[[HostPort], Awaitable[Connection]]
"""Opens an authenticated connection."""

_DAMAGED_RESPONSES = 3
"""After so many in a row, waiting readers get the error; fewer may be damage in transit, which a retry repairs."""

_CLUSTER_SECONDS = 2.0
"""How long the other servers have to name their cluster before the first one is followed."""

_IMMEDIATE_RETRIES = 3
"""Retries without backoff: learning the leader and its epoch takes a few."""


async def fetch(
    connection: Connection, position: Position, options: ObserverOptions, *, max_bytes: int, cluster_id: str | None
) -> FetchResponse:
    """Send one Fetch and return its response.

    Raises:
        UnreachableError: the connection was closed, or no response arrived in time.
        ConfigError: the server supports no Fetch version that we support.
        DecodeError: the response is malformed.

    """
    version = connection.version(FETCH, OLDEST_VERSION, NEWEST_VERSION)
    request = fetch_request(
        position, version, max_bytes=max_bytes, max_wait_ms=options.max_wait_ms, cluster_id=cluster_id
    )
    seconds = options.response_seconds + options.max_wait_ms / 1000
    return parse_fetch_response(await connection.ask(request, seconds))


def _require_controller(connection: Connection) -> None:
    """Refuse a broker before it refuses a Fetch with a less clear error."""
    if role_of(connection.apis) is Role.BROKER:
        raise QuorumRefusedError(f"not a controller's listener but a broker's: {CONTROLLER_EXPECTED}")


@define(kw_only=True, eq=False)
class Fetcher:
    """Runs on one event loop until cancelled; errors are reported to the readers, and retried."""

    servers: ServerRotation
    connect: Connect
    buffer: FetchBuffer
    options: ObserverOptions
    notify: Callable[[str], None] | None = None
    """Called once with each warning about a server, on the event loop."""
    cluster_id: str | None = None
    """The only cluster to follow; by default that of the first server."""
    state: ObserverState = field(factory=ObserverState)
    identity: LogIdentity = field(factory=LogIdentity)
    leader: HostPort | None = field(default=None, init=False)
    """The address of the last successful fetch."""
    refusals: Refusals = field(init=False)
    room: asyncio.Event = field(factory=asyncio.Event, init=False)
    _warned: set[str] = field(factory=set, init=False)
    _retries: int = field(default=0, init=False)
    """Since the last successful fetch."""
    _damaged: int = field(default=0, init=False)
    _older_leaders: OlderLeaders = field(factory=OlderLeaders, init=False)

    def __attrs_post_init__(self) -> None:
        self.refusals = Refusals(self.servers.addresses)

    async def run(self) -> None:
        """Follow until committed records are lost, all servers belong to another cluster, or the task is cancelled."""
        redirected = False
        while True:
            address, named = self.servers.next(), None
            try:
                async with await self.connect(address) as connection:
                    _require_controller(connection)
                    await self._learn_cluster(connection)
                    await self._warn_of_upgrades(connection)
                    redirect = await self._follow(connection)
                self._note_older_leader(address, redirect.older_epoch)
                named = redirect.leader
                self.servers.name_leader(named)
                backoff = self._report(address, LogError(f"{address}: {redirect.why}"))
            except CommittedRecordsLostError as error:
                self.buffer.fail(CommittedRecordsLostError(f"{address}: {error}"))
                return
            except (LogError, ConfigError, DecodeError) as error:
                self._note_older_leader(address, None)
                backoff = self._report(address, self._with_address(address, error))
            if self.buffer.failure is not None:
                return
            # No backoff on the way to a named leader, but only once: two nodes may name each other during an election.
            redirected = named is not None and not redirected
            if not redirected:
                await asyncio.sleep(max(backoff, self._next_backoff()))

    async def _learn_cluster(self, connection: Connection) -> None:
        """Pin the observer to the cluster of the first server, unless a cluster id was given.

        Otherwise a server of another cluster whose epochs happen to fit would continue the log.

        Raises:
            QuorumRefusedError: another of the given servers belongs to another cluster.

        """
        if self.cluster_id is not None:
            return
        # If it is not a controller, is too old, or denies DESCRIBE, the error of the Fetch is more to the point.
        with suppress(RequestError, ConfigError):
            cluster_id = (await describe_cluster(connection, CONTROLLERS)).cluster_id
            others = [address for address in self.servers.addresses if address != connection.address]
            ids = await asyncio.gather(*map(self._cluster_at, others))
            for address, other_id in zip(others, ids, strict=True):
                if other_id not in {None, cluster_id}:
                    raise QuorumRefusedError(
                        f"belongs to cluster {cluster_id}, and {address} to {other_id}: expected servers of one cluster"
                    )
            self.cluster_id = cluster_id

    async def _cluster_at(self, address: HostPort) -> str | None:
        """Return the cluster of a server; None if it does not respond soon, or does not name it."""
        try:
            async with asyncio.timeout(_CLUSTER_SECONDS), await self.connect(address) as connection:
                return (await describe_cluster(connection, CONTROLLERS)).cluster_id
        except (MetadataError, TimeoutError):
            return None

    async def _warn_of_upgrades(self, connection: Connection) -> None:
        """Warn if the server could raise the cluster's metadata.version beyond the highest replayable level."""
        if self.notify is None:
            return
        with suppress(RequestError, ConfigError):  # no features: too old to be ahead of us
            warning = (await describe_features(connection)).upgrade_warning(
                connection.address, self.options.newest_level
            )
            if warning is not None:
                self._warn(warning)

    def _warn(self, warning: str) -> None:
        if self.notify is not None and warning not in self._warned:
            self._warned.add(warning)
            self.notify(warning)

    def _with_address(self, address: HostPort, error: MetadataError) -> MetadataError:
        """Name the server in the error; errors of connections name it already."""
        if isinstance(error, OtherClusterError):
            return OtherClusterError(f"{address}: {error}: expected {self.cluster_id}")
        if isinstance(error, QuorumRefusedError):
            return QuorumRefusedError(f"{address}: {error}")
        return error.at(path=str(address)) if isinstance(error, DecodeError) else error

    def _report(self, address: HostPort, error: MetadataError) -> float:
        """Report a server's error to the readers, or that it is final; return the minimum backoff in seconds."""
        self.leader = None
        if isinstance(error, OtherClusterError):
            self._warn(f"{error}: not followed")
        error = self.refusals.note(address, error)
        if (final := self.refusals.final) is not None:
            # Not after a report: a reader would see the refusal first, which is not final by itself.
            self.buffer.fail(final)
            return 0.0
        if isinstance(error, DecodeError):
            self._damaged += 1
            self.buffer.report(error, retriable=self._damaged < _DAMAGED_RESPONSES)
            return 0.0
        permanent = self.refusals.permanent
        waits = self.options.wait_for_servers or self.buffer.confirmed is not None or self.refusals.unreachable is None
        self.buffer.report(permanent or error, retriable=permanent is None and waits)
        return self.options.refused_backoff if permanent is not None else 0.0

    def _next_backoff(self) -> float:
        """Return an exponential backoff with jitter, so that followers of a failed leader do not retry in lockstep."""
        self._retries += 1
        if self._retries <= _IMMEDIATE_RETRIES:
            return 0.0
        grown: float = self.options.retry_backoff * 2 ** min(self._retries - _IMMEDIATE_RETRIES, 16)
        return min(grown, self.options.max_retry_backoff) * randomness.uniform(0.5, 1)

    async def _follow(self, connection: Connection) -> Redirect:
        """Fetch until another server has to be tried."""
        again, is_same_log = 0, False
        while True:
            full = await self._wait_for_room()
            # A full buffer stops the batches, not the fetches: the mark must keep moving, and Kafka sends at least
            # one batch in spite of the limit.
            max_bytes = 1 if full else self.options.fetch_bytes
            position, request_time = self.state.position, elapsed_seconds()
            response = await fetch(connection, position, self.options, max_bytes=max_bytes, cluster_id=self.cluster_id)
            if not (is_same_log or response.error or response.diverging):
                # On each connection: the server may have been formatted again since the last one, and offsets and
                # epochs may fit by chance. Nothing of its response has been taken over yet.
                is_same_log = await self.identity.check(self._fetch_at(connection, self.state.leader_epoch))
                if not is_same_log:
                    return Redirect(why="ceased to lead while its log was compared with the one that was followed")
            match self.state.handle(response, keep=not full):
                case Progress(committed=committed):
                    self._succeeded(connection)
                    again = 0
                    self.identity.add(committed)
                    self.buffer.add(committed, self.state.high_watermark, self._confirmation(request_time, response))
                case SnapshotNeeded(snapshot=snapshot):
                    # The fetcher only skips ahead; SnapshotDownload fetches the snapshot when a caller needs the state.
                    self._succeeded(connection)
                    self.state.loaded(snapshot)
                    self.identity.skip()
                    confirmed = self._confirmation(request_time, response)
                    self.buffer.begin_at(snapshot, self.state.high_watermark, confirmed)
                case FetchAgain():
                    again += 1
                    await asyncio.sleep(self._next_backoff() if again > _IMMEDIATE_RETRIES else 0)
                case Redirect(older_epoch=int(epoch)) as redirect:
                    # With its own epoch, only a leader responds without an error.
                    leads = await self.identity.check(self._fetch_at(connection, epoch), committed_only=True)
                    return redirect if leads else evolve(redirect, older_epoch=None)
                case Redirect() as redirect:
                    return redirect

    def _fetch_at(self, connection: Connection, epoch: int) -> FetchAt:
        """Return a function that fetches one batch from the leader of an epoch, anywhere in its log."""

        async def fetch_at(offset: int) -> FetchResponse:
            """Fetch one batch. The leader's own epoch passes its check of the last fetched epoch."""
            position = Position(
                offset=offset, last_fetched_epoch=epoch if offset else 0, leader_epoch=epoch, high_watermark=-1
            )
            return await fetch(connection, position, self.options, max_bytes=1, cluster_id=self.cluster_id)

        return fetch_at

    def _note_older_leader(self, address: HostPort, epoch: int | None) -> None:
        """Note whether a server leads in an older epoch than the newest known one.

        Raises:
            CommittedRecordsLostError: it has done so for too long to be a leader that is merely cut off.

        """
        seconds = self._older_leaders.note(address, leads=epoch is not None, now=clock.monotonic())
        if epoch is not None and seconds >= self.options.older_leader_seconds:
            raise CommittedRecordsLostError(
                f"has been leading in epoch {epoch} for {seconds:.0f} s, although epoch {self.state.leader_epoch} was "
                "known: the quorum was formatted again, or restored from a backup; expected epochs to grow"
            )

    def _succeeded(self, connection: Connection) -> None:
        self.leader, self._retries, self._damaged = connection.address, 0, 0
        self.refusals.clear()
        self._older_leaders.clear()

    def _confirmation(self, request_time: float, response: FetchResponse) -> Confirmation | None:
        """Return the confirmation that the known mark is current; None if the response is not one.

        The mark of a new leader is unknown, or below the known one, until the quorum has confirmed it.
        """
        if self.leader is None or response.high_watermark < max(self.state.high_watermark, 0):
            return None
        return Confirmation(server=self.leader, request_time=request_time)

    async def _wait_for_room(self) -> bool:
        """Wait a moment for room in the buffer; return whether it is still full."""
        if self.state.pending_bytes >= self.options.pending_bytes:
            await asyncio.sleep(self.options.retry_backoff)
            return True
        # Clear before looking: a reader that makes room in between sets the event again, and is not missed.
        self.room.clear()
        if not self.buffer.full:
            return False
        try:
            async with asyncio.timeout(self.options.max_wait_ms / 1000):
                await self.room.wait()
        except TimeoutError:
            return True
        return False
