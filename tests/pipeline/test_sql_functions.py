"""`kafka_authorized` and `kafka_decision`: in SQL, in DataFrames and in streams, beside `authorize` row by row."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import aclog
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.pipeline.authorize import authorize, register
from aclog.pipeline.history.intervals import intervals, known_from
from aclog.pipeline.session import own_error
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from tests.pipeline.test_authorize import DATA, rows_of
from tests.support.builders.images import with_ids
from tests.support.models import golden
from tests.support.spark.versions import HAS_NULL_STRUCTS

LOG = str(DATA / "kafka-4.3.1-small" / "__cluster_metadata-0")
ASKED = "principal, host, operation, resourceType, resourceName"
ALICE = "'User:alice', '10.0.0.1'"
ODD = (
    (None, "10.0.0.1", "READ", "TOPIC", "t"),
    ("User:a", "10.0.0.1", "READ", "TOPIC", None),
    ("User:a", "10.0.0.1", "REED", "TOPIC", "t"),
    ("User:a", "nowhere", "READ", "TOPIC", "t"),
    ("User:a", "10.0.0.1", "READ", "TOPICS", "t"),
    ("alice", "10.0.0.1", "READ", "TOPIC", "t"),
    ("User:*", "10.0.0.1", "READ", "TOPIC", "t"),
)


def is_null(why):
    """Whether a decision is null, or, before PySpark 4.1, has nulls only."""
    return why is None or (not HAS_NULL_STRUCTS and tuple(why) == (None, None, None))


def table(spark, rows):
    return spark.createDataFrame(list(rows), ", ".join(f"{name} string" for name in REQUEST_COLUMNS))


def test_both_functions_decide_as_authorize_does(spark, tmp_path):
    estate = golden.load("031")
    rules = Rules.of_image(AclsImage.from_acls(with_ids(estate.acls)))
    random = Random(5)
    rows = [*random.sample([row for row in rows_of(estate.requests) if row[4] is not None], 200), *ODD]
    settings = Settings.of_texts(estate.super_users, estate.allow_everyone)
    asked = table(spark, rows).cache()
    register(
        spark,
        rules,
        super_users=settings.super_users,
        allow_everyone_if_no_acl_found=settings.allow_everyone,
    )
    expected = authorize(asked, rules, settings).collect()
    asked.createOrReplaceTempView("asked")
    said = spark.sql(f"SELECT *, kafka_authorized({ASKED}) AS ok, kafka_decision({ASKED}) AS why FROM asked").collect()
    assert len(said) == len(expected) == len(rows)
    for row, known in zip(said, expected, strict=True):
        missing = None in row[:5]
        assert row.ok is {"ALLOWED": True, "DENIED": False, "ERROR": None}[known.decision]
        assert is_null(row.why) is missing
        assert missing or tuple(row.why) == (known.decision, known.rule, known.rule_id)
    decisions = {known.decision for known in expected}
    assert decisions == {"ALLOWED", "DENIED", "ERROR"}
    # what cannot be decided passes no filter, negated or not
    passed = asked.where(F.expr(f"kafka_authorized({ASKED})")).count()
    refused = asked.where(~F.call_function("kafka_authorized", *REQUEST_COLUMNS)).count()
    assert (passed, refused) == tuple(
        sum(known.decision == name for known in expected) for name in ("ALLOWED", "DENIED")
    )
    # the same function over a stream
    asked.write.parquet(str(tmp_path / "asked"))
    stream = spark.readStream.schema(asked.schema).parquet(str(tmp_path / "asked"))
    chosen = stream.where(f"kafka_authorized({ASKED})").writeStream.format("memory").queryName("chosen")
    chosen.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start().awaitTermination()
    assert spark.table("chosen").count() == passed


def test_names_of_enums_in_any_case_and_refusals(spark):
    register(spark, aclog.open_log(LOG).image(), super_users=["User:alice"])
    assert spark.sql(f"SELECT kafka_authorized({ALICE}, 'alter_configs', 'Topic', 't') AS ok").first().ok is True
    with pytest.raises(PySparkException) as raised:
        spark.sql(f"SELECT kafka_authorized({ALICE}, 'READ', 'TOPIC')").collect()
    assert own_error(str(raised.value)) == (
        "kafka_authorized and kafka_decision: 4 arguments: expected principal, host, operation, resource_type, "
        "resource_name"
    )
    register(spark, aclog.open_log(LOG).image(), malformed="fail")
    with pytest.raises(PySparkException) as raised:
        table(spark, ODD[:3]).selectExpr(f"kafka_authorized({ASKED})").collect()
    assert (
        own_error(str(raised.value))
        == "kafka_authorized: 1 malformed in this batch, such as: not an operation of Kafka"
    )
    assert table(spark, ODD[:2]).selectExpr(f"kafka_authorized({ASKED}) AS ok").collect() == [(None,), (None,)]
    for bad in ({"semantics": "strict"}, {"malformed": "skip"}, {"super_users": "admin"}):
        with pytest.raises(ConfigError):
            register(spark, aclog.open_log(LOG).image(), **bad)


def test_with_a_history_each_call_names_its_time(spark):
    every = intervals(spark, LOG).toArrow()
    rules = Rules.of_table(every, known_from=known_from(LOG))
    register(spark, rules)
    one = next(row for row in every.to_pylist() if row["permissionType"] == "ALLOW" and row["resourceName"] != "*")
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=one["visible_from"])
    row = (one["principal"], "10.0.0.1", one["operation"], one["resourceType"], one["resourceName"])
    times = [at, at - timedelta(days=3650), None]
    frame = spark.createDataFrame(
        [(*row, time) for time in times],
        ", ".join([*(f"{name} string" for name in REQUEST_COLUMNS), "timestamp timestamp"]),
    )
    expected = authorize(frame, rules, Settings(), own_time=True).collect()
    said = frame.selectExpr(f"kafka_authorized({ASKED}, timestamp) AS ok", f"kafka_decision({ASKED}, timestamp) AS why")
    for found, known in zip(said.collect(), expected, strict=True):
        assert found.ok is {"ALLOWED": True, "DENIED": False, "ERROR": None}[known.decision]
        assert is_null(found.why) or found.why.rule == known.rule
    assert said.collect()[1].why.decision == "ERROR"
    assert said.collect()[2].ok is None
    assert is_null(said.collect()[2].why)
    with pytest.raises(PySparkException, match=r"expected principal, host, .*, timestamp"):
        frame.selectExpr(f"kafka_authorized({ASKED})").collect()
    register(spark, Rules.of_table(every))
    with pytest.raises(PySparkException, match=r"expected principal, host, .*, timestamp"):
        frame.selectExpr(f"kafka_authorized({ASKED})").collect()
    with pytest.raises(PySparkException, match="expected a TIMESTAMP, not string"):
        frame.selectExpr(f"kafka_authorized({ASKED}, '2026-11-20')").collect()
