"""A real Kafka's listeners and a real ZooKeeper, taken for others: each error says what is there and what to do."""

import json

import pytest

from tests.support.cli.command import aclog
from tests.support.kafka.listeners import ManyListeners

BROKER, CONTROLLER = "--bootstrap-server", "--bootstrap-controller"
CLIENTS = {
    "open": ("PLAINTEXT", {}),
    "login": ("SASL_PLAINTEXT", {}),
    "tls": ("SSL", {}),
    "both": ("SASL_SSL", {}),
    "mutual": ("SSL", {"key": "client"}),
    "guest": ("SSL", {"key": "guest"}),
    "wrong-user": ("SASL_PLAINTEXT", {"password": "x-5ecret"}),
    "wrong-mechanism": ("SASL_PLAINTEXT", {"mechanism": "PLAIN"}),
    "stranger": ("SSL", {"trusted": "strange"}),
}


def is_of(theirs, ours, more=""):
    """What is said of a listener of another security protocol."""
    return f"the listener is {theirs}, and security.protocol is {ours}: expected {more}security.protocol={theirs}"


TLS_FIRST = "the port of a listener with TLS, or, on a trusted network only, "
LOGIN = ", sasl.mechanism=SCRAM-SHA-512 and a sasl.jaas.config in the client's properties (--command-config FILE)"
OTHER_FLAG = "a controller's listener: expected a broker's with --bootstrap-server, or this address with --bootstrap-"
ZOOKEEPER = "a ZooKeeper server listens there: expected a Kafka listener's address; ACLs in ZooKeeper are read with"
CASES = [
    ("open", BROKER, "OPEN", None),
    ("login", BROKER, "LOGIN", None),
    ("tls", BROKER, "TLS", None),
    ("both", BROKER, "BOTH", None),
    ("mutual", BROKER, "MUTUAL", None),
    ("open", CONTROLLER, "CONTROLLER", None),
    ("login", BROKER, "OPEN", is_of("PLAINTEXT", "SASL_PLAINTEXT")),
    ("tls", BROKER, "OPEN", is_of("PLAINTEXT", "SSL", TLS_FIRST)),
    ("both", BROKER, "OPEN", is_of("PLAINTEXT", "SASL_SSL", TLS_FIRST)),
    ("open", BROKER, "LOGIN", is_of("SASL_PLAINTEXT", "PLAINTEXT") + LOGIN),
    ("tls", BROKER, "LOGIN", is_of("SASL_PLAINTEXT", "SSL", TLS_FIRST) + LOGIN),
    ("both", BROKER, "LOGIN", is_of("SASL_PLAINTEXT", "SASL_SSL", TLS_FIRST) + LOGIN),
    ("open", BROKER, "TLS", is_of("SSL", "PLAINTEXT")),
    ("login", BROKER, "TLS", is_of("SSL", "SASL_PLAINTEXT")),
    ("both", BROKER, "TLS", is_of("SSL", "SASL_SSL")),
    ("open", BROKER, "BOTH", is_of("SASL_SSL", "PLAINTEXT") + LOGIN),
    ("login", BROKER, "BOTH", is_of("SASL_SSL", "SASL_PLAINTEXT") + LOGIN),
    ("tls", BROKER, "BOTH", is_of("SASL_SSL", "SSL") + LOGIN),
    (
        "open",
        CONTROLLER,
        "OPEN",
        "not a controller's listener but a broker's: expected an address of a",
    ),
    ("open", BROKER, "CONTROLLER", OTHER_FLAG),
    ("open", CONTROLLER, "LOGIN", "not a controller's listener but a broker's: expected an address of a"),
    ("open", CONTROLLER, "BOTH", is_of("SASL_SSL", "PLAINTEXT") + LOGIN),
    ("login", CONTROLLER, "CONTROLLER", is_of("PLAINTEXT", "SASL_PLAINTEXT")),
    ("tls", CONTROLLER, "CONTROLLER", is_of("PLAINTEXT", "SSL", TLS_FIRST)),
    ("wrong-mechanism", BROKER, "LOGIN", "the server offers SCRAM-SHA-512: expected one of these as sasl.mechanism in"),
    (
        "wrong-user",
        BROKER,
        "LOGIN",
        "(as admin): expected a user and password in sasl.jaas.config that are",
    ),
    ("stranger", BROKER, "TLS", "certificate chain: expected the server's authority (CN=root) among those that /"),
    (
        "tls",
        BROKER,
        "ELSEWHERE",
        "not valid for 'localhost': it is for kafka.example: expected an address with a",
    ),
    (
        "tls",
        BROKER,
        "EXPIRED",
        "certificate has expired on 2021-01-01: expected a renewed one in the server's",
    ),
    (
        "tls",
        BROKER,
        "MUTUAL",
        "the server requires a client certificate: expected ssl.keystore.location in",
    ),
    (
        "open",
        BROKER,
        "MUTUAL",
        "the listener speaks TLS, and security.protocol is PLAINTEXT: expected security.",
    ),
    ("open", BROKER, "ZOOKEEPER", ZOOKEEPER),
    ("tls", BROKER, "ZOOKEEPER", ZOOKEEPER),
    ("login", BROKER, "ZOOKEEPER", ZOOKEEPER),
    ("open", CONTROLLER, "ZOOKEEPER", ZOOKEEPER),
]


