"""When the generations of Kafka that may decide changed."""

import pytest

from aclog.authorizer.settings import Generation
from aclog.metalog.errors import ReplayError
from aclog.metalog.filelog import open_reader
from aclog.metalog.records import (
    FeatureLevelRecord,
    FenceBrokerRecord,
    OpaqueRecord,
    RecordType,
    UnregisterControllerRecord,
)
from aclog.snapshots.deciding_kafka import kafka_history
from aclog.snapshots.image import Image
from tests.support.builders.records import controller_registration
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration

OLD, NEW = Generation.V4_3, Generation.V4_4
BOTH = OLD, NEW


def controller(number: int, level: int) -> OpaqueRecord:
    value = controller_registration(number, level)
    return OpaqueRecord(api_key=RecordType.REGISTER_CONTROLLER_RECORD, version=0, value=value)


def test_an_inconsistency_is_reported_with_path_and_offset(tmp_path):
    log = write_log(tmp_path, [registration(1, 30)], [FenceBrokerRecord(id=2, epoch=2)])
    with open_reader(log) as reader:
        found = kafka_history(Image.EMPTY, reader)
        assert [next(found).offset, next(found).offset] == [0, 0]
        with pytest.raises(ReplayError, match=f"{log}: offset 1: .* broker 2, which is not registered"):
            next(found)


def test_controllers_count_where_they_decide(tmp_path):
    """They are upgraded after the brokers here, and one is gone without."""
    steps = (
        [controller(8, 30), controller(9, 30)],
        [registration(1, 30)],
        [registration(1, 33)],
        [controller(9, 33)],
        [UnregisterControllerRecord(controller_id=8)],
    )
    with open_reader(write_log(tmp_path, *steps)) as reader:
        of_brokers = [(each.offset, each.kafka.generations) for each in kafka_history(Image.EMPTY, reader)]
        of_all = list(kafka_history(Image.EMPTY, reader, controllers=True))
    assert of_brokers == [(0, BOTH), (2, (OLD,)), (3, (NEW,))]
    assert [(each.offset, each.kafka.generations, each.kafka.of_brokers) for each in of_all] == [
        (0, BOTH, BOTH), (1, BOTH, BOTH), (2, (OLD,), (OLD,)), (3, BOTH, (NEW,)), (5, (NEW,), (NEW,)),
    ]  # fmt: skip
    assert str(of_all[-2]) == "the nodes differ: controllers 8, 9 run Kafka 4.3, broker 1 runs Kafka 4.4"
    assert str(of_all[-1]) == "all nodes run Kafka 4.4"


def test_a_level_that_only_one_kafka_supports_is_what_all_nodes_run(tmp_path):
    """Whatever else the log shows of them, and until it is lowered."""
    level = [FeatureLevelRecord(name="metadata.version", feature_level=each) for each in (33, 30)]
    with open_reader(write_log(tmp_path, [level[0]], [level[1]])) as reader:
        changes = [
            (each.offset, each.kafka.generations, each.kafka.stated)
            for each in kafka_history(Image.EMPTY, reader, controllers=True)
        ]
    assert changes == [(0, BOTH, None), (0, (NEW,), NEW), (1, BOTH, None)]
