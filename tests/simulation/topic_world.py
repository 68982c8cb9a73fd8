"""World b: three controllers that share a log in a topic of a modelled Kafka, a broker, and clients of all of them."""

from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import define, evolve, field

from aclog.config.node_config import CheckpointPolicy, HostPort
from aclog.config.server_properties import parse_config
from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.topic_message import decode_headers
from aclog.metalog.topiclog import client as topic_client
from aclog.snapshots.image import Image
from tests.simulation import kafka_clients
from tests.simulation.cluster_world import (
    OF_PROCESSES_AND_NETWORKS,
    PORT,
    ClusterWorld,
    Fault,
    Kinds,
    schedule,
)
from tests.simulation.history import Call
from tests.simulation.kafka_clients import Request, SimulatedKafka
from tests.simulation.kafka_model import BROKERS as KAFKA_BROKERS
from tests.simulation.kafka_model import PARTITION_LEADER, TRANSACTION_COORDINATOR
from tests.simulation.processes import Host, Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import PATTERNS, Client, rules_of

CONTROLLERS, BROKERS = ("c1", "c2", "c3"), ("b1",)
KINDS: Kinds = (
    *OF_PROCESSES_AND_NETWORKS,
    ("long pause", 6),
    ("cut off Kafka", 6),
    ("cut off the log", 4),
    ("reset Kafka connections", 6),
    ("slow markers", 3),
)


def target(random: Random) -> str:
    """Draw the host of a fault."""
    return random.choice((*CONTROLLERS, *CONTROLLERS, *CONTROLLERS, *BROKERS))


@define
class _Committed:
    """What of the topic is committed, decoded by headers alone: a check that does not depend on any node."""

    end_offset: int = 0
    epoch: int = 0
    position: int = 0


