"""Which Kafka a live cluster runs, and so how it decides on a range of addresses: a real 4.3.1 and a real 4.4.0."""

import json

import pytest

from aclog.authorizer.acl import object_of_rule
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import KAFKA_44, KAFKA_VERSION
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.tools import client_properties
from tests.support.nodes.server_properties import Ports, server_properties

RANGE = "10.0.0.0/8"
ASKED = ("--principal", "User:alice", "--operation", "READ", "--topic", "orders", "--host", "10.1.2.3")
GIVEN = ("--super-users", "User:admin", "--no-allow-everyone-if-no-acl-found")


@pytest.mark.parametrize("version", [KAFKA_VERSION, KAFKA_44])
def test_a_live_cluster_states_it(tmp_path, version):
    ports = Ports.free()
    with RealNode(tmp_path / "kafka", ports, server_properties(ports), version=version).format():
        config = client_properties(tmp_path, "admin")
        server = ("--bootstrap-server", f"localhost:{ports.broker}", "--command-config", config)
        controller = ("--bootstrap-controller", f"localhost:{ports.controller}", "--command-config", config)
        rule = ("--allow-principal", "User:alice", "--allow-host", RANGE, "--operation", "READ", "--topic", "orders")
        aclog("acls", "add", *server, *rule).ok()
        for place in (server, controller):
            answer = aclog("authorize", *place, *ASKED, *GIVEN, "--format", "json")
            row = json.loads(answer.out)
            assert (row["decision"], row.get("generation")) == ("ALLOWED" if version == KAFKA_44 else "DENIED", None)
            assert "version of its brokers" not in answer.err
            found = aclog("who-can", *place, "--operation", "READ", "--topic", "orders", *GIVEN).ok()
            assert ("User:alice" in found.out) is (version == KAFKA_44)
            upgraded = aclog("diff", *place, "--to-kafka-version", "4.4", *GIVEN)
            assert (upgraded.code, "GAINED  User:alice" in upgraded.out) == (
                (0, False) if version == KAFKA_44 else (1, True)
            )
        for place in (server, controller):
            _plans_by_what_the_brokers_run(place, tmp_path / place[0], version)
        lint = aclog("lint", *server, *GIVEN, "--format", "jsonl", "--select", "04")
        assert [json.loads(line)["lint"] for line in lint.lines] == ([] if version == KAFKA_44 else ["04"])


def _plans_by_what_the_brokers_run(place, home, version):
    """A plan of a rule with a range, and a grant that the range makes needless, at a live cluster."""
    home.mkdir()
    added = acl("bills", "User:bob", RANGE)
    (home / "want.jsonl").write_text(f"{json.dumps(object_of_rule(added))}\n")
    words = ("--want", home / "want.jsonl", "--journal", home / "journal", "--out", home / "PLAN")
    shown = aclog("plan", *place, *words, *GIVEN)
    assert shown.code == 1, shown
    assert (f"from {RANGE}" in shown.out.partition("Steps")[0]) is (version == KAFKA_44)
    assert "may decide" not in shown.out
    settings = json.loads((home / "PLAN").read_text().splitlines()[0])["settings"]
    assert settings["generations"] == ["4.4" if version == KAFKA_44 else "4.3"]
    asked = ("--principal", "User:alice", "--intent", "consume", "--topic", "orders", "--group", "g")
    steps = aclog("grant", *place, *asked, "--host", "10.1.2.3", *GIVEN, "--format", "jsonl")
    topics = [json.loads(line)["rule"]["resourceName"] for line in steps.lines]
    assert ("orders" in topics) is (version != KAFKA_44), steps
