"""A log that is followed, and another one that is put in its place: no state is made of both."""

import shutil
from pathlib import Path

import pytest

from aclog.console.live_state import LiveState
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_log
from aclog.sources.log_mark import ReplacedError
from aclog.sources.paths import LogSource
from tests.support.builders.acls import acl, acl_record


def write(directory: Path, first_id: int, *names: str) -> Path:
    """A log with a rule on each name, a batch each; one that is there goes on."""
    with open_log(directory, create=not directory.exists(), timestamp=1) as log:
        for number, name in enumerate(names, first_id):
            log.append([encode_record(acl_record(number, acl(name)))], timestamp=2).result(60)
    return directory


def names(source: LogSource) -> set[str]:
    return {rule.acl.resource_name for rule in source.image().acls}


def longer(at: Path) -> None:
    write(at, 100, "y", "z", "zz")


def as_long(at: Path) -> None:
    write(at, 100, "y", "z")


def older(at: Path) -> None:
    """A backup of the very log: what it lacks had been read."""
    write(at, 1, "first")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write(tmp_path / "log", 1, "first", "second")


@pytest.mark.parametrize("another", [longer, as_long, older])
@pytest.mark.parametrize("how", ["followed", "recovered"])
def test_another_log_is_refused(directory: Path, another, how: str) -> None:
    source = LogSource(directory, lambda _: None)
    assert names(source) == {"first", "second"}
    if how == "followed":
        write(directory, 3, "third")
        assert names(source) == {"first", "second", "third"}
    directory.rename(directory.with_name("before"))
    another(directory)
    for _ in range(2):
        with pytest.raises(ReplacedError, match="another log is here than the one that was read"):
            source.image()


def test_another_log_behind_a_link_is_refused(directory: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(directory)
    source = LogSource(link, lambda _: None)
    assert names(source) == {"first", "second"}
    link.unlink()
    link.symlink_to(write(tmp_path / "other", 100, "y", "z", "zz"))
    with pytest.raises(ReplacedError):
        source.image()


def test_no_log_is_an_error_and_the_same_one_is_read_on(directory: Path, tmp_path: Path) -> None:
    source = LogSource(directory, lambda _: None)
    source.image()
    kept = directory.rename(tmp_path / "elsewhere")
    with pytest.raises(LogError):
        source.image()
    shutil.copytree(kept, directory)
    write(directory, 3, "third")
    assert names(source) == {"first", "second", "third"}


def test_who_follows_it_says_so_and_confirms_nothing(directory: Path) -> None:
    live = LiveState(source=LogSource(directory, lambda _: None), seconds=60, tell=lambda _: None)
    live._look()
    before = live.newest
    directory.rename(directory.with_name("before"))
    longer(directory)
    live._look()
    assert live.newest is before
    assert "another log is here" in live.trouble
