"""How the nodes of a test Kafka are configured and formatted: one node, or three that share a quorum."""

import secrets
import shutil
from collections.abc import Mapping, Sequence
from uuid import UUID

from attrs import frozen

from aclog.metalog.primitives import random_uuid, uuid_text
from tests.support.kafka.server import KafkaServer, with_properties
from tests.support.nodes.server_properties import ADMIN_SCRAM, CLUSTER_ID, Ports, server_properties

STEADY = {
    "controller.quorum.fetch.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
    "metadata.max.idle.interval.ms": "500",
    "controlled.shutdown.enable": "false",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "log.cleaner.enable": "false",
}
"""A leader that is dead is replaced within seconds; a machine that is busy for a second deposes nobody."""


@frozen(kw_only=True)
class Voter:
    """A node as the others know it: `controller_port` is where they reach its controller, `ports` where it listens."""

    node_id: int
    ports: Ports
    controller_port: int
    directory_id: UUID

    @classmethod
    def new(cls, node_id: int, ports: Ports, controller_port: int) -> "Voter":
        """With a directory id of its own."""
        directory_id = random_uuid(secrets.token_bytes)
        return cls(node_id=node_id, ports=ports, controller_port=controller_port, directory_id=directory_id)

    @property
    def text(self) -> str:
        """As --initial-controllers names it."""
        return f"{self.node_id}@localhost:{self.controller_port}:{uuid_text(self.directory_id)}"


def properties_of(voter: Voter, voters: Sequence[Voter], *, static: bool, changes: Mapping[str, str]) -> str:
    """The server.properties of a node; `changes` are Kafka's keys as they are.

    Internal topics have a replica on each node, and go on while a majority of them does.
    """
    ports, replicas = voter.ports, min(len(voters), 3)
    quorum = {
        "node.id": str(voter.node_id),
        "listeners": f"SASL_PLAINTEXT://localhost:{ports.broker},CONTROLLER://localhost:{ports.controller}",
        "advertised.listeners": f"SASL_PLAINTEXT://localhost:{ports.broker},"
        f"CONTROLLER://localhost:{voter.controller_port}",
        "controller.quorum.bootstrap.servers": ",".join(f"localhost:{each.controller_port}" for each in voters),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(replicas // 2 + 1),
        "transaction.state.log.num.partitions": "1",
    }
    if static:
        places = (f"{each.node_id}@localhost:{each.controller_port}" for each in voters)
        quorum["controller.quorum.voters"] = ",".join(places)
    return with_properties(server_properties(ports), **(STEADY | quorum | dict(changes)))


def format_all(servers: Sequence[KafkaServer], voters: Sequence[Voter], *, static: bool) -> None:
    """kafka-storage format once, for the first node; the others get the same under their own ids."""
    first = servers[0]
    initial = () if static else ("--initial-controllers", ",".join(each.text for each in voters))
    first.format(CLUSTER_ID, *initial, "--add-scram", ADMIN_SCRAM)
    for server, voter in zip(servers[1:], voters[1:], strict=True):
        shutil.copytree(first.home / "data", server.home / "data")
        meta = server.home / "data" / "meta.properties"
        ids = {"node.id": str(voter.node_id), "directory.id": uuid_text(voter.directory_id)}
        meta.write_text(with_properties(meta.read_text(encoding="utf-8"), **ids), encoding="utf-8")
