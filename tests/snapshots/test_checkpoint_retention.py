"""Checkpoint retention: what stays, and what happens if the disk fails or the process dies half-way."""

from pathlib import Path

import pytest

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.files import checkpoint_name, image_path, list_checkpoints
from aclog.snapshots.checkpoints import remove_old_checkpoints, write_checkpoint, write_image_file
from aclog.snapshots.image import Image, Provenance


@pytest.fixture
def directory(tmp_path):
    for end in (1, 2, 3):
        write_checkpoint(Image(provenance=Provenance(end_offset=end, epoch=1)), tmp_path)
    return tmp_path


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_only_the_remains_of_a_dead_process_are_removed(directory):
    left = list_checkpoints(directory)[0].path
    left.rename(f"{left}.deleted")
    others = ["00000000000000000000.log.deleted", "x.checkpoint.deleted", f"{left.name}.part"]
    for other in others:
        (directory / other).touch()
    assert remove_old_checkpoints(directory, keep=2) == ()
    kept = [checkpoint.path.name for checkpoint in list_checkpoints(directory)]
    assert len(kept) == 2
    assert names(directory) == sorted(kept + others)


def test_a_disk_error_leaves_the_newest(directory, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refused)
        with pytest.raises(LogError, match=f"^{directory}: cannot remove checkpoints: Permission denied$"):
            remove_old_checkpoints(directory, keep=1)
    assert [checkpoint.end_offset for checkpoint in list_checkpoints(directory)] == [3]
    remove_old_checkpoints(directory, keep=1)
    assert names(directory) == [list_checkpoints(directory)[0].path.name]


def test_image_files_go_with_their_checkpoints(directory):
    for checkpoint in list_checkpoints(directory):
        write_image_file(checkpoint.path)
    kept = list_checkpoints(directory)[-1].path
    remove_old_checkpoints(directory, keep=1)
    assert names(directory) == [kept.name, image_path(kept).name]


def test_an_image_file_whose_checkpoint_is_gone_is_removed(directory):
    """A process died after the checkpoint was removed, or made the file while it was."""
    gone = list_checkpoints(directory)[0].path
    orphan = write_image_file(gone)
    gone.unlink()
    stranger = directory / "x.image"
    stranger.touch()
    in_the_way = image_path(directory / checkpoint_name(7, 1))
    in_the_way.mkdir()
    assert remove_old_checkpoints(directory, keep=3) == ()
    assert not orphan.exists()
    assert stranger.exists()
    assert in_the_way.exists()


class TestRetention:
    def fill(self, directory, *ends):
        for end in ends:
            write_checkpoint(Image(provenance=Provenance(end_offset=end, epoch=1)), directory)
        return [file.end_offset for file in list_checkpoints(directory)]

    def test_the_newest_stay(self, tmp_path):
        self.fill(tmp_path, 1, 2, 3, 4)
        removed = remove_old_checkpoints(tmp_path, keep=2)
        assert [path.name[19] for path in removed] == ["1", "2"]
        assert sorted(path.name[19] for path in tmp_path.iterdir()) == ["3", "4"]

    def test_fewer_than_asked_for_all_stay(self, tmp_path):
        assert self.fill(tmp_path, 1, 2) == [1, 2]
        assert remove_old_checkpoints(tmp_path, keep=3) == ()
        assert len(list_checkpoints(tmp_path)) == 2

    def test_the_last_valid_one_stays_whatever_is_newer(self, tmp_path):
        self.fill(tmp_path, 1, 2, 3, 4)
        for end in (3, 4):
            path = tmp_path / f"{end:020d}-0000000001.checkpoint"
            path.write_bytes(path.read_bytes()[:-1])
        remove_old_checkpoints(tmp_path, keep=1)
        assert [file.end_offset for file in list_checkpoints(tmp_path)] == [2, 3, 4]

    def test_none_to_keep_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match="at least 1"):
            remove_old_checkpoints(tmp_path, keep=0)
