"""A mirror's directory: what it may contain, what is appended or refused, and restarts after a snapshot."""

import errno
import os
import random
import shutil
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.batches import build_batch, end_offset, iter_batches, read_header
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import DecodeError, LockedError, LogError, MetadataError, ReplayError
from aclog.metalog.filelog import file_log as appender_module
from aclog.metalog.filelog import files, open_log, open_reader
from aclog.metalog.filelog import mirror as mirror_module
from aclog.metalog.filelog.files import (
    MIRROR_FILE,
    CheckpointFile,
    LogEnd,
    MirrorProperties,
    decode_mirror_properties,
    encode_mirror_properties,
    list_checkpoints,
    read_epochs,
    read_quorum_state,
)
from aclog.metalog.filelog.mirror import open_mirror
from aclog.metalog.filelog.verify import verify
from aclog.metalog.machine import disk
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint, write_image_file
from aclog.snapshots.publisher import recover
from tests.support.builders.log_files import KAFKA_LOGS, read_directory, segment_paths, small_log, value
from tests.support.builders.random_log import RandomLog
from tests.support.runs.profiles import examples


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    """No test here simulates a power loss, so fsync can be skipped."""
    monkeypatch.setattr(disk, "fsync", lambda fd: None)


def batches_of(seed, count=40, epoch_every=7):
    """Return a log of `count` batches as a list; a new epoch begins now and then."""
    log = RandomLog(random.Random(seed), transactions=False)
    found = []
    for number in range(count):
        if number % epoch_every:
            found.append(log.batch())
        else:
            log.epoch += 1
            found.append(log.control())
    return found


def begun(directory, batches=(), **options):
    mirror = open_mirror(directory, **({"fsync": os.fsync} | options))
    mirror.bind("one")
    if mirror.end is None:
        mirror.begin(None)
    for data in batches:
        mirror.append(data)
    return mirror


def content(directory):
    return b"".join(path.read_bytes() for path in segment_paths(directory))


def epoch_starts(batches):
    """Return where each epoch begins."""
    headers = [read_header(batch) for batch in batches]
    firsts = headers[:1] + [after for before, after in pairwise(headers) if after.leader_epoch != before.leader_epoch]
    return tuple(EpochStart(epoch=header.leader_epoch, start_offset=header.base_offset) for header in firsts)


def snapshot_of(batches, directory):
    """Write a checkpoint of all of these batches."""
    directory.mkdir(exist_ok=True)
    path = write_checkpoint(Applier().apply(b"".join(batches)), directory)
    (found,) = (each for each in list_checkpoints(directory) if each.path == path)
    return found


def assert_whole(directory):
    assert list(map(str, verify(directory))) == []


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 1 << 30), data=st.data())
def test_any_log_in_any_pieces_is_mirrored_unchanged(tmp_path_factory, seed, data):
    """Epochs begin anywhere, segments are small, and the mirror is closed and reopened between pieces."""
    directory = tmp_path_factory.mktemp("mirror") / "log"
    batches = batches_of(seed, count=25, epoch_every=data.draw(st.sampled_from([2, 7, 100])))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(batches) - 1), max_size=8)))
    pieces = [b"".join(batches[start:end]) for start, end in pairwise([0, *cuts, len(batches)])]
    mirror = begun(directory, segment_bytes=data.draw(st.sampled_from([1, 700, 1 << 20])))
    count = 0
    for piece in pieces:
        if data.draw(st.booleans()):
            mirror.close()
            mirror = open_mirror(directory, segment_bytes=700, fsync=os.fsync)
        count += mirror.append(piece)
    assert mirror.end == LogEnd(end_offset=end_offset(piece), epoch=read_header(batches[-1]).leader_epoch)
    assert mirror.outer_batches() == (batches[0], batches[-1])
    mirror.close()
    assert count == len(batches)
    assert content(directory) == b"".join(batches)
    assert read_epochs(directory) == epoch_starts(batches)
    with open_reader(directory) as reader:
        assert (reader.start_offset(), reader.high_watermark(), reader.notes) == (0, mirror_end(batches), ())
    assert_whole(directory)
    assert recover(directory).image.end_offset == Applier().apply(b"".join(batches)).end_offset
    shutil.rmtree(directory)


def mirror_end(batches):
    return read_header(batches[-1]).end_offset


