"""A node that keeps its index of last use, killed again and again: what was written is there, once."""

import asyncio
import re
import time
from pathlib import Path

import pytest

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.codes import AclOperation
from aclog.client.connection import connect
from aclog.client.requests import create_acls, describe_acls
from aclog.config.node_config import HostPort
from aclog.usage.index.database import FILE
from aclog.usage.index.usage_index import UsageIndex
from tests.support.builders.acls import cluster_acl
from tests.support.nodes.acl_client import login
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports, server_properties
from tests.support.processes.waiting import wait_until

pytestmark = [pytest.mark.server, pytest.mark.slow(12)]

ALICE = re.compile(r"Principal = User:alice is Allowed")


def node_of(home: Path) -> AclogNode:
    ports = Ports.free()
    node = AclogNode(home, ports, server_properties(ports, aclog_usage_index="usage"))
    node.log_every_decision()
    return node.format()


def ask(node: AclogNode, user: str, times: int, *, rule: bool = False) -> None:
    """Let a user list no ACLs, which needs DESCRIBE on the cluster; before that, let the admin allow it to alice."""

    async def run() -> None:
        async with await connect(HostPort(host="localhost", port=node.ports.broker), login(user)) as connection:
            if rule:
                await create_acls(connection, [cluster_acl("User:alice", AclOperation.DESCRIBE)])
            for _ in range(times):
                await describe_acls(connection, AclBindingFilter(resource_name="none"))

    asyncio.run(run())


def indexed(node: AclogNode) -> tuple[int, int]:
    """How many accesses are in the index, and how many needed alice's only rule."""
    with UsageIndex.open(node.home / "usage") as index:
        accesses = sum(run.accesses for run in index.runs())
        return accesses, int(index.used(0, 60_000).needed.sum())


def lines(node: AclogNode) -> int:
    return len(ALICE.findall(node.output))


def wait_for_writes(node: AclogNode) -> None:
    begun = time.time()
    wait_until(lambda: time.time() - node.metric("aclog_usage_index_age_seconds") > begun)


def test_a_kill_loses_what_was_not_written_and_nothing_else(tmp_path: Path) -> None:
    node = node_of(tmp_path / "node")
    lost = 0
    for number in range(2):
        node.start()
        ask(node, "admin", 0, rule=number == 0)
        ask(node, "alice", 20)
        wait_for_writes(node)
        written = lines(node) - lost
        assert indexed(node) == (written, written)
        ask(node, "alice", 7)
        node.kill()
        accesses, needed = indexed(node)
        assert accesses == needed
        assert written <= accesses <= written + 7
        lost = lines(node) - accesses
    node.start()
    ask(node, "alice", 5)
    assert node.stop() == 0
    assert indexed(node) == (lines(node) - lost,) * 2  # a stop loses nothing
    with UsageIndex.open(node.home / "usage") as index:
        assert len(index.lives()) == 1
        assert index.coverage().brokers == ("1",)


def test_a_node_starts_and_decides_with_a_broken_index(tmp_path: Path) -> None:
    node = node_of(tmp_path / "node")
    (node.home / "usage").mkdir()
    (node.home / "usage" / FILE).write_bytes(b"not a database" * 100)
    node.start()
    ask(node, "admin", 0, rule=True)
    ask(node, "alice", 3)
    wait_until(lambda: node.metric("aclog_usage_index_failures_total") > 0)
    assert "the index of last use cannot be kept (tried again)" in node.output
    assert node.stop() == 0
    assert "the last decisions are lost" in node.output
