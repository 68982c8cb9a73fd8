"""The quorum as a controller reports it: leader, epochs, checkpoints, observers (org.apache.kafka.raft.LeaderState)."""

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
    """The known leader and epoch; leader_id is -1 if there is none (org.apache.kafka.raft.LeaderAndEpoch)."""

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
        found = {**self.voters, self.node_id: self.advertised[listener_name]}
        return {node_id: found[node_id] for node_id in sorted(found)}

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
            return INVALID_REQUEST
        if current_leader_epoch != leader.epoch:
            return FENCED_LEADER_EPOCH if current_leader_epoch < leader.epoch else UNKNOWN_LEADER_EPOCH
        return 0 if leader.leader_id == self.node_id else NOT_LEADER_OR_FOLLOWER

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
        gone = [key for key, each in self._observers.items() if each.last_fetch_timestamp < oldest]
        for key in gone:
            del self._observers[key]
        return tuple(self._observers.values())
