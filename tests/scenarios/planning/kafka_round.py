"""One change of a real Kafka by `aclog apply`, and one thing that goes wrong in it."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from unittest import mock

from attrs import define, evolve, field

from aclog.authorizer.acl import StandardAcl, object_of_rule, rule_of_object
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.authorizer.settings import Settings
from aclog.client.connection import Role
from aclog.config.node_config import HostPort
from aclog.metalog.errors import MetadataError
from aclog.snapshots.history import ChangeKind, history
from aclog.targets.cluster import ServerPlace, open_server_place
from tests.scenarios.planning.kafka_log_judge import DENY, OPERATIONS, PRINCIPALS, ends_with, judge_order
from tests.scenarios.planning.zookeeper_kafka import ZooKeeperCluster
from tests.support.builders.acls import acl, cluster_acl
from tests.support.cli.command import Result, aclog
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.tools import client_properties
from tests.support.nodes.acl_client import AclClient, exactly, login
from tests.support.processes.waiting import SECONDS

APPLIER = "alice"
RIGHTS = [cluster_acl(f"User:{APPLIER}", operation) for operation in (AclOperation.ALTER, AclOperation.DESCRIBE)]
AT_ONCE = 3
"""Steps of a piece, so that a small plan has many."""


class Another(threading.Thread):
    """Somebody who adds and removes rules of names that no plan touches, as fast as they can."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.done, self.enough = port, Counter[tuple[str, StandardAcl]](), threading.Event()

    def run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        async with await AclClient.open(self.port) as client:
            number = 0
            while not self.enough.is_set():
                number += 1
                mine = acl(f"elsewhere-{number % 7}", "User:elsewhere")
                self.done["ADDED", mine] += 1
                assert [code for code, _ in await client.create([mine])] == [0]
                self.done["REMOVED", mine] += 1
                await client.delete([exactly(mine)])


