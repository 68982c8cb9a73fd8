"""A flood of 5,000 connections from one address, and what an authenticated client on another one waits for.

The flood (benchmarks.flood_load) is a process of its own: 5,000 at once, and then 1,000 a second of those that the
server has closed; all share two cores.
The client asks a hundred times, on new connections and on one that it keeps, and monitoring asks for the health of the
process from the flood's own address.
"""

import http.client
import json
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from benchmarks.console import write_log
from benchmarks.measurement import percentile
from benchmarks.report import Row
from tests.support.kafka.server import free_port
from tests.support.nodes.certificates import Authority
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.logins import PASSWORD, write_logins

CONNECTIONS, ASKED, P99_MS = 5_000, 100, 100.0
_TOKEN = "a-token-of-the-benchmark"
_OTHER = "127.0.0.2"
_QUESTION = json.dumps(
    {"subject": {"type": "User", "id": "team-7"}, "action": {"name": "READ"}, "resource": {"type": "topic", "id": "t"}}
)


@frozen(kw_only=True)
class Server:
    """A server in a process of its own."""

    what: str
    port: int
    health: int
    """The port of --health-listen."""
    tls: ssl.SSLContext | None
    """What a client trusts."""
    method: str
    path: str
    body: str | None
    headers: Mapping[str, str]

    def connect(self, source: str) -> http.client.HTTPConnection:
        """Return a connection from an address."""
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS, source_address=(source, 0))
        return http.client.HTTPSConnection(
            "localhost", self.port, timeout=SECONDS, source_address=(source, 0), context=self.tls
        )

    def ask(self, connection: http.client.HTTPConnection, headers: Mapping[str, str] | None = None) -> int:
        """Return the status of an answer, which was read."""
        given = self.headers if headers is None else headers
        connection.request(self.method, self.path, self.body, dict(given))
        reply = connection.getresponse()
        reply.read()
        return reply.status


