"""aclog.cidr.enabled: what nodes decide with it, and how a node that is out of step is found."""

import json

import pytest

from tests.support.cli.command import aclog
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.cluster import HOST, Cluster
from tests.support.nodes.server_properties import PLAIN, password
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.server

ON = {"aclog.cidr.enabled": "true"}


def login(root, user):
    path = root / f"{user}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} required username="{user}" password="{password(user)}";\n'
    )
    return path


@pytest.mark.slow(6)
def test_a_range_counts_where_it_is_on_and_a_node_out_of_step_is_found(tmp_path, zygote):
    cluster = Cluster(tmp_path, zygote, **ON)
    on, off = cluster.add_broker(**ON), cluster.add_broker()
    places = [f"{HOST}:{node.ports.broker}" for node in (on, off)]
    admin, alice = login(tmp_path, "admin"), login(tmp_path, "alice")
    with cluster:
        cluster.start()
        assert [node.metric("aclog_cidr_enabled") for node in cluster.nodes] == [1, 1, 0]
        at = ("--bootstrap-server", places[1], "--command-config", admin)
        rule = ("--allow-principal", "User:alice", "--operation", "DESCRIBE", "--cluster", "--allow-host")
        refused = aclog("acls", "add", *at, *rule, "127.0.0.0/99")
        assert "is not a CIDR range" in refused.complaint, "the controller decides, whichever broker is asked"
        aclog("acls", "add", *at, *rule, "127.0.0.0/8").ok()
        on.wait_applied(cluster.controller.applied)
        by_alice = [aclog("acls", "list", "--bootstrap-server", at, "--command-config", alice) for at in places]
        assert [told.code for told in by_alice] == [0, 2]
        assert "needs DESCRIBE permission" in by_alice[1].complaint
        told = wait_status(*at)
        assert told["cidr"] == {places[0]: True, places[1]: False}
        warning, differing = told["warnings"]
        assert differing.endswith("nodes decide the same request differently")
        assert told["kafka"]["decideAlike"] is False
        assert f"aclog.cidr.enabled is true at {places[0]} and false at {places[1]}" in warning
        lines = aclog("status", *at).ok().lines
        assert f"CIDR hosts       on at {places[0]}" in lines
        assert f"CIDR hosts       off at {places[1]}" in lines
        controller = f"{HOST}:{cluster.controller.ports.controller}"
        alone = aclog("status", "--bootstrap-controller", controller, "--command-config", admin, "--json").ok()
        assert json.loads(alone.out)["cidr"] == {controller: True}
        assert "broker 3 has aclog.cidr.enabled False, this controller True" in cluster.controller.output


def wait_status(*at):
    """The status once both brokers are named, with their versions: registration takes a moment."""
    found = {}

    def both() -> bool:
        found.update(json.loads(aclog("status", *at, "--json").ok().out))
        return len(found["cidr"]) == 2 and found["kafka"]["decideAlike"] is not None

    wait_until(both, "both brokers")
    return found


def test_kafkas_tool_describes_the_feature(tmp_path, zygote):
    cluster = Cluster(tmp_path, zygote, **ON)
    with cluster:
        cluster.start()
        place = f"{HOST}:{cluster.controller.ports.controller}"
        command = ("--bootstrap-controller", place, "--command-config", str(login(tmp_path, "admin")), "describe")
        told = ToolPipe().run("org.apache.kafka.tools.FeatureCommand", command)
        assert "aclog.cidr" in told.out
