"""Long-lived readers while a Kafka and aclog write to a directory in turns, and marks of another log."""

import os
import shutil
import stat

import pytest

from aclog.metalog.batches import build_batch, iter_batches
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import open_log, open_reader, segments
from aclog.metalog.filelog.committed_mark import MARK_FILE, Mark, MarkFile
from aclog.metalog.filelog.verify import verify
from aclog.metalog.machine import disk
from tests.support.builders.log_files import KAFKA_LOGS, batch_ends, read_batches, segment_paths, small_log, value


def begin_epoch(directory, epoch, offset):
    """Begin an epoch as a Kafka does: leader-epoch-checkpoint is replaced, then the first batch is appended."""
    path = directory / "leader-epoch-checkpoint"
    lines = path.read_text().splitlines()[2:]
    new = path.with_suffix(".tmp")
    new.write_text("\n".join(["0", str(len(lines) + 1), *lines, f"{epoch} {offset}", ""]))
    new.replace(path)
    append(directory, epoch, offset)


def append(directory, epoch, offset):
    batch = build_batch([value(f"{epoch}-{offset}")], base_offset=offset, leader_epoch=epoch, timestamp=0)
    with segment_paths(directory)[-1].open("ab") as file:
        file.write(batch)


def set_mark(directory, mark):
    marks = MarkFile.open(directory, writable=True)
    for _ in range(2):
        marks.publish(mark)
    marks.close()


def test_a_kafka_that_begins_an_epoch_is_followed(tmp_path):
    directory = small_log(tmp_path / "log", mark=False)
    end = batch_ends(directory)[-1][1]
    with open_reader(directory) as reader:
        assert reader.high_watermark() == end
        begin_epoch(directory, 2, end)
        assert reader.high_watermark() == end + 1
        assert read_batches(reader)[-1] == (end, [value(f"2-{end}")])


def test_a_reader_follows_a_kafka_and_aclog_writing_in_turns(tmp_path):
    directory = small_log(tmp_path / "log")
    end = batch_ends(directory)[-1][1]
    with open_reader(directory) as reader:
        assert (reader.high_watermark(), reader.notes) == (end, ())
        begin_epoch(directory, 2, end)
        append(directory, 2, end + 1)
        assert reader.wait(end + 1, 0)
        assert "treated as committed" in reader.notes[0]
        with open_log(directory) as log:
            log.append([value("ours")], timestamp=0).result(60)
            assert (reader.high_watermark(), reader.notes) == (end + 3, ())
        with open_log(directory, new_epoch=True) as log:
            log.append([value("ours")], timestamp=0).result(60)
            assert reader.high_watermark() == end + 5
        begin_epoch(directory, 4, end + 5)
        assert reader.high_watermark() == end + 6
        assert len(read_batches(reader)) == 4 + 2 + 2 + 1


@pytest.fixture
def after_retention(tmp_path):
    """Return a Kafka's directory whose log start was raised into the middle of the first segment.

    Kafka's LeaderEpochFileCache then moves the epoch of that offset there, and drops earlier ones.
    """
    directory = shutil.copytree(KAFKA_LOGS[0], tmp_path / "log")
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n2 163\n")
    return directory


@pytest.mark.parametrize("bulk", [0, 1 << 40])
def test_the_first_epoch_of_a_kafka_after_its_retention(monkeypatch, after_retention, bulk):
    monkeypatch.setattr(segments, "_BULK", bulk)
    with open_reader(KAFKA_LOGS[0]) as whole, open_reader(after_retention) as reader:
        assert read_batches(reader) == read_batches(whole)
        assert reader.read(163, 1) == whole.read(163, 1)
    assert list(verify(after_retention)) == []
    with open_log(after_retention, force=True) as log:
        assert log.end_offset() == 231


