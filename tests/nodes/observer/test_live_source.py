"""A live quorum as a source of states."""

from pathlib import Path

import pytest

from aclog.authorizer.acl import ChangePlace
from aclog.client.errors import CommittedRecordsLostError
from aclog.client.fetching import EpochEnd
from aclog.config.node_config import ClientSecurity
from aclog.metalog.errors import LogError
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import StateSource
from aclog.sources.live import QuorumSource
from tests.nodes.observer.test_follower import acl


@pytest.fixture
def source(quorum, leader):
    for number in range(10):
        quorum.append([acl(number)], timestamp=1000 * number)
    source: StateSource = QuorumSource(controllers=(leader.address,), security=ClientSecurity(), notify=print)
    yield source
    source.close()


def test_the_newest_state_follows_the_log(quorum, leader, source):
    assert len(source.image().acls) == 10
    quorum.append([acl(10)])
    assert source.log.wait(10, 30)
    assert len(source.image().acls) == 11
    assert source.name == str(leader.address)
    assert source.change_place == ChangePlace(bootstrap_controller=str(leader.address))


def test_states_of_the_past(quorum, source):
    assert len(source.image_at(3).acls) == 3
    assert len(source.image().acls) == 10
    assert len(source.image_at(0).acls) == 0
    with pytest.raises(LogError, match="as of 11: expected an offset or a time from 0 to 10"):
        source.image_at(11)


def test_a_snapshot_taken_meanwhile(quorum, leader, source, tmp_path: Path):
    assert len(source.image().acls) == 10
    leader.faults.cut = 1 << 30
    leader.cut_all()
    quorum.append([acl(10)])
    image = Applier().apply(quorum.committed)
    data = write_checkpoint(image, tmp_path).read_bytes()
    quorum.forget_below(EpochEnd(epoch=image.epoch, end_offset=image.end_offset), data)
    quorum.append([acl(11)])
    leader.faults.cut = 0
    assert source.log.wait(11, 30)
    assert len(source.image().acls) == 12
    with pytest.raises(LogError, match="expected an offset or a time from 11 to 12"):
        source.image_at(5)


def test_a_quorum_that_is_formatted_again_has_no_newest_state(quorum, leader, source):
    assert len(source.image().acls) == 10
    with leader.down():
        quorum.wipe(1)
        quorum.append([acl(50)])
    with pytest.raises(CommittedRecordsLostError, match="another batch than was committed"):
        source.log.wait(100, 30)
    with pytest.raises(CommittedRecordsLostError):
        source.image()
