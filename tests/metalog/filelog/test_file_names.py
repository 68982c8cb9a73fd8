"""File names of segments and checkpoints, as Kafka writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import LogError
from aclog.metalog.filelog import files as names
from tests.support.builders.log_files import KAFKA_LOGS


@given(st.integers(0, 2**63 - 1))
def test_round_trip_of_a_segment_name(base):
    assert names.parse_segment_name(names.segment_name(base)) == base


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1))
def test_round_trip_of_a_checkpoint_name(end, epoch):
    assert names.parse_checkpoint_name(names.checkpoint_name(end, epoch)) == (end, epoch)


def test_names_are_kafkas():
    assert names.segment_name(183) == "00000000000000000183.log"
    assert names.checkpoint_name(211, 2) == "00000000000000000211-0000000002.checkpoint"


@pytest.mark.parametrize(
    "name",
    [
        "183.log",
        "00000000000000000183.log.deleted",
        "00000000000000000183.index",
        "0000000000000000018٣.log",
        "99999999999999999999.log",
        "00000000000000000183.log\n",
    ],
)
def test_other_names_are_no_segments(name):
    assert names.parse_segment_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000211-0000000002.checkpoint.part",
        "00000000000000000211-0000000002-4711.checkpoint.part",
        "00000000000000000211-0000000002.checkpoint.deleted",
        "00000000000000000211-4294967295.checkpoint",
        "bootstrap.checkpoint",
        "leader-epoch-checkpoint",
    ],
)
def test_other_names_are_no_checkpoints(name):
    assert names.parse_checkpoint_name(name) is None


def test_a_kafkas_directory_is_listed():
    small = KAFKA_LOGS[0]
    assert [file.base_offset for file in names.list_segments(small)] == [0, 183]
    assert [(file.end_offset, file.epoch) for file in names.list_checkpoints(small)] == [
        (0, 0),
        (69, 1),
        (116, 1),
        (163, 2),
        (211, 2),
    ]


def test_a_directory_that_cannot_be_listed(tmp_path):
    with pytest.raises(LogError, match="nowhere: no such file or directory"):
        names.list_checkpoints(tmp_path / "nowhere")
