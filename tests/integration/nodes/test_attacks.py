"""Attempts on `aclog serve`'s listeners: nobody comes in, acts or is heard without having said who it is."""

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclog.authorizer.settings import KafkaPrincipal
from aclog.protocol.api_keys import ENVELOPE, FETCH, FETCH_SNAPSHOT
from aclog.protocol.responses import (
    BROKER_APIS,
    CONTROLLER_APIS,
    EnvelopeRequest,
    decode_envelope_response,
    encode_envelope_request,
    encode_principal,
)
from aclog.protocol.session import ANONYMOUS
from tests.support.nodes.secured_clients import EVERYTHING, Wire, context, metrics
from tests.support.nodes.secured_node import LISTENERS, PASSWORDS, SECRET, Estate, SecuredNode
from tests.support.nodes.wire_client import (
    ClosedError,
    RefusedError,
    decode_response,
    encode_request,
    nested,
    request_header,
)
from tests.support.processes.waiting import SECONDS, wait_until

API_VERSIONS, HANDSHAKE, AUTHENTICATE, DESCRIBE_ACLS, CREATE_ACLS, QUORUM = 18, 17, 36, 29, 30, 55
CLUSTER_AUTHORIZATION_FAILED = 31
SASL = [name for name, protocol in LISTENERS.items() if protocol.startswith("SASL")]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    """One node for all; after everything no rule stands in it, and it has told no secret."""
    home = tmp_path_factory.mktemp("attacked")
    made = SecuredNode(home / "node", Estate.make(home / "stores"))
    properties = made.home / "server.properties"
    # A login is renewed only where it has an end.
    properties.write_text(properties.read_text() + "connections.max.reauth.ms=3600000\n")
    with made.format() as running:
        yield running
        assert rules(running) == 0
        told = metrics(running)
    told += running.output
    assert SECRET not in told
    assert "Traceback" not in told


def rules(node: SecuredNode) -> int:
    """How many rules there are."""
    with Wire(node, "BASIC").plain("admin", PASSWORDS["admin"]) as admin:
        return len(admin.ask(DESCRIBE_ACLS, 3, **EVERYTHING).resources)


def a_rule() -> dict[str, Any]:
    """What CreateAcls takes: mallory may do everything."""
    rule = {"resource_type": 4, "resource_name": "kafka-cluster", "resource_pattern_type": 3, "host": "*"}
    rule |= {"principal": "User:mallory", "operation": 2, "permission_type": 3}
    return {"creations": (nested(CREATE_ACLS, 3, "AclCreation", **rule),)}


def token(user: str, password: str) -> dict[str, bytes]:
    """A PLAIN message."""
    return {"auth_bytes": f"\0{user}\0{password}".encode()}


def refused(client: Wire) -> list[bytes]:
    """What still comes before the connection ends, which it must."""
    return client.frames_until_closed()


@pytest.mark.parametrize("listener", SASL)
def test_no_request_is_answered_before_a_login(node: SecuredNode, listener: str) -> None:
    served = {api.api_key: api for api in (*BROKER_APIS, *CONTROLLER_APIS)}
    for key, api in served.items():
        if key in (API_VERSIONS, HANDSHAKE):
            continue
        for body in (b"", bytes(64)):
            with Wire(node, listener) as client:
                client.write(client.framed(key, api.max_version if key != ENVELOPE else 0, body))
                assert refused(client) == [], (listener, key)


def log_in(client: Wire, user: str, password: str | None = None) -> bytes:
    """The two frames of a PLAIN login."""
    message = token(user, PASSWORDS[user] if password is None else password)
    return client.framed(HANDSHAKE, 1, mechanism="PLAIN") + client.framed(AUTHENTICATE, 2, **message)


def only_refusals(client: Wire) -> None:
    """The handshake is answered, the CreateAcls behind it only by an error, and then the connection ends."""
    _, refusal = refused(client)
    assert "Unexpected Kafka request of type CREATE_ACLS during SASL authentication." in refusal.decode(
        errors="replace"
    )


def test_a_request_in_the_midst_of_a_login_is_not_handled(node: SecuredNode) -> None:
    with Wire(node, "BASIC") as client:
        begun, request = client.framed(HANDSHAKE, 1, mechanism="PLAIN"), client.framed(CREATE_ACLS, 3, **a_rule())
        client.write(begun + request + client.framed(AUTHENTICATE, 2, **token("admin", PASSWORDS["admin"])) + request)
        only_refusals(client)


