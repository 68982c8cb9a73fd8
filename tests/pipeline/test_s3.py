"""`aclog spark` on s3a://, by Hadoop's own client: `make check-s3` has its jars, of 660 MB."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.pipeline.storage_contract import KNOWN, LOG, ROWS, Sides, StorageContract, parquet, sides_of
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


def test_an_index_is_in_the_store(sides, tmp_path):
    address = sides.store.settings["spark.hadoop.fs.s3a.endpoint"].removeprefix("http://")
    index = f"{sides.at('index')}?endpoint_override={address}&scheme=http"
    outputs = []
    for place in (tmp_path / "index", index):
        flags = ("--accesses", sides.here / "accesses", "--log", sides.log, KNOWN, "--index", place)
        outputs.append([sides.one.run("spark", "usage-index", *flags).out for _ in range(2)])
    assert outputs[0] == outputs[1]
    assert sides.store.names("index") == ["usage.sqlite"]


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


def test_of_two_writers_of_an_object_one_wins(sides, monkeypatch):
    """Another process writes the object between the look of this one and its request: the store decides."""
    store = sides.store
    for key, value in store.environment.items():
        monkeypatch.setenv(key, value)
    script = [sys.executable, "-c", _RACE, sides.at("race")]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": submit_arguments(store.settings)}
    race = subprocess.Popen(script, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with race as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in ("small", "published"):
            assert process.stdout.readline() == f"{name}\n"
            store.put(f"race/{name}", b"of another")
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "False\n"
            assert store.read(f"race/{name}") == b"of another"
        assert process.stdout.readline() == "True\n"
    assert process.returncode == 0
    assert store.read("race/alone") == b"own"
    assert "staged" in store.names("race")  # it is not deleted unless it was published


_RACE = """
import sys
from unittest import mock
from aclog.pipeline import storage
from aclog.pipeline.session import open_session
spark, at = open_session("local[1]"), sys.argv[1]
created = storage._created
def waits(spark, name, write):
    def wait(stream):
        write(stream)
        print(name.rpartition("/")[2], flush=True)
        sys.stdin.readline()
    return created(spark, name, wait)
with mock.patch.object(storage, "_created", waits):
    print(storage.create(spark, f"{at}/small", b"own"), flush=True)
created(spark, f"{at}/staged", lambda stream: stream.write(bytearray(b"rows")))
with mock.patch.object(storage, "_created", waits):
    print(storage.publish(spark, f"{at}/staged", f"{at}/published"), flush=True)
print(storage.create(spark, f"{at}/alone", b"own"), flush=True)
storage.check_conditional(spark, at)
spark.stop()
"""
