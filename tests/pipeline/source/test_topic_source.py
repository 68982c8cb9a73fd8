"""A log in a topic of a Kafka broker: aborted transactions, gaps in positions, an open transaction."""

import uuid

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.topic_message import Placement, encode_headers
from aclog.metalog.topiclog import TopicSettings, ensure_topic, open_topic_log
from aclog.pipeline.source.data_source import TopicStream, plan_topic, read_part
from aclog.pipeline.source.directory import Query, read_options
from tests.support.builders.log_files import value
from tests.support.kafka.topics import client_properties
from tests.support.processes.waiting import wait_until
from tests.support.spark import source
from tests.support.spark.session import finished
from tests.support.spark.versions import is_refused

TIMEOUT = 60


@pytest.fixture
def client(topic_kafka) -> dict[str, str]:
    """A Kafka broker, as client properties."""
    return client_properties(topic_kafka.bootstrap)


@pytest.fixture
def topic(client) -> str:
    """A new topic of one partition."""
    return made(client, 1)


def made(client: dict[str, str], partitions: int) -> str:
    name = f"log-{uuid.uuid4()}"
    admin = AdminClient(client)
    topic = NewTopic(name, partitions, 1, config={"retention.ms": "-1"})  # the times in these logs are long past
    (done,) = admin.create_topics([topic]).values()
    done.result(TIMEOUT)
    wait_until(lambda: admin.list_topics(name, TIMEOUT).topics[name].error is None, "the broker knows the topic")
    return name


class Writer:
    """Writes batches like a controller: each in its own transaction."""

    def __init__(self, client: dict[str, str], topic: str) -> None:
        self.topic, self.offset = topic, 0
        self.producer = Producer(client | {"transactional.id": topic, "linger.ms": "0"})
        self.producer.init_transactions(TIMEOUT)

    def send(self, texts: list[str], *, abort: bool = False, commit: bool = True, shift: int = 0) -> None:
        self.producer.begin_transaction()
        base = self.offset + shift
        for delta, text in enumerate(texts):
            place = Placement(offset=base + delta, base_offset=base, count=len(texts), epoch=3)
            headers = encode_headers(place)
            self.producer.produce(self.topic, value(text), headers=headers, timestamp=1_700_000_000_000 + base)
        self.producer.flush(TIMEOUT)
        if abort:
            self.producer.abort_transaction(TIMEOUT)
        elif commit:
            self.producer.commit_transaction(TIMEOUT)
            self.offset = base + len(texts)

    def commit(self, count: int) -> None:
        self.producer.commit_transaction(TIMEOUT)
        self.offset += count


def given(client: dict[str, str], topic: str, **more: str) -> dict[str, str]:
    return {"topic": topic, **{f"kafka.{name}": text for name, text in client.items()}, **more}


def read(client: dict[str, str], topic: str) -> list[dict]:
    options = read_options(given(client, topic))
    return [row for part in plan_topic(options) for row in source.rows_of(read_part(part, options, Query()))]


def texts_of(rows: list[dict]) -> list[str]:
    assert [row["offset"] for row in rows] == list(range(rows[0]["offset"], rows[0]["offset"] + len(rows)))
    return [row["opaque"][3:].decode() for row in rows]


def test_only_what_is_committed_is_read_and_offsets_are_dense(client, topic):
    assert read(client, topic) == []
    writer = Writer(client, topic)
    writer.send(["a", "b"])
    writer.send(["aborted", "aborted"], abort=True)
    writer.send(["c"])
    writer.send(["aborted"] * 50, abort=True)
    writer.send(["d", "e", "f"])
    writer.send(["open"], commit=False)
    rows = read(client, topic)
    assert texts_of(rows) == ["a", "b", "c", "d", "e", "f"]
    assert [row["batch_offset"] for row in rows] == [0, 0, 2, 3, 3, 3]
    assert {row["leader_epoch"] for row in rows} == {3}
    assert rows[3]["timestamp"] == source.time_of(1_700_000_000_003)
    writer.commit(1)
    assert texts_of(read(client, topic))[-1] == "open"


def test_a_log_that_aclog_wrote_with_its_control_batches(client):
    settings = TopicSettings(topic=f"log-{uuid.uuid4()}", properties=client, replication_factor=1)
    ensure_topic(settings)
    for node_id in (1, 2):
        with open_topic_log(settings, node_id=node_id) as log:
            log.append([value("a"), value("b")], timestamp=7).result(TIMEOUT)
    rows = read(client, settings.topic)
    assert [(row["offset"], row["leader_epoch"]) for row in rows] == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)]
    assert [row["record_type"] for row in rows if row["offset"] in {0, 3}] == ["LeaderChange"] * 2


