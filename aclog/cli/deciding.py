"""What decides on the state of a command, where several generations of Kafka may: both answers, or none."""

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from aclog.authorizer.generation import Generation
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.metalog.errors import ConfigError
from aclog.snapshots.deciding_kafka import DecidingKafka, deciding_kafka, ranges_concern_controllers
from aclog.snapshots.image import Image
from aclog.terminal.notices import warn


@frozen(kw_only=True)
class EachGeneration:
    """The flags of a command for each generation that may decide on a state."""

    kafka: DecidingKafka
    flags: Mapping[Generation, AuthorizerFlags] = field(factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether one generation decides, or all that may decide alike."""
        return self.kafka.is_known

    @property
    def first(self) -> AuthorizerFlags:
        """The flags of the only generation, or of the oldest."""
        return self.flags[self.kafka.generations[0]]

    @property
    def of_brokers(self) -> tuple[Generation, ...]:
        """The generations that may decide what no controller decides."""
        return tuple(each for each in self.kafka.generations if each not in self.kafka.only_controllers)

    def warn(self) -> None:
        """Warn that several generations may decide and that answers may differ; nothing if one decides."""
        if not self.is_known:
            warn(self.kafka.ambiguity())


def each_generation(
    image: Image, flags: AuthorizerFlags, asked: Iterable[tuple[int, int]] | None = None
) -> EachGeneration:
    """Return the flags for each generation that may decide on a state.

    `asked`: the resource type and the operation of all requests in question, as codes; None if they may be any.
    """
    kafka = deciding_kafka(
        image, flags.generation, controllers=None if asked is None else ranges_concern_controllers(image.acls, asked)
    )
    return EachGeneration(kafka=kafka, flags={each: flags.of_generation(each) for each in kafka.generations})


def only_generation(image: Image, flags: AuthorizerFlags) -> AuthorizerFlags:
    """Return the flags for the one generation that decides, for a command that gives one answer.

    Raises:
        ConfigError: several may decide, and a rule of the state has a range as host.

    """
    found = each_generation(image, flags)
    if not found.is_known:
        raise ConfigError(found.kafka.ambiguity())
    return found.first
