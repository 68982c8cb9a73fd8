"""`aclog` as a client of the wrong kind, at the secured listeners of a node of ours: what is there, and what to do."""

from collections.abc import Iterator

import pytest

from tests.support.cli.command import aclog
from tests.support.nodes.secured_node import SECRET, Estate, SecuredNode, java_client

pytestmark = pytest.mark.slow(6)

ADMIN = {"user": "admin"}
CASES = (
    (
        "OPEN",
        "PLAINTEXT",
        {},
        "the listener is SSL, and security.protocol is PLAINTEXT: expected security.protocol=SSL",
    ),
    ("OPEN", "SASL_SSL", ADMIN, "the listener is SSL, and security.protocol is SASL_SSL"),
    ("OPEN", "SSL", {"trusted": "strange"}, "expected the server's authority (CN=root) among those that"),
    ("MUST", "SSL", {}, "the server requires a client certificate: expected ssl.keystore.location"),
    ("MUST", "SSL", {"key": "expired"}, "the server refuses the certificate in ssl.keystore.location"),
    ("MUST", "SSL", {"key": "mallory"}, "the server refuses the certificate in ssl.keystore.location"),
    ("MUST", "PLAINTEXT", {}, "expected security.protocol=SSL"),
    ("BASIC", "PLAINTEXT", {}, "expected security.protocol=SASL_PLAINTEXT, sasl.mechanism=PLAIN and a"),
    ("BASIC", "SSL", {}, "the listener is SASL_PLAINTEXT, and security.protocol is SSL: expected the port of"),
    (
        "BASIC",
        "SASL_PLAINTEXT",
        {"user": "carol", "mechanism": "SCRAM-SHA-512"},
        "the server offers PLAIN: expected one",
    ),
    (
        "BASIC",
        "SASL_PLAINTEXT",
        {"user": "admin", "password": "no"},
        "(as admin): expected a user and password in sasl.",
    ),
    ("SCRAM", "SSL", {}, "sasl.mechanism=SCRAM-SHA-256 or SCRAM-SHA-512 and a sasl.jaas.config in"),
    ("SCRAM", "SASL_PLAINTEXT", ADMIN, "the listener is SASL_SSL, and security.protocol is SASL_PLAINTEXT"),
    ("CONTROLLER", "SASL_SSL", ADMIN, "a controller's listener: expected a broker's with --bootstrap-server, or this"),
    ("HTTP", "PLAINTEXT", {}, "an HTTP server listens there: expected the port of a Kafka listener"),
)


@pytest.fixture
def node(tmp_path) -> Iterator[SecuredNode]:
    """A node with a listener of each kind."""
    with SecuredNode(tmp_path / "node", Estate.make(tmp_path / "stores")).format() as running:
        yield running


def test_each_says_what_is_there_and_what_to_do(node: SecuredNode, tmp_path) -> None:
    wrong = []
    config = tmp_path / "client.properties"
    for listener, protocol, more, said in CASES:
        config.write_text(java_client(node.estate, protocol, **more), encoding="utf-8")
        at = f"localhost:{node.at[listener]}"
        found = aclog("acls", "list", "--bootstrap-server", at, "--command-config", config)
        if found.code != 2 or said not in found.err or len(found.err.splitlines()) != 1:
            wrong.append((listener, protocol, found.err))
        assert SECRET not in found.err
    config.write_text(java_client(node.estate, "SASL_PLAINTEXT", **ADMIN), encoding="utf-8")
    at = f"localhost:{node.at['BASIC']}"
    found = aclog("acls", "list", "--bootstrap-controller", at, "--command-config", config)
    assert "not a controller's listener but a broker's: expected an address of a controller" in found.err, found
    assert not wrong
