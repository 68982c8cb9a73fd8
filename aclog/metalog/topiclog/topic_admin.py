"""Requests about a log's topic to the brokers, repeated until one responds."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own names, which it does not declare as such
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog.clients import ClientErrors, new_admin
from aclog.metalog.topiclog.kafka_errors import error_in, kafka_error

_FIRST_ATTEMPT_SECONDS, _LAST_ATTEMPT_SECONDS = 2.0, 8.0
_RETRY_SECONDS = 0.2

_T = TypeVar("_T")


class TopicAdmin:
    """Requests through one admin client, which is replaced after a request without a response. Not thread-safe.

    librdkafka sends such requests to the broker that it takes for the controller, and goes on doing so when that broker
    has died: only a new client asks the others.
    """

    def __init__(self, name: str, properties: Mapping[str, str], timeout: float) -> None:
        self._name, self._properties, self._errors = name, properties, ClientErrors(name)
        self._client: AdminClient | None = None
        self._attempt_seconds = _FIRST_ATTEMPT_SECONDS
        self.allow(timeout)

    def allow(self, timeout: float) -> None:
        """Give the next requests so many seconds, all together."""
        self._timeout, self._deadline = timeout, time.monotonic() + timeout
        # An error of an earlier request says nothing about the next one.
        self._errors.clear()

    def kafka_cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        try:
            found = self._ask(lambda client, seconds: client.describe_cluster(request_timeout=seconds))
        except KafkaException as error:
            raise kafka_error(error, self._name) from error
        return str(found.cluster_id)

    def describe(self, topic: str) -> TopicDescription | None:
        """Return the topic; None if there is none."""
        topics = TopicCollection([topic])
        try:
            found: TopicDescription = self._ask(
                lambda client, seconds: client.describe_topics(topics, request_timeout=seconds)[topic]
            )
        except KafkaException as error:
            if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise kafka_error(error, self._name) from error
            return None
        return found

    def wait_for(self, topic: str) -> TopicDescription:
        """Return a topic that was created: it takes a while to reach every broker."""
        while (found := self.describe(topic)) is None:
            self._back_off()
        return found

    def create(self, topic: str, replication_factor: int, config: Mapping[str, str]) -> bool:
        """Create a topic of one partition; return False if it was created by somebody else meanwhile."""
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
            found: Mapping[str, Any] = self._ask(
                lambda client, seconds: client.describe_configs([resource], request_timeout=seconds)[resource]
            )
        except KafkaException as error:
            raise kafka_error(error, self._name) from error
        return {name: entry.value for name, entry in found.items()}

    def _back_off(self) -> None:
        """Sleep before the next attempt.

        Raises:
            LogError: the deadline has passed.

        """
        if time.monotonic() > self._deadline:
            raise self._errors.latest or LogError(f"{self._name}: no response within {self._timeout:g} s")
        time.sleep(_RETRY_SECONDS)

    def _ask(self, question: Callable[[AdminClient, float], "Future[_T]"]) -> _T:
        """Repeat a request until a broker responds; a refusal is raised as KafkaException."""
        while True:
            client = self._client = self._client or new_admin(self._name, self._properties, self._errors)
            try:
                found = question(client, self._attempt_seconds).result(2 * self._attempt_seconds)
            except TimeoutError:
                pass
            except KafkaException as error:
                cause = error_in(error)
                if cause is None or cause.code() not in _NO_RESPONSE:
                    raise
            else:
                self._attempt_seconds = _FIRST_ATTEMPT_SECONDS
                return found
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
    found = error_in(error)
    return None if found is None else found.code()