def test_a_kafkas_log_is_mirrored_byte_for_byte(tmp_path):
    source = KAFKA_LOGS[1]
    data = content(source)
    directory = tmp_path / "mirror"
    start = read_header(data).base_offset
    checkpoint = next((each for each in list_checkpoints(source) if each.end_offset == start), None)
    with open_mirror(directory, fsync=os.fsync) as mirror:
        mirror.bind("kafka")
        mirror.begin(checkpoint if start else None)
        for position, header in iter_batches(data):
            mirror.append(data[position : position + header.size])
    assert content(directory) == data
    assert_whole(directory)


def test_readers_follow_it_live(tmp_path):
    batches = batches_of(1)
    with begun(tmp_path / "log", batches[:1]) as mirror, open_reader(mirror.directory) as reader:
        for batch in batches[1:]:
            mirror.append(batch)
            base = read_header(batch).base_offset
            assert reader.wait(base, 0)
            assert reader.read(base) == batch


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda a, b: b, ReplayError, "expected one that contains offset"),
        (lambda a, b: a[:-1], DecodeError, "truncated batch"),
        (lambda a, b: a + b[:-1], DecodeError, "a damaged or truncated batch"),
        (lambda a, b: a[:-1] + bytes([a[-1] ^ 1]), DecodeError, "CRC"),
        (lambda a, b: a + a, ReplayError, "expected one that contains offset"),
        (lambda a, b: build_batch([b"x"], base_offset=5, leader_epoch=1, timestamp=0), ReplayError, "epoch"),
        (lambda a, b: build_batch([b"x"] * 3, base_offset=4, leader_epoch=2, timestamp=0), ReplayError, "where the"),
        (lambda a, b: b"", DecodeError, "truncated batch header"),
    ],
)
def test_batches_that_do_not_follow_are_refused_and_the_mirror_continues(tmp_path, change, error, said):
    first = build_batch([value("x")] * 5, base_offset=0, leader_epoch=2, timestamp=0)
    a = build_batch([value("a")], base_offset=5, leader_epoch=2, timestamp=0)
    b = build_batch([value("b")], base_offset=6, leader_epoch=3, timestamp=0)
    with begun(tmp_path / "log", [first]) as mirror:
        with pytest.raises(error, match=said):
            mirror.append(change(a, b))
        assert content(mirror.directory) == first
        assert mirror.append(a + b) == 2
    assert content(mirror.directory) == first + a + b
    assert_whole(mirror.directory)


def test_other_writers_are_refused(tmp_path):
    directory = tmp_path / "log"
    begun(directory, batches_of(1)).close()
    for create in (False, True):
        with pytest.raises(LogError, match=r"a mirror of cluster one: only `aclog mirror` appends to it"):
            open_log(directory, create=create, force=True)
    with open_mirror(directory), pytest.raises(LockedError, match=r"aclog\.lock"):
        open_mirror(directory)


def test_a_copy_without_mirror_properties_is_an_independent_log(tmp_path):
    """It begins an epoch of its own, so that its appends are never taken for the quorum's."""
    batches = batches_of(1)
    begun(tmp_path / "log", batches).close()
    own = shutil.copytree(tmp_path / "log", tmp_path / "own")
    (own / MIRROR_FILE).unlink()
    with open_log(own, node_id=7) as log:
        assert log.leader_epoch == read_header(batches[-1]).leader_epoch + 1
        log.append([value("own")], timestamp=0).result(60)
    assert read_directory(own)[-1][1] == [value("own")]
    assert read_quorum_state(own).leader_id == 7
    assert content(own).startswith(b"".join(batches))
    with open_log(own) as log:
        assert log.leader_epoch == read_header(batches[-1]).leader_epoch + 1
    assert_whole(own)


def test_a_directory_with_other_content_is_refused(tmp_path):
    ours = small_log(tmp_path / "ours")
    kafka = shutil.copytree(KAFKA_LOGS[0], tmp_path / "kafka")
    (tmp_path / "file").touch()
    some = tmp_path / "some"
    some.mkdir()
    (some / "notes.txt").touch()
    for directory in (ours, kafka, some):
        before = sorted(directory.iterdir())
        with pytest.raises(
            LogError, match=r"not a mirror \(it contains .*, but no mirror.properties\): expected a mirror"
        ):
            open_mirror(directory)
        assert sorted(directory.iterdir()) == before
    with pytest.raises(LogError, match="cannot create: File exists"):
        open_mirror(tmp_path / "file")
    (some / "notes.txt").rename(some / "meta.properties")
    with pytest.raises(LogError):
        open_mirror(some)
    empty = some / "empty"
    with pytest.raises(LogError, match="belongs to a Kafka"):
        open_mirror(empty)


