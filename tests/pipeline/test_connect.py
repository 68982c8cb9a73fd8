"""`aclog.pipeline` on Spark Connect, beside a classic session; the server is one of this test."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aclog
from aclog.metalog.errors import ConfigError
from aclog.pipeline import session
from aclog.pipeline.session import broadcast
from tests.pipeline.test_authorize_command import LOG
from tests.support.kafka.jvm import ROOT
from tests.support.spark.connect import answers

TIME = datetime(2026, 11, 21, 12, tzinfo=UTC)


def requests():
    """What each ACL is about, and what none is, from two hosts and from none; in the past, now, and without a time."""
    rows = []
    for number, rule in enumerate(aclog.open_log(LOG).image().state.acls):
        for host in ("10.0.0.1", "127.0.0.1", "no address"):
            names = (rule.resource_name, f"{rule.resource_name}.x")
            rows += [
                {
                    "principal": rule.principal,
                    "host": host,
                    "operation": ("READ", "WRITE", "DESCRIBE", "REED")[number % 4],
                    "resourceType": rule.resource_type.name,
                    "resourceName": name,
                    "timestamp": (None, TIME, TIME - timedelta(days=4000))[(number + len(rows)) % 3],
                }
                for name in names
            ]
    return pa.Table.from_pylist(rows)


@pytest.mark.server
def test_answers_are_those_of_a_classic_session(spark, tmp_path):
    path = tmp_path / "requests.parquet"
    pq.write_table(requests(), path)
    arguments = [sys.executable, "-m", "tests.support.spark.connect", path, LOG.absolute(), tmp_path]
    # its server then takes a free port
    environment = {**os.environ, "SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = answers(spark, str(path), LOG.absolute())
    assert json.loads(done.stdout) == expected
    assert all(rows for name, rows in expected.items() if not name.startswith("holes"))


def connected():
    """A session of Spark Connect, by its module alone."""
    return type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


def test_what_is_sent_once_is_equal_in_all_tasks(monkeypatch):
    import pickle

    sent, other = broadcast(connected(), ["a"]), broadcast(connected(), ["a"])
    received = [pickle.loads(pickle.dumps(sent)) for _ in range(2)]
    assert received[0] == received[1] == sent != other
    assert len({*map(hash, received), hash(sent)}) == 1
    assert received[0].value == ["a"]
    monkeypatch.setattr(session, "MOST_ENCLOSED", 1000)
    with pytest.raises(ConfigError, match="a session of Spark Connect, which has no broadcast variables, sends up to"):
        broadcast(connected(), b"a" * 1000)
