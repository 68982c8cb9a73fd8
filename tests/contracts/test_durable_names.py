"""Whoever replaces a file: its content is durable before it gets the name, and the name before anyone relies on it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from aclog.metalog.filelog.files import replace_durably
from aclog.metalog.machine import disk
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import Image

WRITERS = {
    "small files": lambda directory: replace_durably(directory / "file", b"content"),
    "checkpoints": lambda directory: write_checkpoint(Image.EMPTY, directory),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_content_then_name_then_directory(
    write: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, fsync, replace = list[str](), os.fsync, Path.replace

    def synced(fd: int) -> None:
        steps.append("fsync of the directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "fsync of the content")
        fsync(fd)

    def renamed(path: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(path, target)

    monkeypatch.setattr(disk, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    write(tmp_path)
    assert steps == ["fsync of the content", "rename", "fsync of the directory"]
