"""`aclog log adopt`: what it refuses before it asks any broker."""

from tests.support.cli.command import aclog
from tests.support.nodes.server_properties import Ports, server_properties


def config(tmp_path, *lines):
    path = tmp_path / "server.properties"
    path.write_text("\n".join(lines))
    return path


TOPIC = (
    "process.roles=controller",
    "node.id=1",
    "controller.quorum.voters=1@localhost:9093",
    "listeners=CONTROLLER://localhost:9093",
    "controller.listener.names=CONTROLLER",
    "metadata.log.kind=topic",
    "metadata.log.bootstrap.servers=localhost:1",
)


def test_a_controller_without_a_topic(tmp_path):
    path = config(tmp_path, server_properties(Ports(broker=9092, controller=9093, http=0)))
    said = aclog("log", "adopt", path)
    assert said.code == 2
    assert said.complaint == f"{path}: metadata.log.kind is not topic: there is no topic to adopt"


def test_a_directory_that_is_not_formatted_is_left_alone(tmp_path):
    data = tmp_path / "data"
    said = aclog("log", "adopt", config(tmp_path, *TOPIC, f"log.dirs={data}"), "--force")
    assert said.code == 2
    assert f"No `meta.properties` found in {data}" in said.complaint
    assert not data.exists()