def test_the_cluster_never_changes(tmp_path):
    with open_mirror(tmp_path / "log") as mirror:
        assert (mirror.cluster_id, mirror.end, mirror.outer_batches(), mirror.notes) == (None, None, (b"", b""), ())
        with pytest.raises(LogError, match="not bound to a cluster"):
            mirror.begin(None)
        mirror.bind("one")
        with pytest.raises(LogError, match="mirrors cluster one, not two"):
            mirror.bind("two")
        with pytest.raises(LogError, match="not begun"):
            mirror.append(batches_of(1)[0])
    with open_mirror(tmp_path / "log") as mirror:
        assert (mirror.cluster_id, mirror.end) == ("one", None)
        with pytest.raises(LogError, match="mirrors cluster one, not two"):
            mirror.bind("two")


def test_a_torn_tail_is_truncated_with_a_note(tmp_path):
    batches = batches_of(1)
    begun(tmp_path / "log", batches).close()
    (path,) = segment_paths(tmp_path / "log")
    path.write_bytes(path.read_bytes() + batches[0][:50])
    with open_mirror(tmp_path / "log") as mirror:
        assert "truncated a torn tail of 50 bytes" in mirror.notes[0]
        assert mirror.end.end_offset == mirror_end(batches)
    assert content(tmp_path / "log") == b"".join(batches)


def test_a_damaged_mirror_is_not_appended_to(tmp_path):
    begun(tmp_path / "log", batches_of(1)).close()
    (path,) = segment_paths(tmp_path / "log")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(DecodeError, match="CRC"):
        open_mirror(tmp_path / "log")
    with pytest.raises(DecodeError, match="CRC"):  # the lock was released
        open_mirror(tmp_path / "log")


def test_an_unfinished_checkpoint_of_a_dead_process_is_removed(tmp_path):
    """Files that another process is writing stay: `snapshot create` uses other temporary names."""
    begun(tmp_path / "log", batches_of(1)).close()
    ours = tmp_path / "log" / f"{700:020d}-{4:010d}.checkpoint.part"
    others = tmp_path / "log" / f"{700:020d}-{4:010d}-0123456789abcdef.checkpoint.part"
    ours.touch()
    others.touch()
    open_mirror(tmp_path / "log").close()
    assert (ours.exists(), others.exists()) == (False, True)


def test_missing_segments_are_not_replaced_by_a_new_log(tmp_path):
    begun(tmp_path / "log", batches_of(1)).close()
    for path in segment_paths(tmp_path / "log"):
        path.unlink()
    with pytest.raises(LogError, match="its segments are missing"):
        open_mirror(tmp_path / "log")


