"""The data source under Spark, as a table and as a stream."""

import shutil
from collections.abc import Iterator
from datetime import timedelta

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import segment_name
from aclog.pipeline.source.rows import COMMENTS, FIELD_COMMENTS, LOG_SCHEMA, commented_schema
from tests.support.builders.log_files import small_log, value
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl
from tests.support.spark import source
from tests.support.spark.session import finished
from tests.support.spark.versions import is_refused, pushdown

CHURN = next(each for each in source.LOGS if "churn" in str(each))
SMALL = next(each for each in source.LOGS if "small" in str(each))


def rows(frame: DataFrame) -> list[dict]:
    """Rows as dictionaries."""
    return frame.toArrow().to_pylist()


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    """Spark pushes filters to Python data sources."""
    with pushdown(spark, "true"):
        yield


@pytest.fixture
def not_pushing(spark: SparkSession) -> Iterator[None]:
    """Spark's default."""
    with pushdown(spark, "false"):
        yield


def _offset(row: dict) -> int:
    return row["offset"]


def test_a_log_and_a_checkpoint_are_tables(spark: SparkSession):
    frame = spark.read.format("aclog").option("partitionBytes", 2000).load(str(SMALL))
    assert frame.schema == commented_schema()
    assert rows(frame.orderBy("offset")) == source.expected_rows(source.segments(SMALL))
    newest = max(SMALL.glob("*.checkpoint"))
    assert rows(spark.read.format("aclog").load(str(newest)).orderBy("offset")) == source.expected_rows([newest])


def test_a_log_of_many_small_segments_is_a_few_tasks(spark: SparkSession, tmp_path):
    for number in range(100):
        write_log(tmp_path, [acl(number)], base=number)
    frame = spark.read.format("aclog").load(str(tmp_path))
    assert frame.rdd.getNumPartitions() == 1
    assert [row["offset"] for row in rows(frame)] == list(range(100))


