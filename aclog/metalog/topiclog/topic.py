"""A log's topic: its creation, its identity, and requests about it."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeVar

from attrs import field
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType, TopicDescription  # type: ignore[attr-defined]  # its own names, which it does not declare as such

from aclog.metalog.errors import ConfigError, LogError, ReplayError, plural
from aclog.metalog.machine import clock, threads
from aclog.metalog.topiclog.client import MAX_MESSAGE_BYTES, ClientErrors, error_in, kafka_error, new_admin
from aclog.metalog.topiclog.partition import RESPONSE_SECONDS, Partition, RemovedError
from aclog.metalog.topiclog.positions import Leader, StoredMessage, find_first, find_last, find_offset, leader_of
from aclog.metalog.topiclog.settings import TopicId, TopicSettings
from aclog.metalog.values import define, frozen

# Requests about a log's topic to the brokers, repeated until one responds.


_FIRST_ATTEMPT_SECONDS, _LAST_ATTEMPT_SECONDS = 2.0, 8.0
_LEAST_ATTEMPT_SECONDS = 0.5
"""For an attempt that begins when almost no time is left: a shorter one would fail with a healthy broker."""
_RETRY_SECONDS = 0.2

_T = TypeVar("_T")


class TopicAdmin:
    """Requests through one admin client, which is replaced after a request without a response. Not thread-safe.

    librdkafka sends such requests to the broker that it takes for the controller, even after that broker
    has died: only a new client tries the others.
    """

    def __init__(self, name: str, properties: Mapping[str, str], timeout: float) -> None:
        self._name, self._properties, self._errors = name, properties, ClientErrors(name)
        self._client: AdminClient | None = None
        self.allow(timeout)

    def allow(self, timeout: float) -> None:
        """Give the next requests so many seconds, all together."""
        self._timeout, self._deadline = timeout, clock.monotonic() + timeout
        self._attempt_seconds = _FIRST_ATTEMPT_SECONDS
        # An error of an earlier request is not about the next one.
        self._errors.clear()

    def kafka_cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        try:
            cluster = self._ask(lambda client, seconds: client.describe_cluster(request_timeout=seconds))
        except KafkaException as error:
            raise kafka_error(error, self._name) from error
        return str(cluster.cluster_id)

    def describe(self, topic: str) -> TopicDescription | None:
        """Return the topic; None if it does not exist."""
        topics = TopicCollection([topic])
        try:
            description: TopicDescription = self._ask(
                lambda client, seconds: client.describe_topics(topics, request_timeout=seconds)[topic]
            )
        except KafkaException as error:
            if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise kafka_error(error, self._name) from error
            return None
        return description

    def wait_for(self, topic: str) -> TopicDescription:
        """Return a topic that was created: it takes a while to reach every broker."""
        while (description := self.describe(topic)) is None:
            self._back_off()
        return description

    def create(self, topic: str, replication_factor: int, config: Mapping[str, str]) -> bool:
        """Create a topic of one partition; return False if another client has created it meanwhile."""
        new = NewTopic(topic, num_partitions=1, replication_factor=replication_factor, config=dict(config))
        try:
            self._ask(lambda client, seconds: client.create_topics([new], request_timeout=seconds)[topic])
        except KafkaException as error:
            if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise kafka_error(error, self._name) from error
            return False
        return True

    def configuration(self, topic: str) -> Mapping[str, str | None]:
        """Return all settings of the topic, including the broker's defaults."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            config: Mapping[str, Any] = self._ask(
                lambda client, seconds: client.describe_configs([resource], request_timeout=seconds)[resource]
            )
        except KafkaException as error:
            raise kafka_error(error, self._name) from error
        return {name: entry.value for name, entry in config.items()}

    def _back_off(self) -> None:
        """Sleep before the next attempt.

        Raises:
            LogError: the deadline has passed.

        """
        if clock.monotonic() > self._deadline:
            raise self._errors.latest or LogError(f"{self._name}: no response within {self._timeout:g} s")
        clock.sleep(_RETRY_SECONDS)

    def _ask(self, question: Callable[[AdminClient, float], "Future[_T]"]) -> _T:
        """Repeat a request until a broker responds; a refusal is raised as KafkaException."""
        while True:
            client = self._client = self._client or new_admin(self._name, self._properties, self._errors)
            seconds = max(min(self._attempt_seconds, self._deadline - clock.monotonic()), _LEAST_ATTEMPT_SECONDS)
            try:
                response = question(client, seconds).result(2 * seconds)
            except TimeoutError:
                pass
            except KafkaException as error:
                cause = error_in(error)
                if cause is None or cause.code() not in _NO_RESPONSE:
                    raise
            else:
                self._attempt_seconds = _FIRST_ATTEMPT_SECONDS
                return response
            with suppress(KafkaException):
                client.poll(0)
            self._client, self._attempt_seconds = None, min(2 * self._attempt_seconds, _LAST_ATTEMPT_SECONDS)
            if self._errors.refused and self._errors.latest is not None:
                raise self._errors.latest
            self._back_off()


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
    kafka = error_in(error)
    return None if kafka is None else kafka.code()


