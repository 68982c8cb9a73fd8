"""Decided accesses as OCSF and CloudEvents: what these require is there, in every event."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pyspark.sql import functions as F

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import Settings
from aclog.cli.spark.commands import Policy, authorize_command
from aclog.cli.spark.flags import DecidedFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline.authorize import events
from aclog.pipeline.event_form import EventForm
from aclog.usage.decisions.intervals import Rules
from tests.support.builders.acls import acl
from tests.support.builders.images import with_ids

TIME = "2026-11-21T10:00:00.123Z"
OPERATIONS = [each.name for each in AclOperation if each.name not in {"UNKNOWN", "ANY"}]
# What API Activity (6003) of OCSF 1.6.0 requires, and of the objects that it holds; one of a tuple has to be there.
REQUIRED = {
    (): ("activity_id", "category_uid", "class_uid", "metadata", "severity_id", "time", "type_uid"),
    ("actor",): (("user", "process", "session", "app_name"), "user"),
    ("actor", "user"): (("name", "uid", "account"),),
    ("actor", "authorizations", 0, "policy"): (("name", "uid", "type"),),
    ("api",): ("operation",),
    ("api", "service"): (("name", "uid"),),
    ("src_endpoint",): (("ip", "uid", "name", "hostname"),),
    ("resources", 0): (("name", "uid"),),
    ("metadata",): ("version", "product"),
    ("metadata", "product"): ("vendor_name", ("name", "uid")),
}


@pytest.fixture
def exported(spark, tmp_path):
    """Decide requests by one ACL, and return the exit code and the events."""

    def export(requests, **flags):
        path, out = tmp_path / "asked.jsonl", tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        path.write_text("".join(json.dumps(request) + "\n" for request in requests))
        image = AclsImage.from_acls(with_ids([acl("orders", "User:alice")]))
        policy = Policy(rules=Rules.of_image(image), settings=Settings())
        code = authorize_command(spark, str(path), out, policy, DecidedFlags(**flags))
        lines = [line for part in sorted((out / "events").glob("*.json")) for line in part.read_text().splitlines()]
        return code, list(map(json.loads, lines)), spark.read.parquet(str(out / "decided")).count()

    return export


def request(operation="READ", name="orders", **other):
    asked = {"principal": "User:alice", "host": "10.0.0.1", "operation": operation, "resourceType": "TOPIC"}
    return {**asked, "resourceName": name, "timestamp": TIME, **other}


def found(event, path):
    for step in path:
        event = event[step]
    return event


def test_ocsf(exported, capsys):
    asked = [request(operation) for operation in OPERATIONS] + [request("FLY"), request(name="other", request="Fetch")]
    code, events, decided = exported(asked, as_=EventForm.OCSF)
    assert (code, decided, len(events)) == (2, len(asked), len(asked) - 1)
    for event in events:
        for path, names in REQUIRED.items():
            there = found(event, path)
            for name in names:
                assert any(there.get(each) for each in ((name,) if isinstance(name, str) else name)), (path, name)
        assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
        assert event["class_uid"] // 1000 == event["category_uid"] == 6
        assert event["time"] == int(datetime(2026, 11, 21, 10, tzinfo=UTC).timestamp() * 1000) + 123
        assert (event["status_id"] == 1) is (event["status"] == "Success")
    by_operation = {event["api"]["operation"]: event for event in events[:-1]}
    assert {name: by_operation[name]["activity_id"] for name in ("CREATE", "READ", "ALTER", "DELETE")} == {
        "CREATE": 1,
        "READ": 2,
        "ALTER": 3,
        "DELETE": 4,
    }
    assert by_operation["CLUSTER_ACTION"]["activity_name"] == "CLUSTER_ACTION"
    allowed, denied = by_operation["READ"], events[-1]
    assert allowed["actor"]["user"] == {"type": "User", "name": "alice", "uid": "User:alice"}
    (decision,) = allowed["actor"]["authorizations"]
    assert (decision["decision"], decision["policy"]["name"][:12]) == ("Allowed", "MatchingAcl(")
    assert (denied["status"], denied["actor"]["authorizations"][0]) == (
        "Failure",
        {"decision": "Denied", "policy": {"name": "DefaultDeny"}},
    )
    assert denied["unmapped"] == {"request": "Fetch"}


def test_cloudevents_of_denials(exported):
    asked = [request(), request(name="other"), {**request(name="other"), "timestamp": None}]
    code, events, _ = exported(asked, as_=EventForm.CLOUDEVENTS, only="denied", event_source="//kafka.example/prod")
    assert code == 0
    assert [event.get("time") for event in events] == ["2026-11-21T10:00:00.123000Z", None]
    assert len({UUID(event.pop("id")) for event in events}) == 2
    event = events[0]
    assert event == {
        "specversion": "1.0",
        "source": "//kafka.example/prod",
        "type": "aclog.access.denied",
        "subject": "TOPIC/other",
        "time": "2026-11-21T10:00:00.123000Z",
        "datacontenttype": "application/json",
        "data": {
            "principal": "User:alice",
            "host": "10.0.0.1",
            "operation": "READ",
            "resourceType": "TOPIC",
            "resourceName": "other",
            "decision": "DENIED",
            "rule": "DefaultDeny",
        },
    }


def test_ocsf_needs_times(exported, tmp_path):
    untimed = [{**request(), "timestamp": None}, request()]
    with pytest.raises(ConfigError, match="1 of the requests has no timestamp, and an OCSF event must have a time"):
        exported(untimed, as_=EventForm.OCSF)
    del untimed[0]["timestamp"]
    with pytest.raises(ConfigError, match="no column 'timestamp': an OCSF event must have a time"):
        exported(untimed[:1], as_=EventForm.OCSF)
    assert [path.name for path in tmp_path.iterdir()] == ["asked.jsonl"]


def test_times_are_utc_in_a_session_of_any_zone(spark):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        # 02:30 on this day is missing in Berlin; and a row without a time
        given = [{**request(), "decision": "DENIED", "rule": "", "rule_id": "", "at": at} for at in (1774751400, None)]
        decided = spark.createDataFrame(given).drop("timestamp").withColumn("timestamp", F.timestamp_seconds("at"))
        found = [row["time"] for row in events(decided, EventForm.CLOUDEVENTS, source="/x").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert found == ["2026-03-29T02:30:00.000000Z", None]
