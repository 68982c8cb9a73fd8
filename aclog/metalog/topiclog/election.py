"""Election of the controller that should write a topic log, by the partition assignment of a consumer group."""

import logging
import threading
from collections.abc import Callable

from attrs import define, field
from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import MetadataError
from aclog.metalog.topiclog.clients import ClientErrors, new_consumer
from aclog.metalog.topiclog.kafka_errors import RAISED, kafka_error
from aclog.metalog.topiclog.settings import TopicSettings

_log = logging.getLogger(__name__)

_WAKE_SECONDS = 0.1
"""How often a candidate checks whether it is closed."""
_RETRY_SECONDS = 1.0
"""The backoff before joining the group again after an error."""
_HEARTBEATS_PER_SESSION = 12
"""Per session timeout: with 6 s, candidates learn of a rebalance within half a second."""


@define(eq=False)
class Election(Closeable):
    """A candidate, from its construction until `close`, in a thread of its own.

    `on_elected` and `on_deposed` are called alternately in that thread, starting with the former. They must return
    soon: until then the group is not polled. The assignment is only advice. That there is one writer is ensured by
    fencing: the elected candidate opens the log (`open_topic_log`), a deposed one abandons it.

    A new candidate deposes nobody (cooperative-sticky assignment). A candidate that cannot reach the group for the
    session timeout is deposed, by its own clock and by the group coordinator's.

    Raises:
        ConfigError: the client rejects the properties.

    """

    settings: TopicSettings
    on_elected: Callable[[], None]
    on_deposed: Callable[[], None]
    _errors: ClientErrors = field(init=False)
    _elected: bool = field(default=False, init=False)
    _error: MetadataError | None = field(default=None, init=False)
    _closed: threading.Event = field(factory=threading.Event, init=False)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._errors = ClientErrors(self.settings.name)
        consumer = self._new_consumer()
        self._thread = threading.Thread(
            target=self._run, args=(consumer,), name=f"candidate for {self.settings.name}", daemon=True
        )
        self._thread.start()

    @property
    def elected(self) -> bool:
        """Whether this candidate is elected."""
        return self._elected

    @property
    def error(self) -> MetadataError | None:
        """Why this candidate cannot be elected at the moment, if known; None while it is elected."""
        return None if self._elected else self._error or self._errors.latest

    def close(self) -> None:
        """Leave the group, after `on_deposed` if elected, so that another candidate takes over at once.

        May be called again, but not by the callbacks.
        """
        self._closed.set()
        self._thread.join()

    def _new_consumer(self) -> Consumer:
        timeout = self.settings.session_timeout_ms
        properties = {
            **self.settings.properties,
            "group.id": self.settings.group_id,
            # The new protocol (KIP-848) has server-side assignors only, and no client-side session timeout.
            "group.protocol": "classic",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": timeout,
            # librdkafka requires max.poll.interval.ms >= session.timeout.ms.
            "max.poll.interval.ms": max(timeout, 300_000),
            "heartbeat.interval.ms": max(timeout // _HEARTBEATS_PER_SESSION, 1),
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "latest",
            "allow.auto.create.topics": "false",
        }
        return new_consumer(self.settings.name, properties, self._errors)

    def _run(self, consumer: Consumer | None) -> None:
        while not self._closed.is_set():
            try:
                consumer = consumer or self._new_consumer()
                self._follow_group(consumer)
            except (*RAISED, MetadataError) as error:
                self._error = error if isinstance(error, MetadataError) else kafka_error(error, self.settings.name)
                _log.warning("%s", self._error)
            finally:
                self._depose()
                if consumer is not None:
                    _leave(consumer)
                consumer = None
            self._closed.wait(_RETRY_SECONDS)

    def _follow_group(self, consumer: Consumer) -> None:
        """Be a member of the group until closed, or until an error."""
        consumer.subscribe(
            [self.settings.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        while not self._closed.is_set():
            message = consumer.poll(_WAKE_SECONDS)
            error = None if message is None else message.error()
            if error is not None:
                raise KafkaException(error)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Become elected if the log's partition is assigned. The assignment is paused: nothing is fetched."""
        # The assignment must be taken over for the group to settle; its position is irrelevant.
        consumer.incremental_assign([TopicPartition(each.topic, each.partition, OFFSET_END) for each in partitions])
        consumer.pause(partitions)
        if _has_log_partition(partitions) and not self._elected and not self._closed.is_set():
            self._elected, self._error = True, None
            self._errors.clear()
            self._call(self.on_elected)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if _has_log_partition(partitions):
            self._depose()
        consumer.incremental_unassign(partitions)

    def _depose(self) -> None:
        if self._elected:
            self._elected = False
            self._call(self.on_deposed)

    def _call(self, callback: Callable[[], None]) -> None:
        """Call a callback; its errors must not end the candidate's thread."""
        try:
            callback()
        except Exception:  # noqa: BLE001 - any error
            _log.exception("%s: a callback of the election failed", self.settings.name)


def _has_log_partition(partitions: list[TopicPartition]) -> bool:
    """Whether the log's partition is assigned: somebody may have added partitions to the topic."""
    return any(each.partition == 0 for each in partitions)


def _leave(consumer: Consumer) -> None:
    try:
        consumer.close()
    except (*RAISED, RuntimeError) as error:
        _log.warning("%s", error)
