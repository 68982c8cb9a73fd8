"""Creation of a log's topic with the settings it needs, or a check of an existing one."""

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
_RETRY_SECONDS = 0.2
_NO_LIMIT = str((1 << 63) - 1)

_T = TypeVar("_T")


@frozen(kw_only=True)
class _Requirement:
    """What a topic's setting must be: the value of a new topic, the accepted values, and the text of an error."""

    value: str
    accepts: Callable[[str], bool]
    expected: str


def _exactly(value: str) -> _Requirement:
    return _Requirement(value=value, accepts=lambda found: found == value, expected=value)


def _at_least(least: int) -> _Requirement:
    return _Requirement(value=str(least), accepts=lambda found: int(found) >= least, expected=f"{least} or more")


def _requirements(replication_factor: int) -> Mapping[str, _Requirement]:
    """Return the requirements by the names of TopicConfig."""
    return MappingProxyType(
        {
            # Every record is needed to rebuild the state: none may be compacted, expired, or lost by unclean election.
            "cleanup.policy": _exactly("delete"),
            "retention.ms": _exactly("-1"),
            "retention.bytes": _exactly("-1"),
            "unclean.leader.election.enable": _exactly("false"),
            "min.insync.replicas": _at_least(replication_factor // 2 + 1),
            # Records keep the log's own timestamps, however old.
            "message.timestamp.type": _exactly("CreateTime"),
            "message.timestamp.before.max.ms": _exactly(_NO_LIMIT),
            "message.timestamp.after.max.ms": _exactly(_NO_LIMIT),
            "max.message.bytes": _at_least(MAX_MESSAGE_BYTES),
        }
    )


def ensure_topic(settings: TopicSettings, *, timeout: float = 30.0) -> bool:
    """Create the topic, or check that an existing one can hold a log; return whether it was created. Blocks.

    Raises:
        ConfigError: its settings could lose or hide records; lists each one and the expected value.
        LogError: no broker responds within `timeout` seconds, or one refuses.

    """
    errors = ClientErrors(settings.name)
    admin = _Admin(settings.name, new_admin(settings.name, settings.properties, errors), errors, timeout)
    found = admin.describe(settings.topic)
    created = found is None and admin.create(settings)
    while found is None:  # a new topic takes a while to reach every broker
        admin.back_off()
        found = admin.describe(settings.topic)
    wrong = [*_wrong_layout(found, settings), *_wrong_settings(admin.configuration(settings.topic), settings)]
    if wrong:
        raise ConfigError(f"{settings.name}: unsuitable for a log: {'; '.join(wrong)}")
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
        f"{name} is {found.get(name)}: expected {requirement.expected}"
        for name, requirement in _requirements(settings.replication_factor).items()
        if not _accepted(requirement, found.get(name))
    ]


def _accepted(requirement: _Requirement, found: str | None) -> bool:
    try:
        return found is not None and requirement.accepts(found)
    except ValueError:
        return False


class _Admin:
    """Requests to an admin client, with one deadline for all of them."""

    def __init__(self, name: str, client: AdminClient, errors: ClientErrors, timeout: float) -> None:
        self._name, self._client, self._errors = name, client, errors
        self._timeout, self._deadline = timeout, time.monotonic() + timeout

    def describe(self, topic: str) -> TopicDescription | None:
        """Return the topic; None if there is none."""
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
        """Create the topic; return False if it was created by somebody else meanwhile."""
        config = {name: requirement.value for name, requirement in _requirements(settings.replication_factor).items()}
        new = NewTopic(settings.topic, num_partitions=1, replication_factor=settings.replication_factor, config=config)
        try:
            self._ask(lambda seconds: self._client.create_topics([new], request_timeout=seconds)[settings.topic])
        except KafkaException as error:
            if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise kafka_error(error, self._name) from error
            return False
        return True

    def configuration(self, topic: str) -> Mapping[str, str | None]:
        """Return all settings of the topic, including the broker's defaults."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            found: Mapping[str, Any] = self._ask(
                lambda seconds: self._client.describe_configs([resource], request_timeout=seconds)[resource]
            )
        except KafkaException as error:
            raise kafka_error(error, self._name) from error
        return {name: entry.value for name, entry in found.items()}

    def back_off(self) -> None:
        """Sleep before the next attempt.

        Raises:
            LogError: the deadline has passed.

        """
        if time.monotonic() > self._deadline:
            raise self._errors.latest or LogError(f"{self._name}: no response within {self._timeout:g} s")
        time.sleep(_RETRY_SECONDS)

    def _ask(self, question: Callable[[float], "Future[_T]"]) -> _T:
        """Repeat a request until a broker responds; a refusal is raised as KafkaException."""
        while True:
            try:
                return question(_SLICE_SECONDS).result(_SLICE_SECONDS * 10)
            except KafkaException as error:
                found = error_in(error)
                if found is None or found.code() not in _NO_RESPONSE:
                    raise
            with suppress(KafkaException):
                self._client.poll(0)
            if self._errors.refused and self._errors.latest is not None:
                raise self._errors.latest
            self.back_off()


_NO_RESPONSE = frozenset(
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
    found = error_in(error)
    return None if found is None else found.code()
