"""Audit lines against those that a real Kafka 4.3.1 wrote."""

import io
import json
import re
from pathlib import Path
from uuid import UUID

import fastavro
import pytest

from aclog import authorizer
from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage, Basis, Decision
from aclog.authorizer.audit import (
    API_NAMES,
    DEBUG,
    INFO,
    TRACE,
    api_name,
    audit_event,
    audit_level,
    audit_line,
)
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from tests.support.models import golden
from tests.support.models.reference import ReferenceAuthorizer

EXPECTED = Path(__file__).parent.parent / "data" / "kafka-4.3.1-small" / "expected"
LOGS = ["authorizer", "authorizer-allow-everyone", "authorizer-default-allow"]
LINE = re.compile(
    r"\[[^]]*\] (?P<level>[A-Z]+) (?P<line>Principal = (?P<principal>.*?) is (?P<answer>Allowed|Denied) "
    r"operation = (?P<operation>[A-Z_]+) from host = (?P<host>\S+) on resource = (?P<type>\w+):(?P<pattern>[A-Z]+):"
    r"(?P<name>.*) for request = (?P<request>\w+) with resourceRefCount = (?P<count>\d+) based on rule (?P<rule>.*)) "
    r"\(kafka\.authorizer\.logger\)"
)
RULE = re.compile(
    r"MatchingAcl\(acl=StandardAcl\[resourceType=(?P<resourceType>\w+), resourceName=(?P<resourceName>.*), "
    r"patternType=(?P<patternType>\w+), principal=(?P<principal>.*), host=(?P<host>.*), "
    r"operation=(?P<operation>\w+), permissionType=(?P<permissionType>\w+)\]\)"
)
TYPES = {"".join(word.capitalize() for word in kind.name.split("_")): kind for kind in ResourceType}


def logged(name):
    """Yield every line of a log as (level, text, context, action, decision)."""
    for line in (EXPECTED / f"{name}.log").read_text(encoding="utf-8").splitlines():
        found = LINE.fullmatch(line)
        assert found, line
        yield found["level"], found["line"], *parsed(found)


def parsed(found):
    allowed = found["answer"] == "Allowed"
    rule = RULE.fullmatch(found["rule"])
    context = RequestContext(
        principal=found["principal"], host=found["host"], request_type=API_NAMES.index(found["request"])
    )
    pattern = ResourcePattern(
        resource_type=TYPES[found["type"]], name=found["name"], pattern_type=PatternType[found["pattern"]]
    )
    action = Action(
        operation=AclOperation[found["operation"]],
        resource_pattern=pattern,
        resource_reference_count=int(found["count"]),
        log_if_allowed=found["level"] != "TRACE",
        log_if_denied=found["level"] != "TRACE",
    )
    decision = Decision(
        result=AuthorizationResult.ALLOWED if allowed else AuthorizationResult.DENIED,
        basis=Basis.MATCHING_ACL if rule else Basis(found["rule"]),
        rule=StandardAclWithId(id=None, acl=golden.acl_of(rule.groupdict())) if rule else None,
    )
    return context, action, decision


@pytest.mark.parametrize("name", LOGS)
def test_every_line_of_kafka_comes_out_again(name):
    levels = {"TRACE": TRACE, "DEBUG": DEBUG, "INFO": INFO}
    count = 0
    for level, line, context, action, decision in logged(name):
        assert audit_line(context, action, decision) == line
        assert audit_level(action, decision.result) == levels[level]
        count += 1
    assert count > 300


@pytest.mark.parametrize("level", ["INFO", "DEBUG", "TRACE"])
def test_kafka_wrote_lines_of_each_level(level):
    assert any(seen == level for name in LOGS for seen, *_ in logged(name))


REPLAYED = {
    "authorizer": ("acls.jsonl", "false"),
    "authorizer-allow-everyone": ("acls.jsonl", "true"),
    "authorizer-default-allow": ("authorizer-default-allow-acls.jsonl", "true"),
}
"""The ACLs in force, and allow.everyone.if.no.acl.found, when each log was written."""


def rules_of(name):
    file, everyone = REPLAYED[name]
    lines = (EXPECTED / file).read_text(encoding="utf-8").splitlines()
    return [golden.acl_of(json.loads(line)) for line in lines], everyone


@pytest.mark.parametrize("name", LOGS)
def test_reference_gives_the_logged_decisions(name):
    acls, everyone = rules_of(name)
    reference = ReferenceAuthorizer(acls, frozenset({"User:admin"}), everyone == "true")
    for _, line, context, action, decision in logged(name):
        pattern = action.resource_pattern
        answer = reference.decide(
            context.principal, context.host, action.operation, pattern.resource_type, pattern.name
        )
        assert answer == (decision.result.value, decision.text), line


@pytest.mark.parametrize("name", LOGS)
def test_our_authorizer_writes_the_log_that_kafka_wrote(name):
    acls, everyone = rules_of(name)
    ours = StandardAuthorizer()
    ours.configure({"super.users": "User:admin", "allow.everyone.if.no.acl.found": everyone})
    ours.load(AclsImage.from_acls(StandardAclWithId(id=UUID(int=i), acl=acl) for i, acl in enumerate(acls, 2)))
    ours.complete_initial_load()
    lines = []
    ours.set_audit(lambda *decided: lines.append((audit_level(decided[1], decided[2].result), audit_line(*decided))))
    levels = {"TRACE": TRACE, "DEBUG": DEBUG, "INFO": INFO}
    expected = []
    for level, line, context, action, _ in logged(name):
        expected.append((levels[level], line))
        ours.authorize(context, [action])
    assert lines == expected


