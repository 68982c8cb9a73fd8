"""The one writer's transactions: each holds whole batches, and is committed, or the writer is dead."""

import time
from collections.abc import Iterable
from contextlib import suppress

from attrs import define, field
from confluent_kafka import KafkaError, Message, Producer

from aclog.metalog.batches import read_header
from aclog.metalog.errors import FencedError, LogError
from aclog.metalog.topic_message import BatchMessage, encode_headers, read_batch
from aclog.metalog.topiclog.clients import ClientErrors
from aclog.metalog.topiclog.kafka_errors import RAISED, kafka_error, retriable
from aclog.metalog.topiclog.settings import TopicSettings

MAX_MESSAGE_BYTES = 9 << 20
"""max.message.bytes of the topic: a record may have all of a batch's 8 MiB, and headers beside them."""

COMMIT_SECONDS = 60.0
"""How long a transaction may take, brokers that go and come back included; after that, what became of it is open."""

SLICE_SECONDS = 0.5
"""How often a writer that waits for brokers sees whether it is abandoned."""

_ABORT_SECONDS = 10.0

PRODUCER_DEFAULTS = {
    "linger.ms": "0",
    "transaction.timeout.ms": str(int(COMMIT_SECONDS * 1000)),
    "message.max.bytes": str(MAX_MESSAGE_BYTES - (64 << 10)),
}
PRODUCER_FIXED = {"delivery.report.only.error": True}


@define(eq=False)
class DeliveryReports:
    """What became of messages: only those that could not be delivered are told."""

    failed: KafkaError | None = field(default=None, init=False)
    """The first one's."""

    def note(self, error: KafkaError | None, _: Message) -> None:
        """Take it in (on_delivery)."""
        self.failed = self.failed or error


@define(eq=False)
class Transactions:
    """A producer with the log's transactional id. For one thread, but for `abandon`. Made by `begin_transactions`."""

    settings: TopicSettings
    _producer: Producer = field(repr=False)
    _errors: ClientErrors = field(repr=False)
    _reports: DeliveryReports = field(repr=False)
    _abandoned: bool = field(default=False, init=False)

    def commit(self, batches: Iterable[bytes], seconds: float = COMMIT_SECONDS) -> None:
        """Write these batches in one transaction, and commit it, within so many seconds.

        Raises:
            FencedError: another writer has taken over. The transaction is aborted, unless its commit was decided before
                that, and only the answer came too late.
            LogError: it failed, or it is not known what became of it. Nothing may be written after it.

        """
        deadline = time.monotonic() + seconds
        try:
            self._producer.begin_transaction()
            for batch in batches:
                for message in read_batch(batch, 0, read_header(batch)).messages():
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
                self._producer.commit_transaction(SLICE_SECONDS)
            except RAISED as error:
                if not retriable(error):
                    raise
                self._check_waiting(deadline)
            else:
                return

    def _check_waiting(self, deadline: float) -> None:
        """Return if there is still reason to wait."""
        name = self.settings.name
        if self._abandoned:
            raise LogError(f"{name}: abandoned")
        if self._reports.failed is not None:
            raise self._or_fenced(kafka_error(self._reports.failed, name))
        if time.monotonic() > deadline:
            latest = "" if self._errors.latest is None else f"; the latest trouble was: {self._errors.latest}"
            raise LogError(f"{name}: no broker took a transaction to its end in time{latest}")

    def _or_fenced(self, error: LogError) -> LogError:
        """The error; or that the writer is fenced, where that is why a message could not be delivered."""
        fatal = None if isinstance(error, FencedError) else self._fatal_fencing()
        return error if fatal is None else fatal

    def _fatal_fencing(self) -> LogError | None:
        """Why the producer can do nothing any more, if it cannot."""
        try:
            self._producer.begin_transaction()
        except RAISED as error:
            found = kafka_error(error, self.settings.name)
            return found if isinstance(found, FencedError) else None
        return None

    def abort(self) -> None:
        """Take back what is written of a transaction, as far as that can be: else readers wait until it times out."""
        with suppress(*RAISED):
            self._producer.purge()
            self._producer.abort_transaction(_ABORT_SECONDS)

    def abandon(self) -> None:
        """Have a thread that is inside of `commit` give up soon."""
        self._abandoned = True

    def close(self) -> None:
        """Let go of the connections; an open transaction is left to the next writer, who aborts it."""
        with suppress(*RAISED):
            self._producer.purge()
        serve_callbacks(self._producer)


def serve_callbacks(producer: Producer) -> None:
    """Have the client tell what it has to say by the way; a fatal error is raised by the next call, too."""
    with suppress(*RAISED):
        producer.poll(0)
