import sys

from pyspark.sql import functions as F


def test_workers_run_this_interpreter_and_have_what_is_installed_here(spark):
    @F.udf("string")
    def worker(_number):
        import pyarrow as pa

        return f"{sys.executable} {pa.__version__}"

    import pyarrow as pa

    (row,) = spark.range(1).select(worker("id").alias("worker")).collect()
    assert row.worker == f"{sys.executable} {pa.__version__}"


def test_times_are_utc(spark):
    (row,) = spark.sql("select cast(timestamp_millis(0) as string) as t").collect()
    assert row.t == "1970-01-01 00:00:00"
