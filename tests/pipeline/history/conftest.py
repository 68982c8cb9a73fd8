"""Small logs on Spark: quick queries, many ranges, and reading without Spark's workers."""

import pytest

from aclog.pipeline.history import bulk, transaction_spans
from tests.support.spark.history import decoded_log
from tests.support.spark.session import settings


@pytest.fixture(scope="module")
def quick_session(spark):
    """Settings for a few rows: little code generation, few tasks."""
    with settings(
        spark,
        {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
        },
    ):
        yield


@pytest.fixture
def small_ranges(monkeypatch):
    """Ranges of 16 offsets, so that small logs have many."""
    monkeypatch.setattr(transaction_spans, "RANGE_BITS", 4)


@pytest.fixture
def by_workers(monkeypatch):
    """No log is small enough for the driver."""
    monkeypatch.setattr(bulk, "MOST_BYTES", -1)


@pytest.fixture
def in_one_process(monkeypatch):
    """Read logs by metalog's decoder: for small logs that is faster than Spark's workers."""
    monkeypatch.setattr("aclog.pipeline.history.intervals.read_log", decoded_log)
