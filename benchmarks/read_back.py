"""What it costs that a controller on a topic reads back what it has committed before it acknowledges it.

Two controllers on one Kafka 4.3.1, each with a topic of its own: one acknowledges when Kafka has committed
(benchmarks.unread_node), the other one when its own reader has passed the batch as well. The same client sends
CreateAcls of one ACL to each in turn; the median of the rounds counts.
"""

import asyncio
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from attrs import frozen

from benchmarks.report import Row
from benchmarks.serve import CLIENTS, Rate, creations
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.real_node import RealNode
from tests.support.nodes.server_properties import Ports
from tests.support.nodes.topic_cluster import CONTROLLERS, TopicCluster

_FIRST = CONTROLLERS[0]


@frozen
class _UnreadNodes:
    """Starts nodes that do not read back, with the interface of a NodeZygote."""

    def spawn(self, home: Path, arguments: Sequence[str], *, gate: str) -> "subprocess.Popen[bytes]":
        """`aclog` with these arguments, running in `home`. No `gate` holds back its replay."""
        assert not gate
        with (home / "aclog.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "benchmarks.unread_node", *arguments],
                cwd=home,
                env={"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )


def _started(cluster: TopicCluster) -> int:
    """Start one controller; its port."""
    node = cluster.controllers[_FIRST]
    node.spawn()
    cluster.wait_active([_FIRST])
    return node.ports.controller


def _medians(rates: list[Rate]) -> tuple[float, float, float]:
    """Return changes per second, p50 and p99 in ms."""
    columns = zip(*((rate.per_second, rate.p50_ms, rate.p99_ms) for rate in rates), strict=True)
    rate, p50, p99 = (statistics.median(column) for column in columns)
    return rate, p50, p99


def run(scratch: Path, seconds: float, rounds: int) -> Iterator[Row]:
    """Yield rows of rate and latency by number of clients: reading back, and not."""
    directory, kafka = Path(tempfile.mkdtemp(dir=scratch)), Ports.free()
    try:
        with ExitStack() as stack:
            stack.enter_context(RealNode.in_production(directory / "kafka", kafka).format())
            servers = dict.fromkeys(CONTROLLERS, f"localhost:{kafka.broker}")
            ports = []
            for name, nodes in (("with", None), ("without", _UnreadNodes())):
                changes = {"metadata.log.topic": f"log-{name}"}
                cluster = TopicCluster(directory / name, nodes, servers, brokers=0, changes=changes)  # type: ignore[arg-type]
                ports.append(_started(stack.enter_context(cluster)))
            for port in ports:
                asyncio.run(creations(port, 4, seconds, "warm"))
            for clients in CLIENTS:
                measured: tuple[list[Rate], list[Rate]] = ([], [])
                for number in range(rounds):
                    for port, rates in zip(ports, measured, strict=True):
                        rates.append(asyncio.run(creations(port, clients, seconds, f"t{clients}-{number}")))
                mine, base = _medians(measured[0]), _medians(measured[1])
                what = f"CreateAcls on a topic, {clients} clients"
                yield Row(what=f"{what}: acknowledged", ours=mine[0], theirs=base[0], unit="/s", more_is_better=True)
                yield Row(what=f"{what}: p50", ours=mine[1], theirs=base[1], unit="ms")
                yield Row(what=f"{what}: p99", ours=mine[2], theirs=base[2], unit="ms")
    finally:
        shutil.rmtree(directory)
