"""Nodes vs. a real Kafka 4.3.1: changes per second, and how soon another broker authorizes by a change.

Both sides have the same properties, as a combined node or as a controller and a broker, data on the disk of the
checkout, and our client in a process of its own on the same machine.
"""

import asyncio
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import AclCreateResult
from aclog.client.connection import Connection, connect
from aclog.client.requests import create_acls, describe_acls
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.protocol.acls import create_acls_body
from aclog.protocol.api_keys import CREATE_ACLS
from aclog.protocol.messages import build, encode_request
from aclog.protocol.session import SecurityProtocol
from benchmarks.measurement import percentile
from benchmarks.report import Row
from tests.support.kafka.jvm import PRODUCTION
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import KafkaServer, with_properties
from tests.support.nodes.aclog_node import AclogProcess
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, server_properties

CLIENTS = (1, 16, 64)
VISIBLE_TARGET_MS = 20.0

Node: TypeAlias = AclogProcess | RealNode
NODES: Mapping[str, Callable[..., Node]] = {"aclog": AclogProcess, "kafka": RealNode.in_production}

_VERSION = 3
_CREATED = create_acls_body(_VERSION, [AclCreateResult()])

_ADMIN = ClientSecurity(
    security_protocol=SecurityProtocol.SASL_PLAINTEXT,
    sasl_mechanism="PLAIN",
    username="admin",
    password="admin-secret",
)


def _acl(name: str) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )


async def _connect(port: int) -> Connection:
    return await connect(HostPort(host="localhost", port=port), _ADMIN)


@frozen
class Rate:
    """Acknowledged changes: number, rate, median and 99th percentile of the latency."""

    count: int
    per_second: float
    p50_ms: float
    p99_ms: float


