"""Floods of connections: one network cannot keep the others out, and who has authenticated has places of his own."""

import contextlib
import http.client
import socket
import ssl

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from aclog.cli import serving
from aclog.console import connections
from aclog.console.connections import TimedConnection, authenticate
from aclog.console.pdp.app import Tokens
from aclog.console.shared import Budget
from tests.support.builders.acls import acl
from tests.support.nodes.certificates import Authority
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.points import HeldSource, image_of, point_of
from tests.support.web.served import ServedApp, ServedPoint, post_bytes, read_all

CONNECTIONS = 40
"""Of a server in these tests: half for who has authenticated, an eighth for each network."""
OTHER = "127.0.0.2"
TOKEN = "a-token-of-a-proxy"
ALLOWED = {
    "subject": {"type": "User", "id": "a"}, "action": {"name": "READ"}, "resource": {"type": "topic", "id": "t"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CONNECTIONS", CONNECTIONS)


@pytest.fixture
def point():
    found = point_of(HeldSource(image_of(acl("t", "User:a"))), tokens=Tokens.of([TOKEN]))
    with ServedPoint(found) as served:
        served.point = found
        yield served


def connected(served: ServedApp, number: int, source: str = "127.0.0.1") -> list[socket.socket]:
    return [
        socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS, source_address=(source, 0))
        for _ in range(number)
    ]


def closed(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def asked(served: ServedApp, source: str, path: str = "/access/v1/evaluation", token: str | None = TOKEN) -> int:
    """The status of a request on a new connection."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS, source_address=(source, 0))
    with contextlib.closing(connection):
        is_question = path.startswith("/access/")
        body = post_bytes(path, ALLOWED).partition(b"\r\n\r\n")[2] if is_question else None
        connection.request("POST" if is_question else "GET", path, body, headers)
        return connection.getresponse().status


def count(refusals, name: str, **labels: str) -> float:
    return refusals.registry.get_sample_value(name, labels) or 0.0


def test_idle_connections_of_one_address_lock_out_nobody(point) -> None:
    held = connected(point, 5 * CONNECTIONS)
    try:
        for source in (OTHER, "127.0.0.3", "127.0.0.1"):
            assert asked(point, source) == 200
            assert asked(point, source, "/healthz", token=None) == 200
            assert asked(point, source, token=None) == 401
        assert point.connections <= CONNECTIONS // 8 + 1
        assert count(point.point.refusals, "aclog_web_connections_refused_total", reason="network") > 4 * CONNECTIONS
        assert count(point.point.refusals, "aclog_web_connections", kind="unauthenticated") <= CONNECTIONS // 8
    finally:
        closed(held)


def test_who_has_authenticated_keeps_its_connections_in_a_flood_of_many_networks(point) -> None:
    mine = http.client.HTTPConnection("127.0.0.1", point.port, timeout=SECONDS, source_address=(OTHER, 0))
    with contextlib.closing(mine):
        for _ in range(3):
            held = [each for last in range(10, 60) for each in connected(point, 3, f"127.0.1.{last}")]
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
            mine.request("POST", "/access/v1/evaluation", post_bytes("/", ALLOWED).partition(b"\r\n\r\n")[2], headers)
            reply = mine.getresponse()
            assert (reply.status, b"true" in reply.read()) == (200, True)
            assert mine.sock is not None, "it is still the first connection"
            closed(held)
    assert count(point.point.refusals, "aclog_web_connections_refused_total", reason="unauthenticated") > 0


@pytest.mark.parametrize("begun", [b"", b"POST /access/v1/evaluation HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
def test_a_stranger_sends_its_header_soon(monkeypatch, begun: bytes) -> None:
    monkeypatch.setattr(TimedConnection, "header_seconds", 0.2)
    found = point_of(HeldSource(image_of(acl("t", "User:a"))), tokens=Tokens.of([TOKEN]))
    with ServedPoint(found) as served, served.connect() as connection:
        connection.sendall(begun)
        assert read_all(connection) == b""
        assert count(found.refusals, "aclog_web_connections_refused_total", reason="header") == 1


def test_a_stranger_who_was_answered_sends_its_next_header_soon(monkeypatch) -> None:
    found = point_of(HeldSource(image_of(acl("t", "User:a"))), tokens=Tokens.of([TOKEN]))
    with ServedPoint(found) as served, served.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        _wait_for(connection, b"200 OK")
        monkeypatch.setattr(TimedConnection, "header_seconds", 0.2)
        connection.sendall(b"GET /heal")
        assert b"HTTP" not in read_all(connection)
        assert count(found.refusals, "aclog_web_connections_refused_total", reason="header") == 1


def test_who_has_authenticated_may_take_longer_for_a_header(monkeypatch) -> None:
    found = point_of(HeldSource(image_of(acl("t", "User:a"))), tokens=Tokens.of([TOKEN]))
    question = post_bytes("/access/v1/evaluation", ALLOWED, f"Authorization: Bearer {TOKEN}")
    with ServedPoint(found) as served, served.connect() as connection:
        connection.sendall(question)
        _wait_for(connection, b'"decision":true')
        monkeypatch.setattr(TimedConnection, "header_seconds", 0.1)
        connection.sendall(question[:30])
        for _ in range(2):  # one after the other: longer than an unauthenticated header may take
            with served.connect() as stranger:
                assert read_all(stranger) == b""
        connection.sendall(question[30:].replace(b"Host: x", b"Host: x\r\nConnection: close"))
        assert read_all(connection).count(b'"decision":true') == 1


def test_requests_without_a_token_are_answered_at_a_bounded_rate(monkeypatch) -> None:
    monkeypatch.setattr(connections, "RATE", Budget(burst=5, seconds=1e6))
    found = point_of(HeldSource(image_of(acl("t", "User:a"))), tokens=Tokens.of([TOKEN]))
    question = post_bytes("/access/v1/evaluation", ALLOWED, f"Authorization: Bearer {TOKEN}")
    with ServedPoint(found) as served, served.connect() as known:
        known.sendall(question)
        _wait_for(known, b'"decision":true')
        with served.connect() as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            assert read_all(connection).count(b" 401 ") == 5
        with served.connect() as connection:
            assert read_all(connection) == b"", "it is closed on accept"
        known.sendall(question)
        _wait_for(known, b'"decision":true')
        assert asked(served, OTHER) == 200
    assert count(found.refusals, "aclog_web_connections_refused_total", reason="rate") == 2


def _wait_for(connection: socket.socket, text: bytes) -> None:
    """Read until a text has come: head and body of an answer may come apart."""
    answer = bytearray()
    while text not in answer:
        piece = connection.recv(1 << 12)
        assert piece, bytes(answer)
        answer += piece


async def _slow(request: Request) -> Response:
    if not authenticate(request.scope, request.headers.get("who")):
        return PlainTextResponse("too many\n", 429)
    if request.url.path == "/body":
        await request.body()
    return PlainTextResponse("ok\n")


APP = Starlette(routes=[Route("/body", _slow, methods=["POST"]), Route("/", _slow)])


def half_sent(who: str) -> bytes:
    return f"POST /body HTTP/1.1\r\nHost: x\r\nwho: {who}\r\nContent-Length: 5\r\n\r\n12".encode()


def test_one_identity_holds_a_part_of_the_reserve() -> None:
    of_identity = CONNECTIONS // 2 * 4 // 5
    with ServedApp(APP, is_timed=True) as served:
        held = list[socket.socket]()
        try:
            for number in range(1, of_identity + 1):
                held += connected(served, 1)
                held[-1].sendall(half_sent("one"))
                wait_until(lambda number=number: served.budget.authenticated == number)
            for who, status in (("one", b"429"), ("two", b"200")):
                with served.connect() as connection:
                    connection.sendall(f"GET / HTTP/1.1\r\nHost: x\r\nwho: {who}\r\nConnection: close\r\n\r\n".encode())
                    assert read_all(connection).split(b"\r\n")[0].split()[1] == status
            for each in held:
                each.sendall(b"345")
                assert b" 200 " in each.recv(1 << 12)
        finally:
            closed(held)


def test_a_trusted_proxy_is_not_held_to_the_share_of_one_network() -> None:
    with ServedApp(APP, is_timed=True, proxy="127.0.0.1") as served:
        of_identity = CONNECTIONS // 2 * 4 // 5
        held = connected(served, of_identity)
        try:
            wait_until(lambda: served.budget.authenticated == of_identity)
            for number, each in enumerate(held):
                each.sendall(f"GET / HTTP/1.1\r\nHost: x\r\nwho: viewer {number}\r\n\r\n".encode())
                assert b" 200 " in each.recv(1 << 12)
            assert served.budget.authenticated == of_identity
        finally:
            closed(held)


def test_half_handshakes_of_one_address_lock_out_nobody(tmp_path) -> None:
    authority = Authority.make()
    context = ssl.create_default_context(cafile=authority.write_pem(tmp_path / "root.pem"))
    pem = authority.issue("server").write_pem(tmp_path / "server.pem")
    with ServedApp(APP, is_timed=True, pem=pem) as served:
        held = connected(served, 3 * CONNECTIONS)
        for each in held[::2]:
            with contextlib.suppress(OSError):  # closed meanwhile
                each.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        try:
            for _ in range(3):
                [mine] = connected(served, 1, OTHER)
                with context.wrap_socket(mine, server_hostname="localhost") as connection:
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nwho: me\r\nConnection: close\r\n\r\n")
                    assert b" 200 " in read_all(connection)  # type: ignore[arg-type]
            assert served.budget.strangers <= CONNECTIONS // 8
        finally:
            closed(held)
        wait_until(lambda: len(served.budget) == 0, "all were given back")


def test_what_is_closed_is_given_back() -> None:
    with ServedApp(APP, is_timed=False) as served:
        for _ in range(3):
            held = connected(served, CONNECTIONS)
            for each in held:
                with contextlib.suppress(OSError):  # it had to give way
                    each.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nwho: me\r\n\r\n")
            closed(held)
            wait_until(lambda: len(served.budget) == 0)
            assert served.budget._strangers == served.budget._authenticated == {}
