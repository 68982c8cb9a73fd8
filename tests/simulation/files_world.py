"""World a: one controller whose log is in files, brokers that follow it, and clients of all of them."""

import asyncio
from collections.abc import Callable, Sequence
from math import inf
from random import Random
from typing import Any

from attrs import define, evolve, field, frozen

from aclog.config.node_config import CheckpointPolicy, HostPort, NodeConfig
from aclog.config.server_properties import parse_config
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.committed_mark import MARK_FILE
from aclog.metalog.filelog.files import METADATA_DIRECTORY
from aclog.server.broker import lifecycle
from aclog.server.node import Node
from aclog.server.storage import ensure_formatted, require_formatted
from aclog.server.telemetry import Metrics
from aclog.snapshots.image import Image
from tests.simulation.disk import ROOT, SECTOR, Directory, File
from tests.simulation.processes import Host, Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import PATTERNS, Client, World

_NOTICE_SECONDS = 10.0
"""How long a running node may take to notice that its directory was replaced."""
CLUSTER_ID = "c2FtZS1zY3JpcHQtMDAwMQ"
CONTROLLER, BROKERS = "c1", ("b1", "b2")
_PORT = 9092
_DATA = f"{ROOT}/{CONTROLLER}/var/data"
"""The directory of the controller; its parent is made with it."""
_SUPER_USERS = "User:ANONYMOUS"
SETTLE_SECONDS = 75.0
"""How long after the last fault every node must have the same state and answer."""


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


KINDS: tuple[tuple[str, int], ...] = (
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
    ("fsync fails", 3),
    ("fsync is slow", 2),
    ("disk full", 3),
    ("clock jumps", 2),
    ("bit flip", 3),
    ("older copy", 2),
    ("swap while running", 2),
    ("stop", 2),
)
"""The kinds of faults, and how often each is drawn."""


def schedule(seed: int, seconds: float) -> list[Fault]:
    """Draw the faults of a seed: bursts, and quiet stretches in between."""
    random = Random(f"faults {seed}")
    kinds = [kind for kind, weight in KINDS for _ in range(weight)]
    # A seed has some kinds only, so that one kind is also tried without the others (swarm testing).
    kinds = [kind for kind in kinds if kind in set(random.sample(sorted(set(kinds)), random.randint(2, 8)))]
    faults, at = [], random.uniform(5, 20)
    while at < seconds:
        target = CONTROLLER if random.random() < 0.7 else random.choice(BROKERS)
        faults.append(
            Fault(
                at=at,
                kind=random.choice(kinds),
                target=target,
                number=random.randint(1, 60),
                seconds=random.choice((0.2, 1.0, 3.0, 8.0, 20.0)) * random.uniform(0.5, 1.5),
            )
        )
        at += random.expovariate(1 / random.choice((2.0, 8.0, 40.0)))
    return faults