@define(eq=False, kw_only=True)
class TopicWorld(ClusterWorld):
    """Three controllers, of which at most one commits, and a broker."""

    controllers: tuple[str, ...] = CONTROLLERS
    brokers: tuple[str, ...] = BROKERS
    kafka: SimulatedKafka = field(init=False)
    _log: _Committed = field(factory=_Committed, init=False)

    def run(self) -> None:
        """See ClusterWorld."""
        self.kafka = SimulatedKafka(self.scheduler, self.network)
        self.kafka.model.on_marker = self._check_log
        real = topic_client.Consumer, topic_client.Producer, topic_client.AdminClient
        kafka_clients.Consumer.kafka = kafka_clients.Producer.kafka = kafka_clients.AdminClient.kafka = self.kafka
        try:
            topic_client.Consumer, topic_client.Producer = kafka_clients.Consumer, kafka_clients.Producer  # type: ignore[misc,assignment]
            topic_client.AdminClient = kafka_clients.AdminClient  # type: ignore[misc,assignment]
            super().run()
        finally:
            topic_client.Consumer, topic_client.Producer, topic_client.AdminClient = real  # type: ignore[misc]

    def least_mark(self, name: str) -> int:
        """See ClusterWorld. A controller is not ready before a first leader has begun the log."""
        return 2 if name in CONTROLLERS else 0

    def committed_at_start(self) -> int:
        """See ClusterWorld. A broker may follow a controller that was deposed and has not noticed it."""
        return 0

    def _build(self) -> None:
        scheduler = self.scheduler
        random = scheduler.random
        for name in self.nodes:
            self.host(name)
        voters = ",".join(f"{number}@{self.hosts[name].address}:{PORT}" for number, name in enumerate(CONTROLLERS, 1))
        policy = CheckpointPolicy(
            bytes_between=random.choice((1_500, 6_000, 1 << 20)), interval_ms=random.choice((0, 30_000, 3_600_000))
        )
        for number, name in enumerate(self.nodes, 1):
            properties = self.properties_of(number, name) | {"controller.quorum.voters": voters}
            if name in CONTROLLERS:
                properties |= {
                    "metadata.log.kind": "topic",
                    "metadata.log.bootstrap.servers": ",".join(f"{each}:9092" for each in KAFKA_BROKERS),
                }
                self.hosts[name].disk.on_rename = self.check_checkpoint
            self._configs[name] = evolve(parse_config(properties, name), checkpoints=policy)
        servers = self.servers()
        contended = random.random() < 0.3
        if contended:
            self.patterns = (random.randrange(len(PATTERNS)),)
            self.kafka.model.marker_seconds = 0.2
        for number in range(3 if contended else random.choice((1, 2, 6))):
            think = 0.3 if contended else random.choice((0.3, 2.0, 6.0))
            self._clients.append(Client(world=self, name=f"k{number}", servers=servers, brokers=servers, think=think))
        if random.random() < 0.3:
            self._lag_at_start()
        elif random.random() < 0.5:
            scheduler.after(random.uniform(10.0, 30.0), self._await_a_transaction)

    def _await_a_transaction(self) -> None:
        self.kafka.on_request = self._pause_in_a_transaction

    def _pause_in_a_transaction(self, request: Request) -> None:
        """Pause the active controller in a transaction: it resumes after its successor has begun."""
        scheduler = self.scheduler
        for name in self._active():
            if request.is_of(self.hosts[name].address, TRANSACTION_COORDINATOR) and not self.quiet:
                self.kafka.on_request = lambda _: None
                seconds = scheduler.random.uniform(8.0, 12.0)
                fault = Fault(at=scheduler.now, kind="pause", target=name, seconds=seconds)
                scheduler.after(scheduler.random.uniform(0.0, 0.002), super()._strike, fault)

    def _lag_at_start(self) -> None:
        """Cut a candidate off the log before that is begun, and end the others: it takes over with an empty image."""
        random, scheduler, model = self.scheduler.random, self.scheduler, self.kafka.model
        if model.owner is None:
            scheduler.after(0.05, self._lag_at_start)
            return
        owner = model.owner.partition("-")[0]
        members = {each.partition("-")[0] for each in model.members}
        others = [name for name in CONTROLLERS if name != owner and name in members]
        if not others:
            return
        lagging = random.choice(others)
        address = self.hosts[lagging].address
        self.network.cut.update(dict.fromkeys(((address, PARTITION_LEADER), (PARTITION_LEADER, address))))
        scheduler.after(random.uniform(20.0, 28.0), self.network.heal)
        end = random.uniform(6.0, 9.0)
        for name in CONTROLLERS:
            if name != lagging:
                kind = "kill" if name == owner else "pause"
                fault = Fault(at=scheduler.now + end, kind=kind, target=name, seconds=30.0)
                scheduler.after(end, super()._strike, fault)

    # Checks

    def _check_log(self) -> None:
        """Each epoch has one leader, and none writes after the next one: no two active controllers commit."""
        partition, log = self.kafka.model.partition, self._log
        if partition is None:
            return
        for entry in partition.entries[log.position : partition.last_stable_offset]:
            log.position = entry.offset + 1
            if entry.transaction is None or not entry.transaction.committed:
                continue
            place = decode_headers(entry.headers)
            if place.offset != log.end_offset:
                self.scheduler.fail(f"offset {place.offset} is committed where {log.end_offset} is due")
            log.end_offset = place.offset + 1
            if place.epoch < log.epoch:
                self.scheduler.fail(f"offset {place.offset} of epoch {place.epoch} is committed in epoch {log.epoch}")
            record = None if place.control is None else decode_control(place.control, entry.value or b"")
            if place.epoch == log.epoch and isinstance(record, LeaderChange):
                self.scheduler.fail(f"epoch {place.epoch} has a second leader, {record.leader_id}")
            if place.epoch != log.epoch:
                self.scheduler.cover("takeover")
                if not isinstance(record, LeaderChange):
                    self.scheduler.fail(f"epoch {place.epoch} begins at offset {place.offset} without a LeaderChange")
                log.epoch = place.epoch

    def published(self, process: Process, image: Image) -> None:
        """See World; and the records of the image are committed in the topic."""
        super().published(process, image)
        if image.end_offset > self._log.end_offset:
            self.scheduler.fail(f"{process} shows offset {image.end_offset}; {self._log.end_offset} is committed")

    def _check_ends(self, ends: Any) -> None:
        super()._check_ends(ends)
        active = self._active()
        if len(active) != 1:
            self.scheduler.fail(f"active controllers after the last fault: {active}; expected one")

    def _active(self) -> list[str]:
        nodes = {name: getattr(self.hosts[name].process, "node", None) for name in CONTROLLERS}
        return [
            name
            for name, node in nodes.items()
            if node is not None and not self.hosts[name].process.dead and node._controller.active  # type: ignore[union-attr]
        ]

    def _last_requests(self) -> list[tuple[HostPort, int, str]]:
        chosen = (*self._active(), *BROKERS)
        return [(HostPort(host=self.hosts[name].address, port=PORT), 0, "create") for name in chosen]

    def _check_clients(self) -> None:
        """See ClusterWorld; then the final state is one that the histories explain."""
        super()._check_clients()
        scheduler = self.scheduler
        if scheduler.failures:
            return
        self.closing = True
        self.tempo.rest(scheduler.now + 20.0)
        scheduler.run(scheduler.now + 30.0)
        nodes = [getattr(self.hosts[name].process, "node", None) for name in self.nodes]
        ends = {node.publisher.current.end_offset for node in nodes if node is not None}
        if len(ends) != 1 or len(nodes) != len(self.nodes):
            scheduler.fail(f"nodes end at offsets {sorted(ends)}, though nothing is written: expected one")
            return
        state = self.committed[max(ends)].rules
        for pattern, history in enumerate(self.histories):
            acls = frozenset(rules_of(pattern))
            history.calls.append(
                Call(
                    kind="describe",
                    acls=acls,
                    begun=scheduler.now,
                    ended=scheduler.now + 1,
                    answer=state & acls,
                    client="the final state",
                )
            )

    # Faults

    def _strike(self, fault: Fault) -> None:
        """See ClusterWorld; half of the faults hit the active controller, where a failover begins."""
        active = self._active()
        super()._strike(evolve(fault, target=active[0]) if active and fault.number % 4 < 2 else fault)

    def _others(self, fault: Fault) -> list[str]:
        others = super()._others(fault)
        return [*others, *(KAFKA_BROKERS if fault.number % 3 else ())]

    def _cut_off(self, fault: Fault, host: Host, addresses: Sequence[str]) -> bool:
        for other in addresses:
            if fault.number % 3 != 1:
                self.network.cut[host.address, other] = None
            if fault.number % 3 != 2:
                self.network.cut[other, host.address] = None
        self.scheduler.after(fault.seconds, self.network.heal)
        return True

    def _cut_off_Kafka(self, fault: Fault, host: Host, _process: Process | None) -> bool:  # noqa: N802
        return fault.target in CONTROLLERS and self._cut_off(fault, host, KAFKA_BROKERS)

    def _cut_off_the_log(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        return fault.target in CONTROLLERS and self._cut_off(fault, host, (PARTITION_LEADER,))

    def _reset_Kafka_connections(self, _fault: Fault, host: Host, _process: Process | None) -> bool:  # noqa: N802
        return self.kafka.reset_connections(host.address)

    def _long_pause(self, fault: Fault, host: Host, process: Process | None) -> bool:
        """Pause a process for longer than the session of a candidate: another one is elected meanwhile."""
        return self._pause(evolve(fault, seconds=7.0 + fault.seconds / 3), host, process)

    def _slow_markers(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        usual = self.kafka.model.marker_seconds
        if usual > 1:
            return False
        self.kafka.model.marker_seconds = min(fault.seconds, 10.0)
        self.scheduler.after(fault.seconds, setattr, self.kafka.model, "marker_seconds", usual)
        return True


def build(scheduler: Scheduler, seconds: float, faults: Sequence[Fault] | None = None) -> TopicWorld:
    """Return the world of the scheduler's seed."""
    chosen = schedule(scheduler.seed, seconds, KINDS, target) if faults is None else list(faults)
    return TopicWorld(scheduler=scheduler, seconds=seconds, faults=chosen)
