"""A real Kafka 4.3.1 starts on the directory that an aclog node made, and aclog on what that Kafka left."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import confluent_kafka.admin as cka
import pytest

from aclog.authorizer.settings import Generation
from aclog.metalog.filelog.committed_mark import committed_path, read_committed
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.filelog.verify import verify
from aclog.metalog.records import RegisterBrokerRecord
from aclog.server.feature_levels import SUPPORTED_FEATURES
from aclog.snapshots.checkpoints import write_checkpoint, write_image_file
from aclog.snapshots.publisher import recover
from tests.support.admin.answers import comparable
from tests.support.admin.requests import (
    ALTER_SCRAM,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_SCRAM,
    exactly,
    matching,
    removal,
    rule,
    upsert,
)
from tests.support.kafka.metadata_shell import shell_answers
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import AdminClient
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.barrier import NAME, Barrier
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, password, server_properties
from tests.support.nodes.wire_client import WireClient, nested
from tests.support.processes.waiting import SECONDS, wait_until

BROKER_REGISTRATION = 62
CHANGES = 1000
BETWEEN_CHECKPOINTS = "20000"
"""Bytes of records: some 200 changes."""


def changed(client: WireClient, dice: random.Random, count: int, salt: str) -> None:
    """Rules come and go, one or a few a request, and SCRAM users now and then."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        if number % 50 == 49:
            users = (upsert(f"{salt}-{number}", iterations=4096 + number),)
            gone = (removal(f"{salt}-{number - 50}"),) if number % 100 == 99 else ()
            answer = client.ask(ALTER_SCRAM, 0, deletions=gone, upsertions=users)
            assert not any(result.error_code for result in answer.results), answer
        elif made and dice.random() < 0.3:
            one = nested(DELETE_ACLS, 3, "DeleteAclsFilter", **exactly(made.pop(dice.randrange(len(made)))))
            (result,) = client.ask(DELETE_ACLS, 3, filters=(one,)).filter_results
            assert len(result.matching_acls) == 1, result
        else:
            rules = [a_rule(dice, f"{salt}-{number}-{part}") for part in range(dice.choice((1, 1, 1, 5)))]
            made += rules
            creations = tuple(nested(CREATE_ACLS, 3, "AclCreation", **row) for row in rules)
            answer = client.ask(CREATE_ACLS, 3, creations=creations)
            assert not any(result.error_code for result in answer.results), answer


def a_rule(dice: random.Random, name: str) -> dict[str, Any]:
    """A rule of its own name."""
    place = {"resource_type": dice.choice((2, 3, 5, 6, 7)), "resource_name": f"{name}-é"}
    place |= {"resource_pattern_type": dice.choice((3, 4)), "principal": f"User:{dice.randrange(9)}"}
    return rule(**place, host=dice.choice(("*", "10.1.2.3")), operation=dice.randint(2, 8))


def rows(answer: Any) -> list[tuple[Any, ...]]:
    """The rules of a DescribeAcls answer, a barrier's aside."""
    assert not answer.error_code, answer
    return sorted(
        (place.resource_type, place.resource_name, place.pattern_type, acl.principal, acl.host, acl.operation)
        for place in answer.resources
        for acl in place.acls
        if not place.resource_name.startswith(NAME)
    )


def described(ports: Ports) -> dict[str, Any]:
    """What both listeners describe, once all that was written can be seen."""
    barrier = Barrier(ports)
    barrier.wait(leave_nothing=True)
    barrier.close()
    found = {}
    for name, port in (("broker", ports.broker), ("controller", ports.controller)):
        with WireClient(port).plain("admin", password("admin")) as client:
            found[name] = rows(client.ask(DESCRIBE_ACLS, 3, **matching()))
            if name == "broker":
                users = comparable(DESCRIBE_SCRAM, client.ask(DESCRIBE_SCRAM, 0, users=()), ports)["results"]
                found["users"] = [[user["user"], user["credential_infos"]] for user in users]
    assert found["broker"] == found["controller"]
    return found


