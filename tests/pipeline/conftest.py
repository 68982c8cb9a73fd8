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


@pytest.fixture
def lake(spark, tmp_path) -> Iterator[str]:
    """A URI of a store that is `tmp_path/lake`."""
    (tmp_path / "lake").mkdir()
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    name = f"store{abs(hash(str(tmp_path)))}"
    configuration.set(f"fs.viewfs.mounttable.{name}.link./lake", (tmp_path / "lake").as_uri())
    yield f"viewfs://{name}/lake"
    configuration.unset(f"fs.viewfs.mounttable.{name}.link./lake")
