"""Retention: whole segments below a checkpoint are removed, crash-safe, while readers are active."""

import pytest

from aclog.metalog.control_records import SnapshotFooter, SnapshotHeader, control_batch
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import files, open_log, open_reader
from aclog.metalog.filelog.files import EPOCHS_FILE, checkpoint_name
from aclog.metalog.filelog.verify import verify
from tests.support.builders.log_files import read_batches, segment_paths, small_log


@pytest.fixture
def log(tmp_path):
    directory = small_log(tmp_path / "log", 40, segment_bytes=400)
    with open_log(directory, segment_bytes=400) as log:
        yield log


def bases(log):
    return [int(path.stem) for path in segment_paths(log.directory)]


def checkpoint(log, end):
    """Write a valid checkpoint of an empty state; its content does not matter here."""
    header = control_batch(SnapshotHeader(last_contained_log_timestamp=1), base_offset=0, leader_epoch=1, timestamp=1)
    footer = control_batch(SnapshotFooter(), base_offset=1, leader_epoch=1, timestamp=1)
    path = log.directory / checkpoint_name(end, 1)
    path.write_bytes(header + footer)
    return path


def test_segments_entirely_below_the_offset_are_removed(log):
    before, batches = bases(log), read_batches(log)
    checkpoint(log, before[3] + 1)
    with open_reader(log.directory) as reader:
        assert reader.start_offset() == 0
        assert log.delete_segments_below(before[3] + 1) == before[3] == log.start_offset()
        assert bases(log) == before[3:]
        assert reader.start_offset() == before[3]
        assert read_batches(reader) == read_batches(log) == [one for one in batches if one[0] >= before[3]]
        for gone in (reader, log):
            with pytest.raises(LogError, match="outside"):
                gone.read(before[3] - 1)
    assert not list(log.directory.glob("*.deleted"))


def test_a_segment_that_contains_the_offset_stays(log):
    before = bases(log)
    checkpoint(log, before[1])
    assert log.delete_segments_below(before[1] - 1) == 0
    assert bases(log) == before


def test_the_last_segment_always_stays(log):
    checkpoint(log, log.end_offset())
    last = bases(log)[-1]
    assert log.delete_segments_below(10**9) == last
    assert bases(log) == [last]
    assert log.append([b"x"], timestamp=0).result(60).last_offset + 1 == log.end_offset()


def test_without_a_checkpoint_nothing_is_removed(log):
    before = bases(log)
    checkpoint(log, before[2] - 1)
    with pytest.raises(LogError, match="no valid checkpoint"):
        log.delete_segments_below(before[2])
    assert bases(log) == before


@pytest.mark.parametrize("cut", [0, 61, -1])
def test_a_damaged_checkpoint_does_not_allow_removal(log, cut):
    before = bases(log)
    path = checkpoint(log, before[3])
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(LogError, match="no valid checkpoint"):
        log.delete_segments_below(before[3])
    assert bases(log) == before
    checkpoint(log, before[2])
    assert log.delete_segments_below(before[2]) == before[2]


def test_after_reopening_the_log_verifies_only_with_its_checkpoint(log):
    start = bases(log)[2]
    checkpoint(log, start)
    log.delete_segments_below(start)
    log.close()
    with open_log(log.directory) as again:
        assert again.start_offset() == start
    assert not list(verify(log.directory))
    (log.directory / checkpoint_name(start, 1)).unlink()
    (finding,) = verify(log.directory)
    assert "no checkpoint covers what precedes it" in finding.what


@pytest.mark.parametrize("renamed", [1, 2])
def test_a_crash_between_renaming_and_unlinking(log, monkeypatch, renamed):
    before = bases(log)
    checkpoint(log, before[3])
    log.close()
    for path in segment_paths(log.directory)[:renamed]:
        path.rename(path.with_name(path.name + ".deleted"))
    with open_reader(log.directory) as reader:
        assert reader.start_offset() == before[renamed]
    with open_log(log.directory) as again:
        assert again.start_offset() == before[renamed]
    assert not list(log.directory.glob("*.deleted"))


def test_a_disk_error(log, monkeypatch):
    before = bases(log)
    checkpoint(log, before[3])

    def refuse(directory):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "fsync_directory", refuse)
    with pytest.raises(LogError, match="cannot remove segments"):
        log.delete_segments_below(before[3])
    assert log.start_offset() == before[3]


def test_the_check_finds_what_the_next_start_would_miss(log):
    epochs = (log.directory / EPOCHS_FILE).read_bytes()
    (log.directory / EPOCHS_FILE).unlink()
    with pytest.raises(LogError, match="leader-epoch-checkpoint: removed while the log is open"):
        log.check_files()
    (log.directory / EPOCHS_FILE).write_bytes(epochs)
    path = checkpoint(log, bases(log)[3])
    assert log.delete_segments_below(bases(log)[3])
    log.check_files()
    path.unlink()
    with pytest.raises(
        LogError, match="the checkpoints that cover what precedes it were removed while the log is open"
    ):
        log.check_files()
