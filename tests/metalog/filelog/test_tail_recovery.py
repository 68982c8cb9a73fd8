"""Truncation at every byte, damage below the mark, whole batches above it, interrupted creation and epochs."""

import os
import shutil
import tracemalloc

import pytest

from aclog.metalog.batches import build_batch
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import DecodeError, EncodeError, LogError, ReplayError
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.committed_mark import MARK_FILE, Mark, MarkFile
from aclog.metalog.filelog.files import read_epochs, read_quorum_state
from aclog.metalog.filelog.verify import verify
from tests.support.builders.log_files import batch_ends, read_batches, read_directory, segment_paths, small_log, value


def set_mark(directory, offset):
    marks = MarkFile.open(directory, writable=True)
    epoch = marks.read().epoch
    for _ in range(2):
        marks.publish(Mark(epoch=epoch, offset=offset))
    marks.close()


def copy_of(directory, tmp_path, name="copy"):
    shutil.rmtree(tmp_path / name, ignore_errors=True)
    return shutil.copytree(directory, tmp_path / name)


def test_truncation_at_every_byte_above_the_mark_recovers_to_the_last_whole_batch(tmp_path, sample):
    """The mark is after the first batches: everything behind it may be truncated."""
    original = small_log(tmp_path / "log", 3)
    ends = batch_ends(original)
    everything = read_directory(original)
    size = segment_paths(original)[0].stat().st_size
    for cut in sample(range(ends[1][0], size + 1), 60):
        copy = copy_of(original, tmp_path)
        set_mark(copy, ends[1][1])
        os.truncate(segment_paths(copy)[0], cut)
        position, end = max(one for one in ends if one[0] <= cut)
        with open_log(copy) as log:
            assert log.high_watermark() == log.end_offset() == end
            assert read_batches(log) == [batch for batch in everything if batch[0] < end]
            assert len(log.notes) == (cut > position)
        assert segment_paths(copy)[0].stat().st_size == position
        assert list(verify(copy)) == []


def test_truncation_at_every_byte_below_the_mark_is_damage(tmp_path, sample):
    original = small_log(tmp_path / "log")
    size = segment_paths(original)[0].stat().st_size
    for cut in sample(range(size), 60):
        copy = copy_of(original, tmp_path)
        os.truncate(segment_paths(copy)[0], cut)
        with pytest.raises(DecodeError) as raised:
            open_log(copy)
        assert raised.value.path == str(segment_paths(copy)[0])
        assert raised.value.offset is not None
        assert segment_paths(copy)[0].stat().st_size == cut
        assert list(verify(copy))


def test_truncation_at_every_byte_without_a_mark_is_a_torn_tail(tmp_path, sample):
    original = small_log(tmp_path / "log", 2, mark=False)
    ends = [(0, 0), *batch_ends(original)]
    everything = read_directory(original)
    size = segment_paths(original)[0].stat().st_size
    for cut in sample(range(size + 1), 60):
        copy = copy_of(original, tmp_path)
        os.truncate(segment_paths(copy)[0], cut)
        position, end = max(one for one in ends if one[0] <= cut)
        with open_reader(copy) as reader:
            assert read_batches(reader) == [batch for batch in everything if batch[0] < end]
            assert ("not a whole batch" in reader.notes[-1]) == (cut > position)
        assert bool(list(verify(copy))) == (cut > position)
        with open_log(copy) as log:
            assert len(log.notes) == (cut > position)
            assert read_batches(log) == [batch for batch in everything if batch[0] < end]
        assert list(verify(copy)) == []


def test_a_torn_tail_is_truncated_with_a_note(tmp_path):
    directory = small_log(tmp_path / "log")
    path = segment_paths(directory)[0]
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"torn")
    assert list(verify(directory)) == []
    with open_log(directory) as log:
        cut = "truncated a torn tail of 4 bytes (the file ends inside a batch)"
        assert log.notes == (f"{path}: byte {size}, offset {log.end_offset()}: {cut}",)
    assert path.stat().st_size == size


@pytest.mark.parametrize("torn", [b"\0" * 5000, b"\xff" * 5000])
def test_a_tail_of_zeros_or_garbage_is_truncated(tmp_path, torn):
    directory = small_log(tmp_path / "log")
    path = segment_paths(directory)[0]
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    open_log(directory).close()
    assert path.read_bytes() == whole


def test_whole_batches_above_the_mark_are_kept_and_published(tmp_path):
    directory = small_log(tmp_path / "log")
    everything, ends = read_directory(directory), batch_ends(directory)
    set_mark(directory, ends[1][1])
    assert len(read_directory(directory)) < len(everything)
    with open_log(directory) as log:
        assert log.high_watermark() == ends[-1][1]
    assert read_directory(directory) == everything