@define(eq=False, kw_only=True)
class FilesWorld(World):
    """Runs for `seconds` of virtual time with faults, then without until everything has settled."""

    seconds: float = 300.0
    faults: list[Fault] = field(factory=list)
    _configs: dict[str, NodeConfig] = field(factory=dict, init=False)
    _excused: dict[str, dict[str, float]] = field(factory=dict, init=False)
    """Until when the process of a host may stop by itself, by reason."""
    _repairs: dict[str, Callable[[], None]] = field(factory=dict, init=False)
    """What an operator does once the process of a host has stopped by itself."""
    _formatted: dict[str, None] = field(factory=dict, init=False)
    _backup: tuple[int, Any] | None = field(default=None, init=False)
    _clients: list[Client] = field(factory=list, init=False)

    def run(self) -> None:
        """Run the whole life of the world."""
        real = lifecycle.ObserverOptions
        # Long polls of an idle cluster are most of what a virtual hour costs; some seeds have Kafka's own length.
        wait_ms = self.scheduler.random.choice((500, 5_000, 5_000, 10_000))
        try:
            lifecycle.ObserverOptions = lambda **options: real(max_wait_ms=wait_ms, **options)  # type: ignore[misc,assignment]
            self._run()
        finally:
            lifecycle.ObserverOptions = real  # type: ignore[misc]

    def _run(self) -> None:
        self._build()
        scheduler = self.scheduler
        for name in (CONTROLLER, *BROKERS):
            scheduler.after(scheduler.random.random(), self._start, name)
        for client in self._clients:
            host = self.host(client.name)
            scheduler.after(1.0, host.start, client.run)
        for fault in self.faults:
            scheduler.at(fault.at, self._strike, fault)
        scheduler.after(20.0, self._take_backup)
        scheduler.run(self.seconds)
        self._settle()
        if not scheduler.failures:
            self.check_histories()

    # Nodes

    def _build(self) -> None:
        scheduler = self.scheduler
        random = scheduler.random
        for name in (CONTROLLER, *BROKERS):
            self.host(name)
        controller = f"{self.hosts[CONTROLLER].address}:{_PORT}"
        policy = CheckpointPolicy(
            bytes_between=random.choice((1_500, 6_000, 1 << 20)),
            interval_ms=random.choice((0, 30_000, 3_600_000)),
            retention_bytes=random.choice((4_000, 20_000, 1 << 20)),
            segment_bytes=random.choice((700, 2_500, 1 << 20)),
        )
        for number, name in enumerate((CONTROLLER, *BROKERS), 1):
            is_controller = name == CONTROLLER
            kind = "CONTROLLER" if is_controller else "PLAINTEXT"
            properties = {
                "process.roles": "controller" if is_controller else "broker",
                "node.id": str(number),
                "controller.quorum.bootstrap.servers": controller,
                "listeners": f"{kind}://{self.hosts[name].address}:{_PORT}",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": f"{ROOT}/{name}/var/data",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": _SUPER_USERS,
                "broker.heartbeat.interval.ms": "5000",
                "broker.session.timeout.ms": "15000",
            }
            if is_controller and random.random() < 0.5:
                properties["early.start.listeners"] = "CONTROLLER"
            self._configs[name] = evolve(parse_config(properties, name), checkpoints=policy)
        disk = self.hosts[CONTROLLER].disk
        disk.on_rename = self.check_checkpoint
        servers = [HostPort(host=self.hosts[name].address, port=_PORT) for name in (CONTROLLER, *BROKERS)]
        contended = random.random() < 0.3
        if contended:  # requests for the same rules, decided while others are being committed
            self.patterns = (random.randrange(len(PATTERNS)),)
            disk.usual_slow = disk.slow = 30.0
        for number in range(3 if contended else random.choice((1, 2, 6))):
            think = 0.3 if contended else random.choice((0.3, 2.0, 6.0))
            client = Client(world=self, name=f"k{number}", servers=servers, brokers=servers[1:], think=think)
            self._clients.append(client)

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
        process.mark = self.newest  # type: ignore[attr-defined]

        def published(image: Image) -> None:
            self.check_readiness(process, ready=node.publisher.ready)  # with the image of before
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
        while True:
            await asyncio.sleep(self.scheduler.random.uniform(1, 8))
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

    def failure_is_final(self) -> bool:
        """See World. A commit that is under way when the directory is replaced may still succeed."""
        return "swapped" not in self._excused.get(CONTROLLER, ())

    # Faults

    def _take_backup(self) -> None:
        """Take a copy of the log, as a snapshot of the volume has it; and again later."""
        host = self.hosts[CONTROLLER]
        if not self.quiet:
            self.scheduler.after(60.0, self._take_backup)
        try:
            node = host.disk.find(f"{_DATA}/{METADATA_DIRECTORY}")
        except FileNotFoundError:
            return
        process = host.process
        if process is not None and not process.dead and getattr(process, "shown", 0) and not self._repairs:
            self._backup = self.newest, host.disk.copy(node)

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
        nodes = (CONTROLLER, *BROKERS)
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

    def _fsync_fails(self, fault: Fault, host: Host, process: Process | None) -> bool:
        if fault.target != CONTROLLER or process is None:
            return False
        host.disk.fail_fsyncs, host.disk.fail_suffix = 1, ".log" if fault.number % 4 else ""
        self._excuse(CONTROLLER, "fsync", 60.0)
        return True

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

    def _bit_flip(self, fault: Fault, host: Host, process: Process | None) -> bool:
        """Kill the controller, flip a bit at rest, start it; once it has stopped by itself, restore the bit."""
        if fault.target != CONTROLLER or process is None or CONTROLLER in self._repairs or process.lost_power:
            return False
        files = [each for each in host.disk.walk(_DATA) if each[1].data]
        random = self.scheduler.random
        if (
            getattr(process, "shown", 0) <= 0
        ):  # else it has written over what an earlier flip left in a slot of the mark
            files = [each for each in files if not each[0].endswith(MARK_FILE)]
        suffix = random.choice((".log", MARK_FILE, ""))
        chosen = [each for each in files if each[0].endswith(suffix)] or files
        process.kill()
        if chosen:
            path, file = random.choice(chosen)
            file.sync()  # at rest: the kernel has written it back
            if file.data:
                at, bit = random.randrange(len(file.data)), 1 << random.randrange(8)
                if random.random() < 0.75:  # where small files have something other than zeros
                    at = min(at // SECTOR * SECTOR + random.randrange(24), len(file.data) - 1)
                before = file.data[at]
                file.data[at] ^= bit
                if at < len(file.durable):
                    file.durable[at] ^= bit
                self.scheduler.note("flips", path, at, bit)

                def restore() -> None:
                    if at < len(file.data) and file.data[at] == before ^ bit:
                        file.data[at] = before
                        if at < len(file.durable):
                            file.durable[at] = before

                if path.endswith(MARK_FILE):
                    self.scheduler.cover("bit flip in a slot of the mark")
                else:
                    self._excuse(CONTROLLER, "flip")
                    self._repairs[CONTROLLER] = restore
                self.scheduler.after(1.0, self._start, CONTROLLER)
                return True
        self._ended(process)
        return True

    def _older_copy(self, fault: Fault, host: Host, process: Process | None) -> bool:
        """Kill the controller, and put an older copy of its log in place: it must not serve from it."""
        if not self._can_swap(fault, process) or process is None or self._backup is None:
            return False
        mark, copy = self._backup
        if mark + 3 > getattr(process, "shown", 0) or not self._mark_is_beyond(mark, host):
            return False
        process.kill()
        self._excuse(CONTROLLER, "copied")
        self._swap(host, host.disk.copy(copy))
        self.scheduler.after(1.0, self._start, CONTROLLER)
        return True

    def _mark_is_beyond(self, offset: int, host: Host) -> bool:
        """Whether aclog.committed, which is written once a second, is beyond an offset."""
        try:
            file = host.disk.find(f"{_DATA}/aclog.committed")
        except FileNotFoundError:
            return False
        assert isinstance(file, File)
        lines = dict(line.partition(b"=")[::2] for line in bytes(file.data).splitlines())
        return int(lines.get(b"end.offset", b"0")) > offset

    def _swap_while_running(self, fault: Fault, host: Host, process: Process | None) -> bool:
        """Put an older copy in the place of the log that is open: nothing more may be acknowledged."""
        if not self._can_swap(fault, process) or self._backup is None:
            return False
        self._excuse(CONTROLLER, "swapped")
        self._swap(host, host.disk.copy(self._backup[1]))
        self.scheduler.after(_NOTICE_SECONDS, self._must_have_stopped, process)
        return True

    def _must_have_stopped(self, process: Process | None) -> None:
        if process is None or process.dead:
            return
        if process.paused_until > self.scheduler.now - _NOTICE_SECONDS or process.disk.slow > process.disk.usual_slow:
            self.scheduler.after(_NOTICE_SECONDS, self._must_have_stopped, process)
        else:
            self.scheduler.fail(f"{process} still runs {_NOTICE_SECONDS:g} s after its directory was replaced")

    def _can_swap(self, fault: Fault, process: Process | None) -> bool:
        return (
            fault.target == CONTROLLER
            and process is not None
            and not process.calls_to_crash
            and CONTROLLER not in self._repairs
            and CONTROLLER in self._formatted
        )

    def _swap(self, host: Host, node: Any) -> None:
        data = host.disk.find(_DATA)
        assert isinstance(data, Directory)
        original = data.entries[METADATA_DIRECTORY]
        data.change({METADATA_DIRECTORY: node})
        data.sync()

        def restore() -> None:
            data.change({METADATA_DIRECTORY: original})
            data.sync()

        self._repairs[CONTROLLER] = restore

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
        for host in self.hosts.values():
            host.disk.fail_fsyncs, host.disk.is_full, host.disk.slow = 0, False, 1.0
            if host.process is not None:
                host.process.calls_to_crash, host.process.paused_until = 0, 0.0
        scheduler.run(scheduler.now + SETTLE_SECONDS)
        if scheduler.failures:
            return
        self._check_convergence()
        self._check_clients()

    def _check_convergence(self) -> None:
        scheduler = self.scheduler
        ends = {}
        for name in (CONTROLLER, *BROKERS):
            process = self.hosts[name].process
            node = None if process is None or process.dead else getattr(process, "node", None)
            if node is None or not node.serving.is_set():
                scheduler.fail(f"{name} does not serve {SETTLE_SECONDS:g} s after the last fault")
                return
            ends[name] = node.publisher.current.end_offset
            descriptors = len(process.files.open_files)
            connections = sum(1 for side in self.network.sides if side.process is process)
            if descriptors > 12 or connections > 40:
                scheduler.fail(f"{name} has {descriptors} open files and {connections} connections: expected a few")
        if max(ends.values()) - min(ends.values()) > 5:
            scheduler.fail(f"the nodes have not converged {SETTLE_SECONDS:g} s after the last fault: {ends}")

    def _check_clients(self) -> None:
        """A client's request to each node succeeds."""
        scheduler, outcomes = self.scheduler, []
        servers = [HostPort(host=self.hosts[name].address, port=_PORT) for name in (CONTROLLER, *BROKERS)]
        client = Client(world=self, name="last", servers=servers)

        async def ask(process: Process) -> None:
            for server in servers:
                for pattern in range(len(PATTERNS)):
                    kind = "describe" if server is servers[0] else "create"
                    if kind == "describe" or pattern == 0:
                        # A connection that a power loss left half open fails once, when it is used next.
                        outcomes.append(
                            await client.request(process, server, pattern, kind)
                            or await client.request(process, server, pattern, kind)
                        )
            outcomes.append(True)

        self.host("last").start(ask)
        scheduler.run(scheduler.now + 60.0, done=lambda: len(outcomes) > len(PATTERNS) + len(BROKERS))
        if not scheduler.failures and not (len(outcomes) > len(PATTERNS) + len(BROKERS) and all(outcomes)):
            scheduler.fail(f"requests do not succeed {SETTLE_SECONDS:g} s after the last fault: {outcomes}")


def build(scheduler: Scheduler, seconds: float, faults: Sequence[Fault] | None = None) -> FilesWorld:
    """Return the world of the scheduler's seed."""
    chosen = schedule(scheduler.seed, seconds) if faults is None else list(faults)
    return FilesWorld(scheduler=scheduler, seconds=seconds, faults=chosen)
