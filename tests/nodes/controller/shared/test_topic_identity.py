"""A controller knows its log: the recorded identity, what a topic must hold, and the watch while it runs."""

import asyncio

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.topiclog import TopicId
from aclog.metalog.topiclog.client import RefusedError
from aclog.server.controller import leadership, shared, topic_controller
from aclog.server.controller.shared import (
    IDENTITY_FILE,
    LogEnd,
    OtherLogError,
    TopicIdentity,
    decode_identity,
    encode_identity,
    read_identity,
    write_identity,
)
from aclog.server.loops import committed
from aclog.server.telemetry import Metrics
from tests.nodes.controller.shared.test_topic_controller import create, names, same
from tests.support.fakes.shared_log import SharedTopic
from tests.support.nodes.shared_controllers import candidate, three, until

IDENTITY = TopicIdentity(
    topic=TopicId(kafka_cluster_id="a-kafka", topic_id="UHEexobYREiOan_87VX4Og"), end=LogEnd(end_offset=1062, epoch=7)
)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Checks without the waits that real brokers need."""
    monkeypatch.setattr(leadership, "_RECORD_SECONDS", 0.005)
    monkeypatch.setattr(leadership, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(leadership, "_SETTINGS_SECONDS", 0.02)
    monkeypatch.setattr(shared, "_SURE_SECONDS", 0.001)
    monkeypatch.setattr(shared, "_ARRIVE_SECONDS", 0.05)


class TestFile:
    def test_its_bytes(self):
        assert encode_identity(IDENTITY).decode().splitlines() == [
            "version=1",
            "kafka.cluster.id=a-kafka",
            "topic.id=UHEexobYREiOan_87VX4Og",
            "end.offset=1062",
            "leader.epoch=7",
            "crc32c=38111d0b",
        ]

    def test_there_and_back(self, tmp_path):
        assert read_identity(tmp_path) is None
        write_identity(tmp_path, IDENTITY)
        assert read_identity(tmp_path) == IDENTITY

    @given(st.data())
    def test_any_damage_is_noticed(self, data):
        whole = encode_identity(IDENTITY)
        position = data.draw(st.integers(0, len(whole) - 2))
        bit = 1 << data.draw(st.integers(0, 7))
        damaged = whole[:position] + bytes([whole[position] ^ bit]) + whole[position + 1 :]
        with pytest.raises(DecodeError):
            decode_identity(damaged)
        with pytest.raises(DecodeError):
            decode_identity(whole[:position])

    def test_damage_says_where_and_what_to_do(self, tmp_path):
        write_identity(tmp_path, IDENTITY)
        path = tmp_path / IDENTITY_FILE
        path.write_bytes(path.read_bytes().replace(b"1062", b"1063"))
        with pytest.raises(OtherLogError, match=rf"{path}: its CRC does not match.*`aclog log adopt CONFIG`"):
            read_identity(tmp_path)

    def test_a_later_version(self):
        lines = encode_identity(IDENTITY).splitlines(keepends=True)
        import crc32c

        text = b"".join([b"version=2\n", *lines[1:-1]])
        with pytest.raises(DecodeError, match="not a topic's identity of version 1"):
            decode_identity(text + b"crc32c=%08x\n" % crc32c.crc32c(text))


async def begun(root, topic):
    """A log of three controllers with a rule in it."""
    async with three(root, topic) as nodes:
        await committed(create(nodes[1], "t"))
        await same(*nodes.values())
        return nodes[1].publisher.current.end_offset


async def refusal(topic, home, what=OtherLogError):
    """How a start is refused."""
    with pytest.raises(what) as refused:
        await candidate(topic, home, 1).start()
    return str(refused.value)


class TestStart:
    async def test_the_log_is_known_before_its_first_change_is_acknowledged(self, tmp_path, monkeypatch):
        monkeypatch.setattr(leadership, "_RECORD_SECONDS", 3600)
        async with three(tmp_path, SharedTopic()) as nodes:
            await committed(create(nodes[1], "t"))
            assert read_identity(tmp_path / "c1").end.end_offset > 0

    async def test_a_controller_that_cannot_record_its_log_does_not_lead(self, tmp_path, monkeypatch):
        def full(*_):
            raise LogError("no space left on device")

        monkeypatch.setattr(shared, "write_identity", full)
        topic = SharedTopic()
        node = candidate(topic, tmp_path / "c1", 1)
        starting = asyncio.create_task(node.start())
        try:
            await until(lambda: 1 in topic.candidates)
            topic.elect(1)
            await until(lambda: bool(topic.logs) and topic.logs[0].closed)
            assert not node.active
        finally:
            await node.stop()
            await asyncio.gather(starting, return_exceptions=True)

    async def test_each_controller_records_how_far_it_is(self, tmp_path):
        topic = SharedTopic()
        end = await begun(tmp_path, topic)
        for node in ("c1", "c2", "c3"):
            identity = read_identity(tmp_path / node)
            assert identity.topic.topic_id == "a-topic"
            assert identity.end == LogEnd(end_offset=end, epoch=1)

    async def test_nothing_is_recorded_before_the_first_commit(self, tmp_path):
        topic = SharedTopic()
        node = candidate(topic, tmp_path, 1)
        starting = asyncio.create_task(node.start())
        await until(lambda: 1 in topic.candidates)
        await asyncio.sleep(0.05)
        assert read_identity(tmp_path) is None
        topic.elect(1)
        await starting
        await until(lambda: read_identity(tmp_path) is not None)
        await node.stop()

    async def test_what_is_recorded_is_never_ahead_of_what_is_committed(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            topic.logs[-1].holding = True
            waiting = create(nodes[1], "t")
            end = topic.store.high_watermark()
            await asyncio.sleep(0.05)
            assert read_identity(tmp_path / "c1").end.end_offset <= end
            topic.logs[-1].holding = False
            topic.logs[-1].flush()
            await committed(waiting)
            await until(lambda: read_identity(tmp_path / "c1").end.end_offset > end)

    async def test_a_missing_topic_is_refused_and_not_created(self, tmp_path):
        topic = SharedTopic()
        await begun(tmp_path, topic)
        topic.topic_id = None
        told = await refusal(topic, tmp_path / "c1")
        assert told.startswith(
            "memory topic of 1: there is no such topic, but this controller has followed a log there"
        )
        assert "`aclog log adopt CONFIG`" in told
        assert topic.topic_id is None

    async def test_another_topic_of_that_name_is_refused(self, tmp_path):
        topic = SharedTopic()
        await begun(tmp_path, topic)
        topic.topic_id = "another"
        told = await refusal(topic, tmp_path / "c1")
        assert "the topic's id is another on Kafka a-kafka: expected a-topic on Kafka a-kafka" in told

    async def test_a_topic_that_lost_its_end_is_refused(self, tmp_path):
        end = await begun(tmp_path, SharedTopic())
        told = await refusal(SharedTopic(), tmp_path / "c1")
        assert (
            f"it ends at offset 0, but {tmp_path / 'c1' / IDENTITY_FILE} has end offset {end}, leader epoch 1" in told
        )

    async def test_another_epoch_at_the_recorded_end_is_refused(self, tmp_path):
        topic = SharedTopic()
        end = await begun(tmp_path, topic)
        write_identity(
            tmp_path / "c1",
            TopicIdentity(
                topic=TopicId(kafka_cluster_id="a-kafka", topic_id="a-topic"), end=LogEnd(end_offset=end, epoch=5)
            ),
        )
        told = await refusal(topic, tmp_path / "c1")
        assert f"it has leader epoch 1 at offset {end - 1}" in told

    async def test_a_controller_from_before_adopts_what_holds_its_checkpoint(self, tmp_path, caplog):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            assert await nodes[1].checkpoint()
        (tmp_path / "c1" / IDENTITY_FILE).unlink()
        caplog.set_level("INFO")
        node = candidate(topic, tmp_path / "c1", 1)
        await node.start()
        await until(lambda: read_identity(tmp_path / "c1") is not None)
        await node.stop()
        assert "adopted, as nothing was recorded" in caplog.text

    async def test_a_controller_from_before_refuses_what_does_not_hold_its_checkpoint(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            assert await nodes[1].checkpoint()
        (tmp_path / "c1" / IDENTITY_FILE).unlink()
        (path,) = (tmp_path / "c1").rglob("*[1-9]-*.checkpoint")
        other = SharedTopic()
        await begun(tmp_path / "other", other)
        async with three(tmp_path / "other", other) as nodes:
            await committed(create(nodes[1], "u"))
            await committed(create(nodes[1], "v"))
        path.rename(path.with_name(path.name.replace("0000000001.", "0000000009.")))
        told = await refusal(other, tmp_path / "c1")
        assert "a checkpoint of another log, or memory topic of 1 has lost its end: it has leader epoch" in told
        topic.topic_id = None
        assert "there is no such topic" in await refusal(topic, tmp_path / "c1")

    async def test_a_new_controller_creates_a_missing_topic(self, tmp_path):
        topic = SharedTopic()
        topic.topic_id = None
        node = candidate(topic, tmp_path, 1)
        starting = asyncio.create_task(node.start())
        await until(lambda: 1 in topic.candidates)
        assert topic.topic_id == "created"
        topic.elect(1)
        await starting
        await node.stop()
        assert read_identity(tmp_path).topic.topic_id == "created"

    async def test_a_new_controller_adopts_a_log_that_is_there(self, tmp_path):
        topic = SharedTopic()
        end = await begun(tmp_path, topic)
        node = candidate(topic, tmp_path / "new", 1)
        await node.start()
        assert names(node) == {"t"}
        await until(lambda: read_identity(tmp_path / "new") is not None)
        assert read_identity(tmp_path / "new").end.end_offset == end
        await node.stop()


class TestWatch:
    async def test_a_deleted_topic_deposes_the_active_one_and_nobody_leads(self, tmp_path, caplog):
        topic = SharedTopic()
        async with three(tmp_path, topic, metrics=None) as nodes:
            topic.topic_id = None
            await until(lambda: not any(node.active for node in nodes.values()))
            await until(lambda: all(node.trouble for node in nodes.values()))
            await until(lambda: not topic.candidates or topic.elected is None)
            assert "there is no such topic" in nodes[1].trouble
            assert names(nodes[2]) == set()
        assert "there is no such topic" in caplog.text

    async def test_a_topic_deleted_and_made_anew_deposes_the_active_one(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            topic.topic_id = "another"
            await until(lambda: not nodes[1].active)
            await until(lambda: nodes[1].trouble)
            assert "the topic's id is another" in nodes[1].trouble
            before = read_identity(tmp_path / "c1")
        assert before.topic.topic_id == "a-topic"
        assert read_identity(tmp_path / "c1") == before

    async def test_one_bad_answer_is_asked_for_again(self, tmp_path, monkeypatch):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            keeper = nodes[1]._watch.keeper
            good, bad = keeper.shared.identify(), [None]
            monkeypatch.setattr(keeper.shared, "identify", lambda: bad.pop() if bad else good)
            keeper.look()  # as the watch itself does, every now and then
            assert not bad
            assert nodes[1].trouble is None

    async def test_it_goes_on_when_the_topic_is_back(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            topic.topic_id = None
            await until(lambda: all(node.trouble for node in nodes.values()))
            topic.topic_id = "a-topic"
            await until(lambda: set(topic.candidates) == set(nodes))
            topic.elect(2)
            await until(lambda: nodes[2].active)
            assert nodes[2].trouble is None

    async def test_wrong_settings_are_shown_and_prevent_a_takeover(self, tmp_path):
        topic = SharedTopic()
        metrics = Metrics(process=False)
        async with three(tmp_path, topic) as nodes:
            nodes[2]._watch.observe(metrics)
            topic.unsuitable = "retention.ms is 1"
            await until(lambda: nodes[1].trouble and nodes[2].trouble)
            assert nodes[1].trouble == "memory topic of 1: unsuitable for a log: retention.ms is 1"
            assert nodes[1].active
            assert b'aclog_topic_wrong{check="settings"} 1.0' in metrics.text()
            assert b'aclog_topic_wrong{check="identity"} 0.0' in metrics.text()
            topic.elect(2)
            await until(lambda: not nodes[1].active and 2 not in topic.candidates)
            assert not nodes[2].active
            topic.unsuitable = None
            await until(lambda: 2 in topic.candidates)
            topic.elect(2)
            await until(lambda: nodes[2].active)
            assert nodes[2].trouble is None

    async def test_without_brokers_nothing_is_found_out_and_a_takeover_waits(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            topic.silent = True
            topic.elect(2)
            await asyncio.sleep(0.1)
            assert nodes[2].trouble is None
            assert not nodes[2].active
            topic.silent = False
            await until(lambda: nodes[2].active)

    async def test_a_controller_that_alone_gets_no_answer_leaves_the_election(self, tmp_path, monkeypatch, caplog):
        """Another candidate is elected; a sole one again, and with no new message."""
        monkeypatch.setattr(leadership, "_ANSWER_SECONDS", 0.05)
        monkeypatch.setattr(topic_controller, "_REJOIN_SECONDS", 0.1)
        monkeypatch.setattr(leadership, "_WATCH_RETRY_SECONDS", 0.02)
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            view = nodes[2]._watch.keeper.shared
            view.unanswered = RefusedError("kafka://h/log: Topic authorization failed")
            for _ in range(2):
                topic.elect(2)
                await until(lambda: 2 not in topic.candidates and topic.elected is None)
                assert not nodes[2].active
                assert nodes[2].trouble is None
                left = asyncio.get_running_loop().time()
                await until(lambda: 2 in topic.candidates)
                assert asyncio.get_running_loop().time() - left > 0.05
            refusals = [each.getMessage() for each in caplog.records if "authorization failed" in each.getMessage()]
            why = "the topic's settings cannot be checked: kafka://h/log: Topic authorization failed"
            assert refusals == [
                f"{why}; trying again",
                f"not leading: {why}; leaving the election for another controller",
            ]
            view.unanswered = None
            topic.elect(2)
            await until(lambda: nodes[2].active)

    async def test_a_disk_that_does_not_take_the_record_is_told(self, tmp_path, monkeypatch, caplog):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:

            def full(*_: object) -> None:
                raise LogError("the disk is full")

            monkeypatch.setattr(shared, "write_identity", full)
            await committed(create(nodes[1], "t"))
            await until(lambda: "the disk is full; trying again" in caplog.text)
            assert nodes[1].active


class Shortened:
    """A reader of a topic from which the messages below offset 50 were removed."""

    def start_offset(self) -> int:
        return 50

    def high_watermark(self) -> int:
        return 100

    def wait(self, offset: int, timeout: float) -> bool:
        return True


@pytest.mark.parametrize("end", [10, 50])
def test_what_was_removed_from_a_topic_does_not_contradict_what_was_recorded(tmp_path, end):
    assert shared.difference(Shortened(), LogEnd(end_offset=end, epoch=1)) is None
    (tmp_path / f"{end:020}-0000000001.checkpoint").touch()
    keeper = shared.IdentityKeeper(SharedTopic().of(1), tmp_path, tmp_path)
    write_identity(tmp_path, evolve(IDENTITY, end=LogEnd(end_offset=end, epoch=1)))
    keeper._recorded = read_identity(tmp_path)
    keeper.check_contents(Shortened())


def test_a_topic_that_begins_after_the_checkpoint_is_not_adopted(tmp_path):
    keeper = shared.IdentityKeeper(SharedTopic().of(1), tmp_path, tmp_path)
    (tmp_path / f"{49:020}-0000000001.checkpoint").touch()
    with pytest.raises(OtherLogError, match="it begins at offset 50"):
        keeper.check_contents(Shortened())
    (tmp_path / f"{50:020}-0000000001.checkpoint").touch()
    keeper.check_contents(Shortened())


def test_a_record_never_goes_back(tmp_path):
    topic = SharedTopic()
    keeper = shared.IdentityKeeper(topic.of(1), tmp_path, tmp_path)
    keeper.establish()
    keeper.record(LogEnd(end_offset=10, epoch=2))
    keeper.record(LogEnd(end_offset=5, epoch=1))
    assert read_identity(tmp_path).end == LogEnd(end_offset=10, epoch=2)
    assert evolve(read_identity(tmp_path), end=LogEnd(end_offset=0, epoch=0)).topic == keeper.topic


def test_other_log_is_a_matter_of_configuration():
    assert issubclass(OtherLogError, ConfigError)
