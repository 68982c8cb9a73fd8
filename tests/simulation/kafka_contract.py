"""What the modelled Kafka and a real one must do alike: scripts against confluent_kafka's clients.

Each script returns what it has observed. `python -m tests.simulation.kafka_contract` prints those of the model as JSON.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from attrs import define
from confluent_kafka import KafkaError, KafkaException, TopicPartition

SECONDS = 30.0
_FIXED = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "group.id": "contract",
    "fetch.wait.max.ms": 10,
}
Script = Callable[["Clients"], Any]
SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    """Add a script."""
    SCRIPTS[function.__name__] = function
    return function


@define
class Clients:
    """Makes clients of a fresh topic."""

    producer: Callable[[Mapping[str, Any]], Any]
    consumer: Callable[[Mapping[str, Any]], Any]
    topic: str
    sleep: Callable[[float], None] = time.sleep
    delete_before: Callable[[int], None] = lambda _: None

    def writer(self, name: str = "writer") -> Any:
        """Return a producer whose transactions are initialized; a second one of a name fences the first."""
        producer = self.producer({"transactional.id": f"{self.topic}-{name}", "linger.ms": "0"})
        producer.init_transactions(SECONDS)
        return producer

    def put(self, producer: Any, *values: bytes) -> int:
        """Produce in the open transaction; return how many were not delivered."""
        for value in values:
            producer.produce(self.topic, value=value, partition=0, timestamp=1, headers=[("h", value)])
        return int(producer.flush(SECONDS))

    def read(self, isolation: str = "read_committed", start: int = 0) -> list[Any]:
        """Return the messages from an offset to the end, as (offset, value), and the offset of the end."""
        consumer = self.consumer({**_FIXED, "isolation.level": isolation})
        try:
            consumer.assign([TopicPartition(self.topic, 0, start)])
            seen: list[Any] = []
            while True:
                message = consumer.poll(SECONDS)
                failure = message.error()
                if failure is not None:
                    return [
                        *seen,
                        [message.offset() if failure.code() == KafkaError._PARTITION_EOF else 0, failure.code()],
                    ]
                seen.append([message.offset(), message.value().decode()])
        finally:
            consumer.close()

    def bounds(self, isolation: str = "read_committed") -> list[int]:
        """Return the log start offset and the end."""
        consumer = self.consumer({**_FIXED, "isolation.level": isolation})
        try:
            return list(consumer.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=SECONDS))
        finally:
            consumer.close()

    def stable(self) -> list[int]:
        """Return the bounds once no transaction is open: markers follow a decision a little later."""
        deadline = SECONDS
        while (bounds := self.bounds()) != self.bounds("read_uncommitted") and deadline > 0:
            self.sleep(0.05)
            deadline -= 0.05
        return bounds


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the name of the error that a call raises, and whether it is fatal; None if it raises none."""
    try:
        call(*arguments)
    except KafkaException as raised:
        return [raised.args[0].name(), raised.args[0].fatal()]
    return None


@script
def an_open_transaction_is_invisible(clients: Clients) -> Any:
    """The last stable offset stops at an open transaction, also for what is committed behind it."""
    one, two = clients.writer("one"), clients.writer("two")
    one.begin_transaction()
    two.begin_transaction()
    seen = [clients.put(one, b"a", b"b"), clients.put(two, b"c")]
    two.commit_transaction(SECONDS)
    clients.sleep(0.5)
    seen += [clients.bounds(), clients.read(), clients.bounds("read_uncommitted"), clients.read("read_uncommitted")]
    one.commit_transaction(SECONDS)
    return [*seen, clients.stable(), clients.read(), clients.read(start=1), clients.read(start=5)]


@script
def aborted_records_are_skipped(clients: Clients) -> Any:
    """Markers and aborted records take offsets, and are not returned."""
    producer = clients.writer()
    for value, commit in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        clients.put(producer, value)
        (producer.commit_transaction if commit else producer.abort_transaction)(SECONDS)
    return [clients.stable(), clients.read(), clients.read("read_uncommitted"), clients.read(start=2)]


@script
def initializing_fences_and_aborts(clients: Clients) -> Any:
    """The open transaction of the previous producer is aborted, and the producer can do nothing more."""
    old = clients.writer()
    old.begin_transaction()
    seen = [clients.put(old, b"old")]
    new = clients.writer()
    seen.append(outcome(old.commit_transaction, SECONDS))
    seen.append(outcome(old.begin_transaction))
    new.begin_transaction()
    seen.append(clients.put(new, b"new"))
    new.commit_transaction(SECONDS)
    return [*seen, clients.stable(), clients.read()]


@script
def a_fenced_producer_cannot_write(clients: Clients) -> Any:
    """One that was fenced between two transactions notices it at its first message."""
    old = clients.writer()
    old.begin_transaction()
    clients.put(old, b"first")
    old.commit_transaction(SECONDS)
    new = clients.writer()
    old.begin_transaction()
    with suppress(KafkaException, SystemError):  # it depends on the moment which of its calls notices it first
        clients.put(old, b"late")
    seen = [outcome(old.commit_transaction, SECONDS), outcome(old.begin_transaction)]
    new.begin_transaction()
    clients.put(new, b"new")
    new.commit_transaction(SECONDS)
    return [*seen, clients.stable(), clients.read()]


@script
def an_empty_transaction_writes_nothing(clients: Clients) -> Any:
    """It has no marker."""
    producer = clients.writer()
    producer.begin_transaction()
    producer.commit_transaction(SECONDS)
    producer.begin_transaction()
    clients.put(producer, b"a")
    producer.commit_transaction(SECONDS)
    return [clients.stable(), clients.read()]


@script
def removed_messages_are_an_error(clients: Clients) -> Any:
    """Below the log start offset, a reader gets an error, and no message."""
    producer = clients.writer()
    for value in (b"a", b"b"):
        producer.begin_transaction()
        clients.put(producer, value)
        producer.commit_transaction(SECONDS)
    clients.stable()
    clients.delete_before(2)
    return [clients.bounds(), clients.read(), clients.read(start=2), clients.read(start=9)]


@script
def wrong_states_are_refused(clients: Clients) -> Any:
    """No transaction can be begun twice, or ended without one."""
    producer = clients.writer()
    seen = [outcome(producer.commit_transaction, 1)]
    producer.begin_transaction()
    return [*seen, outcome(producer.begin_transaction)]


def of_model(name: str) -> Any:
    """Run a script on the model."""
    from tests.simulation import kafka_clients
    from tests.simulation.kafka_clients import SimulatedKafka
    from tests.simulation.network import Network
    from tests.simulation.processes import Host, simulated_machine
    from tests.simulation.scheduler import Scheduler

    scheduler = Scheduler(len(name))
    observed: list[Any] = []
    with simulated_machine(scheduler):
        network = Network(scheduler)
        kafka = SimulatedKafka(scheduler, network)
        kafka.model.create_topic(lambda _: None, {})
        for kind in (kafka_clients.Producer, kafka_clients.Consumer):
            kind.kafka = kafka
        clients = Clients(
            kafka_clients.Producer, kafka_clients.Consumer, "t", scheduler.sleep, kafka.model.delete_records
        )

        async def run(_process: Any) -> None:
            observed.append(SCRIPTS[name](clients))

        host = Host(scheduler, network, "k", 1)
        process = host.start(run)
        scheduler.run(1_000.0, done=lambda: process.ended)
        if process.error is not None:
            raise process.error
        process.kill()
    return observed[0]


if __name__ == "__main__":
    print(json.dumps({name: of_model(name) for name in SCRIPTS}))
