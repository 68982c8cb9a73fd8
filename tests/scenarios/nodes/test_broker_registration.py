"""Brokers register with aclog's controllers, and name to their clients all brokers that live (KIP-631)."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress

import pytest

from tests.support.admin.client_scripts import KafkaPython
from tests.support.kafka.server import AdminClient, KafkaError
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.cluster import HOST, Cluster
from tests.support.nodes.server_properties import PLAIN, password
from tests.support.nodes.wire_client import WireClient
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.server

METADATA, DESCRIBE_CLUSTER, UNREGISTER_BROKER, REGISTRATION, HEARTBEAT = 3, 60, 64, 62, 63
SOON, LASTING = ({"broker.session.timeout.ms": each} for each in ("4000", "600000"))
OFTEN = {"broker_heartbeat_interval_ms": "300"}
RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:alice", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip


def named(node) -> dict[int, int]:
    """The brokers that Metadata of one names: their ports by id."""
    with WireClient(node.ports.broker).plain("admin", password("admin")) as client:
        answer = client.ask(METADATA, 12, topics=(), allow_auto_topic_creation=False,
                            include_topic_authorized_operations=False)  # fmt: skip
    assert answer.controller_id in {each.node_id for each in answer.brokers}
    return {each.node_id: each.port for each in answer.brokers}


def described(node, *, include_fenced: bool = False) -> dict[int, bool]:
    """The brokers that DescribeCluster of one describes: by id, whether they are fenced."""
    with WireClient(node.ports.broker).plain("admin", password("admin")) as client:
        answer = client.ask(DESCRIBE_CLUSTER, 2, include_cluster_authorized_operations=False, endpoint_type=1,
                            include_fenced_brokers=include_fenced)  # fmt: skip
    return {each.broker_id: each.is_fenced for each in answer.brokers}


def ports_of(*nodes) -> dict[int, int]:
    return {int(node.home.name.rpartition("-")[2]): node.ports.broker for node in nodes}


def all_name(nodes, *wanted) -> None:
    """Every one of these names these."""
    wait_until(lambda: all(named(node) == ports_of(*wanted) for node in nodes), lambda: [named(node) for node in nodes])


@pytest.fixture
def cluster(tmp_path, zygote):
    """Whose controller fences no broker for its silence, until it is configured so."""
    with Cluster(tmp_path, zygote, **LASTING) as found:
        found.add_broker(**OFTEN)
        found.add_broker(**OFTEN)
        yield found.start()


def all_describe(node, fenced):
    """The node describes these brokers, fenced or not, and without the fenced ones where only the others are asked for.

    At some time: on a busy machine a broker may miss its session, and is then fenced for a moment.
    """
    alive = {number: False for number, is_fenced in fenced.items() if not is_fenced}
    wait_until(lambda: described(node, include_fenced=True) == fenced, lambda: described(node, include_fenced=True))
    wait_until(lambda: described(node) == alive, lambda: described(node))


@pytest.mark.slow(15)
def test_brokers_name_all_that_live(cluster):
    one, two = cluster.brokers
    all_name([one, two], one, two)
    # One that stops says so: its session is not waited for. A controller that starts knows of none.
    two.stop()
    all_name([one], one)
    cluster.controller.stop()
    cluster.controller.start()
    two.start()
    all_name([one, two], one, two)
    # A controller that takes over fences whoever it does not hear.
    cluster.controller.kill()
    two.kill()
    assert named(one) == ports_of(one, two), "no controller says otherwise"
    cluster.controller.configure(SOON)
    cluster.controller.start()
    all_name([one], one)
    # A broker that dies is fenced once its session is over; it comes back under a new epoch, as one that stopped does.
    for end in (two.kill, two.stop):
        two.start()
        all_name([one, two], one, two)
        end()
        all_name([one], one)
        all_describe(one, {2: False, 3: True})
    two.start()
    all_name([one, two], one, two)


def test_a_broker_without_a_controller_that_knows_it_names_itself(tmp_path, zygote):
    with Cluster(tmp_path, zygote, **LASTING) as cluster:
        cluster.add_broker(**OFTEN)
        twin = cluster.add_broker(node_id="2", **OFTEN)
        cluster.start()
        one = cluster.brokers[0]
        lists = [{2: one.ports.broker}, {2: twin.ports.broker}]
        wait_until(lambda: sorted(map(str, (named(one), named(twin)))) == sorted(map(str, lists)), lambda: named(twin))
        refused = "broker 2: not registered yet: another broker with this node.id is alive"
        wait_until(lambda: refused in one.output + twin.output, "the refusal of the second one")
        assert (one.output + twin.output).count("registered as broker 2 with epoch") == 1


def java_lists(node):
    """Kafka's Admin, which never asks its bootstrap servers again."""
    admin = AdminClient(f"{HOST}:{node.ports.broker}", recovery="none")
    return admin, lambda: [acl["resourceName"] for acl in admin.acls()]


