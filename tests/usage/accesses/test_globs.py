"""Globs lead through directories that may not be listed: Python skips these, and a missing file is no access."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aclog.metalog.errors import ConfigError
from aclog.sources.repository import load_repository_settings
from aclog.usage.accesses.access_log import listed
from aclog.usage.accesses.globs import unlistable
from tests.support.sources.files_of_rules import write_files


@pytest.fixture
def close(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a directory one that may not be listed: the user that runs tests may list any."""
    scandir, closed = os.scandir, set[str]()

    def refusing(path: Any = ".") -> Any:
        if isinstance(path, str | os.PathLike) and str(Path(path).absolute()) in closed:
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    return lambda path: closed.add(str(Path(path).absolute()))


FILES = ("a/x.log", "a/deep/er/x.log", "b/x.log", ".hidden/x.log", "c.d/x.log")


@pytest.mark.parametrize(
    ("pattern", "closed", "reported"),
    [
        ("**/*.log", "a/deep", True),
        ("**/*.log", "a/deep/er", True),
        ("**", "a/deep", True),
        ("**/er/x.log", "a/deep", True),
        ("*/x.log", "b", False),  # the name is looked up, and its directory is not listed
        ("*/*.log", "b", True),
        ("a*/*.log", "b", False),
        ("*/deep/er/*.log", "a/deep/er", True),
        ("**/*.log", ".hidden", False),  # no glob leads there
        (".*/*.log", ".hidden", True),
        ("a/x.log", "a", False),
        ("none/**/*.log", "a", False),
        ("a/x.log/*", "b", False),
    ],
)
def test_directories_that_may_not_be_listed_are_reported(
    tmp_path: Path, close: Callable[[Path], None], pattern: str, closed: str, *, reported: bool
) -> None:
    write_files(tmp_path, dict.fromkeys(FILES, ""))
    close(tmp_path / closed)
    errors = list(unlistable(str(tmp_path / pattern)))
    assert [each.filename for each in errors] == [str(tmp_path / closed)] * reported
    seen = list[OSError]()
    listed(str(tmp_path / pattern), seen.append)
    assert {each.filename for each in seen} == {str(tmp_path / closed)} if reported else not seen


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    assert not list(unlistable(str(tmp_path / "**" / "*.log")))


def test_tests_of_rules_are_not_lost_in_such_a_directory(
    tmp_path: Path, close: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"aclog.toml": '[test]\nfiles = ["t/**/*.yaml"]\n', "t/a.yaml": "", "t/in/b.yaml": ""})
    close(tmp_path / "t" / "in")
    with pytest.raises(ConfigError, match="Permission denied: tests may be in it"):
        load_repository_settings()
