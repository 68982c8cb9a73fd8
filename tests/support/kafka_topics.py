"""Topics on a test Kafka for logs that live in them: how they are reached, and fresh ones."""

from uuid import uuid4

from attrs import evolve

from metalog.topiclog import TopicSettings, ensure_topic
from tests.support.kafka_quorum import KafkaQuorum
from tests.support.server_properties import password


def client_properties(bootstrap: str, user: str = "admin") -> dict[str, str]:
    """How a user logs in with librdkafka."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password(user),
    }


def topic_settings(kafka: KafkaQuorum, topic: str | None = None, **changes: object) -> TopicSettings:
    """Of a topic that nobody has used, unless it is named; with a replica on each node."""
    settings = TopicSettings(
        topic=topic or f"log-{uuid4().hex[:12]}",
        properties=client_properties(kafka.bootstrap),
        replication_factor=len(kafka.nodes),
    )
    return evolve(settings, **changes)


def new_topic(kafka: KafkaQuorum, **changes: object) -> TopicSettings:
    """A fresh topic, which is there."""
    settings = topic_settings(kafka, **changes)
    assert ensure_topic(settings, timeout=60)
    return settings
