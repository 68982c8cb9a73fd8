"""`aclog sync` beside brokers that restart, also while their controller is away, and answer before they have replayed.

`python -m tests.scenarios.nodes.sync_restarts --restarts 20 --writers 8 --out FILE`. Brokers have their clients'
listener among `early.start.listeners`. Writers create rules and delete some of them meanwhile; what sync records as
removed is what somebody asked to delete, and what is recorded in the end is what the cluster holds.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from attrs import define, field

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.filelog.files import list_segments
from aclog.metalog.filelog.verify import verify
from aclog.snapshots.history import ChangeKind, history
from aclog.snapshots.publisher import recover
from tests.scenarios.nodes.faults import Worker, _beside, _counted
from tests.support.builders.acls import acl
from tests.support.models.ledger import Ledger
from tests.support.nodes.acl_client import AclClient
from tests.support.nodes.cluster import HOST, Cluster, ClusterNode
from tests.support.nodes.server_properties import PLAIN, password
from tests.support.processes.node_zygote import NodeZygote
from tests.support.processes.waiting import SECONDS, wait_until

LASTING = [acl(f"lasting-{number}") for number in range(2000)]
"""So many that what writers delete while a new connection settles is no suspicious share, however fast they are."""
WRITERS = 8


@define(eq=False)
class Restarts:
    """What happens to a cluster whose brokers are polled."""

    cluster: Cluster
    directory: Path
    chance: Random
    done: Counter[str] = field(factory=Counter)

    async def run(self, count: int) -> None:
        """So many restarts of brokers, half of them without a controller."""
        while self.done["restarts"] < count:
            await self._recorded()
            await asyncio.sleep(self.chance.uniform(0.0, 0.5))
            alone = self.done["restarts"] % 2 == 1
            if alone:
                await asyncio.to_thread(self.cluster.controller.kill)
                self.done["controller killed"] += 1
            both = alone and self.chance.random() < 0.5
            nodes = self.cluster.brokers if both else [self.chance.choice(self.cluster.brokers)]
            await asyncio.gather(*map(self._restart, nodes))
            if alone:
                await asyncio.sleep(self.chance.uniform(1.0, 3.0))
                self.done["seconds without replay"] += 2
                await asyncio.to_thread(self.cluster.controller.spawn)
            for node in self.cluster.nodes:
                await asyncio.to_thread(node.wait_until_ready)

    async def _restart(self, node: ClusterNode) -> None:
        how = self.chance.choice(("kill -9", "SIGTERM"))
        await asyncio.to_thread(node.kill if how == "kill -9" else node.stop)
        self.done[how] += 1
        self.done["restarts"] += 1
        await asyncio.to_thread(node.spawn)

    async def _recorded(self) -> None:
        """Wait until a change has been recorded since the last restart."""
        before, deadline = end_of(self.directory), time.monotonic() + SECONDS
        while end_of(self.directory) == before:
            said = self.directory.with_suffix(".err")
            assert time.monotonic() < deadline, f"nothing is recorded any more: {said.read_text('utf-8')[-4000:]}"
            await asyncio.sleep(0.02)


def end_of(directory: Path) -> int:
    """How much is recorded, in bytes."""
    return sum(segment.path.stat().st_size for segment in list_segments(directory)) if directory.is_dir() else 0


@contextmanager
def syncing(cluster: Cluster, directory: Path) -> Iterator[Path]:
    """`aclog sync` as a process of its own; yields the file of its messages, and sees that it ends in good order."""
    config, messages = directory.with_suffix(".properties"), directory.with_suffix(".err")
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} required username="admin" password="{password("admin")}";\n',
        encoding="utf-8",
    )
    servers = ",".join(f"{HOST}:{broker.ports.broker}" for broker in cluster.brokers)
    flags = ["--bootstrap-server", servers, "--command-config", str(config), "--to", str(directory)]
    command = [sys.executable, "-m", "aclog", "sync", *flags, "--interval", "0.02", "--format", "jsonl"]
    with (
        directory.with_suffix(".out").open("w", encoding="utf-8") as out,
        messages.open("w", encoding="utf-8") as err,
        subprocess.Popen(command, stdout=out, stderr=err) as process,
    ):
        try:
            yield messages
        finally:
            process.terminate()
        assert process.wait(SECONDS) == 0, messages.read_text(encoding="utf-8")


async def _create_lasting(port: int, ledger: Ledger) -> None:
    async with await AclClient.open(port) as client:
        assert {code for code, _ in await client.create(LASTING)} == {0}
    ledger.created.update(LASTING)


async def _described(port: int) -> frozenset[StandardAcl]:
    async with await AclClient.open(port) as client:
        return (await client.describe()).acls


async def _campaign(cluster: Cluster, directory: Path, ledger: Ledger, plan: tuple[int, int, int]) -> Restarts:
    restarts, writers, seed = plan
    ports = [broker.ports.broker for broker in cluster.brokers]
    chance = Random(seed)
    workers = [Worker(n, ports[n % 2], ledger, Random(f"{seed} {n}")) for n in range(writers)]
    found = Restarts(cluster, directory, chance)
    await _beside([asyncio.create_task(worker.run()) for worker in workers], found.run(restarts))
    return found


@define(kw_only=True)
class Recorded:
    """What a log of `aclog sync` says, held against what writers asked for."""

    added: int = 0
    removed: int = 0
    false_removals: list[StandardAcl] = field(factory=list)
    """Recorded, and never asked for; or before somebody asked for it, so that the rule came back."""


def recorded(directory: Path, ledger: Ledger) -> Recorded:
    """Look through the history."""
    found, seen = Recorded(), Counter[StandardAcl]()
    for change in history(directory):
        rule = change.rule.acl
        if change.kind is ChangeKind.ADDED:
            found.added += 1
            seen[rule] += 1
            if seen[rule] > 1:  # nobody creates a rule twice: it had been there all the time
                found.false_removals.append(rule)
        else:
            found.removed += 1
            if rule not in ledger.deleted | ledger.maybe_deleted:
                found.false_removals.append(rule)
    return found


def run(root: Path, zygote: NodeZygote, *, restarts: int, writers: int, seed: int) -> str:
    """A whole campaign; returns what to report, or raises AssertionError for what must not be."""
    begun, ledger, directory = time.monotonic(), Ledger(), root / "history"
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(root, zygote))
        for _ in range(2):
            cluster.add_broker(early_start_listeners="CLIENT")
        cluster.start()
        ports = [broker.ports.broker for broker in cluster.brokers]
        asyncio.run(_create_lasting(ports[0], ledger))
        messages = stack.enter_context(syncing(cluster, directory))
        wait_until(lambda: end_of(directory) > 0, lambda: messages.read_text(encoding="utf-8"))
        done = asyncio.run(_campaign(cluster, directory, ledger, (restarts, writers, seed))).done
        wait_until(
            lambda: {rule.acl for rule in recover(directory).image.acls} == asyncio.run(_described(ports[0])),
            lambda: messages.read_text(encoding="utf-8")[-4000:],
        )
    said = messages.read_text(encoding="utf-8")
    found = recorded(directory, ledger)
    assert [str(each) for each in verify(directory)] == []
    assert not found.false_removals, f"{len(found.false_removals)}: {found.false_removals[:3]} {said[-3000:]}"
    standing = {rule.acl for rule in recover(directory).image.acls}
    assert ledger.created - ledger.deleted - ledger.maybe_deleted <= standing, "a creation is not recorded"
    polls = next(line for line in said.splitlines() if " polls, " in line).partition("note: ")[2]
    return "\n".join(
        (
            f"seed {seed}, {writers} writers, {time.monotonic() - begun:.0f} s; {len(standing)} rules in the end",
            f"brokers: {_counted(done)}",
            f"sync: {polls.partition(';')[0]}; {found.added} additions and {found.removed} removals recorded",
            f"polls: not replayed {said.count('AUTHORIZER_NOT_READY')}, refused {said.count(' is refused: ')}",
            f"answers to writers: {_counted(ledger.answers)}",
            "no removal recorded that was not one; the last recorded state is the cluster's",
        )
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.nodes.sync_restarts", description=__doc__)
    parser.add_argument("--restarts", type=int, default=20, help="of brokers")
    parser.add_argument("--writers", type=int, default=WRITERS, help="clients that change rules all the time")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--out", type=Path, help="where the report is kept, beside being printed")
    arguments = parser.parse_args()
    with NodeZygote() as zygote, tempfile.TemporaryDirectory() as directory:
        report = run(
            Path(directory), zygote, restarts=arguments.restarts, writers=arguments.writers, seed=arguments.seed
        )
    print(report)
    if arguments.out is not None:
        arguments.out.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
