"""Where a topic log is, how to connect to it, and which topic it is."""

from collections.abc import Mapping

from attrs import Factory, field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

BOOTSTRAP_SERVERS = "bootstrap.servers"

_RESERVED = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "isolation.level",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "transactional.id",
    }
)
"""The log's guarantees depend on these properties, so users cannot set them."""


def _own(properties: Mapping[str, str]) -> Mapping[str, str]:
    return dict(properties)


def _check_properties(_: object, __: object, properties: Mapping[str, str]) -> None:
    if not properties.get(BOOTSTRAP_SERVERS):
        raise ConfigError(f"{BOOTSTRAP_SERVERS}: not set: expected HOST:PORT[,HOST:PORT...] of Kafka brokers")
    for name in sorted(_RESERVED & properties.keys()):
        raise ConfigError(f"{name}: set by the log itself: expected it to be left out")


@frozen(kw_only=True)
class TopicSettings:
    """A one-partition topic; `properties` are librdkafka's, with `bootstrap.servers`.

    Raises:
        ConfigError: no servers, or a reserved property.

    """

    topic: str
    properties: Mapping[str, str] = field(repr=False, converter=_own, validator=_check_properties)
    replication_factor: int = 3
    """The replication factor of a topic that is created, and the minimum for an existing one."""
    transactional_id: str = Factory(lambda self: self.topic, takes_self=True)
    group_id: str = Factory(lambda self: self.topic, takes_self=True)
    session_timeout_ms: int = 6000
    """How long after its last heartbeat the elected candidate is considered dead (session.timeout.ms)."""

    @property
    def servers(self) -> str:
        """The bootstrap servers."""
        return self.properties[BOOTSTRAP_SERVERS]

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC, the log's name in messages and commands."""
        return f"kafka://{self.servers}/{self.topic}"


@frozen(kw_only=True)
class TopicId:
    """The identity of a topic and its Kafka, apart from names: two of Kafka's 22-character ids.

    A topic that is deleted and created again has another id. A Kafka before 2.8 gives all topics the id of zeros.
    """

    kafka_cluster_id: str
    topic_id: str
