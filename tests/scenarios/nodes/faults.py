"""Controllers and brokers are killed under load, connections are cut, delayed and held; then the log is looked through.

`python -m tests.scenarios.nodes.faults --kills 60 --writers 8 --out FILE`; with `--short-log` checkpoints are written
all the time, and the log moves on from under the brokers. The controller's log goes away between two starts, comes back
older, or is renamed under the running controller: it does not start then, or ends. What a client was told is what must
have happened: a change that was acknowledged stands in the log once, one whose answer was lost once or not at all.
"""

import argparse
import asyncio
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.client.errors import LoginError
from aclog.metalog.codec import decode_record
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.files import list_segments
from aclog.metalog.filelog.verify import verify
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.snapshots.publisher import recover
from tests.scenarios.nodes.lost_logs import LostLogs
from tests.support.builders.acls import acl, acl_of
from tests.support.builders.log_files import read_directory
from tests.support.models.ledger import Ledger
from tests.support.nodes.acl_client import AclClient, exactly
from tests.support.nodes.cluster import SHORT_LOG, Cluster, ClusterNode
from tests.support.nodes.tcp_proxy import TcpProxy
from tests.support.processes.node_zygote import NodeZygote
from tests.support.processes.waiting import SECONDS

UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED = -1, 7, 31
NOT_READY = "AUTHORIZER_NOT_READY"
WRITERS = 8
CLIENT_SECONDS = 4.0
INTRUDER = "User:intruder"


@frozen(kw_only=True)
class Plan:
    """How much of what, and the seed of all chance."""

    kills: int
    writers: int
    seed: int


@define(eq=False, repr=False)
class CampaignLedger(Ledger):
    """Adds what intruders were told, what brokers showed, and how long the controller was away."""

    refused: Counter[str] = field(factory=Counter)
    """What intruders were told."""
    looks: int = 0
    """How often an offset was looked at."""
    longest_gap: float = 0.0
    """Seconds from a controller's kill until it was ready again, at most."""


@define(eq=False)
class Worker:
    """Creates rules that nobody has created before, and deletes some of them; never asks twice for the same."""

    number: int
    port: int
    ledger: Ledger
    chance: Random
    mine: list[StandardAcl] = field(factory=list)

    async def run(self) -> None:
        """For ever; connects again after whatever happens to a connection."""
        for step in itertools.count():
            with suppress(MetadataError):
                async with await AclClient.open(self.port, timeout=CLIENT_SECONDS) as client:
                    for part in itertools.count():
                        if not await self._change(client, f"w{self.number}-{step}-{part}"):
                            break
            await asyncio.sleep(0.02)

    async def _change(self, client: AclClient, name: str) -> bool:
        """One change; tells whether the connection is still good."""
        if self.mine and self.chance.random() < 0.3:
            return await self._delete(client, self.mine.pop(self.chance.randrange(len(self.mine))))
        rules = [acl(name, host=f"10.0.0.{part}") for part in range(self.chance.choice((1, 1, 2, 5)))]
        self.ledger.maybe_created.update(rules)
        try:
            outcomes = await client.create(rules)
        except MetadataError:
            self.ledger.answers["creation without an answer"] += 1
            return False
        for rule, (code, message) in zip(rules, outcomes, strict=True):
            if code == 0:
                self.ledger.acknowledge("created")
                self.ledger.created.add(rule)
                self.ledger.maybe_created.discard(rule)
                self.mine.append(rule)
            else:
                self._failed(code, message, rule, self.ledger.maybe_created)
        return True

    async def _delete(self, client: AclClient, rule: StandardAcl) -> bool:
        self.ledger.maybe_deleted.add(rule)
        try:
            (((code, message), count),) = await client.delete([exactly(rule)])
        except MetadataError:
            self.ledger.answers["deletion without an answer"] += 1
            return False
        if code == 0:
            assert count == 1, f"{rule} was acknowledged, and is not there to be deleted"
            self.ledger.acknowledge("deleted")
            self.ledger.deleted.add(rule)
            self.ledger.maybe_deleted.discard(rule)
        else:
            self._failed(code, message, rule, self.ledger.maybe_deleted)
        return True

    def _failed(self, code: int, message: str | None, rule: StandardAcl, maybe: set[StandardAcl]) -> None:
        if code == UNKNOWN_SERVER_ERROR and (message or "").startswith(NOT_READY):
            self.ledger.answers["not ready"] += 1
            maybe.discard(rule)
            return
        lost = code == UNKNOWN_SERVER_ERROR and message is None  # what a request is told whose append failed
        assert lost or code == REQUEST_TIMED_OUT, f"error {code}: {message}"
        self.ledger.answers["log lost" if lost else "timed out"] += 1


