"""spark-submit on a standalone cluster of two workers has the same results as this process."""

import pyarrow.parquet as pq
import pytest

from aclog.pipeline.authorize import Rules, authorize
from aclog.pipeline.decisions.accesses import REQUEST_COLUMNS
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.history.intervals import history, intervals, known_from
from tests.pipeline.test_authorize import DATA
from tests.support.spark.cluster import spark_cluster

LOG = DATA / "kafka-4.3.1-churn" / "__cluster_metadata-0"
ORDER = ("principal", "host", "operation", "resourceType", "resourceName", "timestamp")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with spark_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


def rows(path):
    table = pq.read_table(path)
    return sorted(table.to_pylist(), key=str), table.schema.names


@pytest.mark.slow(60)
def test_history_and_decisions_at_their_own_time(spark, cluster, tmp_path):
    rules = intervals(spark, LOG)
    asked = rules.selectExpr(
        "principal", "'10.0.0.1' as host", "operation", "resourceType", "resourceName",
        "timestamp_millis(visible_from + pmod(hash(id), 3) - 1) as timestamp",
    )  # fmt: skip
    asked.repartition(6).write.parquet(str(tmp_path / "asked"))
    asked = spark.read.parquet(str(tmp_path / "asked"))
    known = Rules.of_table(rules.toArrow(), known_from=known_from(LOG))
    authorize(asked, known, Settings(), own_time=True).write.parquet(str(tmp_path / "here"))
    history(spark, LOG).write.parquet(str(tmp_path / "history-here"))

    decided = cluster.submit(
        "spark", "authorize", "--requests", str(tmp_path / "asked"), "--log", str(LOG), "--own-time",
        "--out", str(tmp_path / "there"),
    )  # fmt: skip
    assert decided.returncode in {0, 2}, decided.stderr[-3000:]
    written = cluster.submit("spark", "history", "--log", str(LOG), "--out", str(tmp_path / "history-there"))
    assert written.returncode == 0, written.stderr[-3000:]

    here, columns = rows(tmp_path / "here")
    assert columns == [*REQUEST_COLUMNS, "timestamp", "decision", "rule", "rule_id"]
    assert rows(tmp_path / "there") == (here, columns)
    assert len({row["decision"] for row in here}) > 1
    assert rows(tmp_path / "history-there") == rows(tmp_path / "history-here")
