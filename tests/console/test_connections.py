"""Connections to the console: nobody holds one without asking, and an answer may take its time."""

import asyncio
import contextlib
import logging
import socket
import ssl
import time

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from aclog.console.connections import GatheredWrites, TimedConnection
from aclog.terminal.notices import FewNotices
from tests.support.nodes.certificates import Authority
from tests.support.processes.waiting import wait_until
from tests.support.web.served import ServedApp, post_bytes, read_all

SECONDS = 0.5
SECONDS_TO_READ = 30
LONG = 32 << 20
"""Bytes: more than what systems hold between two ends."""


async def slow(request: Request) -> Response:
    await request.body()
    await asyncio.sleep(4 * SECONDS)
    return PlainTextResponse("at last\n")


async def pieces(_request: Request) -> Response:
    return StreamingResponse(iter([b"x" * (1 << 16)] * (LONG >> 16)))


async def whole(_request: Request) -> Response:
    return PlainTextResponse("x" * LONG)


async def hangs_up(_request: Request) -> Response:
    raise ClientDisconnect


async def fails(_request: Request) -> Response:
    raise RuntimeError("a failure")


APP = Starlette(
    routes=[
        Route("/slow", slow, methods=["GET", "POST"]),
        Route("/pieces", pieces),
        Route("/whole", whole),
        Route("/hangs-up", hangs_up),
        Route("/fails", fails),
    ]
)


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setattr(TimedConnection, "seconds", SECONDS)
    with ServedApp(APP, is_timed=False) as found:
        yield found


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", post_bytes("/slow", b"12345")[:-1], post_bytes("/slow", b"x" * 200_000)[:-1]]
)
@pytest.mark.tier("test")
def test_who_does_not_finish_a_request_is_cut_off(served, begun):
    with served.connect() as connection:
        connection.sendall(begun)
        assert read_all(connection) == b""


@pytest.mark.slow(4)
@pytest.mark.parametrize("asked", [get("/slow"), post_bytes("/slow", b"x" * 200_000), get("/slow") * 2])
def test_an_answer_takes_as_long_as_it_takes(served, asked, monkeypatch):
    monkeypatch.setattr(TimedConnection, "seconds", 3 * SECONDS)  # within which requests have to be whole
    with served.connect() as connection:
        connection.sendall(asked)
        for _ in range(asked.count(b" HTTP/1.1")):
            assert b"at last" in until(connection, b"at last")
        assert read_all(connection).strip() == b"", "and then another request is waited for, and not for ever"


def until(connection: socket.socket, end: bytes) -> bytes:
    found = b""
    while end not in found and (piece := connection.recv(1 << 16)):
        found += piece
    return found


HALVES = [
    b"",
    b"GET / HT",
    post_bytes("/slow", b"12345")[:-1],
    get("/none") + b"GET /",
    get("/none") + post_bytes("/slow", b"1")[:-1],
]


@pytest.mark.parametrize("is_timed", [False, True])
@pytest.mark.parametrize("over_tls", [False, True])
@pytest.mark.tier("test")
def test_half_a_request_does_not_hold_up_the_end(tmp_path, monkeypatch, capfd, is_timed, over_tls):
    """Nobody waits for the rest of it, and nothing is said of it."""
    authority = Authority.make()
    context = ssl.create_default_context(cafile=authority.write_pem(tmp_path / "root.pem"))
    pem = authority.issue("server").write_pem(tmp_path / "server.pem") if over_tls else None
    monkeypatch.setattr(TimedConnection, "seconds", 10 * SECONDS_TO_READ)
    with ServedApp(APP, is_timed=is_timed, pem=pem) as served, contextlib.ExitStack() as stack:
        served.wait_without_limit()
        for sent in HALVES:
            connection = stack.enter_context(served.connect())
            if over_tls:
                connection = stack.enter_context(context.wrap_socket(connection, server_hostname="localhost"))
            connection.sendall(sent)
            if sent.startswith(get("/none")):
                assert b"404" in until(connection, b"Not Found")
        wait_until(lambda: served.connections == len(HALVES), "all of them are connected")
        served.end()  # while the other side keeps its connections
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("path", ["/pieces", "/whole"])
@pytest.mark.tier("test")
def test_who_does_not_read_an_answer_is_cut_off(served, path):
    with narrow(served.port) as connection:
        connection.sendall(get(path))
        wait_until(lambda: served.connections == 1, "connected")
        wait_until(lambda: served.connections == 0, "cut off")
        assert len(read_all(connection)) < LONG


