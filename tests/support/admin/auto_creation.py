"""Metadata of topics that are not there, from clients that would have them created; the same on any node.

    python -m tests.support.admin.auto_creation --record   # on a real Kafka; writes the golden file
    python -m tests.support.admin.auto_creation --aclog    # on aclog; prints the differences

Each case is a request and what came of it: a row for each topic of the answer, and what the authorizer logged about it.
No case asks for a topic of another one, since a real Kafka creates what is asked for and allowed.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from attrs import frozen

from tests.support.admin.requests import CREATE_ACLS, METADATA, rule
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.real_node import RealNode
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.barrier import Barrier
from tests.support.nodes.server_properties import Ports, password, server_properties
from tests.support.nodes.wire_client import WireClient, nested
from tests.support.processes.waiting import wait_until

GOLDEN = ROOT / "tests" / "data" / "kafka-4.3.1-admin" / "auto-creation.jsonl"

Row: TypeAlias = dict[str, Any]

_CREATE, _DESCRIBE = 5, 8
_PREFIXED = 4
_TOPIC = {"resource_type": 2, "resource_name": "*"}
_CLUSTER = {"resource_type": 4, "resource_name": "kafka-cluster"}
RULES = (
    rule(**_TOPIC, principal="User:alice", operation=_DESCRIBE),
    rule(**_TOPIC, principal="User:bob", operation=_DESCRIBE),
    rule(**_CLUSTER, principal="User:bob", operation=_CREATE),
    rule(resource_name="denied", principal="User:bob", operation=_CREATE, permission_type=2),
    rule(**_TOPIC, principal="User:carol", operation=_DESCRIBE),
    rule(resource_name="may-", resource_pattern_type=_PREFIXED, principal="User:carol", operation=_CREATE),
    rule(**_TOPIC, principal="User:dave", operation=_CREATE),
)
"""alice may describe topics; bob also create them by the cluster, carol some; dave may create but not describe."""
_DECISION = re.compile(
    r"(TRACE|DEBUG|INFO)\b.*? is (Allowed|Denied) operation = (\w+) from host = \S+ on resource = (\w+):LITERAL:(.*)"
    r" for request = Metadata with resourceRefCount = (\d+) based on rule (\w+)"
)


@frozen
class Case:
    """A Metadata request: a topic is a name, or an id."""

    user: str
    version: int
    topics: tuple[str | UUID, ...] | None
    allow: bool = True
    operations: bool = False

    @property
    def name(self) -> str:
        """What tells it from the others."""
        flags = ("" if self.allow else " not to be created") + (" with operations" if self.operations else "")
        topics = "all topics" if self.topics is None else ", ".join(map(str, self.topics)) or "no topics"
        return f"{self.user} v{self.version}: {topics}{flags}"


def cases() -> Iterator[Case]:
    """Every request, in order."""
    for user in ("alice", "bob"):
        for version in (0, 13):
            yield Case(user, version, () if version == 0 else None)
    for version in range(14):
        yield Case("carol", version, (f"may-{version}", f"not-{version}"))
    for version in (3, 4, 13):
        for user in ("admin", "alice", "bob", "dave"):
            yield Case(user, version, (f"{user}-{version}",))
    for user in ("admin", "alice", "bob", "carol", "dave"):
        yield Case(user, 13, (f"never-{user}",), allow=False)
        yield Case(user, 12, (f"may-operate-{user}", f"operate-{user}"), operations=True)
        yield Case(user, 12, ("bad/name", "", ".."))
        yield Case(user, 12, (UUID(int=4711),))
        yield Case(user, 12, (f"may-twice-{user}", f"may-twice-{user}", f"twice-{user}", f"twice-{user}"))
    yield Case("bob", 12, ("denied",))
    yield Case("carol", 12, ("__consumer_offsets",))
    yield Case("dave", 12, ("__consumer_offsets",))
    for name in ("__transaction_state", "__share_group_state", "__cluster_metadata"):
        yield Case("bob", 12, (name,))
    yield Case("bob", 12, ("mixed", UUID(int=4712), UUID(int=4712)))
    for version in (10, 11):
        yield Case("bob", version, ("mixed", UUID(int=4712)))


def properties(ports: Ports, *, enabled: bool) -> str:
    """The server.properties of a node with auto.create.topics.enable or without it."""
    return server_properties(ports, auto_create_topics_enable=str(enabled).lower())


def run(node: AclogNode | RealNode, *, enabled: bool) -> list[Row]:
    """What came of every case on a node with these properties, which is started and stopped again."""
    ports = node.ports
    node.log_every_decision()
    with node, ExitStack() as stack:
        barrier = stack.enter_context(closing(Barrier(ports)))
        clients = {
            user: stack.enter_context(WireClient(ports.broker).plain(user, password(user)))
            for user in ("admin", "alice", "bob", "carol", "dave")
        }
        creations = tuple(nested(CREATE_ACLS, 3, "AclCreation", **each) for each in RULES)
        assert not any(each.error_code for each in clients["admin"].ask(CREATE_ACLS, 3, creations=creations).results)
        barrier.wait(leave_nothing=True)
        return [_row(node, clients[case.user], case, enabled=enabled) for case in cases()]


def _row(node: AclogNode | RealNode, client: WireClient, case: Case, *, enabled: bool) -> Row:
    before = len(node.output)
    flags = {
        "allow_auto_topic_creation": case.allow,
        "include_topic_authorized_operations": case.operations,
        "include_cluster_authorized_operations": False,
    }
    topics = case.topics and tuple(_request_topic(case.version, each) for each in case.topics)
    answer = client.ask(METADATA, case.version, topics=topics, **flags)
    rows = sorted(
        (_topic(each) for each in answer.topics if not each.partitions), key=lambda row: (row["name"] or "", str(row))
    )
    probe = f"probe-{before}"
    client.ask(METADATA, 9, topics=(_request_topic(9, probe),), **flags | {"allow_auto_topic_creation": False})
    # A node writes its audit log in the order of the decisions, but later.
    wait_until(lambda: probe in node.output[before:], "the log of the request")
    log = sorted(
        match.groups() for match in _DECISION.finditer(node.output[before:]) if not match[5].startswith("probe-")
    )
    return {"auto.create.topics.enable": enabled, "case": case.name, "topics": rows, "log": list(map(list, log))}


def _request_topic(version: int, topic: str | UUID) -> Any:
    about = {"topic_id": topic, "name": None} if isinstance(topic, UUID) else {"topic_id": None, "name": topic}
    return nested(METADATA, version, "MetadataRequestTopic", **about)


def _topic(answer: Any) -> Row:
    about = {"error": answer.error_code.name, "name": answer.name}
    names = ("is_internal", "topic_id", "topic_authorized_operations")
    return about | {name: _plain(getattr(answer, name)) for name in names if hasattr(answer, name)}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def recorded() -> list[Row]:
    """What came of it on the real Kafka."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def differences(expected: list[Row], actual: list[Row]) -> list[str]:
    """One text for each case with another outcome."""
    assert [row["case"] for row in expected] == [row["case"] for row in actual], "record the golden file again"
    return [
        f"{kafka['case']}\n  kafka: {json.dumps(kafka)}\n  aclog: {json.dumps(got)}"
        for kafka, got in zip(expected, actual, strict=True)
        if kafka != got
    ]


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--aclog", action="store_true")
    flags = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="aclog-auto-creation-"))
    kind = AclogNode if flags.aclog else RealNode
    rows = []
    for enabled in (True, False):
        ports = Ports.free()
        node = kind(home / str(enabled), ports, properties(ports, enabled=enabled)).format()
        rows += run(node, enabled=enabled)
    if flags.record:
        GOLDEN.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return
    texts = differences(recorded(), rows)
    print("\n".join(texts))
    sys.exit(f"{len(texts)} differences" if texts else 0)


if __name__ == "__main__":
    main()
