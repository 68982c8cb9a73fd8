"""Creation of a log's topic on a real Kafka, and every setting that is refused."""

import pytest
from attrs import evolve
from confluent_kafka.admin import AdminClient, NewTopic

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.primitives import parse_uuid
from aclog.metalog.topiclog import TopicInspector, TopicSettings, ensure_topic
from tests.support.kafka.server import free_port
from tests.support.kafka.topics import client_properties, topic_settings
from tests.support.nodes.server_properties import CLUSTER_ID
from tests.support.processes.waiting import wait_until

GOOD = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str((1 << 63) - 1),
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
    "max.message.bytes": str(9 << 20),
}

WRONG = {
    "cleanup.policy": ("compact", "delete"),
    "retention.ms": ("604800000", "-1"),
    "retention.bytes": ("1000000000", "-1"),
    "unclean.leader.election.enable": ("true", "false"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime"),
    "message.timestamp.before.max.ms": ("3600000", str((1 << 63) - 1)),
    "message.timestamp.after.max.ms": ("3600000", str((1 << 63) - 1)),
    "max.message.bytes": ("8388608", "9437184 or more"),
}


def create(settings, *, partitions=1, **changes):
    admin = AdminClient(dict(settings.properties))
    config = {**GOOD, **{name.replace("_", "."): value for name, value in changes.items()}}
    new = NewTopic(settings.topic, num_partitions=partitions, replication_factor=1, config=config)
    admin.create_topics([new])[settings.topic].result(60)


def test_a_topic_is_created_once_and_accepted_afterwards(topic_kafka):
    settings = topic_settings(topic_kafka)
    assert ensure_topic(settings)
    assert not ensure_topic(settings)


def test_a_suitable_existing_topic_is_accepted(topic_kafka):
    settings = topic_settings(topic_kafka)
    create(settings)
    assert not ensure_topic(settings)


@pytest.mark.parametrize("name", WRONG)
def test_a_setting_that_could_lose_or_hide_records_is_refused(topic_kafka, name):
    settings = topic_settings(topic_kafka)
    value, expected = WRONG[name]
    create(settings, **{name: value})
    with pytest.raises(ConfigError) as refused:
        ensure_topic(settings)
    assert str(refused.value).endswith(f"unsuitable for a log: {name} is {value}: expected {expected}")
    assert settings.name in str(refused.value)


def test_all_unsuitable_settings_are_reported_together(topic_kafka):
    settings = topic_settings(topic_kafka)
    create(settings, partitions=3, retention_ms="1000", cleanup_policy="compact,delete")
    with pytest.raises(ConfigError) as refused:
        ensure_topic(settings)
    for what in ("it has 3 partitions: expected 1", "cleanup.policy is ", "retention.ms is 1000: expected -1"):
        assert what in str(refused.value)


@pytest.mark.parametrize(("factor", "in_sync"), [(2, 2), (3, 2), (5, 3)])
def test_too_few_replicas_are_refused(topic_kafka, factor, in_sync):
    settings = evolve(topic_settings(topic_kafka), replication_factor=factor)
    create(settings)
    with pytest.raises(ConfigError) as refused:
        ensure_topic(settings)
    assert f"it has 1 replica: expected {factor} or more" in str(refused.value)
    assert f"min.insync.replicas is 1: expected {in_sync} or more" in str(refused.value)


def test_a_topic_that_the_brokers_cannot_hold_is_an_error(topic_kafka):
    with pytest.raises(LogError, match="INVALID_REPLICATION_FACTOR"):
        ensure_topic(evolve(topic_settings(topic_kafka), replication_factor=3))


@pytest.mark.tier("test")
def test_no_broker_responds(caplog, capfd):
    settings = TopicSettings(topic="log", properties={"bootstrap.servers": f"localhost:{free_port()}"})
    with pytest.raises(LogError, match=r"kafka://localhost:\d+/log: .*"):
        ensure_topic(settings, timeout=0.1)
    assert capfd.readouterr() == ("", "")


def test_a_wrong_password_is_reported_at_once_and_not_shown(topic_kafka, capfd):
    properties = client_properties(topic_kafka.bootstrap) | {"sasl.password": "swordfish"}
    with pytest.raises(LogError, match=r"_AUTHENTICATION.*Authentication failed") as refused:
        ensure_topic(TopicSettings(topic="log", properties=properties), timeout=60)
    assert "swordfish" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


def test_properties_that_the_client_refuses(capfd):
    with pytest.raises(ConfigError, match=r"no\.such"):
        ensure_topic(TopicSettings(topic="log", properties={"bootstrap.servers": "localhost:1", "no.such": "x"}))


def test_a_topic_is_known_by_its_id(topic_kafka):
    settings = topic_settings(topic_kafka)
    inspector = TopicInspector(settings)
    assert inspector.identify(60) is None
    assert settings.topic not in AdminClient(dict(settings.properties)).list_topics(timeout=60).topics
    inspector.create(60)
    inspector.create(60)
    inspector.check_settings(60)
    found = inspector.identify(60)
    assert parse_uuid(found.topic_id).int > 1
    assert found.kafka_cluster_id == CLUSTER_ID
    admin = AdminClient(dict(settings.properties))
    admin.delete_topics([settings.topic])[settings.topic].result(60)
    wait_until(lambda: inspector.identify(60) is None, "it is gone")
    with pytest.raises(LogError, match="there is no such topic"):
        inspector.check_settings(60)
    create(settings, retention_ms="1000")
    wait_until(lambda: inspector.identify(60) is not None, "it is there again")
    other = inspector.identify(60)
    assert (other.kafka_cluster_id, other.topic_id == found.topic_id) == (found.kafka_cluster_id, False)
    with pytest.raises(ConfigError, match=r"retention\.ms is 1000: expected -1"):
        inspector.check_settings(60)


@pytest.mark.tier("test")
def test_nothing_is_found_out_without_a_broker():
    settings = TopicSettings(topic="log", properties={"bootstrap.servers": f"localhost:{free_port()}"})
    with pytest.raises(LogError, match=r"kafka://localhost:\d+/log: .*"):
        TopicInspector(settings).identify(0.1)
