"""Groups of settings of a node: limits, brokers, the quorum and the metadata log."""

import re
from collections.abc import Mapping
from math import inf

from aclog.config.client_config import client_security, librdkafka_properties
from aclog.config.node_config import BrokerSettings, CheckpointPolicy, ClientSecurity, HostPort, Limits, LogKind, Role
from aclog.config.properties import Properties, known_addresses, servers, voters
from aclog.config.security import check_mechanism, jaas_entry, login, mechanism_key, tls_settings
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.values import frozen
from aclog.protocol.session import SecurityProtocol

# Limits and checkpoint policy from properties; defaults are Kafka's unless NodeConfig has its own.


FRAME = "socket.request.max.bytes"
QUEUED_BYTES = "queued.max.request.bytes"
IDLE = "connections.max.idle.ms"
FAILED_DELAY = "connection.failed.authentication.delay.ms"
PER_IP = "max.connections.per.ip"
AUTHENTICATION = "aclog.authentication.timeout.ms"
SEGMENT = "metadata.log.segment.bytes"
INTERNAL_SEGMENT = "internal.metadata.log.segment.bytes"
_LEAST_SEGMENT = 8 << 20
_FAILED_DELAY_MS = 100
_NO_LIMIT_SECONDS = 10 * 365 * 86_400.0
"""Used as no limit: event loops do not accept infinity."""


def read_limits(properties: Properties) -> Limits:
    """Read how much of the node's resources clients may use.

    Raises:
        ConfigError: numbers out of bounds, or that contradict each other.

    """
    default = Limits()
    frame = properties.integer(FRAME, default.frame_bytes, least=1)
    receive = properties.integer("sasl.server.max.receive.size", default.unauthenticated_frame_bytes, least=1)
    per_ip = properties.integer(PER_IP, default.connections_per_ip, least=0)
    # Kafka allows 0 to block all addresses except those in the overrides.
    if per_ip == 0:
        raise properties.error(PER_IP, "0, and max.connections.per.ip.overrides is not supported: expected 1 or more")
    return Limits(
        frame_bytes=frame,
        unauthenticated_frame_bytes=min(receive, frame),
        connections=properties.integer("max.connections", default.connections, least=0),
        connections_per_ip=per_ip,
        idle_seconds=_idle_seconds(properties, default.idle_seconds),
        authentication_seconds=properties.integer(AUTHENTICATION, round(default.authentication_seconds * 1000), least=1)
        / 1000,
        failed_authentication_seconds=_failed_delay_ms(properties) / 1000,
        in_flight_requests=properties.integer("queued.max.requests", default.in_flight_requests, least=1),
        in_flight_bytes=_in_flight_bytes(properties, frame, default.in_flight_bytes),
        request_seconds=properties.integer("request.timeout.ms", round(default.request_seconds * 1000), least=1) / 1000,
    )


def _idle_seconds(properties: Properties, default: float) -> float:
    """Return the idle limit; a negative value means none, as in Kafka."""
    idle = properties.long(IDLE, round(default * 1000))
    delay = _failed_delay_ms(properties)
    if 0 <= idle <= delay:
        raise properties.contradiction(
            FAILED_DELAY,
            IDLE,
            f"{delay} ms is not less than {idle} ms: a failed login would be "
            "closed as idle before its response is sent",
        )
    return min(idle / 1000 if idle >= 0 else inf, _NO_LIMIT_SECONDS)


def _failed_delay_ms(properties: Properties) -> int:
    return properties.integer(FAILED_DELAY, _FAILED_DELAY_MS, least=0)


def _in_flight_bytes(properties: Properties, frame: int, default: int) -> int:
    """Return the limit, at least one frame's size. Unlike Kafka's default, there always is one."""
    limit = properties.long(QUEUED_BYTES, -1)
    if 0 < limit < frame:
        raise properties.contradiction(QUEUED_BYTES, FRAME, f"{limit} is less than one request of {frame} bytes")
    return limit if limit > 0 else max(default, frame)


