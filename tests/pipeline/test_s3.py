"""`aclog spark` on s3a://, by Hadoop's own client: `make check-s3` has its jars, of 660 MB."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.pipeline.storage_contract import LOG, ROWS, Sides, StorageContract, parquet, sides_of
from tests.support.spark.jvm import submit_arguments
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


_READ = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
spark.read.parquet(sys.argv[1]).write.format("noop").mode("overwrite").save()
"""


def requests_of(store, action) -> Counter[str]:
    """The requests of an action by their kind, further pages of a list apart: those of S3 have 1,000 objects, not 3."""
    del store.requests[:]
    action()
    kinds = Counter(request.partition(" ")[0] for request in store.requests)
    del kinds["PAGE"]
    return kinds


def test_the_requests_of_a_command_beside_those_of_spark_do_not_grow_with_the_files(sides, tmp_path):
    store, beside = sides.store, {}
    environment = {**os.environ, **store.environment, "PYSPARK_SUBMIT_ARGS": submit_arguments(store.settings)}
    for count in (2, 20):
        for number in range(count):
            store.put(f"many-{count}/part-{number}.parquet", parquet(ROWS[number : number + 1]))
        where = sides.at(f"many-{count}")
        script = [sys.executable, "-c", _READ, where]
        read = requests_of(store, lambda script=script: subprocess.run(script, env=environment, check=True))
        flags = ("--requests", where, "--log", sides.here / "node" / LOG.name, "--super-users=")
        command = ("spark", "authorize", *flags, "--out", tmp_path / f"out-{count}")
        decided = requests_of(store, lambda command=command: sides.one.run(*command))
        assert (tmp_path / f"out-{count}" / "_SUCCESS").exists()
        print(f"{count} files: spark.read {dict(read)}, spark authorize {dict(decided)}")
        beside[count] = {kind: decided[kind] - read[kind] for kind in ("HEAD", "GET", "LIST")}
    # a request for each file would be 18 more; Spark's own differ by one or two, such as for the file of the schema
    assert all(abs(beside[20][kind] - beside[2][kind]) <= 2 for kind in beside[2]), beside
