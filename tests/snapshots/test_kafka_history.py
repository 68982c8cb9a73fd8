"""When the generations of Kafka that may decide changed."""

import pytest

from aclog.metalog.errors import ReplayError
from aclog.metalog.filelog import open_reader
from aclog.metalog.records import FenceBrokerRecord
from aclog.snapshots.deciding_kafka import kafka_history
from aclog.snapshots.image import Image
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration


def test_an_inconsistency_is_reported_with_path_and_offset(tmp_path):
    log = write_log(tmp_path, [registration(1, 30)], [FenceBrokerRecord(id=2, epoch=2)])
    with open_reader(log) as reader:
        found = kafka_history(Image.EMPTY, reader)
        assert [next(found).offset, next(found).offset] == [0, 0]
        with pytest.raises(ReplayError, match=f"{log}: offset 1: .* broker 2, which is not registered"):
            next(found)
