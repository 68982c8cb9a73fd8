"""A real Kafka 4.4.0 logs each decision in six layouts at once: the accesses are equal, and those of its clients."""

from collections import Counter
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from aclog.usage.accesses.access_log import find_accesses, read_part
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from tests.support.kafka.jvm import KAFKA_44
from tests.support.kafka.server import KafkaServer
from tests.support.kafka.topics import client_properties
from tests.support.nodes.server_properties import ADMIN_SCRAM, CLUSTER_ID, Ports, server_properties
from tests.support.processes.waiting import SECONDS

ZONE = "Asia/Kolkata"
"""The zone of the broker, whose default layout has no zone."""
PATTERNS = {
    "default": "[%d] %p %m (%c)%n",
    "iso": "[%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}] %p %m (%c)%n",
    "logback": "%d{yyyy-MM-dd HH:mm:ss,SSS} [%t] %-5p %c - %m%n",
    "ecs": '{"@timestamp":"%d{yyyy-MM-dd\'T\'HH:mm:ss.SSS\'Z\'}{UTC}","log.level":"%p","message":"%enc{%m}{JSON}",'
    '"log.logger":"%c","process.thread.name":"%t"}%n',
    "syslog": "<134>1 %d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} broker1 kafka 1 - - [%d] %p %m (%c)%n",
}
LAYOUTS = (*PATTERNS, "json")
ODD = 'al=ice, "q" [x]'
TOPICS = ("orders", "a.b_c-d")
GROUPS = ("g of x", 'gr"oup \\ ü', "x is Allowed operation = y", "{}")
REPEATS = 7
_OUTCOMES = {True: "ALLOWED", False: "DENIED"}


def _configuration(directory: Path) -> str:
    lines = ["status = warn", "rootLogger.level = warn", "rootLogger.appenderRef.out.ref = out"]
    lines += ["appender.out.type = Console", "appender.out.name = out", "appender.out.layout.type = PatternLayout"]
    lines += ["logger.server.name = kafka.server.KafkaRaftServer", "logger.server.level = info"]
    lines += [
        "logger.audit.name = kafka.authorizer.logger",
        "logger.audit.level = trace",
        "logger.audit.additivity = false",
    ]
    for name in LAYOUTS:
        appender = f"appender.{name}"
        lines += [f"{appender}.type = File", f"{appender}.name = {name}"]
        lines += [f"{appender}.fileName = {directory / name}.log", f"logger.audit.appenderRef.{name}.ref = {name}"]
        if name == "json":
            lines += [f"{appender}.layout.type = JsonLayout", f"{appender}.layout.compact = true"]
            lines += [f"{appender}.layout.eventEol = true"]
        else:
            lines += [f"{appender}.layout.type = PatternLayout", f"{appender}.layout.pattern = {PATTERNS[name]}"]
    return "\n".join([*lines, ""])


class Clients:
    """Clients of a broker, and the ledger of their requests: principal, operation, type and name, and the decision."""

    def __init__(self, port: int) -> None:
        self.bootstrap = f"localhost:{port}"
        self.admin = AdminClient(client_properties(self.bootstrap))
        self.ledger = Counter[tuple[str, str, str, str, str]]()

    def prepare(self) -> None:
        """Create a user with an odd name, topics and rules."""
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        credential = UserScramCredentialUpsertion(ODD, scram, b"odd-secret")
        _done(self.admin.alter_user_scram_credentials([credential]))
        _done(self.admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]))
        allowed = [
            (ResourceType.TOPIC, TOPICS[0], "User:alice", AclOperation.ALL),
            (ResourceType.TOPIC, TOPICS[1], f"User:{ODD}", AclOperation.ALL),
            *((ResourceType.GROUP, group, f"User:{ODD}", AclOperation.DESCRIBE) for group in GROUPS[:2]),
            (ResourceType.GROUP, GROUPS[3], "User:alice", AclOperation.DESCRIBE),
        ]
        rules = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW)
            for kind, name, who, operation in allowed
        ]
        _done(self.admin.create_acls(rules))

    def run(self, user: str, login: dict[str, str]) -> None:
        """Describe topics and groups, and write, as a user."""
        client = AdminClient(login)
        for topic in TOPICS:
            for _ in range(REPEATS):
                futures = client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)])
                decision = _decision(next(iter(futures.values())))
                self.ledger[f"User:{user}", "DESCRIBE_CONFIGS", "TOPIC", topic, decision] += 1
        for group in GROUPS:
            decision = _decision(client.describe_consumer_groups([group])[group])
            self.ledger[f"User:{user}", "DESCRIBE", "GROUP", group, decision] += 1
        producer = Producer(login | {"enable.idempotence": "false", "topic.metadata.propagation.max.ms": "0"})
        for topic in TOPICS:
            outcomes = list[str]()
            note = outcomes.append
            producer.produce(
                topic, b"x", on_delivery=lambda error, _, note=note: note("DENIED" if error else "ALLOWED")
            )
            assert producer.flush(SECONDS) == 0
            (decision,) = outcomes
            # without DESCRIBE, a client does not get as far as a write
            self.ledger[f"User:{user}", "WRITE" if decision == "ALLOWED" else "DESCRIBE", "TOPIC", topic, decision] += 1