@pytest.mark.parametrize(
    ("request_name", "asked"),
    [
        ("Fetch", {"READ Topic"}),
        ("Produce", {"WRITE Topic", "WRITE TransactionalId"}),
        ("CreateTopics", {"CREATE Cluster", "CREATE Topic", "DESCRIBE_CONFIGS Topic"}),
        ("DeleteTopics", {"DELETE Cluster", "DELETE Topic", "DESCRIBE Topic"}),
        ("Metadata", {"DESCRIBE Topic", "CREATE Cluster", "CREATE Topic"}),
        ("ListOffsets", {"DESCRIBE Topic"}),
        ("FindCoordinator", {"DESCRIBE Group", "DESCRIBE TransactionalId"}),
        ("JoinGroup", {"READ Group"}),
        ("Heartbeat", {"READ Group"}),
        ("OffsetCommit", {"READ Group", "READ Topic"}),
        ("OffsetFetch", {"DESCRIBE Group", "DESCRIBE Topic"}),
        ("CreateAcls", {"ALTER Cluster"}),
        ("DeleteAcls", {"ALTER Cluster"}),
        ("DescribeAcls", {"DESCRIBE Cluster"}),
    ],
)
def test_what_a_real_kafka_asks_for_the_apis_of_kip_11(request_name, asked):
    """Its own APIs, with what it asked for each; our authorizer decides all of it alike, as the tests above show."""
    found = {
        f"{action.operation.name} {line.split(' on resource = ')[1].split(':')[0]}"
        for name in LOGS
        for _, line, context, action, _ in logged(name)
        if api_name(context.request_type) == request_name
    }
    assert found == asked


CONTEXT = RequestContext(principal="User:a", host="10.0.0.1", request_type=0, client_id="c", listener_name="L")
ACTION = Action(
    operation=AclOperation.READ,
    resource_pattern=ResourcePattern(resource_type=ResourceType.TRANSACTIONAL_ID, name="100%d"),
    resource_reference_count=3,
)
ACL = StandardAcl(
    resource_type=ResourceType.TRANSACTIONAL_ID,
    resource_name="",
    pattern_type=PatternType.PREFIXED,
    principal="User:*",
    host="*",
    operation=AclOperation.ALL,
    permission_type=2,
)
DENIED = Decision(
    result=AuthorizationResult.DENIED, basis=Basis.MATCHING_ACL, rule=StandardAclWithId(id=UUID(int=7), acl=ACL)
)
DEFAULT = Decision(result=AuthorizationResult.DENIED, basis=Basis.DEFAULT_DENY)
SCHEMA = json.loads((Path(authorizer.__file__).parent / "audit_event.avsc").read_text(encoding="utf-8"))


def test_the_line():
    assert audit_line(CONTEXT, ACTION, DEFAULT) == (
        "Principal = User:a is Denied operation = READ from host = 10.0.0.1 on resource = "
        "TransactionalId:LITERAL:100%d for request = Produce with resourceRefCount = 3 based on rule DefaultDeny"
    )


@pytest.mark.parametrize(
    ("key", "name"), [(0, "Produce"), (1, "Fetch"), (58, "Envelope"), (74, "ListConfigResources"), (94, API_NAMES[-1])]
)
def test_names_of_requests(key, name):
    assert api_name(key) == name
    assert API_NAMES[-3:] == (
        "DeleteShareGroupOffsets",
        "StreamsGroupTopologyDescriptionUpdate",
        "UnregisterController",
    )


@pytest.mark.parametrize("key", [-1, 95, 999])
def test_unknown_request(key):
    with pytest.raises(InvalidRequestError, match=f"^Unexpected api key: {key}$"):
        api_name(key)


@pytest.mark.parametrize("decision", [DENIED, DEFAULT], ids=["rule", "no rule"])
def test_event_is_a_datum_of_its_schema(decision):
    row = audit_event(CONTEXT, ACTION, decision, timestamp=1_795_229_186_963).to_dict()
    file = io.BytesIO()
    fastavro.writer(file, SCHEMA, [row], validator=True)
    (read,) = fastavro.reader(io.BytesIO(file.getvalue()))
    assert int(read.pop("timestamp").timestamp() * 1000) == row.pop("timestamp")
    assert read == row
    assert list(row) == [field["name"] for field in SCHEMA["fields"]][1:]


def test_a_later_reader_reads_events_of_an_earlier_writer():
    needed = [field for field in SCHEMA["fields"] if "default" not in field]
    row = audit_event(CONTEXT, ACTION, DENIED, timestamp=1).to_dict()
    earlier = {field["name"]: row[field["name"]] for field in needed}
    file = io.BytesIO()
    fastavro.schemaless_writer(file, {**SCHEMA, "fields": needed}, earlier)
    read = fastavro.schemaless_reader(io.BytesIO(file.getvalue()), {**SCHEMA, "fields": needed}, SCHEMA)
    assert (read["result"], read["rule"], read["request"], read["apiKey"]) == ("DENIED", None, "", -1)


def test_an_earlier_reader_reads_events_of_this_writer():
    file = io.BytesIO()
    row = audit_event(CONTEXT, ACTION, DENIED, timestamp=1).to_dict()
    fastavro.schemaless_writer(file, SCHEMA, row)
    earlier = {**SCHEMA, "fields": [field for field in SCHEMA["fields"] if "default" not in field]}
    read = fastavro.schemaless_reader(io.BytesIO(file.getvalue()), SCHEMA, earlier)
    assert (read["principal"], read["result"]) == ("User:a", "DENIED")


def test_every_field_of_the_schema_is_explained():
    fields = SCHEMA["fields"] + next(f for f in SCHEMA["fields"] if f["name"] == "rule")["type"][1]["fields"]
    assert all(field["doc"] for field in fields)
