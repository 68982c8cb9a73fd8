"""Tables from elsewhere: Parquet, CSV and JSON lines; rows that are not accesses are rejected with a reason."""

import csv
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import ingest, write
from aclog.pipeline.accesses.kafka_log import any_time

COLUMNS = {"principal": "user", "resourceName": "what", "timestamp": "at"}
TIME = datetime(2026, 11, 21, 10, 0, 0, 123000, tzinfo=UTC)
MILLIS = 1_795_255_200_123
KEYS = ("user", "host", "operation", "resourceType", "what", "at")
ROWS = [
    ("User:a", "10.0.0.1", "ALTER_CONFIGS", "TRANSACTIONAL_ID", "t1", "2026-11-21T10:00:00.123Z"),
    ("User:a", "10.0.0.1", "AlterConfigs", "TransactionalId", "t2", "2026-11-21 11:00:00,123"),
    ("User:a", "10.0.0.1", "alter_configs", "transactional_id", "t3", "2026-11-21T12:00:00.123+02:00"),
    ("User:a", "10.0.0.1", "alterconfigs", "TRANSACTIONALID", "t4", str(MILLIS)),
]
BAD = {
    ("User:b", "10.0.0.1", "FLY", "TOPIC", "t", str(MILLIS)): "BAD_OPERATION",
    ("User:b", "10.0.0.1", "READ", "SHELF", "t", str(MILLIS)): "BAD_RESOURCE_TYPE",
    ("User:b", "10.0.0.1", "READ", "TOPIC", "t", "yesterday"): "BAD_TIMESTAMP",
    ("User:b", None, "READ", "TOPIC", "t", str(MILLIS)): "MISSING_VALUE",
    ("User:b", "10.0.0.1", "READ", "TOPIC", None, str(MILLIS)): "MISSING_VALUE",
}


def accepted(out):
    rows = pq.read_table(out / "accesses").sort_by("resourceName").to_pylist()
    names = ("principal", "operation", "resourceType", "resourceName", "timestamp")
    return [tuple(row[name] for name in names) for row in rows]


def rejected(out):
    return pq.read_table(out / "rejects").to_pylist()


WANTED = [("User:a", "ALTER_CONFIGS", "TRANSACTIONAL_ID", f"t{number}", TIME) for number in range(1, 5)]


def write_table(path, kind):
    rows = [dict(zip(KEYS, row, strict=True)) for row in (*ROWS, *BAD)]
    if kind == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif kind == "csv":
        lines = [",".join(f'"{row[key]}"' if row[key] else "" for key in KEYS) for row in rows]
        path.write_text("\n".join([",".join(KEYS), *lines]) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_the_same_rows_of_each_format(spark, tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    write_table(path, kind)
    ingested = ingest(spark, path, kind, timezone="Europe/Berlin", columns=COLUMNS)
    counts = write(ingested, tmp_path / "out")
    assert accepted(tmp_path / "out") == WANTED
    assert counts.accesses == len(ROWS)
    assert sorted(counts.rejects.items()) == [
        ("BAD_OPERATION", 1), ("BAD_RESOURCE_TYPE", 1), ("BAD_TIMESTAMP", 1), ("MISSING_VALUE", 2)
    ]  # fmt: skip
    rejects = rejected(tmp_path / "out")
    assert all('"user":"User:b"' in row["line"].replace(": ", ":") and row["detail"] for row in rejects)
    missing = {row["detail"] for row in rejects if row["reason"] == "MISSING_VALUE"}
    assert missing == {"no host", "no resourceName"}


def test_times_of_each_type_in_parquet(spark, tmp_path):
    naive = TIME.replace(tzinfo=None)
    columns = {
        "timestamp": pa.array([TIME], pa.timestamp("us", tz="UTC")),
        "local": pa.array([naive.replace(hour=11)], pa.timestamp("us")),
        "millis": pa.array([MILLIS], pa.int64()),
        "text": pa.array(["2026-11-21T10:00:00.123+0000"]),
        "absent": pa.array([None], pa.int64()),
        "beyond": pa.array([1 << 62], pa.int64()),
        "wrong": pa.array([1.5], pa.float64()),
    }
    fields = {name: pa.array(["User:a" if name == "principal" else "READ"]) for name in ("principal", "host")}
    fields |= {"operation": pa.array(["Read"]), "resourceType": pa.array(["topic"]), "resourceName": pa.array([""])}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(fields | columns), path)

    frame = spark.read.parquet(str(path))
    times = [name for name in columns if name != "wrong"]
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    row = frame.select(*(any_time(F.col(name), kinds[name], "Europe/Berlin").alias(name) for name in times)).first()
    assert row.asDict() == dict.fromkeys(times, naive) | {"absent": None, "beyond": None}
    with pytest.raises(ConfigError, match="timestamp is of type double"):
        ingest(spark, path, "parquet", columns={"timestamp": "wrong"})


def test_lines_that_are_not_json_objects_are_rejected(spark, tmp_path):
    good = json.dumps(
        dict.fromkeys(("principal", "host", "operation", "resourceName"), "READ") | {"resourceType": "User"}
    )
    bad = [
        f"{good} {good}",
        f"{good}]",
        f"{good},{good}",
        f"{good} x",
        good[:-1],
        f"[{good}]",
        "null",
        '"text"',
        good.replace("{", '{"host":"1",'),
        good.replace('"', "'"),
        "\x00",
    ]
    wrong_type = good.replace('"resourceName": "READ"', '"resourceName": 5')
    odd_time = good.replace("{", '{"timestamp":{},')
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join([good, "", *bad, wrong_type, odd_time, f"  {good}  "]))
    counts = write(ingest(spark, path, "jsonl"), tmp_path / "out")
    assert counts.rejects == {"MALFORMED": len(bad), "BAD_TIMESTAMP": 1, "MISSING_VALUE": 1}
    assert (counts.accesses, counts.blanks) == (2, 1)
    assert {row["line"] for row in rejected(tmp_path / "out")} == {*bad, wrong_type, odd_time}


