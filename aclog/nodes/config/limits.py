"""Limits and checkpoint policy from properties; defaults are Kafka's unless NodeConfig has its own."""

from math import inf

from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import CheckpointPolicy, Limits

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
"""Stands for no limit: event loops do not accept infinity."""


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
