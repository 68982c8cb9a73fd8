"""A topic log's reader: from any offset, in an empty topic, and after every kind of failure."""

import random
import threading

import pytest
from attrs import evolve
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from aclog.metalog.batches import end_offset, read_header
from aclog.metalog.errors import LogError
from aclog.metalog.topic_message import BatchMessage, Placement
from aclog.metalog.topiclog import TopicReader, TopicSettings, open_topic_log
from aclog.metalog.topiclog.partition import Partition
from tests.support.kafka.server import free_port
from tests.support.kafka.topics import client_properties, contents, new_topic, send, topic_settings, values, whole
from tests.support.processes.waiting import SECONDS, wait_until


@pytest.fixture
def settings(topic_kafka):
    return new_topic(topic_kafka)


@pytest.fixture(scope="module")
def holed(topic_kafka):
    """A topic with a marker after every few messages and aborted messages in between; and the log's bytes."""
    numbers = random.Random(7)
    settings = new_topic(topic_kafka)
    stray = Placement(offset=5, base_offset=5, count=1, epoch=1)
    for node_id in range(3):
        with open_topic_log(settings, node_id=node_id) as log:
            for group in range(12):
                count = numbers.choice([1, 1, 2, 40])
                futures = [log.append([b"x" * 50] * numbers.choice([1, 1, 3]), timestamp=group) for _ in range(count)]
                futures[-1].result(SECONDS)
            data = contents(log)
        send(settings, *[BatchMessage(place=stray, value=b"never", timestamp=1)] * 300, commit=False)
    return settings, data


def test_an_empty_topic_is_an_empty_log(settings):
    with whole(settings) as reader:
        assert (reader.start_offset(), reader.high_watermark(), reader.leader()) == (0, 0, None)
        assert reader.read(0) == b""
        assert not reader.wait(0, 0)


def test_aborted_messages_are_not_read(settings):
    place = Placement(offset=0, base_offset=0, count=1, epoch=1)
    send(settings, BatchMessage(place=place, value=b"never", timestamp=1), commit=False)
    with whole(settings) as reader:
        assert reader.high_watermark() == 0
        with open_topic_log(settings, node_id=1) as log:
            log.append([b"x"], timestamp=1).result(SECONDS)
            assert reader.wait(1, SECONDS)
            assert contents(reader) == contents(log)


@pytest.mark.parametrize("window_bytes", [1, 2000, 32 << 20])
def test_reads_from_any_offset(holed, window_bytes):
    settings, data = holed
    with TopicReader(settings, window_bytes=window_bytes) as reader:
        reader.wait_known(SECONDS)
        assert reader.high_watermark() == end_offset(data)
        assert contents(reader) == data
        position, base = 0, 0
        for _ in range(40):
            offset = random.Random(f"{window_bytes} {position}").randrange(reader.high_watermark())
            found = reader.read(offset, 1)
            header = read_header(found)
            assert header.base_offset <= offset < header.end_offset
            assert found in data
            position, base = position + 1, header.base_offset
        assert base >= 0


def test_a_start_from_a_checkpoint_does_not_read_from_the_beginning(holed, monkeypatch):
    settings, data = holed
    taken, poll = [], Partition.poll

    def counted(partition, *arguments):
        found = poll(partition, *arguments)
        taken.extend(found)
        return found

    monkeypatch.setattr(Partition, "poll", counted)
    with whole(settings) as reader:
        offset = reader.high_watermark() - 10
        assert reader.read(offset, 1) in data
    assert len({message.position for message in taken}) < end_offset(data) // 2