def _decision(future: "Future[object]") -> str:
    """The decision that a client sees: every other error, such as of a group that does not exist, comes after it."""
    try:
        future.result(SECONDS)
    except KafkaException as error:
        if error.args[0].name().endswith("_AUTHORIZATION_FAILED"):
            return "DENIED"
    return "ALLOWED"


def _done(futures: "dict[object, Future[object]]") -> None:
    for future in futures.values():
        future.result(SECONDS)


def _read(path: Path) -> list[tuple[object, ...]]:
    """The accesses of a log, with their times and decisions; every line is one."""
    rows = list[tuple[object, ...]]()
    for part in find_accesses([str(path)], ZoneInfo(ZONE)).parts:
        for batch in read_part(part):
            assert not batch.rejects, (path, batch.rejects)
            names = (*REQUEST_COLUMNS, "loggedDecision", "timestamp")
            rows += zip(*(batch.rows.column(name).to_pylist() for name in names), strict=True)
    # the layout of JSON alone has microseconds
    return [(*row, time.replace(microsecond=time.microsecond // 1000 * 1000)) for *row, time in rows]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Clients, datetime]:
    """Return the directory of the six logs of a broker that has ended, its clients, and the time before its start."""
    home, ports, begin = tmp_path_factory.mktemp("kafka"), Ports.free(), datetime.now(UTC)
    (home / "audit").mkdir()
    (home / "log4j2.properties").write_text(_configuration(home / "audit"), encoding="utf-8")
    server = KafkaServer(home, server_properties(ports), port=ports.broker, version=KAFKA_44)
    server.log4j, server.options = home / "log4j2.properties", (f"-Duser.timezone={ZONE}",)
    server.format(CLUSTER_ID, "--standalone", "--add-scram", ADMIN_SCRAM)
    with server:
        clients = Clients(ports.broker)
        clients.prepare()
        clients.run("alice", client_properties(clients.bootstrap, "alice"))
        odd = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": ODD, "sasl.password": "odd-secret"}
        clients.run(ODD, client_properties(clients.bootstrap) | odd)
    return home / "audit", clients, begin


def test_the_accesses_are_equal_in_all_layouts(logged: tuple[Path, Clients, datetime]) -> None:
    directory, _, begin = logged
    expected = sorted(_read(directory / "default.log"), key=repr)
    assert len(expected) > 4 * REPEATS
    assert all(begin.timestamp() - 1 <= row[-1].timestamp() <= datetime.now(UTC).timestamp() for row in expected)
    for layout in LAYOUTS:
        text = (directory / f"{layout}.log").read_text(encoding="utf-8")
        assert text.count("\n") == len(expected), layout
        assert sorted(_read(directory / f"{layout}.log"), key=repr) == expected, layout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_accesses_are_those_of_the_clients(logged: tuple[Path, Clients, datetime], layout: str) -> None:
    directory, clients, _ = logged
    read = Counter((row[0], row[2], row[3], row[4], row[5]) for row in _read(directory / f"{layout}.log"))
    own = {key: count for key, count in read.items() if key[0] != "User:admin"}
    counted = {key: count for key, count in own.items() if key[1] == "DESCRIBE_CONFIGS"}
    assert counted == {key: count for key, count in clients.ledger.items() if key[1] == "DESCRIBE_CONFIGS"}
    # other requests have more than one access: of a group's coordinator, and of a topic's metadata
    once = {key for key in own if key[2] == "GROUP" or key[1] == "WRITE" or (key[1], key[4]) == ("DESCRIBE", "DENIED")}
    assert once == {key for key in clients.ledger if key[1] != "DESCRIBE_CONFIGS"}
