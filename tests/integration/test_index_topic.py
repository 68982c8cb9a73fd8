"""`aclog usage-index --accesses kafka://...` on a real Kafka: each record counts once, and lost ones are recorded."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from aclog.metalog.errors import ConfigError
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.window import EARLIEST, LATEST, LOST_RECORDS
from tests.cli.test_index_follow import line_of
from tests.cli.test_usage_index import RULES, written
from tests.support.cli.command import aclog
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.topics import client_properties
from tests.support.nodes.server_properties import PLAIN, Ports, password
from tests.support.processes.waiting import SECONDS, wait_until

LOGIN = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={} required {};\n"
PARTITIONS, KILLS = 3, 4


class Topic:
    """A topic of access-log lines, and the index of them."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.name, self.directory, self.written = f"accesses-{uuid4().hex[:8]}", directory, 0
        self.properties = client_properties(bootstrap)
        self.admin, self.producer = AdminClient(self.properties), Producer(self.properties | {"linger.ms": "0"})
        written(directory / "acls.jsonl", RULES)
        config = directory / "client.properties"
        config.write_text(LOGIN.format(PLAIN, f'username="admin" password="{password("admin")}"'))
        self.command = ["usage-index", "--accesses", f"kafka://{bootstrap}/{self.name}"]
        self.command += ["--accesses-command-config", str(config), "--acls", str(directory / "acls.jsonl")]
        self.command += ["--index", str(directory / "index")]
        self.create()

    def create(self) -> None:
        new = NewTopic(self.name, num_partitions=PARTITIONS, replication_factor=1)
        self.admin.create_topics([new])[self.name].result(SECONDS)

    def write(self, count: int, partition: int | None = None) -> None:
        for number in range(self.written, self.written + count):
            place = number % PARTITIONS if partition is None else partition
            self.producer.produce(self.name, line_of(number).encode(), partition=place)
        assert self.producer.flush(SECONDS) == 0
        self.written += count

    def abort(self) -> None:
        producer = Producer(self.properties | {"transactional.id": f"aborted-{uuid4().hex}"})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        producer.produce(self.name, line_of(0).encode(), partition=0)
        producer.flush(SECONDS)
        producer.abort_transaction(SECONDS)

    def counted(self) -> int:
        with suppress(ConfigError), UsageIndex.open(self.directory / "index") as index:
            return int(index.coverage().rows.sum())
        return 0

    def lost(self) -> dict[str, int]:
        """The number of spans of lost records, and of those records, as far as it is known."""
        with UsageIndex.open(self.directory / "index") as index:
            spans = [span for key, span in index.unread(EARLIEST, LATEST).spans.items() if key.reason == LOST_RECORDS]
        return {"spans": len(spans), "records": sum(span.accesses for span in spans)}

    def printed(self) -> str:
        return f"{self.counted()} of {self.written}: {(self.directory / 'err').read_text()[-2000:]}"

    @contextmanager
    def following(self) -> "Iterator[subprocess.Popen[bytes]]":
        command = [sys.executable, "-m", "aclog", *self.command, "--follow", "--interval", "0.05"]
        with (self.directory / "err").open("ab") as err:
            process = subprocess.Popen(command, stdout=err, stderr=err)
        try:
            yield process
        finally:
            process.kill()
            process.wait(SECONDS)


@pytest.fixture
def topic(topic_kafka, tmp_path):
    return Topic(topic_kafka.bootstrap, tmp_path)


def test_killed_again_and_again_each_record_counts_once(topic):
    chance = random.Random(38)
    topic.write(100)
    topic.abort()
    aclog(*topic.command).ok()
    assert topic.counted() == 100
    for kill in range(KILLS):
        with topic.following() as process:
            before = topic.counted()
            topic.write(50)
            if kill % 2 == 0:
                wait_until(lambda before=before: topic.counted() > before, topic.printed, 120)
            deadline = time.monotonic() + chance.uniform(0, 1.5)
            while time.monotonic() < deadline:
                topic.write(chance.choice([1, 40, 700]))
                time.sleep(chance.uniform(0, 0.03))
            assert process.poll() is None, (topic.directory / "err").read_text()
    topic.abort()
    with topic.following() as process:
        wait_until(lambda: topic.counted() >= topic.written, topic.printed, 120)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, (topic.directory / "err").read_text()
    assert topic.counted() == topic.written
    assert aclog(*topic.command).ok().lines[-1] == "nothing new"
    with UsageIndex.open(topic.directory / "index") as index:
        assert sum(run.accesses for run in index.runs()) == topic.written
        assert int(index.used(0, 60_000).matched.sum()) == topic.written
    assert topic.lost() == {"spans": 0, "records": 0}


