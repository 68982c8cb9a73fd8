"""`aclog test`: what it prints, writes and returns."""

import json
from xml.etree import ElementTree as ET

import pytest

from aclog.authorizer.codes import AclOperation, ResourceType
from tests.support.cli.command import aclog
from tests.support.models.golden import ROOT, load

RULES = (
    ("TOPIC", "bill.", "PREFIXED", "User:billing", "*", "READ", "ALLOW"),
    ("GROUP", "billing-", "PREFIXED", "User:billing", "*", "READ", "ALLOW"),
    ("TOPIC", "bill.out", "LITERAL", "User:billing", "10.0.0.9", "WRITE", "ALLOW"),
    ("TOPIC", "pii.card", "LITERAL", "User:billing", "*", "READ", "ALLOW"),
    ("TOPIC", "pii.card", "LITERAL", "User:audit", "*", "READ", "ALLOW"),
)
KEYS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
TESTS = """\
rules: rules.jsonl
tests:
- name: billing
  principal: User:billing
  host: 10.0.0.9
  can:    {READ: [topic:bill.*, group:billing-*], WRITE: [topic:bill.out]}
  cannot: {ALL: [topic:pii.*]}
  intents: {produce: [topic:bill.out]}
  reason: {READ topic:bill.in: READ prefixed bill.}
- who_can: {READ topic:pii.card: [User:audit]}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rules(tmp_path, RULES)
    (tmp_path / "t.yaml").write_text(TESTS)
    return tmp_path


def write_rules(home, rules, name="rules.jsonl"):
    lines = [json.dumps(dict(zip(KEYS, rule, strict=True))) for rule in rules]
    (home / name).write_text("\n".join(lines) + "\n")


def test_a_failing_case_is_one_screen_with_all_places_and_the_nearest_change(home):
    found = aclog("test", "t.yaml")
    assert found.code == 1
    assert (
        found.out
        == """\
t.yaml: 7 cases: 2 failed

FAILED t.yaml:7: billing
  expected: User:billing cannot ALL topic:pii.* from 10.0.0.9
  found: User:billing: READ, DESCRIBE on TOPIC pii.card is allowed, from 10.0.0.9
    such as User:billing READ TOPIC 'pii.card' from 10.0.0.9, decided by ALLOW User:billing READ on TOPIC LITERAL \
'pii.card' from * (rules.jsonl:4)
  explained: 2 ACLs cover 'pii.card': 1 decides, 1 other principal
    decides: ALLOW User:billing READ on TOPIC LITERAL 'pii.card' from * (rules.jsonl:4)
    other principal: ALLOW User:audit READ on TOPIC LITERAL 'pii.card' from * (rules.jsonl:5)
  the nearest change:
    remove ALLOW User:billing READ on TOPIC LITERAL 'pii.card' from *
      kafka-acls.sh --bootstrap-server HOST:PORT --remove --allow-principal User:billing --allow-host '*' \
--operation Read --topic pii.card

FAILED t.yaml:10: line 10
  expected: exactly User:audit can READ topic:pii.card
  found: User:billing: READ on TOPIC pii.card is allowed, from any host
    such as User:billing READ TOPIC 'pii.card' from 127.0.0.1, decided by ALLOW User:billing READ on TOPIC LITERAL \
'pii.card' from * (rules.jsonl:4)
  explained: 2 ACLs cover 'pii.card': 1 decides, 1 other principal
    decides: ALLOW User:billing READ on TOPIC LITERAL 'pii.card' from * (rules.jsonl:4)
    other principal: ALLOW User:audit READ on TOPIC LITERAL 'pii.card' from * (rules.jsonl:5)
  the nearest change:
    remove ALLOW User:billing READ on TOPIC LITERAL 'pii.card' from *
      kafka-acls.sh --bootstrap-server HOST:PORT --remove --allow-principal User:billing --allow-host '*' \
--operation Read --topic pii.card

