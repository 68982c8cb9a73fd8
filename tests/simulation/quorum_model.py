"""A model of a KRaft quorum of three voters: what an observer relies on, and what it must bear.

Leaders of epochs with votes of a majority whose logs are not longer, uncommitted tails that the next leader truncates,
a high-water mark that moves behind the majority and is unknown to a new leader until it has committed a record of its
own epoch, snapshots that each voter writes by itself, and logs that are trimmed below them. Voters look at each other
when something has happened to them, not by heartbeats: an idle quorum costs nothing. Every log is durable.

What is committed is known here independently of any voter: `committed` has each batch of it, and none ever changes.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import islice
from operator import attrgetter
from random import Random
from uuid import UUID

from attrs import define, evolve, field, frozen

from aclog.client.fetching import EpochEnd, FetchResponse, Position
from aclog.client.snapshots import SnapshotChunk
from aclog.config.node_config import HostPort
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SupportedVersions,
    control_batch,
    snapshot_header_records,
)
from aclog.metalog.control_records import Voter as VoterRecord
from aclog.metalog.records import FeatureLevelRecord, RemoveAccessControlEntryRecord
from aclog.protocol import error_codes
from tests.simulation.scheduler import Scheduler
from tests.support.builders.acls import acl_record

UNKNOWN = -1
_LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=25)
_TIMEOUT = (1.0, 3.0)
"""How long a voter waits for a leader that it does not reach, in seconds."""
_RETRY = (0.2, 0.6)
"""How soon a leader sends again to a voter that it does not reach."""


@frozen(kw_only=True)
class Batch:
    """A batch of a log, and the rules after it: their numbers, with their ids."""

    data: bytes = field(repr=False)
    base: int
    end: int
    epoch: int
    rules: dict[int, UUID]
    has_level: bool


@frozen(kw_only=True)
class Snapshot:
    """A snapshot of a voter: each voter's has its own order of records."""

    at: EpochEnd
    data: bytes = field(repr=False)


_END = attrgetter("end")
_EMPTY = Batch(data=b"", base=0, end=0, epoch=0, rules={}, has_level=False)


@define(eq=False)
class Voter:
    """A voter, by the number of its node; `log` has what is not trimmed, and `start` is the batch before that."""

    number: int
    address: str
    reaches: Callable[["Voter"], bool] = field(default=lambda _: True)
    """Whether a message to another voter, or the voter itself, arrives now."""
    epoch: int = 0
    voted_in: int = 0
    """The newest epoch in which it has voted."""
    leader: int = UNKNOWN
    start: Batch = _EMPTY
    log: list[Batch] = field(factory=list)
    mark: int = UNKNOWN
    """The high-water mark that it knows; of a leader, UNKNOWN until it has committed a record of its epoch."""
    snapshot: Snapshot | None = None
    matches: dict[int, int] = field(factory=dict)
    """Of a leader: the ends of the other logs, as far as they are known to be the same."""
    sending: set[int] = field(factory=set)
    waiting: dict[Callable[[], None], None] = field(factory=dict)
    """Fetches to be answered at the next change."""

    @property
    def last(self) -> Batch:
        """The last batch."""
        return self.log[-1] if self.log else self.start

    def has(self, batch: Batch) -> bool:
        """Whether its log has, or is trimmed after, this very batch."""
        at = bisect_right(self.log, batch.end, key=_END)
        return (self.log[at - 1] if at else self.start) is batch

    @property
    def leads(self) -> bool:
        """Whether it takes itself for the leader."""
        return self.leader == self.number

    def changed(self) -> None:
        """Answer the fetches that wait."""
        waiting, self.waiting = self.waiting, {}
        for each in waiting:
            each()

    # Responses to observers (KafkaRaftClient.handleFetchRequest, ReplicatedLog.validateOffsetAndEpoch)

    def epoch_end(self, epoch: int) -> EpochEnd:
        """The end of the newest epoch that is not above `epoch`."""
        batch = next((each for each in reversed(self.log) if each.epoch <= epoch), self.start)
        return EpochEnd(epoch=batch.epoch, end_offset=batch.end)

    def answer(self, position: Position, max_bytes: int) -> FetchResponse:
        """Return the response to a fetch."""
        response = FetchResponse(leader_id=self.leader, leader_epoch=self.epoch, log_start_offset=self.start.end)
        if error := self._error(position):
            return evolve(response, error=error)
        response = evolve(response, high_watermark=self.mark)
        offset, start = position.offset, self.start.end
        if offset == start == 0:
            return evolve(response, records=self._records(0, max_bytes))
        own = self.snapshot
        if own is not None and (
            offset < start
            or (offset == start and position.last_fetched_epoch != own.at.epoch)
            or position.last_fetched_epoch < own.at.epoch
        ):
            return evolve(response, snapshot=own.at)
        end = self.epoch_end(position.last_fetched_epoch)
        if end.epoch != position.last_fetched_epoch or end.end_offset < position.offset:
            return evolve(response, diverging=end)
        return evolve(response, records=self._records(position.offset, max_bytes))

    def _error(self, position: Position) -> int:
        leader_epoch = position.leader_epoch
        if position.last_fetched_epoch > leader_epoch:
            return error_codes.INVALID_REQUEST
        if leader_epoch < self.epoch:
            return error_codes.FENCED_LEADER_EPOCH
        if leader_epoch > self.epoch:
            return error_codes.UNKNOWN_LEADER_EPOCH
        return 0 if self.leads else error_codes.NOT_LEADER_OR_FOLLOWER

    def _records(self, offset: int, max_bytes: int) -> bytes:
        chosen, size = [], 0
        for batch in islice(self.log, bisect_right(self.log, offset, key=_END), None):
            if chosen and size + len(batch.data) > max_bytes:
                break
            chosen.append(batch.data)
            size += len(batch.data)
        return b"".join(chosen)

    def waits(self, position: Position, response: FetchResponse) -> bool:
        """Whether a fetch has nothing to be answered with yet."""
        has_news = response.error or response.records or response.diverging or response.snapshot
        return not has_news and position.high_watermark >= self.mark

    def chunk(self, snapshot: EpochEnd, position: int, leader_epoch: int, max_bytes: int) -> SnapshotChunk:
        """Return the response to FetchSnapshot; as of Kafka 4.3.1, every error is -1."""
        own = self.snapshot
        if own is None or own.at != snapshot or leader_epoch != self.epoch or not 0 <= position < len(own.data):
            return SnapshotChunk(error=-1)
        return SnapshotChunk(size=len(own.data), position=position, data=own.data[position : position + max_bytes])


