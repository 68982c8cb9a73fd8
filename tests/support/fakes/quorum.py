"""A quorum's log as its leader has it, without a network: appended, committed, elected anew, and its answers."""

import threading

from attrs import evolve

from aclog.client.fetching import EpochEnd, FetchResponse, Position
from aclog.client.snapshots import SnapshotChunk
from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.committed_log import Appended
from aclog.metalog.control_records import LeaderChange, control_batch

FENCED, UNKNOWN_EPOCH, NOT_LEADER = 74, 75, 6


def leader_change(epoch: int, offset: int, leader_id: int = 1) -> bytes:
    record = LeaderChange(leader_id=leader_id, voters=(), granting_voters=())
    return control_batch(record, base_offset=offset, leader_epoch=epoch, timestamp=epoch)


class FakeQuorum:
    """Safe for many threads. `changed` is notified of whatever changes; `hooks` too."""

    def __init__(self, *, epoch: int = 1, leader_id: int = 1) -> None:
        self.batches: list[bytes] = []
        self.high_watermark = 0
        self.log_start = 0
        self.epoch, self.leader_id = epoch, leader_id
        self.snapshot: tuple[EpochEnd, bytes] | None = None
        self.lock = threading.RLock()
        self.hooks: list = []

    @property
    def end(self) -> int:
        return read_header(self.batches[-1]).end_offset if self.batches else self.log_start

    @property
    def committed(self) -> bytes:
        """All committed bytes that the log still has."""
        return b"".join(b for b in self.batches if read_header(b).end_offset <= self.high_watermark)

    def notify(self) -> None:
        for hook in list(self.hooks):
            hook()

    def append(self, values, timestamp: int = 0, *, commit: bool = True) -> Appended:
        with self.lock:
            base = self.end
            self.batches.append(build_batch(values, base_offset=base, leader_epoch=self.epoch, timestamp=timestamp))
            if commit:
                self.high_watermark = self.end
            appended = Appended(base_offset=base, last_offset=self.end - 1, leader_epoch=self.epoch)
        self.notify()
        return appended

    def commit(self, offset: int | None = None) -> None:
        with self.lock:
            self.high_watermark = self.end if offset is None else offset
        self.notify()

    def elect(self, leader_id: int, *, keep: int | None = None, commit: bool = True) -> None:
        """A new leader, whose log has only the first `keep` of the records that are not committed, in whole batches."""
        with self.lock:
            limit = self.end if keep is None else self.high_watermark + keep
            while self.batches and read_header(self.batches[-1]).end_offset > limit:
                self.batches.pop()
            self.epoch, self.leader_id = self.epoch + 1, leader_id
            self.batches.append(leader_change(self.epoch, self.end, leader_id))
            if commit:
                self.high_watermark = self.end
        self.notify()

    def forget_below(self, snapshot: EpochEnd, data: bytes) -> None:
        """Retention: a snapshot stands for all below its end."""
        with self.lock:
            self.snapshot = snapshot, data
            self.batches = [b for b in self.batches if read_header(b).end_offset > snapshot.end_offset]
            self.log_start = snapshot.end_offset
        self.notify()

    def lose(self, offset: int) -> None:
        """What must never be: committed records are gone."""
        with self.lock:
            self.batches = [b for b in self.batches if read_header(b).end_offset <= offset]
            self.high_watermark = min(self.high_watermark, offset)
            self.elect(self.leader_id)

    def wipe(self, epoch: int, *batches: bytes) -> None:
        """Formatted again under the same cluster id, or restored from a backup of these batches."""
        with self.lock:
            self.batches, self.epoch = list(batches), epoch
            self.snapshot, self.log_start = None, 0
            self.high_watermark = self.end
        self.notify()

    def epoch_end(self, epoch: int) -> EpochEnd:
        """The end of the newest epoch that is not above `epoch` (ReplicatedLog.endOffsetForEpoch)."""
        end = EpochEnd(epoch=0 if self.snapshot is None else self.snapshot[0].epoch, end_offset=self.log_start)
        for batch in self.batches:
            header = read_header(batch)
            if header.leader_epoch <= epoch:
                end = EpochEnd(epoch=header.leader_epoch, end_offset=header.end_offset)
        return end if epoch < self.epoch else evolve(end, epoch=epoch, end_offset=self.end)

    def waits(self, position: Position) -> bool:
        """Whether a fetch of this position has nothing to be told yet."""
        with self.lock:
            answer = self.answer(position, 1)
            quiet = not (answer.error or answer.records or answer.diverging or answer.snapshot)
            return quiet and position.high_watermark >= self.high_watermark

    def answer(self, position: Position, max_bytes: int) -> FetchResponse:
        with self.lock:
            response = FetchResponse(leader_id=self.leader_id, leader_epoch=self.epoch, log_start_offset=self.log_start)
            if position.leader_epoch != self.epoch:
                return evolve(response, error=FENCED if position.leader_epoch < self.epoch else UNKNOWN_EPOCH)
            response = evolve(response, high_watermark=self.high_watermark)
            if snapshot := self._needs_snapshot(position):
                return evolve(response, snapshot=snapshot)
            end = self.epoch_end(position.last_fetched_epoch)
            at_start = position.offset == self.log_start == 0
            if not at_start and (end.epoch != position.last_fetched_epoch or end.end_offset < position.offset):
                return evolve(response, diverging=end)
            return evolve(response, records=self._records(position.offset, max_bytes))

    def _needs_snapshot(self, position: Position) -> EpochEnd | None:
        if self.snapshot is None:
            return None
        snapshot = self.snapshot[0]
        below = position.offset < self.log_start or position.last_fetched_epoch < snapshot.epoch
        return snapshot if below or position.offset == 0 else None

    def _records(self, offset: int, max_bytes: int) -> bytes:
        batches, size = [], 0
        for batch in self.batches:
            if read_header(batch).end_offset <= offset:
                continue
            if batches and size + len(batch) > max_bytes:
                break
            batches.append(batch)
            size += len(batch)
        return b"".join(batches)

    def chunk(self, snapshot: EpochEnd, position: int, leader_epoch: int, max_bytes: int) -> SnapshotChunk:
        """As Kafka 4.3.1: whatever is wrong is answered with -1."""
        with self.lock:
            if self.snapshot is None or self.snapshot[0] != snapshot or leader_epoch != self.epoch:
                return SnapshotChunk(error=-1)
            data = self.snapshot[1]
            if not 0 <= position < len(data):
                return SnapshotChunk(error=-1)
            return SnapshotChunk(size=len(data), position=position, data=data[position : position + max_bytes])
