"""A model of a Kafka of three brokers with one topic: transactions, the last stable offset, and a consumer group.

It is what `aclog/metalog/topiclog` relies on: producers are fenced by the epoch of their transactional id (KIP-98), a
write without an open transaction is verified with the coordinator (KIP-890), a commit is decided before its marker is
written, and read_committed readers see whole committed transactions below the last stable offset. `kafka_contract.py`
compares it with a real Kafka. Brokers do not fail; what fails is the network between a host and one of them.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import define, field
from confluent_kafka import KafkaError

from tests.simulation.scheduler import Event, Scheduler

Respond: TypeAlias = Callable[[Any], None]
"""Receives the response; an int is the code of an error."""

PARTITION_LEADER, GROUP_COORDINATOR, TRANSACTION_COORDINATOR = "10.0.9.1", "10.0.9.2", "10.0.9.3"
BROKERS = (PARTITION_LEADER, GROUP_COORDINATOR, TRANSACTION_COORDINATOR)
KAFKA_CLUSTER_ID, TOPIC_ID = "a2Fma2Etb2YtdGhlLXdvcg", "dG9waWMtb2YtdGhlLXdvcg"
_MARKER_SECONDS = 0.02
"""The usual time from the decision of a transaction until its marker is in the partition."""


@define(eq=False)
class Transaction:
    """A transaction of a producer; its records are visible once it is committed."""

    first: int
    is_open: bool = True
    committed: bool = False


@define(eq=False)
class Entry:
    """A record, or a marker, which has no transaction."""

    offset: int
    value: bytes | None
    timestamp: int
    headers: list[tuple[str, bytes | None]]
    transaction: Transaction | None = None


@define
class ProducerState:
    """What the leader of the partition remembers of a producer id."""

    epoch: int
    sequence: int = -1
    """The last sequence number of this epoch."""


@define(eq=False)
class Coordinated:
    """A transactional id at its coordinator."""

    producer_id: int
    epoch: int = -1
    timeout: float = 60.0
    state: str = "Empty"
    """Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort (TransactionState)."""
    expiry: Event | None = None


@define(eq=False)
class Partition:
    """Partition 0 of the topic, at its leader."""

    entries: list[Entry] = field(factory=list)
    start: int = 0
    """The log start offset."""
    open_transactions: dict[int, Transaction] = field(factory=dict)
    producers: dict[int, ProducerState] = field(factory=dict)
    waiting: list[Callable[[], None]] = field(factory=list)
    """Fetches to be answered at the next change."""

    @property
    def end(self) -> int:
        """The high watermark: all replicas have every record."""
        return len(self.entries)

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the end."""
        return min((each.first for each in self.open_transactions.values()), default=self.end)

    def append(self, value: bytes | None, timestamp: int, headers: Any, transaction: Transaction | None) -> None:
        """Append an entry."""
        self.entries.append(Entry(self.end, value, timestamp, headers, transaction))

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Write the marker of a producer's transaction, which also raises the producer's epoch here."""
        transaction = self.open_transactions.pop(producer_id, None)
        state = self.producers.setdefault(producer_id, ProducerState(epoch))
        if epoch > state.epoch:
            self.producers[producer_id] = ProducerState(epoch)
        if transaction is not None:
            self.append(None, 0, [], None)
            transaction.is_open, transaction.committed = False, commit
        self.changed()

    def changed(self) -> None:
        """Answer the fetches that wait."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()


@define(eq=False)
class Member:
    """A member of the consumer group."""

    seen: float
    timeout: float


