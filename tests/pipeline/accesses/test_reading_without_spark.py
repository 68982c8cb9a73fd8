"""Access logs are read by Spark and without it alike, whatever their lines hold."""

import json
from collections import Counter
from datetime import UTC
from pathlib import Path
from random import Random

from aclog.authorizer.audit import Reason
from aclog.pipeline.accesses import ingest
from tests.support.spark.access_logs import audit_text
from tests.usage.accesses.test_events import EVENT, key, told, write

OLDER = Path(__file__).parent / "data"

HOSTILE = [
    *(EVENT | {"operation": name} for name in ("AlterConfigs", "alter_configs", "FLY", "", None, 3)),
    *(EVENT | {"resourceType": name} for name in ("TransactionalId", "transactional_id", "SHOE", "")),
    *(EVENT | {"patternType": name} for name in ("literal", "PREFIXED", "", None, 5)),
    *(EVENT | {"result": name} for name in ("Allowed", "MAYBE", "", None, True)),
    *(EVENT | {"timestamp": time} for time in (None, "2026-11-21T10:00:00Z", 1 << 60, 1.5, True, -1, 0, 1_795_255_200)),
    *(EVENT | {"principal": name} for name in ("", None, "no colon", "User:\u2028é", 7)),
    *(EVENT | {"resourceName": name} for name in ("", None, 'a"b\n')),
    EVENT | {"host": ""},
    EVENT | {"timestamp": None, "operation": "FLY"},
    EVENT | {"result": None, "timestamp": None},
    {"logger": "x", "audit": EVENT},
    {"logger": "x", "message": "hello"},
    {"logger": None, **EVENT},
    {"audit": None, **EVENT},
    {"audit": [EVENT]},
    {},
]
ODD = ["", " ", "[]", "not json", "{", json.dumps(EVENT) + " {}", '{"result":"DENIED","result":"DENIED"}', "1"]


def by_spark(spark, path, kind):
    ingested = ingest(spark, path, kind)
    rows = [row.asDict() | {"timestamp": row.timestamp.astimezone(UTC)} for row in ingested.accesses.collect()]
    return Counter(map(key, rows)), Counter(Reason(row.reason) for row in ingested.rejects.collect())


def without_spark(path):
    rows, rejects = told(path)
    return Counter(map(key, rows)), rejects


def test_audit_lines_of_every_kafka_are_read_as_spark_reads_them(spark, tmp_path):
    whole = [audit_text(), *(line for path in sorted(OLDER.glob("*.log")) for line in path.read_text().splitlines())]
    random, lines = Random(20), list(whole)
    for line in random.choices(whole, k=300):  # torn, two in one, with parts of another
        cut, other = random.randrange(len(line)), random.choice(whole)
        lines += random.choice(([line[:cut]], [line[:cut] + other], [line[cut:]], [line.replace(" is ", other[24:])]))
    lines += ["", "  ", "java.lang.Error", audit_text(time="2026-13-21 10:00:00,123"), audit_text(name="\u2028") + "\r"]
    lines += [audit_text(time=f"2026-11-21{between}10:00:00{point}123") for between in " T" for point in ",."]
    path = tmp_path / "kafka-authorizer.log"
    path.write_bytes("\n".join(lines).encode() + b"\n" + audit_text().encode().replace(b"User:a", b"User:\xff") + b"\n")
    rows, rejects = without_spark(path)
    assert (rows, rejects) == by_spark(spark, path, "kafka-log")
    assert len(rejects) >= 5


def test_audit_events_are_read_as_spark_reads_them(spark, tmp_path):
    path = write(tmp_path / "events.jsonl", [EVENT, *HOSTILE])
    path.write_text(path.read_text() + "\n".join(ODD) + "\n")
    path.write_bytes(path.read_bytes() + json.dumps(EVENT).encode().replace(b"User:a", b"User:\xff") + b"\n")
    rows, rejects = without_spark(path)
    assert (rows, rejects) == by_spark(spark, path, "events-jsonl")
    assert rows.total() + rejects.total() == len(HOSTILE) + len(ODD)  # two of ODD are blank, two are not in them
