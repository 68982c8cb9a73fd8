"""What services of kafka-gitops may do (ApplicationService, KafkaStreamsService, KafkaConnectService)."""

from collections.abc import Iterator

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType
from aclog.sources.formats.node import Node
from aclog.sources.formats.statement import Statement, on_cluster

_KEYS = {
    "application": ("type", "principal", "group-id", "produces", "consumes"),
    "kafka-streams": ("type", "principal", "application-id", "produces", "consumes"),
    "kafka-connect": ("type", "principal", "group-id", "storage-topics", "produces", "connectors"),
}
_STORAGE = {"config": "connect-configs-", "offset": "connect-offsets-", "status": "connect-status-"}
"""The storage topics of a Connect cluster, and what stands before its name in their default names."""
_OF_STREAMS = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
)
"""What an application of Kafka Streams may do with topics whose names begin with its id."""


def service_statements(name: str, service: Node, *, describes_topics: bool) -> Iterator[Statement]:
    """Yield the statements of a service.

    Raises:
        ConfigError: its type or one of its keys is unknown, or a value is of the wrong kind; with file and line.

    """
    what = f"service {name}"
    kind = service.required("type", what).text("type")
    if kind not in _KEYS:
        raise service.required("type").error(f"{what} has the type {kind[:60]!r}: expected one of {', '.join(_KEYS)}")
    service.check_keys(_KEYS[kind], what)
    yield from _topics(service, describes_topics=describes_topics)
    if kind == "application":
        yield from _consumer_group(service, _group(service, "group-id", name))
    elif kind == "kafka-streams":
        yield from _streams(service, _group(service, "application-id", name))
    else:
        yield from _connect(name, service, describes_topics=describes_topics)


def _topics(of: Node, *, describes_topics: bool) -> Iterator[Statement]:
    for key, operation in (("produces", AclOperation.WRITE), ("consumes", AclOperation.READ)):
        for topic in _listed(of, key):
            yield _on_topic(topic, topic.text("topic"), operation)
            if describes_topics:
                yield _on_topic(topic, topic.text("topic"), AclOperation.DESCRIBE)


def _listed(of: Node, key: str) -> Iterator[Node]:
    """Yield the items of a list, which may be missing, but not null: kafka-gitops fails on that."""
    found = of.mapping().get(key)
    if found is not None:
        yield from found.items(key)


def _group(service: Node, key: str, name: str) -> tuple[Node, str]:
    """Return the group or application id, and where it is stated; the name of the service unless it is given."""
    found = service.get(key)
    return (service, name) if found is None else (found, found.text(key))


def _consumer_group(of: Node, group: tuple[Node, str]) -> Iterator[Statement]:
    if any(True for _ in _listed(of, "consumes")):
        yield _on_group(*group, AclOperation.READ)


def _streams(service: Node, application: tuple[Node, str]) -> Iterator[Statement]:
    where, name = application
    for operation in _OF_STREAMS:
        yield _on_topic(where, name, operation, PatternType.PREFIXED)
    for operation in (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE):
        yield _on_group(where, name, operation)
    yield on_cluster(service, AclOperation.DESCRIBE_CONFIGS)


def _connect(name: str, service: Node, *, describes_topics: bool) -> Iterator[Statement]:
    storage = service.get("storage-topics")
    if storage is not None:
        storage.check_keys(tuple(_STORAGE), f"storage-topics of service {name}")
    for key, prefix in _STORAGE.items():
        given = None if storage is None else storage.get(key)
        topic = prefix + name if given is None else given.text(key)
        for operation in (AclOperation.READ, AclOperation.WRITE):
            yield _on_topic(given or service, topic, operation)
    yield _on_group(*_group(service, "group-id", name), AclOperation.READ)
    connectors = service.mapping().get("connectors")
    if connectors is None:
        return
    for connector_name, connector in connectors.mapping("connectors").items():
        connector.check_keys(("produces", "consumes"), f"connector {connector_name}")
        yield from _topics(connector, describes_topics=describes_topics)
        yield from _consumer_group(connector, (connector, f"connect-{connector_name}"))


def _on_topic(
    where: Node, name: str, operation: AclOperation, pattern_type: PatternType = PatternType.LITERAL
) -> Statement:
    return Statement(
        where=where, resource_type=ResourceType.TOPIC, name=name, pattern_type=pattern_type, operation=operation
    )


def _on_group(where: Node, name: str, operation: AclOperation) -> Statement:
    return Statement(where=where, resource_type=ResourceType.GROUP, name=name, operation=operation)