@define(eq=False)
class Quorum:
    """The voters, their messages, and what is committed."""

    scheduler: Scheduler
    rules: tuple[object, ...]
    """What can be written: StandardAcls, known by their numbers here."""
    now_ms: Callable[[], int]
    salt: int = 0
    """Distinguishes the ids of another quorum's records."""
    is_dynamic: bool = True
    """Whether the log names the directories of the voters (kraft.version 1)."""
    lag: float = 0.002
    """The usual time that a message between voters takes, in seconds."""
    voters: list[Voter] = field(factory=list)
    committed: list[Batch] = field(factory=list, init=False)
    by_end: dict[int, Batch] = field(factory=dict, init=False)
    """The committed batches by their end offsets."""
    _ids: int = field(default=0, init=False)

    @property
    def end(self) -> int:
        """The end of what is committed."""
        return self.committed[-1].end if self.committed else 0

    @property
    def voter_records(self) -> KRaftVoters | None:
        """The voters as the log names them; None with kraft.version 0."""
        if not self.is_dynamic:
            return None
        versions = SupportedVersions(min_supported_version=0, max_supported_version=1)
        return KRaftVoters(
            voters=tuple(
                VoterRecord(
                    voter_id=each.number,
                    voter_directory_id=UUID(int=(1 << 80) + (self.salt << 64) + each.number),
                    endpoints=(),
                    kraft_version_feature=versions,
                )
                for each in self.voters
            )
        )

    def leader(self) -> Voter | None:
        """The leader of the newest epoch, if there is one."""
        leaders = [each for each in self.voters if each.leads]
        return max(leaders, key=lambda each: each.epoch, default=None)

    def _later(self, low: float, high: float, call: Callable[..., object], *args: object) -> None:
        self.scheduler.after(self.scheduler.random.uniform(low, high), call, *args)

    # Elections

    def begin(self) -> None:
        """Let every voter look for a leader."""
        for voter in self.voters:
            self._later(0.0, _TIMEOUT[1], self.look, voter)

    def look_again(self) -> None:
        """Something has happened to voters or their connections: each looks at its leader after a while."""
        for voter in self.voters:
            self._later(*_TIMEOUT, self.look, voter)

    def look(self, voter: Voter) -> None:
        """Resign without a majority, or stand for election without a leader."""
        if not voter.reaches(voter):
            return  # it is dead, or paused
        if voter.leads:
            others = [each for each in self.voters if each is not voter and self._meet(voter, each)]
            if len(others) + 1 <= len(self.voters) // 2:
                self.scheduler.cover("leader resigns")
                voter.leader = UNKNOWN
                voter.changed()
                self._later(*_TIMEOUT, self.look, voter)
            return
        leader = next((each for each in self.voters if each.number == voter.leader), None)
        if leader is None or not self._meet(voter, leader) or not leader.leads or leader.epoch != voter.epoch:
            self.stand(voter)

    def _meet(self, one: Voter, other: Voter) -> bool:
        return one.reaches(other) and other.reaches(one)

    def stand(self, voter: Voter) -> None:
        """Stand for election in a new epoch; the votes arrive at once."""
        granting = [
            each
            for each in self.voters
            if each is voter
            or (self._meet(voter, each) and (voter.last.epoch, voter.last.end) >= (each.last.epoch, each.last.end))
        ]
        reached = [each for each in self.voters if each is voter or self._meet(voter, each)]
        if len(reached) <= len(self.voters) // 2:  # pre-vote (KIP-996): no new epoch without a chance
            self._later(*_TIMEOUT, self.look, voter)
            return
        epoch = max(each.epoch for each in reached) + 1
        if len(granting) <= len(self.voters) // 2:
            self._later(*_TIMEOUT, self.look, voter)
            for each in reached:
                self._later(*_TIMEOUT, self.look, each)
            return
        for each in granting:
            self._follow(each, epoch, UNKNOWN)
        self._lead(voter, epoch)

    def _follow(self, voter: Voter, epoch: int, leader: int) -> None:
        if (voter.epoch, voter.leader) != (epoch, leader):
            voter.epoch, voter.leader = epoch, leader
            voter.matches.clear()
            voter.changed()

    def _lead(self, voter: Voter, epoch: int) -> None:
        self.scheduler.note("voter", voter.number, "leads epoch", epoch, "from", voter.last.end)
        self.scheduler.cover("election")
        voter.epoch, voter.leader, voter.mark = epoch, voter.number, UNKNOWN
        voter.matches, voter.sending = {}, set()
        record = LeaderChange(leader_id=voter.number, voters=(), granting_voters=())
        last, voters = voter.last, self.voter_records
        records: list[ControlRecord] = [record]
        if not last.end and voters is not None:
            records += [KRaftVersion(kraft_version=1), voters]
        data = control_batch(*records, base_offset=last.end, leader_epoch=epoch, timestamp=self.now_ms())
        self._append(voter, evolve(last, data=data, base=last.end, end=last.end + len(records), epoch=epoch))

    # Replication

    def write(self, voter: Voter, random: Random) -> None:
        """Append changes of rules to the log of a leader."""
        last, values = voter.last, []
        rules, has_level = dict(last.rules), last.has_level
        if not has_level:
            values.append(encode_record(_LEVEL))
        for number in random.sample(range(len(self.rules)), random.choice((1, 1, 2, 5))):
            if number in rules:
                values.append(encode_record(RemoveAccessControlEntryRecord(id=rules.pop(number))))
            else:
                self._ids += 1
                rules[number] = UUID(int=(self.salt << 64) + self._ids)
                values.append(encode_record(acl_record(rules[number], self.rules[number])))  # type: ignore[arg-type]
        data = build_batch(values, base_offset=last.end, leader_epoch=voter.epoch, timestamp=self.now_ms())
        end = last.end + len(values)
        self._append(voter, Batch(data=data, base=last.end, end=end, epoch=voter.epoch, rules=rules, has_level=True))

    def _append(self, voter: Voter, batch: Batch) -> None:
        voter.log.append(batch)
        voter.changed()
        if len(self.voters) == 1:
            self._move_mark(voter)
        for other in self.voters:
            self._send(voter, other)

    def _send(self, leader: Voter, other: Voter) -> None:
        """Replicate to another voter, one message after the other."""
        if other is leader or other.number in leader.sending or not leader.leads:
            return
        if leader.matches.get(other.number) == leader.last.end and (other.epoch, other.mark) == (
            leader.epoch,
            max(other.mark, leader.mark),
        ):
            return
        leader.sending.add(other.number)
        if leader.reaches(leader) and self._meet(leader, other):
            self._later(0.2 * self.lag, 2.0 * self.lag, self._receive, leader, leader.epoch, other)
        else:
            self._later(*_RETRY, self._send_again, leader, other)

    def _send_again(self, leader: Voter, other: Voter) -> None:
        leader.sending.discard(other.number)
        self._send(leader, other)

    def _receive(self, leader: Voter, epoch: int, other: Voter) -> None:
        leader.sending.discard(other.number)
        if not leader.leads or leader.epoch != epoch:
            return
        if not self._meet(leader, other):
            self._send(leader, other)
            return
        if other.epoch > epoch:
            self._follow(leader, other.epoch, UNKNOWN)
            self.look_again()
            return
        self._follow(other, epoch, leader.number)
        self._copy(leader, other)
        other.mark = max(other.mark, min(leader.mark, other.last.end))
        leader.matches[other.number] = other.last.end
        self._move_mark(leader)
        self._send(leader, other)

    def _copy(self, leader: Voter, other: Voter) -> None:
        """Truncate what diverges, and append what is missing."""
        while other.log and other.last.end >= leader.start.end and not leader.has(other.last):
            if other.last.base < other.mark:
                self.scheduler.fail(f"the model truncates offset {other.last.base} of voter {other.number}")
            other.log.pop()
            self.scheduler.cover("uncommitted tail truncated")
        if not leader.has(other.last):
            other.start, other.log, other.snapshot = leader.start, list(leader.log), leader.snapshot
            self.scheduler.cover("voter loads a snapshot")
            return
        other.log += leader.log[bisect_right(leader.log, other.last.end, key=_END) :]

    def _move_mark(self, leader: Voter) -> None:
        ends = sorted(
            [leader.last.end, *(leader.matches.get(each.number, 0) for each in self.voters if each is not leader)]
        )
        mark = ends[(len(ends) - 1) // 2]
        count = bisect_right(leader.log, mark, key=_END)
        batch = leader.log[count - 1] if count else leader.start
        if batch.epoch != leader.epoch or batch.end <= leader.mark:
            return
        for each in leader.log[max(bisect_right(leader.log, self.end, key=_END) - 1, 0) : count]:
            self._commit(each)
        leader.mark = batch.end
        leader.changed()
        for other in self.voters:
            self._send(leader, other)

    def _commit(self, batch: Batch) -> None:
        if batch.end <= self.end:
            if self.by_end.get(batch.end) is not batch:
                self.scheduler.fail(f"the model commits another batch before offset {batch.end}")
            return
        self.committed.append(batch)
        self.by_end[batch.end] = batch

    # Snapshots

    def take_snapshot(self, voter: Voter, random: Random, back: int) -> bool:
        """Write a snapshot of what a voter knows to be committed, less `back` batches, and trim the log below it."""
        known = voter.log[: bisect_right(voter.log, voter.mark, key=_END)]
        if not known:
            return False
        batch = known[-1 - min(back, len(known) - 1)]
        values = [encode_record(acl_record(uuid, self.rules[number])) for number, uuid in batch.rules.items()]  # type: ignore[arg-type]
        random.shuffle(values)
        if batch.has_level:
            values.insert(0, encode_record(_LEVEL))
        place = {"leader_epoch": batch.epoch, "timestamp": self.now_ms()}
        header = snapshot_header_records(
            last_contained_log_timestamp=place["timestamp"],
            kraft_version=int(self.is_dynamic),
            voters=self.voter_records,
        )
        parts = [control_batch(*header, base_offset=0, **place)]
        if values:
            parts.append(build_batch(values, base_offset=len(header), **place))
        parts.append(control_batch(SnapshotFooter(), base_offset=len(header) + len(values), **place))
        voter.snapshot = Snapshot(at=EpochEnd(epoch=batch.epoch, end_offset=batch.end), data=b"".join(parts))
        voter.start = batch
        voter.log = [each for each in voter.log if each.base >= batch.end]
        self.scheduler.cover("trimmed log")
        self.scheduler.note("voter", voter.number, "has a snapshot of", batch.end)
        voter.changed()
        return True


def endpoints_of(voters: list[Voter], port: int) -> dict[int, HostPort]:
    """Return the addresses of voters by their numbers."""
    return {each.number: HostPort(host=each.address, port=port) for each in voters}
