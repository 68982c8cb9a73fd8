"""metadata.log.kind=quorum: a broker of aclog follows a real Kafka's controllers, and forwards to them."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from aclog.client.quorum_log import QuorumLog
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.config.server_properties import load_config
from aclog.protocol.api_keys import METADATA
from aclog.protocol.session import SecurityProtocol
from aclog.server.storage import format_storage
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import read_checkpoint
from tests.integration.conftest import CONTROLLER_PORT
from tests.support.cli.command import aclog
from tests.support.kafka.acls_tool import TO_BROKERS, AclsTool
from tests.support.kafka.jvm import KAFKA_44, java_command
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import ADMIN, AdminClient, KafkaServer, with_properties
from tests.support.kafka.shared import SharedKafka
from tests.support.nodes.cluster import HOST, ClusterNode
from tests.support.nodes.server_properties import CLUSTER_ID, PLAIN, USERS, Ports, password, server_properties
from tests.support.nodes.wire_client import WireClient
from tests.support.processes.node_zygote import shared_zygote
from tests.support.processes.waiting import SECONDS, wait_until

TOPIC = "of-a-real-quorum"


NODE_ID = 77


def follower(
    home: Path,
    controllers: Sequence[HostPort],
    *,
    user: str = "admin",
    cluster_id: str = CLUSTER_ID,
    kind: str = "quorum",
    version: str | None = None,
) -> ClusterNode:
    """A broker of aclog, formatted for a Kafka's cluster, which logs in to its controllers as a user."""
    ports = Ports.free()
    users = " ".join(f'user_{each}="{password(each)}"' for each in USERS)
    line = f'{PLAIN} required username="{user}" password="{password(user)}" {users};'
    properties = {
        "process.roles": "broker",
        "node.id": str(NODE_ID),
        "metadata.log.kind": kind,
        "controller.quorum.bootstrap.servers": ",".join(map(str, controllers)),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{HOST}:{ports.broker}",
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": line,
        "listener.name.controller.plain.sasl.jaas.config": line,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "log.dirs": str(home / "data"),
        "aclog.http.listener": f"{HOST}:{ports.http}",
    }
    if version is not None:
        properties["aclog.kafka.version"] = version
    node = ClusterNode(home, ports, with_properties("", **properties), shared_zygote())
    format_storage(load_config(home / "server.properties", strict=True), cluster_id)
    return node


def named_by(admin: AdminClient) -> list[str]:
    """The names of the resources of the rules that Kafka's broker lists."""
    return [acl["resourceName"] for acl in admin.acls()]


def test_it_follows_kafkas_controllers_and_forwards_to_them(
    topic_kafka: SharedKafka, acls_tool: AclsTool, tmp_path: Path
) -> None:
    with (
        follower(tmp_path / "node", topic_kafka.controllers) as node,
        AdminClient(topic_kafka.nodes[0].ports.broker) as admin,
    ):
        place = f"{HOST}:{node.ports.broker}"
        assert acls_tool.add(TO_BROKERS, place, TOPIC).code == 0
        # Kafka's broker replays what its controllers acknowledged a moment later, as ours does.
        wait_until(lambda: named_by(admin).count(TOPIC) == 1, "the rule at Kafka's broker")
        wait_until(lambda: TOPIC in acls_tool.run(TO_BROKERS, place, "--list").out, "the rule at the broker")
        assert acls_tool.remove(TO_BROKERS, place, TOPIC).code == 0
        wait_until(lambda: TOPIC not in named_by(admin), "its removal at Kafka's broker")
        wait_until(lambda: TOPIC not in acls_tool.run(TO_BROKERS, place, "--list").out, "its removal")


@pytest.mark.parametrize("kind", ["quorum", "file"])
def test_it_never_registers_with_kafkas_controllers(kind: str, topic_kafka: SharedKafka, tmp_path: Path) -> None:
    """Kafka would place partitions on it. The kind `file` is a mistake: the controllers tell that they are Kafka's."""
    kafkas = {node.node_id for node in topic_kafka.nodes}
    with (
        follower(tmp_path / "node", topic_kafka.controllers, kind=kind) as node,
        AdminClient(topic_kafka.nodes[0].ports.broker) as admin,
    ):
        if kind == "file":
            wait_until(lambda: "not registered yet" in node.output, "what keeps it from registering")
            assert "not a controller of aclog: this broker does not register with it" in node.output
        else:
            assert "registered" not in node.output
        admin("createTopic", topic=f"not-on-{NODE_ID}-{kind}")
        assert registered(topic_kafka) == kafkas
        # Nor does it lead its clients to Kafka's brokers, which are not its own cluster's.
        with WireClient(node.ports.broker).plain("admin", password("admin")) as client:
            brokers = client.ask(METADATA, 8, topics=(), allow_auto_topic_creation=False,
                                 include_cluster_authorized_operations=False,
                                 include_topic_authorized_operations=False).brokers  # fmt: skip
        assert [(each.node_id, each.port) for each in brokers] == [(NODE_ID, node.ports.broker)]


