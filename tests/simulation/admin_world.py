"""World d: a modelled Kafka whose admin API is polled by `aclog sync`, and changed by `aclog apply` and others."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import MetadataError
from aclog.metalog.machine import clock, threads
from aclog.ops import sync
from aclog.ops.removal_limit import RemovalLimit
from aclog.ops.sync import (
    ClusterPoller,
    RefusedPollError,
    RemovalTrust,
    SyncLog,
    WrongClusterError,
    create_sync_log,
    open_sync_log,
)
from aclog.planning.applying import ApplyOptions
from aclog.planning.plan import (
    JournalError,
    Origin,
    PlaceAddress,
    PlaceKind,
    Plan,
    RefusedError,
    parse_plan,
    plan_lines,
)
from aclog.planning.planner import DeleteLimit, change_to_want, make_plan
from aclog.targets.opening import PlaceSettings, PlanApply, find_place
from tests.simulation.admin_model import FIRST, Broker, Change, Controller
from tests.simulation.admin_server import BrokerServer
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
from tests.simulation.processes import Host, Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import RULES

CONTROLLER, BROKERS, SYNC, APPLY = "q1", ("b1", "b2", "b3"), "s1", "p1"
OTHERS = "others"
"""Who changes ACLs besides `aclog apply`."""
_OTHER_CLUSTER_ID = "b3RoZXItc2NyaXB0LTAwMQ"
_COPY = Path(f"{ROOT}/{SYNC}/var/copy")
_JOURNAL = Path(f"{ROOT}/{APPLY}/var/journal")
_FEWEST = 12
"""How many ACLs others leave at least."""
_CONTENTS = {content_of(rule): number for number, rule in enumerate(RULES)}
_EXPECTED = ("create a new plan", "expected the same target")
"""Of a journal's errors: the plan is older than the journal, or the target is of another cluster."""
KINDS: Kinds = (
    *OF_PROCESSES_AND_NETWORKS,
    ("fsync fails", 3),
    ("election", 5),
    ("broker cut off", 8),
    ("broker without metadata", 4),
    ("other cluster", 3),
    ("refused rules", 6),
    ("lost answers", 8),
    ("many changes", 3),
)


def target(random: Random) -> str:
    """Draw the host of a fault."""
    return random.choice((SYNC, SYNC, APPLY, APPLY, *BROKERS, CONTROLLER))


@define(eq=False)
class _Apply:
    """An apply: when it began, and what its plan lists."""

    plan: Plan
    begun: float
    offset: int
    """The end of the controller's log at that time."""
    adds: frozenset[int]
    removes: frozenset[int]


