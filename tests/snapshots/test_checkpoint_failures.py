"""A checkpoint whose writing fails, at whatever step, leaves nothing behind."""

import errno
import os
from pathlib import Path

import pytest

from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import LogError
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoint_writer import write_checkpoint
from aclog.snapshots.image import Image
from tests.support.builders.state_records import acl


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

    where, fails = {"write": (os, write), "close": (os, close), "replace": (Path, full)}.get(step, (os, full))
    with monkeypatch.context() as patched:
        patched.setattr(where, step, fails)
        with pytest.raises(LogError, match="cannot write the checkpoint: the disk is full"):
            write_checkpoint(image, tmp_path)
    assert list(tmp_path.iterdir()) == [before]


def test_an_interrupt(tmp_path, monkeypatch, image):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(image, tmp_path)
    assert list(tmp_path.iterdir()) == []
