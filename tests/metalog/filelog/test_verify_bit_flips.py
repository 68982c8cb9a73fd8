"""Every single-bit flip of a small log is found by verify, and no reader returns wrong records.

Not covered, as they contain no state of the log: quorum-state, partition.metadata, aclog.lock. Every bit of a segment,
of the mark file and of leader-epoch-checkpoint matters: it is covered by a CRC, or is part of a length, a magic, a base
offset (continuity) or an epoch (leader-epoch-checkpoint).
"""

import pytest

from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.committed_mark import MARK_FILE, Mark, decode_slots, encode_slot
from aclog.metalog.filelog.files import EPOCHS_FILE
from aclog.metalog.filelog.verify import verify
from tests.support.builders.log_files import flips, read_directory, segment_paths, small_log


def read_or_error(directory):
    try:
        return read_directory(directory)
    except MetadataError:
        return None


def test_every_flip_in_a_segment_is_found_and_never_read(tmp_path):
    directory = small_log(tmp_path / "log", 1)
    whole = read_directory(directory)
    for place in flips(segment_paths(directory)[0]):
        assert list(verify(directory)), place
        assert read_or_error(directory) is None, place
    assert read_directory(directory) == whole
    assert list(verify(directory)) == []


def test_every_flip_in_a_segment_stops_a_writer(tmp_path):
    directory = small_log(tmp_path / "log", 1)
    path = segment_paths(directory)[0]
    size = path.stat().st_size
    for place in flips(path):
        with pytest.raises(MetadataError, match=path.name):
            open_log(directory)
        assert path.stat().st_size == size, place


def test_every_flip_without_a_mark_is_found_and_what_is_read_is_true(tmp_path):
    """Without a mark, damage in the last batch looks like a torn tail: it is ignored, and the reader says so."""
    directory = small_log(tmp_path / "log", 2, mark=False)
    whole = read_directory(directory)
    for place in flips(segment_paths(directory)[0]):
        assert list(verify(directory)), place
        assert read_or_error(directory) in (None, whole[:-1]), place


def test_every_flip_in_the_mark_file_is_found_and_what_is_read_is_true(tmp_path):
    """Only a few bytes of the padding are tried here: it is covered by the CRC alone (see the next test)."""
    directory = small_log(tmp_path / "log", 2)
    whole = read_directory(directory)
    slot = [*range(20), 300, *range(508, 512)]
    for place in flips(directory / MARK_FILE, slot + [512 + position for position in slot]):
        assert list(verify(directory)), place
        assert read_or_error(directory) in (whole, whole[:-1]), place


def test_every_flip_in_a_slot_leaves_only_the_other_slot():
    slots = encode_slot(Mark(epoch=1, offset=2)) + encode_slot(Mark(epoch=3, offset=4))
    for number in range(8 * len(slots)):
        damaged = bytearray(slots)
        damaged[number // 8] ^= 1 << number % 8
        first, second = decode_slots(bytes(damaged))
        if number < 4 * len(slots):
            assert (first, second) == (None, Mark(epoch=3, offset=4))
        else:
            assert (first, second) == (Mark(epoch=1, offset=2), None)


def test_every_flip_in_the_epochs_is_found_and_what_is_read_is_true(tmp_path):
    directory = small_log(tmp_path / "log", 2)
    open_log(directory, new_epoch=True).close()
    whole = read_or_error(directory)
    for place in flips(directory / EPOCHS_FILE):
        assert list(verify(directory)), place
        assert read_or_error(directory) in (None, whole), place
