"""Rules are changed on a real Kafka of three nodes, whose leaders die and come back; an observer and a mirror follow.

`python -m tests.scenarios.quorum.observer --changes 10000 --points 200 --faults 20 --out FILE`. The changes are made by
Kafka's own Admin client. Whenever it pauses, the observer's image must be what DescribeAcls tells, and what the client
was told; in the end, what was read and what was mirrored must be the bytes of the leader's segments.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from attrs import define, field, frozen

from aclog.metalog.batches import iter_batches
from aclog.snapshots.publisher import recover
from tests.support.kafka.described import acl_rows
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.quorum_changes import RuleChanges, make
from tests.support.kafka.quorum_faults import KINDS, LeaderFaults
from tests.support.kafka.quorum_observer import QuorumObserver, assert_same, assert_same_bytes, end_of, start_of
from tests.support.kafka.server import ADMIN, AdminClient
from tests.support.processes.waiting import SECONDS

_REQUEST_MS = 3_000
"""A broker that is paused is left for another one."""
_SHORT_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "30000",
    "internal.metadata.log.segment.bytes": "20000",
    "internal.metadata.max.batch.size.in.bytes": "8192",
    "metadata.max.retention.bytes": "40000",
    "file.delete.delay.ms": "1000",
}


@frozen(kw_only=True)
class Plan:
    """How much: changes of single rules, pauses to compare at, and faults, spread evenly."""

    changes: int
    points: int
    faults: int
    seed: int = 1
    kinds: tuple[str, ...] = KINDS
    short_log: bool = False
    """Whether Kafka lets go of its log as it goes on: then only what is left of it can be compared."""


@define(eq=False)
class Figures:
    """What was measured. Latencies are from a change's acknowledgement until an image shows it, in seconds.

    One is negative where the observer was told before the client was.
    """

    quiet: list[float] = field(factory=list)
    """While all nodes were there."""
    troubled: list[float] = field(factory=list)
    """While a fault lasted."""
    requests: int = 0
    asked_again: int = 0
    compared: int = 0
    loads: list[float] = field(factory=list)
    """The machine's load average over a minute, at each comparison."""


def run(home: Path, plan: Plan) -> str:
    """The report; an AssertionError if anything is not as it must be."""
    begun, changes, figures = time.monotonic(), RuleChanges(Random(plan.seed)), Figures()
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaQuorum(home / "kafka", changes=_SHORT_LOG if plan.short_log else {}))
        admin = stack.enter_context(AdminClient(kafka.bootstrap, request_ms=_REQUEST_MS))
        observer = stack.enter_context(QuorumObserver(kafka.controllers))
        mirror = stack.enter_context(mirrored(kafka, home))
        step = max(plan.changes // (plan.faults + 1), 1)
        thresholds = [step * number for number in range(1, plan.faults + 1)]
        faults = stack.enter_context(LeaderFaults(kafka, thresholds, plan.kinds, Random(plan.seed + 1)))
        change_rules(plan, changes, admin, observer, faults, figures)
        faults.finish()
        assert_same(observer, admin, changes)
        compared = compare_bytes(kafka, observer, mirror)
        assert plan.short_log or compared.startswith("bytes: offsets 0 to")
        assert acl_rows(recover(mirror).image) == changes.rows
    return report(plan, figures, faults, compared, time.monotonic() - begun)


def change_rules(
    plan: Plan,
    changes: RuleChanges,
    admin: AdminClient,
    observer: QuorumObserver,
    faults: LeaderFaults,
    figures: Figures,
) -> None:
    """All changes, one request after another; at each point all is quiet, and all is the same."""
    for point in range(1, plan.points + 1):
        while changes.made < plan.changes * point // plan.points:
            change_one(changes, admin, observer, faults, figures)
        assert_same(observer, admin, changes)
        figures.compared += 1
        figures.loads.append(os.getloadavg()[0])
    faults.reach(plan.changes)


def change_one(
    changes: RuleChanges, admin: AdminClient, observer: QuorumObserver, faults: LeaderFaults, figures: Figures
) -> None:
    """One request; waits until its last record is shown."""
    change = changes.next()
    watched, troubled = observer.watch(change.last, present=change.creates), faults.at_work
    asked = make(admin, change)
    acknowledged = time.perf_counter()
    assert watched.seen.wait(SECONDS), f"acknowledged, and not seen: {change}; {observer.log.error}"
    figures.requests += 1
    figures.asked_again += asked - 1
    if asked == 1:  # the acknowledgement of a second request says nothing about when the first one was committed
        found = figures.troubled if troubled or faults.at_work else figures.quiet
        found.append(watched.seen_at - acknowledged)
    faults.reach(changes.made)


@contextmanager
def mirrored(kafka: KafkaQuorum, home: Path) -> Iterator[Path]:
    """`aclog mirror` in a process of its own; the directory."""
    config, directory = home / "client.properties", home / "mirror"
    lines = [f"{key}={value}" for key, value in ADMIN.items() if not key.endswith("timeout.ms")]
    config.write_text("\n".join(lines).replace("{user}", "admin") + "\n", encoding="utf-8")
    servers = ",".join(map(str, kafka.controllers))
    command = [sys.executable, "-m", "aclog", "mirror", "--bootstrap-controller", servers]
    with (home / "mirror.log").open("wb") as output:
        process = subprocess.Popen(
            [*command, "--command-config", str(config), "--to", str(directory)], cwd=ROOT, stderr=output
        )
    try:
        yield directory
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)


