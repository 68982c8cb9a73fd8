"""Files of tests of rules: what they say, and what is refused, with file and line."""

import json
from importlib.resources import files

import jsonschema
import pytest
import yaml

from aclog.metalog.errors import ConfigError
from aclog.sources.rule_tests import read_test_file

WHOLE = r"""
rules: rules.jsonl
super-users: [User:root, User:admin]
allow-everyone-if-no-acl-found: false
tests:
- name: billing
  principal: User:billing
  host: 10.0.0.9
  can:    {READ: [topic:bill.*, group:billing-*], WRITE: [topic:bill.out]}
  cannot: {ALL: [topic:pii.*]}
  intents: {produce: [topic:bill.out], transact: {topic: bill.out, id: bill-tx}}
  reason: {READ topic:bill.in: READ prefixed bill.}
- who_can: {READ topic:pii.card: [User:audit]}
- principal: User:*
  except: [User:audit]
  cannot: {read: 'topic:\*'}
- principal: [User:a, User:b]
  host: ["2001:db8::1", 10.0.0.1]
  intents: {stream: {application: app, inputs: in, outputs: [out.*], exactly-once: true}}
- name: all of it
  principal: User:c
  can_only:
    READ: [topic:a, {topic: b.*, except: [b.x*, b.y], from: [10.0.0.0/8, "2001:db8::/32"], not_from: 10.0.0.1}]
    ALL: cluster
- no_new_access: {than: {ref: "main:kafka", format: jsonl, topics: t}, except: [topic:sandbox.*]}
- same_as: {source: {log: prod, as-of: 30d ago}, accesses: 30d.parquet}
"""


def test_a_file_has_its_cases_in_order_each_with_its_line(tmp_path):
    path = tmp_path / "tests.yaml"
    path.write_text(WHOLE)
    found = read_test_file(str(path))
    assert (found.source.kind, found.source.value) == ("acls", str(tmp_path / "rules.jsonl"))
    assert (found.settings.super_users, found.settings.allow_everyone) == ("User:root;User:admin", False)
    assert [(each.origin.line, each.test, each.text) for each in found.cases[:10]] == [
        (9, "billing", "User:billing can READ topic:bill.* from 10.0.0.9"),
        (9, "billing", "User:billing can READ group:billing-* from 10.0.0.9"),
        (9, "billing", "User:billing can WRITE topic:bill.out from 10.0.0.9"),
        (10, "billing", "User:billing cannot ALL topic:pii.* from 10.0.0.9"),
        (11, "billing", "User:billing can produce topic:bill.out from 10.0.0.9"),
        (11, "billing", "User:billing can transact topic:bill.out, transactional-id:bill-tx from 10.0.0.9"),
        (12, "billing", "READ prefixed bill. decides that User:billing may READ topic:bill.in from 10.0.0.9"),
        (13, "line 13", "exactly User:audit can READ topic:pii.card"),
        (16, "line 14", r"everyone except User:audit cannot READ topic:\*"),
        (19, "line 17", "User:a can stream group:app, topic:in, topic:out.* from 2001:db8:0:0:0:0:0:1"),
    ]
    assert len(found.cases) == 16


TEST = "tests:\n- "


