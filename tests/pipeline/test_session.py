"""The session: which Python its workers run, its times, and sessions that are refused."""

import sys
from pathlib import Path

from pyspark.sql import functions as F

from aclog.pipeline.source import register
from tests.support.cli.command import aclog

LOG = Path(__file__).parents[1] / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"


def test_workers_run_this_interpreter_and_have_what_is_installed_here(spark):
    @F.udf("string")
    def worker(_number):
        import pyarrow as pa

        return f"{sys.executable} {pa.__version__}"

    import pyarrow as pa

    (row,) = spark.range(1).select(worker("id").alias("worker")).collect()
    assert row.worker == f"{sys.executable} {pa.__version__}"


def test_times_are_utc(spark):
    (row,) = spark.sql("select cast(timestamp_millis(0) as string) as t").collect()
    assert row.t == "1970-01-01 00:00:00"


def test_without_pyspark_python_the_data_source_is_read_by_this_interpreter(spark, monkeypatch):
    """Spark would run the first `python3` of the path, which need not have aclog."""
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-such-python")
    register(spark)
    assert spark.read.format("aclog").load(str(LOG)).count() == 231


def test_a_server_of_spark_connect_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    refused = aclog("spark", "ingest", tmp_path, "--out", tmp_path / "out")
    assert (refused.code, refused.out) == (2, "")
    assert refused.complaint.startswith("127.0.0.1:1: no server of Spark Connect: ")
