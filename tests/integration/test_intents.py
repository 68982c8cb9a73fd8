"""Intents beside real clients (librdkafka's) on a real Kafka: with the least rules each works, with one less it fails.

`aclog check not-granted` reads the same cluster and must say the same.
"""

import json
import time

import confluent_kafka as ck
import confluent_kafka.admin as cka
import pytest

from tests.support.cli.command import aclog
from tests.support.processes.waiting import SECONDS

USER, QUICK_S = "alice", 10.0
ALLOW, DENY = cka.AclPermissionType.ALLOW, cka.AclPermissionType.DENY
TOPIC, GROUP, TRANSACTION = cka.ResourceType.TOPIC, cka.ResourceType.GROUP, cka.ResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = cka.AclOperation.READ, cka.AclOperation.WRITE, cka.AclOperation.DESCRIBE
CREATE, DELETE = cka.AclOperation.CREATE, cka.AclOperation.DELETE
ALTER, ALTER_CONFIGS = cka.AclOperation.ALTER, cka.AclOperation.ALTER_CONFIGS


class Cluster:
    """A running Kafka, its super user, and clients of one user."""

    def __init__(self, kafka, home):
        self.home, self.servers = home, f"localhost:{kafka.port}"
        self.admin = cka.AdminClient(self.login("admin"))

    def login(self, user):
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
            "log_level": 0,
        }

    def has_only(self, *rules):
        """Give the user these rules, and nobody any other."""
        everything = cka.AclBindingFilter(
            cka.ResourceType.ANY, None, cka.ResourcePatternType.ANY, None, None, cka.AclOperation.ANY,
            cka.AclPermissionType.ANY,
        )  # fmt: skip
        for each in self.admin.delete_acls([everything]).values():
            each.result(SECONDS)
        for each in self.admin.create_acls([binding(*rule) for rule in rules]).values() if rules else ():
            each.result(SECONDS)

    def grants(self, intent, *resources):
        """What aclog says of the cluster as it is."""
        config = self.home / "admin.properties"
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security."
            'plain.PlainLoginModule required username="admin" password="admin-secret";\n'
        )
        source = ("--bootstrap-server", self.servers, "--command-config", config)
        asked = ("--principal", f"User:{USER}", "--intent", intent, *resources, "--format", "jsonl")
        result = aclog("check", "not-granted", *source, *asked, "--super-users", "User:admin")
        head = json.loads(result.lines[0])
        assert (result.code, head["verdict"]) in {(0, "PROVED"), (1, "REFUTED")}
        assert head["topics"] == (result.code == 1 and "sales" in resources)  # of those that exist
        return result.code == 1


def binding(kind, name, operation, permission=ALLOW):
    return cka.AclBinding(kind, name, cka.ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, permission)


def produce(cluster):
    failed = []
    producer = ck.Producer(cluster.login(USER) | {"message.timeout.ms": 5000})
    producer.produce("sales", b"x", on_delivery=lambda error, _: failed.append(error))
    producer.flush(QUICK_S)
    return len(failed) == 1 and failed[0] is None


def consume(cluster):
    consumer = ck.Consumer(cluster.login(USER) | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["sales"])
    try:
        message = consumer.poll(QUICK_S)
        return message is not None and message.error() is None
    except ck.KafkaException:
        return False
    finally:
        consumer.close()


def transact(cluster):
    consumer = ck.Consumer(cluster.login(USER) | {"group.id": "g"})
    producer = ck.Producer(cluster.login(USER) | {"transactional.id": "tx", "message.timeout.ms": 5000})
    try:
        producer.init_transactions(QUICK_S)
        producer.begin_transaction()
        producer.produce("sales", b"x")
        offsets = [ck.TopicPartition("input", 0, 1)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), QUICK_S)
        producer.commit_transaction(QUICK_S)
    except ck.KafkaException:
        return False
    finally:
        consumer.close()
    return True


def administer(cluster):
    """Create, describe, grow, configure and delete the topic `new`."""
    admin = cka.AdminClient(cluster.login(USER))
    resource = cka.ConfigResource(cka.ResourceType.TOPIC, "new")
    entry = cka.ConfigEntry("retention.ms", "1000", incremental_operation=cka.AlterConfigOpType.SET)
    changed = cka.ConfigResource(cka.ResourceType.TOPIC, "new", incremental_configs=[entry])
    steps = (
        lambda: admin.create_topics([cka.NewTopic("new", 1, 1)]),
        lambda: admin.describe_topics(ck.TopicCollection(["new"])),
        lambda: admin.create_partitions([cka.NewPartitions("new", 2)]),
        lambda: admin.incremental_alter_configs([changed]),
        lambda: admin.describe_configs([resource]),
        lambda: admin.delete_topics(["new"]),
    )
    try:
        for step in steps:
            for each in step().values():
                each.result(QUICK_S)
    except ck.KafkaException:
        with_topic = [each for each in cluster.admin.list_topics(timeout=SECONDS).topics if each == "new"]
        for each in cluster.admin.delete_topics(with_topic).values() if with_topic else ():
            each.result(SECONDS)
        return False
    return True


# The client, the least rules with which it works, the resources of the question, and the types of which DESCRIBE is
# denied in turn.
INTENTS = {
    "produce": (produce, [(TOPIC, "sales", WRITE)], ("--topic", "sales"), [TOPIC]),
    "consume": (
        consume,
        [(TOPIC, "sales", READ), (GROUP, "g", READ)],
        ("--topic", "sales", "--group", "g"),
        [TOPIC, GROUP],
    ),
    "transact": (
        transact,
        [(TOPIC, "sales", WRITE), (TRANSACTION, "tx", WRITE), (TOPIC, "input", READ), (GROUP, "g", READ)],
        ("--topic", "sales", "--transactional-id", "tx", "--group", "g"),
        [TOPIC, TRANSACTION],
    ),
    "admin": (
        administer,
        [(TOPIC, "new", operation) for operation in (CREATE, DELETE, ALTER, ALTER_CONFIGS)],
        ("--topic", "new"),
        [TOPIC],
    ),
}


def eventually(client, cluster, works):
    """Whether a client works, or fails, in time: brokers see a change of rules a moment later."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if client(cluster) is works:
            return True
    return False


@pytest.mark.slow(15)
def test_each_client_needs_what_its_intent_says(stopped_kafka, tmp_path):
    with stopped_kafka as kafka:
        cluster = Cluster(kafka, tmp_path)
        for each in cluster.admin.create_topics([cka.NewTopic("sales", 1, 1), cka.NewTopic("input", 1, 1)]).values():
            each.result(SECONDS)
        for intent, (client, rules, resources, denied) in INTENTS.items():
            cluster.has_only(*rules)
            assert eventually(client, cluster, True), intent
            assert cluster.grants(intent, *resources)
            for gone in rules:
                cluster.has_only(*(rule for rule in rules if rule != gone))
                assert eventually(client, cluster, False), (intent, gone)
                # its own input is no part of a transaction's intent
                assert cluster.grants(intent, *resources) is (gone == (TOPIC, "input", READ)), (intent, gone)
            for kind in denied:
                name = next(name for other, name, _ in rules if other is kind)
                cluster.has_only(*rules, (kind, name, DESCRIBE, DENY))
                assert eventually(client, cluster, False), (intent, kind)
                assert not cluster.grants(intent, *resources)
