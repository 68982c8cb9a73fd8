"""The input of jobs: Parquet and JSON lines; unreadable lines are kept and marked."""

import gzip
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import ingest, read_accesses, write
from aclog.pipeline.accesses.kafka_log import ACCESS_COLUMNS
from tests.support.spark.access_logs import audit_text

FIVE = {"principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}
NAIVE = datetime(2026, 11, 21, 10, 0, 0, 123000)  # noqa: DTZ001  # what Spark gives for UTC


def test_json_lines_with_further_keys(spark, tmp_path):
    good = [
        FIVE | {"timestamp": 1_795_255_200_123, "bytes": 7, "tags": ["x"], "note": "n"},
        FIVE | {"timestamp": "2026-11-21T10:00:00.123Z", "bytes": 8.5},
        FIVE | {"timestamp": None},
    ]
    bad = [
        "not json",
        json.dumps(FIVE | {"resourceName": 5}),
        json.dumps({"principal": "User:a"}),
        json.dumps(FIVE | {"timestamp": "soon"}),
        json.dumps(FIVE) + " {}",
        "[]",
    ]
    path = tmp_path / "requests.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join([*map(json.dumps, good), "", *bad]).encode()))
    frame = read_accesses(spark, path)
    rows = [row.asDict() for row in frame.collect()]
    assert sorted(row["_malformed"] for row in rows if row["_malformed"]) == sorted(bad)
    for row in rows:
        if row["_malformed"]:
            assert {value for key, value in row.items() if key != "_malformed"} == {None}
    read = [row for row in rows if not row["_malformed"]]
    assert [{key: row[key] for key in FIVE} for row in read] == [FIVE] * 3
    assert [row["timestamp"] for row in read] == [NAIVE, NAIVE, None]
    assert [None if row["bytes"] is None else float(row["bytes"]) for row in read] == [7, 8.5, None]
    assert [(row["tags"], row["note"]) for row in read] == [('["x"]', "n"), (None, None), (None, None)]


def test_requests_with_required_columns_only(spark, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(FIVE) + "\n")
    frame = read_accesses(spark, path)
    assert sorted(frame.columns) == sorted([*FIVE, "_malformed"])
    assert frame.first().asDict() == FIVE | {"_malformed": None}


def test_the_output_of_ingest(spark, tmp_path):
    log = tmp_path / "kafka-authorizer.log"
    log.write_text(f"{audit_text()}\nbad\n")
    write(ingest(spark, log, "kafka-log"), tmp_path / "out")
    for place in (tmp_path / "out", tmp_path / "out" / "accesses"):
        frame = read_accesses(spark, place)
        assert frame.columns == [*ACCESS_COLUMNS, "_malformed"]
        (row,) = frame.collect()
        assert (row.principal, row.timestamp, row.loggedRule, row["_malformed"]) == (
            "User:a",
            NAIVE,
            "DefaultDeny",
            None,
        )


def test_parquet_from_elsewhere(spark, tmp_path):
    times = pa.array(["2026-11-21T10:00:00.123Z", "soon", None])
    columns = {name: pa.array([value] * 3) for name, value in FIVE.items()} | {"timestamp": times, "id": [1, 2, 3]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    rows = read_accesses(spark, tmp_path).collect()
    assert [(row.id, row.timestamp, row.principal) for row in rows] == [
        (1, NAIVE, "User:a"),
        (None, None, None),
        (3, None, "User:a"),
    ]
    assert json.loads(rows[1]["_malformed"]) == FIVE | {"timestamp": "soon", "id": 2}
    assert datetime.fromtimestamp(1_795_255_200.123, UTC).replace(tzinfo=None) == NAIVE


def test_bad_places(spark, tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere: no such file or directory"):
        read_accesses(spark, tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="no files to read"):
        read_accesses(spark, tmp_path)
    pq.write_table(pa.table({"user": ["x"]}), tmp_path / "x.parquet")
    with pytest.raises(ConfigError, match="no column 'principal'"):
        read_accesses(spark, tmp_path)


def test_keys_that_differ_in_case_only(spark, tmp_path):
    (tmp_path / "r.jsonl").write_text(json.dumps(FIVE | {"Host": "x"}))
    with pytest.raises(ConfigError, match="keys that differ in case only: Host, host"):
        read_accesses(spark, tmp_path / "r.jsonl")
