"""Audit events of aclog's authorizer, in Avro and JSON lines, become the same rows as Kafka's log lines."""

import io
import json
import logging
from datetime import datetime
from uuid import UUID

import fastavro
import pyarrow.parquet as pq
import pytest

from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import TRACE, audit_event, audit_level, audit_line
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import ingest, write
from aclog.pipeline.accesses.kafka_log import ACCESS_COLUMNS, event_schema
from aclog.server.audit_log import AuditLog, JsonLines
from aclog.server.node_log import configure_logging

ACLS = [
    StandardAclWithId(
        id=UUID(int=7),
        acl=StandardAcl(
            resource_type=ResourceType.TOPIC,
            resource_name="ord",
            pattern_type=PatternType.PREFIXED,
            principal="User:alice",
            host="*",
            operation=AclOperation.ALL,
            permission_type=3,
        ),
    )
]
ASKED = [
    ("User:alice", "orders", True),
    ("User:bob", 'pay"roll\n', True),
    ("User:admin", "x", True),
    ("User:bob", "q", False),
]
LEVELS = {TRACE: "TRACE", logging.DEBUG: "DEBUG", logging.INFO: "INFO"}


def authorizer():
    ours = StandardAuthorizer()
    ours.configure({"super.users": "User:admin"})
    ours.load(AclsImage.from_acls(ACLS))
    ours.complete_initial_load()
    return ours


def asked():
    for number, (principal, name, loud) in enumerate(ASKED):
        yield (
            RequestContext(principal=principal, host="10.0.0.1", request_type=1),
            Action(
                operation=AclOperation.READ,
                resource_pattern=ResourcePattern(resource_type=ResourceType.TOPIC, name=name),
                resource_reference_count=number + 1,
                log_if_allowed=loud,
                log_if_denied=loud,
            ),
        )


def events():
    ours = authorizer()
    for number, (context, action) in enumerate(asked()):
        decision = ours.decide(context, action)
        event = audit_event(context, action, decision, timestamp=1_795_255_200_123 + number)
        line = audit_line(context, action, decision)
        yield event, line, LEVELS[audit_level(action, decision.result)]


def wanted():
    for event, line, level in events():
        yield (
            *(event.principal, event.host, event.operation, event.resource_type, event.resource_name),
            *(event.timestamp, "LITERAL", event.result, line.partition(" based on rule ")[2], "Fetch"),
            *(event.resource_reference_count, level),
        )


def got(out):
    rows = pq.read_table(out / "accesses").sort_by("timestamp")
    assert rows.column_names == list(ACCESS_COLUMNS)
    return [
        tuple(round(value.timestamp() * 1000) if isinstance(value, datetime) else value for value in row.values())
        for row in rows.to_pylist()
    ]


def write_avro(path, rows, schema):
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec="deflate")


def test_events_in_avro(spark, tmp_path):
    write_avro(tmp_path / "events.avro", [event.to_dict() for event, *_ in events()], json.loads(event_schema()))
    counts = write(ingest(spark, tmp_path, "events"), tmp_path / "out")
    assert got(tmp_path / "out") == list(wanted())
    assert (counts.accesses, counts.rejects, counts.blanks) == (len(ASKED), {}, 0)


def test_events_of_older_and_newer_writers(spark, tmp_path):
    schema = json.loads(event_schema())
    row = next(event for event, *_ in events()).to_dict()
    older = {**schema, "fields": [field for field in schema["fields"] if "default" not in field]}
    newer = {**schema, "fields": [*schema["fields"], {"name": "zone", "type": "string", "default": ""}]}
    write_avro(tmp_path / "older.avro", [row], older)
    write_avro(tmp_path / "newer.avro", [row | {"zone": "a", "operation": "FLY"}, row], newer)
    ingested = ingest(spark, tmp_path, "events")
    assert sorted((entry.request or "", entry.resourceName) for entry in ingested.accesses.collect()) == [
        ("", "orders"),
        ("Fetch", "orders"),
    ]
    (reject,) = ingested.rejects.collect()
    assert (reject.reason, json.loads(reject.line)["operation"]) == ("BAD_OPERATION", "FLY")
    assert reject.file.endswith("newer.avro")


def test_a_file_that_is_not_avro_is_named_in_the_error(spark, tmp_path):
    write_avro(tmp_path / "good.avro", [event.to_dict() for event, *_ in events()], json.loads(event_schema()))
    (tmp_path / "bad.avro").write_text("principal,host\n")
    with pytest.raises(ConfigError, match=r"bad\.avro: .*Not an Avro data file"):
        write(ingest(spark, tmp_path, "events"), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.avro", "good.avro"]


@pytest.fixture
def restored():
    loggers = [logging.getLogger()]
    before = [(logger, logger.level, logger.handlers[:], logger.propagate) for logger in loggers]
    yield
    logging.captureWarnings(capture=False)
    for logger, level, handlers, propagate in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.propagate = propagate


@pytest.mark.usefixtures("restored")
def test_events_in_the_json_log_of_a_node(spark, tmp_path):
    out, ours = io.StringIO(), authorizer()
    configure_logging(node_id=1, json=True, stream=out)
    logging.getLogger("aclog.server.network").warning("slow")
    times = iter(range(len(ASKED)))
    clock = lambda: (1_795_255_200_123 + next(times) + 0.5) / 1000  # noqa: E731
    with AuditLog(out, "TRACE", format=JsonLines(1).line, clock=clock) as log:
        ours.set_audit(log)
        for context, action in asked():
            ours.authorize(context, [action])
    path = tmp_path / "node.log"
    path.write_text(out.getvalue() + "Traceback:\n\n")
    counts = write(ingest(spark, path, "events-jsonl"), tmp_path / "out")
    assert got(tmp_path / "out") == list(wanted())
    assert (counts.rejects, counts.blanks) == ({"MALFORMED": 1, "OTHER_LOGGER": 1}, 1)


def test_bare_events_as_json_lines(spark, tmp_path):
    rows = [event.to_dict() for event, *_ in events()]
    bad = [
        {key: value for key, value in rows[0].items() if key != "timestamp"},
        rows[0] | {"result": "MAYBE"},
        {key: value for key, value in rows[0].items() if key != "result"},
        {key: value for key, value in rows[0].items() if key != "host"},
        rows[0] | {"timestamp": "today"},
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, *bad]))
    counts = write(ingest(spark, path, "events-jsonl"), tmp_path / "out")
    assert got(tmp_path / "out") == list(wanted())
    assert counts.rejects == {"BAD_DECISION": 2, "BAD_TIMESTAMP": 2, "MISSING_VALUE": 1}