@pytest.mark.slow(6)
@pytest.mark.parametrize("path", ["/pieces", "/whole"])
def test_who_reads_slowly_gets_all(served, path, monkeypatch):
    with narrow(served.port) as connection:
        check_slow_reader(connection, path, monkeypatch)


@pytest.mark.slow(7)
@pytest.mark.parametrize("path", ["/pieces", "/whole"])
def test_who_reads_slowly_over_tls_gets_all(tmp_path, path, monkeypatch):
    authority = Authority.make()
    context = ssl.create_default_context(cafile=authority.write_pem(tmp_path / "root.pem"))
    pem = authority.issue("server").write_pem(tmp_path / "server.pem")
    with (
        ServedApp(APP, is_timed=False, pem=pem) as served,
        context.wrap_socket(narrow(served.port), server_hostname="localhost") as connection,
    ):
        check_slow_reader(connection, path, monkeypatch)


def check_slow_reader(connection, path, monkeypatch):
    monkeypatch.setattr(TimedConnection, "seconds", 4 * SECONDS)  # a busy machine may let a reader wait, too
    connection.sendall(get(path))
    found, end = 0, time.monotonic() + 10 * SECONDS
    while time.monotonic() < end:
        found += len(connection.recv(1 << 13))  # so little that the kernel has no room for more all the while
        time.sleep(SECONDS / 5)
    assert found < LONG
    assert found + len(read_all(connection)) > LONG


def narrow(port: int) -> socket.socket:
    """A connection that holds little that was not read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.settimeout(SECONDS_TO_READ)
    connection.connect(("127.0.0.1", port))
    return connection


@pytest.mark.tier("test")
def test_a_failure_is_written_after_any_number_of_hang_ups_and_a_few_of_many_are():
    most = FewNotices(tell=print).most
    logger, written = logging.getLogger("uvicorn.error"), list[str]()
    writer = logging.Handler()
    writer.emit = lambda record: written.append(str(record.exc_info[1]))
    before = list(logger.filters)
    try:
        with ServedApp(APP, is_timed=False) as server:
            logger.addHandler(writer)  # uvicorn's own configuration takes away those that were there before
            for path in ("/hangs-up", "/fails"):
                for _ in range(most + 2):
                    server.say(get(path))
    finally:
        logger.removeHandler(writer)
    assert written == ["a failure"] * most
    assert logger.filters == before, "another server of this process counts for itself"


class Written:
    """A transport that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.is_over = False

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def is_closing(self) -> bool:
        return self.is_over

    def get_write_buffer_size(self) -> int:
        return 1


def after_one_step(*steps) -> list[object]:
    """What a transport is asked for when these are called in one step of the loop."""

    async def run() -> list[object]:
        under = Written()
        transport = GatheredWrites(under, asyncio.get_running_loop())
        for step in steps:
            step(transport, under)
        await asyncio.sleep(0)
        return under.calls

    return asyncio.run(run())


def test_writes_of_one_step_are_sent_at_once():
    def head(transport, under):
        transport.write(b"head ")
        assert transport.get_write_buffer_size() == 6
        assert not under.calls

    assert after_one_step(head, lambda t, _: t.write(b"body"), lambda t, _: t.write(b"")) == [b"head body"]


def test_many_bytes_are_sent_without_waiting_for_the_end_of_the_step():
    def piece(transport, _):
        transport.write(b"x" * (40 << 10))

    assert [len(call) for call in after_one_step(piece, piece, piece)] == [80 << 10, 40 << 10]


def test_what_was_written_is_sent_before_the_end_unless_it_is_cut_off():
    assert after_one_step(lambda t, _: t.write(b"x"), lambda t, _: t.close()) == [b"x", "close"]
    assert after_one_step(lambda t, _: t.write(b"x"), lambda t, _: t.abort()) == ["abort"]
    assert after_one_step(lambda t, _: t.write(b"x"), lambda _, under: setattr(under, "is_over", True)) == []
