"""A client that hands over records out of order: once is survived, always is final, and nothing of it is ever seen."""

import threading
from contextlib import closing

import pytest

from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.topiclog import TopicReader, TopicSettings, partition
from aclog.metalog.topiclog.partition import connect_reader
from aclog.metalog.topiclog.reader import HistoricalReads
from tests.support.fakes.topic_consumer import SERVERS, FakeTopic
from tests.support.kafka.topics import contents
from tests.support.processes.waiting import SECONDS, wait_until

SETTINGS = TopicSettings(topic="log", properties={"bootstrap.servers": SERVERS})


@pytest.fixture
def topic(monkeypatch):
    topic = FakeTopic()
    monkeypatch.setattr(partition, "new_consumer", topic.consumer)
    return topic


@pytest.fixture
def begun(topic):
    """A topic with some batches, and their bytes."""
    return b"".join(topic.add(b"%d" % number, b"again") for number in range(5))


class Ahead:
    """At `position`, the record three later is handed over; `times` times."""

    def __init__(self, position: int, times: float) -> None:
        self.position, self.left = position, times

    def __call__(self, position: int) -> int:
        if position != self.position or self.left <= 0:
            return position
        self.left -= 1
        return position + 3


def test_records_out_of_order_once_are_read_again(topic, begun):
    with TopicReader(SETTINGS) as reader:
        reader.wait_known(SECONDS)
        topic.skips = Ahead(10, 1)
        more = b"".join(topic.add(b"%d" % number) for number in range(8))
        assert reader.wait(17, SECONDS)
        assert contents(reader) == begun + more
        assert topic.skips.left == 0
        assert reader.error is None


def test_records_that_stay_out_of_order_are_final_and_none_of_them_is_seen(topic, begun):
    with TopicReader(SETTINGS) as reader:
        reader.wait_known(SECONDS)
        topic.skips = Ahead(10, float("inf"))
        before = topic.consumers
        for number in range(8):
            topic.add(b"%d" % number)
        with pytest.raises(ReplayError, match=r"Kafka's offset 13: offset 10: a message of offset 13: a gap"):
            reader.wait(10, SECONDS)
        assert topic.consumers == before + 1
        assert contents(reader) == begun


def test_the_first_error_is_the_one_that_is_told(topic, begun):
    with TopicReader(SETTINGS) as reader:
        reader.wait_known(SECONDS)
        jumps = iter((4, 3))
        topic.skips = lambda position: position + next(jumps) if position == 10 else position
        for number in range(8):
            topic.add(b"%d" % number)
        with pytest.raises(ReplayError, match="a message of offset 14: a gap"):
            reader.wait(10, SECONDS)


def test_progress_earns_another_reading(topic, begun):
    with TopicReader(SETTINGS) as reader:
        reader.wait_known(SECONDS)
        left = {10: 1, 11: 1, 12: 1}

        def skips(position):
            ahead = left.get(position, 0)
            left[position] = 0
            return position + 3 * ahead

        topic.skips = skips
        for number in range(8):
            topic.add(b"%d" % number)
        assert reader.wait(17, SECONDS)


def test_a_survey_out_of_order_is_made_again(topic, begun):
    topic.skips = Ahead(1, 1)
    with TopicReader(SETTINGS) as reader:
        reader.wait_known(SECONDS)
        assert contents(reader) == begun


@pytest.mark.parametrize("jumps", [[3], [3, 2]], ids=["once", "twice"])
def test_older_batches_are_read_once_more_too(topic, begun, jumps):
    with closing(HistoricalReads(SETTINGS, threading.Event())) as reads:
        reads.survey()
        topic.skips = lambda position: position + (jumps.pop(0) if position == 6 and jumps else 0)
        final = len(jumps) > 1
        before = reads.read(0, 10, 1 << 20)
        assert before == begun[: len(begun) // 5 * 3]
        if final:
            with pytest.raises(ReplayError, match="a message of offset 9: a gap or a duplicate"):
                reads.read(6, 10, 1 << 20)
        else:
            assert before + reads.read(6, 10, 1 << 20) == begun


def test_a_record_that_comes_late_is_an_error_even_where_offsets_have_holes(topic, begun):
    place = connect_reader(SETTINGS, threading.Event(), fetch_wait_ms=10)
    place.seek(0)
    topic.skips = lambda position: 3 if position == 5 else position
    assert [message.position for message in place.poll(0)] == [0, 1, 2, 3, 4]
    with pytest.raises(ReplayError, match="a message of Kafka's offset 3 where 5 or a later one is due: out of order"):
        place.poll(0)


def test_a_reader_that_connects_again_knows_the_epoch_it_has_reached(topic, begun):
    topic.add(b"later", epoch=7)
    with TopicReader(SETTINGS) as reader:
        reader.wait_known(SECONDS)
        assert reader.read(10)
        wait_until(lambda: reader._place is not None and reader._place.epoch == 7, "the last batch was read")
        topic.add(b"stale", epoch=6)
        with pytest.raises(DecodeError, match="epoch 6, after epoch 7"):
            reader.wait(11, SECONDS)
