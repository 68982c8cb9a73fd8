"""Real clients on the secured listeners of `aclog serve`: who comes in, as whom, and what the others are told."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.server import free_port
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.aclog_node import AclogNode, NodeError
from tests.support.nodes.secured_clients import Java, Wire, confluent_says, metrics, samples
from tests.support.nodes.secured_node import PASSWORDS, SECRET, STORE, Estate, SecuredNode, broker_properties
from tests.support.nodes.server_properties import Ports
from tests.support.nodes.wire_client import ClosedError, nested
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.slow(4)

CREATE_ACLS, DESCRIBE_ACLS, API_VERSIONS = 30, 29, 18
FAILURES = "aclog_authentication_failures_total"


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """The files for all; `changed.p12` is one test's own."""
    return Estate.make(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, estate: Estate) -> Iterator[SecuredNode]:
    """One node for all; what it printed and counted tells no secret, and none of its connections failed inside."""
    with SecuredNode(tmp_path_factory.mktemp("secured"), estate).format() as running:
        yield running
        told = metrics(running)
    told += running.output
    assert SECRET not in told
    assert "PRIVATE KEY" not in told
    assert "Traceback" not in told


REFUSED = "SslAuthenticationException"
DENIED = "ClusterAuthorizationException"
OFFERED = "not enabled in the server, enabled mechanisms are"
CASES = (
    ("OPEN", {}, DENIED),
    ("OPEN", {"trusted": "strange"}, REFUSED),
    ("ASKED", {}, DENIED),
    ("ASKED", {"key": "root"}, ""),
    ("ASKED", {"key": "alice"}, DENIED),
    ("ASKED", {"key": "mallory"}, REFUSED),
    ("ASKED", {"key": "expired"}, REFUSED),
    ("ASKED", {"extra": "ssl.enabled.protocols=TLSv1.3\n"}, REFUSED),
    ("MUST", {}, REFUSED),
    ("MUST", {"key": "root"}, ""),
    ("MUST", {"key": "alice"}, DENIED),
    ("MUST", {"key": "mallory"}, REFUSED),
    ("MUST", {"key": "expired"}, REFUSED),
    ("MUST", {"key": "forged"}, REFUSED),
    ("MUST", {"key": "root", "extra": "ssl.enabled.protocols=TLSv1.2\n"}, REFUSED),
    ("BASIC", {"user": "admin"}, ""),
    ("BASIC", {"user": "bob"}, DENIED),
    ("BASIC", {"user": "admin", "password": "no"}, "Authentication failed: Invalid username or password"),
    ("BASIC", {"user": "carol", "mechanism": "SCRAM-SHA-512"}, f"{OFFERED} [PLAIN]"),
    ("SCRAM", {"user": "admin", "mechanism": "SCRAM-SHA-256"}, ""),
    ("SCRAM", {"user": "carol", "mechanism": "SCRAM-SHA-512"}, DENIED),
    ("SCRAM", {"user": "carol", "mechanism": "SCRAM-SHA-256"}, "invalid credentials with SASL mechanism SCRAM-SHA-256"),
    (
        "SCRAM",
        {"user": "admin", "mechanism": "SCRAM-SHA-256", "password": "no"},
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    ),
    ("SCRAM", {"user": "admin"}, f"{OFFERED} [SCRAM-SHA-256, SCRAM-SHA-512]"),
    ("CONTROLLER", {"user": "admin"}, ""),
    ("CONTROLLER", {"user": "node", "mechanism": "SCRAM-SHA-256"}, ""),
    ("CONTROLLER", {"user": "bob"}, DENIED),
    ("CONTROLLER", {"user": "alice"}, "Invalid username or password"),
)
"""A listener, a client of Kafka's own, and what kafka-acls --list tells of; nothing: it lists the rules."""


@pytest.mark.tier("test")
def test_kafkas_tools_come_in_or_hear_why_not(node: SecuredNode) -> None:
    wrong = []
    java = Java(ToolPipe(), node)
    for listener, client, expected in CASES:
        before, standing = sum(samples(node, FAILURES).values()), connections(node, listener)
        printed = java.run(listener, "--list", **client)
        wait_until(lambda: connections(node, listener) <= standing, f"the end of those to {listener}")  # noqa: B023
        failures = sum(samples(node, FAILURES).values()) - before
        refused = expected not in ("", DENIED)
        if expected not in printed.out or printed.code != bool(expected) or not refused <= failures <= 2 * refused:
            wrong.append((listener, client, printed.code, printed.out[:300], failures))
    users_and_rules(java, node)
    assert not wrong, wrong


