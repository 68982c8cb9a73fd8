"""What decides on the state of a command, where several generations of Kafka may: both answers, or none."""

from collections.abc import Mapping

from attrs import field, frozen

from aclog.authorizer.generation import Generation
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.metalog.errors import ConfigError
from aclog.snapshots.deciding_kafka import DecidingKafka, ambiguity, deciding_kafka
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

    def warn(self, image: Image) -> None:
        """Warn that several generations may decide and that answers may differ; nothing if one decides."""
        if not self.is_known:
            warn(ambiguity(self.kafka, image))


def each_generation(image: Image, flags: AuthorizerFlags) -> EachGeneration:
    """Return the flags for each generation that may decide on a state."""
    kafka = deciding_kafka(image, flags.generation)
    return EachGeneration(kafka=kafka, flags={each: flags.of_generation(each) for each in kafka.generations})


def only_generation(image: Image, flags: AuthorizerFlags) -> AuthorizerFlags:
    """Return the flags for the one generation that decides, for a command that gives one answer.

    Raises:
        ConfigError: several may decide, and a rule of the state has a range as host.

    """
    found = each_generation(image, flags)
    if not found.is_known:
        raise ConfigError(ambiguity(found.kafka, image))
    return found.first