def read_checkpoint_policy(properties: Properties) -> CheckpointPolicy:
    """Read when checkpoints are written and how long they are kept (MetadataLogConfig).

    Raises:
        ConfigError: numbers out of bounds.

    """
    default = CheckpointPolicy()
    segment = properties.integer(SEGMENT, default.segment_bytes, least=_LEAST_SEGMENT)
    return CheckpointPolicy(
        bytes_between=properties.long(
            "metadata.log.max.record.bytes.between.snapshots", default.bytes_between, least=1
        ),
        interval_ms=properties.long("metadata.log.max.snapshot.interval.ms", default.interval_ms, least=0),
        # Kafka takes every negative value for unlimited.
        retention_bytes=max(-1, properties.long("metadata.max.retention.bytes", default.retention_bytes)),
        retention_ms=max(-1, properties.long("metadata.max.retention.ms", default.retention_ms)),
        segment_bytes=properties.integer(INTERNAL_SEGMENT, segment, least=1),
    )


# The settings of brokers: broker.*, initial.broker.registration.timeout.ms, auto.create.topics.enable.


SESSION_TIMEOUT = "broker.session.timeout.ms"
HEARTBEAT_INTERVAL = "broker.heartbeat.interval.ms"
REGISTRATION_TIMEOUT = "initial.broker.registration.timeout.ms"
RACK = "broker.rack"
AUTO_CREATE_TOPICS = "auto.create.topics.enable"


def read_broker_settings(properties: Properties) -> BrokerSettings:
    """Read Kafka's keys, with its defaults (KRaftConfigs, ServerLogConfigs).

    Raises:
        ConfigError: numbers out of bounds, or an invalid boolean.

    """
    default = BrokerSettings()
    return BrokerSettings(
        session_timeout_ms=properties.integer(SESSION_TIMEOUT, default.session_timeout_ms, least=1),
        heartbeat_interval_ms=properties.integer(HEARTBEAT_INTERVAL, default.heartbeat_interval_ms, least=1),
        registration_timeout_ms=properties.integer(REGISTRATION_TIMEOUT, default.registration_timeout_ms, least=1),
        rack=properties.text_or_none(RACK),
        auto_create_topics=properties.boolean(AUTO_CREATE_TOPICS, default=default.auto_create_topics),
    )


# The controllers: controller.quorum.* (QuorumConfig).


VOTERS = "controller.quorum.voters"
BOOTSTRAP = "controller.quorum.bootstrap.servers"
MECHANISM = "sasl.mechanism.controller.protocol"
_NODE_ID = "node.id"
_ROLES = "process.roles"


@frozen(kw_only=True)
class Quorum:
    """The controllers' addresses, and the voters if the configuration lists them."""

    addresses: tuple[HostPort, ...]
    voters: Mapping[int, HostPort]


def read_quorum(properties: Properties, roles: frozenset[Role], node_id: int, kind: LogKind) -> Quorum:
    """Read controller.quorum.voters and controller.quorum.bootstrap.servers.

    With a log in a topic, the voters are the controllers that share it. All need an address, since standbys redirect
    clients to the active one.

    Raises:
        ConfigError: neither key is set, one is malformed, a controller has several voters but no log in a topic, or the
            voters contradict this node's id and roles.

    """
    static, bootstrap = voters(properties, VOTERS), servers(properties, BOOTSTRAP)
    if not static and not bootstrap:
        raise properties.error(BOOTSTRAP, f"neither it nor {VOTERS} is set: expected the controllers' addresses")
    if Role.CONTROLLER in roles and static:
        if node_id not in static:
            raise properties.contradiction(
                VOTERS, _NODE_ID, f"controller {node_id} is not among the voters {', '.join(map(str, static))}"
            )
        if len(static) > 1 and kind is not LogKind.TOPIC:
            raise properties.error(
                VOTERS,
                f"{len(static)} voters: expected one; several controllers need a log in a topic (metadata.log.kind)",
            )
    elif node_id in static:
        raise properties.contradiction(VOTERS, _ROLES, f"node {node_id} is a voter, but only a broker")
    if kind is LogKind.TOPIC and len(known_addresses(tuple(static.values()))) < max(len(static), 1):
        raise properties.error(VOTERS, "a log in a topic needs all controllers here, each with its own address")
    addresses = known_addresses((*bootstrap, *static.values()))
    if not addresses and Role.CONTROLLER not in roles:
        raise properties.error(VOTERS, f"no voter has an address: expected {BOOTSTRAP}")
    return Quorum(addresses=addresses, voters=static)


