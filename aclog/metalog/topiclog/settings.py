"""Where a topic log lives, and how it is reached."""

from collections.abc import Mapping

from attrs import Factory, field, frozen

from aclog.metalog.errors import ConfigError

BOOTSTRAP_SERVERS = "bootstrap.servers"

_CHOSEN = frozenset(
    {
        "acks",
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
"""What these properties are is no user's choice: what is promised rests on them."""


def _own(properties: Mapping[str, str]) -> Mapping[str, str]:
    return dict(properties)


def _check_properties(_: object, __: object, properties: Mapping[str, str]) -> None:
    if not properties.get(BOOTSTRAP_SERVERS):
        raise ConfigError(f"{BOOTSTRAP_SERVERS}: not set: expected HOST:PORT[,HOST:PORT...] of a Kafka's brokers")
    for name in sorted(_CHOSEN & properties.keys()):
        raise ConfigError(f"{name}: chosen by the log itself: expected not to be set")


@frozen(kw_only=True)
class TopicSettings:
    """A one-partition topic; `properties` are librdkafka's, `bootstrap.servers` among them.

    Raises:
        ConfigError: no servers, or a property that is not the user's choice.

    """

    topic: str
    properties: Mapping[str, str] = field(repr=False, converter=_own, validator=_check_properties)
    replication_factor: int = 3
    """Of a topic that is created, and the least of one that is found."""
    transactional_id: str = Factory(lambda self: self.topic, takes_self=True)
    group_id: str = Factory(lambda self: self.topic, takes_self=True)
    session_timeout_ms: int = 6000
    """After that long without a heartbeat the elected candidate is taken for dead (session.timeout.ms)."""

    @property
    def servers(self) -> str:
        """The brokers that are asked first."""
        return self.properties[BOOTSTRAP_SERVERS]

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC: how messages and commands name the log."""
        return f"kafka://{self.servers}/{self.topic}"
