"""Access logs in another store, as a stream into a table there."""

from unittest import mock

import pytest

from aclog.cli.spark.flags import AppendFlags, IngestFlags, ReportFlags
from aclog.cli.spark.streams import ingest_stream_command
from aclog.metalog.errors import ConfigError
from aclog.pipeline import storage
from aclog.pipeline.streams.batches import stream_output
from tests.support.spark.access_logs import audit_text
from tests.support.spark.session import settings


def lines(*names):
    return "".join(f"{audit_text(name=name)}\n" for name in names)


def test_lines_of_new_files_are_appended_once(spark, lake, tmp_path, capsys):
    logs, out = tmp_path / "lake" / "logs", f"{lake}/table"
    (logs / "broker-1").mkdir(parents=True)
    (logs / "broker-1" / "a.log").write_text(lines("a", "b") + "no access\n\n")

    def ingested(kind="kafka-log", **report):
        flags = IngestFlags(kind=kind), AppendFlags(append=True), ReportFlags(**report)
        return ingest_stream_command(spark, [f"{lake}/logs"], out, *flags)

    def names(table, column):
        return sorted(row[column] for row in spark.read.parquet(f"{out}/{table}").collect())

    assert ingested() == 0
    assert capsys.readouterr().out == "batch 0: 2 accesses, 1 rejected, 1 blank\n"
    (logs / "broker-2").mkdir()
    (logs / "broker-2" / "b.log").write_text(lines("c"))
    assert ingested() == 0
    assert ingested() == 0, "nothing is new"
    assert capsys.readouterr().out == "batch 1: 1 access, 0 rejected, 0 blank\n"
    assert names("accesses", "resourceName") == ["a", "b", "c"]
    assert names("rejects", "line") == ["no access"]
    # killed between the two tables
    table = tmp_path / "lake" / "table"
    for name in ("commits/1", "commits/.1.crc"):
        (table / "_checkpoint" / name).unlink(missing_ok=True)
    (table / "rejects" / "batch-000000000001.parquet").unlink()
    (table / "rejects" / ".batch-000000000001.parquet.crc").unlink(missing_ok=True)
    assert ingested() == 0
    assert names("accesses", "resourceName") == ["a", "b", "c"]
    assert len(list((table / "rejects").glob("batch-*"))) == 2
    # too many rejects: nothing of the batch is written, and the next run repeats it
    (logs / "broker-2" / "c.log").write_text("x\n")
    assert ingested(max_reject_rate=0.5) == 1
    assert len(list((table / "accesses").glob("batch-*"))) == 2
    capsys.readouterr()
    with (logs / "broker-2" / "b.log").open("a") as file:
        file.write(lines("d"))
    assert ingested() == 0
    assert "b.log: has changed since it was listed, and is not read again" in capsys.readouterr().err
    assert names("rejects", "line") == ["no access", "x"]
    with pytest.raises(ConfigError, match="of a stream with kind kafka-log, not jsonl"):
        ingested(kind="jsonl")
    with pytest.raises(ConfigError, match="expected kafka-log, events-jsonl or jsonl"):
        ingest_stream_command(
            spark, [f"{lake}/logs"], f"{lake}/other", IngestFlags(kind="csv"), AppendFlags(append=True), ReportFlags()
        )


def test_paths_with_the_same_files_are_refused(spark, lake, tmp_path):
    """Each path is a source of its own, so Spark would read these files once for each."""
    (tmp_path / "lake" / "logs" / "broker-1").mkdir(parents=True)
    (tmp_path / "lake" / "logs" / "broker-1" / "a.log").write_text(lines("a"))
    (tmp_path / "lake" / "empty").mkdir()
    logs, flags = f"{lake}/logs", (IngestFlags(), AppendFlags(append=True), ReportFlags())
    for out, other, complaint in (
        ("a", logs, "named twice"),
        ("b", f"{lake}/*/broker-1", r"a\.log: is in .*/logs"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            ingest_stream_command(spark, [logs, other], f"{lake}/{out}", *flags)
    assert ingest_stream_command(spark, [logs, f"{lake}/empty"], f"{lake}/other", *flags) == 0
    assert spark.read.parquet(f"{lake}/other/accesses").count() == 1


def test_a_batch_is_one_file(spark, lake):
    out = f"{lake}/table"
    limited = settings(spark, {"spark.sql.files.maxRecordsPerFile": "2"})
    with limited, stream_output(spark, out, None, {}) as output, output.published(spark.range(5), 0) as written:
        assert written.count() == 5


def test_the_newest_process_continues_a_stream(spark, lake, tmp_path):
    """In a store, where no lock excludes another process; a batch that another one has written is an error."""
    out, rows = f"{lake}/table", spark.range(3)
    with stream_output(spark, out, None, {}) as first:
        with first.published(rows, 0):
            pass
        with (
            pytest.raises(ConfigError, match="written by another process with the same output"),
            first.published(rows, 0),
        ):
            pass
        with stream_output(spark, out, None, {}) as second:
            with pytest.raises(ConfigError, match="another process continues this stream"), first.published(rows, 1):
                pass
            with second.published(rows, 1) as written:
                assert written.count() == 3
    (state,) = (tmp_path / "lake" / "table" / "_stream").glob("writer-*")
    assert state.name == "writer-000002.json"
    # a batch that had begun before is repeated, and not written again
    (tmp_path / "lake" / "table" / "_checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "lake" / "table" / "_checkpoint" / "offsets" / "1").touch()
    with stream_output(spark, out, None, {}) as third, third.published(spark.range(5), 1) as written:
        assert written.count() == 3

    def opened():
        with stream_output(spark, out, None, {}):
            raise AssertionError

    for is_new, complaint in ((False, "another process begins the same stream"), (True, "expected one with If-None")):
        with mock.patch.object(storage, "create", return_value=is_new), pytest.raises(ConfigError, match=complaint):
            opened()
