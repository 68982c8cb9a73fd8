"""A quorum as a controller of it tells of it: ids, who leads, epochs, checkpoints, and who follows (LeaderState)."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from attrs import define, field, frozen

from aclog.metalog.filelog.file_names import CheckpointFile
from aclog.metalog.log import EpochStart
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.wire.error_codes import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
)

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)

OBSERVER_SECONDS = 300.0
"""How long an observer is told of after its last fetch (LeaderState.OBSERVER_SESSION_TIMEOUT_MS)."""

_MOST_OBSERVERS = 1000
"""Ids are whatever a client says they are: no client may fill the memory with them."""


@frozen(kw_only=True)
class OffsetAndEpoch:
    """The end of an epoch, or a checkpoint's id (OffsetAndEpoch)."""

    offset: int
    epoch: int


@frozen(kw_only=True)
class ReplicaState:
    """What is known of a replica: where it reads, and when it last did, in ms since 1970."""

    replica_id: int
    directory_id: UUID | None
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


@frozen(kw_only=True)
class LeaderAndEpoch:
    """Who leads and since which epoch, as far as is known; -1 stands for nobody (org.apache.kafka.raft)."""

    leader_id: int = -1
    epoch: int = 0


@define(eq=False, kw_only=True)
class Quorum:
    """Owned by a controller, used on its event loop."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None
    leader: Callable[[], LeaderAndEpoch]
    """Asked for every answer: where several controllers share a log, it changes."""
    voters: Mapping[int, HostPort] = field(factory=dict)
    """Where other controllers, of which one may lead, are reached, by their ids; this one may be among them."""
    epochs: Sequence[EpochStart] = ()
    advertised: Mapping[str, HostPort]
    """Where clients of each listener reach this node, by the listener's name; filled in when the ports are known."""
    listener_names: tuple[str, ...]
    """The controllers' listeners among them."""
    checkpoints: tuple[CheckpointFile, ...] = ()
    """The finished ones, by offset; replaced as a whole when one is written or removed."""
    _observers: dict[tuple[int, UUID | None], ReplicaState] = field(factory=dict, init=False)

    @property
    def leads(self) -> bool:
        """Whether this node leads."""
        return self.leader().leader_id == self.node_id

    def leader_address(self, listener_name: str) -> HostPort | None:
        """Where clients of a listener reach the leader; None where nobody leads, or it is not known where."""
        leader_id = self.leader().leader_id
        return self.advertised[listener_name] if leader_id == self.node_id else self.voters.get(leader_id)

    def addresses(self, listener_name: str) -> dict[int, HostPort]:
        """Where clients of a listener reach the controllers, by id in order."""
        found = {**self.voters, self.node_id: self.advertised[listener_name]}
        return {node_id: found[node_id] for node_id in sorted(found)}

    @property
    def newest_checkpoint(self) -> OffsetAndEpoch | None:
        """The id of the newest one that holds more than `format` has put there."""
        if not self.checkpoints or not self.checkpoints[-1].end_offset:
            return None
        return OffsetAndEpoch(offset=self.checkpoints[-1].end_offset, epoch=self.checkpoints[-1].epoch)

    def is_checkpoint(self, offset: int, epoch: int) -> bool:
        """Whether there is a checkpoint of this id."""
        return any((each.end_offset, each.epoch) == (offset, epoch) for each in self.checkpoints)

    def end_of_epoch(self, epoch: int, high_watermark: int) -> OffsetAndEpoch:
        """Where `epoch` ends in this log, or the largest one below it (LeaderEpochFileCache.endOffsetFor)."""
        later = bisect_right(self.epochs, epoch, key=lambda start: start.epoch)
        end = self.epochs[later].start_offset if later < len(self.epochs) else high_watermark
        return OffsetAndEpoch(offset=end, epoch=self.epochs[later - 1].epoch if later else epoch)

    def leader_error(self, current_leader_epoch: int) -> int:
        """The error code for who takes this node for the leader of an epoch, 0 for who is right.

        Mirrors KafkaRaftClient.validateLeaderOnlyRequest: a wrong epoch is told before a wrong node.
        """
        leader = self.leader()
        if current_leader_epoch < 0:
            return INVALID_REQUEST
        if current_leader_epoch != leader.epoch:
            return FENCED_LEADER_EPOCH if current_leader_epoch < leader.epoch else UNKNOWN_LEADER_EPOCH
        return 0 if leader.leader_id == self.node_id else NOT_LEADER_OR_FOLLOWER

    def observe(self, replica_id: int, directory_id: UUID | None, offset: int, *, end_offset: int, now: int) -> None:
        """A follower that wants to be seen has fetched from `offset` at `now`, when the log ended at `end_offset`."""
        key = (replica_id, directory_id)
        before = self._observers.pop(key, None)
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
        """Those that fetched lately."""
        oldest = now - OBSERVER_SECONDS * 1000
        gone = [key for key, each in self._observers.items() if each.last_fetch_timestamp < oldest]
        for key in gone:
            del self._observers[key]
        return tuple(self._observers.values())