def test_a_stream_resumes_from_its_offsets(client, topic):
    writer = Writer(client, topic)
    stream = TopicStream(read_options(given(client, topic)))
    at, found = stream.initial(), []
    assert at == {"offset": 0, "position": 0}
    for number in range(4):
        writer.send([f"{number}a", f"{number}b"])
        writer.send(["aborted"], abort=True)
    horizon = stream.horizon()
    writer.send(["later"])
    ends = []
    while (end := stream.latest(at, horizon, 3)) != at:
        found += [
            row for part in stream.ranges(at, end) for row in source.rows_of(read_part(part, stream.options, Query()))
        ]
        ends.append(end["offset"])
        at = end
    assert texts_of(found) == ["0a", "0b", "1a", "1b", "2a", "2b", "3a", "3b"]
    assert ends == [2, 4, 6, 8]
    assert stream.latest(at, stream.horizon(), None)["offset"] == 9
    for start, first in (("latest", 9), ("3", 3), ("9", 9), ("earliest", 0)):
        begins = TopicStream(read_options(given(client, topic, startingOffset=start)))
        assert begins.initial()["offset"] == first
        (*parts,) = begins.ranges(begins.initial(), begins.latest(begins.initial(), begins.horizon(), None))
        rows = [row for part in parts for row in source.rows_of(read_part(part, begins.options, Query()))]
        assert [row["offset"] for row in rows] == list(range(first, 9))
        begins.close()
    with pytest.raises(ConfigError, match="startingOffset: 10"):
        TopicStream(read_options(given(client, topic, startingOffset="10"))).initial()
    stream.close()


def test_removed_records_are_an_error_or_a_row(client, topic):
    writer = Writer(client, topic)
    writer.send(["a", "b"])
    writer.send(["c", "d"])
    stream = TopicStream(read_options(given(client, topic)))
    begin = stream.initial()
    admin = AdminClient(client)
    (done,) = admin.delete_records([TopicPartition(topic, 0, 1)]).values()
    done.result(TIMEOUT)
    end = stream.latest(begin, stream.horizon(), None)
    assert end["offset"] == 4
    with pytest.raises(LogError, match="offsets 0 to 2: removed"):
        stream.ranges(begin, end)
    stream.close()
    stream = TopicStream(read_options(given(client, topic, failOnDataLoss="false")))
    lost, *rest = [
        row for part in stream.ranges(begin, end) for row in source.rows_of(read_part(part, stream.options, Query()))
    ]
    assert (lost["record_type"], lost["offset"]) == ("DAMAGED", 0)
    assert texts_of(rest) == texts_of(read(client, topic)) == ["c", "d"]
    assert stream.initial()["offset"] == 2
    stream.close()


def test_other_topics_are_refused(client, topic):
    with pytest.raises(LogError, match="2 partitions"):
        read(client, made(client, 2))
    with pytest.raises(LogError, match="UNKNOWN_TOPIC"):
        read(client, "not-there")
    with pytest.raises(ConfigError, match=r"kafka\.isolation\.level"):
        read(client | {"isolation.level": "read_uncommitted"}, topic)
    with pytest.raises(ConfigError, match=r"no\.such"):
        read(client | {"no.such": "x"}, topic)
    writer = Writer(client, topic)
    writer.send(["a"])
    writer.send(["b"], shift=1)
    with pytest.raises(DecodeError, match=f"topic {topic}, Kafka's offset 2: offset 1: .*a gap"):
        read(client, topic)
    producer = Producer(client)
    other = made(client, 1)
    producer.produce(other, b"x")
    producer.flush(TIMEOUT)
    with pytest.raises(DecodeError, match=f"topic {other}, Kafka's offset 0: header 'offset'"):
        read(client, other)


def test_under_spark(spark: SparkSession, client, topic, tmp_path):
    writer = Writer(client, topic)
    options = given(client, topic, maxRecordsPerTrigger="3")

    def run() -> list[int]:
        frame = spark.readStream.format("aclog").options(**options).load()
        sink = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = finished(lambda: sink.trigger(availableNow=True).start(str(tmp_path / "out")))
        return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]

    for text in "abc":
        writer.send([text, text.upper()])
        writer.send(["aborted"], abort=True)
    has_stream = not is_refused(run, since=(4, 2))
    if has_stream:
        assert run() == [2, 2, 2]
    writer.send(["d"] * 5)
    if has_stream:
        assert run() == [5]
    table = spark.read.format("aclog").options(**given(client, topic)).load().orderBy("offset")
    assert texts_of(table.toArrow().to_pylist()) == ["a", "A", "b", "B", "c", "C", *["d"] * 5]
    if has_stream:
        sink = spark.read.parquet(str(tmp_path / "out")).orderBy("offset")
        assert sink.toArrow().to_pylist() == table.toArrow().to_pylist()
    with pytest.raises(PySparkException, match="UNKNOWN_TOPIC"):
        spark.read.format("aclog").options(**given(client, "not-there")).load().count()
