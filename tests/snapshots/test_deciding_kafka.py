"""Which generations may decide on a state: as named, as brokers answer, as they registered, or any."""

from uuid import UUID

import pytest
from attrs import evolve

from aclog.authorizer.generation import Generation
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import BrokerFeature, RegisterBrokerRecord
from aclog.snapshots.cluster import ClusterImage
from aclog.snapshots.deciding_kafka import deciding_kafka, settled
from aclog.snapshots.image import Image
from tests.support.builders.acls import acl
from tests.support.web.points import image_of

OLD, NEW = Generation.V4_3, Generation.V4_4
RANGE = image_of(acl("t", "User:a", "10.0.0.0/8"))
UNSTATED = Settings(is_kafka_stated=False)


def registered(image: Image, *brokers: dict[str, int]) -> Image:
    """The same state with brokers that support features up to these levels."""
    records = [
        RegisterBrokerRecord(
            broker_id=number,
            incarnation_id=UUID(int=number),
            broker_epoch=1,
            end_points=(),
            features=tuple(
                BrokerFeature(name=name, min_supported_version=1, max_supported_version=level)
                for name, level in features.items()
            ),
        )
        for number, features in enumerate(brokers)
    ]
    return evolve(image, cluster=ClusterImage.EMPTY.apply(enumerate(records)))


def at(level: int) -> dict[str, int]:
    return {"metadata.version": level}


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (RANGE, (OLD, NEW)),
        (registered(RANGE, at(30), at(31)), (OLD,)),
        (registered(RANGE, at(32), at(33)), (NEW,)),
        (registered(RANGE, at(30), at(33)), (OLD, NEW)),
        (registered(RANGE, {}), (OLD,)),
        (registered(RANGE, {**at(30), "aclog.cidr": 1}), (NEW,)),
        (evolve(RANGE, live_levels={1: 33, 2: 33}), (NEW,)),
        (evolve(RANGE, live_levels={1: 33, 2: None}), (OLD, NEW)),
        (evolve(RANGE, live_levels={1: 30, 2: None}), (OLD, NEW)),
        (evolve(RANGE, live_levels={}), (OLD, NEW)),
        (evolve(registered(RANGE, at(30)), live_levels={0: 33}), (NEW,)),
    ],
)
def test_it_is_what_the_brokers_state_and_any_where_one_does_not(image, expected):
    assert deciding_kafka(image, None).generations == expected
    for named in Generation:
        assert deciding_kafka(image, named).generations == (named,)


@pytest.mark.parametrize("host", ["*", "10.0.0.1", "10.0.0.0/33", "a/b"])
def test_without_a_range_every_kafka_decides_alike(host):
    assert deciding_kafka(image_of(acl("t", "User:a", host)), None).is_known


def test_one_answer_needs_one_kafka_and_the_reason_is_named():
    assert settled(UNSTATED, registered(RANGE, at(33))) == Settings(cidr=True)
    assert settled(Settings(), registered(RANGE, at(33))) == Settings()
    for image, reason in (
        (RANGE, "the source does not state the version of its brokers"),
        (registered(RANGE, at(30), at(33)), "the brokers differ: broker 0 runs Kafka 4.3, broker 1 runs Kafka 4.4"),
        (evolve(RANGE, live_levels={1: 33, 7: None}), "broker 7 did not answer which Kafka it runs"),
    ):
        with pytest.raises(ConfigError) as refused:
            settled(UNSTATED, image)
        assert str(refused.value).startswith(f"{reason}, and 1 host of ACLs such as 10.0.0.0/8 is a range")