class TestAfterASnapshot:
    @pytest.fixture
    def parts(self):
        batches = batches_of(3, 60)
        return batches[:20], batches[20:35], batches[35:]

    def test_a_new_mirror(self, tmp_path, parts):
        old, lost, new = parts
        snapshot = snapshot_of(old + lost, tmp_path / "given")
        with open_mirror(tmp_path / "log") as mirror:
            mirror.bind("one")
            assert mirror.begin(snapshot) is None
            assert mirror.end == LogEnd(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
            assert mirror.outer_batches() == (b"", b"")
            assert_whole(mirror.directory)
            mirror.append(b"".join(new))
        (copy,) = list_checkpoints(tmp_path / "log")
        assert copy.path.read_bytes() == snapshot.path.read_bytes()
        assert content(tmp_path / "log") == b"".join(new)
        assert_whole(tmp_path / "log")
        image = recover(tmp_path / "log").image
        assert image.acls.digest() == Applier().apply(b"".join(old + lost + new)).acls.digest()

    def test_the_old_log_stays_in_an_archive(self, tmp_path, parts):
        old, lost, new = parts
        directory = tmp_path / "log"
        snapshot = snapshot_of(old + lost, tmp_path / "given")
        with begun(directory, old, segment_bytes=800) as mirror:
            earlier = write_checkpoint(Applier().apply(b"".join(old[:10])), directory)
            image = write_image_file(earlier)
            before = len(segment_paths(directory))
            assert before > 3
            archive = mirror.begin(snapshot)
            assert archive == directory / f"archive-{mirror_end(old):020d}"
            mirror.append(b"".join(new))
        assert (content(archive), content(directory)) == (b"".join(old), b"".join(new))
        assert (archive / earlier.name).exists()
        assert not earlier.exists()
        assert (archive / image.name).exists()
        assert not image.exists()
        assert len(segment_paths(archive)) == before
        assert read_epochs(archive) == epoch_starts(old)
        for whole in (archive, directory):
            assert_whole(whole)
            with pytest.raises(LogError, match="a mirror of cluster one"):
                open_log(whole)
        assert recover(archive).image.end_offset == mirror_end(old)
        assert recover(directory, as_of=snapshot.end_offset).source.startswith(str(directory))
        with open_mirror(directory) as mirror:
            assert mirror.end.end_offset == mirror_end(new)
        with open_mirror(archive) as mirror:  # it could continue from its end if a source had the next records
            assert mirror.end.end_offset == mirror_end(old)
            mirror.append(lost[0])
        assert_whole(archive)

    def test_one_gap_after_another(self, tmp_path, parts):
        old, lost, new = parts
        directory = tmp_path / "log"
        with begun(directory, old) as mirror:
            first = mirror.begin(snapshot_of(old + lost[:5], tmp_path / "given"))
            second = mirror.begin(snapshot_of(old + lost, tmp_path / "given"))
            mirror.append(new[0])
        assert (content(first), content(second), content(directory)) == (b"".join(old), b"", new[0])
        for whole in (first, second, directory):
            assert_whole(whole)
        assert recover(second).image.end_offset == mirror_end(lost[:5])

    def test_an_empty_log_is_not_archived(self, tmp_path, parts):
        old, lost, new = parts
        with begun(tmp_path / "log") as mirror:
            assert mirror.end == LogEnd(end_offset=0, epoch=0)
            assert mirror.begin(snapshot_of(old + lost, tmp_path / "given")) is None
            mirror.append(new[0])
        assert not list((tmp_path / "log").glob("archive-*"))
        assert content(tmp_path / "log") == new[0]
        assert_whole(tmp_path / "log")

    def test_only_a_snapshot_ahead_of_the_mirror_is_accepted(self, tmp_path, parts):
        old, lost, _ = parts
        with begun(tmp_path / "log", old) as mirror:
            for count in (10, 20):
                with pytest.raises(LogError, match="expected a snapshot with a higher end offset"):
                    mirror.begin(snapshot_of(old[:count], tmp_path / "given"))
            mirror.append(lost[0])
        assert content(tmp_path / "log") == b"".join(old) + lost[0]

    def test_an_archive_of_that_name_is_never_overwritten(self, tmp_path, parts):
        old, lost, _ = parts
        directory = tmp_path / "log"
        taken = directory / f"archive-{mirror_end(old):020d}"
        with begun(directory, old) as mirror:
            taken.mkdir()
            with pytest.raises(LogError, match="already exists: cannot archive the old log"):
                mirror.begin(snapshot_of(old + lost, tmp_path / "given"))
        assert content(directory) == b"".join(old)
        with pytest.raises(LogError, match="already exists: cannot archive the old log"):
            open_mirror(directory)
        taken.rmdir()
        with open_mirror(directory) as mirror:
            assert mirror.end.end_offset == mirror_end(lost)
        assert content(taken) == b"".join(old)

    def test_a_snapshot_that_cannot_be_written_leaves_everything(self, tmp_path, parts, monkeypatch):
        old, lost, _ = parts
        directory = tmp_path / "log"
        snapshot = snapshot_of(old + lost, tmp_path / "given")

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with begun(directory, old) as mirror:
            monkeypatch.setattr(mirror_module.shutil, "copyfileobj", full)
            with pytest.raises(LogError, match="the disk is full"):
                mirror.begin(snapshot)
            monkeypatch.undo()
            mirror.append(lost[0])
        assert not list(directory.glob("*.part"))
        assert content(directory) == b"".join(old) + lost[0]
        with open_mirror(directory) as mirror, pytest.raises(LogError, match="cannot write"):
            mirror.begin(CheckpointFile(end_offset=10**6, epoch=9, path=tmp_path / "nothing"))
        assert_whole(directory)


class TestAFullDisk:
    """What could not be written is absent, and the mirror continues after it is reopened."""

    @pytest.mark.parametrize(
        "error", [OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "Input/output error")]
    )
    def test_fsync_fails(self, tmp_path, error):
        batches, failing = batches_of(1), []

        def fsync(fd):
            if failing:
                raise failing[0]
            os.fsync(fd)

        with begun(tmp_path / "log", batches[:10], fsync=fsync) as mirror:
            failing.append(error)
            with pytest.raises(LogError, match=r"the disk is full|Input/output error"):
                mirror.append(b"".join(batches[10:]))
            failing.clear()
            with pytest.raises(LogError, match="no further appends are accepted until the mirror is opened again"):
                mirror.append(b"".join(batches[10:]))
            assert content(mirror.directory) == b"".join(batches[:10])
        self.goes_on(tmp_path / "log", batches, 10)

    def test_a_short_write_then_a_full_disk(self, tmp_path, monkeypatch):
        batches = batches_of(1)

        def half(fd, data):
            os.write(fd, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        with begun(tmp_path / "log", batches[:10]) as mirror:
            monkeypatch.setattr(files, "write_all", half)
            with pytest.raises(LogError, match="the disk is full"):
                mirror.append(b"".join(batches[10:]))
        monkeypatch.undo()
        self.goes_on(tmp_path / "log", batches, 10)

    def test_a_new_segment_cannot_be_created(self, tmp_path, monkeypatch):
        batches = batches_of(1, 20, 100)

        def refuse(file):
            raise LogError(f"{file.path}: cannot create: the disk is full")

        with begun(tmp_path / "log", segment_bytes=600) as mirror:
            monkeypatch.setattr(appender_module, "create_segment", refuse)
            with pytest.raises(LogError, match="the disk is full"):
                mirror.append(b"".join(batches))
            assert 0 < mirror.end.end_offset < mirror_end(batches)
            count = sum(read_header(batch).end_offset <= mirror.end.end_offset for batch in batches)
        monkeypatch.undo()
        self.goes_on(tmp_path / "log", batches, count)

    def goes_on(self, directory, batches, count):
        assert_whole(directory)
        with open_mirror(directory) as mirror:
            assert mirror.end.end_offset == mirror_end(batches[:count])
            mirror.append(b"".join(batches[count:]))
        assert content(directory) == b"".join(batches)
        assert_whole(directory)


class TestProperties:
    FULL = MirrorProperties(cluster_id="größe = 1", start=LogEnd(end_offset=2**63 - 1, epoch=2**31 - 1))

    @pytest.mark.parametrize("properties", [FULL, MirrorProperties(cluster_id="x")])
    def test_round_trip(self, properties):
        assert decode_mirror_properties(encode_mirror_properties(properties)) == properties

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("version=2\ncluster.id=x", "unknown version 2: expected 1"),
            ("cluster.id=x", "version None"),
            ("version=1", "cluster.id is missing"),
            ("version=1\ncluster.id=", "cluster.id is missing"),
            ("version=1\ncluster.id=x\nstart.offset=5", "start.epoch=: expected an integer"),
            ("version=1\ncluster.id=x\nstart.offset=-1\nstart.epoch=0", "start.offset=-1: expected"),
            ("version=1\ncluster.id=x\nstart.offset=9223372036854775808\nstart.epoch=0", "start.offset=9"),
            ("version=1\ncluster.id=x\nstart.offset=1\nstart.epoch=\u0664", "start.epoch=\u0664"),
            ("version=1\\uzzzz", "not a properties file"),
        ],
    )
    def test_invalid_properties(self, tmp_path, text, said):
        with pytest.raises(DecodeError, match=said):
            decode_mirror_properties(text.encode("unicode_escape").replace(b"\\n", b"\n").replace(b"\\\\", b"\\"))

    def test_a_damaged_file_refuses_all_writers(self, tmp_path):
        begun(tmp_path / "log", batches_of(1)).close()
        (tmp_path / "log" / MIRROR_FILE).write_bytes(b"version=3\n")
        for opened in (open_log, open_mirror):
            with pytest.raises(MetadataError, match=r"mirror\.properties: unknown version 3"):
                opened(tmp_path / "log")