def test_lost_records_are_recorded_once_and_their_rules_are_not_judged(topic):
    topic.write(30)
    aclog(*topic.command).ok()
    topic.write(30)
    # as retention removes them: 10 of each partition were read, 9 of the other 10 are gone
    ends = [TopicPartition(topic.name, partition, 19) for partition in range(PARTITIONS)]
    for future in topic.admin.delete_records(ends).values():
        future.result(SECONDS)
    removed = aclog(*topic.command).ok()
    assert removed.err.count("9 records since") == PARTITIONS
    assert (topic.counted(), topic.lost()) == (33, {"spans": 1, "records": 27})
    again = aclog(*topic.command).ok()
    assert ("cannot be read" in again.err, topic.lost()) == (False, {"spans": 1, "records": 27})
    unused = aclog(
        "unused", "--acls", topic.directory / "acls.jsonl", "--index", topic.directory / "index", "--days", 1
    )
    assert "LOST_RECORDS 27" in unused.err + unused.out

    # the log of a partition ends before what was read: as after an unclean election
    with UsageIndex.open(topic.directory / "index", writable=True) as index, index.database.writing() as database:
        database.execute("UPDATE streams SET batch = batch + 5 WHERE name LIKE '%:2:offset'")
    truncated = aclog(*topic.command).ok()
    assert "partition 2: records since" in truncated.err
    assert "the log of the partition was truncated" in truncated.err
    assert (topic.counted(), topic.lost()["records"]) == (33, 27)

    topic.admin.delete_topics([topic.name])[topic.name].result(SECONDS)
    wait_until(lambda: topic.name not in topic.admin.list_topics(timeout=60).topics)
    topic.create()
    topic.write(6)
    recreated = aclog(*topic.command).ok()
    assert recreated.err.count("the topic was deleted and created again") == PARTITIONS
    assert topic.counted() == 39
    assert "cannot be read" not in aclog(*topic.command).ok().err


def test_a_partition_that_was_truncated_and_has_grown_since_is_noticed(tmp_path):
    """By the epoch of its leader: as after an unclean election, offsets alone would not show it."""
    ports = Ports.free()
    with RealNode(tmp_path / "node", ports).format() as node:
        topic = Topic(f"localhost:{ports.broker}", tmp_path)
        topic.write(4, partition=0)
        aclog(*topic.command).ok()
        node.stop()
        node.start()  # the next leader epoch begins at offset 4
        topic.write(10, partition=0)
        with UsageIndex.open(tmp_path / "index", writable=True) as index, index.database.writing() as database:
            # as if four records had been read that the next leader never had
            database.execute("UPDATE streams SET batch = batch + 4 WHERE name LIKE '%:0:offset'")
        truncated = aclog(*topic.command).ok()
        assert truncated.err.count("the log of the partition was truncated") == 1
        assert topic.counted() == 4 + 14 - 8
        assert topic.lost() == {"spans": 1, "records": 0}
        assert "cannot be read" not in aclog(*topic.command).ok().err


def test_read_on_the_topic_is_enough(topic_kafka, topic, tmp_path):
    """Without a right to the group of the client's group.id, whose coordinator it looks for on its own."""
    topic.write(30)
    user = AclBinding(
        *(ResourceType.TOPIC, topic.name, ResourcePatternType.LITERAL, "User:bob", "*"),
        *(AclOperation.READ, AclPermissionType.ALLOW),
    )
    topic.admin.create_acls([user])[user].result(SECONDS)
    config = tmp_path / "client.properties"
    config.write_text(LOGIN.format(PLAIN, f'username="bob" password="{password("bob")}"'))

    def has_access() -> bool:
        listed = AdminClient(client_properties(topic_kafka.bootstrap, "bob")).list_topics(topic.name, timeout=60)
        return listed.topics[topic.name].error is None

    wait_until(has_access)
    aclog(*topic.command).ok()
    assert topic.counted() == 30


def test_what_cannot_be_read_is_refused_without_an_index(topic_kafka, tmp_path, topic):
    for flags, error in (
        (["--accesses", "kafka://host:9092"], "expected kafka://HOST:PORT[,HOST:PORT...]/TOPIC"),
        (["--accesses", f"kafka://{topic_kafka.bootstrap}/none-of-these"], "no such topic"),
        (["--accesses", "a.log", "--accesses", "kafka://host:1/t"], "expected no other --accesses beside a topic"),
    ):
        refused = aclog("usage-index", *flags, *topic.command[3:])
        assert refused.code == 2
        assert error in refused.complaint
    assert not (tmp_path / "index").exists()
