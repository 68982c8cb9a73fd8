"""`aclog spark` on s3a://, by Hadoop's own client: `make check-s3` has its jars, of 660 MB."""

from collections.abc import Iterator

import pytest

from tests.pipeline.storage_contract import Sides, StorageContract, sides_of
from tests.support.spark.stores import S3_JARS, s3_store

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not (S3_JARS / ".ready").exists(), reason="make check-s3 has hadoop-aws, of 660 MB"),
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> Iterator[Sides]:
    scratch = tmp_path_factory.mktemp("sides")
    with s3_store() as store, sides_of(store, scratch) as sides:
        yield sides


class TestS3(StorageContract):
    """The contract on S3."""
