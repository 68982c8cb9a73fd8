"""Random schedules of elections, pauses, failed and unknown commits, and requests on a shared log in memory.

Invariants: every acknowledged result was the state of the log at some point between request and response; images
never go back and match the log; each epoch has one leader.
"""

import asyncio
from random import Random

import pytest
from attrs import define, field

from aclog.authorizer.acl import AclBindingFilter
from aclog.metalog.batches import iter_batches
from aclog.metalog.control_records import LeaderChange, decode_control_batch
from aclog.protocol.error_codes import NOT_CONTROLLER
from aclog.protocol.headers import OutcomeUnknownError, RequestError
from aclog.server.loops import committed
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image
from tests.nodes.controller.write_path.test_quorum_controller import CONTEXT
from tests.support.builders.acls import acl
from tests.support.fakes.shared_log import SharedTopic
from tests.support.nodes.shared_controllers import three, until

STEPS = 150
NAMES = ("a", "b", "c")


def names(image: Image) -> frozenset[str]:
    return frozenset(each.acl.resource_name for each in image.acls)


@define(eq=False, repr=False)
class History:
    """The states of the log after each batch, and what was published and acknowledged when."""

    topic: SharedTopic
    states: list[frozenset[str]] = field(factory=lambda: [frozenset()])
    digests: dict[int, bytes] = field(factory=dict)
    shown: list[tuple[int, int, bytes]] = field(factory=list)
    """Node, end offset, digest of the ACLs."""
    acknowledged: int = 0
    refused: int = 0
    unknown: int = 0
    codes: set[int] = field(factory=set)
    _applier: Applier = field(factory=Applier)

    def now(self) -> int:
        """Return the number of committed batches, recording their states."""
        data = self.topic.store.read(self._applier.next_offset, 1 << 30)
        for position, header in iter_batches(data):
            self._applier.apply(data, position, position + header.size)
            self.states.append(names(self._applier.image))
            self.digests[self._applier.image.end_offset] = self._applier.image.acls.digest()
        return len(self.states) - 1

    def watch(self, node_id: int, node) -> None:
        """Record every image that a node publishes."""
        publisher = node.publisher
        publisher.subscribe(lambda image: self.shown.append((node_id, image.end_offset, image.acls.digest())))

    def check_shown(self) -> None:
        """Check that published images are states of the log, in order."""
        self.now()
        last: dict[int, int] = {}
        for node_id, offset, digest in self.shown:
            assert offset >= last.get(node_id, 0), f"node {node_id} went back from {last[node_id]} to {offset}"
            last[node_id] = offset
            if offset in self.digests:
                assert self.digests[offset] == digest, f"node {node_id} showed at {offset} what is not in the log"


@define(eq=False, repr=False)
class Clients:
    """Requests to nodes that consider themselves active, answered or not."""

    nodes: dict
    history: History
    chance: Random
    asked: list[asyncio.Task[None]] = field(factory=list)
    _number: int = 0

    def ask(self) -> None:
        """Send one more request to a node that considers itself active."""
        active = [node for node in self.nodes.values() if node.serving.controller is not None]
        if active:
            self.asked.append(asyncio.create_task(self._ask(self.chance.choice(active).serving.controller)))

    async def _ask(self, controller) -> None:
        self._number += 1
        name = self.chance.choice((*NAMES, f"only-{self._number}"))
        creating, begun = self.chance.random() < 0.6, self.history.now()
        many = self.chance.random() < 0.2
        if creating:
            rules = [acl(name)] * (300 if many else 1)  # many are decided in another thread
            future = controller.create_acls(CONTEXT, rules)
        else:
            filters = [AclBindingFilter(resource_name=name, pattern_type=3)] * (20 if many else 1)
            future = controller.delete_acls(CONTEXT, filters)
        try:
            results = await committed(future)
        except OutcomeUnknownError:
            self.history.unknown += 1
        except RequestError as error:
            self.history.refused += 1
            self.history.codes.add(error.code)
        else:
            assert all(each.error is None for each in results)
            between = self.history.states[begun : self.history.now() + 1]
            assert any((name in state) is creating for state in between), (
                f"{'creation' if creating else 'deletion'} of {name} was acknowledged, and never was so meanwhile"
            )
            self.history.acknowledged += 1


