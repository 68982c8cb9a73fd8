"""What the worlds of a cluster share: nodes that are started again, faults of machines and the network, the end."""

import asyncio
from collections.abc import Callable, Mapping
from math import inf
from random import Random
from typing import Any

from attrs import define, field, frozen

from aclog.client.fetching import FetchBuffer
from aclog.config.node_config import HostPort, NodeConfig
from aclog.metalog.errors import MetadataError
from aclog.metalog.topiclog.reader import TailCache
from aclog.server.broker import lifecycle
from aclog.server.node import Node
from aclog.server.storage import ensure_formatted, require_formatted
from aclog.server.telemetry import Metrics
from aclog.snapshots.image import Image
from tests.simulation.disk import ROOT
from tests.simulation.processes import Host, Process
from tests.simulation.world import PATTERNS, Client, World

CLUSTER_ID = "c2FtZS1zY3JpcHQtMDAwMQ"
PORT = 9092
SUPER_USERS = "User:ANONYMOUS"
SETTLE_SECONDS = 75.0
"""How long after the last fault every node must have the same state and answer."""
_LOOK_SECONDS = 2.0
"""How often it is looked at whether that is so already."""
_AWAKE_SECONDS = 5.0
"""How long before these checks the lull ends that begins then."""
_LULLS = (0.0, 0.0, 3_600.0)
"""The lengths of the lulls between the bursts of a seed, one of which is drawn; 0: all in one burst."""


@frozen(kw_only=True)
class Fault:
    """A fault at a moment; the world knows what it means."""

    at: float
    kind: str
    target: str = ""
    number: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.at:.1f} {self.kind} {self.target} {self.number} {self.seconds:.1f}"


Kinds = tuple[tuple[str, int], ...]
"""Kinds of faults, and how often each is drawn."""
OF_PROCESSES_AND_NETWORKS: Kinds = (
    ("kill", 4),
    ("power loss", 5),
    ("crash at a call", 8),
    ("power loss at a call", 8),
    ("pause", 3),
    ("cut one way", 3),
    ("cut", 3),
    ("slow network", 2),
    ("reset connections", 3),
    ("half close", 2),
    ("fsync is slow", 2),
    ("disk full", 3),
    ("clock jumps", 2),
    ("stop", 2),
)


def schedule(seed: int, seconds: float, kinds: Kinds, target: Callable[[Random], str]) -> list[Fault]:
    """Draw the faults of a seed: bursts, and quiet stretches in between."""
    random = Random(f"faults {seed}")
    weighted = [kind for kind, weight in kinds for _ in range(weight)]
    # A seed has some kinds only, so that one kind is also tried without the others (swarm testing).
    weighted = [kind for kind in weighted if kind in set(random.sample(sorted(set(weighted)), random.randint(2, 8)))]
    faults, at = [], random.uniform(5, 20)
    while at < seconds:
        chosen = target(random)
        faults.append(
            Fault(
                at=at,
                kind=random.choice(weighted),
                target=chosen,
                number=random.randint(1, 60),
                seconds=random.choice((0.2, 1.0, 3.0, 8.0, 20.0)) * random.uniform(0.5, 1.5),
            )
        )
        at += random.expovariate(1 / random.choice((2.0, 8.0, 40.0)))
    return faults


