"""The committed mark beside a node's log: a log that is missing, shorter or another one is refused, and not touched."""

import shutil
from pathlib import Path

import pytest

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.committed_mark import (
    COMMITTED_FILE,
    MARK_FILE,
    CommittedMark,
    committed_path,
    decode_committed,
    encode_committed,
    read_committed,
)
from aclog.metalog.filelog.files import METADATA_DIRECTORY, checkpoint_name, list_segments
from aclog.metalog.filelog.locks import LOCK_FILE
from aclog.metalog.filelog.meta_properties import META_PROPERTIES, MetaProperties, write_meta_properties
from aclog.metalog.filelog.verify import FindingKind, verify
from tests.support.builders.log_files import segment_paths, small_log, value

CLUSTER = "ZDUkooY3wL1SfPIPJQqLYw"


@pytest.fixture
def directory(tmp_path):
    """The log of a node, marked at its end."""
    directory = small_log(tmp_path / METADATA_DIRECTORY)
    with open_log(directory) as log:
        log.keep_mark(CLUSTER)
    return directory


def content(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.parent.rglob("*") if path.is_file() and path.name != LOCK_FILE)
    return {str(path): path.read_bytes() for path in files}


def test_the_file_and_what_is_read_from_it(tmp_path):
    mark = CommittedMark.beside(tmp_path / METADATA_DIRECTORY, cluster_id=CLUSTER, end_offset=500, epoch=2)
    data = encode_committed(mark)
    assert data == (
        b"#How far the log in __cluster_metadata-0 was committed: a node refuses one that ends before.\n"
        b"version=1\ncluster.id=ZDUkooY3wL1SfPIPJQqLYw\nend.offset=500\nleader.epoch=2\ncrc32c=e069d0c9\n"
    )
    for written in (mark, mark.moved(500, 2, 0xFE)):
        written.write()
        assert mark.path == tmp_path / COMMITTED_FILE
        assert read_committed(tmp_path / METADATA_DIRECTORY) == written
    assert b"\nbatch.crc=000000fe\n" in mark.path.read_bytes()
    assert read_committed(tmp_path / "a-copy") is None


@pytest.mark.parametrize("name", [".", "below/..", "..", f"../{METADATA_DIRECTORY}"])
def test_the_mark_is_read_by_any_path_of_the_log(directory, monkeypatch, name):
    below = directory / "below"
    below.mkdir()
    monkeypatch.chdir(below if name == ".." else directory)
    mark = read_committed(Path(name))
    assert mark is not None
    assert mark.path == committed_path(directory)


def test_every_damaged_byte_is_noticed(tmp_path):
    mark = CommittedMark.beside(tmp_path / METADATA_DIRECTORY, cluster_id=CLUSTER, end_offset=500, epoch=2)
    data = encode_committed(mark)
    for position in range(len(data)):
        for damaged in (data[:position], data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]):
            with pytest.raises(DecodeError, match="the checksum does not match"):
                decode_committed(damaged, mark.directory)


def test_a_damaged_mark_is_refused_with_its_path(directory):
    committed_path(directory).write_bytes(b"version=1\n")
    with pytest.raises(DecodeError, match=rf"{COMMITTED_FILE}.*if it is removed, the log is accepted as it is"):
        open_log(directory)


def test_it_is_kept_once_it_is_made_and_never_ahead(directory):
    with open_log(directory, new_epoch=True) as log:
        for number in range(3):
            before = read_committed(directory)
            log.append([value(str(number))], timestamp=number).result(60)
            assert read_committed(directory) == before
            log.keep_mark()
            found = read_committed(directory)
            assert found is not None
            assert (found.end_offset, found.epoch, found.cluster_id) == (log.high_watermark(), 2, CLUSTER)
        committed_path(directory).unlink()
        log.keep_mark()
        assert read_committed(directory) == found
        end = log.append([value("last")], timestamp=9).result(60).last_offset + 1
    last = read_committed(directory)
    assert last == found.moved(end, 2, last.batch_crc)
    assert last.batch_crc not in {None, found.batch_crc}


