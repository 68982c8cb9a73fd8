"""Nodes vs. a real Kafka 4.3.1 under 1,000 clients: requests per CPU second, and tiny ones beside large ones.

Both run at the same time, idle while the other one is measured, with the same properties and data on the disk of the
checkout. Clients are processes of their own (benchmarks.request_load); CPU time is that of the server's process.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from aclog.authorizer.acl import AclBindingFilter
from aclog.client.connection import Connection
from aclog.client.errors import UnreachableError
from aclog.client.requests import create_acls, describe_acls
from benchmarks.measurement import cpu_seconds
from benchmarks.report import Row
from benchmarks.serve import _acl, _connect, _without_broker
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import with_properties
from tests.support.nodes.aclog_node import AclogProcess
from tests.support.nodes.server_properties import Ports, server_properties

CLIENTS = 1000
TINY_CLIENTS = 20
RULES = 5_000
"""The ACLs of a large CreateAcls request."""

_PATIENCE_S = 15.0
_PROCESSES = 2


@frozen(kw_only=True)
class Measured:
    """Requests answered, CPU seconds of the servers, seconds, and the latencies of the slower process in ms."""

    count: int
    cpu: float
    seconds: float
    p50: float
    p99: float
    longest: float

    def __add__(self, other: "Measured") -> "Measured":
        return Measured(
            count=self.count + other.count,
            cpu=self.cpu + other.cpu,
            seconds=self.seconds + other.seconds,
            p50=max(self.p50, other.p50),
            p99=max(self.p99, other.p99),
            longest=max(self.longest, other.longest),
        )


@frozen(kw_only=True)
class Crowd:
    """Client processes that are connected and wait for the start."""

    processes: Sequence["subprocess.Popen[str]"]

    @classmethod
    def of(cls, port: int, clients: int, seconds: float, prefix: str, *flags: str) -> "Crowd":
        """Start and connect them."""
        share = clients // _PROCESSES
        base = [sys.executable, "-m", "benchmarks.request_load", "--port", str(port), "--clients", str(share), *flags]
        processes = [
            subprocess.Popen(
                [*base, "--seconds", str(seconds), "--prefix", f"{prefix}{number}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(_PROCESSES)
        ]
        crowd = cls(processes=processes)
        for each in processes:
            if _line(each) != "ready":
                raise RuntimeError("the clients did not connect")
        return crowd

    def run(self, pids: Sequence[int], meanwhile: Callable[[], object] = lambda: None) -> Measured:
        """Let them run; `meanwhile` is called while they do."""
        before, begun = sum(map(cpu_seconds, pids)), time.monotonic()
        for each in self.processes:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        meanwhile()
        found: list[dict[str, Any]] = [json.loads(_line(each)) for each in self.processes]
        seconds, cpu = time.monotonic() - begun, sum(map(cpu_seconds, pids)) - before
        for each in self.processes:
            each.wait()
        worst = {name: max(each[name] or 0.0 for each in found) for name in ("p50", "p99", "longest")}
        return Measured(count=sum(each["count"] for each in found), cpu=cpu, seconds=seconds, **worst)


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _rows(what: str, ours: Measured, theirs: Measured) -> Iterator[Row]:
    per_cpu, per_second = ours.count / ours.cpu, ours.count / ours.seconds
    other_cpu, other_second = theirs.count / theirs.cpu, theirs.count / theirs.seconds
    more: dict[str, Any] = {"unit": "/s", "more_is_better": True}
    yield Row(what=f"{what}: per CPU second", ours=per_cpu, theirs=other_cpu, target=2.0, **more)
    yield Row(what=f"{what}: per second", ours=per_second, theirs=other_second, target=0.7, **more)
    yield Row(what=f"{what}: p99", ours=ours.p99, theirs=theirs.p99, unit="ms")


def _at_controllers(ours: AclogProcess, theirs: RealNode, seconds: float, rounds: int) -> Iterator[Row]:
    """Measure both in turn, after a warm-up of each; the rounds of each are added up."""
    found: dict[str, Measured] = {}
    for turn in range(rounds + 1):
        for node in (ours, theirs):
            crowd = Crowd.of(node.ports.controller, CLIENTS, seconds, f"c{turn}")
            measured = crowd.run([node.pid])
            if turn:
                found[node.kind] = found[node.kind] + measured if node.kind in found else measured
    yield from _rows(f"CreateAcls at a controller, {CLIENTS:,} clients", found[ours.kind], found[theirs.kind])


def _through_broker(port: int, pids: Sequence[int], seconds: float, where: str) -> Iterator[Row]:
    Crowd.of(port, CLIENTS, 2, "w").run(pids)
    found = Crowd.of(port, CLIENTS, seconds, "b").run(pids)
    what = f"CreateAcls through {where}, {CLIENTS:,} clients"
    per_second = found.count / found.seconds
    yield Row(what=f"{what}: per second", ours=per_second, unit="/s", target=2000, more_is_better=True)
    yield Row(what=f"{what}: per CPU second of all nodes", ours=found.count / found.cpu, unit="/s")
    yield Row(what=f"{what}: p99", ours=found.p99, unit="ms")


async def _create_many(connection: Connection, number: int) -> None:
    await create_acls(connection, [_acl(f"large-{number}-{each}") for each in range(RULES)])


async def _describe_all(connection: Connection, _: int) -> None:
    if not await describe_acls(connection, AclBindingFilter(), timeout=_PATIENCE_S):
        raise AssertionError("nothing is described")


def _repeated(
    large: Callable[[Connection, int], Awaitable[None]], port: int, seconds: float
) -> Callable[[], list[float]]:
    """Return a function that sends large requests one after the other, and returns the seconds of each."""

    async def run() -> list[float]:
        connection, took, end = await _connect(port), [], time.monotonic() + seconds
        # Kafka was seen not to describe 250,000 ACLs within a minute. Tiny requests are measured all the same.
        with suppress(UnreachableError):
            while (begun := time.monotonic()) < end:
                await large(connection, len(took))
                took.append(time.monotonic() - begun)
        await connection.close()
        return took

    return lambda: asyncio.run(run())


def _beside(
    node: AclogProcess | RealNode, large: Callable[[Connection, int], Awaitable[None]], seconds: float
) -> Measured:
    crowd = Crowd.of(node.ports.controller, TINY_CLIENTS, seconds, "t", "--tiny")
    return crowd.run([node.pid], _repeated(large, node.ports.controller, seconds))


def _tiny_rows(ours: AclogProcess, theirs: RealNode, seconds: float) -> Iterator[Row]:
    for what, large in (
        (f"CreateAcls of {RULES:,} ACLs", _create_many),
        ("DescribeAcls of all ACLs", _describe_all),
    ):
        mine, other = _beside(ours, large, seconds), _beside(theirs, large, seconds)
        begin = f"ApiVersions of {TINY_CLIENTS} clients beside {what}"
        yield Row(what=f"{begin}: p99", ours=mine.p99, unit="ms", target=50.0)
        yield Row(what=f"{begin}: p99, vs. Kafka", ours=mine.p99, theirs=other.p99, unit="ms")
        yield Row(what=f"{begin}: longest", ours=mine.longest, theirs=other.longest, unit="ms")


def _two_nodes(stack: ExitStack, scratch: Path) -> tuple[AclogProcess, AclogProcess]:
    """Start a controller and a broker in processes of their own."""
    ports, others = Ports.free(), Ports.free()
    whole = server_properties(ports)
    at = f"CONTROLLER://localhost:{ports.controller}"
    text = _without_broker(with_properties(whole, process_roles="controller", listeners=at))
    controller = AclogProcess(scratch / "controller", ports, text).format()
    stack.enter_context(controller)
    at = f"SASL_PLAINTEXT://localhost:{ports.broker}"
    http = f"127.0.0.1:{others.http}"
    text = with_properties(
        whole, process_roles="broker", node_id="2", listeners=at, advertised_listeners=at, aclog_http_listener=http
    )
    there = Ports(broker=ports.broker, controller=ports.controller, http=others.http)
    broker = AclogProcess(scratch / "broker", there, text)
    stack.enter_context(broker)
    return controller, broker


def run(scratch: Path, seconds: float, rounds: int) -> Iterator[Row]:
    """Yield the rows."""
    directory = Path(tempfile.mkdtemp(dir=scratch))
    try:
        with ExitStack() as stack:
            ours = AclogProcess(directory / "aclog", Ports.free()).format()
            theirs = RealNode.in_production(directory / "kafka", Ports.free()).format()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            yield from _at_controllers(ours, theirs, seconds, rounds)
            yield from _tiny_rows(ours, theirs, seconds)
            yield from _through_broker(ours.ports.broker, [ours.pid], seconds, "a broker in the controller's process")
        with ExitStack() as stack:
            controller, broker = _two_nodes(stack, directory)
            pids = [controller.pid, broker.pid]
            yield from _through_broker(broker.ports.broker, pids, seconds, "a broker in a process of its own")
    finally:
        shutil.rmtree(directory)
