"""`aclog_acls` of a node is what its authorizer counts (KIP-801: AclCount), and is not there without an authorizer."""

import asyncio
import sys
from types import ModuleType

import pytest
from attrs import evolve

from aclog.authorizer.standard import KAFKAS_STANDARD_AUTHORIZER, StandardAuthorizer
from aclog.metalog.filelog.meta_properties import MetaProperties
from aclog.server.controller.activation import LOG_DIRECTORY
from aclog.server.node import Node
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.long_log import batch, begin_log
from tests.support.nodes.controllers import DIRECTORY_ID, formatted


class Counting(StandardAuthorizer):
    def acl_count(self):
        return 42


class NotCounting(StandardAuthorizer):
    def acl_count(self):
        return super(StandardAuthorizer, self).acl_count()


class Failing(StandardAuthorizer):
    def acl_count(self):
        raise OSError("the directory of rules is away")


@pytest.fixture
def node_with(tmp_path, monkeypatch):
    module = ModuleType("a_plugin")
    module.Counting, module.NotCounting, module.Failing = Counting, NotCounting, Failing
    monkeypatch.setitem(sys.modules, "a_plugin", module)
    config = formatted(tmp_path)
    begin_log(tmp_path / LOG_DIRECTORY, batch([acl_record(1, acl("a")), acl_record(2, acl("b"))]))
    meta = MetaProperties(cluster_id="a-cluster", node_id=1, directory_id=DIRECTORY_ID)
    return lambda name: Node(config=evolve(config, authorizer_class_name=name), meta=meta)


async def count_of(node):
    stop = asyncio.Event()
    running, serving = asyncio.create_task(node.run(stop)), asyncio.create_task(node.serving.wait())
    await asyncio.wait({running, serving}, return_when=asyncio.FIRST_COMPLETED)
    counts = [line.split()[1] for line in node.metrics.text().decode().splitlines() if line.startswith("aclog_acls ")]
    assert len(node.publisher.current.acls) == 2
    serving.cancel()
    stop.set()
    await running
    return counts


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (KAFKAS_STANDARD_AUTHORIZER, ["2.0"]),
        ("a_plugin.Counting", ["42.0"]),
        ("a_plugin.NotCounting", ["-1.0"]),
        ("a_plugin.Failing", ["NaN"]),
        (None, []),
    ],
)
def test_the_count_is_the_authorizers_own(node_with, name, counts):
    assert asyncio.run(count_of(node_with(name))) == counts
