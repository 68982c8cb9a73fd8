"""Image files: they say what their checkpoint says, or nothing."""

import errno
import gc
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

import crc32c
import psutil
import pytest

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import CheckpointError, DecodeError, LogError
from aclog.metalog.filelog.files import checkpoint_name, image_path
from aclog.metalog.machine import disk
from aclog.metalog.records import FeatureLevelRecord
from aclog.snapshots import checkpoints, image_file
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import (
    checkpoint_batches,
    read_checkpoint,
    read_image_file,
    read_state,
    remove_partial_images,
    write_checkpoint,
    write_image_file,
)
from aclog.snapshots.image import METADATA_VERSION, Image, NewerKafka, Provenance
from aclog.snapshots.image_file import HEADER_BYTES, PART_BYTES, check_mapping, decode_header, digest_of, digest_of_file
from aclog.snapshots.publisher import Merger, Publisher
from tests.support.builders.image_files import overwrite, write_pair
from tests.support.builders.random_log import random_image
from tests.support.builders.state_logs import damage
from tests.support.builders.state_records import acl
from tests.support.processes.waiting import wait_until


def rest(image):
    return b"".join(checkpoint_batches(image.with_acls(AclsImage.empty())))


def same(one, other):
    return rest(one) == rest(other) and one.acls.digest() == other.acls.digest() and len(one.acls) == len(other.acls)


def _now_ns(directory):
    """What the file system's clock says: it goes on in steps of milliseconds."""
    with tempfile.TemporaryFile(dir=directory) as file:
        return os.fstat(file.fileno()).st_ctime_ns


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of a few ACLs, with its image file."""
    return write_pair(tmp_path)


def fault(checkpoint):
    """Why the image file is ignored; the state is the checkpoint's, and a reader is told."""
    with pytest.raises(DecodeError) as error:
        read_image_file(checkpoint)
    notes = []
    assert same(read_state(checkpoint, notify=notes.append), read_checkpoint(checkpoint))
    assert notes == [f"{error.value}; ignored: reading the checkpoint instead"]
    assert notes[0].startswith(f"{image_path(checkpoint)}: ")
    return error.value.what


