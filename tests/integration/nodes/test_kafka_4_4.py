"""A node of aclog.kafka.version=4.4 beside a real Kafka 4.4: what CreateAcls answers, and a broker of Kafka's."""

import struct
from pathlib import Path

import pytest

from aclog.metalog.primitives import read_compact_string
from aclog.snapshots.publisher import recover
from tests.support.admin.requests import CREATE_ACLS, rule
from tests.support.kafka.jvm import KAFKA_44
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import KafkaServer, free_port
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports, password, server_properties
from tests.support.nodes.wire_client import WireClient, nested
from tests.support.processes.waiting import wait_until

AS_4_4 = {"aclog.kafka.version": "4.4"}
HOSTS = (
    "*", "10.0.0.1", "my host", "10.0.0.1-10.0.0.9", "", "10.0.0.0/8", "10.1.2.3/8", "010.0.0.0/08", "0.0.0.0/0", "a/b",
    "10.0.0.0/33", " 10.0.0.0/8", "10.0.0.0/8 ", "10/8", "10.0.0/8", "10.0.0.0/255.0.0.0", "10.0.0.0/", "/8", "/",
    "10.0.256.0/8", "999.999.0.0/99", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/008", "1.2.3.4/5/6", "2001:db8::/32",
    "::/0", "::/-0", "::/+32", "::/129", "::/-1", "::/x", "::/", "::/99999999999", "fe80::1%1/64", "[::1]/128",
    "2001:DB8::/32", "::ffff:10.0.0.0/104", "::FFFF:10.0.0.0/104", "0:0:0:0:0:ffff:a00:0/104", "::10.0.0.0/104",
    "1::2::3/64", "g::/16", "12345::/16", "::/64/3", ":/8", "::1/128 ", " ::1/128", "2001:db8::/\u0663\u0662",
    "1:2:3/8", "ü/8", "::\u00e9/8",
)  # fmt: skip
"""Ranges, and texts that nearly are. None is a name, which Kafka would hand to the resolver of its machine."""
UNREGISTER_CONTROLLER = 94


def created(ports: Ports) -> dict[str, tuple[int, str | None]]:
    """The code and the message for a rule with each of the hosts, all in one request."""
    creations = tuple(
        nested(CREATE_ACLS, 3, "AclCreation", **rule(resource_name=f"t{number}", host=host))
        for number, host in enumerate(HOSTS)
    )
    with WireClient(ports.broker).plain("admin", password("admin")) as client:
        results = client.ask(CREATE_ACLS, 3, creations=creations).results
    return {host: (int(each.error_code), each.error_message) for host, each in zip(HOSTS, results, strict=True)}


def unregistered(ports: Ports, controller_id: int, user: str = "admin") -> tuple[int, str | None]:
    """The code and the message of UnregisterController, which kio does not have."""
    with WireClient(ports.broker).plain(user, password(user)) as client:
        head = struct.pack(">hhih", UNREGISTER_CONTROLLER, 0, 77, 1) + b"c\0"
        answer = client.ask_bytes(head + struct.pack(">i", controller_id) + b"\0")
    correlation_id, _, _, code = struct.unpack(">iBih", answer[:11])
    assert correlation_id == 77
    assert answer.endswith(b"\0")
    return code, None if answer[11] == 0 else read_compact_string(answer, 11)[0]


@pytest.mark.parametrize("release", ["4.4", "4.4-IV0"])
def test_the_same_hosts_are_refused_with_the_same_words(tmp_path: Path, release: str) -> None:
    answers = {}
    for kind in ("kafka", "aclog"):
        ports = Ports.free()
        if kind == "kafka":
            node: RealNode | AclogNode = RealNode(tmp_path / kind, ports, version=KAFKA_44)
        else:
            node = AclogNode(tmp_path / kind, ports, server_properties(ports, **AS_4_4))
        with node.format("--release-version", release):
            answers[kind] = (
                created(ports),
                [unregistered(ports, 1), unregistered(ports, 7), unregistered(ports, 7, "bob")[0]],
            )
    hosts, requests = (dict(enumerate(each)) for each in zip(*answers.values(), strict=True))
    assert hosts[1] == hosts[0]
    assert requests[1] == requests[0]
    assert {code for code, _ in hosts[0].values()} == ({0, 42} if release == "4.4" else {0, 35, 42})


def test_a_broker_of_kafka_4_4_registers_with_our_controller(tmp_path: Path) -> None:
    """At the newest level, which only 4.4 supports; it replays what our controller commits."""
    ports, port = Ports.free(), free_port()
    ours = AclogNode(tmp_path / "controller", ports, server_properties(ports, **AS_4_4)).format()
    changes = {
        "process_roles": "broker",
        "node_id": "2",
        "listeners": f"SASL_PLAINTEXT://localhost:{port}",
        "advertised_listeners": f"SASL_PLAINTEXT://localhost:{port}",
    }
    with ours:
        server = KafkaServer(tmp_path, server_properties(ports, **changes), port=port, version=KAFKA_44)
        server.format("c2FtZS1zY3JpcHQtMDAwMQ")
        server.launch()
        try:
            wait_until(
                lambda: any(each.broker_id == 2 for each in recover(ours.log_directory).image.cluster.brokers()),
                "the registration of Kafka's broker",
            )
            brokers = {each.broker_id: each for each in recover(ours.log_directory).image.cluster.brokers()}
            levels = {each.name: each.max_supported_version for each in brokers[2].features}
            assert levels["metadata.version"] == 33
            server.wait_until_started()
        finally:
            server.kill()
