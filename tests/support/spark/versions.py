"""What tests expect on older versions of PySpark, which `make check-spark` runs: there, a refusal by its version."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from aclog.pipeline.spark_versions import VERSION

HAS_FILTERS = VERSION >= (4, 1)
"""Filters reach a Python data source."""
HAS_STREAMS = VERSION >= (4, 2)
"""Streams of a Python data source have limits."""
HAS_ZONES_OF_ORC = VERSION >= (4, 2)
"""Spark reads times in a zone from ORC."""
HAS_NULL_STRUCTS = VERSION >= (4, 1)
"""A function of SQL can return null for a struct, rather than a struct of nulls."""
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def is_refused(query: Callable[[], object], *, since: tuple[int, int]) -> bool:
    """Return whether this version lacks a feature; then the query must fail with both versions."""
    if since <= VERSION:
        return False
    text = rf"on PySpark {pyspark.__version__}: expected {since[0]}\.{since[1]} or later"
    with pytest.raises(PySparkException, match=text):
        query()
    return True


@contextmanager
def pushdown(spark: SparkSession, value: str) -> Iterator[None]:
    """Set whether Spark pushes filters to Python data sources; before 4.1 there is no such setting."""
    if not HAS_FILTERS:
        yield
        return
    before = spark.conf.get(_PUSHDOWN)
    spark.conf.set(_PUSHDOWN, value)
    try:
        yield
    finally:
        spark.conf.set(_PUSHDOWN, before)
