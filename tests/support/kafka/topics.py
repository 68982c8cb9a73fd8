"""Topics on a test Kafka for logs that live in them: how they are reached, and fresh ones."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event
from uuid import uuid4

from attrs import evolve
from confluent_kafka import Producer

from aclog.metalog.batches import decode_batch, end_offset, iter_batches
from aclog.metalog.committed_log import LogReader
from aclog.metalog.topic_message import BatchMessage, encode_headers
from aclog.metalog.topiclog import TopicReader, TopicSettings, ensure_topic
from aclog.metalog.topiclog.reader import HistoricalReads
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.shared import SharedKafka
from tests.support.nodes.server_properties import password


def client_properties(bootstrap: str, user: str = "admin") -> dict[str, str]:
    """How a user logs in with librdkafka."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password(user),
    }


def topic_settings(kafka: KafkaQuorum | SharedKafka, topic: str | None = None, **changes: object) -> TopicSettings:
    """Of a topic that nobody has used, unless it is named; with a replica on each node."""
    settings = TopicSettings(
        topic=topic or f"log-{uuid4().hex[:12]}",
        properties=client_properties(kafka.bootstrap),
        replication_factor=len(kafka.nodes),
    )
    return evolve(settings, **changes)


def new_topic(kafka: KafkaQuorum | SharedKafka, **changes: object) -> TopicSettings:
    """A fresh topic, which is there."""
    settings = topic_settings(kafka, **changes)
    ensure_topic(settings, timeout=60)  # false if a client has to send its request twice
    return settings


def records(log: LogReader) -> list[tuple[int, int, bytes | None]]:
    """(Offset, leader epoch, value) of all that is committed, the value None for a control record."""
    result: list[tuple[int, int, bytes | None]] = []
    offset = log.start_offset()
    while data := log.read(offset):
        for position, header in iter_batches(data):
            for record in decode_batch(data, position).records:
                value = None if header.is_control else record.value
                result.append((header.base_offset + record.offset_delta, header.leader_epoch, value))
            offset = header.end_offset
    assert [place for place, _, _ in result] == list(range(log.start_offset(), log.high_watermark()))
    return result


def contents(log: LogReader) -> bytes:
    """The bytes of all that is committed."""
    result, offset = b"", log.start_offset()
    while data := log.read(offset, 16 << 20):
        result += data
        offset = end_offset(data)
    return result


def values(log: LogReader) -> list[bytes]:
    """The values of all data records that are committed."""
    return [value for _, _, value in records(log) if value is not None]


@contextmanager
def whole(settings: TopicSettings) -> Iterator[TopicReader]:
    """A reader that knows the topic's end as it is now: a commit is acknowledged a little before readers see it."""
    with closing(HistoricalReads(settings, Event())) as reads:
        end = reads.survey_stable(60).end_offset
    with TopicReader(settings) as reader:
        reader.wait_known(60)
        assert reader.high_watermark() >= end
        yield reader


def send(settings: TopicSettings, *messages: BatchMessage, commit: bool = True) -> None:
    """Put messages into the topic, in a transaction of a stranger's, which ends as is said."""
    producer = begin(settings, *messages)
    (producer.commit_transaction if commit else producer.abort_transaction)(60)


def begin(settings: TopicSettings, *messages: BatchMessage) -> Producer:
    """A stranger whose transaction with these messages is open."""
    producer = Producer({**settings.properties, "transactional.id": f"stranger-{uuid4().hex}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for message in messages:
        producer.produce(
            settings.topic,
            value=message.value,
            partition=0,
            timestamp=message.timestamp,
            headers=encode_headers(message.place),
        )
    producer.flush(60)
    return producer
