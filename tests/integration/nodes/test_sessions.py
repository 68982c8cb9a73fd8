"""Sessions that end (KIP-368): Kafka's own client logs in again in time, and one that does not is let go."""

import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.server import AdminClient
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports, password, server_properties
from tests.support.nodes.wire_client import ClosedError, RefusedError, WireClient

SESSION_SECONDS = 1.5
PATIENCE_SECONDS = 60.0
METADATA = 3


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


@pytest.mark.timeout(120)
def test_a_java_client_logs_in_again_on_its_connection(node: AclogNode) -> None:
    with AdminClient(node.ports.broker) as client:
        end = time.monotonic() + PATIENCE_SECONDS
        while metric(node, "aclog_authentications_total") < 4:
            assert time.monotonic() < end
            assert client.acls() == []
            time.sleep(0.05)
    assert metric(node, "aclog_authentication_failures_total") == 0
    assert metric(node, "aclog_connections_closed_total", 'reason="expired"') == 0


def test_a_client_that_does_not_is_let_go_at_its_next_request(node: AclogNode) -> None:
    with WireClient(node.ports.broker) as client:
        client.plain("alice", password("alice"))
        assert client.session_lifetime_ms == SESSION_SECONDS * 1000
        assert client.ask(METADATA, 1, topics=()).controller_id == 1
        time.sleep(SESSION_SECONDS + 0.1)
        with pytest.raises(ClosedError):
            client.ask(METADATA, 1, topics=())
    assert metric(node, "aclog_connections_closed_total", 'reason="expired"') == 1
    with WireClient(node.ports.broker) as client:
        client.plain("alice", password("alice"))
        time.sleep(SESSION_SECONDS + 0.1)
        client.plain("alice", password("alice"))
        assert client.ask(METADATA, 1, topics=()).controller_id == 1, "also late, as in Kafka"
    with WireClient(node.ports.broker) as client:
        client.scram("SCRAM-SHA-256", "admin", "admin-secret")
        assert client.session_lifetime_ms == 0
        with pytest.raises(RefusedError, match="illegal_sasl_state"):  # what a real Kafka 4.3.1 answers there
            client.scram("SCRAM-SHA-256", "admin", "admin-secret")
