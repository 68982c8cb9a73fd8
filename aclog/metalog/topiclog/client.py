"""Kafka clients of a topic log: construction, errors and transactions."""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeVar

from attrs import field
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from aclog.metalog.errors import ConfigError, FencedError, LogError
from aclog.metalog.machine import clock
from aclog.metalog.topic_message import BatchMessage, MessageBatch, encode_headers
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.values import define

# confluent-kafka's errors, classified and translated to aclog's.


class RefusedError(LogError):
    """A broker refuses this client or is not trusted: a password, a certificate or an ACL has to change first."""


_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""The broker knows a newer producer of this transactional id, or (the last one) has expired the id."""

_REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

_KINDS = MappingProxyType(dict.fromkeys(_FENCED, FencedError) | dict.fromkeys(_REFUSED, RefusedError))

RAISED = (KafkaException, SystemError)
"""The errors of a client call: a fatal error arrives as SystemError if a Python callback ran during the call."""


def kafka_error(error: KafkaError | BaseException, where: str) -> LogError:
    """Translate an error that a client reports or raises; `where` names the log. Contains no property values."""
    kafka = error if isinstance(error, KafkaError) else error_in(error)
    if kafka is None:
        return LogError(f"{where}: {type(error).__name__}: {error}")
    return _KINDS.get(kafka.code(), LogError)(f"{where}: {kafka.name()}: {kafka.str()}")


def error_in(raised: BaseException) -> KafkaError | None:
    """Return the KafkaError inside an exception, or inside one of its causes."""
    cause: BaseException | None = raised
    while cause is not None:
        if isinstance(cause, KafkaException) and cause.args and isinstance(cause.args[0], KafkaError):
            return cause.args[0]
        cause = cause.__cause__ or cause.__context__
    return None


def retriable(raised: BaseException) -> bool:
    """Whether the same call may be repeated and may then succeed."""
    kafka = error_in(raised)
    # librdkafka does not mark its own timeouts as retriable; callers' deadlines bound the retries.
    return kafka is not None and (kafka.retriable() or kafka.code() == KafkaError._TIMED_OUT) and not kafka.fatal()


# Construction of confluent-kafka clients: common properties, logging, and errors reported by callback.


_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # without it, Python prints warnings on stderr by default

_T = TypeVar("_T")

_DEFAULTS = {"log_level": 2}
"""Only critical lines: librdkafka logs each connection attempt, and error_cb reports the same errors once."""


@define(eq=False)
class ClientErrors:
    """The latest error that a client reported by callback: a failed connection, a refused login."""

    where: str
    ignored: frozenset[int] = frozenset()
    """The codes of errors that do not matter to this client."""
    latest: LogError | None = field(default=None, init=False)

    @property
    def refused(self) -> bool:
        """Whether the error lasts until the configuration or the cluster is changed."""
        return isinstance(self.latest, RefusedError)

    def note(self, error: KafkaError) -> None:
        """Record an error (error_cb)."""
        if error.code() in self.ignored:
            return
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self.latest is not None:
            return  # follows the errors of the individual brokers, which have the reason
        before, self.latest = self.latest, kafka_error(error, self.where)
        if str(before) != str(self.latest):
            _log.warning("%s", self.latest)

    def clear(self) -> None:
        """Forget the error, after a success."""
        self.latest = None


def new_consumer(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> Consumer:
    """Create a consumer; it connects in the background.

    Raises:
        ConfigError: the client rejects the properties.

    """
    return _create(Consumer, where, properties, errors)


def new_producer(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> Producer:
    """Create a producer; raises as new_consumer."""
    return _create(Producer, where, properties, errors)


def new_admin(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> AdminClient:
    """Create an admin client; raises as new_consumer. Keep it until its futures are done."""
    return _create(AdminClient, where, properties, errors)


def _create(kind: Callable[..., _T], where: str, properties: Mapping[str, Any], errors: ClientErrors) -> _T:
    try:
        return kind({**_DEFAULTS, **properties, "error_cb": errors.note}, logger=_log)
    except KafkaException as error:
        raise ConfigError(f"{where}: {error.args[0].str()}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None


# Transactions of the topic log's writer: each holds whole batches, and is committed or the writer is dead.


MAX_MESSAGE_BYTES = 9 << 20
"""max.message.bytes of the topic: a record may fill a batch of 8 MiB, plus its headers."""

COMMIT_SECONDS = 60.0
"""How long a transaction may take, broker failures included; after that, its outcome is unknown."""

SLICE_SECONDS = 0.5
"""Blocking calls are cut into slices of this length, to notice errors and `abandon` in between."""

_ABORT_SECONDS = 10.0

PRODUCER_DEFAULTS = {
    "linger.ms": "0",
    "transaction.timeout.ms": str(int(COMMIT_SECONDS * 1000)),
    # Below the topic's limit, by more than Kafka's framing of a message.
    "message.max.bytes": str(MAX_MESSAGE_BYTES - (64 << 10)),
}
PRODUCER_FIXED = {
    "delivery.report.only.error": True,  # a callback into Python for each message is slow
    # Otherwise a Kafka with auto.create.topics.enable would make a deleted topic anew, with settings of its own.
    "allow.auto.create.topics": "false",
}


@define(eq=False)
class DeliveryReports:
    """The first failed delivery of a producer (on_delivery)."""

    failed: KafkaError | None = field(default=None, init=False)

    def note(self, error: KafkaError | None, _: Message) -> None:
        """Record a failed delivery (on_delivery)."""
        self.failed = self.failed or error


@define(eq=False)
class Transactions:
    """A producer with the log's transactional id. Only `abandon` is thread-safe. Made by `fence_previous_writer`."""

    settings: TopicSettings
    _producer: Producer = field(repr=False)
    _errors: ClientErrors = field(repr=False)
    _reports: DeliveryReports = field(repr=False)
    _abandoned: bool = field(default=False, init=False)

    def commit(self, batches: Iterable[MessageBatch], seconds: float = COMMIT_SECONDS) -> None:
        """Write these batches in one transaction, and commit it, within `seconds`.

        Raises:
            FencedError: another writer has taken over. The transaction is aborted, unless its commit was decided first
                and only the response came too late.
            LogError: the transaction failed, or its outcome is unknown. Nothing may be written after it.

        """
        deadline = clock.monotonic() + seconds
        try:
            self._producer.begin_transaction()
            for batch in batches:
                for message in batch.messages():
                    self._produce(message, deadline)
            self._flush(deadline)
            self._end(deadline)
        except RAISED as error:
            raise self._or_fenced(kafka_error(error, self.settings.name)) from error

    def _produce(self, message: BatchMessage, deadline: float) -> None:
        while True:
            try:
                self._producer.produce(
                    self.settings.topic,
                    value=message.value,
                    partition=0,
                    timestamp=message.timestamp,
                    headers=list[tuple[str, str | bytes | None]](encode_headers(message.place)),
                )
            except BufferError:
                # The client's queue is full: let it send.
                self._check_waiting(deadline)
                self._producer.poll(SLICE_SECONDS)
            else:
                return

    def _flush(self, deadline: float) -> None:
        while self._producer.flush(SLICE_SECONDS):
            self._check_waiting(deadline)
        self._check_waiting(deadline)

    def _end(self, deadline: float) -> None:
        while True:
            try:
                # Safe to repeat: librdkafka continues the commit that timed out, it does not start another.
                self._producer.commit_transaction(SLICE_SECONDS)
            except RAISED as error:
                if not retriable(error):
                    raise
                self._check_waiting(deadline)
            else:
                return

    def _check_waiting(self, deadline: float) -> None:
        """Return if there is still a reason to wait."""
        name = self.settings.name
        if self._abandoned:
            raise LogError(f"{name}: abandoned")
        if self._reports.failed is not None:
            raise self._or_fenced(kafka_error(self._reports.failed, name))
        if clock.monotonic() > deadline:
            latest = "" if self._errors.latest is None else f"; last error: {self._errors.latest}"
            raise LogError(f"{name}: the transaction did not complete in time{latest}")

    def _or_fenced(self, error: LogError) -> LogError:
        """Return the error, or a FencedError if the producer was fenced.

        A message of a fenced producer fails with another error; only the producer's fatal error names the fencing.
        """
        fatal = None if isinstance(error, FencedError) else self._fatal_fencing()
        return error if fatal is None else fatal

    def _fatal_fencing(self) -> LogError | None:
        """Return the producer's fatal error if it was fenced."""
        try:
            self._producer.begin_transaction()
        except RAISED as error:
            fencing = kafka_error(error, self.settings.name)
            return fencing if isinstance(fencing, FencedError) else None
        return None

    def abort(self) -> None:
        """Abort the open transaction if possible: otherwise readers wait until the broker times it out."""
        with suppress(*RAISED):
            self._producer.purge()
            self._producer.abort_transaction(_ABORT_SECONDS)

    def abandon(self) -> None:
        """Make a thread inside `commit` give up soon."""
        self._abandoned = True

    def close(self) -> None:
        """Close the connections; an open transaction is left for the next writer's fencing to abort."""
        with suppress(*RAISED):
            self._producer.purge()
        serve_callbacks(self._producer)


def serve_callbacks(producer: Producer) -> None:
    """Run the client's pending callbacks (error_cb); a fatal error is ignored, the next call raises it again."""
    with suppress(*RAISED):
        producer.poll(0)
