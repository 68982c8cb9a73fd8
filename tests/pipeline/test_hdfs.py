"""`aclog spark` on hdfs://, of a NameNode and a DataNode: `make check-hdfs` has their jars, of 105 MB."""

from collections.abc import Iterator

import pytest

from aclog.pipeline import storage
from tests.pipeline.storage_contract import Sides, StorageContract, sides_of
from tests.support.spark.stores import HDFS_JARS, hdfs_store

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not (HDFS_JARS / ".ready").exists(), reason="make check-hdfs has a minicluster, of 105 MB"),
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> Iterator[Sides]:
    scratch = tmp_path_factory.mktemp("sides")
    with hdfs_store(scratch) as store, sides_of(store, scratch) as sides:
        yield sides


class TestHdfs(StorageContract):
    """The contract on HDFS."""


def test_a_file_that_is_being_written_exists(sides, spark):
    name = sides.at("being-written")
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(name)
    stream = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).create(path)
    try:
        assert not storage.create(spark, name, b"")
    finally:
        stream.close()
    assert not storage.create(spark, name, b"")
