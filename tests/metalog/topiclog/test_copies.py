"""What is read of a damaged topic: all whole batches before the damage, and a count of what stands behind it."""

import pytest

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import TopicSettings, partition
from aclog.metalog.topiclog.copies import salvage
from tests.metalog.topiclog.test_disorder import Ahead
from tests.support.fakes.topic_consumer import SERVERS, FakeConsumer, FakeTopic
from tests.support.kafka.topics import contents

SETTINGS = TopicSettings(topic="log", properties={"bootstrap.servers": SERVERS})


@pytest.fixture
def topic(monkeypatch):
    topic = FakeTopic()
    monkeypatch.setattr(partition, "new_consumer", topic.consumer)
    return topic


def filled(topic: FakeTopic, batches: int) -> bytes:
    return b"".join(topic.add(b"%d" % number, b"again") for number in range(batches))


def test_a_log_without_damage_is_whole(topic):
    written = filled(topic, 5)
    with salvage(SETTINGS) as log:
        assert (log.start_offset(), log.high_watermark(), log.damage) == (0, 10, None)
        assert contents(log) == written
        assert log.wait(9, 0)
        assert not log.wait(10, 0)
        with pytest.raises(LogError, match=r"offset 11 is outside 0\.\.10, the readable part"):
            log.read(11)


def test_an_empty_topic(topic):
    with salvage(SETTINGS) as log:
        assert (log.start_offset(), log.high_watermark(), log.damage) == (0, 0, None)


@pytest.mark.parametrize("before", [0, 1, 4])
def test_a_strangers_message(topic, before):
    written = filled(topic, before)
    topic.messages.append(b"stranger")
    filled(topic, 3)
    with salvage(SETTINGS) as log:
        assert log.high_watermark() == 2 * before
        assert contents(log) == written
        damage = log.damage
        assert str(damage.error).startswith(f"kafka://fake:1/log, Kafka's offset {2 * before}: header 'offset'")
        assert (damage.position, damage.messages, damage.records) == (2 * before, 7, 6)
        assert damage.offsets == (2 * before, 2 * before + 5)


def test_a_strangers_message_in_the_middle_of_a_batch(topic):
    written = filled(topic, 3)
    filled(topic, 1)
    topic.messages.insert(7, b"stranger")
    with salvage(SETTINGS) as log:
        assert contents(log) == written
        assert (log.damage.position, log.damage.messages, log.damage.records) == (6, 3, 2)
        assert "Kafka's offset 7" in str(log.damage.error)


def test_a_broker_that_dies_while_what_follows_is_counted(topic, monkeypatch):
    """Its consumer returns nothing from then on, and no error either."""
    filled(topic, 2)
    topic.messages.append(b"stranger")
    filled(topic, 3)
    connections = [FakeConsumer, FakeConsumer, FakeConsumer, SilentConsumer]  # bounds, two scans, and the count
    monkeypatch.setattr(partition, "new_consumer", lambda *_: connections.pop(0)(topic))
    monkeypatch.setattr(partition, "RESPONSE_SECONDS", 0.05)
    with pytest.raises(LogError, match=r"no response within 0 s, at Kafka's offset 4"):
        salvage(SETTINGS)
    assert not connections


class SilentConsumer(FakeConsumer):
    """The broker has died."""

    def poll(self, timeout: float) -> None:
        return None


def test_only_strangers(topic):
    topic.messages += [b"one", b"two"]
    with salvage(SETTINGS) as log:
        assert log.high_watermark() == 0
        assert (log.damage.position, log.damage.messages, log.damage.records, log.damage.offsets) == (0, 2, 0, None)


def test_a_batch_without_its_end(topic):
    written = filled(topic, 3)
    filled(topic, 1)
    del topic.messages[-1]
    with salvage(SETTINGS) as log:
        assert contents(log) == written
        assert "the last message is not the last one of its batch" in str(log.damage.error)
        assert (log.damage.position, log.damage.messages, log.damage.offsets) == (6, 1, (6, 6))


def test_a_gap(topic):
    written = filled(topic, 3)
    filled(topic, 2)
    del topic.messages[6:8]
    with salvage(SETTINGS) as log:
        assert contents(log) == written
        assert "offset 6: a message of offset 8: a gap or a duplicate" in str(log.damage.error)
        assert log.damage.offsets == (8, 9)


def test_an_epoch_that_goes_back(topic):
    filled(topic, 3)
    topic.add(b"newer", epoch=3)
    topic.add(b"stale", epoch=2)
    with salvage(SETTINGS) as log:
        assert log.high_watermark() == 7
        assert "epoch 2, after epoch 3" in str(log.damage.error)


def test_records_handed_over_out_of_order_once_are_no_damage(topic):
    written = filled(topic, 10)
    topic.skips = Ahead(7, 1)
    with salvage(SETTINGS) as log:
        assert log.damage is None
        assert contents(log) == written


def test_a_log_that_begins_later(topic):
    filled(topic, 5)
    kept = topic.messages[3:]
    topic.messages[:] = kept
    topic.messages.append(b"stranger")
    with salvage(SETTINGS) as log:
        assert (log.start_offset(), log.high_watermark()) == (4, 10)
        assert log.damage.messages == 1
