"""Delegation tokens on running nodes: as on a real Kafka 4.3.1, without its lag, and on every node with the secret."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import free_port
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.cluster import Cluster
from tests.support.nodes.server_properties import Ports
from tests.support.nodes.wire_client import RefusedError, WireClient
from tests.support.processes.node_zygote import shared_zygote
from tests.support.processes.waiting import wait_until
from tests.support.tokens import script as token_script
from tests.support.tokens import tools as token_tools
from tests.support.tokens.client import SECRET, TokenClient, outcome, token_password

pytestmark = pytest.mark.slow(7)

REFUSED = "sasl_authentication_failed: Authentication failed during authentication due to invalid credentials"
METADATA = 3


def settled_at_once(client: TokenClient) -> TokenClient:
    """The same, without the waits for a real Kafka's caches."""
    client.settle = lambda: None
    return client


@pytest.fixture
def node(tmp_path: Path) -> Iterator[AclogNode]:
    ports = Ports.free()
    properties = token_script.token_properties(ports, free_port(), delegation_token_expiry_check_interval_ms="1000")
    with AclogNode(tmp_path, ports, properties).format() as started:
        yield started


def test_over_the_wire_it_is_as_on_kafka(tmp_path: Path) -> None:
    found = list(token_script.run(AclogNode, tmp_path))
    texts = token_script.differences(token_script.recorded(), found)
    assert not texts, "\n".join(texts)


def test_kafkas_tools_print_what_they_print_on_kafka(tmp_path: Path) -> None:
    """kafka-delegation-tokens through a token's whole life, and Kafka's own client logged in by it."""
    texts = token_script.differences(token_tools.recorded(), token_tools.run(AclogNode, tmp_path))
    assert not texts, "\n".join(texts)


def test_there_is_no_lag(node: AclogNode) -> None:
    """What was answered holds at once: Kafka's caches may not have seen it yet."""
    with TokenClient(node.ports, 0) as client:
        settled_at_once(client)
        for number in range(20):
            name = str(number)
            assert client.create("alice", name)[0] == 0
            by = client.log_in(name)
            assert client.renew("alice", name, 600_000)[0] == 0
            assert client.describe("", None, by=by) == [64]
            assert client.expire("alice", name)[0] == 0
            assert is_refused(client, name)
            assert client.expire("alice", name)[0] == 62


def test_an_expired_token_lets_nobody_in_and_is_swept(node: AclogNode) -> None:
    """Kafka lets it in, and closes at the next request; here the login is refused."""
    with TokenClient(node.ports, 0) as client:
        settled_at_once(client)
        client.create("alice", "short")
        client.create("alice", "long")
        client.log_in("short")
        assert client.expire("alice", "short", 1000)[0] == 0
        wait_until(lambda: is_refused(client, "short"), "the end of the token", every=0.05)
        wait_until(lambda: [row[0] for row in client.describe("alice", None)[1:]] == ["long"], "the sweep")
        client.log_in("long")
        assert "removed 1 expired delegation tokens" in node.output


def test_tokens_outlive_the_node_and_secrets_are_not_told(node: AclogNode) -> None:
    with TokenClient(node.ports, 0) as client:
        settled_at_once(client).create("alice", "kept")
        ids = client.ids
    node.stop()
    node.start()
    with TokenClient(node.ports, 0) as client:
        settled_at_once(client).ids = ids
        client.log_in("kept", "SCRAM-SHA-512")
        assert client.renew("alice", "kept")[0] == 0
    told = node.output + b"".join(path.read_bytes() for path in node.log_directory.glob("*.log")).decode("latin-1")
    assert SECRET not in told
    assert token_password(ids["kept"]) not in told
    assert [path for path in node.log_directory.glob("*.log") if path.stat().st_mode & 0o077] == []


def test_every_broker_with_the_secret_lets_a_token_in(tmp_path: Path) -> None:
    """Made through one broker, by an Envelope; used on another, as the owner, but not to make more."""
    cluster = Cluster(tmp_path, shared_zygote(), delegation_token_secret_key=SECRET)
    first, second = (cluster.add_broker(delegation_token_secret_key=SECRET) for _ in range(2))
    third = cluster.add_broker()
    with cluster:
        cluster.start()
        with TokenClient(first.ports, 0) as client:
            made = settled_at_once(client).create("alice", "everywhere")
            assert made[:5] == [0, "User", "alice", "User", "alice"]
            client.log_in("everywhere")  # where it was made it is good at once
            assert client.renew("alice", "everywhere")[0] == 0
            ids = client.ids
        with TokenClient(second.ports, 0) as client:
            settled_at_once(client).ids = ids
            by = logged_in_at_last(client, "everywhere")
            assert second.ports.broker in {each.port for each in by.ask(METADATA, 1, topics=()).brokers}
            assert client.create("", by=by)[0] == 64
            assert client.describe("alice", None)[1][:5] == ["everywhere", "User", "alice", "User", "alice"]
        with TokenClient(third.ports, 0) as client:
            settled_at_once(client).ids = ids
            assert client.describe("alice", None) == [61], "it has no secret"
            assert "not enabled" in outcome(lambda: client.log_in("everywhere"))
            assert client.renew("alice", "everywhere")[0] == 0, "the controller has one"


def test_a_token_is_good_on_a_real_kafka_with_the_secret_and_back(tmp_path: Path) -> None:
    """Made by aclog, used and renewed on Kafka on the same directory, which makes another; both are good here again."""
    ports = Ports.free()
    properties = token_script.token_properties(ports, free_port())
    with AclogNode(tmp_path, ports, properties).format(), TokenClient(ports, 0) as client:
        settled_at_once(client).create("alice", "ours", renewers=(("User", "bob"),))
        ids = client.ids
    with RealNode(tmp_path, ports, properties), TokenClient(ports, 0) as client:
        client.ids = ids
        client.log_in("ours")
        assert client.renew("bob", "ours", 600_000) == [0, "in 10 min"]
        assert client.create("alice", "theirs")[0] == 0
    with AclogNode(tmp_path, ports, properties), TokenClient(ports, 0) as client:
        settled_at_once(client).ids = ids
        for name in ("ours", "theirs"):
            client.log_in(name, "SCRAM-SHA-512")
        found = client.describe("alice", None)[1:]
        assert [(token[0], token[6]) for token in found] == [("ours", "in 10 min"), ("theirs", "in 60 min")]
        assert client.expire("alice", "theirs")[0] == 0


def is_refused(client: TokenClient, token: str) -> bool:
    """Whether a login by the token is refused."""
    return str(outcome(lambda: client.log_in(token))).startswith(REFUSED)


def logged_in_at_last(client: TokenClient, token: str) -> WireClient:
    """A login on a broker that may not have seen the token yet."""

    def log_in() -> WireClient | None:
        try:
            return client.log_in(token)
        except RefusedError:
            return None

    connection = wait_until(log_in, f"a login by {token}")
    assert connection is not None
    return connection
