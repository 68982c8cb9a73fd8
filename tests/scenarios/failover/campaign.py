"""Three controllers on a Kafka of three brokers: the active one killed, paused and cut off under load, many times.

    python -m tests.scenarios.failover.campaign --rounds 60 --out benchmarks/results/failover.txt
    python -m tests.scenarios.failover.campaign --rounds 20 --workers 8 --broker-kills --out ...

With --broker-kills one of Kafka's brokers is killed (SIGKILL) after each failover as well, and started again.

Clients remember what was acknowledged, Kafka's own kafka-acls changes rules all the while, and at the end the topic is
read by Kafka's own client: what was acknowledged is in it, once; epochs never go back, each has one leader, and nothing
of a deposed one stands behind its successor's first record. No node may have ended by itself, and no reader for good.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from random import Random

from attrs import define, field, frozen

from aclog.config.server_properties import load_config
from aclog.metalog.topiclog import TopicSettings
from tests.scenarios.failover.checking import check_epochs, check_rules, committed_messages
from tests.scenarios.failover.cut_kafka import CutKafka
from tests.scenarios.failover.faults import KINDS, SECONDS, Faults
from tests.scenarios.failover.load import Worker
from tests.support.kafka.acls_tool import TO_BROKERS, TO_CONTROLLERS, AclsTool
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.models.ledger import Ledger
from tests.support.nodes.acl_client import AclClient
from tests.support.nodes.cluster import HOST
from tests.support.nodes.topic_cluster import CONTROLLERS, TopicCluster
from tests.support.processes.node_zygote import NodeZygote

BROKERS = 2
_ENDED = ("the controller stops", "replay has stopped", "stopped: ")
"""What a node logs when it cannot go on."""
_READ_AGAIN = "reading the topic again from the last good batch"


@frozen(kw_only=True)
class Plan:
    """How long a campaign is, and what it does; `broker_kills`: after each failover a broker is killed as well."""

    rounds: int
    seed: int
    workers: int
    broker_kills: bool


@define(eq=False, repr=False)
class ToolLoop:
    """kafka-acls, run without end; every run must end with 0, unless `failures` are counted."""

    tool: AclsTool
    cluster: TopicCluster
    counted: bool = False
    """Count runs that fail; Kafka's Admin gives up after a minute, which two faults in a row may take."""
    seconds: list[float] = field(factory=list)
    failures: list[str] = field(factory=list)

    async def run(self) -> None:
        """Add a rule and remove it, by brokers and by controllers in turn."""
        brokers = ",".join(f"{HOST}:{node.ports.broker}" for node in self.cluster.brokers)
        places = ((TO_BROKERS, brokers), (TO_CONTROLLERS, self.cluster.bootstrap_controllers))
        for number in count():
            change = (self.tool.add, self.tool.remove)[number // 2 % 2]
            begun = time.monotonic()
            printed = await asyncio.to_thread(change, *places[number % 2], f"tool-{number // 4}-{number % 2}")
            if printed.code:
                told = f"kafka-acls {places[number % 2][0]}: {printed.code}: {printed.out}{printed.err}"
                assert self.counted, told
                self.failures.append(told)
                print("  " + told.partition("\n")[0], flush=True)
            self.seconds.append(time.monotonic() - begun)


async def _campaign(cluster: TopicCluster, kafka: CutKafka, tool: ToolLoop, plan: Plan) -> Faults:
    ledger, chance = Ledger(last=time.monotonic()), Random(plan.seed)
    controllers = [node.ports.controller for node in cluster.controllers.values()]
    brokers = [node.ports.broker for node in cluster.brokers]
    workers = [
        Worker(
            number,
            controllers if number % 3 == 2 else brokers[number % 2 :] + brokers,
            ledger,
            Random(f"{plan.seed} {number}"),
        )
        for number in range(plan.workers)
    ]
    faults = Faults(cluster, kafka, ledger, chance, lambda: len(tool.seconds))
    work = faults.run(plan.rounds, broker_kills=plan.broker_kills)
    await _beside([worker.run() for worker in workers] + [tool.run()], work)
    return faults


async def _beside(forever: list[Awaitable[None]], work: Awaitable[None]) -> None:
    """Do it while the others run; the first that fails ends it."""
    working, tasks = asyncio.ensure_future(work), [asyncio.ensure_future(each) for each in forever]
    try:
        done, _ = await asyncio.wait([working, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in (working, *tasks):
            each.cancel()
        await asyncio.gather(working, *tasks, return_exceptions=True)


async def _same_everywhere(
    cluster: TopicCluster, expected_of: TopicSettings, ledger: Ledger
) -> tuple[int, dict[int, int]]:
    """All nodes show what the topic holds, as soon as nothing happens any more: how many messages, who led when."""
    deadline = time.monotonic() + SECONDS
    ports = [node.ports.controller for node in cluster.controllers.values()]
    ports += [node.ports.broker for node in cluster.brokers]
    while True:
        messages = await asyncio.to_thread(lambda: list(committed_messages(expected_of)))
        leaders, standing = check_epochs(messages), check_rules(messages, ledger)
        found = []
        for port in ports:
            async with await AclClient.open(port) as client:
                found.append((await client.describe()).acls)
        if all(each == standing for each in found):
            return len(messages), leaders
        assert time.monotonic() < deadline, "nodes show other rules than the log has"
        await asyncio.sleep(1)


def _reread(cluster: TopicCluster) -> int:
    """Return how often a reader read again; no node may have ended, or stopped to read."""
    outputs = [node.output for node in cluster.nodes]
    for node, output in zip(cluster.nodes, outputs, strict=True):
        assert node.running, f"{node.home} has ended: {output[-2000:]}"
        for line in output.splitlines():
            assert not any(each in line for each in _ENDED), f"{node.home}: {line}"
    return sum(output.count(_READ_AGAIN) for output in outputs)


def run(root: Path, plan: Plan) -> str:
    """A whole campaign; returns what to report, or raises AssertionError for what must not be."""
    begun, load = time.monotonic(), os.getloadavg()
    with ExitStack() as stack:
        kafka = stack.enter_context(CutKafka(root / "kafka", CONTROLLERS))
        zygote = stack.enter_context(NodeZygote())
        servers = {node_id: kafka.servers_of(node_id) for node_id in CONTROLLERS}
        cluster = stack.enter_context(
            TopicCluster(root, zygote, servers, brokers=BROKERS, replication_factor=3)
        ).start()
        tool = ToolLoop(AclsTool.of(ToolPipe(), root), cluster, plan.broker_kills)
        faults = asyncio.run(_campaign(cluster, kafka, tool, plan))
        settings = load_config(cluster.controllers[1].home / "server.properties").topic
        assert isinstance(settings, TopicSettings)
        count_, leaders = asyncio.run(_same_everywhere(cluster, settings, faults.ledger))
        reread = _reread(cluster)
        seconds = time.monotonic() - begun
        text = report(faults, tool, count_, leaders, seconds=seconds, load=(load, os.getloadavg()), plan=plan)
        return f"{text}no node ended by itself, no reader for good; records out of order, read again: {reread} times\n"


def report(
    faults: Faults,
    tool: ToolLoop,
    messages: int,
    leaders: dict[int, int],
    *,
    seconds: float,
    load: tuple[tuple[float, ...], tuple[float, ...]],
    plan: Plan,
) -> str:
    """What is kept of a campaign that went well."""
    ledger = faults.ledger
    takeovers = [each for kind in KINDS for each in faults.takeovers[kind]]
    lines = [
        "Failover of three controllers of aclog on a Kafka 4.3.1 of three brokers, under load",
        (
            f"seed {plan.seed}; {plan.workers} writers and kafka-acls; {seconds:.0f} s; session timeout 6 s; "
            f"{os.cpu_count()} cores, shared with others"
        ),
        f"load average: {load[0][0]:.1f} at the beginning, {load[1][0]:.1f} at the end",
        "",
        *(f"{what}: {times}" for what, times in sorted(faults.done.items())),
        "",
        "takeover: seconds from the fault until another controller is active",
        *(_figures(f"  {kind}", faults.takeovers[kind]) for kind in KINDS),
        _figures("  all of these", takeovers),
        _figures("  a broker of Kafka's killed at the same moment", faults.with_kafka),
        _figures("seconds from wake or mend until the replaced one says so", faults.noticed),
        f"longest time between two acknowledgements: {ledger.longest_silence:.1f} s",
        "",
        f"acknowledged: {ledger.acknowledged} requests",
        f"  of them: {len(ledger.created)} rules created, {len(ledger.deleted)} deleted",
        *(f"  {what}: {times}" for what, times in sorted(ledger.answers.items())),
        f"asked of a controller that slept: {len(ledger.ghosts)} rules, none acknowledged, none in the log",
        _figures(f"kafka-acls: {len(tool.seconds)} runs, {len(tool.failures)} failed; seconds", tool.seconds),
        *(f"  {each.partition(chr(10))[0]}" for each in tool.failures),
        "",
        f"the topic: {messages} messages in {len(leaders)} epochs; each has one leader, and none goes back",
        "every acknowledged change stands in it once; all nodes show what it adds up to",
    ]
    return "\n".join(lines) + "\n"


def _figures(what: str, seconds: list[float]) -> str:
    if not seconds:
        return f"{what}: none"
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{what}: p50 {statistics.median(ordered):.2f}, p99 {p99:.2f}, max {ordered[-1]:.2f} ({len(ordered)})"


def main() -> None:
    """Run it, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--broker-kills", action="store_true")
    parser.add_argument("--out", type=Path)
    flags = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="aclog-failover-"))
    print(f"nodes and their output are in {root}", flush=True)
    plan = Plan(rounds=flags.rounds, seed=flags.seed, workers=flags.workers, broker_kills=flags.broker_kills)
    text = run(root, plan)
    print(text)
    if flags.out:
        flags.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
