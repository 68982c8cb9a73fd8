"""Where the metadata log is: metadata.log.kind, and metadata.log.* for a log in a topic of a real Kafka."""

import re

from aclog.metalog.topiclog.settings import TopicSettings
from aclog.nodes.config.addresses import servers
from aclog.nodes.config.client_config import client_security
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.librdkafka import librdkafka_properties
from aclog.nodes.config.node_config import LogKind, Role

KIND = "metadata.log.kind"
TOPIC = "metadata.log.topic"
SERVERS = "metadata.log.bootstrap.servers"
REPLICATION_FACTOR = "metadata.log.topic.replication.factor"
SESSION_TIMEOUT = "metadata.log.session.timeout.ms"
CLIENT_PREFIX = "metadata.log.client."
METADATA_LOG_KEYS = frozenset({KIND, TOPIC, SERVERS, REPLICATION_FACTOR, SESSION_TIMEOUT})
"""Keys that Kafka does not have, except for those with CLIENT_PREFIX."""

_ROLES = "process.roles"
_DEFAULT_TOPIC = "__aclog_metadata"
_LEGAL_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


def read_log_kind(properties: Properties, roles: frozenset[Role]) -> LogKind:
    """Read metadata.log.kind.

    Raises:
        ConfigError: another value, or one that contradicts the node's roles or the other metadata.log keys.

    """
    kind = LogKind(properties.chosen(KIND, tuple(each.value for each in LogKind), LogKind.FILE.value))
    if kind is LogKind.QUORUM and Role.CONTROLLER in roles:
        why = "a quorum's log belongs to Kafka's own controllers: expected process.roles=broker"
        raise properties.contradiction(KIND, _ROLES, why)
    if kind is LogKind.TOPIC and Role.CONTROLLER not in roles:
        why = "only controllers write to a topic; brokers follow the controllers: expected it to be left out"
        raise properties.contradiction(KIND, _ROLES, why)
    if kind is not LogKind.TOPIC:
        for key in sorted(properties.values):
            if key in METADATA_LOG_KEYS - {KIND} or key.startswith(CLIENT_PREFIX):
                raise properties.contradiction(key, KIND, f"only for a log in a topic, but the kind is {kind.value}")
    return kind


def read_topic_settings(properties: Properties) -> TopicSettings:
    """Read the topic and how to connect to its brokers.

    Raises:
        ConfigError: no servers, an invalid topic name, numbers out of bounds, security that librdkafka does not
            support.

    """
    addresses = servers(properties, SERVERS)
    if not addresses:
        raise properties.error(SERVERS, f"not set, but {KIND} is {LogKind.TOPIC.value}: expected Kafka brokers")
    topic = properties.text(TOPIC)
    if topic is not None and not _LEGAL_TOPIC.fullmatch(topic):
        expected = "expected up to 249 letters, digits, '.', '_' and '-', and neither . nor .."
        raise properties.error(TOPIC, f"{properties.shown(TOPIC)}: {expected}")
    client = properties.under(CLIENT_PREFIX)
    security = librdkafka_properties(client_security(client), f"{properties.where}: {CLIENT_PREFIX}")
    return TopicSettings(
        topic=topic or _DEFAULT_TOPIC,
        properties={"bootstrap.servers": ",".join(map(str, addresses)), **security},
        replication_factor=properties.integer(REPLICATION_FACTOR, 3, least=1, most=(1 << 15) - 1),
        session_timeout_ms=properties.integer(SESSION_TIMEOUT, 6000, least=1),
    )
