"""metadata.log.kind=quorum: a broker of aclog follows a real Kafka's controllers, and forwards to them."""

from pathlib import Path

import pytest

from aclog.nodes.config.server_properties import load_config
from aclog.nodes.storage.format import format_storage
from tests.support.kafka.acls_tool import TO_BROKERS, AclsTool
from tests.support.kafka.server import AdminClient, with_properties
from tests.support.kafka.shared import SharedKafka
from tests.support.nodes.cluster import HOST, ClusterNode, lasting_ports
from tests.support.nodes.server_properties import CLUSTER_ID, PLAIN, USERS, password
from tests.support.nodes.topic_cluster import wait_until

TOPIC = "of-a-real-quorum"


def follower(home: Path, kafka: SharedKafka, user: str = "admin") -> ClusterNode:
    """A broker of aclog, formatted for the Kafka's cluster, which logs in to its controllers as a user."""
    ports = lasting_ports()
    users = " ".join(f'user_{each}="{password(each)}"' for each in USERS)
    line = f'{PLAIN} required username="{user}" password="{password(user)}" {users};'
    properties = {
        "process.roles": "broker",
        "node.id": "77",
        "metadata.log.kind": "quorum",
        "controller.quorum.bootstrap.servers": ",".join(map(str, kafka.controllers)),
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
    node = ClusterNode(home, ports, with_properties("", **properties), None)
    format_storage(load_config(home / "server.properties", strict=True), CLUSTER_ID)
    return node


@pytest.mark.timeout(180)
def test_it_follows_kafkas_controllers_and_forwards_to_them(
    topic_kafka: SharedKafka, acls_tool: AclsTool, tmp_path: Path
) -> None:
    with (
        follower(tmp_path / "node", topic_kafka) as node,
        AdminClient(topic_kafka.nodes[0].ports.broker) as admin,
    ):
        place = f"{HOST}:{node.ports.broker}"
        assert acls_tool.add(TO_BROKERS, place, TOPIC).code == 0
        assert [acl["resourceName"] for acl in admin.acls()].count(TOPIC) == 1
        wait_until(lambda: TOPIC in acls_tool.run(TO_BROKERS, place, "--list").out, 30, "the rule at the broker")
        assert acls_tool.remove(TO_BROKERS, place, TOPIC).code == 0
        assert TOPIC not in [acl["resourceName"] for acl in admin.acls()]
        wait_until(lambda: TOPIC not in acls_tool.run(TO_BROKERS, place, "--list").out, 30, "its removal")


@pytest.mark.timeout(180)
def test_without_cluster_action_it_never_gets_ready_and_says_why(topic_kafka: SharedKafka, tmp_path: Path) -> None:
    node = follower(tmp_path / "node", topic_kafka, user="alice")
    node.spawn()
    try:
        wait_until(lambda: "CLUSTER_AUTHORIZATION_FAILED" in node.output, 60, "what keeps it from following")
        assert not node.is_ready()
    finally:
        node.kill()
