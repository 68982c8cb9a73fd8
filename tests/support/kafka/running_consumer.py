"""A consumer at work on a real Kafka, round after round, which counts what it read and what it was refused."""

import threading
import time
from collections.abc import Callable
from typing import Self

from attrs import define, field
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.support.kafka.topics import client_properties
from tests.support.nodes.server_properties import password
from tests.support.processes.waiting import SECONDS

_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
_EAGER = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "heartbeat.interval.ms": "100",
    "topic.metadata.refresh.interval.ms": "100",
    "log_level": "0",
}
"""It asks for what it needs often: metadata (DESCRIBE) and heartbeats (READ of the group) besides fetches."""


def add_user(bootstrap: str, user: str) -> None:
    """Let a user log in by SCRAM-SHA-256, with `password(user)`, and wait until it is so."""
    admin = AdminClient(client_properties(bootstrap))
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion(user, how, password(user).encode())
    for each in admin.alter_user_scram_credentials([upsertion]).values():
        each.result(SECONDS)


@define(eq=False)
class RunningConsumer:
    """Works in a thread while it is open: `admin` writes a record, the user's consumer reads it and commits.

    Each round needs READ of the topic and READ of the group; `refusals` are what the user was told instead.
    """

    bootstrap: str
    user: str
    topic: str
    group: str
    rounds: int = field(default=0, init=False)
    refusals: list[str] = field(factory=list, init=False)
    troubles: list[str] = field(factory=list, init=False)
    """What else it met and went on from, such as a topic that its broker does not know yet."""
    _closing: threading.Event = field(factory=threading.Event, init=False)
    _failure: Exception | None = field(default=None, init=False)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="running-consumer", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def wait_for_rounds(self, more: int) -> None:
        """Wait until it has gone through so many more rounds; what went wrong in the thread is raised here."""
        self._wait(lambda target=self.rounds + more: self.rounds >= target, f"{more} more rounds")

    def wait_for_refusal(self) -> None:
        """Wait until it has been refused; it may not be told again and again."""
        self._wait(lambda: bool(self.refusals), "a refusal")

    def _wait(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not reached():
            if self._failure is not None:
                raise self._failure
            assert time.monotonic() < deadline, (what, self.rounds, self.refusals[-3:], self.troubles[-3:])
            time.sleep(0.002)

    def _run(self) -> None:
        login = client_properties(self.bootstrap, self.user) | {"sasl.mechanism": "SCRAM-SHA-256"}
        consumer = Consumer(login | _EAGER | {"group.id": self.group})
        producer = Producer(client_properties(self.bootstrap) | {"linger.ms": "0", "log_level": "0"})
        try:
            consumer.subscribe([self.topic])
            while not self._closing.is_set():
                self._round(consumer, producer)
        except Exception as error:  # noqa: BLE001 - raised by whoever waits
            self._failure = error
        finally:
            consumer.close()
            producer.flush(SECONDS)

    def _round(self, consumer: Consumer, producer: Producer) -> None:
        """One round; the next one begins if nothing was read in a second."""
        producer.produce(self.topic, b"x")
        producer.poll(0)
        message = consumer.poll(1.0)
        error = None if message is None else message.error()
        if message is not None and error is None:
            try:
                consumer.commit(message, asynchronous=False)
            except KafkaException as refused:
                error = refused.args[0]
            else:
                self.rounds += 1
        if error is not None:
            (self.refusals if error.code() in _REFUSALS else self.troubles).append(str(error))