async def intrude(port: int, ledger: CampaignLedger) -> None:
    """Somebody without rights, and somebody without the password; for ever."""
    while True:
        try:
            async with await AclClient.open(port, "alice", secret="guessed", timeout=CLIENT_SECONDS):
                raise AssertionError("let in with a wrong password")
        except LoginError:
            ledger.refused["wrong password"] += 1
        except MetadataError:
            ledger.refused["no connection"] += 1
        with suppress(MetadataError):
            async with await AclClient.open(port, "alice", timeout=CLIENT_SECONDS) as client:
                found = await client.describe()
                ((code, message),) = await client.create([acl("mine", principal=INTRUDER)])
                for each, text in ((found.code, found.message), (code, message)):
                    late = (text or "").startswith(NOT_READY)
                    expected = CLUSTER_AUTHORIZATION_FAILED, REQUEST_TIMED_OUT, *([UNKNOWN_SERVER_ERROR] * late)
                    assert each in expected, f"somebody without rights is told {each}: {text}"
                    ledger.refused[f"error {each}"] += 1
        await asyncio.sleep(0.02)


async def watch_offset(node: ClusterNode, ledger: CampaignLedger) -> None:
    """What a broker shows never goes back; one that was killed shows as much as before once it is ready."""
    highest = -1
    while True:
        if await asyncio.to_thread(node.is_ready):
            applied = await asyncio.to_thread(lambda: node.applied)
            if applied >= 0:
                assert applied >= highest, f"{node.home.name} went back from {highest} to {applied}"
                highest = applied
                ledger.looks += 1
        await asyncio.sleep(0.02)


@define(eq=False)
class Faults:
    """What happens to a cluster, one after the other."""

    cluster: Cluster
    proxies: list[TcpProxy]
    ledger: CampaignLedger
    chance: Random
    logs: LostLogs
    done: Counter[str] = field(factory=Counter)

    async def run(self, kills: int) -> None:
        """So many kills of the controller, with other trouble in between."""
        for number in range(kills):
            await asyncio.sleep(self.chance.uniform(0.05, 0.8))
            if number % 3 == 2:
                await self._kill_broker()
            if number % 5 == 1:
                await asyncio.to_thread(self.logs.take_away)
                await self._start_controller()
                await asyncio.sleep(self.chance.uniform(0.05, 1.5))
            await self._trouble()
            await self._kill_controller()
        for proxy in self.proxies:
            proxy.delay = 0.0

    async def _kill_controller(self) -> None:
        node, begun = self.cluster.controller, time.monotonic()
        await asyncio.to_thread(node.kill)
        self.done["controller killed"] += 1
        await asyncio.to_thread(self.logs.look)
        await asyncio.sleep(self.chance.choice((0, 0, 0.3)))
        harm = self.chance.choice((self.logs.start_without, self.logs.start_older, None, None, None, None))
        if harm is not None:
            await asyncio.to_thread(harm)
            begun = time.monotonic()
        await self._start_controller()
        self.ledger.longest_gap = max(self.ledger.longest_gap, time.monotonic() - begun)

    async def _start_controller(self) -> None:
        node = self.cluster.controller
        await asyncio.to_thread(node.spawn)
        if self.chance.random() < 0.2:  # again, while it starts
            await asyncio.sleep(self.chance.uniform(0, 0.3))
            await asyncio.to_thread(node.kill)
            await asyncio.to_thread(node.spawn)
            self.done["controller killed as it started"] += 1
        await asyncio.to_thread(node.wait_until_ready)

    async def _kill_broker(self) -> None:
        node = self.chance.choice(self.cluster.brokers)
        await asyncio.to_thread(node.kill)
        self.done["broker killed"] += 1
        await asyncio.to_thread(node.spawn)
        await asyncio.to_thread(node.wait_until_ready)

    async def _trouble(self) -> None:
        proxy = self.chance.choice(self.proxies)
        match self.chance.choice(("cut", "delay", "hold", "refuse", "nothing")):
            case "cut":
                await asyncio.to_thread(proxy.cut)
                self.done["connections cut"] += 1
            case "delay":
                proxy.delay = self.chance.choice((0.0, 0.002, 0.02))
                self.done["delay changed"] += 1
            case "hold":
                proxy.hold()
                await asyncio.sleep(self.chance.uniform(0.1, 0.6))
                proxy.release()
                self.done["held"] += 1
            case "refuse":
                proxy.refusing = True
                await asyncio.to_thread(proxy.cut)
                await asyncio.sleep(0.2)
                proxy.refusing = False
                self.done["refused"] += 1


