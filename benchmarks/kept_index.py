"""What a node pays for keeping its index of last use, at 5,000 decisions a second: CPU time with it and without.

Two nodes with the same rules are asked the same at the same time, one of them with aclog.usage.index, for longer than
the time between two writes of the index. Clients send Metadata of five topics each, at a fixed rate; most are
allowed, as denials are logged, which costs more than all else.
"""

import asyncio
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.client.requests import create_acls
from aclog.protocol.api_keys import METADATA
from aclog.protocol.headers import RequestHeader, encode_header, frame
from aclog.protocol.messages import build, encode_request
from benchmarks.measurement import cpu_seconds
from benchmarks.report import Row
from benchmarks.request_load import login
from benchmarks.serve import _connect
from tests.support.nodes.aclog_node import AclogProcess
from tests.support.nodes.server_properties import USERS, Ports, server_properties

TOPICS_OF_A_REQUEST = 5
REQUESTS_A_SECOND = 1_000
WARM_SECONDS = 10.0
_TICK_S = 0.05
_CLIENTS = 8
_TOPICS = 1_000
_BATCH = 5_000


@frozen(kw_only=True)
class Turn:
    """What a node did in one turn: decisions and CPU seconds a second."""

    decisions: float
    cpu: float


def _rules(count: int) -> list[StandardAcl]:
    """Return rules of which the clients' users have some, and others the rest."""
    users = [f"User:{name}" for name in USERS[1:]]
    found = [_rule(user, f"topic-{number:04}") for user in users for number in range(0, _TOPICS, 10)]
    found += [_rule(user, f"topic-{number:02}", PatternType.PREFIXED) for user in users for number in range(100)]
    found += [_rule(f"User:app-{number % 997}", f"other-{number}") for number in range(count - len(found))]
    return found[:count]


def _rule(principal: str, name: str, pattern_type: PatternType = PatternType.LITERAL) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern_type,
        principal=principal,
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )


async def _create(port: int, rules: Sequence[StandardAcl]) -> None:
    connection = await _connect(port)
    for start in range(0, len(rules), _BATCH):
        await create_acls(connection, rules[start : start + _BATCH])
    await connection.close()


def _requests(chance: random.Random) -> list[bytes]:
    header = encode_header(RequestHeader(api_key=METADATA, api_version=4, correlation_id=7, client_id="load"))
    found = []
    for _ in range(2_000):
        names = [f"topic-{chance.randrange(_TOPICS):04}" for _ in range(TOPICS_OF_A_REQUEST)]
        topics = tuple(build(METADATA, 4, "request", "MetadataRequestTopic", name=name) for name in names)
        body = build(METADATA, 4, "request", topics=topics, allow_auto_topic_creation=False)
        found.append(frame(header + encode_request(body)))
    return found


def _swallow(connected: socket.socket) -> None:
    while connected.recv(1 << 20):
        pass


def _ask(clients: Sequence[socket.socket], requests: Sequence[bytes], seconds: float) -> None:
    """Send requests at the fixed rate."""
    begun, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        while sent < passed * REQUESTS_A_SECOND:
            clients[sent % len(clients)].sendall(requests[sent % len(requests)])
            sent += 1
        time.sleep(_TICK_S)


def _decided(node: AclogProcess) -> float:
    return node.metric('aclog_authorizer_decisions_total{outcome="allowed"}') + node.metric(
        'aclog_authorizer_decisions_total{outcome="denied"}'
    )


def _turn(node: AclogProcess, clients: Sequence[socket.socket], requests: Sequence[bytes], seconds: float) -> Turn:
    before, cpu, begun = _decided(node), cpu_seconds(node.pid), time.monotonic()
    _ask(clients, requests, seconds)
    passed = time.monotonic() - begun
    return Turn(decisions=(_decided(node) - before) / passed, cpu=(cpu_seconds(node.pid) - cpu) / passed)


def run(scratch: Path, rule_counts: Sequence[int], seconds: float, rounds: int) -> Iterator[Row]:
    """Yield the rows for estates of these sizes."""
    for count in rule_counts:
        with ExitStack() as stack:
            turns = _turns(stack, scratch / str(count), _rules(count), seconds, rounds)
        without, kept = ([turn[side] for turn in turns] for side in (0, 1))
        name = f"{count:,} rules"
        rate = median(each.decisions for each in kept)
        yield Row(what=f"{name}: decisions a second", ours=rate, unit="/s")
        plain, more = (100 * median(each.cpu for each in side) for side in (without, kept))
        yield Row(what=f"{name}: CPU without the index", ours=plain, unit="% of a core")
        yield Row(what=f"{name}: CPU with it", ours=more, unit="% of a core")
        yield Row(what=f"{name}: what it costs", ours=more - plain, unit="% of a core", target=5)
        relative = median(100 * (each.cpu / other.cpu - 1) for other, each in turns)
        yield Row(what=f"{name}: more CPU than without", ours=relative, unit="%", target=5)


def _turns(
    stack: ExitStack, scratch: Path, rules: Sequence[StandardAcl], seconds: float, rounds: int
) -> list[tuple[Turn, Turn]]:
    requests, nodes = _requests(random.Random(7)), []
    for name, more in (("without", {}), ("with", {"aclog_usage_index": "usage"})):
        ports = Ports.free()
        node = AclogProcess(scratch / name, ports, server_properties(ports, **more)).format()
        stack.enter_context(node)
        asyncio.run(_create(ports.broker, rules))
        clients = [stack.enter_context(login(ports.broker, USERS[1 + at % 4])) for at in range(_CLIENTS)]
        for each in clients:
            each.settimeout(None)
            threading.Thread(target=_swallow, args=(each,), daemon=True).start()
        nodes.append((node, clients))
    _both(nodes, requests, WARM_SECONDS)
    return [_both(nodes, requests, seconds) for _ in range(rounds)]


def _both(
    nodes: Sequence[tuple[AclogProcess, Sequence[socket.socket]]], requests: Sequence[bytes], seconds: float
) -> tuple[Turn, Turn]:
    with ThreadPoolExecutor(len(nodes)) as pool:
        without, kept = [pool.submit(_turn, node, clients, requests, seconds) for node, clients in nodes]
        return without.result(), kept.result()
