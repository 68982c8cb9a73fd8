"""quorum-state: accepts Kafka's JSON in both versions and nothing else."""

import pytest

from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.files import (
    QUORUM_STATE_FILE,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
    read_quorum_state,
    write_quorum_state,
)
from tests.support.builders.log_files import KAFKA_LOGS


@pytest.mark.parametrize("log", KAFKA_LOGS, ids=lambda path: path.parent.name)
def test_a_kafkas_file_is_read_and_written_to_the_byte(log):
    state = read_quorum_state(log)
    assert state == QuorumState(leader_id=1, leader_epoch=2)
    assert encode_quorum_state(state) == (log / QUORUM_STATE_FILE).read_bytes()


def test_voters_are_in_the_file_in_version_0(tmp_path):
    state = QuorumState(leader_id=3, leader_epoch=7, voters=(1, 2, 3))
    write_quorum_state(tmp_path, state)
    assert (tmp_path / QUORUM_STATE_FILE).read_bytes() == (
        b'{"clusterId":"","leaderId":3,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
    )
    assert read_quorum_state(tmp_path) == state


def test_a_new_leader_forgets_the_vote():
    state = QuorumState(leader_id=-1, leader_epoch=4, voted_id=2, voted_directory_id="JCfGj5ocQb6uGSddU7P83A")
    assert state.led_by(1, 5) == QuorumState(leader_id=1, leader_epoch=5)


def test_a_missing_file_is_none(tmp_path):
    assert read_quorum_state(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        b"\xff",
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1}',
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":2}',
        b'{"leaderId":1,"leaderEpoch":"2","votedId":-1,"data_version":1}',
        b'{"leaderId":true,"leaderEpoch":2,"votedId":-1,"data_version":1}',
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":0}',
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"currentVoters":[1],"data_version":0}',
    ],
)
def test_anything_else_is_refused(content, tmp_path):
    (tmp_path / QUORUM_STATE_FILE).write_bytes(content)
    with pytest.raises(DecodeError, match=QUORUM_STATE_FILE):
        read_quorum_state(tmp_path)
    with pytest.raises(DecodeError):
        decode_quorum_state(content)
