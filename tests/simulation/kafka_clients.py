"""confluent_kafka's clients on the modelled Kafka, as far as `aclog/metalog/topiclog` uses them.

What librdkafka does in its own threads happens here in events of the scheduler, unless the process is paused or dead.
"""

from collections import deque
from collections.abc import Callable
from math import inf
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.simulation.kafka_model import (
    BROKERS,
    GROUP_COORDINATOR,
    KAFKA_CLUSTER_ID,
    PARTITION_LEADER,
    TOPIC_ID,
    TRANSACTION_COORDINATOR,
    Kafka,
    Respond,
)
from tests.simulation.network import Network
from tests.simulation.scheduler import Fiber, Scheduler

_RETRY_SECONDS = 0.1
"""retry.backoff.ms"""
_CUT_SECONDS = 0.25
"""How soon TCP sends again what a partition has stopped."""
heartbeats_per_session = inf
"""The most heartbeats of a member of a group in its session timeout."""
_QUIET_SECONDS = 5.0
"""How long a fetch may wait at the reported end of the partition; whatever is appended ends it."""
_GIVEN_UP_SECONDS = 0.5
"""How soon a producer is destroyed whose application has given up."""
_MOST_ENTRIES = 40
"""The most entries in a response to Fetch; some have as few as one, as if records were large."""
_FENCED = frozenset({KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_DISCONNECTED = KafkaError._TRANSPORT


def error(code: int, *, retriable: bool = False, fatal: bool = False) -> KafkaException:
    """Return the exception that confluent_kafka raises for a code."""
    return KafkaException(KafkaError(code, None, fatal, retriable))


class Request:
    """A request on its way to a broker and back. A connection that breaks loses the request, or only its response."""

    def __init__(
        self, kafka: "SimulatedKafka", process: Any, broker: str, call: Callable[[Respond], None], reply: Respond
    ) -> None:
        self._kafka, self._process, self._broker, self._call, self._reply = kafka, process, broker, call, reply
        self._scheduler: Scheduler = kafka.scheduler
        self._never_arrives = self._ended = False
        kafka.in_flight[self] = None
        self._travel(self._arrive)
        kafka.on_request(self)

    def _travel(self, then: Callable[[], None]) -> None:
        random = self._scheduler.random
        delay = 0.001 * random.uniform(0.2, 1.2) * (20 if random.random() < 0.01 else 1)
        self._scheduler.after(delay, then)

    def _arrive(self) -> None:
        if self._never_arrives:
            return
        if (self._process.address, self._broker) in self._kafka.network.cut or not self._process.is_reachable:
            if self._process.is_reachable:  # else the host has lost its power, and nothing is sent again
                self._scheduler.after(_CUT_SECONDS, self._arrive)
            return
        self._call(self._respond)

    def _respond(self, response: Any) -> None:
        self._travel(lambda: self._return(response))

    def _return(self, response: Any) -> None:
        if (self._broker, self._process.address) in self._kafka.network.cut:
            self._scheduler.after(_CUT_SECONDS, self._return, response)
        else:
            self._end(response)

    def _end(self, response: Any) -> None:
        process = self._process
        if self._ended or process.dead or process.dying:
            self._kafka.in_flight.pop(self, None)
        elif process.paused_until > self._scheduler.now:
            self._scheduler.at(process.paused_until, self._end, response)
        else:
            self._ended = True
            self._kafka.in_flight.pop(self, None)
            self._reply(response)

    def break_connection(self) -> None:
        """Lose the request, or what is on its way back; the client notices."""
        self._never_arrives = self._scheduler.random.random() < 0.5
        self._travel(lambda: self._end(_DISCONNECTED))

    def is_of(self, address: str, broker: str | None = None) -> bool:
        """Whether a host has sent it, to that broker if one is given."""
        return bool(self._process.address == address) and broker in (None, self._broker)


class SimulatedKafka:
    """The modelled Kafka behind the simulated network."""

    def __init__(self, scheduler: Scheduler, network: Network) -> None:
        self.scheduler, self.network = scheduler, network
        self.model = Kafka(scheduler)
        self.in_flight: dict[Request, None] = {}
        self.on_request: Callable[[Request], object] = lambda _: None
        """Called with each request that is sent."""
        self._clients = 0

    def number(self) -> int:
        """Return a number for a new client."""
        self._clients += 1
        return self._clients

    def reset_connections(self, address: str) -> bool:
        """Break the connections of a host on which something is on its way; return whether there are any."""
        chosen = [each for each in self.in_flight if each.is_of(address)]
        for each in chosen:
            each.break_connection()
        return bool(chosen)


class _Client:
    """What all clients have: requests, and threads of the application that wait for something."""

    kafka: SimulatedKafka
    """Set while a world runs."""

    def __init__(self, config: dict[str, Any], **_: Any) -> None:
        self.config = config
        self.scheduler: Scheduler = self.kafka.scheduler
        self.process = self.scheduler.fiber().process
        self.number = self.kafka.number()
        self.closed = False
        self._waiting: list[Fiber] = []

    def send(self, broker: str, call: Callable[[Respond], None], reply: Respond) -> None:
        """Send a request; `reply` gets the response, or the code of an error."""
        Request(self.kafka, self.process, broker, call, reply)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call in one of the client's own threads."""

        def run() -> None:
            if self.process.dead or self.process.dying:
                return
            if self.process.paused_until > self.scheduler.now:
                self.scheduler.at(self.process.paused_until, run)
            else:
                call()

        self.scheduler.after(seconds, run)

    def wake(self) -> None:
        """Let waiting threads look again."""
        waiting, self._waiting = self._waiting, []
        for fiber in waiting:
            self.scheduler.wake(fiber)

    def wait_for(self, done: Callable[[], Any], timeout: float) -> bool:
        """Block until `done`, or for `timeout` seconds; return whether it is."""
        deadline = self.scheduler.now + timeout
        while not done():
            remaining = deadline - self.scheduler.now
            if remaining <= 0:
                return False
            fiber = self.scheduler.fiber()
            self._waiting.append(fiber)
            self.scheduler.block(remaining)
            if fiber in self._waiting:
                self._waiting.remove(fiber)
        return True

    def ask(self, broker: str, call: Callable[[Respond], None], timeout: float) -> Any:
        """Send a request, wait, and return the response. Raises KafkaException."""
        responses: list[Any] = []

        def reply(response: Any) -> None:
            responses.append(response)
            self.wake()

        self.send(broker, call, reply)
        if not self.wait_for(lambda: responses, timeout):
            raise error(KafkaError._TIMED_OUT)
        if isinstance(responses[0], int) and not isinstance(responses[0], bool):
            raise error(responses[0])
        return responses[0]


class Producer(_Client):
    """confluent_kafka.Producer with a transactional.id."""

    def __init__(self, config: dict[str, Any], **options: Any) -> None:
        super().__init__(config, **options)
        self._id: str = config["transactional.id"]
        self._timeout = int(config.get("transaction.timeout.ms", 60_000)) / 1000
        self._report = config.get("on_delivery")
        self._fatal: int | None = None
        self._raised = False
        self._producer: tuple[int, int] | None = None
        self._asked = 0.0
        """When the last call of init_transactions ends. After that, the application has dropped the producer."""
        self._state = "new"
        """new, initializing, ready, open, ending."""
        self._outcome: Any = "none"
        """The response to the request that begins or ends a transaction; "none" before it."""
        self._added = self._is_adding = self._is_sending = False
        self._sequence = 0
        self._queue: deque[tuple[bytes | None, int, Any]] = deque()
        self._undelivered = 0
        self._reports: list[int] = []

    # What the application calls

    def init_transactions(self, timeout: float) -> None:
        """See confluent_kafka."""
        self._asked = self.scheduler.now + timeout
        if self._state == "new":
            self._state, self._outcome = "initializing", "none"
            self._init()
        if not self.wait_for(lambda: self._outcome != "none", timeout):
            raise error(KafkaError._TIMED_OUT, retriable=True)
        self._state = "ready"

    def begin_transaction(self) -> None:
        """See confluent_kafka."""
        self._check_fatal()
        if self._state != "ready":
            raise error(KafkaError._STATE)
        self._state, self._added, self._is_adding, self._outcome = "open", False, False, "none"

    def produce(self, _topic: str, value: bytes | None, partition: int, timestamp: int, headers: Any) -> None:
        """See confluent_kafka."""
        assert partition == 0
        self._check_fatal(KafkaError._FATAL)
        if self._state != "open":
            raise error(KafkaError._STATE)
        self._queue.append((value, timestamp, list(headers)))
        self._undelivered += 1
        self.later(0.0, self._deliver)

    def flush(self, timeout: float) -> int:
        """See confluent_kafka."""
        self.wait_for(lambda: not self._undelivered, timeout)
        self.poll(0)
        return self._undelivered

    def poll(self, _timeout: float) -> int:
        """See confluent_kafka, which also raises a fatal error here, once."""
        reports, self._reports = self._reports, []
        for code in reports:
            if self._report is not None:
                self._report(KafkaError(code), None)
        if self._fatal is not None and not self._raised:
            self._raised = True
            self._check_fatal()
        return len(reports)

    def commit_transaction(self, timeout: float) -> None:
        """See confluent_kafka."""
        self._end(timeout, commit=True)

    def abort_transaction(self, timeout: float) -> None:
        """See confluent_kafka."""
        self._end(timeout, commit=False)

    def purge(self) -> None:
        """See confluent_kafka: what is queued is dropped; what was sent is not. Only called before destruction."""
        self.closed = True
        self._undelivered -= len(self._queue)
        self._queue.clear()

    def _end(self, timeout: float, *, commit: bool) -> None:
        self._check_fatal()
        if self._state == "open":
            if not self.wait_for(lambda: not self._undelivered or self._fatal is not None, timeout):
                raise error(KafkaError._TIMED_OUT, retriable=True)
            self._check_fatal()
            self._state, self._outcome = "ending", "none"
            if self._added:
                self._send_end(commit)
            else:
                self._outcome = None  # an empty transaction is not known to the brokers
        elif self._state != "ending":
            raise error(KafkaError._STATE)
        if not self.wait_for(lambda: self._outcome != "none", timeout):
            raise error(KafkaError._TIMED_OUT, retriable=True)
        if self._outcome is not None:
            self._check_fatal()
            raise error(self._outcome)
        self._state = "ready"

    def _check_fatal(self, code: int | None = None) -> None:
        if self._fatal is not None:
            raise error(code or self._fatal, fatal=True)

    # What librdkafka does

    def _init(self) -> None:
        def reply(response: Any) -> None:
            if isinstance(response, tuple):
                self._producer, self._outcome = response, None
                self.wake()
            elif self.scheduler.now - self._asked < _GIVEN_UP_SECONDS:
                self.later(_RETRY_SECONDS, self._init)

        self.send(
            TRANSACTION_COORDINATOR,
            lambda respond: self.kafka.model.init_producer_id(respond, self._id, self._timeout),
            reply,
        )

    def _fail(self, code: int) -> None:
        """End for good: the producer is fenced, or its requests make no sense to the brokers."""
        self._fatal = KafkaError._FENCED if code in _FENCED else code
        self._reports += [code] * self._undelivered
        self._queue.clear()
        self._undelivered = 0
        self._outcome = code
        self.wake()

    def _deliver(self) -> None:
        """Add the partition to the transaction, then send what is queued, one request after the other."""
        if not self._queue or self._fatal is not None or self._is_sending or self._is_adding:
            return
        producer_id, epoch = self._producer or (0, 0)
        if not self._added:
            self._is_adding = True

            def added(response: Any) -> None:
                self._is_adding = False
                if response in (_DISCONNECTED, KafkaError.CONCURRENT_TRANSACTIONS):
                    self.later(_RETRY_SECONDS, self._deliver)
                elif response is not None:
                    self._fail(response)
                else:
                    self._added = True
                    self._deliver()

            self.send(
                TRANSACTION_COORDINATOR,
                lambda respond: self.kafka.model.add_partition(respond, self._id, producer_id, epoch),
                added,
            )
            return
        count = self.scheduler.random.choice((1, 2, 100))
        batch = [self._queue.popleft() for _ in range(min(count, len(self._queue)))]
        self._is_sending = True
        self._send_batch(batch, producer_id, epoch)

    def _send_batch(self, batch: list[Any], producer_id: int, epoch: int) -> None:
        def reply(response: Any) -> None:
            if response == _DISCONNECTED:
                if self.closed:
                    return
                self.later(_RETRY_SECONDS, lambda: self._send_batch(batch, producer_id, epoch))
                return
            self._is_sending = False
            if response is not None:
                self._fail(response)
                return
            self._sequence += len(batch)
            self._undelivered -= len(batch)
            self.wake()
            self._deliver()

        sequence = self._sequence  # of the request that is sent now, whenever a copy of it arrives
        self.send(
            PARTITION_LEADER,
            lambda respond: self.kafka.model.produce(respond, self._id, producer_id, epoch, sequence, batch),
            reply,
        )

    def _send_end(self, commit: bool) -> None:
        producer_id, epoch = self._producer or (0, 0)

        def reply(response: Any) -> None:
            if response in (_DISCONNECTED, KafkaError.CONCURRENT_TRANSACTIONS):
                if not self.closed:
                    self.later(_RETRY_SECONDS, lambda: self._send_end(commit))
            elif response is not None:
                self._fail(response)
            else:
                self._outcome = None
                self.wake()

        self.send(
            TRANSACTION_COORDINATOR,
            lambda respond: self.kafka.model.end_txn(respond, self._id, producer_id, epoch, commit),
            reply,
        )


class Message:
    """confluent_kafka.Message."""

    def __init__(self, offset: int, value: bytes | None, timestamp: int, headers: Any, failure: int | None) -> None:
        self._offset, self._value, self._timestamp, self._headers = offset, value, timestamp, headers
        self._failure = failure

    def error(self) -> KafkaError | None:
        """See confluent_kafka."""
        return None if self._failure is None else KafkaError(self._failure)

    def offset(self) -> int:
        """See confluent_kafka."""
        return self._offset

    def value(self) -> bytes | None:
        """See confluent_kafka."""
        return self._value

    def timestamp(self) -> tuple[int, int]:
        """See confluent_kafka."""
        return 1, self._timestamp

    def headers(self) -> Any:
        """See confluent_kafka."""
        return self._headers


class Consumer(_Client):
    """confluent_kafka.Consumer: of an assigned partition, or as a member of a group."""

    def __init__(self, config: dict[str, Any], **options: Any) -> None:
        super().__init__(config, **options)
        self._committed = config.get("isolation.level", "read_committed") == "read_committed"
        self._wait = int(config.get("fetch.wait.max.ms", 500)) / 1000
        self._session = int(config.get("session.timeout.ms", 45_000)) / 1000
        self._interval = int(config.get("heartbeat.interval.ms", 3_000)) / 1000
        self._assignment = 0
        """The number of the last assignment; what was fetched for an earlier one is dropped."""
        self._position = 0
        self._reported_end = -1
        self._queue: deque[Message] = deque()
        self._member = ""
        self._last_heartbeat = 0.0
        self._owns = False
        self._calls: deque[bool] = deque()
        """Changes of ownership that the application has not been called for."""
        self._on_assign: Any = None
        self._on_revoke: Any = None

    # What the application calls

    def get_watermark_offsets(self, _place: TopicPartition, timeout: float) -> tuple[int, int]:
        """See confluent_kafka."""
        start, end = self.ask(
            PARTITION_LEADER, lambda respond: self.kafka.model.list_offsets(respond, self._committed), timeout
        )
        return start, end

    def list_topics(self, topic: str, timeout: float) -> Any:
        """See confluent_kafka."""
        exists = self.ask(PARTITION_LEADER, self.kafka.model.describe_topic, timeout)
        failure = None if exists else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=failure, partitions={0: None})})

    def assign(self, places: list[TopicPartition]) -> None:
        """See confluent_kafka."""
        self._assignment += 1
        self._position, self._reported_end = places[0].offset, -1
        self._queue.clear()
        self._fetch(self._assignment)

    def unassign(self) -> None:
        """See confluent_kafka."""
        self._assignment += 1
        self._queue.clear()

    def poll(self, timeout: float) -> Message | None:
        """See confluent_kafka."""
        self._check_session()
        self.wait_for(lambda: self._queue or self._calls, timeout)
        while self._calls:
            places = [TopicPartition("", 0)]
            owns = self._calls.popleft()
            (self._on_assign if owns else self._on_revoke)(self, places)
        return self._queue.popleft() if self._queue else None

    def consume(self, most: int, timeout: float) -> list[Message]:
        """See confluent_kafka."""
        assert timeout == 0
        return [self._queue.popleft() for _ in range(min(most, len(self._queue)))]

    def subscribe(self, _topics: list[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        """See confluent_kafka."""
        assert on_lost == on_revoke
        self._on_assign, self._on_revoke = on_assign, on_revoke
        self._join()

    def incremental_assign(self, _places: list[TopicPartition]) -> None:
        """See confluent_kafka; nothing is fetched, since the application pauses the partition."""

    def incremental_unassign(self, _places: list[TopicPartition]) -> None:
        """See confluent_kafka."""

    def pause(self, _places: list[TopicPartition]) -> None:
        """See confluent_kafka."""

    def close(self) -> None:
        """See confluent_kafka."""
        if self.closed:
            return
        self.closed = True
        self._assignment += 1
        if self._owns and self._on_revoke is not None:
            self._owns = False
            self._calls.clear()
            self._on_revoke(self, [TopicPartition("", 0)])
        if self._member:
            member = self._member
            self.send(GROUP_COORDINATOR, lambda respond: self.kafka.model.leave(respond, member), lambda _: None)

    # What librdkafka does

    def _fetch(self, assignment: int) -> None:
        random = self.scheduler.random
        most = 1 if random.random() < 0.2 else random.randint(1, _MOST_ENTRIES)
        position = self._position
        # Empty fetches follow each other in librdkafka; once the end is reported, they have no effect but their cost.
        wait = self._wait if self._reported_end != position else max(self._wait, _QUIET_SECONDS)

        def reply(response: Any) -> None:
            if assignment != self._assignment or self.closed:
                return
            if isinstance(response, int):
                if response == KafkaError.OFFSET_OUT_OF_RANGE:
                    self._queue.append(Message(position, None, 0, None, KafkaError._AUTO_OFFSET_RESET))
                    self.wake()
                else:
                    self.later(_RETRY_SECONDS, lambda: self._fetch(assignment))
                return
            entries, self._position, end = response
            self._queue.extend(Message(each.offset, each.value, each.timestamp, each.headers, None) for each in entries)
            if self._position >= end and self._reported_end != self._position:
                self._reported_end = self._position
                self._queue.append(Message(self._position, None, 0, None, KafkaError._PARTITION_EOF))
            if self._queue:
                self.wake()
            self._fetch(assignment)

        self.send(
            PARTITION_LEADER,
            lambda respond: self.kafka.model.fetch(respond, position, self._committed, most, wait),
            reply,
        )

    def _join(self) -> None:
        self._member = f"{self.process.name}-{self.process.boot}-{self.number}-{self.kafka.number()}"
        self._last_heartbeat = self.scheduler.now
        self._beat(self._member, join=True)

    def _beat(self, member: str, *, join: bool = False) -> None:
        if self.closed or member != self._member:
            return
        sent = self.scheduler.now

        def reply(response: Any) -> None:
            if self.closed or member != self._member:
                return
            if response == KafkaError.UNKNOWN_MEMBER_ID and not isinstance(response, bool):
                self._own(owns=False)
                self._join()
                return
            if isinstance(response, bool):
                self._last_heartbeat = sent
                self._own(owns=response)
            retry_join = join and not isinstance(response, bool)
            interval = max(self._interval, self._session / heartbeats_per_session)
            self.later(interval, lambda: self._beat(member, join=retry_join))

        self.send(
            GROUP_COORDINATOR,
            lambda respond: self.kafka.model.heartbeat(respond, member, self._session, join=join),
            reply,
        )

    def _check_session(self) -> None:
        """Lose the assignment if the coordinator has not responded for the session timeout."""
        if self._owns and self.scheduler.now - self._last_heartbeat > self._session:
            self._own(owns=False)
            self._join()

    def _own(self, *, owns: bool) -> None:
        if owns != self._owns:
            self._owns = owns
            self._calls.append(owns)
            self.wake()


class AdminClient(_Client):
    """confluent_kafka.admin.AdminClient."""

    def poll(self, _timeout: float) -> int:
        """See confluent_kafka."""
        return 0

    def describe_cluster(self, request_timeout: float) -> "Answer":
        """See confluent_kafka."""
        cluster = SimpleNamespace(cluster_id=KAFKA_CLUSTER_ID)
        return Answer(self, lambda respond: respond(cluster), request_timeout)

    def describe_topics(self, topics: Any, request_timeout: float) -> "_Answers":
        """See confluent_kafka."""
        replicas = SimpleNamespace(replicas=list(BROKERS))
        topic = SimpleNamespace(topic_id=TOPIC_ID, partitions=[replicas])
        return _Answers(Answer(self, self.kafka.model.describe_topic, request_timeout, lambda: topic))

    def create_topics(self, topics: Any, request_timeout: float) -> "_Answers":
        """See confluent_kafka."""
        config = topics[0].config
        return _Answers(Answer(self, lambda respond: self.kafka.model.create_topic(respond, config), request_timeout))

    def describe_configs(self, resources: Any, request_timeout: float) -> "_Answers":
        """See confluent_kafka."""

        def entries() -> Any:
            return {name: SimpleNamespace(value=value) for name, value in self.kafka.model.config.items()}

        return _Answers(Answer(self, self.kafka.model.describe_topic, request_timeout, entries))


class Answer:
    """The future of a request of an AdminClient, which is sent when its result is waited for."""

    def __init__(
        self,
        client: AdminClient,
        call: Callable[[Respond], None],
        timeout: float,
        of_existing: Callable[[], Any] | None = None,
    ) -> None:
        self._client, self._call, self._timeout, self._of_existing = client, call, timeout, of_existing

    def result(self, _timeout: float) -> Any:
        """See Future."""
        client = self._client
        response = client.ask(client.scheduler.random.choice(BROKERS), self._call, self._timeout)
        if self._of_existing is None:
            return response
        if not response:
            raise error(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return self._of_existing()


class _Answers(dict[Any, Answer]):
    """The same answer for the only key."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, _key: Any) -> Answer:
        return self._answer