def registered(kafka: SharedKafka) -> set[int]:
    """The brokers in its log: where Kafka places partitions."""
    login = ClientSecurity(
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism="PLAIN",
        username="admin",
        password=password("admin"),
    )
    with QuorumLog(servers=kafka.controllers, security=login) as log:
        log.wait_known(SECONDS)
        applier = Applier()
        if (snapshot := log.latest_snapshot()) is not None:
            applier.load(read_checkpoint(snapshot.path))
        while applier.next_offset < log.high_watermark():
            applier.apply(log.read(applier.next_offset))
    return {broker.broker_id for broker in applier.image.cluster.brokers()}


def test_without_cluster_action_it_never_gets_ready_and_says_why(topic_kafka: SharedKafka, tmp_path: Path) -> None:
    node = follower(tmp_path / "node", topic_kafka.controllers, user="alice")
    node.spawn()
    try:
        wait_until(lambda: "CLUSTER_AUTHORIZATION_FAILED" in node.output, "what keeps it from following")
        assert not node.is_ready()
    finally:
        node.kill()


def raised_to(level: int, kafka: KafkaServer, login: Path) -> None:
    """Raise the cluster's metadata.version with Kafka's own tool."""
    command = ["--bootstrap-server", f"localhost:{kafka.port}", "--command-config", str(login)]
    command += ["upgrade", "--feature", f"metadata.version={level}"]
    done = subprocess.run(
        java_command("org.apache.kafka.tools.FeatureCommand", *command), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_follows_the_quorum_of_a_kafka_4_4_at_its_newest_level(tmp_path: Path) -> None:
    """Kafka 4.4.0 itself has 4.5-IV0, not for production: the only server that supports more than this aclog."""
    ports = Ports.free()
    keys = {"unstable_api_versions_enable": "true", "unstable_feature_versions_enable": "true"}
    kafka = RealNode(tmp_path / "kafka", ports, server_properties(ports, **keys), version=KAFKA_44)
    kafka.format("--release-version", "4.4")
    login = tmp_path / "login.properties"
    login.write_text("".join(f"{key}={text.replace('{user}', 'admin')}\n" for key, text in ADMIN.items()))
    controller = HostPort(host="localhost", port=ports.controller)
    warning = "supports metadata.version up to 34, and this aclog up to 33: nodes of aclog stop at a higher one"
    with kafka:
        for flag, place in (
            ("--bootstrap-controller", controller),
            ("--bootstrap-server", f"localhost:{ports.broker}"),
        ):
            told = aclog("status", flag, place, "--command-config", login).ok()
            assert f"warning          {place} {warning}" in told.out
        told = aclog("status", flag, place, "--command-config", login, "--json").ok()
        assert any(each.startswith(f"{place} {warning}") for each in json.loads(told.out)["warnings"])
        assert list(json.loads(told.out)["authorizers"].values()) == [True]
        with follower(tmp_path / "node", [controller], version="4.4") as node:
            assert f"{controller} {warning}" in node.output
            place = f"{HOST}:{node.ports.broker}"
            rule = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", TOPIC)
            to_node = ("--bootstrap-server", place, "--command-config", login)
            refused = aclog("acls", "add", *to_node, *rule, "--allow-host", "10.0.0.0/33")
            assert "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]" in refused.complaint
            aclog("acls", "add", *to_node, *rule, "--allow-host", "10.0.0.0/8").ok()
            listed = wait_until(lambda: aclog("acls", "list", *to_node, "--topic", TOPIC).ok().out, "the rule")
            assert "10.0.0.0/8" in listed
        older = follower(tmp_path / "older", [controller])
        older.spawn()
        try:
            wait_until(lambda: not older.running, "its end")
            assert "metadata.version 33 of a newer Kafka: expected at most 30, or aclog.kafka." in older.output
        finally:
            older.kill()


@pytest.mark.slow(15)
def test_a_metadata_version_at_which_it_would_stop_is_warned_of_before(
    stopped_kafka: KafkaServer, tmp_path: Path
) -> None:
    """4.3.1 itself has 4.4-IV0, not for production: the only server that supports more than its release."""
    # the controller tells of the level by the one key, and allows it by the other
    keys = {"unstable_api_versions_enable": "true", "unstable_feature_versions_enable": "true"}
    unstable = with_properties((stopped_kafka.home / "server.properties").read_text(), **keys)
    (stopped_kafka.home / "server.properties").write_text(unstable)
    login = tmp_path / "login.properties"
    login.write_text("".join(f"{key}={text.replace('{user}', 'admin')}\n" for key, text in ADMIN.items()))
    controller = HostPort(host="localhost", port=CONTROLLER_PORT)
    warning = "supports metadata.version up to 31, and this node up to 30: it stops at a higher one"
    with stopped_kafka as kafka:
        told = aclog("status", "--bootstrap-controller", controller, "--command-config", login, "--json").ok()
        assert json.loads(told.out)["warnings"] == []
        cluster_id = json.loads(told.out)["clusterId"]
        node = follower(tmp_path / "node", [controller], cluster_id=cluster_id)
        node.spawn()
        try:
            wait_until(node.is_ready, "the node")
            assert f"{controller} {warning}" in node.output
            raised_to(31, kafka, login)
            wait_until(lambda: not node.running, "its end")
            assert "metadata.version 31 of a newer Kafka: expected at most 30" in node.output
        finally:
            node.kill()