def change_live(ports: Ports, dice: random.Random, count: int, salt: str) -> dict[str, Any]:
    """Change what a running node holds, through its broker; what it describes then."""
    with WireClient(ports.broker).plain("admin", password("admin")) as client:
        changed(client, dice, count, salt)
    return described(ports)


def may_log_in(ports: Ports, user: str) -> None:
    """A SCRAM user of the log logs in."""
    with WireClient(ports.broker).scram("SCRAM-SHA-256", user, "secret"):
        pass


def listed_offline(log: Path) -> list[str]:
    """`aclog acls list` on a stopped node's directory: the rules' resources."""
    command = [sys.executable, "-m", "aclog", "acls", "list", "--log", str(log), "--format", "jsonl"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    return sorted(json.loads(line)["resourceName"] for line in done.stdout.splitlines())


@pytest.mark.slow(18)
def test_kafka_starts_where_aclog_stopped_and_aclog_where_kafka_did(tmp_path: Path) -> None:
    ports, dice = Ports.free(), random.Random(801)
    more = {"metadata_log_max_record_bytes_between_snapshots": BETWEEN_CHECKPOINTS}
    properties = server_properties(ports, **more)
    aclog, kafka = AclogNode(tmp_path, ports, properties), RealNode(tmp_path, ports, properties)
    log = aclog.log_directory
    with aclog.format():
        wanted = change_live(ports, dice, CHANGES, "aclog")
        checkpoints = [file for file in list_checkpoints(log) if file.end_offset]
        assert checkpoints, "no checkpoint was written"
    for checkpoint in checkpoints:
        write_image_file(checkpoint.path)
    assert list(verify(log)) == []
    mark = read_committed(log)
    assert mark is not None
    with kafka:  # to which the mark and the image files are files like any other
        assert described(ports) == wanted
        may_log_in(ports, "aclog-899")
        wanted = change_live(ports, dice, 100, "kafka")
    assert list(verify(log)) == []
    assert read_committed(log) == mark
    with aclog:
        moved = read_committed(log)
        assert moved is not None
        assert moved.end_offset > mark.end_offset
        assert described(ports) == wanted
        may_log_in(ports, "aclog-899")
        may_log_in(ports, "kafka-99")
        wanted = change_live(ports, dice, 100, "again")
    assert listed_offline(log) == sorted(row[1] for row in wanted["broker"])
    with kafka:
        assert described(ports) == wanted
        may_log_in(ports, "again-99")
    # What a Kafka led last has no mark to fall behind: without any, it is made at the start.
    committed_path(log).unlink()
    with aclog:
        assert described(ports) == wanted
        assert read_committed(log) is not None


def test_aclog_starts_on_a_directory_that_kafka_formatted(tmp_path: Path) -> None:
    ports, dice = Ports.free(), random.Random(4)
    kafka, aclog = RealNode(tmp_path, ports).format(), AclogNode(tmp_path, ports)
    with aclog:
        wanted = change_live(ports, dice, 60, "aclog")
        with WireClient(ports.broker).scram("SCRAM-SHA-256", "admin", "admin-secret"):
            pass
    with kafka:
        assert described(ports) == wanted


def broker_of(log: Path) -> RegisterBrokerRecord:
    """The registration of the node's broker in a stopped node's log."""
    (broker,) = recover(log).image.cluster.brokers()
    return broker


def leaders(ports: Ports, topic: str) -> list[int]:
    """The leaders of a topic's partitions, as soon as all have one."""
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": password("admin")}
    admin = cka.AdminClient(
        {"bootstrap.servers": f"localhost:{ports.broker}", "security.protocol": "SASL_PLAINTEXT", **login}
    )

    def all_of_them() -> list[int]:
        partitions = admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions.values()
        ids = [partition.leader for partition in partitions]
        return ids if min(ids, default=-1) >= 0 else []

    return wait_until(all_of_them, f"a leader of each partition of {topic}", every=0.1)


def part(kind: str, **fields: Any) -> Any:
    """A part of a BrokerRegistrationRequest."""
    return nested(BROKER_REGISTRATION, 4, kind, **fields)


def unreadable(other: RegisterBrokerRecord) -> dict[str, dict[str, Any]]:
    """Registrations whose records would end a Kafka that replays them, or hold it up."""
    listener = {"name": "A", "host": "localhost", "port": 9, "security_protocol": 0}
    odd = {"a listener without a name": {"name": ""}, "an unknown security protocol": {"security_protocol": 4}}
    many = (part("Feature", name=f"f{n}", min_supported_version=0, max_supported_version=1) for n in range(10_000))
    return {
        "another's directory": {"log_dirs": other.log_dirs},
        **{name: {"listeners": (part("Listener", **listener | change),)} for name, change in odd.items()},
        "too many features": {"features": tuple(many)},
    }


def refusal(ports: Ports, **fields: Any) -> int:
    """The code of a registration of broker 7 with these fields."""
    features = (
        part("Feature", name=name, min_supported_version=0, max_supported_version=30)
        for name in SUPPORTED_FEATURES[Generation.V4_3]
    )
    complete = {"log_dirs": (UUID(int=1 << 70),), "listeners": (), "features": tuple(features)} | fields
    with WireClient(ports.controller).plain("admin", password("admin")) as client:
        answer = client.ask(
            *(BROKER_REGISTRATION, 4),
            broker_id=7, cluster_id=CLUSTER_ID, incarnation_id=UUID(int=2 << 70), rack=None, **complete,
        )  # fmt: skip
    return int(answer.error_code)


@pytest.mark.slow(25)
def test_kafka_registers_in_place_of_a_broker_of_ours_that_was_killed(tmp_path: Path) -> None:
    """And the other way round; a topic that Kafka made meanwhile has its leader when it comes back."""
    ports = Ports.free()
    # With a feature in its registration that no Kafka knows. A session that is not to end lasts for ten minutes.
    changes = {"broker_heartbeat_interval_ms": "500", "aclog.cidr.enabled": "true"}
    lasting = server_properties(ports, broker_session_timeout_ms="600000", **changes)
    aclog = AclogNode(tmp_path, ports, lasting).format().start()
    wait_until(lambda: "registered as broker 1" in aclog.output, "its registration")
    wanted = change_live(ports, random.Random(5), 10, "aclog")
    assert {name: refusal(ports, **each) for name, each in unreadable(broker_of(aclog.log_directory)).items()} == {
        "another's directory": 119,
        "a listener without a name": 119,
        "an unknown security protocol": 119,
        "too many features": 119,
    }
    aclog.kill()
    ours = broker_of(aclog.log_directory)
    assert not ours.fenced, "it could not say that it ends"
    assert "aclog.cidr" in {feature.name for feature in ours.features}
    # Its session is over soon after the start of Kafka, which can then register in its place.
    kafka = RealNode(tmp_path, ports, server_properties(ports, broker_session_timeout_ms="3000", **changes))
    with kafka:
        assert described(ports) == wanted
        with AdminClient(ports.broker) as admin:
            admin("createTopic", topic="kept")
        assert leaders(ports, "kept") == [1, 1]
    kafkas = broker_of(aclog.log_directory)
    assert kafkas.incarnation_id != ours.incarnation_id
    assert (kafkas.fenced, kafkas.broker_epoch > ours.broker_epoch) == (True, True)
    aclog = AclogNode(tmp_path, ports, lasting)
    with aclog:
        wait_until(lambda: "registered as broker 1" in aclog.output, "its registration")
        assert described(ports) == wanted
    again = broker_of(aclog.log_directory)
    assert again.fenced, "it said that it ends"
    assert [each.name for each in again.end_points] == ["SASL_PLAINTEXT"]
    with kafka:
        assert leaders(ports, "kept") == [1, 1]
    image = recover(aclog.log_directory).image
    path = write_checkpoint(image, tmp_path)
    (shown,) = shell_answers(path, ["ls /image/cluster/brokers"], until=f"epoch {image.epoch}")
    assert shown == ["1"]
    assert list(verify(aclog.log_directory)) == []
