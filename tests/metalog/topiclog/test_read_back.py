"""Only what the writer's own reader has passed is acknowledged, on a real Kafka: strangers write into the topic."""

import threading

import pytest
from confluent_kafka import Producer

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.topic_message import BatchMessage, Placement, encode_headers
from aclog.metalog.topiclog import TopicReader, open_topic_log
from tests.support.kafka.topics import begin, new_topic, values, whole
from tests.support.processes.waiting import SECONDS, wait_until


@pytest.fixture
def settings(topic_kafka):
    return new_topic(topic_kafka)


def produce(settings, value: bytes, place: Placement | None = None) -> None:
    """A message of a stranger's, without a transaction."""
    producer = Producer(dict(settings.properties))
    headers = None if place is None else encode_headers(place)
    producer.produce(settings.topic, value, partition=0, headers=headers, timestamp=1)
    assert producer.flush(SECONDS) == 0


def test_nothing_behind_a_strangers_message_is_acknowledged(settings):
    failures = []
    with open_topic_log(settings, node_id=1, on_failure=failures.append) as log:
        log.append([b"before"], timestamp=1).result(SECONDS)
        produce(settings, b"not a record")
        late = log.append([b"late"], timestamp=1).exception(SECONDS)
        assert isinstance(late, LogError)
        told = "offsets 2 to 2 are committed and not acknowledged: this writer's own reader stopped before: "
        assert told in str(late)
        assert "aclog log copy --until-damage" in str(late)
        assert log.high_watermark() == 2
        assert len(failures) == 1
        with pytest.raises(LogError, match="until the log is opened again"):
            log.append([b"later"], timestamp=1)


@pytest.mark.parametrize("records", [1, 2], ids=["in the place of the whole batch", "in the place of its first record"])
def test_a_forged_record_at_the_next_offset_is_not_taken_for_ours(settings, records):
    """It is as long as ours, so that only its content tells."""
    with open_topic_log(settings, node_id=1) as log:
        produce(settings, b"fake", Placement(offset=1, base_offset=1, count=1, epoch=1))
        late = log.append([b"mine"] * records, timestamp=1).exception(SECONDS)
        assert "committed and not acknowledged" in str(late)
        assert log.high_watermark() == 1


@pytest.fixture
def missed(monkeypatch) -> threading.Event:
    """Is set once a writer has waited in vain for its reader to pass what it has committed."""
    in_vain, wait = threading.Event(), TopicReader.wait

    def waiting(reader: TopicReader, offset: int, timeout: float) -> bool:
        is_there = wait(reader, offset, timeout)
        if not is_there:
            in_vain.set()
        return is_there

    monkeypatch.setattr(TopicReader, "wait", waiting)
    return in_vain


def test_what_readers_cannot_see_yet_is_not_acknowledged(settings, missed):
    """A stranger's transaction that is open holds the last stable offset down."""
    with open_topic_log(settings, node_id=1) as log:
        place = Placement(offset=1, base_offset=1, count=1, epoch=1)
        stranger = begin(settings, BatchMessage(place=place, value=b"never", timestamp=1))
        waiting = log.append([b"x"], timestamp=1)
        with whole_end(settings) as reader:
            assert missed.wait(SECONDS)
            assert reader.high_watermark() == 1
            assert not waiting.done()
            stranger.abort_transaction(SECONDS)
            assert waiting.result(SECONDS).base_offset == 1
            assert reader.wait(1, SECONDS)
    with whole(settings) as reader:
        assert values(reader) == [b"x"]


def whole_end(settings) -> TopicReader:
    reader = TopicReader(settings)
    reader.wait_known(SECONDS)
    return reader


def test_a_reader_that_is_given_is_used_and_left_open(settings):
    with TopicReader(settings) as reader:
        with open_topic_log(settings, node_id=1, reader=reader) as log:
            end = log.append([b"x"], timestamp=1).result(SECONDS).last_offset + 1
            assert reader.high_watermark() == end
        assert reader.read(1)


def test_giving_up_while_reading_back(settings, missed):
    with open_topic_log(settings, node_id=1) as log:
        place = Placement(offset=1, base_offset=1, count=1, epoch=1)
        stranger = begin(settings, BatchMessage(place=place, value=b"never", timestamp=1))
        waiting = log.append([b"x"], timestamp=1)
        assert missed.wait(SECONDS)
        log.abandon("deposed")
        assert "deposed" in str(waiting.exception(SECONDS))
        stranger.abort_transaction(SECONDS)


def test_a_reader_tells_that_its_end_is_final(settings):
    with open_topic_log(settings, node_id=1), whole(settings) as reader:
        assert reader.failure is None
        produce(settings, b"not a record")
        wait_until(lambda: reader.failure is not None, "the reader has met it")
        assert isinstance(reader.failure, DecodeError)