async def _beside(tasks: list["asyncio.Task[None]"], work: Awaitable[None]) -> None:
    """Do it while the tasks run; the first that fails ends it."""
    working = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([working, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in (working, *tasks):
            each.cancel()
        await asyncio.gather(working, *tasks, return_exceptions=True)


def check_log(directory: Path, ledger: Ledger) -> int:
    """Look through the log: everything once, and all that was acknowledged; returns how many records it has."""
    rules: dict[object, StandardAcl] = {}
    added: Counter[StandardAcl] = Counter()
    removed: Counter[StandardAcl] = Counter()
    count = 0
    for record in (decode_record(value) for _, values in read_directory(directory) for value in values):
        count += 1
        if isinstance(record, AccessControlEntryRecord):
            rule = acl_of(record)
            assert record.id not in rules, "an id was given twice"
            rules[record.id] = rule
            added[rule] += 1
        elif isinstance(record, RemoveAccessControlEntryRecord):
            removed[rules[record.id]] += 1
    ledger.check(added, removed)
    return count


async def _campaign(
    cluster: Cluster, proxies: list[TcpProxy], ledger: CampaignLedger, plan: Plan, *, short_log: bool
) -> Faults:
    faults = Faults(cluster, proxies, ledger, Random(plan.seed), LostLogs(cluster.controller))
    ports = [proxies[1].port, proxies[2].port, cluster.controller.ports.controller]
    workers = [
        Worker(number, ports[number % len(ports)], ledger, Random(f"{plan.seed} {number}"))
        for number in range(plan.writers)
    ]
    forever: list[Callable[[], Awaitable[None]]] = [worker.run for worker in workers]
    forever.extend([lambda port=port: intrude(port, ledger) for port in ports])
    forever.extend([lambda node=node: watch_offset(node, ledger) for node in cluster.brokers])
    tasks = [asyncio.create_task(each()) for each in forever]
    await _beside(tasks, _faults_and_retention(faults, plan.kills) if short_log else faults.run(plan.kills))
    return faults


async def _faults_and_retention(faults: Faults, kills: int) -> None:
    """Clients go on until the log has let go of its beginning, however few changes went in between the faults."""
    await faults.run(kills)
    deadline = time.monotonic() + SECONDS
    while not list_segments(faults.cluster.controller.log_directory)[0].base_offset:
        assert time.monotonic() < deadline, f"the log still begins at 0 after {SECONDS:g} s"
        await asyncio.sleep(0.1)


async def _same_everywhere(cluster: Cluster) -> None:
    """All nodes show the same as soon as nothing happens any more: requests may outlast their clients."""
    offsets, deadline = [-1], time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = []
        for port in (cluster.controller.ports.controller, *(broker.ports.broker for broker in cluster.brokers)):
            async with await AclClient.open(port) as client:
                described = await client.describe()
                assert described.count == len(described.acls)
                found.append(described.acls)
        before, offsets = offsets, [await asyncio.to_thread(lambda node=node: node.applied) for node in cluster.nodes]
        if before == offsets == offsets[:1] * len(offsets):
            assert found[1:] == found[:1] * len(cluster.brokers), "nodes show different rules"
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"the nodes stand at {offsets}")


def check_rules(directory: Path, ledger: Ledger) -> int:
    """See that what stands in the end is what was acknowledged; returns how many rules there are."""
    assert [str(each) for each in verify(directory)] == []
    standing = [rule.acl for rule in recover(directory).image.acls]
    assert ledger.created - ledger.deleted - ledger.maybe_deleted <= set(standing), "an acknowledged creation is lost"
    assert set(standing) <= ledger.created | ledger.maybe_created, "a rule that nobody asked for"
    assert not ledger.deleted & set(standing), "an acknowledged deletion is lost"
    assert len(standing) == len(set(standing)), "a rule was created twice"
    return len(standing)


def run(
    root: Path, zygote: NodeZygote, *, kills: int, seed: int, writers: int = WRITERS, short_log: bool = False
) -> str:
    """A whole campaign; returns what to report, or raises AssertionError for what must not be."""
    plan = Plan(kills=kills, writers=writers, seed=seed)
    begun, ledger, changes = time.monotonic(), CampaignLedger(), SHORT_LOG if short_log else {}
    with ExitStack() as stack:
        proxies = [stack.enter_context(TcpProxy(0)) for _ in range(3)]
        cluster = stack.enter_context(Cluster(root, zygote, controller_at=proxies[0].port, **changes))
        proxies[0].target = cluster.controller.ports.controller
        for proxy in proxies[1:]:
            proxy.target = cluster.add_broker().ports.broker
        cluster.start()
        faults = asyncio.run(_campaign(cluster, proxies, ledger, plan, short_log=short_log))
        asyncio.run(_same_everywhere(cluster))
    directory = cluster.controller.log_directory
    size = f"{check_rules(directory, ledger)} rules in the end"
    if short_log:
        size += f", the log begins at {list_segments(directory)[0].base_offset}"
    else:
        size += f", {check_log(directory, ledger)} records in the log"
    return "\n".join(
        (
            f"seed {seed}, {writers} writers, {time.monotonic() - begun:.0f} s; {size}",
            f"faults: {_counted(faults.done)}",
            f"the log: {_counted(faults.logs.done)}",
            f"marks looked at: {faults.logs.looks}; none ahead, {faults.logs.behind} records behind at most",
            f"answers: {_counted(ledger.answers)}",
            f"intruders: {_counted(ledger.refused)}",
            f"offsets looked at: {ledger.looks}; none went back",
            f"longest time from a controller's kill until it was ready: {ledger.longest_gap:.2f} s",
            f"longest time without an acknowledgement: {ledger.longest_silence:.2f} s",
            "no acknowledged change lost, none applied twice, nobody let in",
        )
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.nodes.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="of the controller")
    parser.add_argument("--writers", type=int, default=WRITERS, help="clients that change rules all the time")
    parser.add_argument("--short-log", action="store_true", help="checkpoints and retention at work all the time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where the report is kept, beside being printed")
    arguments = parser.parse_args()
    with NodeZygote() as zygote, tempfile.TemporaryDirectory() as directory:
        report = run(
            Path(directory),
            zygote,
            kills=arguments.kills,
            seed=arguments.seed,
            writers=arguments.writers,
            short_log=arguments.short_log,
        )
    print(report)
    if arguments.out is not None:
        arguments.out.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
