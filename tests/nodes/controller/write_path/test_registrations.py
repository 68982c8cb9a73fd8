"""Registrations, heartbeats and sessions as Kafka's controller decides them, without partitions (KIP-631)."""

import asyncio
from contextlib import suppress
from uuid import UUID

import pytest
from attrs import evolve

from aclog.config.node_config import BrokerSettings
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import EncodeError
from aclog.metalog.records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterBrokerRecord,
)
from aclog.protocol.headers import RequestError
from aclog.server.controller.quorum_controller import QuorumController
from aclog.server.controller.registrations import BrokerWriter, Heartbeat, HeartbeatReply
from aclog.server.loops import committed
from aclog.snapshots.publisher import Publisher
from tests.support.fakes.held_log import HeldLog

FEATURES = (BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),)
WANTED = RegisterBrokerRecord(
    broker_id=2,
    incarnation_id=UUID(int=1000),
    broker_epoch=-1,
    end_points=(),
    features=FEATURES,
    log_dirs=(UUID(int=2000),),
)
LISTENER = BrokerEndpoint(name="CLIENT", host="localhost", port=9092, security_protocol=3)
AGAIN = evolve(WANTED, incarnation_id=UUID(int=1001))
THREE = evolve(AGAIN, broker_id=3, log_dirs=(UUID(int=2001),))


class Place:
    """A controller with a log in memory, and a clock that the test turns."""

    def __init__(self, level=30, log=None, *, contested=False):
        self.now = 0.0
        self.log = log or HeldLog()
        if log is None:
            self.log.append(
                [encode_record(FeatureLevelRecord(name="metadata.version", feature_level=level))], timestamp=1
            )
        publisher = Publisher()
        while publisher.applier.next_offset < self.log.high_watermark():
            publisher.advance(self.log.read(publisher.applier.next_offset))
        loop = asyncio.get_running_loop()
        self.controller = QuorumController(log=self.log, publisher=publisher, loop=loop, contested=contested)
        self.writer = BrokerWriter(settings=BrokerSettings(), controller=self.controller, clock=lambda: self.now)

    @property
    def cluster(self):
        return self.controller.publisher.current.cluster

    async def register(self, wanted=WANTED):
        return await committed(self.writer.register(wanted))

    async def beat(self, epoch, offset=None, *, fence=False, stop=False, broker_id=2):
        beat = Heartbeat(
            broker_id=broker_id,
            broker_epoch=epoch,
            metadata_offset=epoch if offset is None else offset,
            want_fence=fence,
            want_shut_down=stop,
        )
        return await committed(self.writer.heartbeat(beat))

    async def refused(self, work):
        with pytest.raises(RequestError) as caught:
            await work
        return caught.value.code


def reply(*, fenced, caught_up=True, stop=False):
    return HeartbeatReply(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=stop)


async def test_a_broker_registers_fenced_and_is_unfenced_once_it_has_caught_up():
    place = Place()
    epoch = await place.register()
    assert epoch == place.log.high_watermark() - 1 == 1
    assert place.cluster.get(2) == evolve(WANTED, broker_epoch=1, fenced=True, version=4)
    assert await place.beat(epoch, 0) == reply(fenced=True, caught_up=False)
    assert await place.beat(epoch, 1, fence=True) == reply(fenced=True)
    assert place.log.high_watermark() == 2
    assert await place.beat(epoch) == reply(fenced=False)
    assert not place.cluster.get(2).fenced
    # A heartbeat that changes nothing costs no record.
    assert await place.beat(epoch) == reply(fenced=False)
    assert place.log.high_watermark() == 3


async def test_a_heartbeat_that_changes_nothing_costs_no_record_on_a_shared_log_either():
    place = Place(contested=True)
    epoch = await place.register()
    await place.beat(epoch)
    end = place.log.high_watermark()
    assert await place.beat(epoch) == reply(fenced=False)
    assert place.log.high_watermark() == place.log.end_offset() == end


async def test_another_incarnation_waits_for_the_session_of_the_first_to_end():
    place = Place()
    epoch = await place.register()
    await place.beat(epoch)
    place.now = 8.9
    assert await place.refused(place.register(AGAIN)) == 101
    assert await place.register() == epoch, "the same incarnation may ask twice, and stays as it is"
    assert not place.cluster.get(2).fenced
    place.now = 18
    later = await place.register(AGAIN)
    assert later > epoch
    assert place.cluster.get(2).fenced
    assert await place.refused(place.beat(epoch)) == 77
    assert await place.beat(later) == reply(fenced=False)


