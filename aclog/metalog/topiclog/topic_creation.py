"""The topic itself: created with the settings that a log needs, or checked for them."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeVar

from attrs import frozen
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own names, which it does not declare as such
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.topiclog.clients import ClientErrors, new_admin
from aclog.metalog.topiclog.kafka_errors import error_in, kafka_error
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.transactions import MAX_MESSAGE_BYTES

_SLICE_SECONDS = 2.0
_AGAIN_SECONDS = 0.2
_NO_LIMIT = str((1 << 63) - 1)

_T = TypeVar("_T")


@frozen(kw_only=True)
class _Need:
    """What a topic's setting must be: the value a new topic gets, what is accepted, and how that is said."""

    value: str
    accepts: Callable[[str], bool]
    expected: str


def _exactly(value: str) -> _Need:
    return _Need(value=value, accepts=lambda found: found == value, expected=value)


def _at_least(least: int) -> _Need:
    return _Need(value=str(least), accepts=lambda found: int(found) >= least, expected=f"{least} or more")


def _needs(replication_factor: int) -> Mapping[str, _Need]:
    """By the names of TopicConfig."""
    return MappingProxyType(
        {
            "cleanup.policy": _exactly("delete"),
            "retention.ms": _exactly("-1"),
            "retention.bytes": _exactly("-1"),
            "unclean.leader.election.enable": _exactly("false"),
            "min.insync.replicas": _at_least(replication_factor // 2 + 1),
            "message.timestamp.type": _exactly("CreateTime"),
            "message.timestamp.before.max.ms": _exactly(_NO_LIMIT),
            "message.timestamp.after.max.ms": _exactly(_NO_LIMIT),
            "max.message.bytes": _at_least(MAX_MESSAGE_BYTES),
        }
    )


def ensure_topic(settings: TopicSettings, *, timeout: float = 30.0) -> bool:
    """See to it that the topic is there and fit to hold a log; tells whether it was created. Blocks.

    Raises:
        ConfigError: it is there with settings that could lose or hide records; each one wrong, and what is expected.
        LogError: no broker answers within `timeout` seconds, or refuses.

    """
    errors = ClientErrors(settings.name)
    admin = _Admin(settings.name, new_admin(settings.name, settings.properties, errors), errors, timeout)
    found = admin.describe(settings.topic)
    created = found is None and admin.create(settings)
    while found is None:  # a new topic shows up at every broker in a while
        admin.rest()
        found = admin.describe(settings.topic)
    wrong = [*_wrong_layout(found, settings), *_wrong_settings(admin.configuration(settings.topic), settings)]
    if wrong:
        raise ConfigError(f"{settings.name}: not fit to hold a log: {'; '.join(wrong)}")
    return created


def _wrong_layout(topic: TopicDescription, settings: TopicSettings) -> list[str]:
    wrong, count = [], len(topic.partitions)
    if count != 1:
        wrong.append(f"it has {count} partitions: expected 1")
    fewest = min(len(partition.replicas) for partition in topic.partitions)
    if fewest < settings.replication_factor:
        wrong.append(f"it has {fewest} replica(s): expected {settings.replication_factor} or more")
    return wrong


def _wrong_settings(found: Mapping[str, str | None], settings: TopicSettings) -> list[str]:
    return [
        f"{name} is {found.get(name)}: expected {need.expected}"
        for name, need in _needs(settings.replication_factor).items()
        if not _accepted(need, found.get(name))
    ]


def _accepted(need: _Need, found: str | None) -> bool:
    try:
        return found is not None and need.accepts(found)
    except ValueError:
        return False


class _Admin:
    """Questions to an admin client, all of them to be answered before one deadline."""

    def __init__(self, name: str, client: AdminClient, errors: ClientErrors, timeout: float) -> None:
        self._name, self._client, self._errors = name, client, errors
        self._timeout, self._deadline = timeout, time.monotonic() + timeout

    def describe(self, topic: str) -> TopicDescription | None:
        """The topic, None if there is none."""
        topics = TopicCollection([topic])
        try:
            found: TopicDescription = self._ask(
                lambda seconds: self._client.describe_topics(topics, request_timeout=seconds)[topic]
            )
        except KafkaException as error:
            if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise kafka_error(error, self._name) from error
            return None
        return found

    def create(self, settings: TopicSettings) -> bool:
        """Create the topic; False where somebody else did so meanwhile."""
        config = {name: need.value for name, need in _needs(settings.replication_factor).items()}
        new = NewTopic(settings.topic, num_partitions=1, replication_factor=settings.replication_factor, config=config)
        try:
            self._ask(lambda seconds: self._client.create_topics([new], request_timeout=seconds)[settings.topic])
        except KafkaException as error:
            if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise kafka_error(error, self._name) from error
            return False
        return True

    def configuration(self, topic: str) -> Mapping[str, str | None]:
        """All settings of the topic, the broker's defaults included."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            found: Mapping[str, Any] = self._ask(
                lambda seconds: self._client.describe_configs([resource], request_timeout=seconds)[resource]
            )
        except KafkaException as error:
            raise kafka_error(error, self._name) from error
        return {name: entry.value for name, entry in found.items()}

    def rest(self) -> None:
        """Wait a little, before the same question is asked again.

        Raises:
            LogError: there is no time left.

        """
        if time.monotonic() > self._deadline:
            raise self._errors.latest or LogError(f"{self._name}: no answer within {self._timeout:g} s")
        time.sleep(_AGAIN_SECONDS)

    def _ask(self, question: Callable[[float], "Future[_T]"]) -> _T:
        """Ask until there is an answer; what the broker refuses is raised as KafkaException."""
        while True:
            try:
                return question(_SLICE_SECONDS).result(_SLICE_SECONDS * 10)
            except KafkaException as error:
                said = error_in(error)
                if said is None or said.code() not in _UNANSWERED:
                    raise
            with suppress(KafkaException):
                self._client.poll(0)
            if self._errors.refused and self._errors.latest is not None:
                raise self._errors.latest
            self.rest()


_UNANSWERED = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NOT_CONTROLLER,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)


def _code(error: KafkaException) -> int | None:
    said = error_in(error)
    return None if said is None else said.code()
