"""What is said about a failed job, from the texts of real failures of Spark."""

import os

import pytest
from attrs import evolve
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader

from aclog.cli.spark.spark_session import failure
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.pipeline.accesses import ingest, write
from aclog.pipeline.session import cause
from tests.support.spark.access_logs import audit_text


def of_python(batches):
    raise ValueError("boo: 1\nand more")
    yield from batches


def chained(batches):
    try:
        yield from of_python(batches)
    except ValueError as error:
        raise KeyError("second") from error


def of_aclog(batches):
    raise DecodeError("a wrong CRC", path="/d/0.log", position=7)
    yield from batches


def crashed(batches):
    os._exit(3)
    yield from batches


def unpicklable(batches):
    import nowhere_at_all

    yield nowhere_at_all


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (of_python, "Spark failed: ValueError: boo: 1"),
        (chained, "Spark failed: KeyError: 'second'"),
        (of_aclog, "/d/0.log: byte 7: a wrong CRC"),
        (crashed, "Spark failed: a Python worker crashed or was killed, most likely for lack of memory"),
        (unpicklable, "Spark failed: ModuleNotFoundError: No module named 'nowhere_at_all' in the Python of a worker"),
    ],
)
def test_the_cause_of_a_failed_task_is_pythons(spark, run, said):
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        spark.range(1).mapInArrow(run, "id long").collect()
    assert str(failure(caught.value)).startswith(said)
    assert "\n" not in str(failure(caught.value))


class Unreadable(DataSource):
    """Fails where the data source `aclog` plans: on the driver, in a Python process of its own."""

    @classmethod
    def name(cls):
        return "unreadable"

    def schema(self):
        return "id long"

    def reader(self, schema):
        return UnreadableReader()


class UnreadableReader(DataSourceReader):
    def partitions(self):
        raise DecodeError("no plan")

    def read(self, partition):
        return iter(())


def test_the_cause_of_a_failed_plan_is_pythons(spark):
    spark.dataSource.register(Unreadable)
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        spark.read.format("unreadable").load().collect()
    assert str(failure(caught.value)) == "no plan"


def test_ingest_names_the_cause(spark, tmp_path):
    (tmp_path / "a.log").write_text(audit_text())
    planned = ingest(spark, tmp_path / "a.log", "kafka-log")
    for split, said in ((of_python, r"a\.log: ValueError: boo: 1$"), (of_aclog, r"^/d/0\.log: byte 7: a wrong CRC$")):
        with pytest.raises(ConfigError, match=said):
            write(evolve(planned, split=lambda batch, run=split: next(run([batch]))), tmp_path / "out")


def test_a_python_that_is_not_there_is_named():
    text = (
        "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times\n"
        'Caused by: java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file\n'
        "Caused by: java.io.IOException: error=2, No such file or directory\n"
    )
    assert cause(text).startswith("cannot run ./environment/bin/python, the Python of the workers: set PYSPARK_PYTHON")


def test_an_error_of_java_is_its_innermost_cause():
    assert cause("Job aborted\nCaused by: java.io.IOException: disk full\n\tat x") == "IOException: disk full"
    assert cause("Something else\nmore") == "Something else"
