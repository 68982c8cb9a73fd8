"""metadata.log.kind and its related keys: values, contradictions, and secrets that are never shown."""

from pathlib import Path

import pytest

from aclog.config.node_config import HostPort, LogKind, NodeConfig
from aclog.config.server_properties import parse_config
from aclog.metalog.errors import ConfigError
from aclog.server.storage import FormatOptions, ensure_formatted, format_storage
from tests.support.nodes.node_properties import BROKER, COMBINED, CONTROLLER, MODULE, SCRAM_MODULE, changed

TOPIC: dict[str, str | None] = {
    "metadata.log.kind": "topic",
    "metadata.log.bootstrap.servers": "k1:9092,k2:9092",
    "controller.quorum.bootstrap.servers": None,
    "controller.quorum.voters": "1@localhost:9093,2@b:9093,3@[::1]:9093",
}
CLIENT = "metadata.log.client."
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def parsed(base: dict[str, str], changes: dict[str, str | None]) -> NodeConfig:
    return parse_config(changed(base, changes), "it", host_name=lambda: "this-machine")


def error_of(base: dict[str, str], changes: dict[str, str | None]) -> str:
    with pytest.raises(ConfigError) as error:
        parsed(base, changes)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_log_is_in_files_by_default() -> None:
    for changes in ({}, {"metadata.log.kind": "file"}):
        config = parsed(CONTROLLER, changes)
        assert config.log_kind is LogKind.FILE
        assert config.topic is None
        assert config.notes == ()


def test_a_topic_and_its_defaults() -> None:
    config = parsed(CONTROLLER, TOPIC)
    assert config.log_kind is LogKind.TOPIC
    assert config.voters == {1: HostPort(host="localhost", port=9093), 2: HostPort(host="b", port=9093)} | {
        3: HostPort(host="::1", port=9093)
    }
    topic = config.topic
    assert topic is not None
    assert topic.name == "kafka://k1:9092,k2:9092/__aclog_metadata"
    assert topic.properties == {"bootstrap.servers": "k1:9092,k2:9092", "security.protocol": "PLAINTEXT"}
    assert (topic.replication_factor, topic.session_timeout_ms) == (3, 6000)
    assert topic.transactional_id == topic.group_id == "__aclog_metadata"
    assert config.notes == ()


def test_every_key_set() -> None:
    said = {
        "metadata.log.topic": "access",
        "metadata.log.topic.replication.factor": "1",
        "metadata.log.session.timeout.ms": "9000",
        f"{CLIENT}security.protocol": "SASL_SSL",
        f"{CLIENT}sasl.mechanism": "SCRAM-SHA-512",
        f"{CLIENT}sasl.jaas.config": f'{SCRAM_MODULE} required username="c" password="hush";',
        f"{CLIENT}ssl.truststore.location": "/etc/ca.pem",
        f"{CLIENT}ssl.truststore.type": "PEM",
    }
    config = parsed(COMBINED, TOPIC | said)
    assert config.topic is not None
    assert (config.topic.topic, config.topic.replication_factor, config.topic.session_timeout_ms) == ("access", 1, 9000)
    assert config.topic.properties == {
        "bootstrap.servers": "k1:9092,k2:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "c",
        "sasl.password": "hush",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.ca.location": "/etc/ca.pem",
    }
    assert "hush" not in repr(config)
    assert config.notes == ()