@define(eq=False, kw_only=True)
class ClusterWorld(World):
    """Runs for `seconds` of virtual time with faults, then without until everything has settled."""

    seconds: float = 300.0
    faults: list[Fault] = field(factory=list)
    controllers: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    _configs: dict[str, NodeConfig] = field(factory=dict, init=False)
    _excused: dict[str, dict[str, float]] = field(factory=dict, init=False)
    """Until when the process of a host may stop by itself, by reason."""
    _repairs: dict[str, Callable[[], None]] = field(factory=dict, init=False)
    """What an operator does once the process of a host has stopped by itself."""
    _formatted: dict[str, None] = field(factory=dict, init=False)
    _clients: list[Client] = field(factory=list, init=False)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the hosts with nodes."""
        return *self.controllers, *self.brokers

    def servers(self) -> list[HostPort]:
        """Return the addresses of all nodes, controllers first."""
        return [HostPort(host=self.hosts[name].address, port=PORT) for name in self.nodes]

    def properties_of(self, number: int, name: str) -> dict[str, str]:
        """Return the properties that a node has in every world."""
        role, listener = ("controller", "CONTROLLER") if name in self.controllers else ("broker", "PLAINTEXT")
        return {
            "process.roles": role,
            "node.id": str(number),
            "listeners": f"{listener}://{self.hosts[name].address}:{PORT}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": f"{ROOT}/{name}/var/data",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": SUPER_USERS,
            "broker.heartbeat.interval.ms": "20000" if self.tempo.lull else "5000",
            "broker.session.timeout.ms": "60000" if self.tempo.lull else "15000",
        }

    def run(self) -> None:
        """Run the whole life of the world."""
        # Long polls of an idle cluster are most of what a virtual hour costs; some seeds have Kafka's own length.
        random = self.scheduler.random
        self.tempo.lull = random.choice(_LULLS)
        wait_ms = 15_000 if self.tempo.lull else random.choice((500, 5_000, 5_000, 10_000))
        options = lifecycle.ObserverOptions
        add, begin_at, begin = FetchBuffer.add, FetchBuffer.begin_at, TailCache.begin

        def added(buffer: FetchBuffer, committed: Any, mark: int, confirmed: Any = None) -> None:
            self._received_mark(mark)
            add(buffer, committed, mark, confirmed)

        def begun_at(buffer: FetchBuffer, snapshot: Any, mark: int, confirmed: Any = None) -> None:
            self._received_mark(mark)
            begin_at(buffer, snapshot, mark, confirmed)

        def begun(tail: TailCache, start: int, mark: int, cached_from: int) -> None:
            self._received_mark(mark)
            begin(tail, start, mark, cached_from)

        try:
            lifecycle.ObserverOptions = lambda **given: options(max_wait_ms=wait_ms, **given)  # type: ignore[misc,assignment]
            FetchBuffer.add, FetchBuffer.begin_at = added, begun_at  # type: ignore[method-assign]
            TailCache.begin = begun  # type: ignore[method-assign]
            self.tempo.begin(self.seconds)
            self._run()
        finally:
            self.tempo.end()
            lifecycle.ObserverOptions = options  # type: ignore[misc]
            FetchBuffer.add, FetchBuffer.begin_at = add, begin_at  # type: ignore[method-assign]
            TailCache.begin = begin  # type: ignore[method-assign]

    def _received_mark(self, mark: int) -> None:
        """Note the first high-water mark that a node gets from its log, and that of a controller's takeover.

        A node is not ready before it has replayed up to that.
        """
        process = self.scheduler.fiber().process
        if process.has_mark or mark < self.least_mark(process.name):
            return
        process.has_mark = True
        if not process.node._replayed():  # a standby that is ready may take over for the first time
            process.mark = max(process.mark, mark)

    def least_mark(self, _name: str) -> int:
        """Return the lowest high-water mark with which a node may become ready."""
        return 0

    def _run(self) -> None:
        self._build()
        scheduler = self.scheduler
        for name in self.nodes:
            scheduler.after(scheduler.random.random(), self._start, name)
        for client in self._clients:
            host = self.host(client.name)
            scheduler.after(1.0, host.start, client.run)
        for fault in self.faults:
            scheduler.at(self.tempo.moment(fault.at), self._strike, fault)
        scheduler.run(self.tempo.length(self.seconds))
        self._settle()
        if not scheduler.failures:
            self.check_histories()

    def committed_at_start(self) -> int:
        """Return the offset up to which a node that starts now must replay."""
        return self.newest

    def _build(self) -> None:
        """Make the hosts, the configurations of the nodes, and the clients."""
        raise NotImplementedError

    # Nodes

    def _start(self, name: str) -> None:
        host = self.hosts[name]
        if host.process is not None and not host.process.dead:
            return
        self.scheduler.note(name, "starts")
        process = host.start(self._main)
        process.on_end = self._ended

    async def _main(self, process: Process) -> None:
        """What `aclog serve --format-if-empty` does, and later `aclog serve`."""
        config, stop = self._configs[process.name], asyncio.Event()
        process.stop = lambda: process.loops[0].call_soon_threadsafe(stop.set)  # type: ignore[attr-defined]
        if process.name in self._formatted:
            meta = require_formatted(config)
        else:
            meta = ensure_formatted(config, cluster_id=CLUSTER_ID)
        node = Node(config=config, meta=meta, metrics=Metrics(process=False))
        process.node = node  # type: ignore[attr-defined]
        process.mark, process.has_mark = self.committed_at_start(), False  # type: ignore[attr-defined]

        def published(image: Image) -> None:
            self.check_readiness(process, ready=node._replayed())  # with the image of before
            self.published(process, image)

        node.publisher.subscribe(published)
        watching = asyncio.create_task(self._watch(process, node))
        try:
            await node.run(stop)
        finally:
            watching.cancel()

    async def _watch(self, process: Process, node: Node) -> None:
        await node.serving.wait()
        self.check_readiness(process, ready=True)
        self._formatted[process.name] = None
        if "copied" in self._excused.get(process.name, ()):
            self.scheduler.fail(f"{process} serves from an older copy of its log")
        random = self.scheduler.random
        while True:
            await asyncio.sleep(self.tempo.pause(lambda: random.uniform(1, 8), lambda: random.uniform(60, 300)))
            self.check_decision(process, node)

    def _ended(self, process: Process) -> None:
        """The process of a node has ended: judge why, and have its supervisor start it again."""
        name, scheduler = process.name, self.scheduler
        if process.ended and process.error is not None:
            excuses = [kind for kind, until in self._excused.get(name, {}).items() if until >= scheduler.now]
            if not excuses or not isinstance(process.error, MetadataError):
                scheduler.fail(f"{process} stopped without a fault that explains it: {process.error!r}")
                return
            scheduler.cover(f"stopped by itself: {excuses[0]}")
            for kind in ("flip", "copied", "swapped"):  # the operator repairs these now
                self._excused[name].pop(kind, None)
        repair = self._repairs.pop(name, None)
        if repair is not None:
            repair()
        if scheduler.random.random() < 0.5:  # else its pages are still in memory at the next start
            process.disk.drop_clean_pages()
        scheduler.after(scheduler.random.choice((0.1, 1.0, 5.0)), self._start, name)

    def _excuse(self, name: str, kind: str, seconds: float = inf) -> None:
        self._excused.setdefault(name, {})[kind] = self.scheduler.now + seconds

    # Faults

    def _strike(self, fault: Fault) -> None:
        """Let a fault happen, if it can now."""
        host = self.hosts[fault.target]
        process = host.process
        method = getattr(self, "_" + fault.kind.replace(" ", "_"))
        alive = process is not None and not process.dead
        if method(fault, host, process if alive else None):
            self.scheduler.note("fault:", fault)
            self.scheduler.cover(fault.kind)

    def _kill(self, _: Fault, _host: Host, process: Process | None) -> bool:
        if process is None:
            return False
        process.kill()
        self._ended(process)
        return True

    def _power_loss(self, _: Fault, _host: Host, process: Process | None) -> bool:
        if process is None:
            return False
        process.kill(power=True)
        self._ended(process)
        return True

    def _crash_at_a_call(self, fault: Fault, _host: Host, process: Process | None) -> bool:
        if process is None:
            return False
        process.calls_to_crash = fault.number
        return True

    def _power_loss_at_a_call(self, fault: Fault, _host: Host, process: Process | None) -> bool:
        if process is None:
            return False
        process.calls_to_crash, process.lost_power = fault.number, True
        return True

    def _pause(self, fault: Fault, _host: Host, process: Process | None) -> bool:
        if process is None:
            return False
        process.paused_until = self.scheduler.now + fault.seconds
        return True

    def _stop(self, _: Fault, _host: Host, process: Process | None) -> bool:
        if process is None or not hasattr(process, "stop"):
            return False
        process.stop()
        return True

    def _others(self, fault: Fault) -> list[str]:
        nodes = self.nodes
        chosen = [name for name in self.hosts if name != fault.target and (fault.number % 2 or name in nodes)]
        return [self.hosts[name].address for name in chosen]

    def _cut(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        for other in self._others(fault):
            self.network.cut[host.address, other] = self.network.cut[other, host.address] = None
        self.scheduler.after(fault.seconds, self.network.heal)
        return True

    def _cut_one_way(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        for other in self._others(fault):
            self.network.cut[(host.address, other) if fault.number % 4 < 2 else (other, host.address)] = None
        self.scheduler.after(fault.seconds, self.network.heal)
        return True

    def _slow_network(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        for other in self._others(fault):
            self.network.rate[host.address, other] = fault.number / 5 if fault.number % 3 else 1.0
        self.scheduler.after(fault.seconds, self.network.heal)
        return True

    def _reset_connections(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        sides = [side for side in self.network.sides if host.address in (side.address[0], side.peer.address[0])]
        for side in sides[: 1 + fault.number % 3]:
            self.network.drop(side)
        return bool(sides)

    def _half_close(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        sides = [side for side in self.network.sides if side.process is host.process and not side.eof_sent]
        for side in sides[: 1 + fault.number % 2]:
            side.eof_sent = True
            self.network.send(side, None)
            self.scheduler.after(5.0, self.network.drop, side)
        return bool(sides)

    def _fsync_is_slow(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        host.disk.slow = 10.0 * fault.number
        self.scheduler.after(fault.seconds, setattr, host.disk, "slow", host.disk.usual_slow)
        return True

    def _disk_full(self, fault: Fault, host: Host, process: Process | None) -> bool:
        if process is None:
            return False
        host.disk.is_full = True
        self._excuse(fault.target, "full", fault.seconds + 10.0)

        def free() -> None:
            host.disk.is_full = False

        self.scheduler.after(fault.seconds, free)
        return True

    def _clock_jumps(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        host.clock_offset += fault.seconds * (100 if fault.number % 2 else -100)
        return True

    # The end

    def _settle(self) -> None:
        """End all faults; then all nodes must converge and answer."""
        scheduler = self.scheduler
        if scheduler.failures:
            return
        self.quiet = True
        scheduler.note("faults end")
        self.network.heal()
        for client in self._clients:
            client.think = max(client.think, 10.0)
        paused = max((host.process.paused_until for host in self.hosts.values() if host.process is not None), default=0)
        for host in self.hosts.values():
            host.disk.fail_fsyncs, host.disk.is_full, host.disk.slow = 0, False, 1.0
            if host.process is not None:
                host.process.calls_to_crash = 0
        begin = max(scheduler.now, paused)  # a pause that has begun is a fault until its end
        scheduler.at(begin + _LOOK_SECONDS, self._rest, begin + SETTLE_SECONDS - _AWAKE_SECONDS)
        scheduler.run(begin + SETTLE_SECONDS)
        if scheduler.failures:
            return
        self._check_convergence()
        self._check_clients()

    def _rest(self, until: float) -> None:
        """Let time pass in a lull once everything has settled: most of what it would cost is to look again."""
        if self.scheduler.now >= until:
            return
        if self._has_settled():
            self.tempo.rest(until)
        else:
            self.scheduler.after(_LOOK_SECONDS, self._rest, until)

    def _has_settled(self) -> bool:
        """Whether all nodes run, serve, and show the same state; it is checked at the end all the same."""
        nodes = [self._running_node(name) for name in self.nodes]
        serving = [each for each in nodes if each is not None and each.serving.is_set()]
        return len(serving) == len(nodes) and len({each.publisher.current.end_offset for each in serving}) == 1

    def _running_node(self, name: str) -> Node | None:
        process = self.hosts[name].process
        return None if process is None or process.dead else getattr(process, "node", None)

    def _check_convergence(self) -> None:
        scheduler = self.scheduler
        ends = {}
        for name in self.nodes:
            process, node = self.hosts[name].process, self._running_node(name)
            if process is None or node is None or not node.serving.is_set():
                scheduler.fail(f"{name} does not serve {SETTLE_SECONDS:g} s after the last fault")
                return
            ends[name] = node.publisher.current.end_offset
            descriptors = len(process.files.open_files)
            connections = sum(1 for side in self.network.sides if side.process is process)
            if descriptors > 12 or connections > 40:
                scheduler.fail(f"{name} has {descriptors} open files and {connections} connections: expected a few")
        self._check_ends(ends)

    def _check_ends(self, ends: Mapping[str, int]) -> None:
        scheduler = self.scheduler
        if max(ends.values()) - min(ends.values()) > 5:
            scheduler.fail(f"the nodes have not converged {SETTLE_SECONDS:g} s after the last fault: {ends}")

    def _last_requests(self) -> list[tuple[HostPort, int, str]]:
        """Return requests that must succeed once the faults have ended: server, pattern, kind."""
        first, *others = self.servers()
        return [
            *((first, pattern, "describe") for pattern in range(len(PATTERNS))),
            *((server, 0, "create") for server in others),
        ]

    def _check_clients(self) -> None:
        """A client's request to each node succeeds."""
        scheduler, requests, outcomes = self.scheduler, self._last_requests(), []
        client = Client(world=self, name="last", servers=self.servers())

        async def send(process: Process) -> None:
            for server, pattern, kind in requests:
                # A connection that a power loss left half open fails once, when it is used next.
                outcomes.append(
                    await client.request(process, server, pattern, kind)
                    or await client.request(process, server, pattern, kind)
                )

        self.host("last").start(send)
        scheduler.run(scheduler.now + 60.0, done=lambda: len(outcomes) == len(requests))
        if not scheduler.failures and not (len(outcomes) == len(requests) and all(outcomes)):
            scheduler.fail(f"requests do not succeed {SETTLE_SECONDS:g} s after the last fault: {outcomes}")
