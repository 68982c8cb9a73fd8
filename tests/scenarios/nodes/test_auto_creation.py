"""Metadata of missing topics is answered, and its authorization logged, as by a real Kafka 4.3.1 (recorded)."""

import pytest

from tests.support.admin.auto_creation import differences, properties, recorded, run
from tests.support.nodes.cluster import ClusterNode
from tests.support.nodes.server_properties import Ports

pytestmark = pytest.mark.server


@pytest.mark.parametrize("enabled", [True, False])
def test_missing_topics_that_clients_would_have_created(tmp_path, zygote, enabled):
    ports = Ports.free()
    node = ClusterNode(tmp_path, ports, properties(ports, enabled=enabled), zygote)
    wanted = [row for row in recorded() if row["auto.create.topics.enable"] is enabled]
    texts = differences(wanted, run(node, enabled=enabled))
    assert not texts, "\n".join(texts)
