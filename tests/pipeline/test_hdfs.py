"""`aclog spark` on hdfs://, of a NameNode and a DataNode: `make check-hdfs` has their jars, of 105 MB."""

from collections.abc import Iterator

import pytest

from aclog.pipeline import storage
from tests.pipeline.storage_contract import KNOWN, Sides, StorageContract, sides_of
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


@pytest.mark.parametrize("name", ["accesses", "accesses/part-0.parquet", "acc*/part-?.parquet"])
def test_access_logs_are_copied(sides, tmp_path, name):
    """A directory, a file and a pattern of Hadoop, as on this machine."""
    results = []
    for at in (sides.here, sides.store.uri):
        words = ("--accesses", f"{at}/{name}", "--log", sides.log, KNOWN)
        index = tmp_path / str(len(results))
        results.append(
            [
                sides.one.run("spark", "suggest", *words, "--days", "1"),
                sides.one.run("spark", "usage-index", *words, "--index", index),
            ]
        )
    for local, stored in zip(*results, strict=True):
        assert (stored.code, stored.out) == (local.code, local.out)
        assert stored.code == 0


def test_an_index_is_not_in_hdfs(sides):
    flags = ("--accesses", sides.here / "logs", "--log", sides.log, "--index", sides.at("index"))
    refused = sides.one.run("spark", "usage-index", *flags)
    assert refused.code == 2
    assert "an index in a store of hdfs: is not supported: expected a directory of this machine" in refused.complaint
    assert sides.store.names("index") == []


def test_a_file_that_is_being_written_exists(sides, spark):
    name = sides.at("being-written")
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(name)
    stream = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).create(path)
    try:
        assert not storage.create(spark, name, b"")
    finally:
        stream.close()
    assert not storage.create(spark, name, b"")
