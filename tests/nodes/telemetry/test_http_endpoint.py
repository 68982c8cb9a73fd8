"""The HTTP endpoint: its three pages, limits on requests, and misbehaving clients."""

import asyncio

import pytest

from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError
from aclog.server import http_endpoint as http
from aclog.server.http_endpoint import HttpEndpoint
from tests.support.processes.waiting import SECONDS


class Node:
    def __init__(self):
        self.trouble = None
        self.endpoint = HttpEndpoint(
            address=HostPort(host="", port=0),
            metrics=lambda: b"aclog_acls 3.0\n",
            healthy=lambda: None,
            ready=lambda: self.trouble,
        )

    async def __aenter__(self):
        await self.endpoint.start()
        return self

    async def __aexit__(self, *error):
        await self.endpoint.stop()

    @property
    def open(self):
        return len(self.endpoint._budget)

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.endpoint.port)

    async def settled(self, condition):
        while not condition():
            await asyncio.sleep(0.005)

    async def ask(self, request: bytes) -> tuple[int, dict, bytes]:
        reader, writer = await self.connect()
        writer.write(request)
        answer = await reader.read()
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        status, *headers = head.decode().split("\r\n")
        return int(status.split()[1]), dict(line.split(": ", 1) for line in headers), body

    async def get(self, path: str) -> tuple[int, dict, bytes]:
        return await self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def rest(reader) -> bytes:
    """Return the remaining bytes; a reset ends them like a close."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def run(scenario):
    async def whole():
        async with asyncio.timeout(SECONDS), Node() as node:
            await scenario(node)

    asyncio.run(whole())


def test_pages():
    async def scenario(node):
        status, headers, body = await node.get("/metrics")
        assert (status, body) == (200, b"aclog_acls 3.0\n")
        assert headers["Content-Type"].startswith("text/plain; version=")
        assert headers["Content-Length"] == str(len(body))
        assert (await node.get("/healthz"))[::2] == (200, b"ok\n")
        assert (await node.get("/readyz?verbose"))[::2] == (200, b"ok\n")
        node.trouble = "replayed 10 of 20 records"
        assert (await node.get("/readyz"))[::2] == (503, b"replayed 10 of 20 records\n")
        assert (await node.get("/healthz"))[0] == 200
        assert (await node.get("/secrets"))[0] == 404

    run(scenario)


def test_a_reason_with_the_path_of_a_file_whose_name_is_no_text():
    async def scenario(node):
        node.trouble = "/data/\udcff: the disk is full\n"
        status, _, body = await node.get("/readyz")
        assert (status, body) == (503, b"/data/\\udcff: the disk is full\\n\n")

    run(scenario)


def test_a_failing_page_is_a_server_error(caplog):
    async def scenario(node):
        node.endpoint.metrics = lambda: int("no gauge")
        assert (await node.get("/metrics"))[::2] == (500, b"Internal Server Error\n")
        assert (await node.get("/healthz"))[0] == 200

    run(scenario)
    assert "no gauge" in caplog.text


def test_head_has_no_body():
    async def scenario(node):
        status, headers, body = await node.ask(b"HEAD /healthz HTTP/1.1\r\n\r\n")
        assert (status, headers["Content-Length"], body) == (200, "3", b"")

    run(scenario)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics SPDY/3\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\ntransfer-encoding : x\r\nX: y\r\ncontent-length:0\r\n\r\n", 400),
        (b"\x00\xff\x16\x03\x01\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", 431),
        (b"A" * 100_000, 431),
    ],
)
def test_bad_requests(request_bytes, status):
    async def scenario(node):
        reader, writer = await node.connect()
        writer.write(request_bytes)
        assert int((await reader.readline()).split()[1]) == status
        writer.close()
        assert (await node.get("/healthz"))[0] == 200

    run(scenario)


def test_a_silent_client_is_disconnected(monkeypatch):
    monkeypatch.setattr(http, "_SECONDS", 0.05)

    async def scenario(node):
        reader, writer = await node.connect()
        assert await rest(reader) == b""
        writer.close()
        assert (await node.get("/healthz"))[0] == 200

    run(scenario)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTT", b"GET /metrics HTTP/1.1\r\nX: "])
@pytest.mark.parametrize("others", [40, 500])
def test_a_probe_gets_through_however_many_connections_are_idle(others, sent):
    async def scenario(node):
        held = [await node.connect() for _ in range(others)]
        for _, writer in held:
            writer.write(sent)
        for _ in range(5):
            assert (await node.get("/healthz"))[0] == 200
        assert node.open <= 256
        if others > 256:
            assert await rest(held[0][0]) == b"", "the oldest is closed"
        for _, writer in held:
            writer.transport.abort()

    run(scenario)


def test_a_flood_of_one_address_does_not_close_the_connections_of_others(monkeypatch):
    monkeypatch.setattr(http, "HTTP_CONNECTIONS", 8)
    monkeypatch.setattr(http, "_SECONDS", SECONDS)  # while 40 others connect, a slow machine takes its time

    async def scenario(node):
        reader, writer = await asyncio.open_connection("127.0.0.1", node.endpoint.port, local_addr=("127.0.0.2", 0))
        held = [await node.connect() for _ in range(40)]
        await node.settled(lambda: node.open == 8)
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert b" 200 OK" in await reader.read()
        for _, other in (*held, (reader, writer)):
            other.transport.abort()

    run(scenario)


def test_readers_that_do_not_take_their_answers_give_way_too(monkeypatch):
    monkeypatch.setattr(http, "HTTP_CONNECTIONS", 8)
    monkeypatch.setattr(http, "_SECONDS", SECONDS)  # while 40 others connect, a slow machine takes its time

    async def scenario(node):
        node.endpoint.metrics = lambda: bytes(1 << 23)
        held = [await node.connect() for _ in range(20)]
        for _, writer in held:
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        for _ in range(5):
            assert (await node.get("/healthz"))[0] == 200
        assert node.open <= 8
        for _, writer in held:
            writer.transport.abort()

    run(scenario)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTT", b"GET /metrics HTTP/1.1\r\nContent-Length: 3\r\n"])
def test_stopping_closes_what_is_open(sent, caplog):
    async def scenario(node):
        reader, writer = await node.connect()
        writer.write(sent)
        await node.get("/healthz")
        await node.endpoint.stop()
        assert await rest(reader) == b""
        writer.close()
        assert caplog.records == []
        with pytest.raises(RuntimeError):
            _ = node.endpoint.port

    run(scenario)


def test_an_address_that_is_taken():
    async def scenario(node):
        second = HttpEndpoint(
            address=HostPort(host="127.0.0.1", port=node.endpoint.port),
            metrics=bytes,
            healthy=lambda: None,
            ready=lambda: None,
        )
        with pytest.raises(ConfigError, match=r"aclog.http.listener: cannot listen on 127\.0\.0\.1:\d+: "):
            await second.start()

    run(scenario)
