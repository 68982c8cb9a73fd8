"""World e: a node that keeps the index of last use, whose accesses are counted once, or are a gap."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from attrs import define, field
from prometheus_client import CollectorRegistry

from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.machine import clock
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.server import usage_index
from aclog.server.usage_index import AccessRecorder, Drained, UsageKeeper
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.window import HOUR
from tests.simulation.cluster_world import CLUSTER_ID, ClusterWorld, Fault, Kinds, schedule
from tests.simulation.disk import ROOT
from tests.simulation.processes import Host, Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import OPERATIONS, PRINCIPALS, RULES, TOPICS
from tests.support.builders.acls import acl_record

NODE = "u1"
_INDEX = Path(f"{ROOT}/{NODE}/var/index")
_BROKER = "7"
_EVER = (0, 60_000)
"""Days since 1970."""
_DRIFT_US = 1_000_000
_SHORT_BYTES = 4_000
KINDS: Kinds = (
    ("kill", 4),
    ("power loss", 4),
    ("crash at a call", 8),
    ("power loss at a call", 8),
    ("pause", 3),
    ("fsync is slow", 2),
    ("fsync fails", 5),
    ("disk full", 4),
    ("clock jumps", 4),
    ("stop", 4),
    ("short memory", 4),
)


def target(_random: Random) -> str:
    """Return the only host."""
    return NODE


@define(eq=False)
class _Batch:
    """The decisions between two drains of a process, and when these were."""

    matched: Counter[UUID] = field(factory=Counter)
    """How many of them each ACL matched."""
    decisions: int = 0
    dropped: int = 0
    since: int = 0
    until: int = 0
    """In us since 1970, by the clock at the end."""


@define(eq=False, kw_only=True)
class UsageWorld(ClusterWorld):
    """What is in the index is compared with all decisions whenever the node starts."""

    brokers: tuple[str, ...] = (NODE,)
    image: AclsImage = field(factory=AclsImage.empty, init=False)
    _acls: tuple[StandardAclWithId, ...] = field(default=(), init=False)
    """Those of the image."""
    _ids: int = field(default=0, init=False)
    _batches: list[_Batch] = field(factory=list, init=False)
    """Those of the process that runs, or has run last; the last one is not drained yet."""
    _confirmed: int = field(default=0, init=False)
    """How many of these the index has confirmed."""
    _kept: list[_Batch] = field(factory=list, init=False)
    """What the index had when it was last checked."""
    _runs: int = field(default=0, init=False)
    """How many these were."""
    _durable: int = field(default=0, init=False)
    """How many of them no power loss may take: those up to the last confirmed one."""
    _think: float = field(default=1.0, init=False)
    _drained_at: float = field(default=0.0, init=False)

    def _build(self) -> None:
        host = self.host(NODE)
        host.disk.mkdir(f"{ROOT}/{NODE}/var", parents=True, exist_ok=True)
        host.disk.sync_all()
        self._think = self.scheduler.random.choice((0.2, 1.0, 3.0))
        for _ in range(10):
            self._change_rule()

    def _change_rule(self) -> None:
        rule = self.scheduler.random.choice(RULES)
        rule_id = self.image.find(rule)
        if rule_id is not None:
            self.image = self.image.apply([RemoveAccessControlEntryRecord(id=rule_id)])
        else:
            self._ids += 1
            self.image = self.image.apply([acl_record(UUID(int=(1 << 100) + self._ids), rule)])
        self._acls = tuple(self.image)

    # The node

    async def _main(self, process: Process) -> None:
        random, ended = self.scheduler.random, asyncio.Event()
        process.stop = lambda: process.loops[0].call_soon_threadsafe(ended.set)  # type: ignore[attr-defined]
        self._check(process)
        authorizer = StandardAuthorizer()
        authorizer.configure({})
        recorder = AccessRecorder(lambda: authorizer.ready)
        process.recorder = recorder  # type: ignore[attr-defined]
        authorizer.set_observer(recorder)
        keeper = UsageKeeper(
            directory=_INDEX,
            broker=_BROKER,
            cluster_id=CLUSTER_ID,
            settings=Settings(),
            recorder=recorder,
            registry=CollectorRegistry(),
            brokers=lambda: [_BROKER],
        )
        self._drained_at = self.scheduler.now
        authorizer.load(self.image)
        authorizer.complete_initial_load()
        keeper.start()
        while not ended.is_set():
            keeper.interval = 60.0 if self.tempo.is_calm else usage_index.INTERVAL_SECONDS
            if random.random() < 0.1:
                self._change_rule()
                authorizer.load(self.image)
            for _ in range(random.choice((1, 1, 3, 20))):
                self._decide(authorizer)
            seconds = self.tempo.pause(lambda: random.expovariate(1 / self._think), lambda: random.uniform(30, 600))
            try:
                await asyncio.wait_for(ended.wait(), seconds)
            except TimeoutError:
                continue
        await asyncio.to_thread(keeper.close)
        self._check_stopped(process)

    def _decide(self, authorizer: StandardAuthorizer) -> None:
        random = self.scheduler.random
        principal, operation, topic = random.choice(PRINCIPALS), random.choice(OPERATIONS), random.choice(TOPICS)
        context = RequestContext(principal=principal, host=f"10.1.{random.randint(0, 3)}.1")
        pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=topic, pattern_type=PatternType.LITERAL)
        authorizer.authorize(context, [Action(operation=operation, resource_pattern=pattern)])
        batch = self._batches[-1]
        batch.decisions += 1
        self.done["decisions"] = self.done.get("decisions", 0) + 1
        for each in self._acls:
            rule = each.acl
            name = rule.resource_name
            is_literal = rule.pattern_type == PatternType.LITERAL
            covers = name in ("*", topic) if is_literal else topic.startswith(name)
            if covers and rule.principal == principal and rule.operation == operation:
                batch.matched[each.id] += 1

    # Checks

    def run(self) -> None:
        """See ClusterWorld; and each drain ends a batch, and each confirmed transaction is counted."""
        drain, take = AccessRecorder.drain, UsageIndex.take

        def drained(recorder: AccessRecorder) -> Drained:
            result = drain(recorder)
            batch, now = self._batches[-1], self.scheduler.now
            batch.dropped = result.uncounted.dropped
            batch.until = clock.time_ns() // 1000
            batch.since = batch.until - int((now - self._drained_at) * 1e6)
            self._drained_at = now
            self.scheduler.note("interval of", batch.decisions, "decisions", sorted(batch.matched.values()))
            self._batches.append(_Batch())
            return result

        def taken(index: UsageIndex, *arguments: Any) -> bool:
            is_new = take(index, *arguments)
            self._confirmed += 1
            self.scheduler.cover("interval" if is_new else "interval that was there")
            return is_new

        try:
            AccessRecorder.drain, UsageIndex.take = drained, taken  # type: ignore[method-assign,assignment]
            super().run()
        finally:
            AccessRecorder.drain, UsageIndex.take = drain, take  # type: ignore[method-assign]

    def _check(self, process: Process) -> None:
        """The index has the first batches of the process before, all that it confirmed, and each once."""
        batches, self._batches = self._batches, [_Batch()]
        confirmed, self._confirmed = self._confirmed, 0
        fail = self.scheduler.fail
        if not (_INDEX / "usage.sqlite").exists() or not self.hosts[NODE].disk.find(str(_INDEX / "usage.sqlite")).data:  # type: ignore[union-attr]
            if confirmed or self._kept:
                fail(f"{process}: the index is gone")
            return
        with UsageIndex.open(_INDEX) as index:
            runs, coverage, used, lives = index.runs(), index.coverage(), index.used(*_EVER), index.lives()
        if confirmed:
            self._durable = self._runs + confirmed
        count, most = len(runs) - self._runs, self._runs + max(len(batches) - 1, 0)
        self.scheduler.note(process, "has", len(runs), "intervals,", count, "of", len(batches), "new ones")
        if not self._durable <= len(runs) <= most:
            fail(f"{process}: {len(runs)} intervals in the index: expected {self._durable} to {most}")
            return
        self._runs, self._kept = len(runs), [*self._kept, *batches][: len(runs)]
        self.scheduler.cover("index opened again")
        matched = Counter(
            {
                UUID(bytes=lives.keys[number].tobytes()): times
                for number, times in zip(used.numbers.tolist(), used.matched.tolist(), strict=True)
                if times
            }
        )
        least, most = Counter[UUID](), Counter[UUID]()
        for batch in self._kept:
            most += batch.matched
            least += Counter() if batch.dropped else batch.matched
        if not least <= matched <= most:
            fail(f"{process}: the index counts {self._difference_of(least, matched)}")
        expected = sum(batch.decisions for batch in self._kept if not batch.dropped)
        if int(coverage.rows.sum()) != expected:
            fail(f"{process}: {int(coverage.rows.sum())} decisions are covered; {expected} are in whole intervals")
        covered = [(each.since - _DRIFT_US - 1, each.until + 1) for each in self._kept if not each.dropped]
        for hour in coverage.hour.tolist():
            if not any(since // HOUR <= hour <= until // HOUR for since, until in covered):
                fail(f"{process}: hour {hour} is covered, in which no interval lies")

    @staticmethod
    def _difference_of(expected: Counter[UUID], counted: Counter[UUID]) -> str:
        differing = [each for each in expected.keys() | counted.keys() if expected[each] != counted[each]]
        return ", ".join(f"ACL {each.int & 0xFFFF} {counted[each]}, not {expected[each]}, times" for each in differing)

    def _check_stopped(self, process: Process) -> None:
        """A node that stops writes the last interval, unless a fault prevents it."""
        late = self._batches[-1].decisions or self._confirmed < len(self._batches) - 1
        if late and not any(until >= self.scheduler.now for until in self._excused.get(NODE, {}).values()):
            self.scheduler.fail(f"{process} has stopped without its last decisions in the index")

    def _has_settled(self) -> bool:
        """See ClusterWorld: the node runs, and has indexed all but what was decided since."""
        process = self.hosts[NODE].process
        runs = process is not None and not process.dead and hasattr(process, "recorder")
        return runs and self._confirmed == len(self._batches) - 1 > 0

    def _check_convergence(self) -> None:
        """All decisions since the last start are in the index."""
        process = self.hosts[NODE].process
        if process is None or process.dead:
            self.scheduler.fail("the node does not run after the last fault")
            return
        process.stop()  # type: ignore[attr-defined]
        self.scheduler.run(self.scheduler.now + 20.0, done=lambda: self._is_checked_after(process))
        if not self.scheduler.failures and not self._is_checked_after(process):
            self.scheduler.fail(f"{process} does not stop, or the next one does not start, in 20 s without faults")

    def _is_checked_after(self, process: Process) -> bool:
        return hasattr(self.hosts[NODE].process, "recorder") and self.hosts[NODE].process is not process

    def _check_clients(self) -> None:
        """There are none."""

    # Faults

    def _fsync_fails(self, fault: Fault, host: Host, process: Process | None) -> bool:
        if process is None:
            return False
        host.disk.fail_fsyncs, host.disk.fail_suffix = 1 + fault.number % 3, ""
        self._excuse(NODE, "fsync", 60.0)
        return True

    def _fsync_is_slow(self, fault: Fault, host: Host, process: Process | None) -> bool:
        self._excuse(NODE, "slow", fault.seconds + 10.0)
        return super()._fsync_is_slow(fault, host, process)

    def _clock_jumps(self, fault: Fault, host: Host, _process: Process | None) -> bool:
        """By minutes or hours: the index has a resolution of one hour."""
        host.clock_offset += fault.seconds * (1_000 if fault.number % 2 else -1_000)
        return True

    def _short_memory(self, fault: Fault, _host: Host, process: Process | None) -> bool:
        recorder = getattr(process, "recorder", None)
        if recorder is None:
            return False
        usual, recorder.most_bytes = recorder.most_bytes, _SHORT_BYTES
        self.scheduler.after(fault.seconds, setattr, recorder, "most_bytes", usual)
        return True


def build(scheduler: Scheduler, seconds: float, faults: Sequence[Fault] | None = None) -> UsageWorld:
    """Return the world of the scheduler's seed."""
    chosen = schedule(scheduler.seed, seconds, KINDS, target) if faults is None else list(faults)
    return UsageWorld(scheduler=scheduler, seconds=seconds, faults=chosen)
