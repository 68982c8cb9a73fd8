"""The mark file: two slots, the newest valid one counts, and only until a Kafka writes to the log."""

from contextlib import suppress
from pathlib import Path

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.committed_mark import (
    MARK_FILE,
    Mark,
    MarkFile,
    create_mark_file,
    decode_slot,
    decode_slots,
    encode_slot,
    open_valid_mark_file,
)
from tests.support.builders.log_files import small_log

EXAMPLE = bytes.fromhex("4148574d 0001 00000002 00000000000001f4") + bytes(490) + bytes.fromhex("c188a851")


@pytest.fixture
def marks(tmp_path):
    file = create_mark_file(tmp_path, Mark(epoch=1, offset=10))
    yield file
    file.close()


def test_the_bytes_of_a_slot():
    assert encode_slot(Mark(epoch=2, offset=500)) == EXAMPLE
    assert decode_slot(EXAMPLE) == Mark(epoch=2, offset=500)


def test_what_is_published_is_read(marks, tmp_path):
    reader = MarkFile.open(tmp_path)
    for offset in range(11, 30):
        marks.publish(Mark(epoch=1, offset=offset))
        assert reader.read() == Mark(epoch=1, offset=offset)
        assert (tmp_path / MARK_FILE).stat().st_size == 1024
    reader.close()


@pytest.mark.parametrize("written", [0, 1, 14, 100, 511])
def test_a_half_written_slot_leaves_the_previous_mark(marks, tmp_path, written):
    marks.publish(Mark(epoch=1, offset=11))
    before = (tmp_path / MARK_FILE).read_bytes()
    marks.publish(Mark(epoch=1, offset=12))
    after = (tmp_path / MARK_FILE).read_bytes()
    changed = next(position for position in range(1024) if before[position] != after[position]) // 512 * 512
    cut = changed + written
    (tmp_path / MARK_FILE).write_bytes(after[:cut] + before[cut:])
    reader = MarkFile.open(tmp_path)
    assert reader.read().offset == 11
    reader.close()


def test_a_writer_continues_in_the_older_slot(marks, tmp_path):
    marks.publish(Mark(epoch=1, offset=11))
    again = MarkFile.open(tmp_path, writable=True)
    assert again.read().offset == 11
    again.publish(Mark(epoch=1, offset=12))
    assert sorted(slot.offset for slot in decode_slots((tmp_path / MARK_FILE).read_bytes())) == [11, 12]
    again.close()


def test_a_later_epoch_outranks_a_higher_offset(marks):
    marks.publish(Mark(epoch=2, offset=5))
    assert marks.read() == Mark(epoch=2, offset=5)


@pytest.mark.parametrize("content", [b"", bytes(1023), bytes(1024), bytes(1025), EXAMPLE])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / MARK_FILE).write_bytes(content)
    marks = MarkFile.open(tmp_path)
    with pytest.raises(DecodeError, match=MARK_FILE):
        marks.read()
    marks.close()


def test_another_version_is_refused(tmp_path):
    head = EXAMPLE[:4] + b"\0\2" + EXAMPLE[6:508]
    with pytest.raises(DecodeError, match="version 1"):
        decode_slot(head + crc32c.crc32c(head).to_bytes(4, "big"))


@given(st.binary(max_size=1100))
def test_arbitrary_bytes_are_slots_or_an_error(content):
    with suppress(DecodeError):
        assert len(decode_slots(content)) == 2


def test_the_mark_is_stale_once_a_kafka_wrote_to_the_log(tmp_path):
    """A Kafka that takes over the log begins an epoch that the mark's writer never had."""
    directory = small_log(tmp_path / "log")
    with open_log(directory) as log:
        end = log.end_offset()
    (directory / "leader-epoch-checkpoint").write_text(f"0\n2\n1 0\n2 {end}\n")
    assert open_valid_mark_file(directory) is None
    with open_reader(directory) as reader:
        assert "treated as committed" in reader.notes[0]
    with open_log(directory, new_epoch=True) as log:
        assert log.leader_epoch == 3
    with open_reader(directory) as reader:
        assert reader.notes == ()


def test_the_bytes_of_a_slot_are_documented():
    page = (Path(__file__).parents[3] / "docs" / "format.md").read_text()
    assert f"{EXAMPLE[:18].hex(' ')} ... {EXAMPLE[-4:].hex(' ')}" in page