@define(eq=False, repr=False)
class Fate:
    """Applies random events to the log and its controllers."""

    topic: SharedTopic
    nodes: dict
    chance: Random
    _asleep: set[int] = field(factory=set)
    """Paused nodes: they notice neither the election nor the log's progress."""

    def step(self) -> None:
        """Apply one random event."""
        log = self.chance.choice(self.topic.logs[-3:])
        what = ("elect", "replace", "replace", "sleep", "wake", "hold", "flush", "flush", "unheard", "broken")
        match self.chance.choice(what):
            case "elect" if self.topic.candidates:
                self._elect(self.chance.choice(sorted(self.topic.candidates)))
            case "replace" if len(self.topic.candidates) > 1 and self.topic.elected is not None:
                self._sleep(self.topic.elected)
                self._elect(self.chance.choice(sorted(self.topic.candidates.keys() - {self.topic.elected})))
            case "sleep":
                self._sleep(self.chance.choice(sorted(self.nodes)))
            case "wake":
                self.wake(self.chance.choice(sorted(self.nodes)))
            case "hold":
                log.holding = True
            case "flush":
                log.flush()
            case "unheard":
                log.flush(answered=False)
            case "broken" if self.chance.random() < 0.5:
                log.break_down()

    def _sleep(self, node_id: int) -> None:
        self._asleep.add(node_id)
        self.nodes[node_id].shared.reader.cut()

    def _elect(self, node_id: int) -> None:
        self.wake(node_id)
        self.topic.elect(node_id, notify=self.topic.elected not in self._asleep)

    def wake(self, node_id: int) -> None:
        """Resume a node and deliver what it missed."""
        self._asleep.discard(node_id)
        self.nodes[node_id].shared.reader.heal()
        if self.topic.elected != node_id and node_id in self.topic.candidates:
            self.topic.candidates[node_id].on_deposed()


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow(1)) for seed in range(4, 16))])
@pytest.mark.sample(2)
async def test_acknowledged_changes_survive_and_uncommitted_ones_are_never_visible(tmp_path, monkeypatch, seed):
    monkeypatch.setattr("aclog.server.controller.topic_controller._RESIGN_SECONDS", 0.02)
    monkeypatch.setattr("aclog.server.controller.leadership._POLL_SECONDS", 0.02)
    topic, chance = SharedTopic(), Random(seed)
    history, failures = History(topic), []
    async with three(tmp_path, topic, on_failure=failures.append) as nodes:
        for node_id, node in nodes.items():
            history.watch(node_id, node)
        clients, fate = Clients(nodes, history, chance), Fate(topic, nodes, chance)
        for _ in range(STEPS):
            if chance.random() < 0.7:
                clients.ask()
            if chance.random() < 0.2:
                fate.step()
            await asyncio.sleep(chance.choice((0, 0, 0.001, 0.02)))
        await _quiet(topic, nodes, clients, fate)
        await _agree(topic, nodes, history)
    assert failures == []
    history.check_shown()
    _check_epochs(topic)
    assert history.acknowledged
    assert history.codes <= {41}


async def _quiet(topic, nodes, clients, fate) -> None:
    """Resume all nodes; commit or fail everything pending."""
    for node_id in nodes:
        fate.wake(node_id)
    while not all(task.done() for task in clients.asked):
        for log in topic.logs:
            log.holding = False
            log.flush()
        await asyncio.sleep(0.005)
    for task in clients.asked:
        task.result()


async def _agree(topic, nodes, history) -> None:
    """Elect a last leader, and check that it and the others have the whole log."""
    for log in topic.logs:
        log.holding = False
    await until(lambda: set(topic.candidates) == set(nodes))

    def leads() -> bool:
        """Tell whether the last leader leads; one that was just resigning is elected once more."""
        if topic.elected != 2 and 2 in topic.candidates:
            topic.elect(2)
        return nodes[2].active

    await until(leads)
    while True:
        try:
            await committed(nodes[2].serving.controller.create_acls(CONTEXT, [acl("the end")]))
            break
        except OutcomeUnknownError:  # it had been fenced before, and learns of that only when it writes
            await until(lambda: not nodes[2].active)
            topic.elect(2)
        except RequestError as error:  # it resigned meanwhile
            if error.code != NOT_CONTROLLER:
                raise
            await asyncio.sleep(0.005)  # it refuses before its term has ended, which needs the event loop
        await until(leads)
    end = topic.store.high_watermark()
    await until(lambda: all(node.publisher.current.end_offset == end for node in nodes.values()))
    history.now()
    assert {names(node.publisher.current) for node in nodes.values()} == {history.states[-1]}


def _check_epochs(topic) -> None:
    data, leaders, last = topic.store.read(0, 1 << 30), {}, 0
    for position, header in iter_batches(data):
        assert header.leader_epoch >= last
        last = header.leader_epoch
        if header.is_control:
            for record in decode_control_batch(data, position, header):
                if isinstance(record, LeaderChange):
                    assert leaders.setdefault(header.leader_epoch, record.leader_id) == record.leader_id
        assert header.leader_epoch in leaders
