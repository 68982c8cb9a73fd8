"""Tables of Delta, Iceberg and Hudi: the rows of a version are read, and never loose files of one."""

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import frozen
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import StaticTable, Table

from aclog.metalog.errors import ConfigError
from aclog.sources.accesses import read_accesses, read_seen_accesses
from aclog.usage.accesses.access_log import find_accesses, only_new, read_part
from aclog.usage.accesses.table_formats import LOCAL, TableFormat, TableMoment, TableRoot, iceberg_snapshot
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

FIRST = datetime(2026, 11, 1, tzinfo=UTC)


def rows(names, operation="READ") -> pa.Table:
    count = len(names)
    columns = {
        "principal": ["User:a"] * count,
        "host": ["10.0.0.1"] * count,
        "operation": [operation] * count,
        "resourceType": ["TOPIC"] * count,
        "resourceName": list(names),
        "timestamp": pa.array([FIRST + timedelta(minutes=at) for at in range(count)], pa.timestamp("us", tz="UTC")),
    }
    return pa.table(columns)


@frozen
class DeltaVersions:
    path: Path
    names: list[set[str]]
    """The resources of each version."""


@pytest.fixture
def delta(tmp_path) -> DeltaVersions:
    """A table with deletes, updates, an append, and files that were compacted."""
    path = tmp_path / "lake" / "accesses_of_kafka"
    write_deltalake(path, rows(["a", "b", "c"]), partition_by=["operation"])
    DeltaTable(path).delete("resourceName = 'b'")
    DeltaTable(path).update(updates={"resourceName": "'d'"}, predicate="resourceName = 'c'")
    write_deltalake(path, rows(["e"], "WRITE"), mode="append")
    write_deltalake(path, rows(["f"], "WRITE"), mode="append")
    DeltaTable(path).optimize.compact()
    every = {"a", "d", "e", "f"}
    return DeltaVersions(path, [{"a", "b", "c"}, {"a", "c"}, {"a", "d"}, {"a", "d", "e"}, every, every])


def counted(*paths, moment=None) -> Counter[tuple[str, ...]]:
    log = find_accesses([str(path) for path in paths], UTC, **({} if moment is None else {"moment": moment}))
    read = [batch.rows for part in log.parts for batch in read_part(part)]
    return Counter(tuple(row[name] for name in REQUEST_COLUMNS) for batch in read for row in batch.to_pylist())


def names_of(counts) -> set[str]:
    assert set(counts.values()) <= {1}
    return {row[-1] for row in counts}


def test_the_newest_version_of_a_delta_table(delta):
    assert names_of(counted(delta.path)) == {"a", "d", "e", "f"}
    assert {row[2] for row in counted(delta.path)} == {"READ", "WRITE"}
    assert {request.resource_name for request in read_accesses(str(delta.path)).counts} == {"a", "d", "e", "f"}
    assert {each.resource_name for each in read_seen_accesses(str(delta.path)).requests} == {"a", "d", "e", "f"}
    loose = pq.ParquetDataset(delta.path, partitioning=None).read(["resourceName"])
    assert len(loose) > 3  # what it must not be read as


def test_each_version_of_a_delta_table(delta):
    for version, names in enumerate(delta.names):
        assert names_of(counted(delta.path, moment=TableMoment(version=version))) == names
    with pytest.raises(ConfigError, match=r"--version-as-of 99: no such version of the Delta table, whose newest is 5"):
        counted(delta.path, moment=TableMoment(version=99))


def test_a_delta_table_as_of_a_time(delta):
    """The time of a version is that of its file in the log."""
    commits = sorted((delta.path / "_delta_log").glob("*.json"))
    newest = max(commit["timestamp"] for commit in DeltaTable(delta.path).history()) // 1000 + 1
    for version, file in enumerate(commits):
        os.utime(file, (newest + version, newest + version))
    for version, names in enumerate(delta.names):
        for fraction in (0.0, 0.5):
            at = datetime.fromtimestamp(newest + version + fraction, UTC)
            assert names_of(counted(delta.path, moment=TableMoment(timestamp=at))) == names, version
    with pytest.raises(ConfigError, match="--timestamp-as-of: the Delta table has no version before 20"):
        counted(delta.path, moment=TableMoment(timestamp=FIRST - timedelta(days=9999)))


