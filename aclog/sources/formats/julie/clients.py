"""What consumers, producers and applications may do (AclsBindingsBuilder)."""

from collections.abc import Iterator

from aclog.authorizer.acl import WILDCARD, AclOperation, PatternType, ResourceType
from aclog.sources.formats.julie.grants import listed, on_group, on_starred, on_topic, optional_text
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.statement import Statement, on_cluster

_USER = ("principal", "metadata")
_CONNECT_TOPICS = {
    "status_topic": "connect-status",
    "offset_topic": "connect-offsets",
    "configs_topic": "connect-configs",
}
_CONNECTOR = (*_USER, "topics", *_CONNECT_TOPICS, "group", "cluster_id", "connectors")
_READ_WRITE = (("read", AclOperation.READ), ("write", AclOperation.WRITE))


def consumer_statements(consumer: Node, topic: str) -> Iterator[Statement]:
    """Yield the statements of a consumer of a topic. Raises ConfigError, as all of these, with file and line."""
    consumer.check_keys((*_USER, "group"), "the consumer")
    yield from on_topic(consumer, topic, AclOperation.DESCRIBE, AclOperation.READ)
    where, group = optional_text(consumer, "group", WILDCARD)
    yield from on_starred(where, ResourceType.GROUP, group, AclOperation.READ)


def producer_statements(producer: Node, topic: str) -> Iterator[Statement]:
    """Yield the statements of a producer to a topic; `idempotence` counts when it is there, though it be false."""
    producer.check_keys((*_USER, "transactionId", "idempotence", "idempotent"), "the producer")
    yield from on_topic(producer, topic, AclOperation.DESCRIBE, AclOperation.WRITE)
    transaction, idempotence = producer.get("transactionId"), producer.get("idempotence")
    if idempotence is not None:
        idempotence.boolean("idempotence")
    if transaction is not None:
        name = plain_text(transaction, "transactionId")
        yield from on_starred(
            transaction, ResourceType.TRANSACTIONAL_ID, name, AclOperation.DESCRIBE, AclOperation.WRITE
        )
    if transaction is not None or idempotence is not None:
        yield on_cluster(producer, AclOperation.IDEMPOTENT_WRITE)


def streams_statements(app: Node, prefix: str) -> Iterator[Statement]:
    """Yield the statements of a Kafka Streams application; `prefix` is that of its project."""
    app.check_keys((*_USER, "topics", "applicationId", "exactlyOnce"), "the streams application")
    where, name = _prefix(app, prefix)
    if not listed(app.required("topics", "the streams application"), "read"):
        raise app.error("the streams application reads no topics: JulieOps requires topics.read")
    yield from _topics(app)
    yield from on_topic(where, name, AclOperation.ALL, pattern_type=PatternType.PREFIXED)
    yield from on_group(where, name, AclOperation.READ, pattern_type=PatternType.PREFIXED)
    exactly_once = app.mapping().get("exactlyOnce")
    if exactly_once is not None and exactly_once.boolean("exactlyOnce"):
        for operation in (AclOperation.WRITE, AclOperation.DESCRIBE):
            yield Statement(
                where=exactly_once,
                resource_type=ResourceType.TRANSACTIONAL_ID,
                name=name,
                pattern_type=PatternType.PREFIXED,
                operation=operation,
            )


def ksql_statements(app: Node, prefix: str) -> Iterator[Statement]:
    """Yield the statements of a ksqlDB application; `prefix` is that of its project."""
    app.check_keys((*_USER, "topics", "applicationId", "ksqlDbId"), "the ksql application")
    where, name = _prefix(app, prefix)
    yield from _topics(app)
    yield from on_topic(where, name, AclOperation.ALL, pattern_type=PatternType.PREFIXED)
    yield from on_group(where, name, AclOperation.ALL, pattern_type=PatternType.PREFIXED)


def connect_statements(worker: Node) -> Iterator[Statement]:
    """Yield the statements of a Connect worker, which may create topics (connector.allow.topic.create is true)."""
    worker.check_keys(_CONNECTOR, "the connector")
    for key, default in _CONNECT_TOPICS.items():
        yield from on_topic(*optional_text(worker, key, default), AclOperation.READ, AclOperation.WRITE)
    yield on_cluster(worker, AclOperation.CREATE)
    yield from on_group(*optional_text(worker, "group", "connect-cluster"), AclOperation.READ)
    yield from _topics(worker)


def _prefix(app: Node, prefix: str) -> tuple[Node, str]:
    where, name = optional_text(app, "applicationId", prefix)
    if not name:
        raise where.error("applicationId is empty")
    return where, name


def _topics(app: Node) -> Iterator[Statement]:
    topics = app.get("topics")
    if topics is None:
        return
    topics.check_keys([key for key, _ in _READ_WRITE], "topics")
    for key, operation in _READ_WRITE:
        for topic in listed(topics, key):
            yield from on_topic(topic, plain_text(topic, "topic"), operation)