def test_a_batch_above_the_mark_that_does_not_continue_is_an_error(tmp_path):
    directory = small_log(tmp_path / "log")
    path = segment_paths(directory)[0]
    before = path.read_bytes()
    path.write_bytes(before + build_batch([b"x"], base_offset=999, leader_epoch=1, timestamp=0))
    with pytest.raises(ReplayError, match="999"):
        open_log(directory)


def test_damage_before_a_whole_batch_is_no_torn_tail_without_a_mark(tmp_path):
    directory = small_log(tmp_path / "log", mark=False)
    path, ends = segment_paths(directory)[0], batch_ends(directory)
    data = bytearray(path.read_bytes())
    data[ends[1][0] + 70] ^= 1
    path.write_bytes(data)
    for opened in (open_reader, open_log):
        with pytest.raises(DecodeError, match="CRC") as raised:
            opened(directory)
        assert (raised.value.position, raised.value.offset) == ends[1]


def test_a_segment_that_ends_early_is_no_torn_tail(tmp_path):
    directory = small_log(tmp_path / "log", 30, segment_bytes=400)
    first, last = segment_paths(directory)[0], segment_paths(directory)[-1]
    os.truncate(first, first.stat().st_size - 1)
    findings = list(verify(directory))
    assert findings[0].path == first
    with open_reader(directory) as reader, pytest.raises(DecodeError, match=first.name):
        read_batches(reader)
    set_mark(directory, 2)
    with pytest.raises(DecodeError, match=first.name):
        open_log(directory)
    assert last.exists()


def test_a_missing_segment_is_found(tmp_path):
    directory = small_log(tmp_path / "log", 30, segment_bytes=400)
    missing = segment_paths(directory)[1]
    missing.unlink()
    assert any("but the previous one ends" in finding.what for finding in verify(directory))
    with open_reader(directory) as reader, pytest.raises(DecodeError, match="no other segment"):
        read_batches(reader)


def test_a_lost_last_segment_is_found(tmp_path):
    directory = small_log(tmp_path / "log", 30, segment_bytes=400)
    segment_paths(directory)[-1].unlink()
    assert any("below its high-water mark" in finding.what for finding in verify(directory))
    with pytest.raises(DecodeError, match="below its high-water mark"):
        open_log(directory)


def test_an_existing_log_continues_in_its_epoch(tmp_path):
    directory = small_log(tmp_path / "log")
    before = read_directory(directory)
    with open_log(directory) as log:
        assert log.leader_epoch == 1
        appended = log.append([b"more"], timestamp=0).result(60)
    assert read_directory(directory) == [*before, (appended.base_offset, [b"more"])]
    assert read_epochs(directory) == (EpochStart(epoch=1, start_offset=0),)


def test_a_new_epoch_is_written_everywhere(tmp_path):
    directory = small_log(tmp_path / "log")
    with open_log(directory) as log:
        end = log.end_offset()
    with open_log(directory, new_epoch=True) as log:
        assert log.leader_epoch == 2
        assert log.append([value("more")], timestamp=0).result(60).leader_epoch == 2
    assert read_epochs(directory) == (EpochStart(epoch=1, start_offset=0), EpochStart(epoch=2, start_offset=end))
    assert read_quorum_state(directory).leader_epoch == 2
    assert list(verify(directory)) == []


def test_an_interrupted_new_epoch_is_begun_again(tmp_path):
    """A crash may leave the mark file, or also leader-epoch-checkpoint, ahead of the log."""
    directory = small_log(tmp_path / "log")
    with open_log(directory) as log:
        end = log.end_offset()
    (directory / "leader-epoch-checkpoint").write_text(f"0\n2\n1 0\n2 {end}\n")
    marks = MarkFile.open(directory, writable=True)
    marks.publish(Mark(epoch=2, offset=end))
    marks.close()
    with open_log(directory) as log:
        assert log.leader_epoch == 3
    assert read_epochs(directory)[-1] == EpochStart(epoch=3, start_offset=end)
    assert list(verify(directory)) == []


@pytest.mark.parametrize("left", range(5))
def test_an_interrupted_creation_is_done_again(tmp_path, left):
    names = ["aclog.lock", MARK_FILE, "partition.metadata", "leader-epoch-checkpoint", "00000000000000000000.log"]
    whole = small_log(tmp_path / "whole", 0)
    partial = tmp_path / "partial"
    partial.mkdir()
    for name in names[:left]:
        shutil.copy(whole / name, partial)
    if left > 1:
        (partial / MARK_FILE).unlink()
        from aclog.metalog.filelog.committed_mark import create_mark_file

        create_mark_file(partial, Mark(epoch=0, offset=0)).close()
    if left > 3:
        (partial / "leader-epoch-checkpoint").write_text("0\n0\n")
    (partial / "quorum-state.tmp").write_text("{")
    with open_log(partial, create=True) as log:
        assert (log.leader_epoch, log.end_offset()) == (1, 1)
    assert list(verify(partial)) == []