@pytest.mark.server
@pytest.mark.slow(25)
def test_each_says_what_is_there_and_what_to_do(tmp_path, zookeeper):
    wrong = []
    with ManyListeners(tmp_path) as kafka:
        clients = {name: kafka.client(name, protocol, **more) for name, (protocol, more) in CLIENTS.items()}
        ports = kafka.at | {"ZOOKEEPER": int(zookeeper.connect.rpartition(":")[2])}
        for client, flag, listener, said in CASES:
            at = f"localhost:{ports[listener]}"
            found = aclog("acls", "list", flag, at, "--command-config", clients[client])
            expected = (0, "") if said is None else (2, said)
            lines = found.err.splitlines()
            if found.code != expected[0] or len(lines) != (said is not None) or (said or "") not in found.err:
                wrong.append((client, flag, listener, found.err))
            assert "5ecret" not in found.err
        check_doctor(kafka, clients)
        check_other_libraries(kafka, clients, tmp_path)
    assert not wrong


def check_other_libraries(kafka, clients, tmp_path):
    """Clients of other libraries, which do not say who is there: kazoo and librdkafka."""
    store = f"zookeeper.connect=localhost:{kafka.at['OPEN']},zookeeper.connection.timeout.ms=500"
    words = [word for each in store.split(",") for word in ("--authorizer-properties", each)]
    assert "a Kafka listener is there: expected ZooKeeper's address" in aclog("acls", "list", *words).complaint
    topic = f"kafka://localhost:{kafka.at['LOGIN']}/topic"
    found = aclog("log", "copy", topic, tmp_path / "copy", "--command-config", clients["wrong-user"])
    assert "(as admin): expected a user and password" in found.complaint
    assert is_of("SASL_PLAINTEXT", "PLAINTEXT") in aclog("log", "copy", topic, tmp_path / "copy").complaint


def check_doctor(kafka, clients):
    """What `aclog doctor` says of the same listeners."""
    sound = {("connection", "ok"), ("role", "ok"), ("cluster", "ok"), ("cluster clock", "ok"), ("state", "ok")}
    for client, flag, listener in (("open", CONTROLLER, "CONTROLLER"), ("both", BROKER, "BOTH")):
        code, lines = examined(clients[client], flag, kafka.at[listener])
        assert code == 0
        assert sound <= {line[:2] for line in lines}
        assert [line[1] for line in lines if line[0] == "rights"] == ["ok", "ok"]
    assert "until 2120-01-01" in next(line[2] for line in lines if line[0] == "certificate")
    for client, listener, check, said in (
        ("guest", "MUTUAL", "rights", "DESCRIBE on the cluster is unknown, which is needed for reading"),
        ("tls", "EXPIRED", "certificate", "until 2021-01-01: not valid now"),
        ("wrong-user", "LOGIN", "connection", "(as admin): expected a user and password"),
        ("open", "CONTROLLER", "role", "is a controller's listener, not a broker's"),
    ):
        code, lines = examined(clients[client], BROKER, kafka.at[listener])
        assert code == 1
        assert any(line[:2] == (check, "fail") and said in line[2] for line in lines), lines


def examined(config, flag, port):
    """Return the exit code of `aclog doctor`, and its lines."""
    found = aclog("doctor", flag, f"localhost:{port}", "--command-config", config, "--format", "jsonl")
    assert "5ecret" not in found.out + found.err
    return found.code, [(line["check"], line["level"], line["text"]) for line in map(json.loads, found.lines)]