def test_columns_in_upper_case_of_a_delta_table(tmp_path):
    table = rows(["a"])
    write_deltalake(tmp_path / "t", table.rename_columns([name.upper() for name in table.schema.names]))
    assert names_of(counted(tmp_path / "t")) == {"a"}


def test_deletion_vectors_and_renamed_columns_of_delta_spark(tmp_path):
    """Delta 4.4 on Spark 4.2 wrote it, with deletion vectors and mapped names; the rows are those that Spark read."""
    path = Path("tests/data/delta/with_vectors").absolute()
    first = {f"t{number}" for number in range(10)}
    updated = first - {"t3", "t4"} | {"u4"}
    for version, names in enumerate([first, first - {"t3"}, updated, updated, updated]):
        if version != 3:  # in which the column `host` has another name
            assert names_of(counted(path, moment=TableMoment(version=version))) == names
    row = ("User:1", "10.0.0.1", "WRITE", "TOPIC", "u4")
    assert row in counted(path)
    assert {each[2] for each in counted(path)} == {"READ", "WRITE"}
    with pytest.raises(ConfigError, match="no column 'host'"):
        counted(path, moment=TableMoment(version=3))
    files = list(path.rglob("*.parquet"))
    with pytest.raises(ConfigError, match="a file of the Delta table"):
        counted(*files)
    assert sum(pq.read_metadata(file).num_rows for file in files) == 11  # with two deleted rows


@pytest.mark.parametrize(
    "part", ["operation=READ", "operation=READ/*.parquet", "*", "../accesses_of_kafka/*/*", "..", "link"]
)
def test_what_is_inside_or_above_a_delta_table_is_refused(delta, part):
    (delta.path / "operation=READ" / "again").mkdir()
    link = delta.path.parent.parent / "link"
    link.symlink_to(delta.path / "operation=READ")
    path = link if part == "link" else delta.path / part
    with pytest.raises(ConfigError, match=r"a file of the Delta table .*accesses_of_kafka, .* expected the table"):
        counted(path)
    with pytest.raises(ConfigError, match="a file of the Delta table"):
        read_accesses(str(path))
    with pytest.raises(ConfigError, match="a file of the Delta table"):
        read_seen_accesses(str(path if part != "*" else delta.path / "operation=READ"))


def test_a_file_of_a_table_by_its_name_or_a_link(delta, tmp_path):
    (file, *_) = sorted((delta.path / "operation=READ").glob("*.parquet"))
    (tmp_path / "one.parquet").symlink_to(file)
    for path in (file, tmp_path / "one.parquet"):
        with pytest.raises(ConfigError, match="a file of the Delta table"):
            counted(path)


def test_a_file_without_an_ending_in_a_table(delta):
    (file, *_) = sorted((delta.path / "operation=READ").glob("*.parquet"))
    file.rename(delta.path / "operation=READ" / "data")
    with pytest.raises(ConfigError, match="a file of the Delta table"):
        counted(delta.path / "operation=READ" / "data")


def test_text_beside_the_metadata_of_a_table_is_read(delta):
    log = delta.path / "accesses.jsonl"
    log.write_text('{"principal":"User:a","host":"h","operation":"READ","resourceType":"TOPIC","resourceName":"x"}\n')
    assert names_of(counted(log)) == {"x"}


def test_a_version_of_what_has_none_is_refused(tmp_path):
    pq.write_table(rows(["a"]), tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match=r"--version-as-of.*t\.parquet: expected a Delta or Iceberg table"):
        counted(tmp_path / "t.parquet", moment=TableMoment(version=1))
    with pytest.raises(ConfigError, match="expected one, not both"):
        TableMoment(version=1, timestamp=FIRST)


