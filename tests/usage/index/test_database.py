"""The index when a process is killed or finds the disk full at a write, and when another file is put in its place."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.machine import databases, disk
from aclog.usage.index.database import FILE
from aclog.usage.index.usage_index import UsageIndex
from tests.support.builders.index_runs import DAY, PlainUse, plain_rules, run_of, tally_of
from tests.support.processes.write_faults import compiled

USES = [PlainUse(time=20_000 * DAY, principal="User:a", host="h", matched=frozenset({0}))]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library to preload."""
    return compiled(tmp_path_factory.mktemp("shim"))


@pytest.mark.skipif(sys.platform != "linux", reason="preloads a library by LD_PRELOAD")
@pytest.mark.slow(5)
@pytest.mark.parametrize(("how", "age", "step"), [("kill", "new", 2), ("kill", "old", 1), ("full", "old", 3)])
def test_holds_a_run_whole_or_not_at_all_and_once(tmp_path: Path, shim: Path, how: str, age: str, step: int) -> None:
    program = [sys.executable, "-m", "tests.support.usage.faulty_takes", str(tmp_path), how, age, str(step)]
    found = subprocess.run(
        program, env={**os.environ, "LD_PRELOAD": str(shim)}, capture_output=True, text=True, check=False
    )
    *tried, last = found.stdout.split("\n")[:-1]
    assert (found.returncode, found.stderr, last) == (0, "", "done")
    assert set(tried) == {"before", "after"}
    assert tried == sorted(tried, reverse=True), "held and lost again"
    assert len(tried) > 10


def _index(directory: Path, cluster: str | None = None) -> Path:
    with UsageIndex.create(directory) as index:
        index.take(run_of(plain_rules(["a"]), USES, cluster_id=cluster), [tally_of(USES)])
    return directory


def test_refuses_a_strangers_database_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    before = path.read_bytes()
    for opening in (UsageIndex.open, UsageIndex.create):
        with pytest.raises(ConfigError, match="created by another program"):
            opening(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_refuses_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    for opening in (UsageIndex.open, UsageIndex.create):
        with pytest.raises(ConfigError, match=FILE):
            opening(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


@pytest.mark.parametrize(("version", "who"), [(0, "not supported"), (9, "newer than supported")])
def test_refuses_other_schemas(tmp_path: Path, version: int, who: str) -> None:
    with sqlite3.connect(_index(tmp_path / "x") / FILE) as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    for opening in (UsageIndex.open, UsageIndex.create):
        with pytest.raises(ConfigError, match=who):
            opening(tmp_path / "x")


def test_refuses_a_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(ConfigError, match="contains 'precious'"):
        UsageIndex.create(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["precious"]


def test_a_reader_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no index"):
        UsageIndex.open(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("removed", [True, False])
def test_writes_no_more_when_its_file_was_replaced(tmp_path: Path, *, removed: bool) -> None:
    _index(tmp_path / "x")
    other = _index(tmp_path / "other") / FILE
    with UsageIndex.create(tmp_path / "x") as index:
        if removed:
            (tmp_path / "x" / FILE).unlink()
        else:
            other.replace(tmp_path / "x" / FILE)
        with pytest.raises(ConfigError, match="was removed or replaced"):
            index.take(run_of(plain_rules(["a"]), USES), [tally_of(USES)])


def test_a_copy_goes_on_by_itself(tmp_path: Path) -> None:
    with UsageIndex.create(_index(tmp_path / "x", "one")) as index:  # open, with what was written last beside the file
        shutil.copytree(tmp_path / "x", tmp_path / "copy")
        index.take(run_of(plain_rules(["a"]), USES), [tally_of(USES)])
    with UsageIndex.create(tmp_path / "copy") as copy:
        assert copy.cluster_id == "one"
        assert copy.used(20_000, 20_000).matched.tolist() == [1]
        with pytest.raises(ConfigError, match="an index of cluster one"):
            copy.take(run_of(plain_rules(["a"]), USES, cluster_id="two"), [tally_of(USES)])


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open each index as a reader without write permission does; root has every permission."""
    monkeypatch.setattr(disk, "access", lambda *_: False)


def _take(directory: Path) -> None:
    with UsageIndex.create(directory) as index:
        index.take(run_of(plain_rules(["a"]), USES), [tally_of(USES)])


@pytest.mark.usefixtures("unwritable")
@pytest.mark.parametrize("is_open", [True, False])
def test_without_permission_no_two_states_are_read(tmp_path: Path, *, is_open: bool) -> None:
    with UsageIndex.open(_index(tmp_path / "x")) as reader:
        assert (len(reader.runs()), reader.used(20_000, 20_000).matched.tolist()) == (1, [1])
        with UsageIndex.create(tmp_path / "x") as writer:
            writer.take(run_of(plain_rules(["a"]), USES), [tally_of(USES)])
            if is_open:  # the database is as before, and what was written is beside it
                with pytest.raises(ConfigError, match=rf"x/{FILE}: changed while it was read: run again"):
                    reader.lives()
        with pytest.raises(ConfigError, match=rf"x/{FILE}: changed while it was read: run again"):
            reader.lives()
    with UsageIndex.open(tmp_path / "x") as reader:
        assert (len(reader.runs()), reader.used(20_000, 20_000).matched.tolist()) == (2, [2])


@pytest.mark.usefixtures("unwritable")
def test_without_permission_a_write_during_a_read_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = UsageIndex.open(_index(tmp_path / "x"))
    with reader, pytest.raises(ConfigError, match="changed while it was read"), reader.database.reading():
        _take(tmp_path / "x")
    connect = databases.connect

    def written(address: str, **options: Any) -> sqlite3.Connection:
        monkeypatch.undo()
        _take(tmp_path / "x")
        return connect(address, **options)

    monkeypatch.setattr(databases, "connect", written)
    with pytest.raises(ConfigError, match="changed while it was read"):
        UsageIndex.open(tmp_path / "x")


@pytest.mark.usefixtures("unwritable")
def test_without_permission_an_unfinished_write_is_not_called_damage(tmp_path: Path) -> None:
    path = _index(tmp_path / "x") / FILE
    with UsageIndex.open(tmp_path / "x") as reader:
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(bytes(path.stat().st_size - 4096))
        with pytest.raises(ConfigError, match="changed while it was read") as caught:
            reader.lives()
        assert caught.value.__suppress_context__
    with UsageIndex.open(tmp_path / "x") as reader, pytest.raises(ConfigError, match="malformed"):
        reader.lives()


def test_damage_is_told_never_read_over(tmp_path: Path) -> None:
    path = _index(tmp_path / "x") / FILE
    with sqlite3.connect(path) as database:
        tables = {
            "used": ("matched", "needed", "counts"),
            "lives": ("columns",),
            "rule_texts": ("texts",),
            "last_use": ("columns", "users"),
            "coverage": ("columns",),
        }
        pristine = path.read_bytes()
    database.close()
    for table, columns in tables.items():
        for column in columns:
            path.write_bytes(pristine)
            with sqlite3.connect(path) as database:
                cut = f"CAST(substr({column}, 1, length({column}) - 2) || x'0000' AS BLOB)"
                database.execute(f"UPDATE {table} SET {column} = {cut}")
            database.close()
            with pytest.raises(MetadataError, match=f"{FILE}.*damaged"):
                _read_all(tmp_path / "x")


def _read_all(directory: Path) -> None:
    with UsageIndex.open(directory) as index:
        index.window(20_000, 20_000)
        index.used(20_000, 20_000)
        index.texts(range(len(index.lives())))
        index.last_use(np.array([0]))
        index.coverage()