# Creation of a log's topic with the settings it needs, and the check of an existing one.


_NO_LIMIT = str((1 << 63) - 1)


@frozen(kw_only=True)
class _Requirement:
    """The requirement for a topic's setting: the value of a new topic, the accepted values, and an error text."""

    value: str
    accepts: Callable[[str], bool]
    expected: str


def _exactly(value: str) -> _Requirement:
    return _Requirement(value=value, accepts=lambda actual: actual == value, expected=value)


def _at_least(least: int) -> _Requirement:
    return _Requirement(value=str(least), accepts=lambda actual: int(actual) >= least, expected=f"{least} or more")


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
    admin = TopicAdmin(settings.name, settings.properties, timeout)
    description = admin.describe(settings.topic)
    created = description is None and create_topic(admin, settings)
    check_topic(admin, description or admin.wait_for(settings.topic), settings)
    return created


def create_topic(admin: TopicAdmin, settings: TopicSettings) -> bool:
    """Create the topic; return False if another client has created it meanwhile.

    Raises:
        LogError: as ensure_topic.

    """
    requirements = _requirements(settings.replication_factor)
    config = {name: requirement.value for name, requirement in requirements.items()}
    return admin.create(settings.topic, settings.replication_factor, config)


def check_topic(admin: TopicAdmin, description: "TopicDescription", settings: TopicSettings) -> None:
    """Check that an existing topic can hold a log. Raises as ensure_topic."""
    wrong = [*_wrong_layout(description, settings), *_wrong_settings(admin.configuration(settings.topic), settings)]
    if wrong:
        raise ConfigError(f"{settings.name}: unsuitable for a log: {'; '.join(wrong)}")


def _wrong_layout(topic: "TopicDescription", settings: TopicSettings) -> list[str]:
    wrong, count = [], len(topic.partitions)
    if count != 1:
        wrong.append(f"it has {count} partitions: expected 1")
    fewest = min(len(partition.replicas) for partition in topic.partitions)
    if fewest < settings.replication_factor:
        wrong.append(f"it has {plural(fewest, 'replica')}: expected {settings.replication_factor} or more")
    return wrong


def _wrong_settings(config: Mapping[str, str | None], settings: TopicSettings) -> list[str]:
    return [
        f"{name} is {config.get(name)}: expected {requirement.expected}"
        for name, requirement in _requirements(settings.replication_factor).items()
        if not _accepted(requirement, config.get(name))
    ]


def _accepted(requirement: _Requirement, actual: str | None) -> bool:
    try:
        return actual is not None and requirement.accepts(actual)
    except ValueError:
        return False


# The identity of a log's topic according to the brokers, and whether it is suitable for a log.