def test_creation_over_a_log_with_missing_segments_is_refused(tmp_path):
    directory = small_log(tmp_path / "log")
    segment_paths(directory)[0].unlink()
    with pytest.raises(LogError, match="segments are missing"):
        open_log(directory, create=True)


def test_creation_among_other_files_is_refused(tmp_path):
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(LogError, match=r"holiday\.jpg"):
        open_log(tmp_path, create=True)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_a_log_without_its_epochs_cannot_be_written(tmp_path):
    directory = small_log(tmp_path / "log")
    (directory / "leader-epoch-checkpoint").unlink()
    with pytest.raises(LogError, match="leader-epoch-checkpoint"):
        open_log(directory)
    assert read_directory(directory)


def test_files_are_private(tmp_path):
    directory = small_log(tmp_path / "log", 30, segment_bytes=400)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}


@pytest.mark.parametrize("opened", [open_log, open_reader])
def test_what_is_not_a_log_is_refused(tmp_path, opened):
    with pytest.raises(LogError, match="no such file or directory"):
        opened(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match="not a directory"):
        opened(tmp_path / "file")
    (tmp_path / "empty" / "__cluster_metadata-0").mkdir(parents=True)
    with pytest.raises(LogError, match=r"not a metadata log.*did you mean .*__cluster_metadata-0"):
        opened(tmp_path / "empty")
    assert [path.name for path in (tmp_path / "empty").iterdir()] == ["__cluster_metadata-0"]


@pytest.mark.parametrize("wrong", [{"node_id": 1 << 31}, {"timestamp": 1 << 63}])
def test_an_epoch_that_cannot_be_written_is_not_begun(tmp_path, wrong):
    with pytest.raises(EncodeError):
        open_log(tmp_path / "log", create=True, **wrong)
    with open_log(tmp_path / "log", create=True, node_id=7) as log:
        assert log.leader_epoch == 1
    assert read_quorum_state(tmp_path / "log").leader_id == 7


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "quorum-state"])
def test_epochs_beyond_their_type_are_refused(tmp_path, name):
    directory = small_log(tmp_path / "log")
    with open_log(directory) as log:
        end = log.end_offset()
    text = {
        "leader-epoch-checkpoint": f"0\n2\n1 0\n{1 << 31} {end}\n",
        "quorum-state": f'{{"leaderId":1,"leaderEpoch":{1 << 31},"votedId":-1,"data_version":1}}',
    }
    (directory / name).write_text(text[name])
    with pytest.raises(DecodeError, match=name):
        open_log(directory, new_epoch=True)


def test_the_last_epoch_has_no_successor(tmp_path):
    directory = small_log(tmp_path / "log")
    last = (1 << 31) - 1
    (directory / "quorum-state").write_text(f'{{"leaderId":1,"leaderEpoch":{last},"votedId":-1,"data_version":1}}')
    with pytest.raises(EncodeError, match=str(last + 1)):
        open_log(directory, new_epoch=True)


def test_retention_needs_an_open_log(tmp_path):
    directory = small_log(tmp_path / "log", 30, segment_bytes=400)
    paths = segment_paths(directory)
    (directory / "00000000000000000040-0000000001.checkpoint").touch()
    log = open_log(directory)
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.delete_segments_below(40)
    assert segment_paths(directory) == paths


def test_a_torn_tail_of_any_size_takes_little_memory(tmp_path):
    """A large hole left by a crash; then a whole batch far behind it, which makes it damage."""
    directory = small_log(tmp_path / "log", mark=False)
    (path,) = segment_paths(directory)
    end = batch_ends(directory)[-1]
    os.truncate(path, 100 << 20)
    tracemalloc.start()
    try:
        with open_reader(directory) as reader:
            assert reader.high_watermark() == end[1]
        assert len(list(verify(directory))) == 1
        with path.open("ab") as file:
            file.write(build_batch([value("x")], base_offset=end[1] + 5, leader_epoch=1, timestamp=0))
        with pytest.raises(DecodeError) as raised:
            open_reader(directory)
        assert (raised.value.position, raised.value.offset) == (end[0] + 16, end[1])
        assert len(list(verify(directory))) == 1
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