@define(eq=False, kw_only=True)
class AdminWorld(ClusterWorld):
    """The copy is always a state of the source, and an apply changes what its plan lists, and nothing else."""

    brokers: tuple[str, ...] = (*BROKERS, SYNC, APPLY, CONTROLLER)
    controller: Controller = field(init=False)
    goal: frozenset[int] = field(default=frozenset(), init=False)
    """The desired ACLs of the source of `aclog apply`."""
    _servers: dict[str, BrokerServer] = field(factory=dict, init=False)
    _models: dict[str, Broker] = field(factory=dict, init=False)
    _interval: float = field(default=10.0, init=False)
    _think: float = field(default=5.0, init=False)
    _copied: int = field(default=FIRST, init=False)
    """The source had the recorded state at this offset, or later, when it was last polled."""
    _has_copy: bool = field(default=False, init=False)
    _accepted: int | None = field(default=None, init=False)
    """How many removals the operator accepts at the next start of `aclog sync`."""
    _plan: Plan | None = field(default=None, init=False)
    """The plan of an apply that has not ended."""
    _applies: list[_Apply] = field(factory=list, init=False)
    _extra: dict[int, Change] = field(factory=dict, init=False)
    """What an apply removed without a plan, and has not restored."""
    _down_until: dict[str, float] = field(factory=dict, init=False)
    _settled_at: float = field(default=-1.0, init=False)
    """When an apply last found nothing left to do."""

    def _build(self) -> None:
        random = self.scheduler.random
        for name in self.nodes:
            self.host(name)
        for name in (SYNC, APPLY):
            disk = self.hosts[name].disk
            disk.mkdir(f"{ROOT}/{name}/var", parents=True, exist_ok=True)
            disk.sync_all()
        self.controller = self._new_controller(random.sample(range(len(RULES)), 30))
        self.controller.lag = random.choice((0.01, 0.05, 0.4))
        self.controller.on_change = self._changed
        configs: dict[str, str | None] = random.choice(({}, {}, {ALLOW_EVERYONE_CONFIG: None}))
        addresses = {self.hosts[name].address: name for name in self.nodes}
        for number, name in enumerate(BROKERS, 1):
            broker = Broker(self.controller, number, name, partial(self._reaches, name), self.controller.end)
            self.controller.brokers.append(broker)
            self._models[name] = broker
            self._servers[name] = server = BrokerServer(broker, CLUSTER_ID, PORT)
            server.brokers, server.name_of, server.configs = self._listed, addresses.__getitem__, configs
        self._interval = random.choice((3.0, 10.0, 30.0))
        self._think = random.choice((1.0, 5.0, 20.0))
        self.goal = frozenset(random.sample(range(len(RULES)), 8))
        self.scheduler.after(1.0, self._write)

    def _new_controller(self, numbers: Sequence[int]) -> Controller:
        controller = Controller(self.scheduler, RULES)
        controller.create(OTHERS, 0.0, [RULES[each] for each in numbers])
        return controller

    def _listed(self) -> list[tuple[Broker, HostPort]]:
        return [(self._models[name], HostPort(host=self.hosts[name].address, port=PORT)) for name in BROKERS]

    def _is_up(self, name: str) -> bool:
        process = self.hosts[name].process
        return process is not None and not process.dead and process.paused_until <= self.scheduler.now

    def _reaches(self, name: str) -> bool:
        here, there, cut = self.hosts[name].address, self.hosts[CONTROLLER].address, self.network.cut
        up = self._is_up(name) and self._is_up(CONTROLLER)
        return up and (here, there) not in cut and (there, here) not in cut

    def _servers_of(self, count: int) -> tuple[HostPort, ...]:
        return tuple(address for _, address in self._listed()[:count])

    def _write(self) -> None:
        """Let another client change ACLs."""
        random, controller = self.scheduler.random, self.controller
        if self.quiet:
            return
        if self._is_up(CONTROLLER) and controller.away_until <= self.scheduler.now:
            self._change(random.choice((1, 1, 2, 4)))
        pause = self.tempo.pause(lambda: random.expovariate(1 / self._think), lambda: random.expovariate(1 / 900.0))
        self.scheduler.after(pause, self._write)

    def _change(self, count: int) -> None:
        random, controller = self.scheduler.random, self.controller
        for number in random.sample(range(len(RULES)), count):
            if number not in controller.state:
                controller.create(OTHERS, self.scheduler.now, [RULES[number]])
            elif len(controller.state) > _FEWEST:
                controller.delete(OTHERS, self.scheduler.now, [AclBindingFilter.of(RULES[number])])

    # Processes

    def _start(self, name: str) -> None:
        if self.scheduler.now < self._down_until.get(name, 0.0):
            self.scheduler.at(self._down_until[name], self._start, name)
            return
        process = self.hosts[name].process
        is_new = process is None or process.dead
        super()._start(name)
        if is_new and name in BROKERS:
            self._models[name].restart()

    async def _main(self, process: Process) -> None:
        if process.name in BROKERS:
            await asyncio.sleep(self.scheduler.random.uniform(0.5, 3.0))
            await self._servers[process.name].run(process, self.network)
        elif process.name == SYNC:
            await self._sync(process)
        elif process.name == APPLY:
            await asyncio.to_thread(self._apply_all, process)
        else:
            await asyncio.Event().wait()

    # aclog sync

    async def _sync(self, process: Process) -> None:
        """What `aclog sync` does (aclog.cli.sync)."""
        stop, failures = asyncio.Event(), 0
        process.stop = lambda: process.loops[0].call_soon_threadsafe(stop.set)  # type: ignore[attr-defined]
        log = open_sync_log(_COPY)
        self._check_opened(process, log)
        trust = RemovalTrust(limit=RemovalLimit(accepted=self._accepted))
        self._accepted = None
        cluster_id = None if log is None else log.cluster_id
        random = self.scheduler.random
        try:
            async with ClusterPoller(
                servers=self._servers_of(2), security=ClientSecurity(), cluster_id=cluster_id
            ) as poller:
                while not stop.is_set():
                    try:
                        poll = await trust.trusted_poll(poller, log)
                    except WrongClusterError:
                        raise
                    except MetadataError as error:
                        self.scheduler.note(process, "poll failed:", error)
                        failures += 1
                        seconds = min(max(self._interval, 60.0), min(self._interval, 1.0) * 2 ** (failures - 1))
                        self._judge_refusal(process, log, error)
                    else:
                        if log is None:
                            done = create_sync_log(_COPY, poll)
                            log = open_sync_log(_COPY, done)
                            self._has_copy = True
                        else:
                            log.record(poll)
                        log.keep_response(least=0)
                        self._check_recorded(process, log)
                        failures, seconds = 0, self._interval
                    waited = self.tempo.pause(lambda seconds=seconds: seconds, lambda: random.uniform(60, 600))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), waited)
        finally:
            if log is not None:
                log.close()

    def _state_of(self, log: SyncLog) -> frozenset[int]:
        return frozenset(_CONTENTS[each] for each in log.recorded)

    def _check_recorded(self, process: Process, log: SyncLog | None) -> None:
        """A poll is recorded: the copy is a state that the source had, and not an older one than before."""
        assert log is not None
        state = self._state_of(log)
        process.copied = state  # type: ignore[attr-defined]
        offset = self.controller.least_offset(state, self._copied)
        if offset is None:
            self.scheduler.fail(
                f"{process} has recorded {sorted(state)}, which the source did not have since offset {self._copied}"
            )
            return
        self.scheduler.cover("poll")
        self.scheduler.note(process, "has the state of", offset)
        self._copied = offset

    def _check_opened(self, process: Process, log: SyncLog | None) -> None:
        """A copy is opened: it has everything that was recorded, and each poll as a whole."""
        if log is None:
            if self._has_copy:
                self.scheduler.fail(f"{process}: the copy is gone")
            return
        self._check_recorded(process, log)
        self._has_copy = True
        self.scheduler.cover("copy opened again")

    def _judge_refusal(self, process: Process, log: SyncLog | None, error: MetadataError) -> None:
        """Let an operator accept a removal that the source has really made."""
        if log is None or not isinstance(error, RefusedPollError):
            return
        self.scheduler.cover("poll refused")
        gone = self._state_of(log) - self.controller.state
        if len(gone) >= error.removed or (self.quiet and gone):
            self._accepted = len(gone)
            process.stop()  # type: ignore[attr-defined]

    # aclog apply

    def _apply_all(self, process: Process) -> None:
        """What an operator does with `aclog plan` and `aclog apply`, again and again."""
        random = self.scheduler.random
        stop = threads.Event()
        process.stop = stop.set  # type: ignore[attr-defined]
        while not stop.is_set():
            usual = 5.0 if self.quiet else min(random.expovariate(1 / self._think), 30.0)
            clock.sleep(self.tempo.pause(lambda usual=usual: usual, lambda: random.uniform(60, 900)))
            try:
                self._plan_and_apply(process)
            except MetadataError as error:
                self.scheduler.note(process, "apply failed:", repr(error))
                self.scheduler.cover(f"apply: {type(error).__name__}")
                if isinstance(error, JournalError) and not any(text in str(error) for text in _EXPECTED):
                    self.scheduler.fail(f"{process}: {error}")
                if isinstance(error, RefusedError | JournalError):
                    self._plan = None
            self._check_extra(process)

    def _address(self) -> PlaceAddress:
        servers = ",".join(map(str, self._servers_of(2)))
        return PlaceAddress(kind=PlaceKind.BOOTSTRAP_SERVER, value=servers)

    def _plan_and_apply(self, process: Process) -> None:
        random, is_new = self.scheduler.random, False
        plan = self._plan
        if plan is None or random.random() < 0.3:
            is_new, plan = True, self._new_plan(process)
            if plan.place.identity != CLUSTER_ID:  # without a journal yet, any cluster will do; the operator reads it
                self.scheduler.cover("plan of another cluster")
                return
            if plan.is_empty:
                self._plan, self._settled_at = None, self.scheduler.now
                if not self.quiet:
                    self._change_goal()
                return
            if not self.quiet and random.random() < 0.5:  # a review, meanwhile others change the target
                clock.sleep(random.expovariate(1 / 5.0))
        self._plan = plan
        numbers = {True: set[int](), False: set[int]()}
        for step in plan.steps:
            numbers[step.adds].add(_CONTENTS[content_of(step.acl)])
        self._applies.append(
            _Apply(plan, self.scheduler.now, self.controller.end, frozenset(numbers[True]), frozenset(numbers[False]))
        )
        options = ApplyOptions(
            apply=f"apply-{len(self._applies)}",
            at="2026-01-01T00:00:00.000Z",
            who="operator@host",
            accept_transient=True,
            resume=not is_new and random.random() < 0.5,
        )
        apply = PlanApply(plan=plan, address=self._address(), options=options, notify=partial(self._notify, process))
        _, outcome = apply.run(None, lambda _: _Progress())  # type: ignore[arg-type]
        self.scheduler.note(process, "applied", outcome)
        self._check_success(process, self._applies[-1], was_done=outcome.was_done)
        self._plan = None
        if not self.quiet:
            self._change_goal()

    def _notify(self, process: Process, text: str) -> None:
        self.scheduler.note(process, text)

    def _new_plan(self, process: Process) -> Plan:
        address = self._address()
        place = find_place(address, PlaceSettings(), _JOURNAL, partial(self._notify, process))
        change = change_to_want(place.holdings, {content_of(RULES[each]) for each in self.goal}, adopt=False)
        made = make_plan(change, place.circumstances(Origin(at="2026-01-01T00:00:00.000Z", who="operator@host")))
        place.check_plan(change, made.steps, DeleteLimit.parse("100%"))
        self.scheduler.note(process, "plans", len(made.steps), "steps")
        return parse_plan([line.encode() for line in plan_lines(made)], "PLAN")

    def _change_goal(self) -> None:
        random = self.scheduler.random
        some = random.sample(sorted(self.goal), min(len(self.goal) - 1, random.choice((0, 1, 2, 4))))
        more = random.sample(range(len(RULES)), random.choice((0, 1, 2, 4)))
        self.goal = (self.goal - set(some)) | set(more)

    def _of_request(self, received: float) -> _Apply | None:
        """Return the apply that sent a request."""
        return next((each for each in reversed(self._applies) if each.begun <= received), None)

    def _changed(self, number: int, change: Change) -> None:
        """Check each change of an apply when it is committed."""
        self.scheduler.note(change.by, "adds" if change.added else "removes", number, "at", change.offset)
        if change.by != APPLY:
            self._extra.pop(number, None)
            return
        apply = self._of_request(change.received)
        if apply is None:
            self.scheduler.fail(f"{APPLY} changes ACL {number} without an apply")
        elif change.added:
            if number not in apply.adds and self._extra.pop(number, None) is None:
                self.scheduler.fail(f"an apply adds ACL {number}, which its plan does not list")
        elif number not in apply.removes:
            self.scheduler.cover("removed by a filter")
            self._extra[number] = change

    def _check_extra(self, process: Process) -> None:
        """An apply has ended: it has restored what its filters removed besides."""
        if self._extra:
            self.scheduler.fail(f"{process}: an apply has removed ACLs {sorted(self._extra)}, which its plan keeps")

    def _check_success(self, process: Process, apply: _Apply, *, was_done: bool) -> None:
        """An apply reports success: each of its changes is made, unless another client has undone it since."""
        self.scheduler.cover("apply reported as done" if was_done else "apply")
        state, changes = self.controller.state, self.controller.changes
        begun = next(each for each in self._applies if each.plan == apply.plan)
        for number in sorted(apply.adds | apply.removes):
            last = changes.get(number)
            if (number in state) is (number in apply.adds):
                continue
            if last is not None and last.by == APPLY and last.received < begun.begun:
                self.scheduler.cover("late request of an earlier apply")
                continue
            if last is None or last.by == APPLY or last.offset < begun.offset:
                self.scheduler.fail(f"{process} reports an apply as done, but ACL {number} is not as its plan lists it")

    # The end

    def run(self) -> None:
        """See ClusterWorld; notes of `aclog sync` go to the trace."""
        usual = sync.note
        try:
            sync.note = self.scheduler.note  # type: ignore[assignment]
            super().run()
        finally:
            sync.note = usual

    def _settle(self) -> None:
        for name in BROKERS:
            self._restore(name)
            self._models[name].empty_until = self._servers[name].lost_answers = 0
        for name in self._down_until:
            self._down_until[name] = 0.0
            self._start(name)
        self.controller.away_until, self.controller.refused = 0.0, frozenset()
        super()._settle()

    def _has_settled(self) -> bool:
        """See ClusterWorld; and a plan was empty since the faults have ended."""
        state, copied = self.controller.state, getattr(self.hosts[SYNC].process, "copied", None)
        settles_at = self.tempo.length(self.seconds)
        return (
            self._is_up(SYNC) and self._is_up(APPLY) and copied == state >= self.goal and self._settled_at > settles_at
        )

    def _check_convergence(self) -> None:
        """The copy equals the source, and the target has what is desired, some time after the faults have ended."""
        scheduler, state = self.scheduler, self.controller.state
        for name in (SYNC, APPLY):
            if not self._is_up(name):
                scheduler.fail(f"{name} does not run {SETTLE_SECONDS:g} s after the last fault")
                return
        copied = getattr(self.hosts[SYNC].process, "copied", None)
        if copied != state:
            scheduler.fail(f"the copy is {copied} {SETTLE_SECONDS:g} s after the last fault; the source is {state}")
        if not self.goal <= state or self._settled_at < scheduler.now - SETTLE_SECONDS:
            scheduler.fail(f"desired {sorted(self.goal)} is not applied {SETTLE_SECONDS:g} s after the last fault")

    def _check_clients(self) -> None:
        """There are none."""

    # Faults

    def _fsync_fails(self, fault: Fault, host: Host, process: Process | None) -> bool:
        if fault.target not in (SYNC, APPLY) or process is None:
            return False
        host.disk.fail_fsyncs, host.disk.fail_suffix = 1, ""
        self._excuse(fault.target, "fsync", 120.0)
        return True

    def _election(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        self.controller.away_until = self.scheduler.now + fault.seconds
        return True

    def _broker_cut_off(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        """A broker serves clients, and does not reach the controller: its state becomes older and older.

        Often the other one fails meanwhile, so that its clients go to this one.
        """
        name, other = BROKERS[fault.number % 2], BROKERS[1 - fault.number % 2]
        here, there = self.hosts[name].address, self.hosts[CONTROLLER].address
        self.network.cut[here, there] = self.network.cut[there, here] = None
        seconds = max(2.0 * fault.seconds, self._interval)
        self.scheduler.after(2.0 * seconds, self.network.heal)
        if fault.number % 3:
            self.scheduler.after(0.8 * seconds, self._take_down, other, 1.2 * seconds)
        return True

    def _take_down(self, name: str, seconds: float) -> None:
        process = self.hosts[name].process
        if process is not None and not process.dead and not self.quiet:
            self._down_until[name] = self.scheduler.now + seconds
            process.kill()
            self._ended(process)

    def _broker_without_metadata(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        for name in BROKERS if fault.number % 4 == 0 else BROKERS[fault.number % 2 :][:1]:
            self._models[name].empty_until = self.scheduler.now + fault.seconds
        return True

    def _restore(self, name: str) -> None:
        server = self._servers[name]
        if server.cluster_id != CLUSTER_ID:
            server.served, server.cluster_id, server.brokers = self._models[name], CLUSTER_ID, self._listed
            self._disconnect(name)

    def _disconnect(self, name: str) -> None:
        address = self.hosts[name].address
        for side in [each for each in self.network.sides if each.address[0] == address]:
            self.network.drop(side)

    def _other_cluster(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        """A node of another cluster has the address of a broker for a while."""
        name = BROKERS[fault.number % 2]
        server, seconds = self._servers[name], 1.0 + fault.seconds
        if server.cluster_id != CLUSTER_ID:
            return False
        random = self.scheduler.random
        numbers = set(self.controller.state)  # a copy of the cluster, or any other one
        numbers ^= set(random.sample(range(len(RULES)), random.choice((4, 20))))
        other = self._new_controller(sorted(numbers))
        other.on_change = lambda *_: self.scheduler.fail("an apply changes another cluster")
        broker = Broker(other, 1, name, applied=other.end)
        address = HostPort(host=self.hosts[name].address, port=PORT)
        server.served, server.cluster_id, server.brokers = broker, _OTHER_CLUSTER_ID, lambda: [(broker, address)]
        self._excuse(SYNC, "other cluster", seconds + 30.0)
        self._disconnect(name)
        self.scheduler.after(seconds, self._restore, name)
        return True

    def _refused_rules(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        self.controller.refused = frozenset(self.scheduler.random.sample(range(len(RULES)), 24))
        self.scheduler.after(2.0 * fault.seconds + 2.0 * self._think, setattr, self.controller, "refused", frozenset())
        return True

    def _lost_answers(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        for server in self._servers.values():
            server.lost_answers = 1 + fault.number % 3
        return True

    def _many_changes(self, fault: Fault, _host: Host, _process: Process | None) -> bool:
        if not self._is_up(CONTROLLER) or self.controller.away_until > self.scheduler.now:
            return False
        self._change(8 + fault.number % 16)
        return True


class _Progress:
    """No progress bar."""

    def __enter__(self) -> Any:
        return lambda _done, _total: None

    def __exit__(self, *_: object) -> None:
        pass


def build(scheduler: Scheduler, seconds: float, faults: Sequence[Fault] | None = None) -> AdminWorld:
    """Return the world of the scheduler's seed."""
    chosen = schedule(scheduler.seed, seconds, KINDS, target) if faults is None else list(faults)
    return AdminWorld(scheduler=scheduler, seconds=seconds, faults=chosen)