def test_who_closes_the_log_leaves_no_mark_where_there_was_none(tmp_path):
    directory = small_log(tmp_path / METADATA_DIRECTORY)
    with open_log(directory) as log:
        log.append([value("x")], timestamp=1).result(60)
        log.keep_mark()
    assert not committed_path(directory).exists()


def test_it_is_not_written_after_the_log_was_closed(directory):
    log = open_log(directory)
    log.close()
    committed_path(directory).unlink()
    log.keep_mark(CLUSTER)
    assert not committed_path(directory).exists()


def test_a_log_that_is_gone_is_refused(directory):
    everything = f"no log, but .*{COMMITTED_FILE} records one committed up to offset 8. Restore"
    for path in segment_paths(directory):
        path.unlink()
    before = content(directory)
    for create in (False, True):
        with pytest.raises(LogError, match=everything):
            open_log(directory, create=create)
    assert content(directory) == before
    shutil.rmtree(directory)
    with pytest.raises(LogError, match=everything):
        open_log(directory, create=True)
    directory.mkdir()
    (directory / checkpoint_name(0, 0)).touch()
    with pytest.raises(LogError, match=everything):
        open_log(directory, create=True)
    problems = [each.what for each in verify(directory) if each.path == committed_path(directory)]
    assert problems == ["records a log as committed up to offset 8, but its segments are missing"]
    assert not list_segments(directory)


def test_an_older_copy_is_refused_and_not_touched_until_the_mark_is_removed(directory, tmp_path):
    older = shutil.copytree(directory, tmp_path / "older")
    with open_log(directory) as log:
        log.append([value("x")], timestamp=1).result(60)
    shutil.rmtree(directory)
    older.rename(directory)
    with segment_paths(directory)[-1].open("ab") as file:
        file.write(b"torn")
    before = content(directory)
    torn, shortage = verify(directory)
    assert (torn.offset, torn.what) == (8, "the file ends inside a batch")
    assert shortage.kind is FindingKind.DAMAGE
    assert shortage.what == f"the log ends here, but {committed_path(directory)} records it as committed up to 9"
    with pytest.raises(LogError, match=r"ends at offset 8, but .* up to 9: .*accept this log as it is, remove .*aclog"):
        open_log(directory, new_epoch=True)
    assert content(directory) == before
    committed_path(directory).unlink()
    with open_log(directory) as log:
        assert log.end_offset() == 8


def test_a_published_mark_that_a_power_loss_took_back_is_no_shortage(directory):
    """The committed mark is durable, the published one need not be: what counts is what is in the log."""
    data = (directory / MARK_FILE).read_bytes()
    with open_log(directory) as log:
        end = log.append([value("x")], timestamp=1).result(60).last_offset + 1
    (directory / MARK_FILE).write_bytes(data)
    assert list(verify(directory)) == []
    path = segment_paths(directory)[-1]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # of what is committed, damage is found
    assert [each.what.partition(":")[0] for each in verify(directory)] == [
        "CRC mismatch",
        f"the log ends here, but {committed_path(directory)} records it as committed up to {end}",
    ]
    path.write_bytes(whole)
    with open_log(directory) as log:
        assert log.high_watermark() == end


def test_the_mark_counts_without_the_published_one(directory):
    """In a copy without the high-watermark file the end of the last whole batch counts: here it is not far enough."""
    (directory / MARK_FILE).unlink()
    path = segment_paths(directory)[-1]
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with pytest.raises(LogError, match="ends at offset 7, but"):
        open_log(directory)


def test_another_log_of_the_same_length_is_refused(directory, tmp_path):
    with open_log(directory, new_epoch=True) as log:
        log.append([value("x")], timestamp=1).result(60)
    shutil.rmtree(directory)
    other = small_log(tmp_path / "other")
    with open_log(other) as log:
        for _ in range(9):
            log.append([value("y")], timestamp=1).result(60)
    other.rename(directory)
    with pytest.raises(LogError, match=r"offset 9 is of leader epoch 1, but .* records epoch 2: another log"):
        open_log(directory)
    (finding,) = verify(directory)
    assert (finding.kind, finding.path, finding.offset) == (FindingKind.DAMAGE, directory, 9)
    assert "of leader epoch 1, but" in finding.what


