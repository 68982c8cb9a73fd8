"""leader-epoch-checkpoint: accepts Kafka's text format and nothing else."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.files import EPOCHS_FILE, decode_epochs, encode_epochs, epoch_at, read_epochs, write_epochs
from tests.support.builders.log_files import KAFKA_LOGS


def starts(*pairs):
    return tuple(EpochStart(epoch=epoch, start_offset=offset) for epoch, offset in pairs)


@pytest.mark.parametrize(
    ("log", "expected"), [(KAFKA_LOGS[0], ((1, 0), (2, 116))), (KAFKA_LOGS[1], ((1, 0), (2, 15241)))]
)
def test_a_kafkas_file_is_read_and_written_to_the_byte(log, expected):
    assert read_epochs(log) == starts(*expected)
    assert encode_epochs(starts(*expected)) == (log / EPOCHS_FILE).read_bytes()


def test_a_missing_file_is_none(tmp_path):
    assert read_epochs(tmp_path) is None
    write_epochs(tmp_path, ())
    assert (tmp_path / EPOCHS_FILE).read_bytes() == b"0\n0\n"
    assert read_epochs(tmp_path) == ()


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**62)), unique_by=lambda pair: pair[0]))
def test_round_trip_of_any_ascending_epochs(pairs):
    epochs = sorted(pair[0] for pair in pairs)
    offsets = sorted(pair[1] for pair in pairs)
    expected = starts(*zip(epochs, offsets, strict=True))
    assert decode_epochs(encode_epochs(expected)) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0",
        b"0\n",
        b"1\n0\n",
        b"0\n1\n",
        b"0\n1\n1 0",
        b"0\n1\n1 0\n2 5\n",
        b"0\n1\n1\n",
        b"0\n1\n1 0 0\n",
        b"0\n1\n1  0\n",
        b"0\n1\n-1 0\n",
        b"0\n1\n1 -1\n",
        b"0\n1\n01 0\n",
        b"0\n2\n2 0\n1 5\n",
        b"0\n2\n1 5\n1 6\n",
        b"0\n2\n1 5\n2 4\n",
        "0\n1\n\u0661 0\n".encode(),
        b"0\n1\n1 0\n\n",
        b"0\n1\n" + b"9" * 5000 + b" 0\n",
    ],
)
def test_anything_else_is_refused(content, tmp_path):
    (tmp_path / EPOCHS_FILE).write_bytes(content)
    with pytest.raises(DecodeError, match=EPOCHS_FILE):
        read_epochs(tmp_path)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_decode_or_raise_a_decode_error(content):
    with suppress(DecodeError):
        assert encode_epochs(decode_epochs(content)) == content


def test_the_epoch_of_an_offset():
    known = starts((1, 0), (2, 116), (5, 116), (6, 300))
    assert [epoch_at(known, offset) for offset in (0, 115, 116, 299, 300, 10**9)] == [1, 1, 5, 5, 6, 6]
    assert epoch_at(starts((3, 10)), 9) is None
    assert epoch_at((), 0) is None
