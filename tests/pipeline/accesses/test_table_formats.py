"""Accesses in any form of files on Spark: the same rows as without Spark, and never loose files of a table."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import orc

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import Layout, ingest, plain_accesses, read_accesses
from aclog.pipeline.accesses.table_formats import places_of
from aclog.usage.accesses.access_log import find_accesses, read_part
from aclog.usage.accesses.table_formats import TableMoment
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from tests.support.spark.versions import HAS_ZONES_OF_ORC

FIRST = datetime(2026, 11, 1, 10, 20, 30, 123456, tzinfo=UTC)
NAMES = [*REQUEST_COLUMNS, "timestamp"]


def rows(names=("a", "b"), kind=None) -> pa.Table:
    count = len(names)
    times = [FIRST + timedelta(minutes=at) for at in range(count)]
    kind = kind or pa.timestamp("us", tz="UTC")
    columns = {
        "principal": ["User:a"] * count,
        "host": ["10.0.0.1"] * count,
        "operation": ["READ"] * count,
        "resourceType": ["TOPIC"] * count,
        "resourceName": list(names),
        "timestamp": pa.array([time if kind.tz else time.replace(tzinfo=None) for time in times], kind),
    }
    return pa.table(columns)


def without_spark(path) -> Counter[tuple[object, ...]]:
    log = find_accesses([str(path)], UTC)
    read = [batch.rows for part in log.parts for batch in read_part(part)]
    return Counter(tuple(row[name] for name in NAMES) for batch in read for row in batch.to_pylist())


def on_spark(spark, path) -> Counter[tuple[object, ...]]:
    read = read_accesses(spark, path).where("_malformed is null").select(*NAMES).toArrow().to_pylist()
    return Counter(tuple(row[name] for name in NAMES) for row in read)


def upper(path: Path) -> None:
    table = rows()
    pq.write_table(table.rename_columns([name.upper() for name in table.schema.names]), path / "t.parquet")


def nanos(path: Path) -> None:
    pq.write_table(rows(kind=pa.timestamp("ns")), path / "a.parquet")


def nanos_in_utc(path: Path) -> None:
    pq.write_table(rows(kind=pa.timestamp("ns", tz="UTC")), path / "a.parquet")


def partitioned(path: Path) -> None:
    table = rows(["007", "7"])
    for name in ("007", "a b"):
        place = path / f"operation=READ/resourceName={name.replace(' ', '%20')}"
        place.mkdir(parents=True)
        pq.write_table(table.drop_columns(["operation", "resourceName"]), place / "part-0.parquet")


def partitioned_by_numbers(path: Path) -> None:
    for name in ("007", "1e3"):
        place = path / f"resourceName={name}"
        place.mkdir()
        pq.write_table(rows().drop_columns(["resourceName"]), place / "part-0.parquet")


def partitioned_orc(path: Path) -> None:
    for name in ("007", "1e3"):
        place = path / f"resourceName={name}"
        place.mkdir()
        orc.write_table(rows(kind=pa.timestamp("ns")).drop_columns(["resourceName"]), place / "part-0.orc")


def nanos_and_other_units(path: Path) -> None:
    """The first file has ns, others what other writers have."""
    for number, unit in enumerate(["ns", *["us"] * 7]):
        pq.write_table(rows([str(number), "x"], pa.timestamp(unit, tz="UTC")), path / f"{number}.parquet")


def in_directories(path: Path) -> None:
    for number, place in enumerate((path, path / "broker 1", path / "broker-2" / "old")):
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows([str(number), "x"]), place / "part-0.parquet")


def orc_in_directories(path: Path) -> None:
    for number, place in enumerate((path / "broker-1", path / "broker-2")):
        place.mkdir()
        orc.write_table(rows([str(number), "x"], pa.timestamp("ns")), place / "part-0.orc")


def without_ending(path: Path) -> None:
    pq.write_table(rows(), path / "part-00000")


def orc_file(path: Path) -> None:
    orc.write_table(rows(), path / "t.orc")


def orc_without_ending(path: Path) -> None:
    orc.write_table(rows(kind=pa.timestamp("ns")), path / "part-00000")


@pytest.mark.parametrize(
    "write",
    [
        upper,
        nanos,
        nanos_in_utc,
        nanos_and_other_units,
        partitioned,
        partitioned_by_numbers,
        partitioned_orc,
        in_directories,
        orc_in_directories,
        without_ending,
        orc_file,
        orc_without_ending,
    ],
)
def test_the_same_rows_with_and_without_spark(spark, tmp_path, write):
    write(tmp_path)
    expected = without_spark(tmp_path)
    if write is orc_file and not HAS_ZONES_OF_ORC:
        with pytest.raises(ConfigError, match=r"times in a zone in ORC on PySpark .*: expected 4\.2 or later"):
            on_spark(spark, tmp_path)
        return
    assert on_spark(spark, tmp_path) == expected
    assert on_spark(spark, tmp_path.as_uri()) == expected
    assert {row[-1] for row in expected} == {FIRST, FIRST + timedelta(minutes=1)}
    if write is partitioned:
        assert {row[4] for row in expected} == {"007", "a b"}


@pytest.mark.parametrize(("adjusted", "hours"), [(None, 1), ("UTC", 0)])
def test_times_in_ns_of_a_zone(spark, tmp_path, adjusted, hours):
    pq.write_table(rows(["a"], pa.timestamp("ns", tz=adjusted)), tmp_path / "t.parquet")
    ingested = ingest(spark, [str(tmp_path / "t.parquet")], "parquet", timezone="Europe/Berlin", columns={})
    (row,) = ingested.accesses.toArrow().to_pylist()
    assert row["timestamp"] == FIRST - timedelta(hours=hours)


def test_a_topic_in_the_name_of_a_directory_is_ingested_as_text(spark, tmp_path):
    partitioned_by_numbers(tmp_path)
    table = ingest(spark, [str(tmp_path)], "parquet").accesses.toArrow()
    assert set(table.column("resourceName").to_pylist()) == {"007", "1e3"}


def test_files_that_spark_would_not_read_are_refused(spark, tmp_path):
    """Beside directories with columns in their names, it reads no files of other directories."""
    partitioned_by_numbers(tmp_path)
    pq.write_table(rows(), tmp_path / "a.parquet")
    for read in (lambda: read_accesses(spark, tmp_path), lambda: ingest(spark, [str(tmp_path)], "parquet")):
        with pytest.raises(ConfigError, match=r"a\.parquet and .*: expected the same columns in the names"):
            read()


def test_files_of_several_forms_are_refused(spark, tmp_path):
    pq.write_table(rows(), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match=r"files of several forms: .*parquet \(a\.parquet\)"):
        read_accesses(spark, tmp_path)


def test_loose_files_of_a_table_are_refused(spark, tmp_path):
    path = tmp_path / "lake" / "t"
    write_deltalake(path, rows(), partition_by=["operation"])
    DeltaTable(path).delete("resourceName = 'b'")
    file = next((path / "operation=READ").glob("*.parquet"))
    (tmp_path / "link").symlink_to(path / "operation=READ")
    inside = path.as_uri() + "/operation=READ"
    for place in map(str, (path / "operation=READ", path / "*", path.parent, file, tmp_path / "link", inside)):
        with pytest.raises(ConfigError, match=r"a file of the Delta table .*/lake/t"):
            read_accesses(spark, place)
        if not place.endswith("*"):
            with pytest.raises(ConfigError, match=r"a file of the Delta table .*/lake/t"):
                plain_accesses(spark, place, 2)
        layout = Layout.of(spark, "parquet", "UTC", {})
        # a glob also names the log of the table, which is no Parquet
        with pytest.raises(ConfigError, match=r"a file of the Delta table .*/lake/t|json is not a Parquet file"):
            layout.of_files(spark, [place])
    with pytest.raises(ConfigError, match="a table: expected files"):
        layout.of_files(spark, [str(path)])


def test_a_table_without_its_package_is_refused_by_name(spark, tmp_path):
    write_deltalake(tmp_path / "t", rows())
    (tmp_path / "i" / "metadata").mkdir(parents=True)
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text("{}")
    (tmp_path / "h" / ".hoodie").mkdir(parents=True)
    packages = {
        "t": "io.delta:delta-spark_",
        "i": "org.apache.iceberg:iceberg-spark-runtime-",
        "h": "hudi-spark-bundle",
    }
    for name, package in packages.items():
        for read in (read_accesses, lambda *both: read_accesses(*both, TableMoment(version=1))):
            with pytest.raises(ConfigError, match=package):
                read(spark, tmp_path / name)
    with pytest.raises(ConfigError, match="expected a Delta or Iceberg table"):
        read_accesses(spark, tmp_path, TableMoment(version=1))


def test_tables_in_a_store_are_found_by_listing(spark, tmp_path, monkeypatch):
    """Of another store than the disk: the same directories, by Hadoop's FileSystem."""
    monkeypatch.setattr("aclog.pipeline.accesses.table_formats.local_path", lambda _: None)
    write_deltalake(tmp_path / "lake" / "t", rows(), partition_by=["operation"])
    places = places_of(spark)
    assert places.named(tmp_path.as_uri() + "/lake/t").format == "Delta"
    assert places.named(tmp_path.as_uri() + "/lake") is None
    with pytest.raises(ConfigError, match=r"a file of the Delta table file://.*/lake/t"):
        places.check_loose([f"{tmp_path.as_uri()}/lake/t/operation=READ/part-0.parquet"])
    places.check_loose([f"{tmp_path.as_uri()}/lake/other/part-0.parquet"])
