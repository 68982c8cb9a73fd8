"""Nodes whose directories are not formatted, are empty, or no longer hold what was committed: none of them starts."""

from pathlib import Path

import pytest

from tests.support.nodes.cluster import Cluster, ClusterNode
from tests.support.processes.node_zygote import NodeZygote

pytestmark = pytest.mark.server


def refused(node: ClusterNode) -> str:
    """Start a node that must end by itself, with exit code 1; what it says last."""
    before = len(node.output)
    node.spawn()
    assert node.wait() == 1, node.output
    assert not node.is_ready()
    return node.output[before:].splitlines()[-1]


def test_a_node_starts_on_a_formatted_directory_only(tmp_path: Path, zygote: NodeZygote) -> None:
    with Cluster(tmp_path, zygote) as cluster:
        controller, broker = cluster.controller, cluster.add_broker()
        for node in cluster.nodes:
            node.format_if_empty = False
            told = refused(node)
            assert "stopped: No `meta.properties` found in" in told
            assert "`aclog format CONFIG`" in told
            assert "--format-if-empty" in told
            assert not (node.home / "data").exists()
        controller.format_if_empty = broker.format_if_empty = True
        cluster.start()
        for node in cluster.nodes:
            assert "formatted " in node.output
        (made,) = (line for line in controller.output.splitlines() if line.startswith("formatted "))
        (joined,) = (line for line in broker.output.splitlines() if line.startswith("formatted "))
        assert made.partition(": cluster id ")[2] == joined.partition(": cluster id ")[2] != ""
        broker.kill()
        (broker.home / "data" / "meta.properties").unlink()
        assert "No `meta.properties` found in" in refused(broker)
