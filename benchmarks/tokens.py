"""Delegation tokens vs. a real Kafka 4.3.1: the server's cost of creating a token and of logging in with one.

Each side is one process, controller and broker combined, with the same properties, data on the disk of the checkout,
and our client. CPU is that of the whole server process. Kafka salts each token for both SCRAM mechanisms when it is
created; we salt it for one mechanism at the token's first login.
"""

import asyncio
import shutil
import tempfile
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import psutil
from attrs import evolve, frozen

from aclog.client.connection import connect
from aclog.client.requests import DelegationToken, create_token
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.protocol.session import SecurityProtocol
from benchmarks.report import Row
from benchmarks.serve import NODES
from tests.support.kafka.server import with_properties
from tests.support.nodes.barrier import Barrier
from tests.support.nodes.server_properties import Ports, server_properties

CLIENTS = 8
SHARE = 0.5
"""Minimum ratio to Kafka's rate and CPU."""


_ADMIN = ClientSecurity(
    security_protocol=SecurityProtocol.SASL_PLAINTEXT,
    sasl_mechanism="PLAIN",
    username="admin",
    password="admin-secret",
)
_SECONDS = 60.0


@frozen
class _Cost:
    """CPU of one operation, and the rate of operations."""

    cpu_ms: float
    per_second: float


async def _spread(work: Callable[[int], Awaitable[None]], count: int) -> None:
    """Run `work` for each number, with CLIENTS of them concurrently."""
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            await work(number)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def _cost(process: psutil.Process, count: int, work: Callable[[], None]) -> _Cost:
    before, begun = process.cpu_times(), time.monotonic()
    work()
    took, after = time.monotonic() - begun, process.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    return _Cost(1000 * cpu / count, count / took)


def _create(port: int, count: int, made: list[DelegationToken]) -> None:
    async def create() -> None:
        address = HostPort(host="localhost", port=port)
        connections = [await connect(address, _ADMIN, timeout=_SECONDS) for _ in range(CLIENTS)]

        async def one(number: int) -> None:
            made.append(await create_token(connections[number % CLIENTS], (), timedelta(milliseconds=-1)))

        await _spread(one, count)
        for each in connections:
            await each.close()

    asyncio.run(create())


def _log_in(port: int, tokens: Sequence[DelegationToken]) -> None:
    address = HostPort(host="localhost", port=port)
    security = evolve(_ADMIN, sasl_mechanism="SCRAM-SHA-256", token_auth=True)

    async def one(number: int) -> None:
        token = tokens[number]
        bearer = evolve(security, username=token.token_id, password=b64encode(token.hmac).decode())
        connection = await connect(address, bearer, timeout=_SECONDS)
        await connection.close()

    asyncio.run(_spread(one, len(tokens)))


def _costs(kind: str, scratch: Path, count: int) -> tuple[_Cost, _Cost, _Cost]:
    """Return the costs of creating a token, of its first login, and of its second."""
    ports = Ports.free()
    properties = with_properties(server_properties(ports), delegation_token_secret_key="a-secret-of-benchmarks")
    node = NODES[kind](scratch / kind, ports, properties).format().start()
    barrier = Barrier(ports)
    try:
        process, warm, made = psutil.Process(node.pid), [], []
        _create(ports.broker, count // 3, warm)
        barrier.wait()
        _log_in(ports.broker, warm)
        created = _cost(process, count, lambda: _create(ports.broker, count, made))
        barrier.wait()
        first = _cost(process, count, lambda: _log_in(ports.broker, made))
        return created, first, _cost(process, count, lambda: _log_in(ports.broker, made))
    finally:
        barrier.close()
        node.stop()


def run(scratch: Path, count: int) -> Iterator[Row]:
    """Yield rows of CPU and rates for `count` tokens, and for two logins with each."""
    directory = Path(tempfile.mkdtemp(dir=scratch))
    try:
        ours, theirs = _costs("aclog", directory, count), _costs("kafka", directory, count)
    finally:
        shutil.rmtree(directory)
    names = ("token created", "first login with a token", "further login with it")
    for name, mine, other in zip(names, ours, theirs, strict=True):
        yield Row(what=f"server CPU per {name}", ours=mine.cpu_ms, theirs=other.cpu_ms, unit="ms", target=SHARE)
        plural = name.replace("token created", "tokens created").replace("login", "logins")
        yield Row(
            what=f"{plural} per second, {CLIENTS} clients",
            ours=mine.per_second,
            theirs=other.per_second,
            unit="/s",
            target=SHARE,
            more_is_better=True,
        )
