"""Clients of a real Kafka that come and go, and rules that are added and removed meanwhile."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from attrs import define, field
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.kafka.server import KafkaServer, free_port

USERS = [f"app-{number}" for number in range(12)]
TOPICS = [f"{area}.{kind}" for area in ("pay", "bill", "ship", "crm", "pii") for kind in ("in", "out", "log")]
GROUPS = ["g-1", "g-2", "g-other"]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL]
CLUSTER_ID = "Zm9vYmFyYmF6cXV4YWFhYQ"
AT_ONCE = 8
"""The users that are active at a time."""

_LOGGING = """
status = warn
appender.authorizer.type = RollingFile
appender.authorizer.name = authorizer
appender.authorizer.fileName = {logs}/kafka-authorizer.log
appender.authorizer.filePattern = {logs}/kafka-authorizer.log.%d{{yyyy-MM-dd-HH-mm}}
appender.authorizer.layout.type = PatternLayout
appender.authorizer.layout.pattern = [%d] %p %m (%c)%n
appender.authorizer.policies.type = Policies
appender.authorizer.policies.time.type = TimeBasedTriggeringPolicy
appender.authorizer.policies.time.interval = {minutes}
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d %p %c{{1}} %m%n
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = stdout
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
logger.authorizer.name = kafka.authorizer.logger
logger.authorizer.level = debug
logger.authorizer.additivity = false
logger.authorizer.appenderRef.authorizer.ref = authorizer
"""


def kafka(home: Path, *, rotated_after: int) -> KafkaServer:
    """A formatted Kafka with an authorizer log in `home/logs`, rotated after so many minutes."""
    (home / "logs").mkdir(parents=True)
    (home / "log4j2.properties").write_text(_LOGGING.format(logs=home / "logs", minutes=rotated_after))
    broker, controller = free_port(), free_port()
    users = " ".join(f'user_{user}="{user}-secret"' for user in ("admin", *USERS))
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    jaas = f'{login} username="admin" password="admin-secret" {users};'
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"BROKER://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"BROKER://127.0.0.1:{broker}",
        "inter.broker.listener.name": "BROKER",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.broker.plain.sasl.jaas.config": jaas,
        "listener.name.controller.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "log.dirs": "data",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }
    server = KafkaServer(home, "".join(f"{key}={value}\n" for key, value in properties.items()), port=broker)
    server.log4j = home / "log4j2.properties"
    server.format(CLUSTER_ID, "--standalone")
    return server


@define
class Traffic:
    """Clients and rules of a running Kafka."""

    port: int
    chance: Random
    admin: AdminClient = field(init=False)
    rules: list[AclBinding] = field(factory=list, init=False)
    changes: int = field(default=0, init=False)
    sessions: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.admin = AdminClient(self._client("admin"))
        for made in self.admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS]).values():
            made.result()
        for _ in range(90):
            self._add()

    def run(self, seconds: float) -> Iterator[None]:
        """Yield after each session of a client; rules change every 15 s or so, users every five minutes."""
        begun = time.monotonic()
        next_change = next_users = begun
        active: list[str] = []
        while (now := time.monotonic()) < begun + seconds:
            if now >= next_users:
                active, next_users = self.chance.sample(USERS, AT_ONCE), now + 300
            if now >= next_change:
                next_change = now + self.chance.uniform(5, 25)
                if self.chance.random() < 0.55 or len(self.rules) < 40:
                    self._add()
                else:
                    self._remove()
            with suppress(KafkaException):
                self._session(self.chance.choice(active))
            self.sessions += 1
            yield

    def _session(self, user: str) -> None:
        kind, topic = self.chance.random(), self.chance.choice(TOPICS)
        if kind < 0.45:
            producer = Producer(self._client(user) | {"message.timeout.ms": 1500})
            for _ in range(self.chance.randrange(1, 4)):
                producer.produce(self.chance.choice([topic, topic, self.chance.choice(TOPICS)]), b"x")
            producer.flush(2)
        elif kind < 0.9:
            group = {"group.id": self.chance.choice(GROUPS), "auto.offset.reset": "earliest"}
            consumer = Consumer(self._client(user) | group)
            consumer.subscribe([topic])
            for _ in range(3):
                consumer.poll(0.4)
            consumer.close()
        else:
            AdminClient(self._client(user)).list_topics(timeout=2)

    def _client(self, user: str) -> dict[str, object]:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": f"{user}-secret"}
        place = {"bootstrap.servers": f"127.0.0.1:{self.port}", "security.protocol": "SASL_PLAINTEXT", "log_level": 0}
        return {**place, **login}

    def _add(self) -> None:
        binding = self._binding()
        if str(binding) not in map(str, self.rules):
            for made in self.admin.create_acls([binding]).values():
                made.result()
            self.rules.append(binding)
            self.changes += 1

    def _remove(self) -> None:
        gone = self.rules.pop(self.chance.randrange(len(self.rules)))
        parts = (gone.restype, gone.name, gone.resource_pattern_type, gone.principal, gone.host)
        for removed in self.admin.delete_acls(
            [AclBindingFilter(*parts, gone.operation, gone.permission_type)]
        ).values():
            removed.result()
        self.changes += 1

    def _binding(self) -> AclBinding:
        kind, name = ResourceType.TOPIC, self.chance.choice([*TOPICS, *TOPICS, "*"])
        prefixed = self.chance.random() < 0.35
        if prefixed:
            name = name.split(".", maxsplit=1)[0] + "."
        if self.chance.random() < 0.25:
            kind, name, prefixed = ResourceType.GROUP, self.chance.choice([*GROUPS, "g-"]), False
        return AclBinding(
            kind,
            name,
            ResourcePatternType.PREFIXED if prefixed or name == "g-" else ResourcePatternType.LITERAL,
            f"User:{self.chance.choice(USERS)}" if self.chance.random() < 0.92 else "User:*",
            self.chance.choice(["*"] * 8 + ["127.0.0.1", "10.0.0.1"]),
            self.chance.choice(OPERATIONS),
            AclPermissionType.DENY if self.chance.random() < 0.12 else AclPermissionType.ALLOW,
        )