def kafka_python_lists(node):
    """kafka-python's."""
    client = KafkaPython(node.ports.broker, "admin")
    return client, lambda: [row[1] for row in client.describe(("ANY", None, "ANY", None, None, "ANY", "ANY"))]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # kafka-python's sockets that were refused
@pytest.mark.parametrize("client", [java_lists, kafka_python_lists])
def test_a_client_that_knows_one_broker_goes_on_at_another(cluster, client):
    one, two = cluster.brokers
    all_name([one, two], one, two)
    admin, listed = client(one)
    with closing(admin) if isinstance(admin, KafkaPython) else admin:
        with AdminClient(f"{HOST}:{two.ports.broker}") as other:
            other("createAcls", acls=[RULE])
        wait_until(lambda: listed() == ["orders"], lambda: "the rule at the first broker")
        one.kill()
        found: list[str] = []

        def answered() -> bool:
            nonlocal found
            with suppress(KafkaError, KafkaPython.ERROR, OSError):
                found = listed()
            return bool(found)

        wait_until(answered, lambda: "no answer by the other broker")
        assert found == ["orders"]


def client_properties(path):
    login = f'sasl.jaas.config={PLAIN} required username="admin" password="{password("admin")}";'
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{login}\n")
    return path


@pytest.mark.slow(15)
def test_kafkas_tool_lists_and_unregisters(cluster, tmp_path):
    one, two = cluster.brokers
    cluster.controller.stop()
    cluster.controller.configure(SOON)
    cluster.controller.start()
    all_name([one, two], one, two)
    config = str(client_properties(tmp_path / "client.properties"))
    server, controller = f"{HOST}:{one.ports.broker}", f"{HOST}:{cluster.controller.ports.controller}"

    def tool(*arguments: str) -> list[str]:
        done = ToolPipe().run("org.apache.kafka.tools.ClusterTool", [*map(str, arguments), "--config", str(config)])
        return (done.out + done.err).splitlines()

    def endpoints(*arguments: str) -> list[list[str]]:
        """Id, host, port, rack, state, kind."""
        return [line.split() for line in tool("list-endpoints", *arguments) if line[:1].isdigit()]

    def listed(expected: list, rows: Callable[[], list]) -> None:
        """At some time: on a machine busy with JVMs a broker may miss its session, and is then fenced for a moment."""
        wait_until(lambda: rows() == expected, rows)

    listed(
        [[str(number), HOST, str(node.ports.broker), "null", "unfenced", "broker"]
         for number, node in ((2, one), (3, two))],
        lambda: endpoints("--bootstrap-server", server),
    )  # fmt: skip
    listed([["1"]], lambda: [row[:1] for row in endpoints("--bootstrap-controller", controller)])
    two.kill()
    all_name([one], one)
    listed(
        [("2", "unfenced"), ("3", "fenced")],
        lambda: [(row[0], row[4]) for row in endpoints("--bootstrap-server", server, "--include-fenced-brokers")],
    )
    assert "Broker 3 is no longer registered." in tool("unregister", "--bootstrap-server", server, "--id", "3")
    all_describe(one, {2: False})
    assert "Broker ID 9 is not currently registered" in "".join(
        tool("unregister", "--bootstrap-controller", controller, "--id", "9")
    )
    command = [sys.executable, "-m", "aclog", "status", "--bootstrap-server", server, "--command-config", config]
    listed(
        [{"nodeId": 2, "address": server, "fenced": False}],
        lambda: json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True).stdout)["nodes"],
    )