def _bodies(prefix: str) -> Iterator[bytes]:
    """Yield CreateAcls bodies of one new ACL each, patched from one, to keep the client's own cost low."""
    acl = _acl(f"{prefix}-########")
    fields = {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "resource_pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }
    creation = build(CREATE_ACLS, _VERSION, "request", "AclCreation", **fields)
    first = encode_request(build(CREATE_ACLS, _VERSION, "request", creations=(creation,)))
    for number in itertools.count():
        yield first.replace(b"########", b"%08d" % number)


async def creations(port: int, clients: int, seconds: float, prefix: str) -> Rate:
    """Measure acknowledged CreateAcls of one new ACL each, by clients that wait for each response."""
    connections = [await _connect(port) for _ in range(clients)]
    end, took = time.monotonic() + seconds, []

    async def client(number: int, connection: Connection) -> None:
        bodies = _bodies(f"{prefix}-{number}")
        while (start := time.monotonic()) < end:
            payload, position = await connection.send(CREATE_ACLS, _VERSION, next(bodies))
            if payload[position:] != _CREATED:
                raise AssertionError(f"not created: {payload[position:]!r}")
            took.append(1000 * (time.monotonic() - start))

    begun = time.monotonic()
    await asyncio.gather(*(client(n, each) for n, each in enumerate(connections)))
    elapsed = time.monotonic() - begun
    for each in connections:
        await each.close()
    return Rate(len(took), len(took) / elapsed, percentile(took, 0.5), percentile(took, 0.99))


async def _visible(controller: int, broker: int, rounds: int, prefix: str) -> list[float]:
    """Return the ms from the acknowledgement of an ACL until another broker lists it; polling adds 0.3 ms."""
    writer, reader = await _connect(controller), await _connect(broker)
    found = []
    for number in range(rounds):
        name = f"{prefix}-{number}"
        wanted = AclBindingFilter(
            resource_type=ResourceType.TOPIC, resource_name=name, pattern_type=PatternType.LITERAL
        )
        await create_acls(writer, [_acl(name)])
        acknowledged = time.monotonic()
        while not await describe_acls(reader, wanted):
            pass
        found.append(1000 * (time.monotonic() - acknowledged))
        await asyncio.sleep(0.02)
    await writer.close()
    await reader.close()
    return found


def _rates(kind: str, scratch: Path, seconds: float) -> dict[int, tuple[Rate, Rate]]:
    """Return the rates through the broker and directly at the controller, by number of clients."""
    ports = Ports.free()
    node = NODES[kind](scratch / kind, ports).format().start()
    try:
        asyncio.run(creations(ports.broker, 4, seconds, "warm"))
        return {
            clients: (
                asyncio.run(creations(ports.broker, clients, seconds, f"b{clients}")),
                asyncio.run(creations(ports.controller, clients, seconds, f"c{clients}")),
            )
            for clients in CLIENTS
        }
    finally:
        node.stop()


def _two_nodes(kind: str, scratch: Path, rounds: int) -> list[float]:
    """Return the delays of `_visible` for a controller and a broker in separate processes."""
    ports, others = Ports.free(), Ports.free()
    whole = server_properties(ports)
    at = f"CONTROLLER://localhost:{ports.controller}"
    controller = _without_broker(with_properties(whole, process_roles="controller", listeners=at))
    at = f"SASL_PLAINTEXT://localhost:{ports.broker}"
    http = f"127.0.0.1:{others.http}"
    broker = with_properties(
        whole, process_roles="broker", node_id="2", listeners=at, advertised_listeners=at, aclog_http_listener=http
    )
    with ExitStack() as stack:
        if kind == "kafka":
            _start_kafka(stack, scratch / "kafka-controller", controller, ports.controller, flags=["--standalone"])
            _start_kafka(stack, scratch / "kafka-broker", broker, ports.broker)
        else:
            first = AclogProcess(scratch / "controller", ports, controller).format()
            stack.enter_context(first)
            there = Ports(broker=ports.broker, controller=ports.controller, http=others.http)
            stack.enter_context(AclogProcess(scratch / "broker", there, broker))
        asyncio.run(_visible(ports.controller, ports.broker, rounds // 4, "warm"))
        return asyncio.run(_visible(ports.controller, ports.broker, rounds, "visible"))
    raise AssertionError("unreachable: the ExitStack suppresses nothing")


def _without_broker(text: str) -> str:
    """Remove the properties of broker listeners, which a controller must not have."""
    own = ("inter.broker.listener.name", "advertised.listeners", "sasl.mechanism.inter.broker.protocol")
    return "".join(line for line in text.splitlines(keepends=True) if line.partition("=")[0] not in own)


def _start_kafka(stack: ExitStack, home: Path, properties: str, port: int, flags: Sequence[str] = ()) -> None:
    home.mkdir(parents=True)
    server = KafkaServer(home, properties, port=port)
    server.options = PRODUCTION
    server.format(CLUSTER_ID, *flags)
    stack.enter_context(server)


def run(scratch: Path, seconds: float, rounds: int) -> Iterator[Row]:
    """Yield rows of acknowledged creations per second by number of clients, and of the delay at a broker."""
    directory = Path(tempfile.mkdtemp(dir=scratch))
    try:
        ours, theirs = _rates("aclog", directory, seconds), _rates("kafka", directory, seconds)
        for clients in CLIENTS:
            for number, where in enumerate(("through a broker", "at a controller")):
                mine, other = ours[clients][number], theirs[clients][number]
                what = f"CreateAcls acknowledged per second {where}, {clients} clients"
                yield Row(
                    what=what, ours=mine.per_second, theirs=other.per_second, unit="/s", target=1.0, more_is_better=True
                )
                yield Row(what=f"{what}: p99", ours=mine.p99_ms, theirs=other.p99_ms, unit="ms")
        mine, other = _two_nodes("aclog", directory, rounds), _two_nodes("kafka", directory, rounds)
        for name, part in (("p50", 0.5), ("p99", 0.99)):
            yield Row(
                what=f"from the controller's acknowledgement until a broker in another process lists it: {name}",
                ours=percentile(mine, part),
                unit="ms",
                target=VISIBLE_TARGET_MS if part > 0.9 else None,
            )
            what = f"the same, {name}, vs. Kafka"
            yield Row(what=what, ours=percentile(mine, part), theirs=percentile(other, part), unit="ms")
    finally:
        shutil.rmtree(directory)
