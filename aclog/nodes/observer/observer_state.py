"""Following a quorum's log, without any I/O: what to fetch, and what an answer means (KafkaRaftClient as observer).

Bytes above the high-water mark are kept, so that a leader may be asked for what follows them, and are shown to nobody
until the mark passes them. The mark never goes back, nor does what was shown.
"""

from typing import NoReturn

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.errors import ReplayError
from aclog.nodes.observer.errors import CommittedRecordsLostError, OtherClusterError, QuorumRefusedError
from aclog.nodes.observer.fetch_messages import EpochEnd, FetchAnswer, Position
from aclog.nodes.observer.fetch_steps import Again, Elsewhere, Progress, SnapshotNeeded, Step
from aclog.nodes.wire.error_codes import (
    FENCED_LEADER_EPOCH,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
)

_WRONG_EPOCH = frozenset({INVALID_REQUEST, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH})
_REFUSALS = {
    3: "not a controller's listener (UNKNOWN_TOPIC_OR_PARTITION): expected an address of a controller",
    31: "CLUSTER_AUTHORIZATION_FAILED: expected a user with CLUSTER_ACTION on Cluster:kafka-cluster",
    35: "UNSUPPORTED_VERSION: expected a controller of Kafka 3.9 or later",
    100: "not a controller's listener (UNKNOWN_TOPIC_ID): expected an address of a controller",
}


@define(kw_only=True, eq=False)
class QuorumFollowing:
    """Owned by the one task that follows. `committed_end` is where the next committed batch begins.

    Until the leader's epoch is known, an answer to epoch 0 teaches it.
    """

    committed_end: int = 0
    high_watermark: int = -1
    leader_id: int = field(default=-1, init=False)
    leader_epoch: int = field(default=0, init=False)
    _committed_epoch: int = 0
    _pending: list[BatchRun] = field(factory=list, init=False)

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
        """How much is held above the high-water mark."""
        return sum(run.size for run in self._pending)

    def take(self, answer: FetchAnswer, *, keep: bool = True) -> Step:
        """Take in the answer to a fetch of `position`; its records are left where they are unless `keep`.

        Raises:
            DecodeError: damaged batches; ReplayError if they are not those that were asked for. Nothing was taken in.
            QuorumRefusedError: the node does not want to be followed.
            CommittedRecordsLostError: the leader has another history than the one that was committed.

        """
        moved = self._learn_leader(answer)
        if answer.error:
            return self._after_error(answer, moved=moved)
        if answer.diverging is not None:
            return self._after_divergence(answer.diverging)
        if answer.snapshot is not None:
            self.high_watermark = max(self.high_watermark, answer.high_watermark)
            return self._after_snapshot_id(answer.snapshot)
        if answer.records and keep:
            self._hold(answer.records)
        self.high_watermark = max(self.high_watermark, answer.high_watermark)
        return Progress(committed=self._commit())

    def loaded(self, snapshot: EpochEnd) -> None:
        """Go on after a snapshot."""
        self.committed_end, self._committed_epoch = snapshot.end_offset, snapshot.epoch
        self._pending.clear()

    def _learn_leader(self, answer: FetchAnswer) -> bool:
        """Take in who leads; tells whether the epoch is a new one. An older one comes from a node that was cut off."""
        if answer.leader_epoch > self.leader_epoch:
            self.leader_id, self.leader_epoch = answer.leader_id, answer.leader_epoch
            return True
        if answer.leader_epoch == self.leader_epoch and answer.leader_id >= 0:
            self.leader_id = answer.leader_id
        return False

    def _after_error(self, answer: FetchAnswer, *, moved: bool) -> Step:
        if answer.error == INCONSISTENT_CLUSTER_ID:
            raise OtherClusterError("INCONSISTENT_CLUSTER_ID: it is another cluster")
        if answer.error in _REFUSALS:
            raise QuorumRefusedError(_REFUSALS[answer.error])
        if answer.error in _WRONG_EPOCH and moved:
            return Again()
        if answer.error == NOT_LEADER_OR_FOLLOWER:
            leader = answer.endpoints.get(answer.leader_id)
            return Elsewhere(why=f"not the leader of epoch {self.leader_epoch}", leader=leader)
        if answer.error == UNKNOWN_LEADER_EPOCH:
            return Elsewhere(why=f"knows no leader epoch {self.leader_epoch}, but {answer.leader_epoch}")
        return Elsewhere(why=f"answers error {answer.error}")

    def _after_divergence(self, diverging: EpochEnd) -> Step:
        """The leader's log is another one from here on: forget what is not committed."""
        if not self._pending:
            self._lost(f"its log of epoch {diverging.epoch} ends at {diverging.end_offset}")
        kept = [self._before(run, diverging) for run in self._pending]
        before = self.position
        self._pending = [run for run in kept if run is not None]
        if self.position == before:
            self._pending.clear()
        return Again()

    @staticmethod
    def _before(run: BatchRun, diverging: EpochEnd) -> BatchRun | None:
        """The part of a run that the leader has as well."""
        epochs = int((run.epochs <= diverging.epoch).sum())
        return run.slice(0, min(epochs, run.below(diverging.end_offset)))

    def _after_snapshot_id(self, snapshot: EpochEnd) -> Step:
        if snapshot.end_offset > self.committed_end and snapshot.epoch >= self._committed_epoch:
            return SnapshotNeeded(snapshot=snapshot)
        if not self._pending:
            self._lost(f"it offers a snapshot of offset {snapshot.end_offset}, epoch {snapshot.epoch}")
        self._pending.clear()
        return Again()

    def _lost(self, what: str) -> NoReturn:
        raise CommittedRecordsLostError(
            f"the leader of epoch {self.leader_epoch} does not have the log that was committed up to offset "
            f"{self.committed_end}, epoch {self._committed_epoch}: {what}; expected nothing committed to be lost"
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
        """Take what the mark has passed out of what is pending."""
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
