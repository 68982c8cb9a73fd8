"""Who should write a topic log: whoever the topic's consumer group assigns its one partition to."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from attrs import define, field
from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from aclog.metalog.errors import MetadataError
from aclog.metalog.topiclog.clients import ClientErrors, new_consumer
from aclog.metalog.topiclog.kafka_errors import RAISED, kafka_error
from aclog.metalog.topiclog.settings import TopicSettings

_log = logging.getLogger(__name__)

_WAKE_SECONDS = 0.1
"""How often a candidate sees whether it is closed."""
_RETRY_SECONDS = 1.0
"""How long to rest before standing again after an error."""
_HEARTBEATS_PER_TIMEOUT = 12
"""To a session timeout: with 6 s, candidates hear of a change within half a second."""


@define(eq=False)
class Election:
    """A candidate; it stands from its making until `close`, in a thread of its own.

    `on_elected` and `on_deposed` are called in turn, the former first, in that thread. They must return soon: while
    they run no heartbeat's answer is seen. The assignment is advice: that there is one writer only is the work of the
    fence, so whoever is elected opens the log (`open_topic_log`), and whoever is deposed abandons it.

    A newcomer deposes nobody (cooperative-sticky assignment). Whoever cannot reach the group for the session timeout is
    deposed, at its own clock and at the group's.

    Raises:
        ConfigError: properties that the client refuses.

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
        """Whether this candidate is elected now."""
        return self._elected

    @property
    def error(self) -> MetadataError | None:
        """Why this candidate cannot stand at the moment, as far as it was told; None while it is elected."""
        return None if self._elected else self._error or self._errors.latest

    def close(self) -> None:
        """Stand no more: `on_deposed` first, if elected, then leave the group, so that another takes over at once.

        A second close is nothing. Not to be called by the callbacks.
        """
        self._closed.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _new_consumer(self) -> Consumer:
        timeout = self.settings.session_timeout_ms
        properties = {
            **self.settings.properties,
            "group.id": self.settings.group_id,
            "group.protocol": "classic",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": timeout,
            "max.poll.interval.ms": max(timeout, 300_000),
            "heartbeat.interval.ms": max(timeout // _HEARTBEATS_PER_TIMEOUT, 1),
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "latest",
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
        """Be a member of the group until closed; ends with an error too."""
        consumer.subscribe(
            [self.settings.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        while not self._closed.is_set():
            message = consumer.poll(_WAKE_SECONDS)
            error = None if message is None else message.error()
            if error is not None:
                raise KafkaException(error)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Elected, where the partition is among them; nothing is fetched from it."""
        consumer.incremental_assign([TopicPartition(each.topic, each.partition, OFFSET_END) for each in partitions])
        consumer.pause(partitions)
        if _has_log_partition(partitions) and not self._elected and not self._closed.is_set():
            self._elected, self._error = True, None
            self._errors.forget()
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
        """A callback's mistake must not end the candidate's thread."""
        try:
            callback()
        except Exception:  # noqa: BLE001 - whatever it was
            _log.exception("%s: a callback of the election failed", self.settings.name)


def _has_log_partition(partitions: list[TopicPartition]) -> bool:
    """Whether the log's partition is among them: somebody may have added others to the topic."""
    return any(each.partition == 0 for each in partitions)


def _leave(consumer: Consumer) -> None:
    try:
        consumer.close()
    except (*RAISED, RuntimeError) as error:
        _log.warning("%s", error)