@pytest.mark.parametrize(
    "condition",
    [
        "offset >= 100 and offset < 200 and record_type = 'ACCESS_CONTROL_ENTRY_RECORD'",
        "offset in (1, 182, 183, 230)",
        "offset > 200 and timestamp > '2020-01-01 00:00:00' and timestamp is not null",
        "timestamp <= timestamp_micros({middle}) and record_type in ('NO_OP_RECORD', 'LeaderChange')",
        "timestamp = timestamp_micros({middle}) and version = 0 and acl.id is not null",
        "not (offset > 5) and record_type like 'F%'",
        "offset <=> 7",
    ],
)
def test_filters_that_are_pushed_down_give_the_same_rows(spark: SparkSession, pushing, condition):
    everything = source.expected_rows(source.segments(SMALL))
    middle = everything[150]["timestamp"] - source.time_of(0)
    condition = condition.format(middle=middle // timedelta(microseconds=1))
    kept = spark.read.format("aclog").load(str(SMALL)).where(condition)
    pushed = spark.read.format("aclog").option("pushFilters", True).load(str(SMALL)).where(condition)
    found = rows(kept)
    assert found
    if is_refused(pushed.collect, since=(4, 1)):
        return
    assert sorted(found, key=_offset) == sorted(rows(pushed), key=_offset)


def test_pushed_filters_prune_partitions(spark: SparkSession, pushing):
    def partitions(**options: str) -> int:
        frame = spark.read.format("aclog").options(partitionBytes="50000", **options).load(str(CHURN))
        return frame.where("offset = 20000").rdd.getNumPartitions()

    if is_refused(lambda: partitions(pushFilters="true"), since=(4, 1)):
        return
    assert partitions(pushFilters="true") == 1 < partitions()


def test_a_range_of_offsets_is_read_alone(spark: SparkSession):
    reader = spark.read.format("aclog").option("partitionBytes", 50_000)
    whole = reader.load(str(CHURN))
    for first, end in ((0, 1), (20_000, 20_500), (28_000, None), (5, 5)):
        options = {"fromOffset": first} | ({} if end is None else {"untilOffset": end})
        part = reader.options(**options).load(str(CHURN))
        expected = whole.where(f"offset >= {first}" + ("" if end is None else f" and offset < {end}"))
        assert sorted(rows(part), key=_offset) == sorted(rows(expected), key=_offset)
        assert part.rdd.getNumPartitions() < whole.rdd.getNumPartitions() or first == 0
        reader = spark.read.format("aclog").option("partitionBytes", 50_000)
    with pytest.raises(PySparkException, match="option untilOffset: '-1': expected an offset"):
        reader.option("untilOffset", -1).load(str(CHURN)).count()


def test_a_range_that_the_log_does_not_have_is_refused(spark: SparkSession, tmp_path):
    log = tmp_path / SMALL.name
    shutil.copytree(SMALL, log)
    for path in log.glob(f"{0:020d}.*"):
        path.unlink()
    with pytest.raises(PySparkException, match="untilOffset: 3: below fromOffset 7"):
        spark.read.format("aclog").options(fromOffset=7, untilOffset=3).load(str(log)).count()
    for options in ({"fromOffset": 0}, {"fromOffset": 182, "untilOffset": 200}, {"untilOffset": 5}):
        with pytest.raises(PySparkException, match="begins at offset 183 and ends before offset 231"):
            spark.read.format("aclog").options(**options).load(str(log)).count()
    for options in ({"fromOffset": 232}, {"fromOffset": 200, "untilOffset": 232}):
        with pytest.raises(PySparkException, match="begins at offset 183 and ends before offset 231"):
            spark.read.format("aclog").options(**options).load(str(log)).count()
    for options, count in (
        ({}, 48),
        ({"fromOffset": 183, "untilOffset": 231}, 48),
        ({"fromOffset": 231}, 0),
        ({"fromOffset": 0, "untilOffset": 185, "failOnDataLoss": False}, 2),
        ({"fromOffset": 99_999, "failOnDataLoss": False}, 0),
    ):
        assert spark.read.format("aclog").options(**options).load(str(log)).count() == count


def test_spark_keeps_filters_for_the_next_query_on_a_frame(spark: SparkSession, pushing):
    """The reason why pushFilters is off by default: once this fails, Spark has changed."""
    whole = spark.read.format("aclog").load(str(SMALL)).count()
    frame = spark.read.format("aclog").option("pushFilters", True).load(str(SMALL))
    if is_refused(frame.count, since=(4, 1)):
        return
    counts = frame.where("offset < 10").count(), frame.count()
    assert (10, 10) == counts != (10, whole)


def test_a_frame_can_be_queried_repeatedly(spark: SparkSession):
    frame = spark.read.format("aclog").load(str(SMALL))
    whole = frame.count()
    low, high = frame.where("offset < 10"), frame.where("offset >= 200")
    assert (low.count(), frame.count(), low.union(high).count()) == (10, whole, 10 + whole - 200)


def test_a_schema_with_fewer_columns(spark: SparkSession):
    reader = spark.read.format("aclog")
    found = rows(reader.schema("record_type string, offset long").load(str(SMALL)).orderBy("offset"))
    assert found == [
        {"record_type": row["record_type"], "offset": row["offset"]}
        for row in source.expected_rows(source.segments(SMALL))
    ]
    with pytest.raises(PySparkException, match="column secrets: expected one of offset"):
        reader.schema("secrets string").load(str(SMALL)).count()


def test_push_down_needs_the_setting_of_the_session(spark: SparkSession, not_pushing):
    frame = spark.read.format("aclog").option("pushFilters", True).load(str(SMALL))
    if is_refused(frame.count, since=(4, 1)):
        return
    with pytest.raises(PySparkException, match=r"Set it to true to enable filter pushdown"):
        frame.count()


def test_an_empty_log_is_an_empty_table(spark: SparkSession, tmp_path):
    (tmp_path / segment_name(0)).write_bytes(b"")
    assert spark.read.format("aclog").load(str(tmp_path)).count() == 0


def test_damage_reaches_the_user_with_path_and_position(spark: SparkSession, tmp_path):
    log = tmp_path / "log"
    shutil.copytree(SMALL, log)
    path = source.segments(log)[0]
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    with pytest.raises(PySparkException, match=rf"{path}: offset \d+, byte \d+: CRC mismatch"):
        spark.read.format("aclog").load(str(log)).count()
    frame = spark.read.format("aclog").option("damaged", "setAside").load(str(log))
    (damage,) = frame.where("record_type = 'DAMAGED'").collect()
    assert f"{path}: bytes " in damage.damage
    assert frame.count() > 100


@pytest.mark.parametrize(
    ("name", "said"),
    [("nonsense", "option 'nonsense'"), ("damaged", "expected one of fail"), ("fromOffset", "expected an offset")],
)
def test_invalid_options(spark: SparkSession, name, said):
    with pytest.raises(PySparkException, match=said):
        spark.read.format("aclog").option(name, "x").load(str(SMALL)).count()


def test_a_stream_of_whole_batches_resumes_from_its_checkpoint(spark: SparkSession, tmp_path):
    def run(log) -> list[int]:
        stream = spark.readStream.format("aclog").option("maxRecordsPerTrigger", 9).load(str(log))
        writer = (
            stream.select("offset", F.col("record_type"))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        query = finished(lambda: writer.start(str(tmp_path / "out")))
        progress = [int(each["numInputRows"]) for each in query.recentProgress]
        query.stop()
        return [each for each in progress if each]

    with open_log(tmp_path / "log", create=True, segment_bytes=900) as log:
        for number in range(12):
            log.append([value(f"{number}")] * 4, timestamp=number).result(60)
        if is_refused(lambda: run(tmp_path / "log"), since=(4, 2)):
            return
        assert run(tmp_path / "log") == [9, 8, 8, 8, 8, 8]
        for number in range(3):
            log.append([value(f"{number}")] * 20, timestamp=number).result(60)
        assert run(tmp_path / "log") == [20, 20, 20]
    found = spark.read.parquet(str(tmp_path / "out")).orderBy("offset").collect()
    assert [row.offset for row in found] == list(range(1 + 12 * 4 + 60))


def test_a_stream_fails_if_retention_removed_its_next_records(spark: SparkSession, tmp_path):
    log = small_log(tmp_path / "log", batches=30, segment_bytes=1500)

    def run(**options: str) -> None:
        reader = spark.readStream.format("aclog").options(**options).option("maxRecordsPerTrigger", 5)
        writer = reader.load(str(log)).writeStream.format("noop").trigger(availableNow=True)
        finished(writer.option("checkpointLocation", str(tmp_path / "c")).start)

    checkpoint = tmp_path / "c"
    (checkpoint / "offsets").mkdir(parents=True)
    if is_refused(run, since=(4, 2)):
        return
    run()
    for kept in sorted((checkpoint / "offsets").glob("[0-9]*")) + sorted((checkpoint / "commits").glob("[0-9]*")):
        if int(kept.name) > 1:
            kept.unlink()
    for crc in checkpoint.rglob("*.crc"):
        crc.unlink()
    source.segments(log)[0].unlink()
    with pytest.raises(PySparkException, match="removed by retention before the stream read them"):
        run()
    run(failOnDataLoss="false")


def test_every_column_has_a_comment(spark: SparkSession):
    spark.sql(f"CREATE OR REPLACE TEMP VIEW described USING aclog OPTIONS (path '{SMALL}')")
    described = {row.col_name: row.comment for row in spark.sql("DESCRIBE TABLE described").collect()}
    assert described == COMMENTS
    assert list(described) == LOG_SCHEMA.names
    frame = spark.read.format("aclog").load(str(SMALL))
    for column in frame.schema:
        assert column.metadata == {"comment": COMMENTS[column.name]}
        for inside in column.dataType if isinstance(column.dataType, StructType) else ():
            assert inside.metadata == {"comment": FIELD_COMMENTS[column.name][inside.name]}
    chosen = StructType([field for field in frame.schema if field.name in {"offset", "acl"}])
    assert spark.read.format("aclog").schema(chosen).load(str(SMALL)).count() == frame.count()


def test_tables_and_views_of_sql(spark):
    """Spark gives no options to the queries of a table; a view has them, also in all sessions of an application."""
    options = f"USING aclog OPTIONS (path '{SMALL}')"
    with pytest.raises(PySparkException, match="expected CREATE TEMPORARY VIEW, or CREATE GLOBAL TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE of_log {options}")
    spark.sql(f"CREATE GLOBAL TEMPORARY VIEW of_log {options}")
    try:
        count = "SELECT count(*) AS rows FROM global_temp.of_log"
        expected = spark.read.format("aclog").load(str(SMALL)).count()
        assert spark.newSession().sql(count).first().rows == expected
    finally:
        spark.catalog.dropGlobalTempView("of_log")
