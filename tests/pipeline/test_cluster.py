"""spark-submit on a standalone cluster of two workers has the same results as this process.

The workers have nothing installed: aclog reaches them in a packed environment (docs/spark.md: On a cluster).
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from aclog.authorizer.settings import Settings
from aclog.pipeline.authorize import authorize
from aclog.pipeline.history.intervals import intervals, known_from
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from tests.pipeline.test_authorize import DATA
from tests.support.spark.cluster import spark_cluster
from tests.support.spark.environment import pack_environment

LOG = DATA / "kafka-4.3.1-churn" / "__cluster_metadata-0"
ORDER = ("principal", "host", "operation", "resourceType", "resourceName", "timestamp")


@pytest.fixture(scope="module")
def submit(tmp_path_factory):
    """Submit to the cluster from a directory that has the environment under the name that it has on the workers."""
    scratch, directory = tmp_path_factory.mktemp("spark"), tmp_path_factory.mktemp("driver")
    (directory / "environment").symlink_to(sys.prefix)
    archive = pack_environment(scratch)
    with spark_cluster(scratch) as running:
        yield partial(running.submit, archive=archive, directory=directory)
    unpacked = sorted(scratch.glob("worker-*/app-*/*/environment/bin/python"))
    assert {path.relative_to(scratch).parts[0] for path in unpacked} == {"worker-0", "worker-1"}


@pytest.mark.process
def test_the_python_below_the_packed_environment_has_no_aclog():
    """So that the workers below have aclog from nowhere else."""
    base = Path(sys.base_prefix) / "bin" / "python3"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([base, "-c", "import aclog"], env=environment, cwd="/", capture_output=True, check=False)
    assert b"No module named 'aclog'" in done.stderr


def rows(path):
    table = pq.read_table(path)
    return sorted(table.to_pylist(), key=str), table.schema.names


@pytest.mark.slow(60)
def test_decisions_at_their_own_time(spark, submit, tmp_path):
    rules = intervals(spark, LOG)
    asked = rules.selectExpr(
        "principal", "'10.0.0.1' as host", "operation", "resourceType", "resourceName",
        "timestamp_millis(visible_from + pmod(hash(id), 3) - 1) as timestamp",
    )  # fmt: skip
    asked.repartition(6).write.parquet(str(tmp_path / "asked"))
    asked = spark.read.parquet(str(tmp_path / "asked"))
    known = Rules.of_table(rules.toArrow(), known_from=known_from(LOG))
    authorize(asked, known, Settings(), own_time=True).write.parquet(str(tmp_path / "here"))

    decided = submit(
        "spark", "authorize", "--requests", str(tmp_path / "asked"), "--log", str(LOG), "--own-time",
        "--out", str(tmp_path / "there"),
    )  # fmt: skip
    assert decided.returncode in {0, 2}, decided.stderr[-3000:]

    here, columns = rows(tmp_path / "here")
    assert columns == [*REQUEST_COLUMNS, "timestamp", "decision", "rule", "rule_id"]
    assert rows(tmp_path / "there") == (here, columns)
    assert len({row["decision"] for row in here}) > 1