def test_what_is_sent_behind_a_failed_login_is_not_answered(node: SecuredNode) -> None:
    with Wire(node, "BASIC") as client:
        client.write(log_in(client, "admin", "no") + client.framed(CREATE_ACLS, 3, **a_rule()) * 3)
        answers = refused(client)
    assert len(answers) == 2
    assert decode_response(AUTHENTICATE, 2, answers[1])[1].error_code == 58


def test_what_is_sent_behind_a_login_is_its_users(node: SecuredNode) -> None:
    with Wire(node, "BASIC") as client:
        client.write(log_in(client, "bob") + client.framed(CREATE_ACLS, 3, **a_rule()))
        answers = [client.read_frame() for _ in range(3)]
    (result,) = decode_response(CREATE_ACLS, 3, answers[2])[1].results
    assert result.error_code == CLUSTER_AUTHORIZATION_FAILED


def test_nobody_becomes_somebody_else_by_logging_in_again(node: SecuredNode) -> None:
    client = Wire(node, "BASIC").plain("bob", PASSWORDS["bob"])
    with pytest.raises(RefusedError, match=r"Cannot change principals .* from User\.bob: User\.admin"):
        client.plain("admin", PASSWORDS["admin"])
    with Wire(node, "BASIC").plain("bob", PASSWORDS["bob"]) as client:
        client.write(log_in(client, "admin") + client.framed(CREATE_ACLS, 3, **a_rule()))
        assert len(refused(client)) == 2, "the request behind it is not answered"
    client = Wire(node, "CONTROLLER").plain("bob", PASSWORDS["bob"])
    with pytest.raises(RefusedError, match="not supported for re-authentication"):
        client.scram("SCRAM-SHA-256", "node", PASSWORDS["node"])
    with Wire(node, "BASIC").plain("bob", PASSWORDS["bob"]) as client:
        client.write(client.framed(HANDSHAKE, 0, mechanism="PLAIN"))
        client.read_frame()
        raw = b"\0admin\0" + PASSWORDS["admin"].encode()
        client.write(struct.pack(">i", len(raw)) + raw + client.framed(CREATE_ACLS, 3, **a_rule()))
        assert refused(client) == []


def test_a_login_again_that_fails_or_does_not_end_ends_the_session(node: SecuredNode) -> None:
    with Wire(node, "BASIC").plain("admin", PASSWORDS["admin"]) as client:
        client.write(log_in(client, "admin", "no") + client.framed(CREATE_ACLS, 3, **a_rule()))
        assert len(refused(client)) == 2
    with Wire(node, "BASIC").plain("admin", PASSWORDS["admin"]) as client:
        client.write(client.framed(HANDSHAKE, 1, mechanism="PLAIN") + client.framed(CREATE_ACLS, 3, **a_rule()))
        only_refusals(client)


