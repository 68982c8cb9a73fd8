"""The contract of stores on S3, by the object store of the tests."""

from collections.abc import Iterator

import pytest

from tests.support.processes.cloud_stores import S3Bucket, s3_bucket
from tests.usage.accesses.store_contract import StoreContract

pytestmark = pytest.mark.tier("test")


@pytest.fixture(scope="module")
def bucket() -> Iterator[S3Bucket]:
    with pytest.MonkeyPatch.context() as environment, s3_bucket() as bucket:
        for name, value in {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "secret", "EC2_METADATA_DISABLED": "1"}.items():
            environment.setenv(f"AWS_{name}", value)
        yield bucket


class TestS3(StoreContract):
    """The contract on S3."""