def compare_bytes(kafka: KafkaQuorum, observer: QuorumObserver, mirror: Path) -> str:
    """What was read, and what was mirrored, beside the segments of each node; what was compared."""
    read = observer.read
    starts = [assert_same_bytes(read, node.log_directory) for node in kafka.nodes]
    assert_same_bytes(read, mirror)
    count, span = sum(1 for _ in iter_batches(read)), f"offsets {start_of(read)} to {end_of(read)}"
    return (
        f"bytes: {span}, {count} batches, {len(read)} bytes: what was read and what was mirrored; the same in the "
        f"segments of each node, which begin at {', '.join(map(str, starts))}"
    )


def report(plan: Plan, figures: Figures, faults: LeaderFaults, compared: str, seconds: float) -> str:
    """A few lines."""
    loads, mean = figures.loads, sum(figures.loads) / len(figures.loads)
    lines = [
        f"seed {plan.seed}, {seconds:.0f} s: {plan.changes} changes of rules by Kafka's own Admin client",
        f"requests: {figures.requests}, of which {figures.asked_again} were asked again after an error",
        "faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(faults.done.items())),
        f"the observer's image was what DescribeAcls told at {figures.compared} quiesced points and in the end",
        compared,
        "from acknowledgement to visible, ms (negative: the observer was told before the client):",
        _line("  while all nodes were there", figures.quiet),
        _line("  while a leader was down or paused, until all were there again", figures.troubled),
        _line("  all", figures.quiet + figures.troubled),
        f"load average of the machine, {os.cpu_count()} cores: {min(loads):.1f} to {max(loads):.1f}, mean {mean:.1f}",
    ]
    return "\n".join(lines)


def _line(what: str, found: list[float]) -> str:
    if not found:
        return f"{what}: none"
    ordered = sorted(found)
    shares = [f"p{share * 100:g} {1000 * ordered[int(share * (len(ordered) - 1))]:.1f}" for share in (0.5, 0.9, 0.99)]
    return f"{what}: {', '.join(shares)}, longest {1000 * ordered[-1]:.1f}, of {len(found)}"


def main() -> None:
    """Run it, print the report, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short-log", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    plan = Plan(
        changes=given.changes,
        points=given.points,
        faults=given.faults,
        seed=given.seed,
        short_log=given.short_log,
    )
    with tempfile.TemporaryDirectory() as home:
        text = run(Path(home), plan)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
