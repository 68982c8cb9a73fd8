from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from aclog.pipeline.session import open_session
from tests.support.spark.jvm import settings


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process, on two cores; nothing of it is left in the checkout."""
    with TemporaryDirectory() as scratch:
        session = open_session("local[2]", {"spark.local.dir": scratch, **settings()})
        yield session
        session.stop()