@define(eq=False)
class TopicInspector:
    """Reads the topic's state; connects with the first request. Thread-safe."""

    settings: TopicSettings
    _topic_admin: TopicAdmin | None = field(default=None, init=False)
    _lock: "threading.Lock" = field(factory=threads.lock, init=False)

    def identify(self, timeout: float) -> TopicId | None:
        """Return the topic's identity; None if it does not exist. Never creates it.

        Raises:
            LogError: no broker responds within `timeout` seconds, or one refuses.
            ConfigError: the client rejects the properties.

        """
        with self._lock:
            admin = self._admin(timeout)
            description = admin.describe(self.settings.topic)
            if description is None:
                return None
            return id_of_topic(admin, description)

    def check_settings(self, timeout: float) -> None:
        """Check that the topic can hold a log.

        Raises:
            ConfigError: its settings could lose or hide records; lists each one and the expected value.
            LogError: as `identify`; or there is no such topic.

        """
        with self._lock:
            admin = self._admin(timeout)
            description = admin.describe(self.settings.topic)
            if description is None:
                raise LogError(f"{self.settings.name}: there is no such topic")
            check_topic(admin, description, self.settings)

    def create(self, timeout: float) -> None:
        """Create the topic; nothing if it exists. Raises as `identify`."""
        with self._lock:
            admin = self._admin(timeout)
            create_topic(admin, self.settings)
            admin.wait_for(self.settings.topic)

    def _admin(self, timeout: float) -> TopicAdmin:
        if self._topic_admin is None:
            self._topic_admin = TopicAdmin(self.settings.name, self.settings.properties, timeout)
        self._topic_admin.allow(timeout)
        return self._topic_admin


def id_of_topic(admin: TopicAdmin, description: TopicDescription) -> TopicId:
    """Return the identity of a topic. Raises LogError: no broker responds in time, or one refuses."""
    return TopicId(kafka_cluster_id=admin.kafka_cluster_id(), topic_id=_url_safe(str(description.topic_id)))


def _url_safe(text: str) -> str:
    """Return an id as Kafka writes it: librdkafka has the other alphabet of base64."""
    return text.replace("+", "-").replace("/", "_")


# The start and end of a topic log, found without reading the whole log.


@frozen(kw_only=True)
class Survey:
    """The log between Kafka's offsets `start` and `end`; `end` is the last stable offset at the time.

    `first` is the first message of the first whole batch, `last` the last message; both None in an empty log.
    """

    start: int
    end: int
    first: StoredMessage | None
    last: StoredMessage | None

    @property
    def start_offset(self) -> int:
        """The first offset whose batch is whole."""
        return 0 if self.first is None else self.first.place.offset

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return 0 if self.last is None else self.last.place.end_offset

    @property
    def epoch(self) -> int:
        """The newest leader epoch; 0 in an empty log."""
        return 0 if self.last is None else self.last.place.epoch


def survey(partition: Partition, timeout: float = RESPONSE_SECONDS) -> Survey:
    """Find the log's first and last message.

    Raises:
        LogError: no broker responds within `timeout` seconds; RemovedError if all messages were removed.
        ReplayError: the last message does not end a batch.
        DecodeError: a message that is not a record.

    """
    start, end = partition.bounds(timeout)
    first = partition.first_from(start, end) if start < end else None
    last = None if first is None else find_last(partition, first.position, end)
    if first is None or last is None:
        if start:
            raise RemovedError(
                f"{partition.name}: all messages below Kafka's offset {start} were removed, and no later ones exist"
            )
        return Survey(start=start, end=end, first=None, last=None)
    if last.place.offset != last.place.end_offset - 1:
        raise ReplayError("the last message is not the last one of its batch", offset=last.place.offset)
    # Kafka removes messages, not our batches: the first batch may have lost its beginning and is then skipped.
    if first.place.offset != first.place.base_offset:
        first = find_offset(partition, first.place.end_offset, first, last)
    return Survey(start=start, end=end, first=first, last=last)


def find_base(partition: Partition, offset: int, bounds: Survey) -> StoredMessage:
    """Return the first message of the batch that holds a surveyed offset.

    Raises:
        LogError: a broker does not respond, or the log is empty.
        ReplayError: there is no such message.

    """
    if bounds.first is None or bounds.last is None:
        raise LogError(f"{partition.name}: no message of offset {offset}: the log is empty")
    message = find_offset(partition, offset, bounds.first, bounds.last, near_end=True)
    base = message.place.base_offset
    return message if base == offset else find_offset(partition, base, bounds.first, message, near_end=True)


def find_leader(partition: Partition, bounds: Survey) -> Leader | None:
    """Return the newest epoch's leader; None if the epoch does not begin with a LeaderChange.

    Raises:
        LogError, DecodeError: as Partition.first_from.

    """
    if bounds.first is None or bounds.last is None:
        return None
    newest = bounds.epoch
    return leader_of(find_first(partition, bounds.first, bounds.last, lambda message: message.place.epoch >= newest))
