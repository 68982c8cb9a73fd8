"""`aclog pdp` as a process: over HTTPS, with tokens, on a log that changes; and what it refuses."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from tests.support.cli.command import aclog
from tests.support.kafka.server import free_port
from tests.support.nodes.certificates import Authority
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.served import post_bytes

TOKEN = "a-token-of-a-proxy"
QUESTION = {
    "subject": {"type": "User", "id": "a"}, "action": {"name": "READ"}, "resource": {"type": "topic", "id": "t"},
}  # fmt: skip
RULE = json.dumps({
    "resourceType": "TOPIC", "resourceName": "t", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
})  # fmt: skip


class Served:
    """A decision point in a process of its own, until the end of the `with`."""

    def __init__(self, *flags: object, context: ssl.SSLContext | None = None):
        self.port, self.context = free_port(), context
        listen = ("--listen", f"127.0.0.1:{self.port}")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aclog", "pdp", *map(str, flags), *listen],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.scheme = "http" if context is None else "https"

    def __enter__(self):
        wait_until(lambda: self.ask("/healthz")[0] == 200)
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.end()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.said = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode in {0, -signal.SIGTERM}, self.said

    def ask(
        self, path: str, body: object = None, token: str | None = None, host: str | None = None
    ) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        headers |= {"Host": host} if host else {}
        request = urllib.request.Request(f"{self.scheme}://127.0.0.1:{self.port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS, context=self.context) as reply:
                return reply.status, reply.read()
        except HTTPError as error:
            return error.code, error.read()
        except (URLError, OSError):
            assert self.process.poll() is None, self.process.communicate()
            return 0, b""

    def decision(self, token: str | None = None, host: str | None = None) -> object:
        status, body = self.ask("/access/v1/evaluation", QUESTION, token, host)
        return json.loads(body)["decision"] if status == 200 else status


def add(log: Path) -> None:
    aclog("acls", "add", "--log", log, "--allow-principal", "User:a", "--topic", "t", "--operation", "READ").ok()


@pytest.fixture
def log(tmp_path):
    (tmp_path / "none").write_text("")
    aclog("import", tmp_path / "none", "--log", tmp_path / "log").ok()
    return tmp_path / "log"


@pytest.mark.slow(3)
@pytest.mark.tier("test")
def test_half_a_request_does_not_hold_up_its_end(log):
    """Neither is it an error: the end says nothing."""
    halves = [b"POST /acc", post_bytes("/access/v1/evaluation", QUESTION)[:-1], post_bytes("/none", b"12")[:-1]]
    with Served("--log", log) as served, ExitStack() as stack:
        for sent in halves:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS))
            connection.sendall(sent)
        wait_until(lambda: served.ask("/healthz")[0] == 200)
        served.end()
    assert served.said[1] == ""


@pytest.mark.slow(4)
@pytest.mark.tier("test")
def test_it_follows_its_log_reads_its_files_again_and_ends_cleanly(log, tmp_path):
    mapping, tokens, audit = tmp_path / "mapping.yaml", tmp_path / "tokens", tmp_path / "audit"
    mapping.write_text("{}")
    tokens.write_text(f"# of the proxy\n{TOKEN}\n")
    tokens.chmod(0o600)
    events = tmp_path / "events"
    files = ("--tokens", tokens, "--audit", audit, "--decision-log", events)
    with Served("--log", log, "--mapping", mapping, *files) as served:
        wait_until(lambda: served.ask("/readyz")[0] == 200)
        assert served.decision() == 401
        assert served.decision(TOKEN) is False
        add(log)
        wait_until(lambda: served.decision(TOKEN) is True)
        mapping.write_text("subject: {user: User}")
        served.process.send_signal(signal.SIGHUP)
        wait_until(lambda: served.decision(TOKEN) is False)
        audit.rename(tmp_path / "audit.1")
        mapping.write_text("subject: [")
        served.process.send_signal(signal.SIGHUP)
        mapping.write_text("{}")
        wait_until(lambda: served.process.send_signal(signal.SIGHUP) or served.decision(TOKEN) is True)
        assert json.loads(audit.read_text().splitlines()[-1])["answer"]["decision"] is True, "the file was opened again"
        assert served.ask("/v1/data/kafka/authz/allow", {"input": QUESTION}, TOKEN)[0] == 200
        assert json.loads(events.read_text())["requested_by"].startswith("127.0.0.1:")
        tokens.write_text(f"{TOKEN}-2\n")
        wait_until(lambda: served.process.send_signal(signal.SIGHUP) or served.decision(TOKEN) == 401)
        assert served.decision(f"{TOKEN}-2") is True
        tokens.unlink()
        served.process.send_signal(signal.SIGHUP)
        assert served.decision(f"{TOKEN}-2") is True, "what cannot be read again stays"
        told = json.loads(served.ask("/.well-known/authzen-configuration")[1])
        assert told.pop("policy_decision_point") == f"http://127.0.0.1:{served.port}"
        assert all(url.startswith(f"http://127.0.0.1:{served.port}/access/v1/") for url in told.values())
        assert TOKEN.encode() not in served.ask("/metrics", None, f"{TOKEN}-2")[1]
    written = [path.read_text() for path in (audit, events, tmp_path / "audit.1")]
    assert TOKEN not in "".join([*served.said, *written])
    assert all(written)


@pytest.mark.slow(3)
@pytest.mark.tier("test")
def test_it_speaks_tls_and_asks_clients_for_certificates(log, tmp_path):
    authority = Authority.make()
    root = authority.write_pem(tmp_path / "root.pem")
    server, client = (authority.issue(name).write_pem(tmp_path / f"{name}.pem") for name in ("server", "client"))
    add(log)
    context = ssl.create_default_context(cafile=root)
    context.load_cert_chain(client)
    flags = ("--tls-cert", server, "--tls-key", server)
    with Served("--log", log, *flags, "--tls-client-ca", root, context=context) as served:
        wait_until(lambda: served.decision() is True)
        served.context = ssl.create_default_context(cafile=root)
        assert served.ask("/healthz") == (0, b""), "no certificate, no answer"
        served.context = context


@pytest.mark.slow(4)
def test_without_tokens_it_answers_only_under_this_machines_names_and_its_own(log, tmp_path):
    add(log)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    with Served("--log", log, "--base-url", "http://pdp.example") as served:
        wait_until(lambda: served.decision() is True)
        assert served.decision(host="evil.example") == 421
        assert served.ask("/.well-known/authzen-configuration", host=f"evil.example:{served.port}")[0] == 421
        assert served.decision(host="localhost") is True
        assert served.decision(host="pdp.example:1") is True
        assert served.ask("/ext_authz/x", host="evil.example")[0] == 403, "Envoy's host is its client's"
    with Served("--log", log, "--tokens", tokens) as served:
        wait_until(lambda: served.decision(TOKEN) is True)
        assert served.decision(TOKEN, host="evil.example") is True
        assert served.decision(host="evil.example") == 401


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--listen", "0.0.0.0:8180"), "others can reach it, and no client needs a secret"),
        (("--listen", "nowhere"), "--listen"),
        (("--listen", "127.0.0.1:0"), "--listen"),
        (("--max-age", "nan"), "expected seconds, more than 0"),
        (("--max-age", "0"), "expected seconds, more than 0"),
        (("--tls-cert", "x"), "expected --tls-cert and --tls-key together"),
        (("--tls-client-ca", "x"), "expected --tls-cert and --tls-key"),
        (("--as-of", "0"), "use context.as_of of a request"),
        (("--mapping", "none.yaml"), "no such file"),
        (("--tokens", "open"), "chmod 600"),
        (("--tokens", "short"), "can be guessed"),
        (("--tokens", "none"), "no token in it"),
        (("--tokens", "binary"), "binary: not UTF-8"),
    ],
)
def test_what_would_be_unsafe_or_unclear_is_refused(log, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    for name, text, mode in (
        ("open", TOKEN.encode(), 0o644), ("short", b"x\n", 0o600), ("none", b"# x\n", 0o600),
        ("binary", TOKEN.encode() + b"\xff", 0o600),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(text)
        os.chmod(tmp_path / name, mode)  # noqa: PTH101
    result = aclog("pdp", "--log", log, *flags)
    assert result.code == 2
    assert said in result.complaint


def test_an_address_in_use_is_said_so(log):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = aclog("pdp", "--log", log, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.code == 2
    assert "Address already in use" in result.complaint


def test_an_address_for_health_that_is_in_use_is_said_so(log):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        health = f"127.0.0.1:{taken.getsockname()[1]}"
        result = aclog("pdp", "--log", log, "--listen", f"127.0.0.1:{free_port()}", "--health-listen", health)
    assert result.code == 2
    assert f"--health-listen: cannot listen on {health}: " in result.complaint
    assert "address already in use" in result.complaint
    assert "decision point at" not in result.out


def at(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.slow(3)
@pytest.mark.tier("test")
def test_health_is_asked_outside_of_all_budgets_and_without_a_token(log, tmp_path):
    tokens, health = tmp_path / "tokens", free_port()
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    with Served("--log", log, "--tokens", tokens, "--health-listen", f"127.0.0.1:{health}") as served:
        wait_until(lambda: at(health, "/readyz") == (200, "ok\n"))
        held = [socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS) for _ in range(600)]
        try:
            assert at(health, "/healthz") == (200, "ok\n")
            assert served.decision(TOKEN) is False
            assert served.ask("/healthz")[0] == 200
            assert at(health, "/access/v1/evaluation")[0] == 404
            metrics = at(health, "/metrics")[1]
        finally:
            for each in held:
                each.close()
        lines = [line.rpartition(" ") for line in metrics.splitlines() if not line.startswith("#")]
        found = {name: float(value) for name, _, value in lines}
        assert found['aclog_web_connections_refused_total{reason="network"}'] >= 600 - 125
        assert found['aclog_web_connections{kind="unauthenticated"}'] <= 125
        assert 'aclog_pdp_decisions_total{decision="false"}' in found


@pytest.mark.slow(4)
def test_a_source_that_is_lost_decides_nothing_any_more(log):
    add(log)
    with Served("--log", log, "--max-age", "0.5") as served:
        wait_until(lambda: served.decision() is True)
        log.rename(log.with_name("away"))
        wait_until(lambda: served.decision() == 503)
        past = QUESTION | {"context": {"as_of": 0}}
        assert served.ask("/access/v1/evaluation", past)[0] == 503
        assert served.ask("/readyz")[0] == 503
        assert served.ask("/healthz")[0] == 200
        log.with_name("away").rename(log)
        wait_until(lambda: served.decision() is True)


@pytest.mark.slow(4)
def test_files_that_are_read_again_under_load_lose_no_request(log, tmp_path):
    add(log)
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("{}")
    with Served("--log", log, "--mapping", mapping, "--audit", tmp_path / "audit") as served:
        wait_until(lambda: served.decision() is True)
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(served.decision) for _ in range(400)]
            while not all(each.done() for each in asked):
                served.process.send_signal(signal.SIGHUP)
                time.sleep(0.01)
            assert {each.result() for each in asked} == {True}
        assert len((tmp_path / "audit").read_text().splitlines()) >= 401


@pytest.mark.slow(4)
def test_rules_and_certificates_in_files_are_read_again(tmp_path):
    authorities = [Authority.make(), Authority.make()]
    roots = [each.write_pem(tmp_path / f"root-{number}.pem") for number, each in enumerate(authorities)]
    old, new = [ssl.create_default_context(cafile=root) for root in roots]
    server, rules = tmp_path / "server.pem", tmp_path / "rules.jsonl"
    authorities[0].issue("server").write_pem(server)
    rules.write_text("")
    with Served("--acls", rules, "--tls-cert", server, "--tls-key", server, context=old) as served:
        wait_until(lambda: served.decision() is False)
        rules.write_text(RULE)
        authorities[1].issue("server").write_pem(server)
        served.process.send_signal(signal.SIGHUP)
        assert "were read again" in served.process.stderr.readline()
        served.context = new
        wait_until(lambda: served.decision() is True)
        for path, text in ((server, "-----BEGIN CERTIFICATE-----"), (rules, "{")):
            kept = path.read_text()
            path.write_text(text)
            served.process.send_signal(signal.SIGHUP)
            assert "not read again" in served.process.stderr.readline()
            assert served.decision() is True
            path.write_text(kept)


@pytest.mark.slow(2)
def test_names_that_cannot_be_read_are_not_left_out(log, tmp_path):
    topics = tmp_path / "topics"
    topics.write_text("t\nu\n")
    add(log)
    body = {**QUESTION, "resource": {"type": "topic"}}
    with Served("--log", log, "--topics", topics) as served:
        wait_until(lambda: served.decision() is True)
        status, answer = served.ask("/access/v1/search/resource", body)
        assert (status, json.loads(answer)["results"]) == (200, [{"type": "topic", "id": "t"}])
        topics.unlink()
        assert served.ask("/access/v1/search/resource", body)[0] == 503
        assert served.decision() is True