@define(eq=False)
class Round:
    """One change of a Kafka, and what goes wrong in it."""

    kafka: KafkaQuorum | ZooKeeperCluster
    home: Path
    number: int
    chance: Random
    fault: str
    open_by_default: bool
    by_controllers: bool
    """Whether the place is named by its controllers."""
    others: Counter[tuple[str, StandardAcl]] = field(factory=Counter)
    """What others than apply did since the plan was made."""
    applies: int = 0
    refused: int = 0
    midway: int = 0
    """Applies that went on where an earlier one had ended, after some of the steps."""
    read: int = 0
    """How often the state was read while a broker restarted."""

    @property
    def prefix(self) -> str:
        """What all names of the round begin with."""
        return f"round-{self.number}."

    def file(self, name: str) -> Path:
        """A file of this round."""
        return self.home / f"{self.number}-{name}"

    @property
    def place(self) -> tuple[str, ...]:
        """The flags of the place, as a user who may change rules by rules."""
        config = client_properties(self.home, APPLIER)
        if self.by_controllers:
            return (
                "--bootstrap-controller",
                ",".join(map(str, self.kafka.controllers)),
                "--command-config",
                str(config),
            )
        return ("--bootstrap-server", self.kafka.bootstrap, "--command-config", str(config))

    def run(self) -> None:
        """Raises AssertionError for what must not be."""
        base, wanted, foreign = self._rules(8), self._rules(8), self._rules(4)
        foreign -= base | wanted
        self.by_another(adds=foreign)
        self._make(base)
        state, begin = self._rules_there(), self._end()
        plan = self._plan(base | wanted if self.chance.random() < 0.2 else wanted)
        self.others.clear()
        if plan is None:
            return
        self._go_wrong(plan)
        self._judge(state, begin, plan)

    def _rules(self, count: int) -> set[StandardAcl]:
        chance, prefix = self.chance, self.prefix
        found = set()
        for _ in range(chance.randrange(1, count + 1)):
            prefixed = chance.random() < 0.3
            found.add(
                acl(
                    prefix + chance.choice(("", "a") if prefixed else ("a", "ab", "b", "c")),
                    chance.choice((*PRINCIPALS, "User:*")),
                    operation=chance.choice((*OPERATIONS, AclOperation.ALL)),
                    pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
                    permission_type=DENY if chance.random() < 0.25 else AclPermissionType.ALLOW,
                )
            )
        return found

    # what is done

    def _make(self, rules: set[StandardAcl]) -> None:
        """Own these, before anything goes wrong."""
        if self._plan(rules) is not None:
            self._apply().ok()

    def _plan(self, wanted: Iterable[StandardAcl]) -> list[dict] | None:
        """The steps of a plan; None if there is nothing to do."""
        self.file("want").write_text("".join(f"{json.dumps(object_of_rule(each))}\n" for each in wanted))
        flags = ("--journal", self.file("journal"), "--max-deletes", "100%", "--format", "jsonl")
        source = ("--want", self.file("want"), "--want-format", "jsonl", "--out", self.file("plan"))
        settings = ("--allow-everyone-if-no-acl-found",) if self.open_by_default else ()
        found = aclog("plan", *self.place, *source, *flags, *settings)
        assert found.code in {0, 1}, found
        return [json.loads(line) for line in found.lines] if found.code else None

    def _apply(self, *flags: str) -> Result:
        self.applies += 1
        found = aclog("apply", self.file("plan"), "--yes", "--accept-transient-denials", *flags)
        self.midway += "steps were already done" in found.out
        return found

    def _apply_until_done(self, *flags: str) -> None:
        """Apply again and again, as a user would, until it is done."""
        deadline = time.monotonic() + SECONDS
        while (found := self._apply(*flags)).code:
            assert found.code == 2, found
            self.refused += 1
            assert time.monotonic() < deadline, found

    def _go_wrong(self, plan: list[dict]) -> None:
        {
            "nothing": lambda _: self._apply().ok(),
            "another elsewhere": self._beside_another,
            "a rule changed before": self._changed_before,
            "the same by another": self._same_by_another,
            "rights taken": self._rights_taken,
            "apply killed": self._apply_killed,
            "broker killed": lambda _: self._node_killed(self.kafka.nodes[0]),
            "leader killed": lambda _: self._node_killed(self.kafka.leader()),
            "read while a broker restarts": self._read_while_restarting,
        }[self.fault](plan)

    def _beside_another(self, _plan: list[dict]) -> None:
        another = Another(self.kafka.nodes[-1].ports.broker)
        another.start()
        self._apply().ok()
        another.enough.set()
        another.join(SECONDS)
        assert not another.is_alive()
        self.others += another.done

    def _changed_before(self, plan: list[dict]) -> None:
        """Nothing may be done where a rule has changed since; once it is as it was, all is."""
        rule = rule_of_object(plan[0]["rule"]).acl
        stranger = evolve(rule, host="10.9.8.7")
        self.by_another(adds={stranger})
        self._until(lambda: stranger in self._rules_there())  # a broker applies it later than the controller
        before = self._rules_there()
        found = self._apply()
        assert found.code == 2, found
        assert "ACLs that the plan touches have changed" in found.complaint
        self._until(lambda: self._rules_there() == before)
        self.by_another(removes={stranger})
        self._apply().ok()

    def _same_by_another(self, plan: list[dict]) -> None:
        """Between two pieces, somebody does a later step by hand."""
        step = self.chance.choice(plan)
        rule = rule_of_object(step["rule"]).acl
        with self._before_piece(self._some_piece(plan), lambda: self.by_another(**{
            "adds" if step["action"] == "ADD" else "removes": {rule}})):  # fmt: skip
            self._apply().ok()

    def _rights_taken(self, plan: list[dict]) -> None:
        with self._before_piece(self._some_piece(plan), lambda: self.by_another(removes=RIGHTS[:1])):
            found = self._apply()
        assert found.code == 2, found
        assert "the user of --command-config needs ALTER on the cluster" in found.complaint, found
        self.refused += 1
        self.by_another(adds=RIGHTS[:1])
        self._apply_until_done()

    def _apply_killed(self, _plan: list[dict]) -> None:
        command = [sys.executable, "-m", "tests.scenarios.planning.small_pieces", str(AT_ONCE), str(self.file("plan"))]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.chance.uniform(0.6, 1.6))
            process.kill()
        self.applies += 1
        self._apply_until_done()

    def _node_killed(self, node) -> None:
        """Killed at any moment while it is applied; started again only after apply has ended."""
        timer = threading.Timer(self.chance.uniform(0.0, 0.4), node.kill)
        timer.start()
        found = self._apply()
        timer.join()
        assert found.code in {0, 2}, found
        if found.code:
            self.refused += 1
        if len(self.kafka.nodes) == 1:
            node.start()
        self._apply_until_done()  # by the others, if there are some
        if not node.running:
            node.start()

    def _read_while_restarting(self, _plan: list[dict]) -> None:
        """Whatever a broker answers that has just started, what is read is what there is, or nothing is read."""
        node, there = self.kafka.nodes[-1], self._there()

        def restart() -> None:
            node.stop()
            node.start()

        restarting = threading.Thread(target=restart)
        restarting.start()
        known = {content_of(each) for each in there}
        while restarting.is_alive():
            with suppress(MetadataError):
                servers = [HostPort(host="localhost", port=each.ports.broker) for each in self.kafka.nodes]
                with open_server_place(servers[::-1], login("admin"), Role.BROKER, str) as place:
                    place.patience = 0.5
                    assert place.read().contents == known
                    self.read += 1
        restarting.join()
        self._apply_until_done()

    @contextmanager
    def _before_piece(self, number: int, do: Callable[[], object]) -> Iterator[None]:
        """Do something before the piece of this number is written."""
        write, left = ServerPlace.write, [number]

        def written(place, piece) -> None:
            if left[0] == 0:
                do()
            left[0] -= 1
            write(place, piece)

        with mock.patch.object(ServerPlace, "write", written):
            yield

    def _some_piece(self, plan: list[dict]) -> int:
        return self.chance.randrange(max(1, len(plan) // AT_ONCE))

    def by_another(self, adds: Iterable[StandardAcl] = (), removes: Iterable[StandardAcl] = ()) -> None:
        """Add and remove rules as the super user, who is not the one who applies."""
        adds, removes = list(adds), list(removes)

        async def change() -> None:
            async with await AclClient.open(self._running().ports.broker) as client:
                if adds:
                    assert {code for code, _ in await client.create(adds)} == {0}
                if removes:
                    assert {code for (code, _), _ in await client.delete([exactly(each) for each in removes])} == {0}

        asyncio.run(change())
        self.others.update([*(("ADDED", each) for each in adds), *(("REMOVED", each) for each in removes)])

    # what is seen

    def told_settings(self) -> Settings | None:
        """What the brokers tell the super user of their authorizer's settings."""
        servers = [HostPort(host="localhost", port=each.ports.broker) for each in self.kafka.nodes]
        with open_server_place(servers, login("admin"), Role.BROKER, str) as place:
            return place.settings()

    def _running(self):
        return next(node for node in self.kafka.nodes if node.running)

    def _there(self) -> frozenset[StandardAcl]:
        async def described() -> frozenset[StandardAcl]:
            async with await AclClient.open(self._running().ports.broker) as client:
                return (await client.describe()).acls

        return asyncio.run(described())

    def _rules_there(self) -> set[StandardAcl]:
        """The rules with names of this round."""
        return {each for each in self._there() if each.resource_name.startswith(self.prefix)}

    def _end(self) -> int:
        """How many changes Kafka's log has, once it shows what is there; 0 if there is none."""
        return len(self._history()) if self.has_log else 0

    @property
    def has_log(self) -> bool:
        """Whether what was changed can be read in the end: ZooKeeper has only what there is."""
        return isinstance(self.kafka, KafkaQuorum)

    def _history(self) -> list:
        """All changes in the log of the leader, once they make what is there."""
        found: list = []

        def whole() -> bool:
            with suppress(MetadataError, OSError):  # it is being written, or a segment is gone
                found[:] = history(self.kafka.leader().log_directory)
                there = set()
                for change in found:
                    (there.add if change.kind is ChangeKind.ADDED else there.remove)(change.rule.acl)
                return there == self._there()
            return False

        self._until(whole)
        return list(found)

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def _judge(self, state: set[StandardAcl], begin: int, plan: list[dict]) -> None:
        """Hold Kafka's own log against the plan and against what others did."""
        steps = [("ADDED" if each["action"] == "ADD" else "REMOVED", rule_of_object(each["rule"]).acl) for each in plan]
        assert self._rules_there() == ends_with(state, steps), self.fault
        if not self.has_log:
            return
        changes = [(change.kind.value, change.rule.acl) for change in self._history()[begin:]]
        unexplained = Counter(changes) - Counter(steps) - self.others
        assert not unexplained, (self.fault, unexplained)
        assert set(steps) <= set(changes), (self.fault, set(steps) - set(changes))
        if self.fault not in {"a rule changed before", "the same by another"}:
            made = [each for each in changes if each in set(steps)]
            assert len(made) == len(steps), "each step once"
            names = [self.prefix + name for name in ("", "a", "ab", "abc", "b", "c", "z")]
            head = json.loads(self.file("plan").read_text().partition("\n")[0])
            judge_order(state, made, names, head["transient"] if self.open_by_default else None)