def test_many_concurrent_reads(holed):
    settings, data = holed
    answers = []
    with TopicReader(settings, window_bytes=1) as reader:
        reader.wait_known(SECONDS)
        threads = [threading.Thread(target=lambda: answers.append(contents(reader))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [data] * 4


def test_records_that_were_removed_from_the_topic(settings):
    """By kafka-delete-records: the log then begins with the first whole batch."""
    with open_topic_log(settings, node_id=1) as log:
        for number in range(5):
            log.append([b"%d" % number] * 3, timestamp=1).result(SECONDS)
        data = contents(log)
        place = TopicPartition(settings.topic, 0, 2 + 4 + 1)  # inside the second batch, after two markers
        admin = AdminClient(dict(settings.properties))
        admin.delete_records([place])[TopicPartition(settings.topic, 0)].result(SECONDS)
        with whole(settings) as reader:
            assert reader.start_offset() == 7
            assert contents(reader) == data[-len(contents(reader)) :]
            with pytest.raises(LogError, match=r"offset 6 is outside 7\.\.16"):
                reader.read(6)
        admin.delete_records([TopicPartition(settings.topic, 0, -1)])[TopicPartition(settings.topic, 0)].result(SECONDS)
    with TopicReader(settings) as reader, pytest.raises(LogError, match="all messages below Kafka's offset"):
        reader.wait_known(SECONDS)
    with pytest.raises(LogError, match="all messages below Kafka's offset"):
        open_topic_log(settings, node_id=2)


def test_a_reader_may_start_before_its_topic_exists(topic_kafka):
    settings = topic_settings(topic_kafka)
    with TopicReader(settings) as reader:
        wait_until(lambda: "UNKNOWN_TOPIC_OR_PART" in why_unknown(reader), lambda: why_unknown(reader))
        new_topic(topic_kafka, topic=settings.topic)
        with open_topic_log(settings, node_id=1) as log:
            log.append([b"x"], timestamp=1).result(SECONDS)
            assert reader.wait(1, SECONDS)
            wait_until(lambda: reader.error is None, "the reader has found its topic")


def why_unknown(reader):
    """Why the end of the log is not known."""
    with pytest.raises(LogError) as refused:
        reader.wait_known(0)
    return str(refused.value)


def test_a_deleted_topic(settings):
    """The client gives an unknown topic some time to appear."""
    settings = evolve(settings, properties={**settings.properties, "topic.metadata.propagation.max.ms": "500"})
    with open_topic_log(settings, node_id=1) as log:
        log.append([b"x"], timestamp=1).result(SECONDS)
    with whole(settings) as reader:
        reader.read(0)
        admin = AdminClient(dict(settings.properties))
        admin.delete_topics([settings.topic])[settings.topic].result(SECONDS)
        wait_until(lambda: reader.error is not None, "the reader hears of it")
        assert isinstance(reader.error, LogError)


def test_no_broker_responds(capfd):
    settings = TopicSettings(topic="log", properties={"bootstrap.servers": f"localhost:{free_port()}"})
    with TopicReader(settings) as reader:
        with pytest.raises(LogError, match=r"kafka://localhost:\d+/log"):
            reader.wait_known(0.1)
        assert reader.high_watermark() == -1
        with pytest.raises(LogError, match="kafka://"):
            reader.read(0)
    with pytest.raises(LogError, match=r"kafka://localhost:\d+/log"):
        open_topic_log(settings, node_id=1, timeout=0.1)
    assert capfd.readouterr() == ("", "")


def test_a_wrong_password_is_reported_at_once_and_not_shown(topic_kafka, settings, capfd):
    properties = client_properties(topic_kafka.bootstrap) | {"sasl.password": "swordfish"}
    wrong = evolve(settings, properties=properties)
    with TopicReader(wrong) as reader, pytest.raises(LogError, match="_AUTHENTICATION") as refused:
        reader.wait_known(SECONDS)
    assert "swordfish" not in str(refused.value)
    with pytest.raises(LogError, match="_AUTHENTICATION"):
        open_topic_log(wrong, node_id=1)
    assert capfd.readouterr() == ("", "")


def test_a_missing_permission_is_reported(settings, topic_kafka):
    stranger = evolve(settings, properties=client_properties(topic_kafka.bootstrap, "bob"))
    with TopicReader(stranger) as reader, pytest.raises(LogError, match="TOPIC_AUTHORIZATION_FAILED"):
        reader.wait_known(SECONDS)
    with pytest.raises(LogError, match="AUTHORIZATION_FAILED"):
        open_topic_log(stranger, node_id=1)


def test_record_values_survive(holed):
    settings, _ = holed
    with whole(settings) as reader:
        assert set(values(reader)) == {b"x" * 50}