def test_an_index_refuses_a_table(delta):
    log = find_accesses([str(delta.path)], UTC)
    with pytest.raises(ConfigError, match="a table, which rewrites its files"):
        only_new(log, frozenset(), lambda _, __: None)


def test_hudi_is_refused(tmp_path):
    (tmp_path / "t" / ".hoodie").mkdir(parents=True)
    pq.write_table(rows(["a"]), tmp_path / "t" / "part-0.parquet")
    with pytest.raises(ConfigError, match=r"a Hudi table, which aclog does not read: .*hudi-spark-bundle"):
        counted(tmp_path / "t")
    with pytest.raises(ConfigError, match="a file of the Hudi table"):
        counted(tmp_path / "t" / "part-0.parquet")


# Iceberg.


@pytest.fixture
def iceberg(tmp_path) -> Table:
    """A table of a catalog with a delete, an overwrite and a renamed column."""
    catalog = InMemoryCatalog("test", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table("db.accesses", rows(["a"]).schema)
    table.append(rows(["a", "b", "c"]))
    table.delete("resourceName == 'b'")
    table.append(rows(["e"]))
    return table


def test_snapshots_of_an_iceberg_table(iceberg):
    path = iceberg.metadata_location.removeprefix("file://")
    expected = [{"a", "b", "c"}, {"a", "c"}, {"a", "c", "e"}]
    assert names_of(counted(path)) == {"a", "c", "e"}
    for snapshot, names in zip(iceberg.metadata.snapshots, expected, strict=True):
        assert names_of(counted(path, moment=TableMoment(version=snapshot.snapshot_id))) == names
        at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
        assert names_of(counted(path, moment=TableMoment(timestamp=at))) >= {"a", "c"}
    with pytest.raises(ConfigError, match="--version-as-of 7: no such snapshot"):
        counted(path, moment=TableMoment(version=7))
    with pytest.raises(ConfigError, match="the Iceberg table has no snapshot of"):
        counted(path, moment=TableMoment(timestamp=FIRST - timedelta(days=9999)))


def test_a_renamed_column_of_an_iceberg_table(iceberg):
    with iceberg.update_schema() as update:
        update.rename_column("resourceName", "RESOURCENAME")
    assert names_of(counted(iceberg.metadata_location.removeprefix("file://"))) == {"a", "c", "e"}


def test_only_the_catalog_knows_the_state_of_an_iceberg_table(iceberg):
    root = Path(iceberg.location().removeprefix("file://"))
    with pytest.raises(ConfigError, match=r"an Iceberg table of a catalog, .* such as .*/metadata/0.*\.metadata\.json"):
        counted(root)
    for part in ("data", "data/*", ".."):
        with pytest.raises(ConfigError, match="a file of the Iceberg table"):
            counted(root / part)


def test_the_newest_metadata_of_hadoops_catalog(iceberg):
    root = Path(iceberg.location().removeprefix("file://"))
    files = sorted((root / "metadata").glob("*.metadata.json"))
    for number, file in enumerate(files, 1):
        file.rename(root / "metadata" / f"v{number}.metadata.json")
    (root / "metadata" / "version-hint.text").write_text("2")  # may be behind
    assert names_of(counted(root)) == {"a", "c", "e"}


def test_a_table_without_rows(tmp_path):
    catalog = InMemoryCatalog("test", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table("db.accesses", rows(["a"]).schema)
    metadata = StaticTable.from_metadata(table.metadata_location).metadata.model_dump(by_alias=True)
    root = TableRoot(TableFormat.ICEBERG, table.metadata_location)
    assert iceberg_snapshot(root, TableMoment(), metadata) is None
    assert not counted(table.metadata_location.removeprefix("file://"))


def test_a_directory_named_metadata_is_no_table(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "notes.json").write_text("{}")
    assert LOCAL.named(str(tmp_path)) is None