def test_batches_before_the_first_known_epoch_are_still_checked(after_retention):
    path = segment_paths(after_retention)[0]
    data = bytearray(path.read_bytes())
    position, header = list(iter_batches(data))[3]
    data[position + 15] = 3
    path.write_bytes(data)
    with open_reader(after_retention) as reader, pytest.raises(DecodeError, match="expected an epoch from 1 to 2"):
        reader.read(header.base_offset)
    assert [finding.offset for finding in verify(after_retention)] == [header.base_offset]


def test_a_first_epoch_that_no_checkpoint_ends_at(after_retention):
    (after_retention / "leader-epoch-checkpoint").write_text("0\n1\n2 164\n")
    (finding,) = verify(after_retention)
    assert "the first epoch begins at offset 164, where no checkpoint ends" in finding.what


@pytest.mark.parametrize("bulk", [0, 1 << 40])
def test_a_mark_inside_a_batch_reveals_nothing_of_it(monkeypatch, tmp_path, bulk):
    """The mark file is from another log."""
    monkeypatch.setattr(segments, "_BULK", bulk)
    directory = small_log(tmp_path / "log", 6)
    ends = batch_ends(directory)
    set_mark(directory, Mark(epoch=1, offset=ends[3][1] - 1))
    with open_reader(directory) as reader:
        assert len(reader.read(0)) == ends[2][0]
        with pytest.raises(DecodeError, match="the high-water mark is not from this log") as raised:
            reader.read(ends[2][1])
        assert (raised.value.position, raised.value.offset) == ends[2]
    (finding,) = verify(directory)
    assert (finding.path, "no batch of this log ends at" in finding.what) == (directory / MARK_FILE, True)


def test_a_mark_ahead_of_the_log_reveals_the_loss(tmp_path):
    directory = small_log(tmp_path / "log")
    end = batch_ends(directory)[-1][1]
    set_mark(directory, Mark(epoch=1, offset=end + 10))
    with open_reader(directory) as reader:
        assert reader.read(0)
        with pytest.raises(DecodeError, match="below the high-water mark"):
            reader.read(end)
    with pytest.raises(DecodeError, match="committed records are lost"):
        open_log(directory)
    assert len(list(verify(directory))) == 1


def test_max_bytes_may_be_any_number(tmp_path):
    directory = small_log(tmp_path / "log", 6)
    (first, _), *_, (last, _) = batch_ends(directory)
    with open_reader(directory) as reader, open_log(directory) as log:
        for source in (reader, log):
            assert [len(source.read(0, size)) for size in (-1, 0, 1, 1 << 62, 1 << 70)] == [first] * 3 + [last] * 2


def test_readers_write_nothing(monkeypatch, tmp_path):
    """Works on a read-only file system: files are only opened for reading, none is created, renamed or removed."""
    directory = small_log(tmp_path / "log", 30, segment_bytes=400)
    without = small_log(tmp_path / "kafka", mark=False)
    opened, real = [], os.open

    def watched(path, flags, *rest, **options):
        opened.append((path, flags))
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(disk, "open", watched)
    for path in (directory, without):
        before = {file.name: file.stat().st_mtime_ns for file in [*path.iterdir(), path]}
        with open_reader(path) as reader:
            assert read_batches(reader)
        assert list(verify(path)) == []
        assert {file.name: file.stat().st_mtime_ns for file in [*path.iterdir(), path]} == before
    assert opened
    assert not [path for path, flags in opened if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)]


def test_a_link_to_a_log_is_that_log(tmp_path):
    directory = small_log(tmp_path / "log")
    link = tmp_path / "link"
    link.symlink_to(directory)
    with open_log(link) as log:
        with pytest.raises(LogError, match="locked by this process"):
            open_log(directory)
        log.append([value("x")], timestamp=0).result(60)
        with open_reader(directory) as reader:
            assert reader.high_watermark() == log.end_offset()
    assert stat.S_IMODE((directory / MARK_FILE).stat().st_mode) == 0o600
