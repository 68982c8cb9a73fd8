"""Files that are removed, renamed or replaced under an open log: nothing is acknowledged from then on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aclog.metalog.errors import LogError
from aclog.metalog.filelog import FileLog, open_log
from aclog.metalog.filelog.committed_mark import MARK_FILE
from aclog.metalog.filelog.locks import LOCK_FILE
from tests.support.builders.log_files import read_directory, segment_paths, small_log, value


def unlink(directory: Path) -> None:
    segment_paths(directory)[-1].unlink()


def replace(directory: Path) -> None:
    path = segment_paths(directory)[-1]
    shutil.copy(path, path.with_suffix(".copy")).replace(path)


def rename(directory: Path) -> None:
    directory.rename(directory.with_name("renamed"))


def rename_the_parent(directory: Path) -> None:
    directory.parent.rename(directory.parent.with_name("renamed"))


def swap(directory: Path) -> None:
    copy = shutil.copytree(directory, directory.with_name("copy"))
    rename(directory)
    copy.rename(directory)


def remove(directory: Path) -> None:
    shutil.rmtree(directory)


def link_elsewhere(directory: Path) -> None:
    """As a volume that is mounted over the directory: the same name leads elsewhere."""
    copy = shutil.copytree(directory, directory.with_name("copy"))
    rename(directory)
    directory.symlink_to(copy)


@pytest.fixture
def log(tmp_path):
    with open_log(small_log(tmp_path / "node" / "log")) as log:
        yield log


@pytest.mark.parametrize("harm", [unlink, replace, rename, rename_the_parent, swap, remove, link_elsewhere])
def test_no_append_is_acknowledged_afterwards(log: FileLog, harm: Callable[[Path], None]) -> None:
    log.check_files()
    log.append([value("before")], timestamp=1).result(60)
    before = read_directory(log.directory)
    mark = log.high_watermark()
    harm(log.directory)
    with pytest.raises(
        LogError, match=r"\.log: removed, renamed or replaced while it was open .* nothing more is ackn"
    ):
        log.append([value("after")], timestamp=2).result(60)
    assert log.high_watermark() == mark
    with pytest.raises(LogError, match="removed, renamed or replaced"):
        log.append([value("later")], timestamp=3)
    for place in (log.directory, log.directory.with_name("renamed"), log.directory.parent.with_name("renamed") / "log"):
        if place.is_dir() and segment_paths(place):
            assert read_directory(place) == before


@pytest.mark.parametrize("harm", [rename, rename_the_parent, swap, remove, link_elsewhere])
def test_no_segment_is_begun_afterwards(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    with open_log(small_log(tmp_path / "node" / "log"), segment_bytes=1) as log:
        log.append([value("before")], timestamp=1).result(60)
        count = len(segment_paths(log.directory))
        harm(log.directory)
        with pytest.raises(LogError, match=r"\.log: removed, renamed or replaced while it was open"):
            log.append([value("after")], timestamp=2).result(60)
        assert not log.directory.is_dir() or len(segment_paths(log.directory)) == count


@pytest.mark.parametrize("name", [LOCK_FILE, MARK_FILE, None])
def test_the_check_finds_what_no_append_would(log: FileLog, name: str | None) -> None:
    path = log.directory / name if name else segment_paths(log.directory)[-1]
    path.unlink()
    for _ in range(2):
        with pytest.raises(LogError, match=f"{path.name}: removed, renamed or replaced while it was open"):
            log.check_files()
    path.write_bytes(b"")
    with pytest.raises(LogError, match=r"another file has its name"):
        log.check_files()


def test_the_check_follows_a_roll_and_retention_and_finds_an_old_segment_that_is_gone(tmp_path: Path) -> None:
    with open_log(small_log(tmp_path / "log"), segment_bytes=200) as log:
        for number in range(20):
            log.append([value(str(number))], timestamp=number).result(60)
            log.check_files()
        first, second, *_ = segment_paths(log.directory)
        second.unlink()
        with pytest.raises(LogError, match=f"{second.name}: removed while the log is open"):
            log.check_files()
        assert first.exists()


def test_an_abandoned_log_refuses_appends_and_a_closed_one_is_not_checked(log: FileLog) -> None:
    log.abandon("the directory is gone")
    with pytest.raises(LogError, match="the directory is gone"):
        log.append([value("x")], timestamp=1)
    log.close()
    unlink(log.directory)
    log.check_files()