@pytest.mark.parametrize("segment_bytes", [1 << 20, 100])
@pytest.mark.parametrize("more", [0, 1, 5])
def test_another_clusters_log_of_the_same_epochs_is_refused(tmp_path, segment_bytes, more):
    """Both nodes have started as often, as with staging's backup in production's place."""
    directory, other = (tmp_path / name / METADATA_DIRECTORY for name in ("ours", "theirs"))
    for home, name in ((directory, "ours"), (other, "theirs")):
        with open_log(home, create=True, timestamp=1, segment_bytes=segment_bytes) as log:
            for number in range(4 + more * (home == other)):
                log.append([value(f"{name}-{number}")], timestamp=number).result(60)
            log.keep_mark(CLUSTER)
    kept = shutil.copytree(directory, tmp_path / "kept")
    shutil.rmtree(directory)
    shutil.copytree(other, directory)
    before = content(directory)
    with pytest.raises(LogError, match=r"the batch before offset 5 is not the committed one .*: another log"):
        open_log(directory, new_epoch=True)
    (finding,) = verify(directory)
    assert (finding.kind, finding.path, finding.offset) == (FindingKind.DAMAGE, directory, 4)
    assert "is not the committed one" in finding.what
    assert content(directory) == before
    shutil.rmtree(directory)
    kept.rename(directory)
    assert list(verify(directory)) == []
    for _ in range(2):  # the right one, also where it has moved on since
        with open_log(directory, new_epoch=True, segment_bytes=segment_bytes) as log:
            log.append([value("more")], timestamp=9).result(60)
            mark = read_committed(directory)
    mark.write()  # an older mark
    with open_log(directory, new_epoch=True) as log:
        assert log.notes == ()


def test_a_batch_that_ends_elsewhere_is_another_logs(tmp_path):
    directory = tmp_path / METADATA_DIRECTORY
    with open_log(directory, create=True) as log:
        log.append([value("a"), value("b"), value("c")], timestamp=1).result(60)
    CommittedMark.beside(directory, cluster_id=CLUSTER, end_offset=3, epoch=1, batch_crc=1).write()
    with pytest.raises(LogError, match="the batch before offset 3 is not the committed one"):
        open_log(directory)
    (finding,) = verify(directory)
    assert (finding.offset, "is not the committed one" in finding.what) == (2, True)


def test_a_log_that_moved_on_and_lost_its_beginning_is_accepted(tmp_path):
    """A real Kafka leads it, and its retention removes segments: it does not know the mark."""
    directory = small_log(tmp_path / METADATA_DIRECTORY, segment_bytes=100)
    segment_paths(directory)[0].unlink()
    start = list_segments(directory)[0].base_offset
    CommittedMark.beside(directory, cluster_id=CLUSTER, end_offset=start, epoch=1, batch_crc=1).write()
    assert [each.what for each in verify(directory) if "another log" in each.what] == []
    with open_log(directory, new_epoch=True, segment_bytes=100) as log:
        assert log.start_offset() == start > 0
        assert log.end_offset() == 9
    assert read_committed(directory).end_offset == 9


def test_another_clusters_mark_is_refused(directory):
    with open_log(directory) as log, pytest.raises(LogError, match=rf"of cluster {CLUSTER}, but meta"):
        log.keep_mark("another")
    write_meta_properties(
        directory.parent, MetaProperties(cluster_id="another", node_id=1, directory_id=None), now_ms=0
    )
    (finding,) = verify(directory)
    assert finding.path == committed_path(directory)
    assert finding.what == f"of cluster {CLUSTER}, but meta.properties beside it is of another"
    (directory.parent / META_PROPERTIES).write_bytes(b"version=9\n")
    assert list(verify(directory)) == []
