"""Decisions on tables of requests agree with the engine, row by row."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import functions as F

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import uuid_text
from aclog.pipeline.accesses import read_accesses
from aclog.pipeline.authorize import authorize, flips_of, simulated
from aclog.pipeline.history.intervals import intervals, known_from
from aclog.pipeline.usage import usage
from aclog.snapshots.moments import milliseconds
from aclog.snapshots.publisher import recover
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from tests.support.builders.acls import acl
from tests.support.builders.images import with_ids
from tests.support.models import golden
from tests.support.models.engine_answers import decided, engine

DATA = Path(__file__).parent.parent / "data"
ESTATE = "031"
"""One of many that tests/usage/decisions decides on: what Spark adds depends on no estate."""


def rows_of(requests):
    return [
        (r.principal, r.host, AclOperation(r.operation).name, ResourceType(r.resource_type).name, r.resource_name)
        for r in requests
    ]


def test_a_golden_estate(spark):
    estate = golden.load(ESTATE)
    image = AclsImage.from_acls(with_ids(estate.acls))
    ids = {f"MatchingAcl(acl={rule.acl})": uuid_text(rule.id) for rule in image}
    asked = [
        (n, row, answer)
        for n, (row, answer) in enumerate(zip(rows_of(estate.requests), estate.answers, strict=True))
        if row[4] is not None and answer.letter in "AD"
    ]
    frame = spark.createDataFrame(
        [(n, *row) for n, row, _ in asked], ", ".join(["n int", *(f"{name} string" for name in REQUEST_COLUMNS)])
    )
    judged = authorize(frame, Rules.of_image(image), Settings.of_texts(estate.super_users, estate.allow_everyone))
    assert judged.columns == ["n", *REQUEST_COLUMNS, "decision", "rule", "rule_id"]
    answers = {row.n: row for row in judged.collect()}
    assert len(answers) == len(asked)
    for n, _, answer in asked:
        row = answers[n]
        assert (row.decision[0], row.rule, row.rule_id) == (answer.letter, answer.rule, ids.get(answer.rule))


def test_hosts_that_are_ranges(spark):
    rules = with_ids(
        acl("t", "User:a", host=host, permission_type=permission)
        for host, permission in (("10.0.0.0/8", AclPermissionType.ALLOW), ("10.66.0.0/16", AclPermissionType.DENY))
    )
    image = AclsImage.from_acls(rules)
    asked = [("User:a", host, "READ", "TOPIC", "t") for host in ("10.1.2.3", "10.66.1.1", "11.0.0.1")]
    frame = spark.createDataFrame(asked, ", ".join(f"{name} string" for name in REQUEST_COLUMNS))
    for settings in (Settings(cidr=True), Settings()):
        judged = authorize(frame, Rules.of_image(image), settings).collect()
        told = {row.host: (row.decision[0], row.rule, row.rule_id) for row in judged}
        assert told == {each[1]: decided(engine(image, settings), *each) for each in asked}
    assert {letter for letter, _, _ in told.values()} == {"D"}


@pytest.mark.tier("test")
def test_each_row_of_a_real_log_at_its_own_time(spark):
    """Requests at, before and after the times of batches; expected answers come from replaying the log."""
    directory = DATA / "kafka-4.3.1-churn" / "__cluster_metadata-0"
    table = intervals(spark, directory).toArrow()
    draw = Random(1)
    moments = sorted(
        {time for name in ("visible_from", "visible_to") for time in table.column(name).to_pylist() if time}
    )
    times = [time + shift for time in draw.sample(moments, min(len(moments), 12)) for shift in (-1, 0, 1)]
    rules = draw.sample(table.to_pylist(), 60)
    rows = [
        (rule["principal"] if rule["principal"] != "User:*" else "User:somebody", "10.0.0.1", operation,
         rule["resourceType"], rule["resourceName"] + suffix, time)
        for rule in rules for operation in ("READ", "DESCRIBE") for suffix in ("", "x")
        for time in draw.sample(times, 6)
    ]  # fmt: skip
    schema = ", ".join([*(f"{name} string" for name in REQUEST_COLUMNS), "ms long"])
    frame = spark.createDataFrame(rows, schema).withColumn("timestamp", F.timestamp_millis("ms"))
    known = Rules.of_table(table, known_from=known_from(directory))
    judged = authorize(frame, known, Settings(), own_time=True).collect()
    engines = {}
    for row in judged:
        if row.ms not in engines:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=row.ms)
            assert milliseconds(moment) == row.ms
            engines[row.ms] = engine(recover(directory, moment, strict=False).image.acls)
        asked = [getattr(row, name) for name in REQUEST_COLUMNS]
        letter, rule, rule_id = decided(engines[row.ms], *asked)
        assert (row.decision[0], row.rule, row.rule_id) == (letter, rule, rule_id), asked
    assert {row.decision for row in judged} == {"ALLOWED", "DENIED"}
    assert len(judged) == len(rows)


def test_rows_that_cannot_be_decided_say_why(spark):
    row = ("User:a", "10.0.0.1", "READ", "TOPIC", "t")
    rows = [row, (None, *row[1:]), (*row[:2], "REED", *row[3:]), (row[0], "somewhere", *row[2:]), ("User:*", *row[1:])]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in REQUEST_COLUMNS))
    judged = authorize(frame, Rules.of_image(AclsImage.empty()), Settings(allow_everyone=True)).collect()
    assert sorted((row.decision, row.rule) for row in judged) == [
        ("ALLOWED", "DefaultAllow"),
        ("ERROR", "User:* is not a principal: in ACLs it matches all users"),
        ("ERROR", "not an operation of Kafka"),
        ("ERROR", "principal, host, operation, resourceType or resourceName is missing"),
        ("ERROR", "the host is not an IPv4 or IPv6 address"),
    ]


def test_an_empty_table(spark):
    frame = spark.createDataFrame([], ", ".join(f"{name} string" for name in REQUEST_COLUMNS))
    assert authorize(frame, Rules.of_image(AclsImage.empty()), Settings()).collect() == []


def test_a_duplicate_output_column_is_refused(spark):
    frame = spark.createDataFrame([], ", ".join(f"{name} string" for name in (*REQUEST_COLUMNS, "Decision")))
    with pytest.raises(ConfigError, match="'Decision', which would come out twice"):
        authorize(frame, Rules.of_image(AclsImage.empty()), Settings())


def test_columns_of_any_type_are_unchanged(spark):
    """Including types that Arrow cannot carry."""
    row = "'User:a' AS principal, '10.0.0.1' AS HOST, 'READ' AS operation, 'TOPIC' AS resourceType, 't' AS resourceName"
    plain = "1 AS n, decimal(1.25) AS d, array(1, null) AS a, map('k', 1) AS m, struct(1 AS x) AS s, x'00ff' AS b, \
        timestamp'2026-11-20 10:00:00' AS timestamp, timestamp_ntz'2026-11-20 10:00:00' AS l, null AS nothing"
    beyond_arrow = "make_interval(1, 2, 3) AS i"
    for columns in (plain, f"{plain}, {beyond_arrow}"):
        frame = spark.sql(f"SELECT {columns}, {row}")
        judged = authorize(frame, Rules.of_image(AclsImage.empty()), Settings(), own_time=True)
        assert judged.columns == [*frame.columns, "decision", "rule", "rule_id"]
        assert [field.dataType for field in judged.schema][: len(frame.columns)] == [f.dataType for f in frame.schema]
        (before,), (after,) = (each.drop("i").collect() for each in (frame, judged))  # collect() cannot carry it either
        assert tuple(after) == (*before, "DENIED", "DefaultDeny", None)


def test_column_names_with_dots_backticks_and_twice(spark, tmp_path):
    """Spark itself fails on such names in mapInArrow: an access log may have them all the same."""
    row = ("User:a", "10.0.0.1", "READ", "TOPIC", "t")
    frame = spark.createDataFrame([(1, *row, "x", 2, 3)], ["a.b", *REQUEST_COLUMNS, "c`d", "n", "n2"])
    frame = frame.select(
        *(F.col(f"`{name.replace('`', '``')}`") for name in frame.columns[:-1]), F.col("n2").alias("n")
    )
    settings = Settings(allow_everyone=True)
    judged = authorize(frame, Rules.of_image(AclsImage.empty()), settings)
    assert judged.columns == ["a.b", *REQUEST_COLUMNS, "c`d", "n", "n", "decision", "rule", "rule_id"]
    assert [tuple(each) for each in judged.collect()] == [(1, *row, "x", 2, 3, "ALLOWED", "DefaultAllow", None)]
    none = Rules.of_image(AclsImage.empty())
    (change,) = flips_of(simulated(frame, (none, settings), (none, Settings())), none, none).collect()
    assert change.change == "LOST"
    timed = frame.withColumn("timestamp", F.timestamp_seconds(F.lit(10)))
    found = usage(timed, none, settings, own_time=False, window_days=1)
    assert found.counts.decided == 1
    interval = frame.withColumn("x.y", F.expr("interval 3 months"))  # Arrow cannot carry it: another way to Python
    judged = authorize(interval, Rules.of_image(AclsImage.empty()), settings)
    assert judged.columns[-4:] == ["x.y", "decision", "rule", "rule_id"]
    assert judged.select("decision").first()[0] == "ALLOWED"


def test_json_lines_and_parquet_with_dotted_names(spark, tmp_path):
    row = dict(zip(REQUEST_COLUMNS, ("User:a", "10.0.0.1", "READ", "TOPIC", "t"), strict=True))
    (tmp_path / "asked.jsonl").write_text(json.dumps({**row, "log.level": "INFO", "a`b": 1}) + "\n")
    rules = Rules.of_image(AclsImage.empty())
    judged = authorize(read_accesses(spark, tmp_path / "asked.jsonl"), rules, Settings())
    judged.write.parquet(str(tmp_path / "judged"))
    read = read_accesses(spark, tmp_path / "judged").drop("decision", "rule", "rule_id")
    again = authorize(read, rules, Settings()).first().asDict()
    assert (again["log.level"], again["a`b"], again["decision"]) == ("INFO", 1, "DENIED")
