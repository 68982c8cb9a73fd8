"""`aclog serve` reports by log, metrics and `aclog status` of a node open by mistake; ZooKeeper mode is refused."""

import http.client
import json

import jsonschema
import pytest

from aclog.cli.schema import schema_of
from tests.support.cli.command import aclog
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import PLAIN, Ports, server_properties


@pytest.mark.server
def test_a_node_that_forgot_its_authorizer(tmp_path):
    ports = Ports.free()
    text = server_properties(ports).replace("authorizer.class.name=", "authorizer.class=")
    with AclogNode(tmp_path, ports, text.replace("super.users=", "kafka.superusers=")) as node:
        connection = http.client.HTTPConnection("127.0.0.1", ports.http, timeout=300)
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
        connection.close()
        login = tmp_path / "admin.properties"
        jaas = f'{PLAIN} required username="admin" password="admin-secret";'
        login.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n")
        place = f"localhost:{ports.broker}"
        status = aclog("status", "--bootstrap-server", place, "--command-config", str(login)).ok()
        told = aclog("status", "--bootstrap-server", place, "--command-config", str(login), "--format", "json").ok()
        controller = ("--bootstrap-controller", f"localhost:{ports.controller}", "--command-config", str(login))
        listed = aclog("acls", "list", *controller, "--format", "json").ok()
        exported = aclog("export", *controller, "--format", "jsonl").ok()
        history = aclog("acls", "history", *controller).ok()
        rule = ("--allow-principal", "User:a", "--operation", "READ", "--topic", "t")
        refused = [
            aclog("acls", "add", *where, *rule)
            for where in (controller, ("--bootstrap-server", place, *controller[2:]))
        ]
        refused.append(aclog("acls", "list", "--bootstrap-server", place, *controller[2:]))
    jsonschema.validate(json.loads(told.out), schema_of("status"))
    warnings = [line for line in node.output.splitlines() if "warning" in line.lower()]
    keys = "authorizer.class (did you mean authorizer.class.name?), kafka.superusers (did you mean super.users?)"
    [open_] = [line for line in warnings if "authorizer.class.name is not set: every client may" in line]
    assert any(keys in line for line in warnings)
    assert "although clients log in at listeners SASL_PLAINTEXT, CONTROLLER and kafka.superusers is set." in open_
    assert node.output.index(open_) < node.output.index(" on port ")
    assert 'aclog_access_warning{warning="no_authorizer"} 1.0' in metrics
    assert f"authorizer       none at {place}" in status.lines
    assert f"broker           1 at {place}, Kafka 4.3" in status.lines
    assert "controller       1, Kafka 4.3" in status.lines
    assert "Kafka            all nodes run Kafka 4.3" in status.lines
    assert json.loads(told.out)["kafka"]["decideAlike"] is True
    assert f"no authorizer at {place}: every client may perform every operation there." in status.out
    assert json.loads(listed.out) == []
    for each in (listed, exported, history):
        assert f"note: localhost:{ports.controller}: no node that responded has an authorizer" in each.err
    step = "et authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer on the node"
    assert listed.err.rstrip().endswith(step)
    assert [each.code for each in refused] == [2, 2, 2]
    assert "No Authorizer is configured. Set authorizer.class.name=" in refused[0].complaint
    assert "No Authorizer is configured. (" in refused[2].complaint
    assert "has no ACLs); set authorizer.class.name=" in refused[2].complaint
    assert all(each.complaint.endswith(step) for each in refused)


def test_zookeeper_mode_is_refused(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("broker.id=0\nzookeeper.connect=localhost:2181\nlisteners=PLAINTEXT://localhost:9092\n")
    refused = aclog("serve", str(path))
    assert refused.code == 2
    assert "ZooKeeper mode" in refused.err
    assert "Two ways out: copy" in refused.err
    assert "; or leave" in refused.err
