"""verify finds everything that is wrong and where, and nothing in what a real Kafka wrote."""

import errno
import os
import shutil
from pathlib import Path

import pytest
from attrs import evolve

from aclog.metalog.batches import RecordBatch, decode_batch, encode_batch, iter_batches
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import files, open_log
from aclog.metalog.filelog import verify as verifying
from aclog.metalog.filelog.committed_mark import MARK_FILE, Mark, create_mark_file
from aclog.metalog.filelog.files import SegmentFile, find_segments, list_checkpoints, list_segments, write_epochs
from aclog.metalog.filelog.segments import find_tail
from aclog.metalog.filelog.verify import FindingKind, verify, verify_checkpoint
from aclog.metalog.machine import disk
from tests.support.builders.log_files import KAFKA_LOGS, batch_ends, flips, segment_paths, small_log, value


@pytest.mark.parametrize("path", KAFKA_LOGS, ids=lambda path: path.parent.name)
def test_nothing_is_wrong_with_what_a_kafka_wrote(path):
    told = []
    assert list(verify(path, lambda done, total: told.append((done, total)))) == []
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_every_damage_is_found_not_only_the_first(tmp_path):
    directory = small_log(tmp_path / "log", 8)
    path, ends = segment_paths(directory)[0], batch_ends(directory)
    data = bytearray(path.read_bytes())
    for number in (2, 5):
        data[ends[number][0] + 70] ^= 1
    path.write_bytes(data)
    findings = list(verify(directory))
    assert [(finding.path, finding.position, finding.offset) for finding in findings] == [
        (path, *ends[2]),
        (path, *ends[5]),
    ]
    assert str(findings[0]).startswith(f"{path}: offset {ends[2][1]}, byte {ends[2][0]}: CRC mismatch")


def test_the_time_for_a_log_beside_the_epochs_of_another_one_is_bounded(monkeypatch, tmp_path):
    """Each batch is a finding: none makes the next megabytes of the file be read again."""
    directory = tmp_path / "log"
    with open_log(directory, create=True) as log:
        for _ in range(100):
            log.append([value("x" * 20_000)], timestamp=0).result(60)
    write_epochs(directory, (EpochStart(epoch=1, start_offset=0), EpochStart(epoch=2, start_offset=1)))
    (directory / MARK_FILE).unlink()
    read = []

    def pread(fd, size, position):
        read.append(len(data := os.pread(fd, size, position)))
        return data

    monkeypatch.setattr(disk, "pread", pread)
    findings = list(verify(directory))
    assert {finding.what for finding in findings} == {"a batch of epoch 1: expected epoch 2"}
    assert len(findings) == 100
    assert sum(read) < 16 * segment_paths(directory)[0].stat().st_size


