"""A real Kafka 3.9 in its migration from ZooKeeper to KRaft: why nothing is written to its ZooKeeper."""

import json
from contextlib import closing

import pytest

from aclog.authorizer.acl import StandardAcl, object_of_rule, resource_of
from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.client import zk_settings
from aclog.zookeeper.connect import kraft_controller, open_client
from aclog.zookeeper.znodes import entry_of, resource_path
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import KAFKA_39
from tests.support.kafka.server import AdminClient, KafkaError, KafkaServer, free_port, with_properties
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.kafka import ZooKeeperKafka
from tests.support.zookeeper.server import ZooKeeperServer

CONTROLLER = 3000
LOGIN = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
BY_KAFKA, BESIDE, LATER = acl("t", "User:by-kafka"), acl("t", "User:beside"), acl("t", "User:later")


def controller_of(kafka: ZooKeeperKafka, store: AclStore, home, connect: str) -> KafkaServer:
    """A controller to which the cluster of a broker is migrated once both run; the broker is told of it."""
    port = free_port()
    shared = {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": f"{CONTROLLER}@localhost:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    }
    path = kafka.home / "server.properties"
    before = path.read_text()
    path.write_text(with_properties(before, **shared))
    own = {
        "process.roles": "controller",
        "node.id": str(CONTROLLER),
        "listeners": f"CONTROLLER://localhost:{port}",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        LOGIN: next(line for line in before.splitlines() if line.startswith(LOGIN)).partition("=")[2],
        "zookeeper.connect": connect,
        "log.dirs": str(home / "data"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    home.mkdir()
    text = "".join(f"{key}={value}\n" for key, value in (shared | own).items())
    made = KafkaServer(home, text, port=port, version=KAFKA_39)
    made.format(json.loads(store.client.get("/cluster/id").data)["id"])
    return made


def principals(store: AclStore) -> set[str]:
    return {entry.principal for entry in store.read(resource_of(BESIDE)).entries}


@pytest.mark.slow(13)
def test_what_is_written_beside_is_lost_and_so_it_is_refused(tmp_path):
    with (
        ZooKeeperServer(tmp_path / "zookeeper") as server,
        closing(open_client(zk_settings({"zookeeper.connect": server.connect}))) as client,
    ):
        store = AclStore(client=client)
        kafka = ZooKeeperKafka(tmp_path / "kafka", server.connect)
        place = ("--authorizer-properties", f"zookeeper.connect={server.connect}")
        added = ("--allow-principal", "User:first", "--operation", "Read", "--topic", "t")
        with kafka:
            wait_until(lambda: client.get("/controller") is not None, "a broker controls the cluster")
            aclog("acls", "add", *place, *added).ok()
        with controller_of(kafka, store, tmp_path / "controller", server.connect), kafka:
            wait_until(lambda: kraft_controller(client) is not None, "the KRaft controller owns the cluster")
            refused = aclog("acls", "add", *place, "--allow-principal", "User:second", *added[2:])
            assert f"KRaft controller {CONTROLLER} owns the cluster" in refused.err
            assert refused.code != 0
            with AdminClient(kafka.port) as admin:
                wait_until(lambda: added_by_kafka(admin, BY_KAFKA), "the migration is done")
                wait_until(lambda: "User:by-kafka" in principals(store), "the controller has written it")
                # not before: what is there when the controller copies the ZooKeeper is copied with it
                store.update(resource_path(resource_of(BESIDE)), lambda held: held | {entry_of(BESIDE)})
                wait_until(lambda: added_by_kafka(admin, LATER), "the controller takes another rule")
                wait_until(lambda: "User:later" in principals(store), "the controller has written it too")
        written = {"User:first", "User:by-kafka", "User:later"}
        assert principals(store) == written, "and what was written beside is lost"
        wanted = tmp_path / "wanted.jsonl"
        wanted.write_text(json.dumps(object_of_rule(acl("t", "User:second"))) + "\n")
        planned = aclog("plan", *place, "--want", wanted, "--journal", tmp_path / "journal")
        assert planned.code == 2, "also when the controller has ended"
        assert f"KRaft controller {CONTROLLER} owns the cluster" in planned.err


def added_by_kafka(admin: AdminClient, rule: StandardAcl) -> bool:
    try:
        admin("createAcls", acls=[object_of_rule(rule)])
    except KafkaError:
        return False
    return True
