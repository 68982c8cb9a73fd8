"""Nodes whose directories are not formatted, are empty, or no longer hold what was committed: none of them starts."""

import asyncio
import shutil
from pathlib import Path

import pytest

from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.committed_mark import COMMITTED_FILE
from tests.support.builders.acls import acl
from tests.support.nodes.acl_client import AclClient
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


def test_a_log_that_is_gone_or_older_than_its_mark_is_refused(tmp_path: Path, zygote: NodeZygote) -> None:
    with Cluster(tmp_path, zygote) as cluster:
        node, log = cluster.start().controller, cluster.controller.log_directory
        mark = log.parent / COMMITTED_FILE
        assert mark.exists(), "made before anything is acknowledged"
        node.kill()
        aside = log.rename(tmp_path / "aside")
        told = refused(node)
        assert f"{log}: no log, but {mark} records one committed up to offset" in told
        assert not log.exists(), "nothing is made before it is refused"
        older = shutil.copytree(aside, tmp_path / "older")
        aside.rename(log)
        node.start()
        created(node, "orders")
        assert node.stop() == 0
        newest = log.rename(tmp_path / "newest")
        older.rename(log)
        told = refused(node)
        assert f"but {mark} records it as committed up to" in told
        assert f"to accept this log as it is, remove {mark}" in told
        mark.unlink()
        node.start()
        assert node.stop() == 0
        shutil.rmtree(log)
        newest.rename(log)
        mark.unlink()  # else: another log
        (log.parent / "meta.properties").rename(tmp_path / "meta.properties")
        node.format_if_empty = True
        assert "not formatted, but contains" in refused(node)
        (tmp_path / "meta.properties").rename(log.parent / "meta.properties")
        node.start()
        assert described(node) == {"orders"}


def created(node: ClusterNode, name: str) -> None:
    """Create a rule at a controller."""

    async def create() -> None:
        async with await AclClient.open(node.ports.controller) as client:
            assert await client.create([acl(name)]) == [(0, "")]

    asyncio.run(create())


def described(node: ClusterNode) -> set[str]:
    """The names of the rules at a controller."""

    async def describe() -> set[str]:
        async with await AclClient.open(node.ports.controller) as client:
            return {rule.resource_name for rule in (await client.describe()).acls}

    return asyncio.run(describe())


@pytest.mark.parametrize("name", ["__cluster_metadata-0/00000000000000000000.log", "__cluster_metadata-0", ""])
def test_nothing_is_acknowledged_once_the_log_is_elsewhere(tmp_path: Path, zygote: NodeZygote, name: str) -> None:
    """Removed, renamed, or replaced by a copy: the very next change fails, and the node ends."""
    with Cluster(tmp_path, zygote) as cluster:
        node = cluster.start().controller
        created(node, "before")
        path = node.home / "data" / name
        path.rename(tmp_path / "elsewhere")
        (shutil.copytree if (tmp_path / "elsewhere").is_dir() else shutil.copy)(tmp_path / "elsewhere", path)
        with pytest.raises((AssertionError, MetadataError)):
            created(node, "after")
        assert node.wait() == 1
        assert ".log: removed, renamed or replaced while it was open" in node.output.splitlines()[-1]
        node.start()
        assert described(node) == {"before"}


@pytest.mark.parametrize("name", ["meta.properties", "__cluster_metadata-0/aclog.lock", ".lock", "."])
def test_a_node_without_changes_ends_once_its_files_are_gone(tmp_path: Path, zygote: NodeZygote, name: str) -> None:
    with Cluster(tmp_path, zygote) as cluster:
        node, broker = cluster.controller, cluster.add_broker()
        cluster.start()
        for each in (node, broker) if name in {"meta.properties", "."} else (node,):
            path = each.home / "data" / name
            path.rename(each.home / "elsewhere") if path.is_file() else shutil.rmtree(path)
            assert each.wait() == 1
            told = each.output.splitlines()[-1]
            assert "stopped: " in told
            assert "removed" in told