REFUSED = [
    ("", "no test"),
    ("tests: []", ":1: tests is empty"),
    ("rulez: x\ntests: []", ":1: .*'rulez': did you mean rules"),
    ("tests:\n" + "- {name: a, who_can: {READ topic:t: []}}\n" * 2, ":3: .*'a' .* line 2"),
    (TEST + "{pricipal: User:a}", ":2: .*'pricipal': did you mean principal"),
    (TEST + "name: x", ":2: a test expects nothing"),
    (TEST + "can: {READ: [topic:t]}", ":2: a test has no principal"),
    (TEST + "principal: alice\n  can: {READ: [topic:t]}", ":2: principal 'alice': expected TYPE:NAME"),
    (TEST + "principal: User:a\n  can: {READS: [topic:t]}", ":3: operation 'READS'"),
    (TEST + "principal: User:a\n  can: {READ: [t]}", ":3: 't' is not a resource"),
    (TEST + "principal: User:a\n  can: {READ: []}", ":3: can READ is an empty list"),
    (TEST + "principal: []\n  can: {READ: [topic:t]}", ":2: principal is an empty list"),
    (TEST + "principal: User:a\n  can: {READ: [topic: t]}", ":3: a resource is a mapping: expected topic:t, without"),
    (TEST + "principal: User:a\n  can: {READ: {topic: t}}", ":3: a resource is a mapping: expected topic:t, without"),
    (TEST + "principal: User:a\n  can: {REED: [topic:t]}", ":3: operation 'REED': did you mean READ"),
    (TEST + "principal: User:a\n  can: {}", ":3: can is empty"),
    (TEST + "principal: User:a\n  can:", ":3: can has no value"),
    (TEST + "principal: User:a\n  host: 10.0.0.0/8\n  can: {READ: [topic:t]}", ":3: '10.0.0.0/8' is not an IPv4"),
    (TEST + "principal: User:a\n  except: [User:b]\n  can: {READ: [topic:t]}", ":3: except: only with"),
    (TEST + "principal: User:a\n  who_can: {READ topic:t: []}", ":2: principal: only together"),
    (TEST + "who_can: {READ: []}", ":2: 'READ': expected OPERATION TYPE:NAME"),
    (TEST + "principal: User:a\n  intents: {produces: [topic:t]}", ":3: .*'produces': did you mean produce"),
    (TEST + "principal: User:a\n  intents: {produce: [group:t]}", ":3: intent produce: expected resources of type"),
    (TEST + "principal: User:a\n  intents: {stream: [group:t]}", ":3: the intent stream"),
    (TEST + "principal: User:a\n  intents: {transact: {topics: t}}", ":3: .*'topics': did you mean topic"),
    (TEST + "principal: User:a\n  reason: {READ topic:t*: READ literal t}", ":3: reason .* one operation on one"),
    (TEST + "principal: User:a\n  reason: {READ topic:t: READ t}", ":3: 'READ t' is not a rule"),
    (TEST + "principal: User:a\n  can_only: {READ: [{topics: t}]}", ":3: .*'topics': did you mean topic"),
    (TEST + "principal: User:a\n  can_only: {READ: [{topic: t, group: g}]}", ":3: expected one of"),
    (TEST + "principal: User:a\n  can_only: {READ: [{topic: t, from: h.prod}]}", ":3: 'h.prod'"),
    (TEST + "same_as: {accesses: a}", ":2: same_as has no source"),
    (TEST + "same_as: {source: a, access: b}", ":2: .*'access': did you mean accesses"),
    (TEST + "no_new_access: {than: {logs: b}}", ":2: .*'logs': did you mean log"),
    ("tests: &a [*a]", "is in"),
    ("tests:\n\t- x", ":2: not YAML"),
    ("a: 1\n---\nb: 2", "2 documents"),
    ("semantics: best\n" + TEST + "who_can: {READ topic:t: []}", ":1: semantics 'best'"),
    ("super-users: root\n" + TEST + "who_can: {READ topic:t: []}", ":1: .*root"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error"), REFUSED)
def test_what_is_not_understood_is_refused_with_its_line(tmp_path, text, error):
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=error) as found:
        read_test_file(str(path))
    assert str(found.value).startswith(str(path))


LINE = '{"principal":"User:a","host":"::1","operation":"READ","resourceType":"TOPIC","resourceName":"t"'


def test_lines_are_requests_with_decisions(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        f'{LINE},"decision":"DENIED"}}\n\n{LINE},"decision":"ALLOWED","rule":"READ literal t","name":"x"}}\n'
        f'{LINE[:-19]},"kind":"byResourceType","decision":"ERROR"}}\n'
    )
    cases = read_test_file(str(path)).cases
    assert [(each.test, each.origin.line, each.decision) for each in cases] == [
        ("line 1", 1, "DENIED"),
        ("x", 3, "ALLOWED"),
        ("line 4", 4, "ERROR"),
    ]
    assert cases[0].request.host == "0:0:0:0:0:0:0:1"
    assert cases[2].request.resource_name == ""


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (LINE + "}", "decision is missing"),
        (LINE + ',"decision":"MAYBE"}', "MAYBE"),
        (LINE + ',"decision":"DENIED","rul":1}', "did you mean rule"),
        (LINE.replace("::1", "localhost") + ',"decision":"DENIED"}', "localhost"),
        ("[]", "expected a JSON object"),
        ("", "no test"),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(tmp_path, line, error):
    path = tmp_path / "t.jsonl"
    path.write_text(line)
    with pytest.raises(ConfigError, match=error):
        read_test_file(str(path))


SCHEMA = json.loads(files("aclog.sources").joinpath("rule_tests.schema.json").read_text(encoding="utf-8"))
NOT_OF_SHAPE = (
    ".* line 2", "is in", "not YAML", "documents", "root", "only with", "only together", "one operation on one",
    "expected resources of type",
)  # fmt: skip
"""Of what a schema cannot say, such as that two names are the same."""


def accepts(text):
    """Whether the schema accepts a file."""
    return jsonschema.Draft7Validator(SCHEMA).is_valid(yaml.safe_load(text))


def test_the_schema_accepts_what_is_read(tmp_path):
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft7Validator(SCHEMA).validate(yaml.safe_load(WHOLE))


@pytest.mark.parametrize("text", [text for text, error in REFUSED if not any(each in error for each in NOT_OF_SHAPE)])
def test_the_schema_refuses_what_is_refused(text):
    assert not accepts(text)
