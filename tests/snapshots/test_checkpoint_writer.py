"""Checkpoints, written: their layout, their file, and nothing left behind if writing fails at any step."""

import errno
import os
import stat
from pathlib import Path

import pytest

from aclog.metalog.batches import build_batch, decode_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import KRaftVersion, KRaftVoters, SnapshotFooter, SnapshotHeader, decode_control
from aclog.metalog.errors import CheckpointError, LogError
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.machine import disk
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import checkpoint_batches, read_checkpoint, write_checkpoint
from aclog.snapshots.image import Image, Provenance
from tests.support.builders.random_log import random_image
from tests.support.builders.state_records import acl, removal

SMALL = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"


@pytest.fixture
def image():
    values = [encode_record(acl(number)) for number in range(50)]
    return Applier().apply(build_batch(values, base_offset=0, leader_epoch=1, timestamp=5))


@pytest.mark.parametrize("step", ["open", "write", "fsync", "close", "replace"])
def test_a_disk_that_is_full(tmp_path, monkeypatch, image, step):
    before = write_checkpoint(Image.EMPTY, tmp_path)
    real_write, real_close = os.write, os.close

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def write(fd, data):
        return real_write(fd, data[:100]) if os.fstat(fd).st_size == 0 else full()

    def close(fd):
        real_close(fd)
        full()

    where, fails = {"write": (disk, write), "close": (disk, close), "replace": (Path, full)}.get(step, (disk, full))
    with monkeypatch.context() as patched:
        patched.setattr(where, step, fails)
        with pytest.raises(LogError, match="cannot write the checkpoint: the disk is full"):
            write_checkpoint(image, tmp_path)
    assert list(tmp_path.iterdir()) == [before]


def test_an_interrupt(tmp_path, monkeypatch, image):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(disk, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(image, tmp_path)
    assert list(tmp_path.iterdir()) == []


class TestFile:
    def test_it_is_private_and_nothing_else_is_left(self, tmp_path):
        path = write_checkpoint(random_image(3), tmp_path)
        assert list(tmp_path.iterdir()) == [path]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_a_failure_leaves_nothing(self, tmp_path):
        image = Image(provenance=Provenance(end_offset=9, kraft_version=1))
        with pytest.raises(CheckpointError, match="no voters"):
            write_checkpoint(image, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_no_such_directory(self, tmp_path):
        with pytest.raises(LogError, match="cannot write the checkpoint"):
            write_checkpoint(Image.EMPTY, tmp_path / "none")

    def test_written_twice_it_is_the_same(self, tmp_path):
        image = random_image(4)
        before = write_checkpoint(image, tmp_path).read_bytes()
        assert write_checkpoint(image, tmp_path).read_bytes() == before


class TestLayout:
    def test_header_features_opaque_acls_footer(self):
        image = read_checkpoint(list_checkpoints(SMALL)[-1].path)
        batches = [decode_batch(data) for data in checkpoint_batches(image)]
        assert [batch.header.base_offset for batch in batches] == [0, 3, 3 + batches[1].header.record_count]
        assert {batch.header.leader_epoch for batch in batches} == {2}
        opening = [decode_control(r.key, r.value) for r in batches[0].records]
        assert [type(record) for record in opening] == [SnapshotHeader, KRaftVersion, KRaftVoters]
        assert opening[0].last_contained_log_timestamp == image.timestamp
        kinds = [record.value[1] for record in batches[1].records]
        assert kinds[:6] == [12] * 6
        assert batches[1].records[0].value[4:20] == b"metadata.version"
        opaque = [kind for kind in kinds[6:] if kind not in (10, 11, 18)]
        assert kinds[6 : 6 + len(opaque)] == opaque
        assert [type(decode_control(r.key, r.value)) for r in batches[2].records] == [SnapshotFooter]

    def test_without_kraft_version_there_is_the_header_alone(self):
        batch = decode_batch(next(iter(checkpoint_batches(Image(provenance=Provenance(end_offset=5, timestamp=7))))))
        (record,) = batch.records
        assert decode_control(record.key, record.value) == SnapshotHeader(last_contained_log_timestamp=7)


def test_a_removed_acl_leaves_nothing_in_a_checkpoint():
    values = [encode_record(record) for record in (acl(1), acl(2), acl(3), removal(2))]
    image = Applier().apply(build_batch(values, base_offset=0, leader_epoch=1, timestamp=5))
    batches = [decode_batch(data) for data in checkpoint_batches(image)]
    written = [record.value for batch in batches if not batch.header.is_control for record in batch.records]
    assert sorted(written) == sorted([values[0], values[2]])