def test_torn_lines_of_csv(spark, tmp_path):
    header = "principal,host,operation,resourceType,resourceName"
    bad = ["User:a,10.0.0.1,READ", "User:a,10.0.0.1,READ,TOPIC,t,more", '"User:a,10.0.0.1,READ,TOPIC,t']
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, 'User:a,10.0.0.1,READ,TOPIC,"a,b"', *bad]))
    assert write(ingest(spark, path, "csv"), tmp_path / "out").rejects == {"MALFORMED": 3}
    assert {row["line"] for row in rejected(tmp_path / "out")} == set(bad)
    assert [row[3] for row in accepted(tmp_path / "out")] == ["a,b"]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_backslashes_and_quotes_in_csv(spark, tmp_path, quoting):
    """As in RFC 4180: a quote is doubled, and a backslash is a character, as in distinguished names."""
    names = ["a\\", "b\\,c", 'd"\\', '"e"', 'f\\"g', "h\\n"]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        table = csv.writer(file, quoting=quoting, lineterminator="\n")
        table.writerow(["principal", "host", "operation", "resourceType", "resourceName"])
        table.writerows([f"User:CN={name}", "10.0.0.1", "READ", "GROUP", name] for name in names)
    assert write(ingest(spark, tmp_path / "t.csv", "csv"), tmp_path / "out").rejects == {}
    assert {(row[0], row[3]) for row in accepted(tmp_path / "out")} == {(f"User:CN={name}", name) for name in names}


def test_csv_files_with_different_headers(spark, tmp_path):
    (tmp_path / "a.csv").write_text("principal,host,operation,resourceType,resourceName\n")
    (tmp_path / "b.csv").write_text(
        "host,principal,operation,resourceType,resourceName\n10.0.0.1,User:a,READ,TOPIC,t\n"
    )
    with pytest.raises(ConfigError, match=r"[ab]\.csv"):
        write(ingest(spark, tmp_path, "csv"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_missing_and_unknown_columns(spark, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"user": ["User:a"]}), path)
    with pytest.raises(ConfigError, match="no column 'principal' in the table, which has user"):
        ingest(spark, path, "parquet")
    with pytest.raises(ConfigError, match="no column 'who' in the table"):
        ingest(spark, path, "parquet", columns={"principal": "who"})
    with pytest.raises(ConfigError, match="no column 'user' in the table of accesses: expected one of principal, host"):
        ingest(spark, path, "parquet", columns={"user": "principal"})