7 cases of 2 tests: 5 passed, 2 failed
"""
    )


def test_the_json_lines_have_each_case_and_the_counts(home):
    lines = [json.loads(line) for line in aclog("test", "t.yaml", "--format", "jsonl").lines]
    assert [line.get("verdict") for line in lines] == [*["PASSED"] * 3, "FAILED", *["PASSED"] * 2, "FAILED", None]
    failed = lines[3]
    assert (failed["test"], failed["file"], failed["line"]) == ("billing", "t.yaml", 7)
    assert failed["failures"][0]["rule"]["line"] == 4
    assert failed["nearest"][0]["change"] == "remove"
    assert lines[-1] == {"cases": 7, "passed": 5, "failed": 2}


def test_a_source_on_the_command_line_wins_over_that_of_the_file(home):
    write_rules(home, [rule for rule in RULES if rule[1:4] != ("pii.card", "LITERAL", "User:billing")], "good.jsonl")
    assert aclog("test", "t.yaml", "--acls", "good.jsonl").code == 0
    assert aclog("test", "t.yaml", "--acls", "good.jsonl", "--super-users", "User:billing").code == 1


def test_settings_stand_in_the_file_or_in_the_repository_and_flags_win(home):
    (home / "t.yaml").write_text("super-users: User:root\ntests: [{principal: User:root, can: {ALL: [cluster]}}]\n")
    (home / "aclog.toml").write_text('[source]\nacls = "rules.jsonl"\n[test]\nfiles = ["t.yaml"]\n')
    assert aclog("test").code == 0
    assert aclog("test", "--super-users", "User:other").code == 1


def test_only_selected_tests_run(home):
    assert aclog("test", "t.yaml", "--run", "line*").lines[-1] == "1 case of 1 test: 0 passed, 1 failed"
    found = aclog("test", "t.yaml", "--run", "nothing*")
    assert (found.code, found.complaint) == (2, "--run nothing*: no test has such a name")


def test_what_cannot_be_run_is_trouble(home):
    assert aclog("test").code == 2
    assert aclog("test", "missing.yaml").complaint.startswith("missing.yaml: no such file")
    (home / "free.yaml").write_text("tests: [{who_can: {READ topic:t: []}}]")
    assert "which rules does it test?" in aclog("test", "free.yaml").complaint
    assert aclog("test", home, "free.yaml").complaint.endswith("a directory: expected a file of tests")
    assert aclog("test", home).complaint.startswith("no test is given: expected FILE...")  # the directory is a source


def test_requests_with_decisions_are_cases(home):
    request = {"principal": "User:billing", "host": "10.0.0.9", "operation": "READ", "resourceType": "TOPIC"}
    rows = [
        {**request, "resourceName": "bill.in", "decision": "ALLOWED", "rule": "READ prefixed bill.", "name": "in"},
        {**request, "resourceName": "other", "decision": "DENIED", "rule": "DefaultDeny"},
        {**request, "kind": "byResourceType", "decision": "ALLOWED"},
        {**request, "principal": "nocolon", "resourceName": "x", "decision": "ERROR"},
        {**request, "resourceName": "other", "decision": "ALLOWED"},
    ]
    (home / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = aclog("test", "t.jsonl", "--acls", "rules.jsonl")
    assert found.code == 1
    assert "FAILED t.jsonl:5: line 5" in found.lines
    assert found.lines[-1] == "5 cases of 5 tests: 4 passed, 1 failed"
    text = (home / "t.jsonl").read_bytes()
    assert aclog("test", "-", "--acls", "rules.jsonl", "--run", "in", stdin=text).code == 0


@pytest.mark.parametrize("number", ["004", "021", "034", "052", "056"])
def test_what_kafka_answered_holds_as_lines_of_requests(home, number):
    estate = load(number)
    rows = [
        {
            "principal": request.principal,
            "host": request.host,
            "operation": AclOperation(request.operation).name,
            "resourceType": ResourceType(request.resource_type).name,
            "decision": {"A": "ALLOWED", "D": "DENIED", "E": "ERROR"}[answer.letter],
        }
        | ({"kind": "byResourceType"} if request.resource_name is None else {"resourceName": request.resource_name})
        | ({"rule": answer.rule} if answer.letter in "AD" and request.resource_name is not None else {})
        for request, answer in zip(estate.requests, estate.answers, strict=True)
        if answer.letter in "AD" or "Could not parse principal" in answer.rule
    ]
    (home / "golden.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = ["--super-users", estate.super_users] if estate.super_users else []
    settings += ["--allow-everyone-if-no-acl-found"] if estate.allow_everyone == "true" else []
    found = aclog("test", "golden.jsonl", "--acls", ROOT / number / "acls.jsonl.gz", *settings)
    assert found.lines[-1] == f"{len(rows):,} cases of {len(rows):,} tests: {len(rows):,} passed", found


def test_coverage_lists_rules_that_no_test_exercises(home):
    test = "{principal: User:billing, can: {READ: ['topic:bill.*']}}"
    (home / "t.yaml").write_text(f"rules: rules.jsonl\ntests: [{test}]")
    found = aclog("test", "t.yaml", "--coverage")
    assert found.code == 0
    assert "rules.jsonl: 1 of 5 rules are exercised by a test (20.0%)" in found.lines
    assert sum(line.startswith("  not exercised: ") for line in found.lines) == 4
    assert aclog("test", "t.yaml", "--min-coverage", "20").code == 0
    assert aclog("test", "t.yaml", "--min-coverage", "21").code == 1


def test_files_in_several_directories_test_the_same_rules_together(home):
    for number, rule in enumerate(("topic:bill.*", "group:billing-*")):
        (home / f"d{number}").mkdir()
        test = f"tests: [{{principal: User:billing, can: {{READ: ['{rule}']}}}}]"
        (home / f"d{number}/t.yaml").write_text(f"rules: ../rules.jsonl\n{test}")
    found = aclog("test", "d0/t.yaml", "d1/t.yaml", "--coverage").ok()
    assert "rules.jsonl: 2 of 5 rules are exercised by a test (40.0%)" in found.lines


def test_mutants_that_no_test_kills_are_listed(home):
    write_rules(home, RULES[4:])
    (home / "t.yaml").write_text("rules: rules.jsonl\ntests: [{who_can: {READ topic:pii.card: [User:audit]}}]")
    found = aclog("test", "t.yaml", "--mutate", "--format", "jsonl")
    assert found.code == 1
    lines = [json.loads(line) for line in found.lines]
    assert {line["mutant"] for line in lines if "mutant" in line} == {"literal to prefixed", "all operations"}
    assert lines[-2]["mutants"] == {"killed": 3, "survived": 2, "equivalent": 0}
    everybody = "- {principal: 'User:*', except: 'User:audit', cannot: {ALL: ['topic:*']}}\n"
    own = "- {principal: User:audit, cannot: {WRITE: ['topic:*'], READ: ['topic:pii.card.*', 'topic:pii.cardx']}}\n"
    text = f"rules: rules.jsonl\ntests:\n- who_can: {{READ topic:pii.card: [User:audit]}}\n{everybody}{own}"
    (home / "t.yaml").write_text(text)
    assert aclog("test", "t.yaml", "--mutate").code == 0


def test_junit_has_a_suite_for_each_file(home):
    assert aclog("test", "t.yaml", "--junit", "junit.xml").code == 1
    suites = ET.parse(home / "junit.xml").getroot()
    assert suites.attrib == {"tests": "7", "failures": "2", "errors": "0"}
    cases = suites[0].findall("testcase")
    assert cases[3].attrib["line"] == "7"
    assert "the nearest change" in cases[3].find("failure").text


def test_one_planted_rule_among_many_refutes_that_nobody_can(home):
    rules = [("TOPIC", f"t{n}.", "PREFIXED", f"User:u{n % 97}", "*", "READ", "ALLOW") for n in range(3000)]
    write_rules(home, [*rules, ("TOPIC", "pii.x", "LITERAL", "User:u7", "10.1.1.1", "READ", "ALLOW")])
    (home / "t.yaml").write_text("rules: rules.jsonl\ntests: [{principal: 'User:*', cannot: {ALL: ['topic:pii.*']}}]")
    found = aclog("test", "t.yaml")
    assert found.code == 1
    assert "  found: User:u7: READ, DESCRIBE on TOPIC pii.x is allowed, from 10.1.1.1" in found.lines
    assert "rules.jsonl:3001" in found.out


def test_the_nearest_change_to_another_state_undoes_what_opened_it(home):
    write_rules(home, RULES[:3], "old.jsonl")
    added = ("TOPIC", "sandbox.", "PREFIXED", "User:audit", "*", "ALL", "ALLOW")
    write_rules(home, [*RULES[:4], added])
    (home / "t.yaml").write_text("tests: [{no_new_access: {than: old.jsonl, except: ['topic:sandbox.*']}}]")
    found = aclog("test", "t.yaml", "--acls", "rules.jsonl", "--format", "jsonl")
    (case, _) = map(json.loads, found.lines)
    assert [(each["change"], each["rule"]["resourceName"]) for each in case["nearest"]] == [("remove", "pii.card")]


def test_the_schema_is_printed():
    assert json.loads(aclog("test", "--schema").ok().out)["title"].startswith("Tests")
