"""A node's merger says what it did in metrics, and what went wrong in the log, too."""

import pytest

from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.server.node import merger_of
from aclog.server.telemetry import Metrics
from aclog.snapshots.applier import Applier
from aclog.snapshots.compaction import FoldError
from aclog.snapshots.publisher import Publisher
from tests.support.builders.state_records import acl
from tests.support.processes.waiting import wait_until


class Fails:
    def fold(self, _acls):
        raise FoldError("it was ended by SIGKILL")

    def tidy(self):
        pass

    def close(self):
        pass


@pytest.fixture
def node():
    publisher, metrics = Publisher(applier=Applier(bulk_bytes=1 << 60)), Metrics(process=False)
    merger = merger_of(publisher, metrics)
    yield publisher, metrics, merger
    merger.close()


def change(publisher, count):
    records = [encode_record(acl(n)) for n in range(count)]
    publisher.advance(build_batch(records, base_offset=0, leader_epoch=1, timestamp=1))


def value(metrics, name):
    return metrics.registry.get_sample_value(name)


def test_a_merge_is_counted(node):
    publisher, metrics, _ = node
    change(publisher, 300)
    wait_until(lambda: value(metrics, "aclog_merge_duration_seconds_count") == 1)
    assert value(metrics, "aclog_overlay_changes") == 0
    assert value(metrics, "aclog_merge_failures_total") == 0


def test_a_failure_is_counted_and_logged(node, caplog):
    publisher, metrics, merger = node
    merger.folder = Fails()
    change(publisher, 300)
    wait_until(lambda: value(metrics, "aclog_merge_failures_total") == 1)
    assert value(metrics, "aclog_overlay_changes") == 300
    wait_until(lambda: caplog.records)
    assert "could not merge 300 changes" in caplog.text
    assert "ended by SIGKILL" in caplog.text
