"""The observer's state machine: what to fetch next, and what a fetch response means (KafkaRaftClient, no I/O).

A response brings batches, or says that the logs diverge, that a snapshot must be fetched instead, or that another
node leads. Batches above the high-water mark are held back: the next fetch continues after them, but no reader sees
them until the mark passes them. The mark, and what readers have seen, never go back.
"""

from typing import NoReturn, TypeAlias

from attrs import define, field, frozen

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.errors import ReplayError
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.errors import CommittedRecordsLostError, OtherClusterError, QuorumRefusedError
from aclog.nodes.observer.fetch_messages import EpochEnd, FetchResponse, Position
from aclog.nodes.wire.error_codes import (
    FENCED_LEADER_EPOCH,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
)

_WRONG_EPOCH = frozenset({INVALID_REQUEST, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH})
CONTROLLER_EXPECTED = "expected an address of a controller, or a broker's with --bootstrap-server"
"""What to do about the address of a broker."""
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

    `older_epoch` is the epoch of a node that knows no newer one than that, although the quorum had one.
    """

    why: str
    leader: HostPort | None = None
    older_epoch: int | None = None


FetchOutcome: TypeAlias = Progress | SnapshotNeeded | FetchAgain | Redirect


@define(kw_only=True, eq=False)
class ObserverState:
    """An observer's position in the log. Not thread-safe; `committed_end` is the offset after the last committed batch.

    The first fetch is sent with the epoch of what is committed, or 0; an error response carries the actual leader and
    epoch. A leader of an epoch below that has another log.
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
        """What to fetch next."""
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
        if response.error == INCONSISTENT_CLUSTER_ID:
            raise OtherClusterError("INCONSISTENT_CLUSTER_ID: it is another cluster")
        if response.error in _REFUSALS:
            raise QuorumRefusedError(_REFUSALS[response.error])
        # Kafka answers epoch 0 with INVALID_REQUEST; with the epoch it named, the same node may well be the leader.
        if response.error in _WRONG_EPOCH and new_epoch:
            return FetchAgain()
        if response.error == NOT_LEADER_OR_FOLLOWER:
            leader = response.endpoints.get(response.leader_id)
            return Redirect(why=f"not the leader of epoch {self.leader_epoch}", leader=leader)
        if response.error == UNKNOWN_LEADER_EPOCH:
            why = f"does not know leader epoch {self.leader_epoch}, only {response.leader_epoch}"
            return Redirect(why=why, older_epoch=response.leader_epoch if response.leader_epoch >= 0 else None)
        return Redirect(why=f"responds with error {response.error}")

    def _handle_divergence(self, diverging: EpochEnd) -> FetchOutcome:
        """Truncate to the diverging epoch's end in the leader's log: the largest common prefix is at or below it.

        Only uncommitted batches can diverge. The next fetch shows whether the rest matches, as in KIP-595.
        """
        if not self._pending:
            self._lost(f"its log of epoch {diverging.epoch} ends at {diverging.end_offset}")
        kept = [self._common_part(run, diverging) for run in self._pending]
        before = self.position
        self._pending = [run for run in kept if run is not None]
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
        within what is committed here: then the uncommitted batches do not fit, and are dropped.
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
