"""docs/configuration.md names every key that is used, and its example loads."""

import re
from pathlib import Path

import javaproperties

from aclog.config.node_config import Limits
from aclog.config.security import CHECKED_KEYS
from aclog.config.server_properties import KNOWN_KEYS, OWN_KEYS, USED_KEYS, load_config
from aclog.metalog.topiclog.settings import TopicSettings
from tests.support.kafka.jvm import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_the_example_loads(tmp_path: Path) -> None:
    example, client = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "server.properties"
    path.write_text(example)
    config = load_config(path, strict=True)
    assert config.notes == ()
    assert config.listeners[0].plain_users == {"admin": "admin-secret", "alice": "alice-secret"}
    assert 'username="admin" password="admin-secret"' in client
    named = set(javaproperties.loads(example))
    assert all(f"`{key}`" in PAGE or key.startswith("listener.name.") for key in named)


def test_every_used_or_refused_key_is_documented() -> None:
    keys = USED_KEYS | CHECKED_KEYS | OWN_KEYS
    assert {key for key in keys if f"`{key}`" not in PAGE and f"`{key}=" not in PAGE} == set()
    assert keys <= KNOWN_KEYS | OWN_KEYS


def test_the_tables_have_the_defaults() -> None:
    told = {key: int(number) for key, number in re.findall(r"\| `([a-z.]+)` \| ([0-9]+)", PAGE)}
    default, topic = Limits(), TopicSettings(topic="t", properties={"bootstrap.servers": "k:1"})
    assert told == {
        "socket.request.max.bytes": default.frame_bytes,
        "sasl.server.max.receive.size": default.unauthenticated_frame_bytes,
        "max.connections": default.connections,
        "max.connections.per.ip": default.connections_per_ip,
        "connections.max.idle.ms": default.idle_seconds * 1000,
        "queued.max.requests": default.in_flight_requests,
        "queued.max.request.bytes": default.in_flight_bytes,
        "request.timeout.ms": default.request_seconds * 1000,
        "aclog.authentication.timeout.ms": default.authentication_seconds * 1000,
        "metadata.log.topic.replication.factor": topic.replication_factor,
        "metadata.log.session.timeout.ms": topic.session_timeout_ms,
    }
