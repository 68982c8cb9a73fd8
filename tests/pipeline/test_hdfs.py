"""`aclog spark` on hdfs://, of a NameNode and a DataNode: `make check-hdfs` has their jars, of 105 MB."""

from collections.abc import Iterator

import pytest

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