def test_epochs_beyond_the_end(tmp_path):
    directory = small_log(tmp_path / "log", mark=False)
    (directory / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n2 500\n")
    (finding,) = verify(directory)
    assert "epoch 2 begins at offset 500, beyond" in finding.what


def test_missing_and_unreadable_epochs(tmp_path):
    directory = small_log(tmp_path / "log")
    (directory / "leader-epoch-checkpoint").write_text("1\n")
    assert [finding.path.name for finding in verify(directory)] == ["leader-epoch-checkpoint"]
    (directory / "leader-epoch-checkpoint").unlink()
    (missing,) = verify(directory)
    assert (missing.kind, missing.what) == (FindingKind.NOTE, "missing: epochs were only checked for their order")


def test_a_mark_file_without_a_valid_slot(tmp_path):
    directory = small_log(tmp_path / "log")
    (directory / MARK_FILE).write_bytes(bytes(1024))
    (finding,) = verify(directory)
    assert finding.path == directory / MARK_FILE
    assert "neither slot is valid" in finding.what


def test_a_mark_that_is_being_written(monkeypatch, tmp_path):
    directory = small_log(tmp_path / "log")
    whole = (directory / MARK_FILE).read_bytes()
    halves = [whole[:300] + bytes(212) + whole[512:], whole[:512] + whole[:200] + bytes(312)]
    original = files.read_small

    def read_small(path):
        return halves.pop() if path.name == MARK_FILE and halves else original(path)

    monkeypatch.setattr(files, "read_small", read_small)
    assert list(verify(directory)) == []
    assert not halves
    monkeypatch.undo()
    (directory / MARK_FILE).write_bytes(whole[:300] + bytes(212) + whole[512:])
    assert [(each.position, each.what) for each in verify(directory)] == [(0, "a damaged slot")]


@pytest.fixture
def kafka(tmp_path):
    return shutil.copytree(KAFKA_LOGS[0], tmp_path / "log")


def test_a_checkpoint_of_another_epoch(kafka):
    path = kafka / "00000000000000000163-0000000002.checkpoint"
    path.rename(kafka / "00000000000000000163-0000000001.checkpoint")
    whats = [finding.what for finding in verify(kafka)]
    assert "named for epoch 1, but offset 162 has epoch 2" in whats
    assert any("a batch of epoch 2" in what for what in whats)


def test_truncated_checkpoints(kafka):
    path = kafka / "00000000000000000163-0000000002.checkpoint"
    whole = path.read_bytes()
    said = {}
    for size in (0, 100, 166, len(whole) - 75, len(whole) - 1):
        path.write_bytes(whole[:size])
        (finding,) = verify(kafka)
        assert finding.path == path
        said[size] = finding.what
    assert said == {
        0: "empty: expected at least a SnapshotHeader and a SnapshotFooter",
        100: "the file ends inside a batch",
        166: "expected a control batch with a SnapshotFooter as the last batch",
        len(whole) - 75: "expected a control batch with a SnapshotFooter as the last batch",
        len(whole) - 1: "the file ends inside a batch",
    }


def test_every_flip_of_a_checkpoint_is_found(kafka):
    checkpoint = list_checkpoints(kafka)[0]
    checkpoint.path.chmod(0o600)
    assert list(verify_checkpoint(checkpoint, None, 0)) == []
    for place in flips(checkpoint.path):
        (error,) = verify_checkpoint(checkpoint, None, 0)
        assert error.path == str(checkpoint.path), place


def test_each_read_that_fails_names_its_file(monkeypatch, tmp_path):
    """A disk that fails after a file was opened: the error of the system has no name."""
    directory = small_log(tmp_path / "log", 2)
    shutil.copy(list_checkpoints(KAFKA_LOGS[0])[0].path, directory)
    reads, fails = [], [0]

    def pread(fd, size, position):
        reads.append(position)
        if len(reads) == fails[0]:
            raise OSError(errno.EIO, "Input/output error")
        return os.pread(fd, size, position)

    monkeypatch.setattr(disk, "pread", pread)
    list(verify(directory))
    suffixes = set()
    for fails[0] in range(1, len(reads) + 1):
        reads.clear()
        with pytest.raises(LogError, match="cannot read: Input/output error") as failed:
            list(verify(directory))
        suffixes.add(Path(str(failed.value).partition(": ")[0]).suffix)
    assert suffixes == {"", ".log", ".checkpoint"}


def test_what_is_not_a_log(tmp_path):
    with pytest.raises(LogError, match="not a metadata log"):
        list(verify(tmp_path))


@pytest.fixture(params=KAFKA_LOGS, ids=lambda path: path.parent.name)
def alone(request, tmp_path):
    """Return a directory with the checkpoints of a Kafka's log and nothing else."""
    directory = tmp_path / "alone"
    directory.mkdir()
    for checkpoint in list_checkpoints(request.param):
        shutil.copy(checkpoint.path, directory)
    return directory


class TestCheckpointsAlone:
    def test_valid_ones(self, alone):
        told = []
        assert list(verify(alone, lambda done, total: told.append((done, total)))) == []
        sizes = [checkpoint.path.stat().st_size for checkpoint in list_checkpoints(alone)]
        assert told == [(sum(sizes[: n + 1]), sum(sizes)) for n in range(len(sizes))]

    def test_the_damage_of_each_is_found(self, alone):
        paths = [checkpoint.path for checkpoint in list_checkpoints(alone)]
        assert len(paths) > 1
        for path in paths:
            path.write_bytes(path.read_bytes()[:-1])
        assert [(finding.path, finding.what) for finding in verify(alone)] == [
            (path, "the file ends inside a batch") for path in paths
        ]

    def test_a_checkpoint_under_the_name_of_another_epoch(self, alone):
        path = list_checkpoints(alone)[-1].path
        moved = path.rename(path.with_name(path.name.replace("-000000000", "-000000001")))
        (finding,) = verify(alone)
        assert (finding.path, "a batch of epoch" in finding.what) == (moved, True)

    def test_the_segments_of_a_log_are_missing(self, tmp_path):
        """The remaining files show it; the checkpoints are checked all the same."""
        directory = small_log(tmp_path / "log")
        for segment in segment_paths(directory):
            segment.unlink()
        (directory / "00000000000000000005-0000000001.checkpoint").write_bytes(b"")
        assert [(finding.path.name, finding.what.partition(":")[0]) for finding in verify(directory)] == [
            (MARK_FILE, "a log was committed up to offset 8, but its segments are missing"),
            ("leader-epoch-checkpoint", "a log had epochs up to 1, but its segments are missing"),
            ("00000000000000000005-0000000001.checkpoint", "empty"),
        ]

    def test_an_interrupted_creation_is_no_lost_log(self, alone):
        write_epochs(alone, ())
        create_mark_file(alone, Mark(epoch=0, offset=0)).close()
        assert list(verify(alone)) == []

    @pytest.mark.parametrize(("name", "content"), [(MARK_FILE, bytes(1024)), ("leader-epoch-checkpoint", b"1\n")])
    def test_another_damaged_file(self, alone, name, content):
        (alone / name).write_bytes(content)
        assert [finding.path for finding in verify(alone)] == [alone / name]

    def test_a_log_created_in_the_meantime(self, monkeypatch, tmp_path):
        """What a writer creates after the first listing is not taken for the remains of a lost log."""
        directory, looks = small_log(tmp_path / "log"), []
        shutil.copy(list_checkpoints(KAFKA_LOGS[1])[0].path, directory)

        def at_first_nothing(path):
            looks.append(path)
            return list_segments(path) if len(looks) > 1 else ()

        monkeypatch.setattr(files, "list_segments", at_first_nothing)
        told = []
        assert list(verify(directory, lambda done, total: told.append(done))) == []
        assert told[-1] > segment_paths(directory)[0].stat().st_size

    @pytest.mark.parametrize("name", ["00000000000000000163-0000000002.checkpoint.part", "bootstrap.checkpoint"])
    def test_unfinished_checkpoints_do_not_count(self, tmp_path, name):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(LogError, match="not a metadata log"):
            list(verify(tmp_path))


def small_log_with(directory, values):
    with open_log(directory, create=True) as log:
        return directory, log.append(values, timestamp=0).result(60).base_offset


def test_a_damaged_record_in_a_valid_batch(tmp_path):
    """Reports its offset and the damaged byte; later records of the batch are not checked."""
    cut = b"\x01\x13\x00" + bytes(7)
    directory, base = small_log_with(tmp_path / "log", [value("sound"), cut, b"\x02"])
    (finding,) = verify(directory)
    assert (finding.offset, finding.what) == (base + 1, "truncated uuid of 16 bytes")
    assert segment_paths(directory)[0].read_bytes()[finding.position - 3 :].startswith(cut)


def test_records_of_a_newer_kafka(tmp_path):
    """An unknown record type is not a finding (replay reports it); an interpreted one in version 1 is."""
    unknown, newer = b"\x01\x7e\x00beyond", b"\x01\x12\x01"
    directory, base = small_log_with(tmp_path / "log", [unknown, newer])
    (finding,) = verify(directory)
    assert (finding.offset, "written by a newer Kafka" in finding.what) == (base + 1, True)
    assert finding.kind is FindingKind.NEWER


def test_a_damaged_record_of_a_checkpoint(kafka):
    path = kafka / "00000000000000000163-0000000002.checkpoint"
    data = path.read_bytes()
    position, header = list(iter_batches(data))[1]
    record, *rest = decode_batch(data, position).records
    broken = evolve(record, value=b"\x05" + record.value[1:])
    batch = encode_batch(RecordBatch(header=header, records=(broken, *rest)))
    path.chmod(0o600)
    path.write_bytes(data[:position] + batch + data[position + header.size :])
    (finding,) = verify(kafka)
    assert (finding.path, finding.what) == (path, "record frame version 5: expected 1")


def test_a_log_that_rolls_while_it_is_verified(monkeypatch, tmp_path):
    """The mark is read before the segments are listed, so it covers nothing that is not listed."""
    directory = small_log(tmp_path / "log", segment_bytes=400)
    with open_log(directory, segment_bytes=400) as log:

        def append():
            for _ in range(20):
                log.append([value("x")], timestamp=0).result(60)

        def grow(path):
            append()
            found = find_segments(path)
            append()
            return found

        monkeypatch.setattr(files, "find_segments", grow)
        assert list(verify(directory)) == []


@pytest.mark.parametrize("base", [2, 9, 500])
def test_a_segment_of_another_copy(tmp_path, base):
    """As an older copy leaves it that was restored over the newer files; a writer refuses it in the same words."""
    directory = small_log(tmp_path / "log")
    left = directory / files.segment_name(base)
    shutil.copy(segment_paths(directory)[0], left)
    assert (whats := [finding.what for finding in verify(directory) if finding.path == left])
    with pytest.raises(DecodeError) as refused, open_log(directory):
        pass
    assert whats[-1] == refused.value.what
    left.unlink()
    assert list(verify(directory)) == []


def test_what_follows_the_mark_may_be_torn_or_whole(tmp_path):
    directory = small_log(tmp_path / "log")
    mark = (directory / MARK_FILE).read_bytes()
    with open_log(directory, segment_bytes=100) as log:
        for _ in range(3):
            log.append([value("x")], timestamp=0).result(60)
    (directory / MARK_FILE).write_bytes(mark)
    *others, last = segment_paths(directory)
    assert len(others) > 1
    last.write_bytes(last.read_bytes()[:-1])
    assert list(verify(directory)) == []
    others[-1].write_bytes(others[-1].read_bytes()[:-1])  # torn, although a segment follows
    (finding,) = verify(directory)
    assert (finding.path, finding.what) == (others[-1], "the file ends inside a batch")
    with pytest.raises(DecodeError, match="the file ends inside a batch"):
        open_log(directory)


def test_an_epoch_that_a_writer_begins_meanwhile(monkeypatch, tmp_path):
    directory = small_log(tmp_path / "log")

    def begun(*_arguments):
        with open_log(directory, new_epoch=True) as log:
            log.append([value("x")], timestamp=0).result(60)
        monkeypatch.undo()
        return find_tail(*_arguments)

    monkeypatch.setattr(verifying, "find_tail", begun)
    assert list(verify(directory)) == []


@pytest.mark.parametrize("number", range(1, 4))
def test_epochs_that_a_writer_begins_meanwhile(monkeypatch, tmp_path, number):
    directory, reads = small_log(tmp_path / "log"), []

    def read_epochs(path):
        reads.append(path)
        if len(reads) == number:
            for _ in range(2):
                with open_log(directory, new_epoch=True) as log:
                    log.append([value("x")], timestamp=0).result(60)
        return original(path)

    original = files.read_epochs
    monkeypatch.setattr(files, "read_epochs", read_epochs)
    assert list(verify(directory)) == []
    assert len(reads) >= number


def test_a_file_removed_while_it_is_verified(monkeypatch, tmp_path):
    directory = small_log(tmp_path / "log")
    gone = SegmentFile(base_offset=0, path=directory / "00000000000000000000.gone")
    monkeypatch.setattr(files, "find_segments", lambda path: (gone,))
    with pytest.raises(LogError, match=r"gone: cannot read: No such file"):
        list(verify(directory))