def connections(node: SecuredNode, listener: str) -> float:
    """How many connections to a listener are open."""
    line = re.search(rf'^aclog_connections{{listener="{listener}"}} (\S+)$', metrics(node), re.MULTILINE)
    assert line is not None
    return float(line[1])


def users_and_rules(java: Java, node: SecuredNode) -> None:
    """Users that kafka-configs makes log in, and a rule for a certificate's name holds for who shows it."""
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        credential = f"{mechanism}=[iterations=4096,password={PASSWORDS['dora']}]"
        words = ("--alter", "--entity-type", "users", "--entity-name", "dora", "--add-config", credential)
        made = java.run("BASIC", *words, tool="configs", user="admin")
        assert (made.code, made.err) == (0, ""), made
    who = ("User:CN=Alice,OU=Users", "User:alice", "User:dora")
    allowed = [word for name in who for word in ("--allow-principal", name)]
    added = java.run("MUST", "--add", *allowed, "--operation", "Describe", "--cluster", key="root")
    assert added.code == 0, added
    for listener, client in (
        ("ASKED", {"key": "alice"}),
        ("MUST", {"key": "alice"}),
        ("BASIC", {"user": "alice"}),
        ("SCRAM", {"user": "dora", "mechanism": "SCRAM-SHA-256"}),
        ("SCRAM", {"user": "dora", "mechanism": "SCRAM-SHA-512"}),
    ):
        listed = java.run(listener, "--list", **client)
        assert "principal=User:CN=Alice,OU=Users" in listed.out, (listener, client, listed)
        assert confluent_says(node, listener, **client).isdigit()
    removed = java.run("MUST", "--remove", "--force", "--cluster", key="root")
    assert removed.code == 0, removed


LIBRDKAFKA = (
    ("OPEN", {"trusted": "strange"}, "certificate verify failed"),
    ("ASKED", {"key": "root"}, None),
    ("ASKED", {"key": "mallory"}, "alert unknown ca"),
    ("ASKED", {"key": "expired"}, "alert certificate expired"),
    ("MUST", {"key": "root"}, None),
    ("MUST", {}, "alert certificate required"),
    ("MUST", {"key": "mallory"}, "alert unknown ca"),
    ("BASIC", {"user": "admin"}, None),
    ("BASIC", {"user": "admin", "password": "no"}, "Authentication failed: Invalid username or password"),
    ("BASIC", {"user": "carol", "mechanism": "SCRAM-SHA-512"}, "broker's supported mechanisms: PLAIN"),
    ("SCRAM", {"user": "admin", "mechanism": "SCRAM-SHA-256"}, None),
    ("SCRAM", {"user": "carol", "mechanism": "SCRAM-SHA-512"}, None),
    ("SCRAM", {"user": "carol", "mechanism": "SCRAM-SHA-512", "password": "no"}, "invalid credentials with SASL"),
    ("SCRAM", {"user": "admin"}, "broker's supported mechanisms: SCRAM-SHA-256,SCRAM-SHA-512"),
)
"""The same by confluent-kafka; None: DescribeAcls is answered."""


@pytest.mark.tier("test")
def test_librdkafka_comes_in_or_hears_why_not(node: SecuredNode) -> None:
    found = [(*case, confluent_says(node, case[0], **case[1])) for case in LIBRDKAFKA]
    wrong = [row for row in found if not (row[3].isdigit() if row[2] is None else row[2] in row[3])]
    assert not wrong, wrong


def test_a_name_that_no_rule_takes_is_a_failed_login(node: SecuredNode) -> None:
    before = samples(node, FAILURES).get("MUST/TLS", 0)
    with Wire(node, "MUST", "nobody") as client, pytest.raises(ClosedError):
        client.ask(API_VERSIONS, 0)
    wait_until(lambda: samples(node, FAILURES)["MUST/TLS"] == before + 1, "a failure is counted")
    assert "login failed: No rules apply to CN=Nobody,OU=Elsewhere" in node.output
    with Wire(node, "ASKED", "nobody") as client:
        assert client.described() == 31
    wait_until(lambda: "Principal = User:CN=Nobody,OU=Elsewhere is Denied" in node.output, "its line")


