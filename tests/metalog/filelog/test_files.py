"""Files that appear when they are whole, and what killed writers leave of them."""

import fcntl
import os
import signal
import subprocess
import sys

import pytest

from aclog.metalog.filelog import files
from aclog.metalog.filelog.files import remove_abandoned, written_whole

KILLED = """
import os, signal, sys
from pathlib import Path
from aclog.metalog.filelog.files import written_whole
with written_whole(Path(sys.argv[1])) as fd:
    os.write(fd, b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_has_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "a.checkpoint"
    with written_whole(path) as fd:
        os.write(fd, b"whole")
        assert not path.exists()
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.checkpoint", b"whole")]


def test_what_is_being_written_is_not_abandoned(tmp_path):
    path = tmp_path / "a.checkpoint"
    with written_whole(path):
        assert remove_abandoned(tmp_path, ".checkpoint") == ()
        with written_whole(path) as fd:  # by another thread, say
            os.write(fd, b"other")
        assert remove_abandoned(tmp_path, ".checkpoint") == ()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.process
def test_what_a_killed_process_left_is_removed(tmp_path):
    path = tmp_path / "a.checkpoint"
    process = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert process.returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert remove_abandoned(tmp_path, ".image") == ()
    assert remove_abandoned(tmp_path, ".checkpoint") == (left,)
    assert list(tmp_path.iterdir()) == []


def test_what_others_name_otherwise_stays(tmp_path):
    names = [
        "00000000000000000007-0000000001.checkpoint.part",
        "00000000000000000007-0000000001-123456789.checkpoint.part",
        "a-0123456789abcdef.checkpoint",
        "a-0123456789abcde.checkpoint.part",
        "a-0123456789abcdef.checkpoint.part.gz",
    ]
    for name in names:
        (tmp_path / name).touch()
    ours = "a-{}123456789abcdef.checkpoint.part"
    (tmp_path / ours.format(1)).symlink_to(tmp_path / names[0])
    (tmp_path / ours.format(2)).mkdir()
    os.mkfifo(tmp_path / ours.format(3))
    names += map(ours.format, (1, 2))
    remove_abandoned(tmp_path, ".checkpoint")
    assert {each.name for each in tmp_path.iterdir()} - {ours.format(3)} == set(names)


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    removed = []

    def flock(fd, how, real=fcntl.flock):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        real(fd, how)

    monkeypatch.setattr(files.disk, "flock", flock)
    with written_whole(tmp_path / "a.checkpoint") as fd:
        os.write(fd, b"whole")
    assert len(removed) == 1
    assert (tmp_path / "a.checkpoint").read_bytes() == b"whole"


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(_fd, _how):
        raise OSError("no locks here")

    monkeypatch.setattr(files.disk, "flock", flock)
    with written_whole(tmp_path / "a.checkpoint") as fd:
        os.write(fd, b"whole")
        assert remove_abandoned(tmp_path, ".checkpoint") == ()
    assert (tmp_path / "a.checkpoint").read_bytes() == b"whole"