def controller_login(properties: Properties, controller_listener: str, protocol: SecurityProtocol) -> ClientSecurity:
    """Return how a broker or another controller authenticates to the controllers: by their listener's settings.

    Mirrors NodeToControllerChannelManager.

    Raises:
        ConfigError: an unsupported mechanism, no username and password, or invalid ssl.* values.

    """
    listener = properties.of_listener(controller_listener)
    tls = tls_settings(listener, sasl=protocol.sasl) if protocol.tls else None
    if not protocol.sasl:
        return ClientSecurity(security_protocol=protocol, tls=tls)
    # Kafka's default, which is not supported: the error then names the key to set.
    mechanism = listener.text(MECHANISM) or "GSSAPI"
    check_mechanism(listener, MECHANISM, mechanism)
    key = mechanism_key(listener, mechanism)
    entry = jaas_entry(listener, mechanism, key)
    return login(listener, protocol, mechanism, entry=entry, key=key, tls=tls)


# Where the metadata log is: metadata.log.kind, and metadata.log.* for a log in a topic of a real Kafka.


KIND = "metadata.log.kind"
TOPIC = "metadata.log.topic"
SERVERS = "metadata.log.bootstrap.servers"
REPLICATION_FACTOR = "metadata.log.topic.replication.factor"
LOG_SESSION_TIMEOUT = "metadata.log.session.timeout.ms"
CLIENT_PREFIX = "metadata.log.client."
METADATA_LOG_KEYS = frozenset({KIND, TOPIC, SERVERS, REPLICATION_FACTOR, LOG_SESSION_TIMEOUT})
"""Keys that Kafka does not have, except for those with CLIENT_PREFIX."""

_LOG_ROLES = "process.roles"
_DEFAULT_TOPIC = "__aclog_metadata"
_LEGAL_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


def read_log_kind(properties: Properties, roles: frozenset[Role]) -> LogKind:
    """Read metadata.log.kind.

    Raises:
        ConfigError: another value, or one that contradicts the node's roles or the other metadata.log keys.

    """
    kind = LogKind(properties.choice(KIND, tuple(each.value for each in LogKind), LogKind.FILE.value))
    if kind is LogKind.QUORUM and Role.CONTROLLER in roles:
        why = "a quorum's log belongs to Kafka's own controllers: expected process.roles=broker"
        raise properties.contradiction(KIND, _LOG_ROLES, why)
    if kind is LogKind.TOPIC and Role.CONTROLLER not in roles:
        why = "only controllers write to a topic; brokers follow the controllers: expected it to be left out"
        raise properties.contradiction(KIND, _LOG_ROLES, why)
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
        raise properties.error(TOPIC, f"{properties.display_value(TOPIC)}: {expected}")
    client = properties.under(CLIENT_PREFIX)
    security = librdkafka_properties(client_security(client), f"{properties.where}: {CLIENT_PREFIX}")
    return TopicSettings(
        topic=topic or _DEFAULT_TOPIC,
        properties={"bootstrap.servers": ",".join(map(str, addresses)), **security},
        replication_factor=properties.integer(REPLICATION_FACTOR, 3, least=1, most=(1 << 15) - 1),
        session_timeout_ms=properties.integer(LOG_SESSION_TIMEOUT, 6000, least=1),
    )
