"""World a: one controller whose log is in files, brokers that follow it, and clients of all of them."""

from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import define, evolve, field

from aclog.config.node_config import CheckpointPolicy
from aclog.config.server_properties import parse_config
from aclog.metalog.filelog.committed_mark import MARK_FILE
from aclog.metalog.filelog.files import METADATA_DIRECTORY
from tests.simulation.cluster_world import (
    OF_PROCESSES_AND_NETWORKS,
    PORT,
    ClusterWorld,
    Fault,
    Kinds,
    schedule,
)
from tests.simulation.disk import ROOT, SECTOR, Directory, File
from tests.simulation.processes import Host, Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import PATTERNS, Client

_NOTICE_SECONDS = 10.0
"""How long a running node may take to notice that its directory was replaced."""
CONTROLLER, BROKERS = "c1", ("b1", "b2")
_DATA = f"{ROOT}/{CONTROLLER}/var/data"
"""The directory of the controller; its parent is made with it."""
KINDS: Kinds = (
    *OF_PROCESSES_AND_NETWORKS,
    ("fsync fails", 3),
    ("bit flip", 3),
    ("older copy", 2),
    ("swap while running", 2),
)


def target(random: Random) -> str:
    """Draw the host of a fault."""
    return CONTROLLER if random.random() < 0.7 else random.choice(BROKERS)


@define(eq=False, kw_only=True)
class FilesWorld(ClusterWorld):
    """One controller, two brokers."""

    controllers: tuple[str, ...] = (CONTROLLER,)
    brokers: tuple[str, ...] = BROKERS
    _backup: tuple[int, Any] | None = field(default=None, init=False)

    def _build(self) -> None:
        scheduler = self.scheduler
        random = scheduler.random
        for name in self.nodes:
            self.host(name)
        controller = f"{self.hosts[CONTROLLER].address}:{PORT}"
        policy = CheckpointPolicy(
            bytes_between=random.choice((1_500, 6_000, 1 << 20)),
            interval_ms=random.choice((0, 30_000, 3_600_000)),
            retention_bytes=random.choice((4_000, 20_000, 1 << 20)),
            segment_bytes=random.choice((700, 2_500, 1 << 20)),
        )
        for number, name in enumerate(self.nodes, 1):
            properties = self.properties_of(number, name) | {"controller.quorum.bootstrap.servers": controller}
            if name == CONTROLLER and random.random() < 0.5:
                properties["early.start.listeners"] = "CONTROLLER"
            self._configs[name] = evolve(parse_config(properties, name), checkpoints=policy)
        disk = self.hosts[CONTROLLER].disk
        disk.on_rename = self.check_checkpoint
        servers = self.servers()
        contended = random.random() < 0.3
        if contended:  # requests for the same rules, decided while others are being committed
            self.patterns = (random.randrange(len(PATTERNS)),)
            disk.usual_slow = disk.slow = 30.0
        for number in range(3 if contended else random.choice((1, 2, 6))):
            think = 0.3 if contended else random.choice((0.3, 2.0, 6.0))
            client = Client(
                world=self, name=f"k{number}", servers=servers, reads_at=servers[0], brokers=servers[1:], think=think
            )
            self._clients.append(client)
        scheduler.after(20.0, self._take_backup)

    def failure_is_final(self) -> bool:
        """See World. A commit that is under way when the directory is replaced may still succeed."""
        return "swapped" not in self._excused.get(CONTROLLER, ())

    # Faults

    def _take_backup(self) -> None:
        """Take a copy of the log, as a snapshot of the volume has it; and again later."""
        host = self.hosts[CONTROLLER]
        if not self.quiet:
            self.scheduler.after(900.0 if self.tempo.is_calm else 60.0, self._take_backup)
        try:
            node = host.disk.find(f"{_DATA}/{METADATA_DIRECTORY}")
        except FileNotFoundError:
            return
        process = host.process
        if process is not None and not process.dead and getattr(process, "shown", 0) and not self._repairs:
            self._backup = self.newest, host.disk.copy(node)

    def _fsync_fails(self, fault: Fault, host: Host, process: Process | None) -> bool:
        if fault.target != CONTROLLER or process is None:
            return False
        host.disk.fail_fsyncs, host.disk.fail_suffix = 1, ".log" if fault.number % 4 else ""
        self._excuse(CONTROLLER, "fsync", 60.0)
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
        """Whether aclog.committed, which is written once a second, contains records after an offset."""
        try:
            file = host.disk.find(f"{_DATA}/aclog.committed")
        except FileNotFoundError:
            return False
        assert isinstance(file, File)
        lines = dict(line.partition(b"=")[::2] for line in bytes(file.data).splitlines())
        return int(lines.get(b"end.offset", b"0")) > offset + 1  # the end is the offset after the last record's

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


def build(scheduler: Scheduler, seconds: float, faults: Sequence[Fault] | None = None) -> FilesWorld:
    """Return the world of the scheduler's seed."""
    chosen = schedule(scheduler.seed, seconds, KINDS, target) if faults is None else list(faults)
    return FilesWorld(scheduler=scheduler, seconds=seconds, faults=chosen)
