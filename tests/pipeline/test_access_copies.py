"""Access logs of a URI are copied by Hadoop's FileSystem; here of `file:`, which Hadoop also reads."""

import json
import tempfile
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.metalog.errors import ConfigError
from aclog.pipeline import access_copies as module
from aclog.pipeline import storage
from aclog.pipeline.access_copies import access_copies, copies_of
from aclog.usage.accesses.access_log import find_accesses, read_part
from aclog.usage.accesses.lines import FileChangedError
from aclog.usage.scratch import BEFORE_COPY

ACCESS = {
    "principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "orders",
    "timestamp": "2026-11-21T10:00:00Z",
}  # fmt: skip


@pytest.fixture
def logs(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    for name in ("broker 1/a.log", "broker 1/b%20+.log", "broker-2/c.log", "_temporary/x.log", "broker-2/.hidden"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(ACCESS | {"resourceName": name}) + "\n")
    for name in (".shipper.tmp", ".spool/d.log", "_of_job.log"):
        path = tmp_path / "mixed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(ACCESS | {"resourceName": name}) + "\n")
    (tmp_path / "mixed" / "e.log").write_text(json.dumps(ACCESS | {"resourceName": "e"}) + "\n")
    (tmp_path / "mixed" / "README.txt").write_text("The logs of all brokers.\n")
    return tmp_path / "logs"


def names_of(log) -> list[str]:
    return sorted(
        name
        for part in log.parts
        for batch in read_part(part)
        for name in batch.rows.column("resourceName").to_pylist()
    )


@pytest.mark.parametrize(
    ("name", "is_prefix"),
    [
        ("logs", True),
        ("logs/broker 1", True),
        ("logs/broker 1/b%20+.log", False),
        ("logs/*/?.log", True),
        ("logs/broker*", True),
        ("logs/broker-2/.hidden", False),
        ("mixed", True),
        ("mixed/*", True),
        ("mixed/.s*", True),
        ("mixed/.spool/*", True),
        ("*/[!c]*.log", True),
    ],
)
def test_the_files_of_a_uri_are_read_as_on_this_machine(spark, logs, tmp_path, name, is_prefix):
    copies = copies_of(spark, f"file://{tmp_path}/{name}")
    assert copies.is_prefix is is_prefix
    path = "hdfs://host/logs"
    found = find_accesses([path], None, uri_copies={path: copies})
    assert names_of(found) == names_of(find_accesses([f"{tmp_path}/{name}"], None))
    assert all(file.path.startswith(f"file:{tmp_path}") for file in found.files)
    del found, copies
    assert not list((tmp_path / "scratch").iterdir())


def test_the_program_is_notified_before_a_copy(spark, logs, tmp_path):
    there: list[list[Path]] = []
    token = BEFORE_COPY.set(lambda: there.append(list((tmp_path / "scratch").iterdir())))
    copies_of(spark, f"file://{logs}")
    BEFORE_COPY.reset(token)
    assert there == [[]]


@pytest.mark.usefixtures("logs")
def test_a_pattern_names_hidden_files_by_their_dot_alone(spark, tmp_path):
    def files(name):
        found, _ = storage.files_at(spark, f"file://{tmp_path}/mixed/{name}")
        return [path.removeprefix(f"file:{tmp_path}/mixed/") for path, _, _ in found]

    assert files("*/*") == files("nothing*") == []
    assert files("{.shipper,e}.*") == [".shipper.tmp", "e.log"]
    assert files("{.spool/d,e}.log") == [".spool/d.log", "e.log"]


@pytest.mark.parametrize("how", ["deleted", "grown", "replaced"])
def test_a_file_that_changes_meanwhile_is_refused(spark, logs, tmp_path, monkeypatch, how):
    copy = storage.copy_to_local

    def changed(session, name, target):
        copy(session, name, target)
        path = Path(name.removeprefix("file:"))
        if how == "deleted":
            path.unlink()
        elif how == "grown":
            path.write_text(path.read_text() * 2)
        else:
            path.write_text(path.read_text().replace("orders", "ORDERS"))

    monkeypatch.setattr(module.storage, "copy_to_local", changed)
    (logs / "broker-2" / "c.log").touch()
    with pytest.raises(
        FileChangedError, match=f"{'deleted' if how == 'deleted' else 'changed'} while it was being copied"
    ):
        copies_of(spark, f"file://{logs}/broker-2")
    assert not list((tmp_path / "scratch").iterdir())


def test_what_is_refused(spark, logs, tmp_path):
    for name, why in (
        ("/none", "no such file or directory, or no files in it"),
        ("/n*", "no such file or directory, or no files in it"),
        ("/_temporary/../empty", "no such file or directory, or no files in it"),
        ("/hidden", "no files"),
        ("/table", "has a table of Delta, Hudi or Iceberg"),
        ("/table/day=1", "in the Delta table"),
        ("/table/day=1/part.parquet", "in the Delta table"),
    ):
        (logs / "empty").mkdir(exist_ok=True)
        (logs / "hidden").mkdir(exist_ok=True)
        (logs / "hidden" / "_x").touch()
        (logs / "table" / "_delta_log").mkdir(parents=True, exist_ok=True)
        (logs / "table" / "_delta_log" / "0.json").write_text("{}")
        (logs / "table" / "day=1").mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([ACCESS]), logs / "table" / "day=1" / "part.parquet")
        with pytest.raises(ConfigError, match=why):
            copies_of(spark, f"file://{logs}{name}")
    assert not list((tmp_path / "scratch").iterdir())


def test_which_paths_are_copied(spark, logs):
    assert access_copies(spark, [str(logs), logs.as_uri(), "s3a://lake/x", "kafka://host:1/topic", "-"]) == {}
    with pytest.raises(ConfigError, match="may hold credentials") as refused:
        access_copies(spark, ["hdfs://user:hUsH@host/x"])
    assert "hUsH" not in str(refused.value)
    elsewhere = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077"))
    with pytest.raises(
        ConfigError, match=r"hdfs://host/x: is copied to .* which the workers of spark://host:7077 cannot"
    ):
        access_copies(elsewhere, ["hdfs://host/x"])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected the Hadoop package of the store"):
        access_copies(spark, ["nostore://host/x"])


@pytest.mark.parametrize("name", ["gs://lake/x", "abfss://lake@account1.dfs.core.windows.net/x"])
def test_stores_other_than_s3_have_the_credentials_of_hadoop(spark, logs, name):
    """Commands without Spark read these stores by pyarrow; an address with its options is none of Hadoop."""
    elsewhere = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077"))
    with pytest.raises(ConfigError, match=rf"^--accesses {name}: is copied to "):
        access_copies(elsewhere, [name])  # type: ignore[arg-type]
    copies = copies_of(spark, logs.as_uri())
    found = find_accesses([name], UTC, uri_copies={name: copies})
    assert names_of(found) == ["broker 1/a.log", "broker 1/b%20+.log", "broker-2/c.log"]
