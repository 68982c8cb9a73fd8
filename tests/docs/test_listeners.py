"""The table of listeners in SECURITY.md: it names all that listens, with the limits of the code, and these hold."""

import ast
import asyncio
import contextlib
import http.client
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from h11._connection import DEFAULT_MAX_INCOMPLETE_EVENT_SIZE
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from aclog.cli import serving
from aclog.cli.serving import Endpoint, server_config
from aclog.config.node_config import HostPort, Limits
from aclog.console import connections
from aclog.console.connections import CONNECTIONS, HEADER_S, shares_of
from aclog.console.login import guard
from aclog.server import http_endpoint
from aclog.server.connection_budget import Shares
from aclog.server.http_endpoint import HTTP_CONNECTIONS, HttpEndpoint
from aclog.server.network.admission import UNCHARGED_BYTES, Admission
from aclog.server.telemetry import Metrics
from tests.support.nodes.served_listener import run
from tests.support.processes.waiting import SECONDS
from tests.support.web.points import HeldSource, image_of, point_of
from tests.support.web.served import ServedApp, ServedPoint

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "SECURITY.md"
SECTION = re.compile(r"### What an unauthenticated peer can consume\n(.*?)\n## ", re.DOTALL)

LISTENING = {"listen", "create_server", "start_server", "create_unix_server", "start_unix_server", "HTTPServer"}
"""Names of what begins to listen."""
LISTENERS = {
    "aclog/console/connections.py": ("`aclog pdp --listen`", "`aclog console --listen`"),
    "aclog/server/network/listeners.py": ("broker, controller, early-start listeners",),
    "aclog/server/http_endpoint.py": ("`--health-listen`, `aclog.http.listener`, `--http`",),
}
"""The modules that listen, and their rows of the table."""
OTHERS = {"aclog/zookeeper/acl_store.py", "aclog/zookeeper/migration.py"}
"""What is called `listen` there has no socket: a client's notices of its connection."""


def rows() -> dict[str, list[str]]:
    """The cells of each row, by the listener."""
    found = SECTION.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    lines = [line for line in found[1].splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0]: row[1:] for row in cells[1:]}


def listening_calls() -> Iterator[str]:
    """The modules that call what begins to listen."""
    for path in (ROOT / "aclog").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
        names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
        if names & LISTENING:
            yield str(path.relative_to(ROOT))


@pytest.mark.tier("test")
def test_the_table_names_all_that_listens() -> None:
    assert set(listening_calls()) - OTHERS == set(LISTENERS)
    assert set(rows()) == {row for each in LISTENERS.values() for row in each}


def numbers(shares: Shares) -> list[str]:
    return [f"{each:,}" for each in (shares.connections, shares.connections - shares.reserve, shares.of_network)]


def test_the_limits_of_the_web_servers() -> None:
    for row, is_timed in (("`aclog pdp --listen`", True), ("`aclog console --listen`", False)):
        endpoint = Endpoint(address=HostPort(host="127.0.0.1", port=0))
        config = server_config(lambda: None, endpoint, is_timed=is_timed)
        *found, first, costs = rows()[row]
        assert found == numbers(shares_of(CONNECTIONS))
        assert first == f"header whole in {HEADER_S:g} s"
        header = config.h11_max_incomplete_event_size or DEFAULT_MAX_INCOMPLETE_EVENT_SIZE
        assert f"{header >> 10} KiB of headers" in costs
    assert f"{HIGH_WATER_LIMIT >> 10} KiB of a body" in rows()["`aclog pdp --listen`"][-1]
    costs = rows()["`aclog console --listen`"][-1]
    assert f"{guard._MOST >> 10} KiB of each body" in costs
    assert f"{guard._STRANGERS >> 20} MiB of all peers, {guard._STRANGERS >> 21} MiB of one network" in costs
    text = PAGE.read_text(encoding="utf-8")
    assert f"{shares_of(CONNECTIONS).of_identity} for one identity" in text
    a_second = 1 / connections.RATE.seconds
    assert f"{connections.RATE.burst} answers to unauthenticated requests at once and {a_second:g} a second" in text
    assert f"at most {connections._HANDSHAKES} TLS handshakes of one network" in text


def test_the_limits_of_the_http_endpoint() -> None:
    *found, first, costs = rows()["`--health-listen`, `aclog.http.listener`, `--http`"]
    assert found == [f"{HTTP_CONNECTIONS}"] * 3
    assert first == f"whole in {http_endpoint._SECONDS:g} s"
    assert f"{http_endpoint._HEAD_BYTES >> 10} KiB of headers" in costs


def test_the_limits_of_a_node() -> None:
    limits = Limits()
    *found, first, costs = rows()["broker, controller, early-start listeners"]
    assert found == [f"{limits.connections:,}", f"{limits.connections:,}", f"{limits.connections_per_ip:,}"]
    assert f"login in {limits.authentication_seconds:g} s" in first
    assert f"idle for {limits.idle_seconds:g} s" in first
    pool = Admission(limits=limits, metrics=Metrics(process=False)).unauthenticated_memory
    assert f"{UNCHARGED_BYTES >> 10} KiB for each connection" in costs
    larger = f"frames up to {limits.unauthenticated_frame_bytes >> 10} KiB: {pool.size >> 20} MiB of all peers"
    assert larger in costs


def opened(port: int, number: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port), timeout=SECONDS) for _ in range(number)]


def healthy(port: int, source: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS, source_address=(source, 0))
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        return connection.getresponse().status


@pytest.mark.parametrize("is_timed", [True, False])
def test_one_peer_holds_no_more_of_a_web_server_than_the_table_says(is_timed: bool) -> None:
    point = point_of(HeldSource(image_of()))
    served = ServedPoint(point) if is_timed else ServedApp(point.app(), is_timed=False)
    with served:
        held = opened(served.port, 300)
        try:
            assert [healthy(served.port, source) for source in ("127.0.0.1", "127.0.0.2")] == [200, 200]
            assert len(served.budget) <= shares_of(serving.CONNECTIONS).of_network
        finally:
            for each in held:
                each.close()


@pytest.mark.tier("test")
def test_one_peer_holds_no_more_of_an_http_endpoint_than_the_table_says() -> None:
    async def scenario() -> None:
        endpoint = HttpEndpoint(
            address=HostPort(host="127.0.0.1", port=0), metrics=bytes, healthy=lambda: None, ready=lambda: None
        )
        await endpoint.start()
        held = await asyncio.to_thread(opened, endpoint.port, 400)
        try:
            for source in ("127.0.0.1", "127.0.0.2"):
                assert await asyncio.to_thread(healthy, endpoint.port, source) == 200
            assert len(endpoint._budget) <= HTTP_CONNECTIONS
        finally:
            for each in held:
                each.close()
            await endpoint.stop()

    asyncio.run(scenario())


def test_one_peer_holds_no_more_of_a_node_than_its_limit() -> None:
    async def scenario(served) -> None:
        held = [await served.connect() for _ in range(60)]
        for last in range(2, 12):
            assert await (await served.connect(local_addr=(f"127.0.0.{last}", 0))).who()
        assert served.admission.connections <= 50
        assert len(held) == 60

    run(scenario, connections=50)
