"""The registered brokers of an image: what each record changes, and what is refused."""

from uuid import UUID

import pytest
from attrs import evolve

from aclog.metalog.errors import ReplayError
from aclog.metalog.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from aclog.snapshots.image import ClusterImage, register_broker_version

ONE = RegisterBrokerRecord(broker_id=1, incarnation_id=UUID(int=7), broker_epoch=5, end_points=(), features=())
TWO = evolve(ONE, broker_id=2, broker_epoch=6)
BOTH = ClusterImage.EMPTY.apply([(5, ONE), (6, TWO)])


def change(**fields):
    return BrokerRegistrationChangeRecord(version=3, broker_id=1, broker_epoch=5, **fields)


def test_registrations_by_id_and_an_older_image_stays():
    assert list(BOTH.brokers()) == [ONE, TWO]
    assert (BOTH.get(2), BOTH.get(3), len(BOTH)) == (TWO, None, 2)
    again = evolve(ONE, broker_epoch=9, fenced=False)
    assert BOTH.apply([(9, again)]).get(1) == again
    assert BOTH.get(1) == ONE
    gone = BOTH.apply([(9, UnregisterBrokerRecord(broker_id=2, broker_epoch=6))])
    assert list(gone.brokers()) == [ONE]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (UnfenceBrokerRecord(id=1, epoch=5), {"fenced": False}),
        (change(fenced=-1), {"fenced": False}),
        (change(), {}),
        (change(in_controlled_shutdown=1), {"in_controlled_shutdown": True}),
        (change(log_dirs=(UUID(int=3),)), {"log_dirs": (UUID(int=3),)}),
        (change(cordoned_log_dirs=()), {"cordoned_log_dirs": ()}),
    ],
)
def test_a_change_of_a_registration(record, expected):
    image = BOTH.apply([(7, record)])
    assert image.get(1) == evolve(ONE, **expected)
    assert image.get(2) == TWO
    assert image.apply([(8, change(fenced=1))]).get(1).fenced
    assert image.apply([(8, FenceBrokerRecord(id=1, epoch=5))]).get(1).fenced


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (FenceBrokerRecord(id=3, epoch=5), "FENCE_BROKER_RECORD for broker 3, which is not registered"),
        (UnfenceBrokerRecord(id=1, epoch=6), "for broker 1 with epoch 6: expected 5"),
        (UnregisterBrokerRecord(broker_id=1, broker_epoch=4), "for broker 1 with epoch 4: expected 5"),
        (evolve(change(), broker_id=9), "broker 9, which is not registered"),
        (change(fenced=2), "fenced is 2: expected -1, 0 or 1"),
        (change(in_controlled_shutdown=-1), "inControlledShutdown is -1: expected 0 or 1"),
    ],
)
def test_what_kafka_cannot_replay_is_refused_with_its_offset(record, what):
    with pytest.raises(ReplayError, match=what) as caught:
        BOTH.apply([(7, change(fenced=1)), (8, record)])
    assert caught.value.offset == 8


def test_the_version_of_a_registration_is_that_of_the_metadata_version():
    """As MetadataVersion.registerBrokerRecordVersion of Kafka 4.3.1."""
    found = {level: register_broker_version(level) for level in range(7, 31)}
    assert found == {7: 1, **dict.fromkeys(range(8, 17), 2), **dict.fromkeys(range(17, 30), 3), 30: 4}
    assert register_broker_version(0) == 4
    assert [each.version for each in BOTH.records(20)] == [3, 3]
