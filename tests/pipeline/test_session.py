"""The session: which Python its workers run, its times, and sessions that are refused."""

import sys
from pathlib import Path
from socket import create_server

import pytest
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.pipeline import session
from aclog.pipeline.session import open_session
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


@pytest.mark.parametrize(
    "address", ["sc://", "sc://:15002", "sc://[::1", "sc://a:S3CRET", "sc://a:99999/;token=S3CRET"]
)
def test_an_address_of_no_server(address):
    with pytest.raises(ConfigError, match=r"no host, or no port from 0 to 65535: expected sc://HOST:PORT$") as refused:
        open_session(address)
    assert "S3CRET" not in str(refused.value)


@pytest.mark.parametrize("rest", ["/;token=a/S3CRET==", "/;S3CRET", "/S3CRET"])
def test_no_token_in_an_error_about_the_address_of_a_server(monkeypatch, rest):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # PySpark sets it, for all later sessions of the process
    with create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(ConfigError, match=f"^127.0.0.1:{port}: Spark Connect does not take the rest") as refused:
            open_session(f"sc://127.0.0.1:{port}{rest}")
    assert refused.value.__suppress_context__
    assert "S3CRET" not in str(refused.value)


def test_a_message_of_spark_connect_has_the_parts_that_it_may_contain(monkeypatch):
    monkeypatch.setattr(session, "MOST_ENCLOSED", 10)
    parts = [b"1" * 4, b"2" * 6, b"3", b"4" * 10, b"5" * 9]
    assert list(session._messages(parts)) == [parts[:2], parts[2:3], parts[3:4], parts[4:]]
    monkeypatch.setattr(session, "_TASKS_OF_A_SERVER", 1)
    assert list(session._messages(parts)) == [[part] for part in parts]
    with pytest.raises(ConfigError, match=r"^11 bytes for one task: .* up to 10: expected a classic session"):
        list(session._messages([b"6" * 11]))
