"""Sessions that end (KIP-368): Kafka's own client logs in again in time, and one that does not is let go."""

import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.kafka.server import AdminClient
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports, password, server_properties
from tests.support.nodes.wire_client import ClosedError, RefusedError, WireClient
from tests.support.processes.waiting import wait_until

SESSION_SECONDS = 1.5
METADATA = 3
ACCEPTED = ("aclog_connections_accepted_total", 'listener="SASL_PLAINTEXT"')
EXPIRED = ("aclog_connections_closed_total", 'reason="expired"')


@pytest.fixture
def node(tmp_path: Path) -> Iterator[AclogNode]:
    ports = Ports.free()
    key = "listener.name.sasl_plaintext.plain.connections.max.reauth.ms"
    properties = f"{server_properties(ports)}{key}={round(SESSION_SECONDS * 1000)}\n"
    with AclogNode(tmp_path, ports, properties).format() as started:
        yield started


def metric(node: AclogNode, name: str, label: str = "") -> float:
    """The sum of a metric's values over all its labels, or those with one."""
    with urllib.request.urlopen(f"http://127.0.0.1:{node.ports.http}/metrics") as answer:
        text = answer.read().decode()
    return sum(float(value) for value in re.findall(rf"^{name}{{.*{label}.*}} (\S+)$", text, re.MULTILINE))


def test_a_java_client_logs_in_again_on_its_connection(node: AclogNode) -> None:
    """Twice while no session expires: on a busy machine a request may come too late, and the count begins again."""
    with AdminClient(node.ports.broker) as client:
        connections, logins = (0.0, 0.0), 0.0

        def logged_in_twice() -> bool:
            nonlocal connections, logins
            assert client.acls() == []
            now = metric(node, "aclog_authentications_total")
            seen = (
                metric(node, "aclog_connections_accepted_total", 'listener="SASL_PLAINTEXT"'),
                metric(node, *EXPIRED),
            )
            if seen != connections:
                connections, logins = seen, metric(node, "aclog_authentications_total")
            return now >= logins + 2

        wait_until(logged_in_twice, "two logins on connections that stand", every=0.05)
    assert metric(node, "aclog_authentication_failures_total") == 0


def test_a_client_that_does_not_is_let_go_at_its_next_request(node: AclogNode) -> None:
    wait_until(lambda: answers_until_it_is_let_go(node) > 0, "an answer within a session")
    wait_until(lambda: answers_after_a_late_login(node), "an answer after a late login, as in Kafka")
    with WireClient(node.ports.broker) as client:
        client.scram("SCRAM-SHA-256", "admin", "admin-secret")
        assert client.session_lifetime_ms == 0
        with pytest.raises(RefusedError, match="illegal_sasl_state"):  # what a real Kafka 4.3.1 answers there
            client.scram("SCRAM-SHA-256", "admin", "admin-secret")


def answers_until_it_is_let_go(node: AclogNode) -> int:
    """How many requests of one session are answered: none where the machine is so busy that it ends before."""
    begun, answers, expired = time.monotonic(), 0, metric(node, *EXPIRED)
    with WireClient(node.ports.broker) as client:
        client.plain("alice", password("alice"))
        assert client.session_lifetime_ms == SESSION_SECONDS * 1000
        with suppress(ClosedError):
            while True:
                assert client.ask(METADATA, 1, topics=()).controller_id == 1
                answers += 1
                time.sleep(0.05)
    assert time.monotonic() - begun >= SESSION_SECONDS, "not before the end of the session"
    assert metric(node, *EXPIRED) == expired + 1
    return answers


def answers_after_a_late_login(node: AclogNode) -> bool:
    """Whether a client that logs in again after the end of its session is answered: not if the next one ends before."""
    with WireClient(node.ports.broker) as client:
        client.plain("alice", password("alice"))
        time.sleep(SESSION_SECONDS)
        client.plain("alice", password("alice"))
        with suppress(ClosedError):
            return bool(client.ask(METADATA, 1, topics=()).controller_id == 1)
    return False