@contextmanager
def _process(*command: object) -> Iterator[None]:
    words = [sys.executable, "-m", "aclog", *map(str, command)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@contextmanager
def pdp(scratch: Path, log: Path, *, pem: Path | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Serve a decision point to those who have a token."""
    tokens = scratch / "tokens"
    tokens.write_text(f"{_TOKEN}\n", encoding="utf-8")
    tokens.chmod(0o600)
    port, health = free_port(), free_port()
    flags = () if pem is None else ("--tls-cert", pem, "--tls-key", pem)
    listen = ("--listen", f"127.0.0.1:{port}", "--health-listen", f"127.0.0.1:{health}")
    with _process("pdp", "--log", log, "--tokens", tokens, *listen, *flags):
        server = Server(
            what="aclog pdp" if pem is None else "aclog pdp with TLS",
            port=port,
            health=health,
            tls=tls,
            method="POST",
            path="/access/v1/evaluation",
            body=_QUESTION,
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {_TOKEN}"},
        )
        wait_until(lambda: _probe(server, "/readyz") == 200)
        yield server


@contextmanager
def console(scratch: Path, log: Path) -> Iterator[Server]:
    """Serve a console to those who log in."""
    port, health = free_port(), free_port()
    logins = write_logins(scratch / "logins", "admin")
    listen = ("--listen", f"127.0.0.1:{port}", "--health-listen", f"127.0.0.1:{health}")
    with _process("console", "--log", log, "--login", logins, "--super-users", "User:admin", *listen):
        found = Server(
            what="aclog console", port=port, health=health, tls=None, method="GET", path="/principal?name=User:team-7",
            body=None, headers={},
        )  # fmt: skip
        wait_until(lambda: _probe(found, "/readyz") == 200)
        cookie = log_in(port, "User:admin")
        wait_until(lambda: _is_at_rest(port, cookie))
        yield Server(
            what=found.what, port=port, health=health, tls=None, method="GET", path=found.path, body=None,
            headers={"Cookie": cookie},
        )  # fmt: skip


def _is_at_rest(port: int, cookie: str) -> bool:
    """Return whether a console has read the past and has looked for findings."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        for path, text in (("/findings", b"being scanned"), ("/changes", b"still being read")):
            connection.request("GET", path, headers={"Cookie": cookie})
            reply = connection.getresponse()
            if text in reply.read() or reply.status != 200:
                return False
    finally:
        connection.close()
    return True


def log_in(port: int, name: str) -> str:
    """Return the cookies of a login at a console on this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", "/login")
    reply = connection.getresponse()
    page = reply.read().decode()
    before = _cookies(reply)
    token = page.partition('name="csrf_token" value="')[2].partition('"')[0]
    form = urllib.parse.urlencode({"csrf_token": token, "name": name, "password": PASSWORD})
    headers = {
        "Cookie": before,
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{port}",
        "Sec-Fetch-Site": "same-origin",
    }
    connection.request("POST", "/login", form, headers)
    reply = connection.getresponse()
    reply.read()
    if reply.status != 303:
        raise AssertionError(f"{name} cannot log in: {reply.status}")
    connection.close()
    return _cookies(reply)


def _cookies(reply: http.client.HTTPResponse) -> str:
    return "; ".join(each.partition(";")[0] for each in reply.msg.get_all("Set-Cookie", []))


def _probe(server: Server, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.health, timeout=SECONDS)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
    except OSError:
        return 0
    else:
        return reply.status
    finally:
        connection.close()


@contextmanager
def flooding(port: int, kind: str, connections: int) -> Iterator[list[int]]:
    """Flood a port during the `with`; at its end the list has how many connections were opened."""
    command = [sys.executable, "-m", "benchmarks.flood_load", "--port", str(port), "--kind", kind]
    opened = list[int]()
    with subprocess.Popen(
        [*command, "--connections", str(connections)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield opened
        finally:
            process.stdin.close()
            opened.append(int(process.stdout.readline()))


def _timed(times: int, ask: Callable[[], int]) -> tuple[int, list[float]]:
    """Return how many of so many questions were answered, and what each took, in ms."""
    answered, took = 0, list[float]()
    for _ in range(times):
        begun = time.monotonic()
        with suppress(OSError, http.client.HTTPException):
            answered += ask() == 200
        took.append(1000 * (time.monotonic() - begun))
    return answered, took


def _rows(server: Server, kind: str, connections: int) -> Iterator[Row]:
    def anew() -> int:
        connection = server.connect(_OTHER)
        try:
            return server.ask(connection)
        finally:
            connection.close()

    _, calm = _timed(ASKED, anew)
    with flooding(server.port, kind, connections) as opened:
        kept = server.connect(_OTHER)
        found = {
            "on new connections": _timed(ASKED, anew),
            "on one connection": _timed(ASKED, lambda: server.ask(kept)),
            "health, at --health-listen": _timed(ASKED, lambda: _probe(server, "/healthz")),
        }
        kept.close()
    about = f"{server.what}, {connections:,} {kind}"
    yield Row(what=f"{server.what}, without a flood: on new connections: p99", ours=percentile(calm, 0.99), unit="ms")
    for how, (answered, took) in found.items():
        yield Row(
            what=f"{about}: {how}: answered", ours=answered, unit=f"of {ASKED}", target=ASKED, more_is_better=True
        )
        yield Row(what=f"{about}: {how}: p99", ours=percentile(took, 0.99), unit="ms", target=P99_MS)
    yield Row(what=f"{about}: opened by the flood", ours=opened[0], unit="connections")


def run(scratch: Path, connections: int) -> Iterator[Row]:
    """Flood each kind of server in each way."""
    log = write_log(scratch / "log", 10_000)
    authority = Authority.make()
    tls = ssl.create_default_context(cafile=authority.write_pem(scratch / "root.pem"))
    pem = authority.issue("server").write_pem(scratch / "server.pem")
    with pdp(scratch, log) as server:
        for kind in ("idle", "begun", "asking"):
            yield from _rows(server, kind, connections)
    with pdp(scratch, log, pem=pem, tls=tls) as server:
        for kind in ("idle", "hello"):
            yield from _rows(server, kind, connections)
    with console(scratch, log) as server:
        for kind in ("idle", "asking"):
            yield from _rows(server, kind, connections)