def test_plain_is_had_where_it_is_enabled_only(node: SecuredNode) -> None:
    for version in (0, 1):
        with Wire(node, "SCRAM") as client:
            answer = client.ask(HANDSHAKE, version, mechanism="PLAIN")
            assert (answer.error_code, answer.mechanisms) == (33, ("SCRAM-SHA-256", "SCRAM-SHA-512"))
            client.write(client.framed(AUTHENTICATE, 2, **token("admin", PASSWORDS["admin"])))
            assert refused(client) == []
    with Wire(node, "SCRAM") as client:
        client.ask(HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
        assert client.ask(AUTHENTICATE, 2, **token("admin", PASSWORDS["admin"])).error_code == 58
    for mechanism in ("plain", "PLAIN\0", "PLAIN ", "GSSAPI", "EXTERNAL", "ANONYMOUS", "OAUTHBEARER", ""):
        with Wire(node, "BASIC") as client:
            assert client.ask(HANDSHAKE, 1, mechanism=mechanism).error_code == 33


@pytest.mark.parametrize("listener", ["BASIC", "MUST"])
def test_controllers_apis_are_not_had_where_clients_are(node: SecuredNode, listener: str) -> None:
    for key, version in ((FETCH, 17), (FETCH_SNAPSHOT, 1), (ENVELOPE, 0), (ENVELOPE, 1), (52, 2), (53, 1), (80, 0)):
        with Wire(node, listener, "root" if listener == "MUST" else None) as client:
            if listener == "BASIC":
                client.plain("admin", PASSWORDS["admin"])
            whole = struct.pack(">hhih", key, version, 9, 1) + b"x" + bytes(80)
            client.write(struct.pack(">i", len(whole)) + whole)
            assert refused(client) == [], (key, version)


def envelope(inner: bytes, principal: KafkaPrincipal) -> bytes:
    """An Envelope's body."""
    request = EnvelopeRequest(
        request_data=inner, request_principal=encode_principal(principal), client_host_address=bytes(4)
    )
    return encode_envelope_request(request)


def in_envelope(user: str) -> bytes:
    """CreateAcls as somebody's."""
    inner = request_header(CREATE_ACLS, 3, 7) + encode_request(CREATE_ACLS, 3, **a_rule())
    return envelope(inner, KafkaPrincipal(type="User", name=user))


@pytest.mark.parametrize("version", [0, 1])
def test_who_may_not_act_on_the_cluster_sends_no_envelopes(node: SecuredNode, version: int) -> None:
    with Wire(node, "CONTROLLER").plain("bob", PASSWORDS["bob"]) as client:
        client.correlation_id += 1
        whole = struct.pack(">hhih", ENVELOPE, version, client.correlation_id, 1) + b"x\0" + in_envelope("admin")
        client.write(struct.pack(">i", len(whole)) + whole)
        answer = decode_envelope_response(client.read_frame(), 5)
        assert (answer.error_code, answer.response_data) == (CLUSTER_AUTHORIZATION_FAILED, None)
        inside = nested(FETCH_SNAPSHOT, 1, "TopicSnapshot", name="__cluster_metadata", partitions=())
        answer = client.ask(FETCH_SNAPSHOT, 1, cluster_id=None, replica_id=-1, max_bytes=1000, topics=(inside,))
        assert answer.error_code == CLUSTER_AUTHORIZATION_FAILED
        assert client.ask(QUORUM, 2, topics=()).error_code == CLUSTER_AUTHORIZATION_FAILED


def test_an_envelope_holds_no_envelope(node: SecuredNode) -> None:
    nested_one = struct.pack(">hhih", ENVELOPE, 0, 1, 1) + b"x\0" + in_envelope("admin")
    outer = envelope(nested_one, ANONYMOUS)
    with Wire(node, "CONTROLLER").plain("admin", PASSWORDS["admin"]) as client:
        whole = struct.pack(">hhih", ENVELOPE, 0, 5, 1) + b"x\0" + outer
        client.write(struct.pack(">i", len(whole)) + whole)
        assert decode_envelope_response(client.read_frame(), 5).error_code == 42


def test_plaintext_where_tls_is_and_tls_where_it_is_not(node: SecuredNode) -> None:
    for listener in ("OPEN", "MUST", "SCRAM", "CONTROLLER"):
        with socket.create_connection(("127.0.0.1", node.at[listener]), timeout=SECONDS) as plain:
            whole = request_header(API_VERSIONS, 0, 1)
            plain.sendall(struct.pack(">i", len(whole)) + whole)
            assert b"\0\0\0\1" not in received(plain), listener
    with socket.create_connection(("127.0.0.1", node.at["BASIC"]), timeout=SECONDS) as plain, pytest.raises(OSError):
        context(node.estate).wrap_socket(plain, server_hostname="localhost")


def received(connected: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := connected.recv(65536):
            data += part
    return data


@pytest.mark.parametrize("listener", ["ASKED", "MUST"])
@pytest.mark.parametrize("name", ["sly", "sly-rdn", "sly-nul"])
def test_a_name_that_looks_like_a_super_users_is_not_one(node: SecuredNode, listener: str, name: str) -> None:
    with Wire(node, listener, "root") as client:
        assert client.described() == 0
    with Wire(node, listener, name) as client, contextlib.suppress(ClosedError):
        assert client.described() == CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("listener", ["OPEN", "MUST"])
def test_old_tls_is_not_spoken(node: SecuredNode, listener: str) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.load_verify_locations(node.estate.pem("trusted"))
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", node.at[listener]), timeout=SECONDS) as plain,
        pytest.raises(ssl.SSLError),
    ):
        old.wrap_socket(plain, server_hostname="localhost")


def memory(node: SecuredNode) -> int:
    """What the node holds, in MiB."""
    status = Path(f"/proc/{node.pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) >> 10


@pytest.mark.parametrize("listener", ["BASIC", "SCRAM"])
def test_who_has_not_logged_in_takes_little_memory(node: SecuredNode, listener: str) -> None:
    before, waiting = memory(node), []
    for _ in range(150):
        client = Wire(node, listener)
        client._socket.settimeout(0.05)
        with contextlib.suppress(ClosedError):
            client.write(struct.pack(">i", 512 << 10) + bytes(480 << 10))
        waiting.append(client)
    assert memory(node) - before < 100
    assert rules(node) == 0, "others are served"
    for client in waiting:
        client.close()
    for size in (-1, 0, 7, (512 << 10) + 1, 100 << 20, 0x7FFFFFFF):
        with Wire(node, listener) as client:
            client.write(struct.pack(">i", size) + bytes(64))
            assert refused(client) == [], size
    wait_until(lambda: rules(node) == 0, "served still")
