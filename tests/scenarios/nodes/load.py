"""Many connections and many admin requests at once, beside clients that do not read, and some that say nothing.

`python -m tests.scenarios.nodes.load --connections 200 --requests 20000 --out FILE`. Three out of four connections are
to the broker, which passes changes on; the others to the controller. Each sends its next request when it has its
answer, so that a latency holds the wait for all the others.
"""

import argparse
import asyncio
import socket
import struct
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import count
from pathlib import Path

from attrs import define, field, frozen

from aclog.protocol.api_keys import DESCRIBE_ACLS, DESCRIBE_CLUSTER, METADATA
from aclog.protocol.messages import build
from tests.support.builders.acls import acl
from tests.support.nodes.acl_client import AclClient, by_principal, exactly
from tests.support.nodes.cluster import Cluster, ClusterNode
from tests.support.nodes.server_properties import password
from tests.support.nodes.wire_client import WireClient, encode_request, request_header
from tests.support.processes.node_zygote import NodeZygote
from tests.support.processes.waiting import wait_until

STANDING = 5000
"""Rules that are there all the time: an answer with all of them has 127 kB."""
MEGABYTE = 1 << 20


@frozen(kw_only=True)
class Load:
    """How much."""

    connections: int
    requests: int
    slow: int
    """Connections that ask for much and read nothing: the more there are, the more answers are made for nobody."""
    half: int
    """Connections that have said half a request; and as many that have said nothing, not even who they are."""


@define(eq=False)
class Figures:
    """What was measured: seconds for each request, by its kind, and the nodes' memory in MB."""

    seconds: dict[str, list[float]] = field(factory=lambda: defaultdict(list))
    elapsed: float = 0.0
    memory: dict[str, list[float]] = field(factory=lambda: defaultdict(list))
    unsent: dict[str, float] = field(factory=lambda: defaultdict(float))
    """Bytes of answers that waited in a node for somebody to take them, at most."""

    @property
    def all_seconds(self) -> list[float]:
        """Of all kinds."""
        return [each for kind in self.seconds.values() for each in kind]

    def text(self, title: str) -> str:
        """A few lines."""
        every = self.all_seconds
        lines = [f"{title}: {len(every)} requests in {self.elapsed:.1f} s, {len(every) / self.elapsed:.0f} a second"]
        lines.extend(
            f"  {kind:16} {len(found):6}  p50 {_ms(found, 0.5)}  p99 {_ms(found, 0.99)}  longest {_ms(found, 1)}"
            for kind, found in [("all", every), *sorted(self.seconds.items())]
        )
        for node, memory in self.memory.items():
            lines.append(f"  memory of the {node}: {', '.join(f'{each:.0f}' for each in memory)} MB")
            lines.append(f"  answers that waited there: {self.unsent[node] / MEGABYTE:.1f} MB")
        return "\n".join(lines)


def _ms(found: list[float], share: float) -> str:
    return f"{sorted(found)[min(int(len(found) * share), len(found) - 1)] * 1000:7.1f} ms"


async def _timed(kind: str, figures: Figures, asking: "asyncio.Future[object]") -> object:
    begun = time.perf_counter()
    answer = await asking
    figures.seconds[kind].append(time.perf_counter() - begun)
    return answer


async def _client(client: AclClient, number: int, left: Iterator[int], requests: int, *, broker: bool, to: Figures):
    """One connection: reads and changes, until there have been enough requests of all."""
    mine = f"User:client-{number}"
    cluster = build(DESCRIBE_CLUSTER, 1, "request", endpoint_type=1 if broker else 2)
    metadata = build(METADATA, 12, "request", topics=())
    for turn in count():
        if next(left) >= requests:
            return
        match turn % 5:
            case 0:
                rule = acl(f"load-{number}-{turn}", principal=mine)
                assert await _timed("CreateAcls", to, client.create([rule])) == [(0, "")]
            case 1:
                # What a broker shows may be a moment behind what it has had done.
                found = await _timed("DescribeAcls", to, client.describe_as_sent(by_principal(mine)))
                assert not found.error_code
            case 2:
                answer = await _timed("DescribeCluster", to, client.connection.ask(cluster))
                assert not answer.error_code
            case 3:
                deleted = await _timed("DeleteAcls", to, client.delete([exactly(rule)]))
                assert deleted == [((0, None), 1)]
            case 4 if broker:
                await _timed("Metadata", to, client.connection.ask(metadata))
            case 4:
                await _timed("DescribeAcls", to, client.describe_as_sent(by_principal("User:nobody")))


