"""Both tables on disk, and exact counts of all lines."""

import gzip
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import ingest, write
from aclog.pipeline.accesses.kafka_log import ACCESS_SCHEMA, REJECT_SCHEMA
from tests.support.spark.access_logs import audit_text


def test_counts_add_up_over_many_files(spark, tmp_path):
    random, kinds = Random(5), {"good": 0, "": 0, "bad": 0, "torn": 0}
    for number in range(6):
        lines = []
        for kind in random.choices(list(kinds), [90, 3, 4, 3], k=700):
            kinds[kind] += 1
            lines.append({"good": audit_text(), "torn": audit_text()[:70]}.get(kind, kind))
        data = "\n".join([*lines, ""]).encode()
        path = tmp_path / f"{number}.log{'.gz' * (number % 2)}"
        path.write_bytes(gzip.compress(data) if number % 2 else data)
    counts = write(ingest(spark, tmp_path, "kafka-log"), tmp_path / "out")
    assert (counts.accesses, counts.blanks) == (kinds["good"], kinds[""])
    assert counts.rejects == {"NO_HEAD": kinds["bad"], "TORN": kinds["torn"]}
    assert counts.total == 6 * 700
    accesses, rejects = (pq.read_table(tmp_path / "out" / name) for name in ("accesses", "rejects"))
    assert (accesses.schema, rejects.schema) == (ACCESS_SCHEMA, REJECT_SCHEMA)
    assert (accesses.num_rows, rejects.num_rows) == (counts.accesses, counts.rejected)
    assert {Path(name).name.split(".")[0] for name in rejects["file"].to_pylist()} == set("012345")


def test_lines_are_read_once(spark, tmp_path):
    """A single job for both tables and all counts, which agree even if a log grows meanwhile."""
    path = tmp_path / "a.log"
    path.write_text(f"{audit_text()}\nbad\n")
    ingested = ingest(spark, path, "kafka-log")
    spark.sparkContext.setJobGroup("once", "")
    try:
        counts = write(ingested, tmp_path / "out")
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("once")
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    assert len(jobs) == 1
    assert (counts.accesses, counts.rejects) == (1, {"NO_HEAD": 1})


def test_an_existing_output_is_not_overwritten(spark, tmp_path):
    path = tmp_path / "a.log"
    path.write_text(audit_text())
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="out: exists already"):
        write(ingest(spark, path, "kafka-log"), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_paths_without_files(spark, tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.log: no such file or directory"):
        ingest(spark, tmp_path / "nowhere.log", "kafka-log")
    with pytest.raises(ConfigError, match="no such file or directory"):
        ingest(spark, f"{tmp_path}/*.log", "kafka-log")
    with pytest.raises(ConfigError, match="no files to read"):
        ingest(spark, tmp_path, "kafka-log")
    (tmp_path / "_hidden.log").write_text(audit_text())
    with pytest.raises(ConfigError, match="names that begin with"):
        ingest(spark, tmp_path, "kafka-log")
    with pytest.raises(ConfigError, match="expected files to read"):
        ingest(spark, [], "kafka-log")


def test_a_damaged_gzip_is_named_and_leaves_nothing(spark, tmp_path):
    data = gzip.compress("\n".join([audit_text(name=str(number)) for number in range(500)]).encode())
    path = tmp_path / "a.log.gz"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ConfigError, match=r"a\.log\.gz: "):
        write(ingest(spark, path, "kafka-log"), tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.log.gz"]


def test_an_empty_file_gives_empty_tables(spark, tmp_path):
    (tmp_path / "a.log").touch()
    counts = write(ingest(spark, tmp_path / "a.log", "kafka-log"), tmp_path / "out")
    assert counts.total == 0
    assert pq.read_schema(tmp_path / "out" / "accesses" / "part-00000.parquet") == ACCESS_SCHEMA
    assert pq.read_table(tmp_path / "out" / "rejects").num_rows == 0


def test_kinds(spark, tmp_path):
    with pytest.raises(ConfigError, match="unknown kind 'xml': expected one of kafka-log, events"):
        ingest(spark, tmp_path, "xml")
    with pytest.raises(ConfigError, match="--column: not supported for kind kafka-log"):
        ingest(spark, tmp_path, "kafka-log", columns={"principal": "user"})
