"""Audit events in JSON lines are read by Spark and without it alike, whatever the lines hold."""

import json
from collections import Counter
from datetime import UTC

from aclog.authorizer.access_reject import Reason
from aclog.pipeline.accesses import ingest
from tests.usage.accesses.test_events import EVENT, key, told, write

HOSTILE = [
    *(EVENT | {"operation": name} for name in ("AlterConfigs", "alter_configs", "FLY", "", None, 3)),
    *(EVENT | {"resourceType": name} for name in ("TransactionalId", "transactional_id", "SHOE", "")),
    *(EVENT | {"patternType": name} for name in ("literal", "PREFIXED", "", None, 5)),
    *(EVENT | {"result": name} for name in ("Allowed", "MAYBE", "", None, True)),
    *(EVENT | {"timestamp": time} for time in (None, "2026-11-21T10:00:00Z", 1 << 60, 1.5, True, -1, 0)),
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


def test_audit_events_are_read_as_spark_reads_them(spark, tmp_path):
    path = write(tmp_path / "events.jsonl", [EVENT, *HOSTILE])
    path.write_text(path.read_text() + "\n".join(ODD) + "\n")
    path.write_bytes(path.read_bytes() + json.dumps(EVENT).encode().replace(b"User:a", b"User:\xff") + b"\n")
    ingested = ingest(spark, path, "events-jsonl")
    rows = [row.asDict() | {"timestamp": row.timestamp.astimezone(UTC)} for row in ingested.accesses.collect()]
    rejects = Counter(Reason(row.reason) for row in ingested.rejects.collect())
    ours, ours_rejects = told(path)
    assert Counter(map(key, ours)) == Counter(map(key, rows))
    assert ours_rejects == rejects
    assert len(rows) + rejects.total() == len(HOSTILE) + len(ODD)  # two of ODD are blank, two are not in them
