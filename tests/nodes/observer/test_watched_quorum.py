"""The library on a quorum that is followed: its history, and its changes as they are committed."""

from itertools import islice
from pathlib import Path

import pytest

import aclog
from aclog.client.errors import CommittedRecordsLostError
from aclog.client.fetching import EpochEnd
from aclog.metalog.codec import encode_record
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint
from tests.support.builders import state_records


def acl(number):
    return encode_record(state_records.acl(number))


def removal(number):
    return encode_record(state_records.removal(number))


@pytest.fixture
def log(quorum, leader):
    for number in range(3):
        quorum.append([acl(number)], timestamp=1000 * number)
    with aclog.open_log(bootstrap_controller=str(leader.address)) as opened:
        yield opened


def test_history_and_watch(quorum, log):
    image = log.image()
    assert [change.offset for change in log.history()] == [0, 1, 2]
    watch = log.watch(after=image)
    quorum.append([acl(3)], timestamp=3000)
    quorum.append([removal(1)], timestamp=4000)
    changes = list(islice(watch, 2))
    assert [(each.kind.value, each.offset, each.timestamp) for each in changes] == [
        ("ADDED", 3, 3000),
        ("REMOVED", 4, 4000),
    ]
    assert list(log.history())[3:] == changes
    assert log.history().to_dicts()[4]["change"] == "REMOVED"


def test_a_gap_is_told_and_what_changed_in_it(quorum, leader, log, tmp_path: Path):
    watch = log.watch(after=log.image())
    leader.faults.cut = 1 << 30
    leader.cut_all()
    quorum.append([acl(3)])
    quorum.append([removal(0)])
    quorum.append([acl(4)])
    quorum.append([removal(4)])
    image = Applier().apply(quorum.committed)
    data = write_checkpoint(image, tmp_path).read_bytes()
    quorum.forget_below(EpochEnd(epoch=image.epoch, end_offset=image.end_offset), data)
    quorum.append([acl(5)])
    leader.faults.cut = 0
    removed, came, later = islice(watch, 3)
    assert [(str(each.kind), each.gap) for each in (removed, came)] == [("REMOVED", True), ("ADDED", True)]
    # The newest state, after the gap, may or may not have the record after the snapshot yet.
    assert later.gap is (later.offset == removed.offset)
    assert removed.to_dict()["gap"] is True
    assert "or before" in str(removed)
    assert any("offsets 3 to " in note and "were not watched" in note for note in log.notes)


def test_a_quorum_that_is_another_ends_the_watch_with_an_error(quorum, leader, log):
    watch = log.watch(after=log.image())
    with leader.down():
        quorum.wipe(1)
        quorum.append([acl(50)])
    with pytest.raises(CommittedRecordsLostError):
        next(watch)


def test_a_cluster_that_is_silent_for_longer_than_max_age(quorum, leader):
    quorum.append([acl(0)])
    with aclog.open_log(bootstrap_controller=str(leader.address), max_age=1) as log:
        watch = log.watch(after=log.image())
        leader.faults.cut = 1 << 30
        leader.cut_all()
        with pytest.raises(aclog.StaleError, match="expected at most 1 s"):
            next(watch)
