"""What the components of a platform may do: schema registries, control centers, ksqlDB servers."""

from collections.abc import Iterator

from aclog.authorizer.acl import WILDCARD, AclOperation, PatternType
from aclog.sources.formats.julie.grants import listed, on_group, on_topic, optional_text
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.statement import Statement, on_cluster

_SECTIONS = ("kafka", "kafka_connect", "schema_registry", "control_center", "ksql")
_USER = ("principal", "metadata")
_CONFLUENT_TOPICS = ("_confluent-monitoring", "_confluent-command", "_confluent-metrics")
_OF_CONTROL_CENTER = (AclOperation.WRITE, AclOperation.READ, AclOperation.CREATE, AclOperation.DESCRIBE)


def platform_statements(platform: Node | None) -> Iterator[tuple[Node, Statement]]:
    """Yield each component and its statements. Raises ConfigError: something in it is not understood."""
    if platform is None:
        return
    platform.check_keys(_SECTIONS, "platform")
    for section, statements in (
        ("schema_registry", _registry),
        ("control_center", _control_center),
        ("ksql", _ksql_server),
    ):
        found = platform.get(section)
        if found is not None:
            found.check_keys(("instances", "rbac"), f"platform.{section}")
            for instance in listed(found, "instances"):
                for statement in statements(instance):
                    yield instance, statement


def _registry(registry: Node) -> Iterator[Statement]:
    registry.check_keys((*_USER, "topic", "consumer_offsets_topic", "group"), "the schema registry")
    yield from on_topic(
        *optional_text(registry, "topic", "_schemas"),
        AclOperation.CREATE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.READ,
    )
    offsets = optional_text(registry, "consumer_offsets_topic", "__consumer_offsets")
    yield from on_topic(*offsets, AclOperation.DESCRIBE)
    yield from on_group(*optional_text(registry, "group", "schema-registry"), AclOperation.READ)


def _control_center(center: Node) -> Iterator[Statement]:
    center.check_keys((*_USER, "appId"), "the control center")
    app = center.required("appId", "the control center")
    name = plain_text(app, "appId")
    for group in (name, f"{name}-command"):
        yield from on_group(app, group, AclOperation.READ, pattern_type=PatternType.PREFIXED)
    yield from on_group(center, WILDCARD, AclOperation.DESCRIBE)
    for topic in _CONFLUENT_TOPICS:
        yield from on_topic(center, topic, *_OF_CONTROL_CENTER)
    yield from on_topic(center, "_confluent-controlcenter", *_OF_CONTROL_CENTER, pattern_type=PatternType.PREFIXED)
    yield from on_topic(center, WILDCARD, AclOperation.CREATE)
    yield on_cluster(center, AclOperation.DESCRIBE)
    yield on_cluster(center, AclOperation.DESCRIBE_CONFIGS)


def _ksql_server(server: Node) -> Iterator[Statement]:
    server.check_keys((*_USER, "ksqlDbId", "owner"), "the ksql server")
    identity = server.required("ksqlDbId", "the ksql server")
    name = plain_text(identity, "ksqlDbId")
    internal = f"_confluent-ksql-{name}"
    yield on_cluster(server, AclOperation.DESCRIBE_CONFIGS)
    yield from on_topic(identity, internal, AclOperation.ALL, pattern_type=PatternType.PREFIXED)
    yield from on_topic(identity, f"{name}ksql_processing_log", AclOperation.ALL)
    yield from on_group(identity, internal, AclOperation.ALL, pattern_type=PatternType.PREFIXED)