@pytest.mark.tier("test")
def test_certificates_are_replaced_while_the_node_runs(node: SecuredNode) -> None:
    path = node.estate.store("changed")
    with Wire(node, "CHANGED") as old:
        assert old.server == "first"
        path.write_bytes(path.read_bytes()[:200])
        wait_until(lambda: "keeping the previous ones" in node.output, "a broken file is reported")
        with Wire(node, "CHANGED") as client:
            assert client.server == "first"
        node.estate.authority.issue("second").write_pkcs12(path, STORE)
        wait_until(lambda: "certificates reloaded" in node.output, "a reload is reported")
        with Wire(node, "CHANGED") as client:
            assert client.server == "second"
        assert old.described() == 31, "connections that stand are left alone"


def a_broker(home: Path, node: SecuredNode, mechanism: str) -> AclogNode:
    """A broker alone, whose controller is the node."""
    ports = Ports(broker=free_port(), controller=node.at["CONTROLLER"], http=free_port())
    text = broker_properties(node.estate, node.at, mechanism, broker=ports.broker, http=ports.http)
    return AclogNode(home, ports, text)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_broker_follows_and_forwards_behind_tls_and_sasl(tmp_path: Path, node: SecuredNode, mechanism: str) -> None:
    rule = {"resource_type": 2, "resource_name": f"by-{mechanism}", "resource_pattern_type": 3, "host": "*"}
    rule |= {"principal": "User:x", "operation": 3, "permission_type": 3}
    with a_broker(tmp_path, node, mechanism) as broker:
        beside = SecuredNode.beside(node, broker.ports)
        with Wire(beside, "BASIC").plain("admin", PASSWORDS["admin"]) as client:
            creations = (nested(CREATE_ACLS, 3, "AclCreation", **rule),)
            assert not client.ask(CREATE_ACLS, 3, creations=creations).results[0].error_code
        with Wire(beside, "BASIC").plain("bob", PASSWORDS["bob"]) as client:
            assert client.ask(CREATE_ACLS, 3, creations=creations).results[0].error_code == 31
    assert SECRET not in broker.output
    assert "Traceback" not in broker.output


def test_a_broker_with_a_wrong_password_says_so_and_does_not_hammer(tmp_path: Path, node: SecuredNode) -> None:
    broker = a_broker(tmp_path, node, "SCRAM-SHA-256")
    path = broker.home / "server.properties"
    path.write_text(path.read_text().replace(PASSWORDS["node"], f"wrong-{SECRET}"))
    before = samples(node, FAILURES).get("CONTROLLER/SCRAM-SHA-256", 0)
    begun = time.monotonic()
    broker.spawn()
    try:
        wait_until(lambda: "invalid credentials with SASL mechanism SCRAM-SHA-256" in broker.output, "it says so")
        wait_until(lambda: samples(node, FAILURES)["CONTROLLER/SCRAM-SHA-256"] >= before + 2, "it tries again")
        assert not broker.is_ready()
    finally:
        broker.kill()
    tries, seconds = samples(node, FAILURES)["CONTROLLER/SCRAM-SHA-256"] - before, time.monotonic() - begun
    assert tries <= 3 + seconds, "once a second"
    assert broker.output.count("invalid credentials") == 1, "the same trouble is told once"
    assert SECRET not in broker.output


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (f"ssl.keystore.password={STORE}", f"ssl.keystore.password=no-{SECRET}", "listener CONTROLLER: ssl.keystore"),
        ("mapping.rules=RULE:", "mapping.rules=RULE:(/x/,RULE:", "listener.name.must.ssl.principal.mapping.rules: "),
    ],
)
def test_what_cannot_be_used_stops_the_start(tmp_path: Path, estate: Estate, old: str, new: str, told: str) -> None:
    stopped = SecuredNode(tmp_path, estate)
    path = stopped.home / "server.properties"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(NodeError, match="ended with 2"):
        stopped.start()
    (line,) = stopped.output.splitlines()
    assert told in line
    assert SECRET not in line
    assert not (stopped.home / "data").exists()


def test_a_broker_that_cannot_know_its_controllers_does_not_start(tmp_path: Path, node: SecuredNode) -> None:
    broker = a_broker(tmp_path, node, "PLAIN")
    path = broker.home / "server.properties"
    path.write_text(path.read_text().replace("trusted.p12", "absent.p12"))
    with pytest.raises(NodeError, match="ended with 2"):
        broker.start()
    assert "controller client: ssl.truststore.location: " in broker.output