@define(eq=False)
class Kafka:
    """The brokers' state. Every method is called when its request arrives, and responds at once or later."""

    scheduler: Scheduler
    partition: Partition | None = None
    """None: the topic does not exist."""
    config: dict[str, str] = field(factory=dict)
    marker_seconds: float = _MARKER_SECONDS
    members: dict[str, Member] = field(factory=dict)
    owner: str | None = None
    """The member that the partition is assigned to."""
    rebalance_until: float = 0.0
    on_marker: Callable[[], None] = field(default=lambda: None)
    """Called after each marker: what is committed has changed."""
    _ids: dict[str, Coordinated] = field(factory=dict)
    _producer_ids: int = 1000

    # The transaction coordinator

    def init_producer_id(self, respond: Respond, transactional_id: str, timeout: float) -> None:
        """Fence the previous producer, abort its open transaction, and respond with (producer id, epoch)."""
        at = self._ids.get(transactional_id)
        if at is None:
            self._producer_ids += 1
            at = self._ids[transactional_id] = Coordinated(self._producer_ids)
        if at.state.startswith("Prepare"):
            respond(KafkaError.CONCURRENT_TRANSACTIONS)
        elif at.state == "Ongoing":
            at.epoch += 1
            self._prepare(at, commit=False)
            respond(KafkaError.CONCURRENT_TRANSACTIONS)
        else:
            at.epoch, at.state, at.timeout = at.epoch + 1, "Empty", timeout
            respond((at.producer_id, at.epoch))

    def add_partition(self, respond: Respond, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Begin a transaction."""
        at = self._ids.get(transactional_id)
        if at is None or at.producer_id != producer_id:
            respond(KafkaError.INVALID_PRODUCER_ID_MAPPING)
        elif epoch != at.epoch:
            respond(KafkaError.PRODUCER_FENCED)
        elif at.state.startswith("Prepare"):
            respond(KafkaError.CONCURRENT_TRANSACTIONS)
        else:
            if at.state != "Ongoing":
                at.state = "Ongoing"
                at.expiry = self.scheduler.after(at.timeout, self._expire, at, epoch)
            respond(None)

    def end_txn(self, respond: Respond, transactional_id: str, producer_id: int, epoch: int, commit: bool) -> None:
        """Decide a transaction; the marker follows."""
        at = self._ids.get(transactional_id)
        outcome = "Commit" if commit else "Abort"
        if at is None or at.producer_id != producer_id:
            respond(KafkaError.INVALID_PRODUCER_ID_MAPPING)
        elif epoch != at.epoch:
            respond(KafkaError.PRODUCER_FENCED)
        elif at.state == "Ongoing":
            self._prepare(at, commit=commit)
            respond(None)
        elif at.state == f"Prepare{outcome}":
            respond(KafkaError.CONCURRENT_TRANSACTIONS)
        else:  # a repeated request has its first one's response
            respond(None if at.state == f"Complete{outcome}" else KafkaError.INVALID_TXN_STATE)

    def _prepare(self, at: Coordinated, *, commit: bool) -> None:
        if at.expiry is not None:
            at.expiry.cancel()
            at.expiry = None
        at.state = "PrepareCommit" if commit else "PrepareAbort"
        delay = self.marker_seconds * self.scheduler.random.uniform(0.1, 2)
        self.scheduler.after(delay, self._complete, at, commit)

    def _complete(self, at: Coordinated, commit: bool) -> None:
        if self.partition is not None:
            self.partition.end_transaction(at.producer_id, at.epoch, commit=commit)
        at.state = "CompleteCommit" if commit else "CompleteAbort"
        self.scheduler.cover("transaction committed" if commit else "transaction aborted")
        self.on_marker()

    def _expire(self, at: Coordinated, epoch: int) -> None:
        if at.state == "Ongoing" and at.epoch == epoch:
            at.epoch += 1
            self.scheduler.cover("transaction timed out")
            self._prepare(at, commit=False)

    # The leader of the partition

    def produce(
        self, respond: Respond, transactional_id: str, producer_id: int, epoch: int, sequence: int, records: list[Any]
    ) -> None:
        """Append records of an open transaction; `sequence` is the number of the first one in this epoch."""
        partition, at = self.partition, self._ids.get(transactional_id)
        if partition is None or at is None:
            respond(KafkaError.UNKNOWN_TOPIC_OR_PART)
            return
        state = partition.producers.get(producer_id)
        if state is not None and epoch < state.epoch:
            respond(KafkaError.INVALID_PRODUCER_EPOCH)
            return
        if producer_id not in partition.open_transactions and (at.epoch != epoch or at.state != "Ongoing"):
            respond(KafkaError.INVALID_TXN_STATE if at.epoch == epoch else KafkaError.INVALID_PRODUCER_EPOCH)
            return
        if state is None or epoch > state.epoch:
            state = partition.producers[producer_id] = ProducerState(epoch)
        if sequence + len(records) - 1 <= state.sequence:
            self.scheduler.cover("duplicate produce request")
            respond(None)
            return
        if sequence != state.sequence + 1:
            respond(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
            return
        state.sequence += len(records)
        transaction = partition.open_transactions.setdefault(producer_id, Transaction(partition.end))
        for value, timestamp, headers in records:
            partition.append(value, timestamp, headers, transaction)
        partition.changed()
        respond(None)

    def list_offsets(self, respond: Respond, committed: bool) -> None:
        """Respond with the log start offset and, if `committed`, the last stable offset, else the high watermark."""
        partition = self.partition
        if partition is None:
            respond(KafkaError.UNKNOWN_TOPIC_OR_PART)
        else:
            respond((partition.start, partition.last_stable_offset if committed else partition.end))

    def fetch(self, respond: Respond, offset: int, committed: bool, most: int, wait: float) -> None:
        """Respond with (messages, next offset, end), after `wait` seconds at most if there is nothing to return."""
        deadline = self.scheduler.now + wait

        def attempt(*, last: bool = False) -> None:
            partition = self.partition
            if partition is None:
                respond(KafkaError.UNKNOWN_TOPIC_OR_PART)
                return
            end = partition.last_stable_offset if committed else partition.end
            if not partition.start <= offset <= partition.end:
                respond(KafkaError.OFFSET_OUT_OF_RANGE)
                return
            if offset >= end and not last and deadline > self.scheduler.now:
                partition.waiting.append(again)
                return
            timer.cancel()
            stop = max(offset, min(end, offset + most))
            chosen = [
                each
                for each in partition.entries[offset:stop]
                if each.transaction is not None and (not committed or each.transaction.committed)
            ]
            respond((chosen, stop, end))

        def again() -> None:
            if not timer.cancelled:
                attempt()

        def give_up() -> None:
            timer.cancel()
            partition = self.partition
            if partition is not None and again in partition.waiting:
                partition.waiting.remove(again)
            attempt(last=True)

        timer = self.scheduler.at(deadline, give_up)
        attempt()

    def delete_records(self, before: int) -> None:
        """Move the log start offset, as DeleteRecords and retention do."""
        if self.partition is not None:
            self.partition.start = max(self.partition.start, before)
            self.partition.changed()

    # The controller

    def describe_topic(self, respond: Respond) -> None:
        """Respond with whether the topic exists."""
        respond(self.partition is not None)

    def create_topic(self, respond: Respond, config: dict[str, str]) -> None:
        """Create the topic."""
        if self.partition is not None:
            respond(KafkaError.TOPIC_ALREADY_EXISTS)
            return
        self.partition, self.config = Partition(), dict(config)
        respond(None)

    # The group coordinator: one partition, and a sticky assignment, so that one member is the owner

    def heartbeat(self, respond: Respond, member: str, timeout: float, *, join: bool) -> None:
        """Respond with whether the member owns the partition; to a member that is not in the group, with an error."""
        now = self.scheduler.now
        self._remove_silent()
        known = self.members.get(member)
        if known is None and not join:
            respond(KafkaError.UNKNOWN_MEMBER_ID)
            return
        if known is None:
            self.members[member] = Member(now, timeout)
            if len(self.members) == 1:
                self.rebalance_until = now + self.scheduler.random.choice((0.1, 3.0))
        else:
            known.seen = now
        if self.owner is None and now >= self.rebalance_until:
            self.owner = self.scheduler.random.choice(list(self.members))
            self.scheduler.note("kafka", "elects", self.owner)
        respond(self.owner == member)

    def leave(self, respond: Respond, member: str) -> None:
        """Remove a member."""
        self._remove(member)
        respond(None)

    def _remove_silent(self) -> None:
        for name, each in list(self.members.items()):
            if each.seen + each.timeout < self.scheduler.now:
                self.scheduler.cover("candidate's session expired")
                self._remove(name)

    def _remove(self, name: str) -> None:
        if self.members.pop(name, None) is not None and self.owner == name:
            self.owner = None
            # The others join again at their next heartbeats.
            self.rebalance_until = self.scheduler.now + self.scheduler.random.uniform(0.1, 1.0)
