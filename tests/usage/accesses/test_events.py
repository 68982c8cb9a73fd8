"""Events as accesses: aclog's own as Spark reads them, Confluent's and Redpanda's as their documentation shows them."""

import gzip
import json
from collections import Counter
from datetime import UTC, datetime

import fastavro
import pytest

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.kafka_log import event_schema
from aclog.usage.accesses.access_log import AvroPart, find_accesses, only_new, read_part

MILLIS = 1_795_255_200_123
TIME = datetime(2026, 11, 21, 10, 0, 0, 123_000, tzinfo=UTC)
EVENT = {
    "timestamp": MILLIS, "principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC",
    "resourceName": "t", "patternType": "LITERAL", "result": "DENIED", "basis": "DefaultDeny", "rule": None,
}  # fmt: skip


def told(*paths) -> tuple[list[dict], Counter]:
    rows, rejects = [], Counter()
    for part in find_accesses([str(path) for path in paths], UTC).parts:
        for batch in read_part(part):
            rows += batch.rows.to_pylist()
            rejects += batch.rejects
    return rows, rejects


def write(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def key(row):
    names = ("principal", "host", "operation", "resourceType", "resourceName", "timestamp", "loggedDecision")
    return tuple(str(row[name]) for name in names)


def test_audit_events_in_avro(tmp_path):
    schema = json.loads(event_schema())
    older = {**schema, "fields": [field for field in schema["fields"] if "default" not in field]}
    for name, written in (("new.avro", schema), ("old.avro", older)):
        with (tmp_path / name).open("wb") as file:
            fastavro.writer(file, written, [EVENT, EVENT | {"operation": "FLY"}], codec="deflate")
        (row,), rejects = told(tmp_path / name)
        assert (row["timestamp"], row["loggedDecision"], rejects) == (TIME, "DENIED", {Reason.BAD_OPERATION: 1})
    found = find_accesses([str(tmp_path)], UTC)
    new = only_new(found, frozenset(), lambda done, total: None)
    assert [type(part) for part in new.input.parts] == [AvroPart, AvroPart]
    known = {part.content.key for part in new.contents}
    (tmp_path / "copy.avro").write_bytes((tmp_path / "new.avro").read_bytes())
    assert not only_new(find_accesses([str(tmp_path)], UTC), known, lambda done, total: None).input.parts
    data = (tmp_path / "new.avro").read_bytes()
    with (tmp_path / "new.avro").open("a+b") as file:  # what is appended later is not in what was found
        fastavro.writer(file, schema, [EVENT] * 3)
    parts = [part for part in found.parts if part.file.path.endswith("new.avro")]
    assert [len(batch.rows) for part in parts for batch in read_part(part)] == [1]
    assert len(told(tmp_path / "new.avro")[0]) == 4
    (tmp_path / "new.avro").write_bytes(data[:-20])
    with pytest.raises(ConfigError, match=r"new\.avro: not a complete Avro file of audit events"):
        told(tmp_path / "new.avro")


OCSF = {
    "time": MILLIS, "activity_id": 2, "class_uid": 6003, "status_id": 1, "metadata": {"product": {"name": "aclog"}},
    "actor": {"user": {"type": "User", "name": "a", "uid": "User:a"}}, "src_endpoint": {"ip": "10.0.0.1"},
    "api": {"operation": "READ", "service": {"name": "Kafka"}}, "resources": [{"name": "t", "type": "TOPIC"}],
}  # fmt: skip
CLOUD = {
    "specversion": "1.0", "id": "1", "source": "/aclog", "type": "aclog.access.denied", "subject": "TOPIC/t",
    "time": "2026-11-21T10:00:00.123000Z", "data": {**EVENT, "decision": "DENIED", "rule": "DefaultDeny"},
}  # fmt: skip


def test_what_spark_authorize_exports(tmp_path):
    (row,), rejects = told(write(tmp_path / "ocsf", [OCSF, OCSF | {"class_uid": 3002}]))
    assert rejects == {Reason.OTHER_MESSAGE: 1}
    assert key(row) == ("User:a", "10.0.0.1", "READ", "TOPIC", "t", str(TIME), "ALLOWED")
    (row,), rejects = told(write(tmp_path / "cloud", [CLOUD, CLOUD | {"type": "com.other"}]))
    assert rejects == {Reason.OTHER_MESSAGE: 1}
    assert key(row) == ("User:a", "10.0.0.1", "READ", "TOPIC", "t", str(TIME), "DENIED")


def confluent(asked=None, **data):
    given = {"granted": False, "operation": "Write", "resourceType": "Topic", "resourceName": "t"} | (asked or {})
    return {
        "specversion": "1.0", "type": "io.confluent.kafka.server/authorization", "id": "1",
        "source": "crn://confluent.cloud/kafka=lkc-a1b2c", "time": "2026-11-21T10:00:00.123Z",
        "data": {
            "methodName": "kafka.Produce", "authenticationInfo": {"principal": "User:sa-1"},
            "authorizationInfo": {**given, "patternType": "LITERAL"},
            "requestMetadata": {"clientAddress": [{"ip": "10.0.0.1"}]}, **data,
        },
    }  # fmt: skip


def test_confluents_audit_log(tmp_path):
    account = {"principal": {"confluentServiceAccount": {"resourceId": "sa-1"}}}
    same = [
        confluent(),
        confluent(authenticationInfo=account),
        confluent(requestMetadata={"client_address": "/10.0.0.1"}),
        confluent(requestMetadata={}, clientAddress=[{"ip": "10.0.0.1"}]),
    ]
    others = [
        confluent(methodName="mds.Authorize"),
        confluent() | {"type": "io.confluent.kafka.server/authentication"},
        confluent({"operation": "CreateCloudCluster"}),
        confluent({"resourceType": "Environment"}),
        confluent(requestMetadata={}),
    ]
    rows, rejects = told(write(tmp_path / "log", [*same, *others]))
    assert set(map(key, rows)) == {("User:sa-1", "10.0.0.1", "WRITE", "TOPIC", "t", str(TIME), "DENIED")}
    assert len(rows) == len(same)
    assert rejects == {
        Reason.OTHER_MESSAGE: 2,
        Reason.BAD_OPERATION: 1,
        Reason.BAD_RESOURCE_TYPE: 1,
        Reason.MISSING_VALUE: 1,
    }
    allowed = write(tmp_path / "allowed", [confluent({"granted": True})])
    assert told(allowed)[0][0]["loggedDecision"] == "ALLOWED"


def redpanda(request, activity, *resources, **other):
    return {
        "category_uid": 6, "class_uid": 6003, "time": MILLIS, "activity_id": activity, "status_id": 2,
        "metadata": {"product": {"name": "Redpanda", "uid": "2", "vendor_name": "Redpanda Data, Inc."}},
        "api": {"operation": request, "service": {"name": "kafka rpc protocol"}},
        "actor": {"user": {"name": "a", "type_id": 1}}, "src_endpoint": {"ip": "10.0.0.1", "port": 5},
        "resources": [{"type": kind, "name": name} for kind, name in resources], **other,
    }  # fmt: skip


def test_redpandas_audit_log(tmp_path):
    events = [
        redpanda("fetch", 2, ("topic", "t"), ("topic", "u")),
        redpanda("metadata", 2, ("topic", "t")),
        redpanda("init_producer_id", 3, ("transactional_id", "x"), count=3, start_time=MILLIS, end_time=MILLIS + 400),
        redpanda("offset_commit", 2, ("group", "g")),
        redpanda("fetch", 3, ("topic", "t")),  # says that it was an update
        redpanda("brew_coffee", 2, ("topic", "t")),
        redpanda("fetch", 2),
        redpanda("fetch", 2, ("topic", "t"), count=0),
        redpanda("GET /v1/brokers", 2, ("topic", "t"), api={"operation": "x", "service": {"name": "admin"}}),
    ]
    rows, rejects = told(write(tmp_path / "log", events))
    assert [(row["operation"], row["resourceType"], row["resourceName"]) for row in rows] == [
        ("READ", "TOPIC", "t"),
        ("READ", "TOPIC", "u"),
        ("DESCRIBE", "TOPIC", "t"),
        *[("WRITE", "TRANSACTIONAL_ID", "x")] * 3,
        ("READ", "GROUP", "g"),
    ]
    assert {(row["principal"], row["broker"], row["loggedDecision"]) for row in rows} == {("User:a", "2", "DENIED")}
    assert rejects == {Reason.BAD_OPERATION: 2, Reason.OTHER_MESSAGE: 2, Reason.MALFORMED: 1}


def test_forms_are_recognised_in_packed_files_and_among_others(tmp_path):
    data = b"".join(json.dumps(each).encode() + b"\n" for each in (CLOUD, confluent(), CLOUD))
    (tmp_path / "events.gz").write_bytes(gzip.compress(data))
    write(tmp_path / "ocsf", [OCSF, redpanda("fetch", 2, ("topic", "t"))])
    write(tmp_path / "node.log", [{"logger": "aclog", "message": "hello"}, {"logger": "audit", "audit": EVENT}])
    rows, rejects = told(tmp_path)
    assert (len(rows), rejects) == (6, {Reason.OTHER_LOGGER: 1})


def test_accesses_with_more_keys_are_no_events(tmp_path):
    access = {name: EVENT[name] for name in ("principal", "host", "operation", "resourceType", "resourceName")}
    for more in ({"logger": "x"}, {"audit": 1}, {"class_uid": 2}):
        path = write(tmp_path / "lines", [access | {"timestamp": MILLIS} | more])
        assert [key(row)[:5] for row in told(path)[0]] == [tuple(access.values())]
