from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from aclog.pipeline.session import open_session

_SHORT_LIVED = {
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}
"""Tests are many small jobs: a JVM that does not optimize what it has hardly begun needs half the time for them."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process, on two cores; nothing of it is left in the checkout."""
    with TemporaryDirectory() as scratch:
        session = open_session("local[2]", {"spark.local.dir": scratch, **_SHORT_LIVED})
        yield session
        session.stop()