async def test_a_broker_that_shuts_down_is_fenced_at_once_and_its_successor_waits_for_nothing_once_fenced():
    place = Place()
    epoch = await place.register()
    await place.beat(epoch)
    assert await place.beat(epoch, stop=True) == reply(fenced=True, stop=True)
    assert place.cluster.get(2).fenced
    assert await place.beat(epoch, stop=True) == reply(fenced=True, stop=True)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (evolve(WANTED, log_dirs=()), 119),
        (evolve(WANTED, log_dirs=(UUID(int=99),)), 119),
        (evolve(WANTED, log_dirs=WANTED.log_dirs * 2), 119),
        (evolve(WANTED, end_points=(evolve(LISTENER, name=""),)), 119),
        (evolve(WANTED, end_points=(evolve(LISTENER, security_protocol=4),)), 119),
        (evolve(WANTED, end_points=(LISTENER, evolve(LISTENER, host="other"))), 119),
        (evolve(WANTED, features=()), 119),
        (evolve(WANTED, features=(*FEATURES, evolve(FEATURES[0], name="x", min_supported_version=1))), 35),
        (evolve(WANTED, features=(*FEATURES, evolve(FEATURES[0], max_supported_version=29))), 35),
        (evolve(WANTED, features=(evolve(FEATURES[0], max_supported_version=29),)), 35),
        (evolve(WANTED, is_migrating_zk_broker=True), 102),
    ],
)
async def test_a_registration_that_kafka_refuses_is_refused(wanted, code):
    place = Place()
    assert await place.refused(place.register(wanted)) == code
    assert (len(place.cluster), place.log.high_watermark()) == (0, 1)


@pytest.mark.parametrize(("level", "version"), [(7, 1), (8, 2), (17, 3), (30, 4)])
async def test_records_are_written_as_the_metadata_version_allows(level, version):
    place = Place(level)
    wanted = evolve(WANTED, log_dirs=() if level < 17 else WANTED.log_dirs)
    epoch = await place.register(wanted)
    await place.beat(epoch)
    registered = place.cluster.get(2)
    assert (registered.version, registered.fenced) == (version, False)


async def test_a_directory_is_of_one_broker():
    place = Place()
    await place.register()
    three = evolve(AGAIN, broker_id=3)
    assert await place.refused(place.register(three)) == 119, "a Kafka that replays it ends"
    assert place.log.high_watermark() == 2
    await committed(place.writer.unregister(2))
    assert await place.register(three)


async def test_an_older_metadata_version_has_no_registrations():
    place = Place(6)
    assert await place.refused(place.register()) == 35


async def test_a_stranger_is_told_so():
    place = Place()
    assert await place.refused(place.beat(0)) == 77
    assert await place.refused(committed(place.writer.unregister(2))) == 102


async def test_unregistering_ends_the_session():
    place = Place()
    await place.beat(await place.register())
    await committed(place.writer.unregister(2))
    assert len(place.cluster) == 0
    assert await place.register(AGAIN)


async def test_only_the_silent_are_fenced():
    place = Place()
    two, three = await place.register(), await place.register(THREE)
    await place.beat(two)
    await place.beat(three, broker_id=3)
    place.now = 5
    await place.beat(three, broker_id=3)
    place.now = 10
    assert await committed(place.writer.fence_silent()) == [2]
    assert [each.fenced for each in place.cluster.brokers()] == [True, False]
    assert await committed(place.writer.fence_silent()) == []
    assert await place.beat(two) == reply(fenced=False), "it is back"


async def test_a_dead_one_is_fenced_although_a_registration_of_its_id_failed():
    place = Place()
    await place.beat(await place.register())
    place.now = 9
    with pytest.raises(EncodeError):
        await place.register(evolve(AGAIN, rack="x" * 40_000))
    place.now = 18
    assert await committed(place.writer.fence_silent()) == [2]


async def test_a_controller_that_takes_over_gives_the_living_a_whole_session():
    first = Place()
    await first.beat(await first.register())
    await first.register(THREE)
    place = Place(log=first.log)
    assert await place.refused(place.register(AGAIN)) == 101
    assert await place.register(evolve(THREE, incarnation_id=UUID(int=1002))), "a fenced one has no session"
    place.now = 8.9
    assert await committed(place.writer.fence_silent()) == []
    place.now = 9
    assert await committed(place.writer.fence_silent()) == [2]
    with suppress(RequestError):
        await place.beat(1)


async def test_a_paused_controller_gives_everybody_another_session(monkeypatch):
    place = Place()
    await place.beat(await place.register())
    turns = iter((0.1, 20.0, 1.0, 9.0))
    naps = []

    async def sleep(seconds):
        naps.append(seconds)
        try:
            place.now += next(turns)
        except StopIteration:
            raise asyncio.CancelledError from None

    monkeypatch.setattr("aclog.server.controller.registrations.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await place.writer.run()
    assert naps[0] == 9 / 8
    assert not place.cluster.get(2).fenced


async def test_the_records_are_kafkas():
    place = Place()
    await place.beat(await place.register())
    written = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, fenced=-1)
    assert encode_record(written) in bytes(place.log.read(2))
    assert encode_record(NoOpRecord()) not in bytes(place.log.read(2))
