"""What decides on the state of a command, where several generations of Kafka may: both answers, or none."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from attrs import field, frozen

from aclog.authorizer.generation import Generation
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.metalog.errors import ConfigError
from aclog.snapshots.deciding_kafka import DecidingKafka, deciding_kafka, ranges_concern_controllers
from aclog.snapshots.image import Image
from aclog.terminal.notices import warn

T = TypeVar("T")


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


def merged(
    answers: Mapping[Generation, Iterable[T]] | Mapping[Generation | None, Iterable[T]], key: Callable[[T], Hashable]
) -> Iterator[tuple[T, Generation | None]]:
    """Yield what the answers of all generations contain, with the generation of what only one contains.

    With one generation nothing is compared, and nothing is read ahead.
    """
    if len(answers) == 1:
        yield from ((value, None) for values in answers.values() for value in values)
        return
    keyed = {each: {key(value): value for value in values} for each, values in answers.items()}
    for each, own in keyed.items():
        for name, value in own.items():
            holding = [other for other, values in keyed.items() if name in values]
            if len(holding) == 1:
                yield value, each
            elif holding[0] is each:
                yield value, None


def only_on(generation: Generation | None) -> str:
    """Return such as ` (on Kafka 4.4 only)`; empty for what holds on all."""
    return "" if generation is None else f" (on {generation} only)"


def generation_object(generation: Generation | None) -> dict[str, str]:
    """Return the same for JSON: the key `generation`; nothing for what holds on all."""
    return {} if generation is None else {"generation": generation.value}
