"""Three controllers of aclog and a broker on one real Kafka, and Kafka's own kafka-acls; for all tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.acls_tool import AclsTool
from tests.support.kafka.shared import SharedKafka
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.topic_cluster import CONTROLLERS, TopicCluster
from tests.support.processes.node_zygote import shared_zygote

CHANGES = {
    "metadata.log.topic": "topic-nodes",
    "metadata.log.max.record.bytes.between.snapshots": "200000",
}


@pytest.fixture(scope="module")
def running_cluster(topic_kafka: SharedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopicCluster]:
    """Started; a test that needs all of its controllers asks for `cluster`."""
    servers = dict.fromkeys(CONTROLLERS, topic_kafka.bootstrap)
    with TopicCluster(tmp_path_factory.mktemp("cluster"), shared_zygote(), servers, changes=CHANGES) as cluster:
        yield cluster.start()


@pytest.fixture
def cluster(running_cluster: TopicCluster) -> TopicCluster:
    """All of its controllers run, and one is active, whatever the test before has done."""
    for node in running_cluster.controllers.values():
        if not node.running:
            node.spawn()
            node.wait_until_ready()
    running_cluster.wait_active()
    return running_cluster


@pytest.fixture(scope="module")
def acls_tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AclsTool]:
    """kafka-acls, as the super user `admin`."""
    return AclsTool.of(ToolPipe(), Path(tmp_path_factory.mktemp("tool")))