def test_a_digest_without_threads(tmp_path, monkeypatch):
    """Where a container may start no more of them, a state is read all the same."""
    data = os.urandom(PART_BYTES) + b"end"
    (tmp_path / "data").write_bytes(data)
    started = []

    def start_one(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    start = threading.Thread.start
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", start_one)
    with (tmp_path / "data").open("rb") as file:
        assert digest_of_file(file.fileno(), len(data)) == digest_of(data)
    assert started


@pytest.mark.parametrize("seed", range(12))
def test_it_says_what_the_checkpoint_says(tmp_path, seed):
    path = write_checkpoint(random_image(seed), tmp_path)
    assert read_image_file(path) is None
    assert write_image_file(path) == image_path(path)
    found = read_image_file(path)
    assert same(found, read_checkpoint(path))
    assert found.provenance == read_checkpoint(path).provenance
    assert {rule.id for rule in found.acls} == {rule.id for rule in read_checkpoint(path).acls}


def test_an_image_without_anything(tmp_path):
    path = write_checkpoint(Image(provenance=Provenance(end_offset=1, epoch=0, timestamp=0)), tmp_path)
    write_image_file(path)
    assert same(read_image_file(path), read_checkpoint(path))


def test_it_lives_on_when_the_file_is_gone(checkpoint):
    found = read_image_file(checkpoint)
    image_path(checkpoint).unlink()
    assert same(found, read_checkpoint(checkpoint))


class TestInUse:
    def test_other_names_or_none_change_nothing(self, tmp_path, checkpoint):
        found = read_image_file(checkpoint)
        path = image_path(checkpoint)
        path.rename(tmp_path / "elsewhere")
        check_mapping(found.acls)
        (tmp_path / "elsewhere").unlink()
        write_image_file(checkpoint)
        check_mapping(found.acls)
        assert same(found, read_checkpoint(checkpoint))

    def test_the_same_content_again_is_no_change(self, checkpoint):
        found = read_image_file(checkpoint)
        path = image_path(checkpoint)
        for number in (1, 2):
            os.utime(path, ns=(number, number))
            check_mapping(found.acls)
        check_mapping(read_checkpoint(checkpoint).acls)  # of no file

    def test_a_good_file_of_other_rules_is_found(self, checkpoint):
        """The process sees the backup's rules through its mapping."""
        found = read_image_file(checkpoint)
        overwrite(checkpoint)
        path = image_path(checkpoint)
        said = f"^{path}: overwritten or truncated while it was in use: damaged: a checksum does not match. Replace"
        for _ in range(2):
            with pytest.raises(LogError, match=said):
                check_mapping(found.acls)

    def test_a_file_of_other_rules_with_the_old_times_is_found(self, checkpoint):
        """A copy that keeps times, such as `cp -p`, sets the modification time back."""
        found, path = read_image_file(checkpoint), image_path(checkpoint)
        before = path.stat()
        wait_until(lambda: _now_ns(path.parent) > before.st_ctime_ns, "the file system's clock went on")
        overwrite(checkpoint)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (path.stat().st_mtime_ns, path.stat().st_size) == (before.st_mtime_ns, before.st_size)
        with pytest.raises(LogError, match="overwritten or truncated"):
            check_mapping(found.acls)

    def test_what_is_written_over_it_gets_into_no_checkpoint(self, tmp_path, checkpoint):
        """A node looks once a second: a checkpoint written in between would make it the state for good."""
        found = read_image_file(checkpoint)
        overwrite(checkpoint)
        (tmp_path / "new").mkdir()
        with pytest.raises(LogError, match="overwritten or truncated"):
            write_checkpoint(found, tmp_path / "new")
        assert not list((tmp_path / "new").iterdir())

    def test_what_is_written_over_it_is_merged_into_no_base(self, checkpoint):
        """A merge in between would carry it into a base that is no longer of the file, and pass for good."""
        publisher, reports = Publisher(), SimpleQueue()
        publisher.replace(read_image_file(checkpoint))
        overwrite(checkpoint)
        with closing(Merger(publisher=publisher, merge_at=1, report=reports.put)):
            publisher.advance(build_batch([encode_record(acl(9))], base_offset=3, leader_epoch=1, timestamp=6))
            assert "overwritten or truncated" in reports.get(timeout=300).failure
        with pytest.raises(LogError, match="overwritten or truncated"):
            check_mapping(publisher.current.acls)

    def test_a_shorter_one_is_found(self, checkpoint):
        found = read_image_file(checkpoint)
        os.truncate(image_path(checkpoint), 4096)
        with pytest.raises(LogError, match="overwritten or truncated"):
            check_mapping(found.acls)

    def test_nothing_stays_open(self, checkpoint):
        gc.collect()
        process = psutil.Process()
        before = process.num_fds()
        found = read_image_file(checkpoint)
        assert process.num_fds() > before
        del found
        gc.collect()
        assert process.num_fds() == before


class TestDamage:
    def test_every_byte(self, checkpoint, sample):
        path = image_path(checkpoint)
        whole = bytearray(path.read_bytes())
        for position in sample(range(len(whole)), 300):
            whole[position] ^= 1 << position % 8
            path.write_bytes(whole)
            with pytest.raises(DecodeError):
                read_image_file(checkpoint)
            whole[position] ^= 1 << position % 8
        path.write_bytes(whole)
        assert same(read_image_file(checkpoint), read_checkpoint(checkpoint))

    def test_every_length(self, checkpoint, sample):
        path = image_path(checkpoint)
        whole = path.read_bytes()
        for size in sample(range(len(whole)), 300):
            path.write_bytes(whole[:size])
            with pytest.raises(DecodeError):
                read_image_file(checkpoint)
        path.write_bytes(whole + b"\0")
        assert fault(checkpoint) == f"{len(whole) + 1} bytes: expected {len(whole)}, according to its header"

    def test_anywhere_in_the_middle(self, checkpoint):
        path = image_path(checkpoint)
        whole = bytearray(path.read_bytes())
        for position in (HEADER_BYTES + 5, len(whole) // 2, len(whole) - 1):
            whole[position] ^= 1
            path.write_bytes(whole)
            assert fault(checkpoint) == "damaged: a checksum does not match"
            whole[position] ^= 1

    def test_a_base_of_another_layout(self, checkpoint):
        path = image_path(checkpoint)
        whole = bytearray(path.read_bytes())
        header = decode_header(bytes(whole[:HEADER_BYTES]))
        whole[header.base_start + 8] += 1  # the base's version
        blocks = (whole[start:end] for start, end in header.blocks())
        checksums = image_file.checksums_of(blocks)
        whole[header.checksums_start :] = checksums
        whole[:HEADER_BYTES] = image_file.encode_header(
            image_file.ImageHeader(
                checkpoint=header.checkpoint,
                rest_size=header.rest_size,
                base_size=header.base_size,
                checksums_crc=image_file.checksum_of(checksums),
            )
        )
        path.write_bytes(whole)
        assert "version 2" in fault(checkpoint)

    def test_another_version(self, checkpoint):
        path = image_path(checkpoint)
        whole = bytearray(path.read_bytes())
        whole[8] += 1
        whole[HEADER_BYTES - 4 : HEADER_BYTES] = crc32c.crc32c(whole[: HEADER_BYTES - 4]).to_bytes(4, "little")
        path.write_bytes(whole)
        assert fault(checkpoint) == "an image file of version 2: expected 1"

    def test_a_damaged_checkpoint_is_damaged(self, checkpoint):
        """Its image file is whole, but what it was made from is not there any more: nobody can check it."""
        data = bytearray(checkpoint.read_bytes())
        data[-100] ^= 1
        checkpoint.write_bytes(data)
        with pytest.raises(DecodeError, match="made from another"):
            read_image_file(checkpoint)
        with pytest.raises(CheckpointError, match="CRC mismatch"):
            read_state(checkpoint)


class TestStrangers:
    def test_another_checkpoint_of_the_same_name_and_size(self, tmp_path, checkpoint):
        there = tmp_path / "there"
        there.mkdir()
        values = [encode_record(acl(number, permission=2)) for number in range(3)]
        other = Applier().apply(build_batch(values, base_offset=0, leader_epoch=1, timestamp=5))
        path = write_checkpoint(other, there)
        assert path.name == checkpoint.name
        assert path.stat().st_size == checkpoint.stat().st_size
        path.replace(checkpoint)
        assert fault(checkpoint) == f"made from another {checkpoint.name} than the one beside it"

    def test_the_image_file_of_another_checkpoint(self, tmp_path, checkpoint):
        other = write_checkpoint(random_image(4), tmp_path)
        image_path(checkpoint).replace(image_path(other))
        assert fault(other) == f"made from the checkpoint of offset 3, epoch 1, not from {other.name}"

    def test_a_checkpoint_under_another_name(self, tmp_path, checkpoint):
        renamed = checkpoint.rename(tmp_path / checkpoint_name(4, 1))
        image_path(checkpoint).rename(image_path(renamed))
        assert "made from the checkpoint of offset 3" in fault(renamed)

    def test_another_file(self, checkpoint):
        for content in (b"", b"x", checkpoint.read_bytes()):
            image_path(checkpoint).write_bytes(content)
            assert fault(checkpoint) == "not an image file: it does not begin with the header of one"

    def test_a_link(self, tmp_path, checkpoint):
        path = image_path(checkpoint)
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        assert fault(checkpoint) == f"cannot open: {os.strerror(errno.ELOOP)}"

    def test_a_directory_and_a_fifo(self, checkpoint):
        path = image_path(checkpoint)
        path.unlink()
        path.mkdir()
        assert fault(checkpoint) == "it is not a regular file"
        path.rmdir()
        os.mkfifo(path)
        assert fault(checkpoint) == "it is not a regular file"

    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    def test_one_that_others_may_write(self, checkpoint, mode):
        image_path(checkpoint).chmod(mode)
        assert fault(checkpoint) == "writable by others than its owner: expected mode 0600"

    def test_one_of_another_owner(self, checkpoint, monkeypatch):
        real = os.fstat

        def fstat(fd):
            found = list(real(fd))
            found[stat.ST_UID] += Path(f"/proc/self/fd/{fd}").readlink().suffix == ".image"
            return os.stat_result(found)

        monkeypatch.setattr(checkpoints.disk, "fstat", fstat)
        owner = checkpoint.stat().st_uid
        assert fault(checkpoint) == f"its owner is user {owner + 1}: expected {owner}, the checkpoint's"

    def test_no_checkpoint(self, checkpoint):
        checkpoint.unlink()
        with pytest.raises(DecodeError, match="cannot read: No such file"):
            read_image_file(checkpoint)


class TestWriting:
    def test_it_is_private_and_nothing_else_is_left(self, tmp_path, checkpoint):
        assert set(tmp_path.iterdir()) == {checkpoint, image_path(checkpoint)}
        assert stat.S_IMODE(image_path(checkpoint).stat().st_mode) == 0o600

    @pytest.mark.parametrize("step", ["write", "fsync", "replace"])
    def test_a_full_disk_leaves_the_old_one(self, tmp_path, monkeypatch, checkpoint, step):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        before = image_path(checkpoint).read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(Path if step == "replace" else disk, step, full)
            with pytest.raises(LogError, match="cannot write the image file: the disk is full"):
                write_image_file(checkpoint)
        assert set(tmp_path.iterdir()) == {checkpoint, image_path(checkpoint)}
        assert image_path(checkpoint).read_bytes() == before

    def test_none_is_made_of_a_damaged_checkpoint(self, tmp_path, checkpoint):
        image_path(checkpoint).unlink()
        data = bytearray(checkpoint.read_bytes())
        data[-100] ^= 1
        checkpoint.write_bytes(data)
        with pytest.raises(CheckpointError, match="CRC mismatch"):
            write_image_file(checkpoint)
        assert list(tmp_path.iterdir()) == [checkpoint]

    def test_none_is_made_of_what_a_newer_kafka_wrote(self, tmp_path):
        """So that readers are warned as they are without one, with the checkpoint's own offsets."""
        values = [encode_record(FeatureLevelRecord(name=METADATA_VERSION, feature_level=99))]
        newer = NewerKafka(strict=False)
        image = Applier(newer=newer).apply(build_batch(values, base_offset=0, leader_epoch=1, timestamp=5))
        path = write_checkpoint(image, tmp_path)
        with pytest.raises(CheckpointError, match="newer Kafka"):
            write_image_file(path)
        assert list(tmp_path.iterdir()) == [path]

    def test_retention_was_faster(self, tmp_path, monkeypatch, checkpoint):
        real = Path.replace

        def replace(self, target):
            checkpoint.unlink()
            return real(self, target)

        monkeypatch.setattr(Path, "replace", replace)
        write_image_file(checkpoint)
        assert list(tmp_path.iterdir()) == []

    def test_what_a_dead_process_left(self, tmp_path, checkpoint):
        left = tmp_path / f"{checkpoint.stem}-0123456789abcdef.image.part"
        others = [tmp_path / "x.image.part", tmp_path / f"{checkpoint.name}.part"]
        for path in (left, *others):
            path.touch()
        remove_partial_images(tmp_path)
        assert set(tmp_path.iterdir()) == {checkpoint, image_path(checkpoint), *others}


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    path = tmp_path / "file"
    for size in (0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES - 7):
        path.write_bytes(os.urandom(size))
        with path.open("rb") as file:
            assert digest_of_file(file.fileno(), size) == digest_of(path.read_bytes())


KILLED = """
import os, signal, sys
from pathlib import Path
from aclog.metalog.filelog import files
from aclog.metalog.machine import disk
from aclog.snapshots.checkpoints import write_image_file
step = sys.argv[1]
where = {"replace": Path, "fsync_directory": files}.get(step, disk)
setattr(where, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
write_image_file(Path(sys.argv[2]))
"""


class TestKilled:
    """A process is killed while it writes: no file, the old one or the new one, and never a part of one."""

    @pytest.mark.parametrize("there", [False, True])
    @pytest.mark.parametrize("step", ["write", "fsync", "replace", "fsync_directory"])
    @pytest.mark.process
    def test_at_every_step(self, tmp_path, checkpoint, step, there):
        path = image_path(checkpoint)
        if there:
            damage(path)
        else:
            path.unlink()
        process = subprocess.run([sys.executable, "-c", KILLED, step, str(checkpoint)], check=False)
        assert process.returncode == -signal.SIGKILL
        assert same(read_state(checkpoint), read_checkpoint(checkpoint))
        if step == "fsync_directory":
            assert read_image_file(checkpoint) is not None
        elif there:
            fault(checkpoint)
        else:
            assert read_image_file(checkpoint) is None
        write_image_file(checkpoint)
        remove_partial_images(tmp_path)
        assert set(tmp_path.iterdir()) == {checkpoint, path}
        assert same(read_image_file(checkpoint), read_checkpoint(checkpoint))

    def test_half_a_file_under_the_final_name(self, checkpoint):
        """As a copy that was cut off leaves it."""
        path = image_path(checkpoint)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert "according to its header" in fault(checkpoint)
