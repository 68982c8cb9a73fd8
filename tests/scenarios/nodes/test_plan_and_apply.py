"""`aclog plan` and `aclog apply` on nodes of ours, by brokers and by controllers; and a broker that is cut off."""

import asyncio
import json

import pytest

from aclog.authorizer.acl import object_of_rule
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.settings import Settings
from aclog.client.connection import Role
from aclog.config.node_config import HostPort
from aclog.metalog.errors import StaleError
from aclog.targets.cluster import open_server_place
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.kafka.tools import client_properties
from tests.support.nodes.acl_client import AclClient, login
from tests.support.nodes.cluster import HOST, Cluster
from tests.support.nodes.tcp_proxy import TcpProxy
from tests.support.processes.waiting import SECONDS

pytestmark = pytest.mark.server


def add(port, rule):
    async def create():
        async with await AclClient.open(port) as client:
            assert await client.create([rule]) == [(0, "")]

    asyncio.run(create())


def test_a_plan_is_applied_and_a_broker_that_is_behind_is_not_believed(tmp_path, zygote):
    # A broker that is silent because it is cut off is not fenced: it goes on to be one that serves.
    with TcpProxy(0) as proxy, Cluster(tmp_path, zygote, broker_session_timeout_ms="600000") as cluster:
        proxy.target = cluster.controller.ports.controller
        first = cluster.add_broker().ports.broker
        cluster.add_broker(controller_at=proxy.port)
        cluster.start()
        config, foreign = client_properties(tmp_path, "admin"), acl("foreign")
        add(first, foreign)

        def change(where, port, *rules):
            (tmp_path / "want.jsonl").write_text("".join(f"{json.dumps(object_of_rule(each))}\n" for each in rules))
            place = (where, f"{HOST}:{port}", "--command-config", config)
            source = ("--want", tmp_path / "want.jsonl", "--journal", tmp_path / "journal", "--out", tmp_path / "plan")
            assert aclog("plan", *place, *source).code == 1
            return aclog("apply", tmp_path / "plan", "--yes").ok().out

        assert "2 rules added, 0 deleted" in change("--bootstrap-server", first, acl("a"), acl("b"))
        controller = cluster.controller.ports.controller
        assert "1 rule added, 1 deleted" in change("--bootstrap-controller", controller, acl("b"), acl("c"))

        with open_server_place([HostPort(host=HOST, port=first)], login("admin"), Role.BROKER, str) as place:
            assert place.settings() == Settings(super_users=frozenset({"User:admin", "User:broker"}))
            rules = {content_of(each) for each in (foreign, acl("b"), acl("c"))}
            assert place.read().contents == rules
            proxy.hold()
            add(first, acl("unseen"))
            cluster.brokers[0].wait_applied(cluster.controller.applied)
            place.patience = 0.3
            with pytest.raises(StaleError, match="broker 3 is behind: it has applied the metadata log up to offset"):
                place.read()
            proxy.release()
            place.patience = SECONDS
            assert place.read().contents == rules | {content_of(acl("unseen"))}
