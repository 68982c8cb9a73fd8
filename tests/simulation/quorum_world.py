"""World c: a modelled KRaft quorum of three voters, a broker's follower of it, and a mirror."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from attrs import define, field

from aclog.client.fetching import EpochEnd, LogIdentity, ObserverOptions
from aclog.client.follower import Follower
from aclog.client.quorum_log import QuorumLog, QuorumMirror
from aclog.config.node_config import HostPort
from aclog.metalog.batches import end_offset
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.mirror import MirrorLog, open_mirror
from aclog.metalog.machine import threads
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher, recover
from tests.simulation.cluster_world import (
    CLUSTER_ID,
    OF_PROCESSES_AND_NETWORKS,
    PORT,
    SETTLE_SECONDS,
    ClusterWorld,
    Fault,
    Kinds,
    schedule,
)
from tests.simulation.disk import ROOT
from tests.simulation.processes import EPOCH, Host, Process
from tests.simulation.quorum_model import Quorum, Voter, endpoints_of
from tests.simulation.quorum_server import VoterServer
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import NUMBERS, RULES

VOTERS, FOLLOWER, MIRROR = ("v1", "v2", "v3"), "o1", "m1"
_MIRROR_DIRECTORY = f"{ROOT}/{MIRROR}/var/mirror"
_OTHER_CLUSTER_ID = "b3RoZXItc2NyaXB0LTAwMQ"
_FOLLOW_SECONDS = 15.0
"""How long after a write, without faults, both observers must have it."""
_SHORT_LOG = 20
"""More records than a log of two batches has."""
KINDS: Kinds = (
    *OF_PROCESSES_AND_NETWORKS,
    ("election", 8),
    ("isolated leader", 10),
    ("trimmed logs", 8),
    ("slow voters", 4),
    ("other cluster", 3),
    ("formatted again", 5),
)


def target(random: Random) -> str:
    """Draw the host of a fault."""
    return random.choice((FOLLOWER, MIRROR, MIRROR, *VOTERS))


@define(eq=False, kw_only=True)
class QuorumWorld(ClusterWorld):
    """Observers must show the committed prefix of the modelled log, and nothing else."""

    brokers: tuple[str, ...] = (FOLLOWER, MIRROR, *VOTERS)
    quorum: Quorum = field(init=False)
    _servers: dict[str, VoterServer] = field(factory=dict, init=False)
    _voters: dict[str, Voter] = field(factory=dict, init=False)
    _options: dict[str, Any] = field(factory=dict, init=False)
    _segment_bytes: int = field(default=1 << 20, init=False)
    _think: float = field(default=1.0, init=False)
    _mirrored: int = field(default=-1, init=False)
    """The end of the mirror as it was last reported: durable from then on."""
    _beyond_until: float = field(default=0.0, init=False)
    """Until when an observer may get the mark of a log whose snapshot it has not compared yet."""
    _formatted_until: float = field(default=0.0, init=False)
    """Until when a voter serves the log of a quorum that was formatted again."""

    def _build(self) -> None:
        scheduler = self.scheduler
        random = scheduler.random
        for name in self.nodes:
            self.host(name)
        self.quorum = Quorum(scheduler, RULES, self._now_ms, is_dynamic=random.random() < 0.7)
        for number, name in enumerate(VOTERS, 1):
            voter = Voter(number, self.hosts[name].address)
            voter.reaches = lambda other, voter=voter: self._reaches(voter, other)  # type: ignore[misc]
            self._voters[name] = voter
            self.quorum.voters.append(voter)
            self._servers[name] = VoterServer(voter, CLUSTER_ID, lambda: endpoints_of(self.quorum.voters, PORT))
        self.quorum.lag = random.choice((0.002, 0.002, 0.05, 0.5))
        self._think = random.choice((0.5, 2.0, 5.0))
        self._segment_bytes = random.choice((700, 3_000, 1 << 20))
        buffered, kept = random.choice(((1_000, 0), (2_000, 500), (32 << 20, 4 << 20)))
        self._options = {
            "max_wait_ms": 15_000 if self.tempo.lull else random.choice((500, 500, 5_000)),
            "fetch_bytes": random.choice((300, 3_000, 8 << 20)),
            "buffer_bytes": buffered,
            "kept_bytes": kept,
            "pending_bytes": random.choice((600, 16 << 20)),
            "read_seconds": 5.0,
        }
        for server in self._servers.values():
            server.most_bytes = random.choice((200, 1_000, 1 << 20))
        scheduler.after(1.0, self.quorum.begin)
        scheduler.after(2.0, self._write)

    def _now_ms(self) -> int:
        return int(1000 * (EPOCH + self.scheduler.now))

    def _process(self, voter: Voter) -> Process | None:
        return self.hosts[VOTERS[voter.number - 1]].process

    def _is_up(self, voter: Voter) -> bool:
        process = self._process(voter)
        return (
            process is not None
            and not process.dead
            and process.paused_until <= self.scheduler.now
            and self._servers[process.name].served is voter
        )

    def _reaches(self, voter: Voter, other: Voter) -> bool:
        return self._is_up(voter) and self._is_up(other) and (voter.address, other.address) not in self.network.cut

    def _write(self) -> None:
        """Let a client change rules, at a voter that takes itself for the leader."""
        random = self.scheduler.random
        leaders = [each for each in self.quorum.voters if each.leads and self._is_up(each)]
        if self.quiet:
            return
        if leaders:
            self.quorum.write(random.choice(leaders), random)
            self.done["writer"] = self.done.get("writer", 0) + 1
        pause = self.tempo.pause(lambda: random.expovariate(1 / self._think), lambda: random.expovariate(1 / 900.0))
        self.scheduler.after(pause, self._write)

    # Processes

    def _start(self, name: str) -> None:
        """See ClusterWorld. The operator starts no follower without a log of its own while a voter has another log."""
        if name == FOLLOWER and self.scheduler.now < self._formatted_until:
            self.scheduler.at(self._formatted_until, self._start, name)
            return
        voter = self._voters.get(name)
        process = self.hosts[name].process
        if voter is not None and voter.leads and (process is None or process.dead):
            voter.leader = -1
        super()._start(name)
        if voter is not None:
            self.quorum.look_again()

    def _ended(self, process: Process) -> None:
        super()._ended(process)
        if process.name in VOTERS:
            self.quorum.look_again()

    async def _main(self, process: Process) -> None:
        if process.name in VOTERS:
            await self._servers[process.name].run(process, self.network, PORT)
        elif process.name == MIRROR:
            await self._mirror(process)
        else:
            await self._follow(process)

    def _observe(self, process: Process, **more: Any) -> QuorumLog:
        log = QuorumLog(
            servers=tuple(HostPort(host=self.hosts[name].address, port=PORT) for name in VOTERS),
            options=ObserverOptions(**self._options),
            **more,
        )
        process.log = log  # type: ignore[attr-defined]
        return log

    async def _follow(self, process: Process) -> None:
        """What a broker does (aclog.server.broker.lifecycle.MetadataFollower)."""
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        process.stop = lambda: loop.call_soon_threadsafe(ended.set)  # type: ignore[attr-defined]
        publisher = Publisher()
        process.publisher = publisher  # type: ignore[attr-defined]
        publisher.subscribe(lambda image: self.published(process, image))
        log = self._observe(process, client_id="o1", cluster_id=CLUSTER_ID)
        follower = Follower(log=log, publisher=publisher, notify=lambda text: self.scheduler.note(process, text))
        process.follower = follower  # type: ignore[attr-defined]
        follower.start()
        follower.when_ended(lambda: loop.call_soon_threadsafe(ended.set))
        reading = asyncio.create_task(self._read_back(process, log))
        await ended.wait()
        reading.cancel()
        follower.stop(0)
        await asyncio.to_thread(log.close)
        await asyncio.to_thread(follower.wait_ended, 10.0)
        if follower.failure is not None:
            raise follower.failure

    async def _read_back(self, process: Process, log: QuorumLog) -> None:
        """Read older records, as a question about the past does: they are the committed ones."""
        random = self.scheduler.random
        while True:
            await asyncio.sleep(self.tempo.pause(lambda: random.uniform(0.5, 5.0), lambda: random.uniform(60, 300)))
            start, mark = log.start_offset(), log.high_watermark()
            if start >= mark:
                continue
            offset = random.randrange(max(start, mark - random.choice((5, 1_000))), mark)
            try:
                data = await asyncio.to_thread(log.read, offset, 2_000)
            except MetadataError as error:
                self.scheduler.note(process, "cannot read back:", error)
                continue
            committed = self.quorum.committed
            first = bisect_right(committed, offset, key=lambda each: each.end)
            count = bisect_right(committed, end_offset(data), key=lambda each: each.end)
            self.scheduler.cover("historical read")
            if data != b"".join(each.data for each in committed[first:count]):
                self.scheduler.fail(f"{process} reads other batches than the committed ones at {offset}")

    async def _mirror(self, process: Process) -> None:
        """What `aclog mirror` does."""
        stop = threads.Event()

        def end() -> None:
            stop.set()
            process.log.close()  # type: ignore[attr-defined]

        def run() -> None:
            with open_mirror(_MIRROR_DIRECTORY, segment_bytes=self._segment_bytes) as mirror:
                self._check_mirror(process, mirror)
                began = mirror.end
                after = None if began is None else EpochEnd(epoch=began.epoch, end_offset=began.end_offset)
                identity = LogIdentity.of(*mirror.outer_batches())
                cluster_id = mirror.cluster_id or CLUSTER_ID
                log = self._observe(
                    process, client_id="aclog-mirror", cluster_id=cluster_id, after=after, identity=identity
                )
                process.stop = lambda: self.scheduler.spawn(process, end, "mirror-closer")  # type: ignore[attr-defined]
                with log:
                    QuorumMirror(
                        quorum=log,
                        mirror=mirror,
                        stop=stop,
                        notify=lambda text: self.scheduler.note(process, text),
                        advance=lambda done, _: self._check_mirrored(process, done),
                    ).run(once=False)

        await asyncio.to_thread(run)

    # Checks

    def run(self) -> None:
        """See ClusterWorld; and what a mirror appends is what the quorum has committed there, byte by byte."""
        append = MirrorLog.append

        def checked(mirror: MirrorLog, batches: bytes) -> int:
            start = 0 if mirror.end is None else mirror.end.end_offset
            committed, expected = self.quorum.committed, b""
            at = bisect_left(committed, start, key=lambda each: each.base)
            while at < len(committed) and len(expected) < len(batches):
                expected += committed[at].data
                at += 1
            if expected != batches:
                self.scheduler.fail(f"{mirror.name}: other batches than the committed ones are appended at {start}")
            return append(mirror, batches)

        try:
            MirrorLog.append = checked  # type: ignore[method-assign]
            super().run()
        finally:
            MirrorLog.append = append  # type: ignore[method-assign]

    def _received_mark(self, mark: int) -> None:
        """A mark that an observer gets is one of what is committed."""
        if mark > self.quorum.end and self.scheduler.now > self._beyond_until:
            process = self.scheduler.fiber().process
            self.scheduler.fail(f"{process} has the mark {mark}; {self.quorum.end} is committed")

    def published(self, process: Process, image: Image) -> None:
        """An observer shows an image: it is that of a committed prefix, and never an older one."""
        offset, quorum = image.end_offset, self.quorum
        self.scheduler.note(process, "shows", offset)
        rules = {NUMBERS[each.acl]: each.id for each in image.acls}
        batch = quorum.by_end.get(offset)
        if offset and batch is None:
            what = f"where no committed batch ends: {quorum.end} is the end"
            self.scheduler.fail(f"{process} shows offset {offset}, {what}")
        elif batch is not None and (batch.rules, batch.epoch) != (rules, image.epoch):
            self.scheduler.fail(
                f"{process} shows another state at offset {offset}, epoch {image.epoch}: rules {sorted(rules)}; "
                f"committed are {sorted(batch.rules)} of epoch {batch.epoch}"
            )
        before = getattr(process, "shown", -1)
        if offset < before:
            self.scheduler.fail(f"{process} went back from offset {before} to {offset}")
        process.shown = offset  # type: ignore[attr-defined]
        self.scheduler.cover("image")

    def _check_mirrored(self, process: Process, end: int) -> None:
        if end < self._mirrored:
            self.scheduler.fail(f"{process} went back from offset {self._mirrored} to {end}")
        self._mirrored = end
        self.scheduler.note(process, "mirrored", end)
        process.shown = end  # type: ignore[attr-defined]

    def _check_mirror(self, process: Process, mirror: MirrorLog) -> None:
        """A mirror is opened: it has everything that it had reported, and what it has is committed."""
        end = -1 if mirror.end is None else mirror.end.end_offset
        if end < self._mirrored:
            self.scheduler.fail(f"{process} begins at offset {end}; {self._mirrored} was mirrored before")
        if mirror.end is None or not end:
            return
        with open_reader(mirror.directory) as reader:
            offset = reader.start_offset()
            pieces = [each for each in self.quorum.committed if offset <= each.base and each.end <= end]
            data = b""
            while offset < end:
                data += (piece := reader.read(offset))
                offset = end_offset(piece)
        if data != b"".join(each.data for each in pieces):
            self.scheduler.fail(f"{process}: the mirror has other batches than the committed ones up to {end}")
        self.published(process, recover(mirror.directory).image)
        self.scheduler.cover("mirror opened again")

    def _has_settled(self) -> bool:
        """See ClusterWorld."""
        leader = self.quorum.leader()
        return leader is not None and leader.mark == leader.last.end and set(self._ends().values()) == {self.quorum.end}

    def _check_convergence(self) -> None:
        """Both observers have all that is committed, follow without an error, and get the next record soon."""
        scheduler, quorum = self.scheduler, self.quorum
        leader = quorum.leader()
        if leader is None or leader.mark != leader.last.end:
            scheduler.fail(f"the model has no leader that commits {SETTLE_SECONDS:g} s after all faults")
            return
        self._check_ends(self._ends())
        quorum.write(leader, scheduler.random)
        scheduler.run(scheduler.now + _FOLLOW_SECONDS)
        if not scheduler.failures:
            self._check_ends(self._ends())

    def _ends(self) -> dict[str, int]:
        ends = {}
        for name in (FOLLOWER, MIRROR):
            process = self.hosts[name].process
            alive = process is not None and not process.dead
            ends[name] = getattr(process, "shown", -1) if alive else -1
        return ends

    def _check_ends(self, ends: Mapping[str, int]) -> None:
        for name, end in ends.items():
            if end != self.quorum.end:
                error = getattr(getattr(self.hosts[name].process, "log", None), "error", None)
                self.scheduler.fail(f"{name} is at offset {end} of {self.quorum.end} without faults: {error}")

    def _check_clients(self) -> None:
        """There are none."""

    # Faults

    def _strike(self, fault: Fault) -> None:
        super()._strike(fault)
        self.quorum.look_again()

    def _settle(self) -> None:
        self._restore()
        super()._settle()

    def _restore(self) -> None:
        for name, server in self._servers.items():
            self._serve(name, self._voters[name], CLUSTER_ID)
            server.served.changed()

    def _serve(self, name: str, voter: Voter, cluster_id: str) -> None:
        server = self._servers[name]
        before, server.served, server.cluster_id = server.served, voter, cluster_id
        if before is not voter:
            before.changed()
            self.quorum.look_again()

    def _crash_at_a_call(self, fault: Fault, host: Host, process: Process | None) -> bool:
        return fault.target == MIRROR and super()._crash_at_a_call(fault, host, process)

    def _power_loss_at_a_call(self, fault: Fault, host: Host, process: Process | None) -> bool:
        return fault.target == MIRROR and super()._power_loss_at_a_call(fault, host, process)

    def _disk_full(self, fault: Fault, host: Host, process: Process | None) -> bool:
        return fault.target == MIRROR and super()._disk_full(fault, host, process)

    def _election(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        """A voter does not wait for the leader's silence, as after a controlled shutdown."""
        voter = self.quorum.voters[fault.number % len(VOTERS)]
        if voter.leads or not self._is_up(voter):
            return False
        self.quorum.stand(voter)
        return True

    def _isolated_leader(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        """A leader reaches observers, but no other voter, and still appends: the next leader truncates that."""
        leader = self.quorum.leader()
        if leader is None or not self._is_up(leader):
            return False
        for other in self.quorum.voters:
            if other is not leader:
                self.network.cut[leader.address, other.address] = None
                self.network.cut[other.address, leader.address] = None
        for _ in range(1 + fault.number % 3):
            self.quorum.write(leader, self.scheduler.random)
        self.scheduler.after(4.0 + fault.seconds, self.network.heal)
        return True

    def _trimmed_logs(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        """Voters trim their logs; every other time, after an observer has been cut off for a while."""
        if self.scheduler.now < self._formatted_until:
            return False
        chosen = [each for each in self.quorum.voters if each.leads or (each.number + fault.number) % 3]
        back = fault.number % 4
        if fault.number % 2:
            return self._trim(chosen, back)
        seconds = 1.0 + fault.seconds
        self._leave_only(self.hosts[fault.target if fault.target == MIRROR else FOLLOWER], "")
        self.scheduler.after(seconds, self._trim, chosen, back)
        self.scheduler.after(seconds + 0.1, self.network.heal)
        return True

    def _trim(self, voters: Sequence[Voter], back: int) -> bool:
        if self.scheduler.now < self._formatted_until:
            return False
        return sum(self.quorum.take_snapshot(each, self.scheduler.random, back) for each in voters) > 0

    def _slow_voters(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        usual = self.quorum.lag
        if usual > 1:
            return False
        self.quorum.lag = 2.0
        self.scheduler.after(fault.seconds, setattr, self.quorum, "lag", usual)
        return True

    def _another_log(self, name: str, *, epoch: int, batches: int, salt: int, is_trimmed: bool) -> Voter:
        """Return the only voter of another quorum, at the address of a voter."""
        other = Quorum(self.scheduler, RULES, self._now_ms, salt=salt, is_dynamic=self.quorum.is_dynamic)
        voter = Voter(self._voters[name].number, self.hosts[name].address)
        other.voters.append(voter)
        voter.epoch = epoch - 1
        other.stand(voter)
        for _ in range(batches):
            other.write(voter, self.scheduler.random)
        if is_trimmed:  # a log that begins after a snapshot
            other.take_snapshot(voter, self.scheduler.random, 0)
        return voter

    def _replaceable(self, fault: Fault) -> str | None:
        """Draw a voter that another one may replace for a while; None if it does not run, or is replaced."""
        name = VOTERS[fault.number % len(VOTERS)]
        voter = self._voters[name]
        return None if voter.leads or not self._is_up(voter) else name

    def _other_cluster(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        """A node of another cluster has the address of a voter for a while."""
        name = self._replaceable(fault)
        if name is None:
            return False
        voter = self._another_log(
            name, epoch=1 + fault.number % 5, batches=fault.number, salt=1, is_trimmed=fault.number == 2
        )
        self._serve(name, voter, _OTHER_CLUSTER_ID)
        self.scheduler.after(1.0 + fault.seconds, self._serve, name, self._voters[name], CLUSTER_ID)
        return True

    def _formatted_again(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        """A voter has the log of another quorum, with the same cluster id, and leads it: observers must end."""
        name, leader, random = self._replaceable(fault), self.quorum.leader(), self.scheduler.random
        if name is None or leader is None or self.scheduler.now < self._formatted_until:
            return False
        if not all(self._knows_the_log(each) for each in (FOLLOWER, MIRROR)):
            return False
        epoch, batches = leader.epoch + random.choice((0, 0, 1, 2)), len(self.quorum.committed) + random.randint(-3, 6)
        is_trimmed = random.random() < 0.2 and min(self._ends().values()) > _SHORT_LOG
        is_beyond = self.quorum.is_dynamic and not is_trimmed and random.random() < 0.3
        if is_beyond:  # seen by the voters of its snapshot only
            batches = 5 * (len(self.quorum.committed) + 5)
            self.scheduler.cover("formatted beyond the observers")
            self._beyond_until = self.scheduler.now + 9.0 + fault.seconds
        voter = self._another_log(
            name, epoch=epoch, batches=2 if is_trimmed else batches, salt=2, is_trimmed=is_trimmed or is_beyond
        )
        seconds = 8.0 + fault.seconds
        self._serve(name, voter, CLUSTER_ID)
        self._formatted_until = self.scheduler.now + seconds
        self.scheduler.after(seconds, self._serve, name, self._voters[name], CLUSTER_ID)
        for each in (FOLLOWER, MIRROR):
            self._excuse(each, "formatted", seconds + 60.0)
            self._leave_only(self.hosts[each], name)
        self.scheduler.after(seconds / 2, self.network.heal)
        return True

    def _leave_only(self, observer: Host, name: str) -> None:
        """Cut an observer off all voters but one; none with that name: off all."""
        others = {self.hosts[each].address for each in VOTERS if each != name}
        self.network.cut.update(dict.fromkeys((observer.address, other) for other in sorted(others)))
        for side in list(self.network.sides):
            if side.process is observer.process and side.peer.process.address in others:
                self.network.drop(side)

    def _knows_the_log(self, name: str) -> bool:
        """Whether an observer has a batch by which it can recognize the log, and needs no snapshot."""
        process = self.hosts[name].process
        log = None if process is None or process.dead else getattr(process, "log", None)
        starts = [each.start.end for each in self.quorum.voters]
        return log is not None and log._fetcher.identity._last != b"" and process.shown > max(starts)  # type: ignore[union-attr]


def build(scheduler: Scheduler, seconds: float, faults: Sequence[Fault] | None = None) -> QuorumWorld:
    """Return the world of the scheduler's seed."""
    chosen = schedule(scheduler.seed, seconds, KINDS, target) if faults is None else list(faults)
    return QuorumWorld(scheduler=scheduler, seconds=seconds, faults=chosen)