@pytest.mark.parametrize(
    ("base", "changes", "told"),
    [
        (CONTROLLER, {"metadata.log.kind": "disk"}, ["metadata.log.kind: 'disk': expected one of file, topic, quorum"]),
        (CONTROLLER, {"metadata.log.kind": "quorum"}, ["metadata.log.kind and process.roles contradict each other"]),
        (COMBINED, {"metadata.log.kind": "quorum"}, ["metadata.log.kind and process.roles contradict each other"]),
        (BROKER, TOPIC, ["metadata.log.kind and process.roles contradict each other"]),
        (CONTROLLER, {"metadata.log.topic": "t"}, ["metadata.log.topic and metadata.log.kind", "the kind is file"]),
        (
            BROKER,
            {"metadata.log.kind": "quorum", f"{CLIENT}security.protocol": "SSL"},
            [f"{CLIENT}security.protocol and metadata.log.kind", "the kind is quorum"],
        ),
        (CONTROLLER, TOPIC | {"metadata.log.bootstrap.servers": None}, ["metadata.log.bootstrap.servers: not set"]),
        (CONTROLLER, TOPIC | {"metadata.log.bootstrap.servers": "k1"}, ["'k1': expected host:port"]),
        (CONTROLLER, TOPIC | {"metadata.log.topic": ".."}, ["metadata.log.topic: '..': expected up to 249"]),
        (CONTROLLER, TOPIC | {"metadata.log.topic": "a b"}, ["metadata.log.topic: 'a b'"]),
        (CONTROLLER, TOPIC | {"metadata.log.topic.replication.factor": "0"}, ["replication.factor: '0'"]),
        (CONTROLLER, TOPIC | {"metadata.log.session.timeout.ms": "x"}, ["metadata.log.session.timeout.ms: 'x'"]),
        (CONTROLLER, TOPIC | {f"{CLIENT}sasl.mechanisms": "PLAIN"}, [f"unknown key: {CLIENT}sasl.mechanisms"]),
        (CONTROLLER, TOPIC | {f"{CLIENT}security.protocol": "TLS"}, [f"{CLIENT}security.protocol: 'TLS'"]),
        (CONTROLLER, TOPIC | {f"{CLIENT}security.protocol": "SASL_SSL"}, [f"{CLIENT}sasl.mechanism: 'GSSAPI'"]),
        (
            CONTROLLER,
            TOPIC | {f"{CLIENT}security.protocol": "SASL_SSL", f"{CLIENT}sasl.mechanism": "PLAIN"},
            [f"{CLIENT}sasl.jaas.config: not set"],
        ),
        (
            CONTROLLER,
            TOPIC | {f"{CLIENT}security.protocol": "SSL", f"{CLIENT}ssl.truststore.location": "/t.p12"},
            [f"{CLIENT}ssl.truststore.type: JKS: librdkafka supports PEM only"],
        ),
        (CONTROLLER, TOPIC | {"controller.quorum.voters": None}, ["controller.quorum"]),
        (
            CONTROLLER,
            TOPIC | {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "a:1"},
            ["controller.quorum.voters: a log in a topic needs all controllers"],
        ),
        (
            CONTROLLER,
            TOPIC | {"controller.quorum.voters": "1@localhost:9093,2@0.0.0.0:0"},
            ["controller.quorum.voters", "each with its own address"],
        ),
        (
            CONTROLLER,
            TOPIC | {"controller.quorum.voters": "1@a:9093,2@a:9093"},
            ["controller.quorum.voters", "each with its own address"],
        ),
        (CONTROLLER, TOPIC | {"controller.quorum.voters": "2@b:9093"}, ["controller 1 is not among the voters 2"]),
    ],
)
def test_contradictions_and_invalid_values_are_refused(
    base: dict[str, str], changes: dict[str, str | None], told: list[str]
) -> None:
    error = error_of(base, changes)
    assert all(each in error for each in told), error


def test_the_nodes_keys_are_not_the_clients() -> None:
    own = {"ssl.truststore.location": "/t.p12", "sasl.mechanism": "PLAIN"}
    client: dict[str, str | None] = {f"{CLIENT}security.protocol": "SSL"}
    topic = parsed(CONTROLLER, TOPIC | own | client).topic
    assert topic is not None
    assert "ssl.ca.location" not in topic.properties


def test_one_of_several_controllers_needs_a_login_for_the_others() -> None:
    sasl = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{MODULE} required user_a="b";',
    }
    assert "no username and password" in error_of(CONTROLLER, TOPIC | sasl)
    line = f'{MODULE} required username="a" password="b" user_a="b";'
    login = {"listener.name.controller.plain.sasl.jaas.config": line}
    assert parsed(CONTROLLER, TOPIC | sasl | login).controller_client.username == "a"
    alone = {"controller.quorum.voters": "1@localhost:9093"}
    assert parsed(CONTROLLER, TOPIC | sasl | alone).controller_client.username is None


def test_a_broker_of_a_real_quorum() -> None:
    config = parsed(BROKER, {"metadata.log.kind": "quorum", "controller.quorum.bootstrap.servers": "k:1,l:2"})
    assert config.log_kind is LogKind.QUORUM
    assert [str(each) for each in config.controller_quorum] == ["k:1", "l:2"]


def test_formatting_a_controller_of_several(tmp_path: Path) -> None:
    config = parsed(CONTROLLER, TOPIC | {"log.dirs": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"names 3 controllers: expected `aclog format` with the same cluster id"):
        ensure_formatted(config)
    done = format_storage(config, CLUSTER, FormatOptions(add_scram=["SCRAM-SHA-256=[name=a,password=b]"]))
    assert done.meta.cluster_id == CLUSTER
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bootstrap.checkpoint", "meta.properties"]
    assert ensure_formatted(config) == done.meta
    with pytest.raises(ConfigError, match=r"--standalone and controller\.quorum\.voters contradict"):
        format_storage(config, CLUSTER, FormatOptions(standalone=True))


def test_a_controller_alone_on_a_topic_formats_itself(tmp_path: Path) -> None:
    alone = {"controller.quorum.voters": "1@localhost:9093", "log.dirs": str(tmp_path)}
    config = parsed(CONTROLLER, TOPIC | alone)
    assert ensure_formatted(config).node_id == 1
    assert not (tmp_path / "__cluster_metadata-0").exists()


def test_formatting_a_broker_of_a_real_quorum(tmp_path: Path) -> None:
    config = parsed(BROKER, {"metadata.log.kind": "quorum", "log.dirs": str(tmp_path)})
    assert format_storage(config, CLUSTER).meta.node_id == 2
