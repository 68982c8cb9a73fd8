"""Which generations may decide on a state: as named, as brokers answer, as they registered, or any."""

from uuid import UUID

import pytest
from attrs import evolve

from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import BrokerFeature, FeatureLevelRecord, OpaqueRecord, RecordType, RegisterBrokerRecord
from aclog.snapshots.deciding_kafka import deciding_kafka, ranges_concern_controllers, settled
from aclog.snapshots.image import ClusterImage, Image, OpaqueChange, effect_of
from tests.support.builders.acls import acl
from tests.support.builders.records import controller_registration
from tests.support.web.points import image_of

OLD, NEW = Generation.V4_3, Generation.V4_4
RANGE = image_of(acl("t", "User:a", "10.0.0.0/8"))
ADMIN = acl("kafka-cluster", "User:a", "10.0.0.0/8", AclOperation.ALTER, resource_type=ResourceType.CLUSTER)
BY_CONTROLLERS = image_of(acl("t", "User:a", "10.0.0.0/8"), ADMIN)
"""A state with a range that matters to CreateAcls, which a controller decides."""
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


def with_controllers(image: Image, *values: bytes) -> Image:
    """The same state after these registrations of controllers."""
    records = (OpaqueRecord(api_key=RecordType.REGISTER_CONTROLLER_RECORD, version=0, value=each) for each in values)
    changes = [OpaqueChange(effect=effect_of(record), value=record.value) for record in records]
    return evolve(image, opaque=image.opaque.apply(changes))


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
        (
            evolve(
                RANGE, features=RANGE.features.apply([FeatureLevelRecord(name="metadata.version", feature_level=31)])
            ),
            (OLD, NEW),
        ),
        (
            evolve(
                RANGE, features=RANGE.features.apply([FeatureLevelRecord(name="metadata.version", feature_level=32)])
            ),
            (NEW,),
        ),
        (evolve(RANGE, generation=OLD), (OLD,)),
        (with_controllers(registered(RANGE, at(33)), controller_registration(9, 30)), (NEW,)),
        (registered(BY_CONTROLLERS, at(33)), (OLD, NEW)),
        (with_controllers(registered(BY_CONTROLLERS, at(33)), controller_registration(9, 33)), (NEW,)),
        (with_controllers(registered(BY_CONTROLLERS, at(30)), controller_registration(9, 30)), (OLD,)),
        (with_controllers(registered(BY_CONTROLLERS, at(33)), controller_registration(9, 30)), (OLD, NEW)),
        (
            with_controllers(registered(BY_CONTROLLERS, at(33)), *(controller_registration(9, n) for n in (30, 33))),
            (NEW,),
        ),
        (with_controllers(registered(BY_CONTROLLERS, at(33)), controller_registration(9, 33)[:30]), (OLD, NEW)),
        (evolve(BY_CONTROLLERS, live_levels={1: 33}), (OLD, NEW)),
        (evolve(BY_CONTROLLERS, live_levels={1: 33}, live_controllers={1: 33}), (NEW,)),
        (evolve(BY_CONTROLLERS, live_levels={1: 33}, live_controllers={1: 33, 9: None}), (OLD, NEW)),
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
        (RANGE, "the version of the brokers is unknown"),
        (registered(RANGE, at(30), at(33)), "the brokers differ: broker 0 runs Kafka 4.3, broker 1 runs Kafka 4.4"),
        (evolve(RANGE, live_levels={1: 33, 7: None}), "it is unknown which Kafka broker 7 runs"),
        (evolve(RANGE, live_levels={1: None, 7: None}), "it is unknown which Kafka brokers 1, 7 run"),
        (
            evolve(BY_CONTROLLERS, live_levels={1: 33}, live_controllers={8: None, 9: None}),
            "it is unknown which Kafka controllers 8, 9 run",
        ),
        (registered(BY_CONTROLLERS, at(33)), "the version of the controllers is unknown"),
        (
            with_controllers(BY_CONTROLLERS, controller_registration(9, 33)),
            "the version of the brokers is unknown",
        ),
        (
            with_controllers(registered(BY_CONTROLLERS, at(30), at(33)), controller_registration(1, 33)),
            "the nodes differ: broker 0 runs Kafka 4.3, broker 1 and controller 1 run Kafka 4.4",
        ),
    ):
        with pytest.raises(ConfigError) as refused:
            settled(UNSTATED, image)
        assert str(refused.value).startswith(f"{reason}, and 1 host of ACLs such as 10.0.0.0/8 is a range")


def test_controllers_count_for_what_they_decide():
    """All brokers of 4.3, the controllers of 4.4: who reads a topic is decided by brokers alone."""
    image = with_controllers(registered(BY_CONTROLLERS, at(30)), controller_registration(9, 33))
    alter, read = (ResourceType.CLUSTER, AclOperation.ALTER), (ResourceType.TOPIC, AclOperation.READ)
    for asked, expected in (([alter], (OLD, NEW)), ([read], (OLD,)), ([read, alter], (OLD, NEW)), (None, (OLD, NEW))):
        concerned = ranges_concern_controllers(image.acls, asked)
        found = deciding_kafka(image, None, controllers=concerned)
        assert found.generations == expected
        assert found.only_controllers == expected[1:]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (ADMIN, True),
        (evolve(ADMIN, permission_type=AclPermissionType.DENY), True),
        (evolve(ADMIN, host="10.0.0.1"), False),
        (evolve(ADMIN, host="10.0.0.0/33"), False),
        (evolve(ADMIN, operation=AclOperation.IDEMPOTENT_WRITE), False),
        (acl("t", host="10.0.0.0/8", operation=AclOperation.WRITE), False),
        (acl("t", host="10.0.0.0/8", operation=AclOperation.DESCRIBE), False),
        (acl("t", host="10.0.0.0/8", operation=AclOperation.DELETE), True),
        (acl("t", host="10.0.0.0/8", operation=AclOperation.ALL), True),
        (acl("t", host="10.0.0.0/8", operation=AclOperation.ALL, resource_type=ResourceType.TRANSACTIONAL_ID), False),
        (acl("g", host="10.0.0.0/8", operation=AclOperation.READ, resource_type=ResourceType.GROUP), False),
        (acl("g", host="10.0.0.0/8", operation=AclOperation.ALTER_CONFIGS, resource_type=ResourceType.GROUP), True),
    ],
)
def test_a_range_concerns_controllers_by_type_and_operation(rule, expected):
    plain = acl("other", "User:b/c")  # a principal with a slash has no range
    assert ranges_concern_controllers(image_of(plain, rule).acls) is expected
    assert ranges_concern_controllers(image_of(plain, rule).acls, [(ResourceType.TOPIC, AclOperation.READ)]) is False
