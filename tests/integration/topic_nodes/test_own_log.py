"""A controller keeps to its own log: the topic deleted, made anew, moved, and damaged, on a real Kafka."""

import asyncio
import http.client
import threading
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from aclog.config.server_properties import load_config
from aclog.metalog.errors import MetadataError
from aclog.metalog.topiclog import ensure_topic
from aclog.server.controller.shared import read_identity
from tests.integration.topic_nodes.test_failover import shown
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.nodes.acl_client import AclClient
from tests.support.nodes.topic_cluster import CONTROLLERS, TopicCluster
from tests.support.processes.node_zygote import shared_zygote
from tests.support.processes.waiting import SECONDS, wait_until

pytestmark = pytest.mark.slow(20)


@pytest.fixture
def cluster(topic_kafka, tmp_path):
    """Controllers with a topic of their own; a test starts those that it needs."""
    servers = dict.fromkeys(CONTROLLERS, topic_kafka.bootstrap)
    changes = {"metadata.log.topic": f"own-{uuid4().hex[:8]}"}
    with TopicCluster(tmp_path, shared_zygote(), servers, brokers=0, changes=changes) as cluster:
        yield cluster


def settings_of(node):
    return load_config(node.home / "server.properties").topic


def admin_of(node):
    return AdminClient(dict(settings_of(node).properties))


def start(cluster, node_id):
    node = cluster.controllers[node_id]
    node.spawn()
    node.wait_until_ready()
    return node


def refused(node) -> str:
    """What a node says whose start is refused."""
    before = len(node.output)
    node.spawn()
    wait_until(lambda: not node.running, "the node ends")
    assert node._process.poll() == 1
    return node.output[before:]


def readiness(node) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", node.ports.http, timeout=SECONDS)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


async def create(port: int, *names: str) -> None:
    async with await AclClient.open(port, timeout=SECONDS) as client:
        for name in names:
            assert await client.create([acl(name)]) == [(0, "")]


def recorded(node):
    return read_identity(node.home / "data")


def adopt(node, *flags, stdin=b""):
    return aclog("log", "adopt", node.home / "server.properties", *flags, stdin=stdin)


def test_a_deleted_topic_deposes_and_is_never_replaced_in_silence(cluster):
    active, standby = start(cluster, 1), start(cluster, 2)
    node_id = cluster.wait_active((1, 2))
    asyncio.run(create(cluster.controllers[node_id].ports.controller, "kept"))
    wait_until(lambda: all(recorded(node) is not None for node in (active, standby)), "both record it")
    admin, settings = admin_of(active), settings_of(active)
    admin.delete_topics([settings.topic])[settings.topic].result(SECONDS)

    wait_until(lambda: cluster.active((1, 2)) is None, "the active one is deposed")
    wait_until(lambda: all(readiness(node)[0] == 503 for node in (active, standby)), "/readyz tells")
    _status, told = readiness(active)
    assert "there is no such topic, but this controller has followed a log there" in told
    assert active.metric('aclog_topic_wrong{check="identity"}') == 1
    assert settings.topic not in admin.list_topics(timeout=SECONDS).topics

    assert active.stop() == 0
    assert standby.stop() == 0
    assert "there is no such topic" in refused(active)
    assert settings.topic not in admin.list_topics(timeout=SECONDS).topics
    assert adopt(active).complaint.endswith("no such topic: correct metadata.log.topic, or copy a log to it")

    ensure_topic(settings)
    before = recorded(active)
    told = refused(active)
    assert f"expected {before.topic.topic_id} on Kafka {before.topic.kafka_cluster_id}" in told
    assert "`aclog log adopt CONFIG`" in told

    said = adopt(active, stdin=b"n\n").ok()
    assert said.lines[0].startswith(f"recorded: topic {before.topic.topic_id}")
    assert "found:    topic " in said.lines[1]
    assert said.lines[1].endswith("end offset 0, leader epoch 0, begins at offset 0")
    assert said.lines[2].startswith("the topic does not hold what was recorded: it ends at offset 0: ")
    assert recorded(active) == before
    assert adopt(active).complaint.startswith("no answer on stdin: nothing is adopted")

    adopt(active, stdin=b"y\n").ok()
    start(cluster, 1)
    assert shown(active.ports.controller) == set()
    running = adopt(active, "--force")
    assert running.code == 2
    assert recorded(active).topic != before.topic


def test_a_topic_deleted_and_made_anew_under_a_running_node(cluster):
    active = start(cluster, 1)
    asyncio.run(create(active.ports.controller, "kept"))
    wait_until(lambda: recorded(active) is not None, "it is recorded")
    before, admin, settings = recorded(active).topic, admin_of(active), settings_of(active)
    admin.delete_topics([settings.topic])[settings.topic].result(SECONDS)
    wait_until(lambda: settings.topic not in admin.list_topics(timeout=SECONDS).topics, "it is gone")
    ensure_topic(settings)
    wait_until(lambda: not active.running or cluster.active((1,)) is None, "it is deposed")
    if active.running:
        active.kill()
    assert recorded(active).topic == before
    assert f"expected {before.topic_id}" in refused(active)


def test_the_way_back_from_a_strangers_message(cluster, tmp_path):
    node = start(cluster, 1)
    settings, port = settings_of(node), node.ports.controller
    acknowledged: set[str] = set()

    async def write(number: int) -> None:
        try:
            async with await AclClient.open(port, timeout=SECONDS) as client:
                for count in range(10_000):
                    name = f"w{number}-{count}"
                    if await client.create([acl(name)]) != [(0, "")]:
                        return
                    acknowledged.add(name)
        except MetadataError:
            return

    def disturb() -> None:
        wait_until(lambda: len(acknowledged) > 40, "writers are at work")
        producer = Producer(dict(settings.properties))
        producer.produce(settings.topic, b"hello", partition=0)
        assert producer.flush(SECONDS) == 0

    async def all_writers() -> None:
        await asyncio.gather(*(write(number) for number in range(4)))

    stranger = threading.Thread(target=disturb)
    stranger.start()
    asyncio.run(all_writers())
    stranger.join()
    wait_until(lambda: not node.running, "the node ends")
    assert "`aclog log copy --until-damage` copies the batches before it" in node.output

    config = tmp_path / "client.properties"
    login = (tmp_path / "controller-1" / "server.properties").read_text().splitlines()
    prefix = "metadata.log.client."
    config.write_text("\n".join(line.removeprefix(prefix) for line in login if line.startswith(prefix)))
    target = settings.name + "-2"
    said = aclog(
        "log", "copy", settings.name, target, "--until-damage", "--replication-factor", 1, "--command-config", config
    )
    assert said.code == 1, said
    assert "read back and verified" in said.lines[0]
    assert said.lines[1].startswith(f"damage: {settings.name}, Kafka's offset ")
    assert said.lines[2].startswith("not copied: ")

    node.configure({"metadata.log.topic": settings.topic + "-2"})
    assert "expected it" not in refused(node)
    adopt(node, "--force").ok()
    start(cluster, 1)
    cluster.wait_active((1,))
    assert shown(port) >= acknowledged
    asyncio.run(create(port, "after"))
