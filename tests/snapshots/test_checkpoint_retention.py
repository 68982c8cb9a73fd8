"""Retention of checkpoints when the disk refuses, or the process died before it was done."""

from pathlib import Path

import pytest

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.file_names import list_checkpoints
from aclog.snapshots.checkpoint_retention import remove_old_checkpoints
from aclog.snapshots.checkpoint_writer import write_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.provenance import Provenance


@pytest.fixture
def directory(tmp_path):
    for end in (1, 2, 3):
        write_checkpoint(Image(provenance=Provenance(end_offset=end, epoch=1)), tmp_path)
    return tmp_path


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_what_a_dead_process_left_goes_and_nothing_else(directory):
    left = list_checkpoints(directory)[0].path
    left.rename(f"{left}.deleted")
    others = ["00000000000000000000.log.deleted", "x.checkpoint.deleted", f"{left.name}.part"]
    for other in others:
        (directory / other).touch()
    assert remove_old_checkpoints(directory, keep=2) == ()
    kept = [checkpoint.path.name for checkpoint in list_checkpoints(directory)]
    assert len(kept) == 2
    assert names(directory) == sorted(kept + others)


def test_a_disk_that_refuses_leaves_the_newest(directory, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refused)
        with pytest.raises(LogError, match=f"^{directory}: cannot remove checkpoints: Permission denied$"):
            remove_old_checkpoints(directory, keep=1)
    assert [checkpoint.end_offset for checkpoint in list_checkpoints(directory)] == [3]
    remove_old_checkpoints(directory, keep=1)
    assert names(directory) == [list_checkpoints(directory)[0].path.name]