async def _load(cluster: Cluster, load: Load, nodes: dict[str, ClusterNode]) -> Figures:
    figures, left = Figures(), count()
    controller, broker = cluster.controller.ports.controller, cluster.brokers[0].ports.broker

    def weigh() -> None:
        for name, node in nodes.items():
            figures.memory[name].append(node.memory / MEGABYTE)
            figures.unsent[name] = max(figures.unsent[name], node.metric("aclog_unsent_bytes"))

    async def watch() -> None:
        for part in range(1, 5):
            while len(figures.all_seconds) < load.requests * part // 5:
                await asyncio.sleep(0.1)
            await asyncio.to_thread(weigh)

    weigh()
    async with AsyncExitStack() as stack:
        clients = []
        for number in range(load.connections):
            client = await AclClient.open(broker if number % 4 else controller)
            clients.append(await stack.enter_async_context(client))
        watching = asyncio.create_task(watch())
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, client in enumerate(clients):
                talk = _client(client, number, left, load.requests, broker=bool(number % 4), to=figures)
                group.create_task(talk)
        figures.elapsed = time.perf_counter() - begun
        await watching
        weigh()
    return figures


class SlowReader(WireClient):
    """Takes in little."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)


@contextmanager
def _nuisances(cluster: Cluster, load: Load) -> Iterator[None]:
    """Clients that a node must not wait for, on both nodes."""
    everything = dict.fromkeys(
        ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), 1
    ) | dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    body = request_header(DESCRIBE_ACLS, 3, 9) + encode_request(DESCRIBE_ACLS, 3, **everything)
    asked = struct.pack(">i", len(body)) + body
    ports = [cluster.controller.ports.controller, cluster.brokers[0].ports.broker]
    with ExitStack() as stack:
        for number in range(load.slow):
            port = ports[number % 2]
            reader = stack.enter_context(SlowReader(port).plain("admin", password("admin")))
            reader.write(asked * 50)  # 6 MB of answers: more than sockets hold
        for number in range(load.half):
            port = ports[number % 2]
            half = stack.enter_context(WireClient(port).plain("admin", password("admin")))
            half.write(asked[: len(asked) // 2])
            mute = stack.enter_context(WireClient(port))
            mute.write(b"\0" if number % 3 else b"")
        if load.slow > 1:
            for node in (cluster.controller, cluster.brokers[0]):
                # Sockets hold some of the answers, and while others ask, too, filling them takes a while.
                wait_until(lambda node=node: node.metric("aclog_unsent_bytes") > 0, what="a client to be slow")
        yield


async def _prepare(cluster: Cluster) -> None:
    rules = [acl(f"standing-{number % 500}", principal=f"User:standing-{number}") for number in range(STANDING)]
    async with await AclClient.open(cluster.controller.ports.controller) as client:
        for start in range(0, STANDING, 1000):
            assert not any(code for code, _ in await client.create(rules[start : start + 1000]))
    cluster.brokers[0].wait_applied(cluster.controller.applied)


def run(root: Path, zygote: NodeZygote, load: Load) -> tuple[Figures, Figures]:
    """The figures of a run with nobody else there, and of one beside slow, half-open and mute connections."""
    with Cluster(root, zygote) as cluster:
        cluster.add_broker()
        cluster.start()
        asyncio.run(_prepare(cluster))
        nodes = {"controller": cluster.controller, "broker": cluster.brokers[0]}
        alone = asyncio.run(_load(cluster, load, nodes))
        with _nuisances(cluster, load):
            beside = asyncio.run(_load(cluster, load, nodes))
            assert all(beside.unsent.values()), "nobody was slow"
        for node in cluster.nodes:
            assert node.is_ready(), node.output
    return alone, beside


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.nodes.load", description=__doc__)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--slow", type=int, default=10)
    parser.add_argument("--half", type=int, default=50)
    parser.add_argument("--out", type=Path, help="where the report is kept, beside being printed")
    arguments = parser.parse_args()
    load = Load(
        connections=arguments.connections, requests=arguments.requests, slow=arguments.slow, half=arguments.half
    )
    with NodeZygote() as zygote, tempfile.TemporaryDirectory() as directory:
        alone, beside = run(Path(directory), zygote, load)
    nuisances = f"beside {load.slow} slow readers and {2 * load.half} that are half-open or mute"
    report = "\n".join((alone.text(f"{load.connections} connections"), beside.text(f"the same {nuisances}")))
    print(report)
    if arguments.out is not None:
        arguments.out.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
