"""Rules of Terraform with values known after apply only: what commands state of them, and what they refuse."""

import json
from pathlib import Path

import pytest

from tests.support.cli.command import Result, aclog
from tests.support.cli.repository import Repository

APP = "User:${confluent_service_account.app.id}"


def rule(
    name: str, principal: str, topic: str = '"orders"', *, operation: str = "READ", permission: str = "ALLOW"
) -> str:
    return f"""resource "confluent_kafka_acl" "{name}" {{
  resource_type = "TOPIC"
  resource_name = {topic}
  pattern_type  = "LITERAL"
  principal     = "{principal}"
  host          = "*"
  operation     = "{operation}"
  permission    = "{permission}"
}}
"""


ACCOUNT = 'resource "confluent_service_account" "app" { display_name = "app" }\n'
RULES = ACCOUNT + rule("read", APP)
LITERAL = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": APP, "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip
READ = ("--operation", "READ", "--topic", "orders")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "main.tf"
    path.write_text(RULES)
    return path


def test_a_list_of_json_lines_is_read_back(rules: Path, tmp_path: Path) -> None:
    listed = aclog("acls", "list", "--acls", rules, "--format", "jsonl").ok()
    [line] = listed.lines
    assert json.loads(line).items() >= {**LITERAL, "id": None, "symbolic": "principal"}.items()
    (tmp_path / "rules.jsonl").write_text(listed.out)
    again = json.loads(aclog("acls", "list", "--acls", tmp_path / "rules.jsonl", "--format", "jsonl").ok().out)
    assert again == json.loads(line) | {"file": str(tmp_path / "rules.jsonl"), "line": 1}
    assert "no difference" in aclog("diff", "--acls", rules, "--to-acls", tmp_path / "rules.jsonl").ok().out


def test_a_literal_of_the_same_text_is_another_principal(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "literal.jsonl").write_text(json.dumps(LITERAL))
    compared = aclog("diff", "--acls", rules, "--to-acls", tmp_path / "literal.jsonl")
    assert compared.code == 1
    assert "1 gained, 1 lost" in compared.out
    (tmp_path / "main.tf").write_text(ACCOUNT + rule("read", APP.replace("$", "$$")))
    listed = aclog("acls", "list", "--acls", rules, "--format", "jsonl").ok()
    assert json.loads(listed.out).items() >= {**LITERAL, "id": None}.items()


@pytest.mark.parametrize("line", ["symbolic-without-part", "mark"])
def test_json_that_is_no_symbol_is_refused(tmp_path: Path, line: str) -> None:
    bad = (
        {**LITERAL, "principal": "User:a", "symbolic": "principal"}
        if line != "mark"
        else {**LITERAL, "host": "\ufdd0${x}"}
    )
    (tmp_path / "bad.jsonl").write_text(json.dumps(bad))
    listed = aclog("acls", "list", "--acls", tmp_path / "bad.jsonl")
    assert listed.code == 2
    assert "line 1: " in listed.complaint


def test_no_decision_is_made_and_no_proof(rules: Path) -> None:
    def about(*command: str) -> Result:
        return aclog(*command, "--acls", rules, *READ)

    refused = about("authorize", "--principal", "User:alice")
    assert (refused.code, refused.complaint.count(APP)) == (2, 2)
    requests = aclog("authorize", "--acls", rules, "--requests", "-")
    assert requests.code == 2
    unproved = about("check", "not-granted", "--principal", "User:alice")
    assert unproved.code == 1
    assert "a value known after apply" in unproved.out
    for command in (("who-can",), ("explain", "--principal", "User:alice")):
        assert "a value known after apply" in about(*command).out
    other = ("--operation", "READ", "--topic", "other")
    assert aclog("check", "not-granted", "--acls", rules, *other).code == 1


def test_lint_judges_no_text_of_which_parts_are_unknown(rules: Path) -> None:
    rules.write_text(
        ACCOUNT + rule("read", "${confluent_service_account.app.id}", '"a b-${confluent_service_account.app.id}"')
    )
    linted = aclog("lint", "--acls", rules, "--format", "jsonl", "--fail-on", "never").ok()
    assert {json.loads(line)["lint"] for line in linted.lines} <= {"13"}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    made.commit({"kafka/main.tf": RULES})
    monkeypatch.chdir(made.path)
    return made


def test_a_review_of_unchanged_symbols_passes(repository: Repository) -> None:
    repository.write({"kafka/main.tf": f"# moved\n{RULES}"})
    reviewed = aclog("review", "kafka", "--base", "HEAD").ok()
    assert "no effective change" in reviewed.out
    assert "known after apply" not in reviewed.out


def test_a_review_of_rules_that_change_nothing_yet_states_the_symbols(repository: Repository) -> None:
    shut = rule("shut", "User:alice", permission="DENY")
    repository.write({"kafka/main.tf": RULES + shut})
    reviewed = aclog("review", "kafka", "--base", "HEAD").ok()
    assert f"the effect depends on values known after apply only: {APP}" in reviewed.out


def test_a_review_shows_what_a_symbol_gains(repository: Repository) -> None:
    repository.write({"kafka/main.tf": RULES.replace("READ", "WRITE")})
    reviewed = aclog("review", "kafka", "--base", "HEAD")
    assert f"GAINED  {APP}: WRITE on TOPIC orders" in reviewed.out


def test_what_must_not_change_may_be_what_a_symbol_names(repository: Repository) -> None:
    repository.write({"aclog.toml": '[review]\nuntouched = ["topic:pii", "topic:orders"]\n'})
    repository.write({"kafka/more.tf": rule("more", "User:b", '"p${confluent_service_account.app.id}"')})
    reviewed = aclog("review", "kafka", "--base", "HEAD")
    assert "REFUTED: topic:pii may be decided differently for at least one request" in reviewed.out
    assert "PROVED: topic:orders is decided as before" in reviewed.out


def test_what_a_symbol_names_may_be_what_nothing_may_be_gained_on(repository: Repository) -> None:
    repository.write({"aclog.toml": '[review]\nno-gain = ["topic:pii", "topic:orders"]\n'})
    repository.write({"kafka/more.tf": rule("more", "User:b", '"p${confluent_service_account.app.id}"')})
    reviewed = aclog("review", "kafka", "--base", "HEAD")
    assert "REFUTED: at least one principal may gain access to topic:pii" in reviewed.out
    assert "PROVED: no principal gains access to topic:orders" in reviewed.out


def test_tests_hold_whatever_a_symbol_turns_out_to_be(rules: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        """tests:
- {name: other, principal: "User:alice", cannot: {READ: ["topic:other"]}}
- {name: write, principal: "User:alice", cannot: {WRITE: ["topic:orders"]}}
"""
    )
    aclog("test", cases, "--acls", rules).ok()
    cases.write_text('tests:\n- {name: alice, principal: "User:alice", cannot: {READ: ["topic:orders"]}}\n')
    failed = aclog("test", cases, "--acls", rules)
    assert failed.code == 1
    assert "not proven: it fails if a value known after apply" in failed.out


def test_a_plan_shows_symbols_and_apply_refuses_them(rules: Path, tmp_path: Path) -> None:
    where = ("--log", tmp_path / "log", "--journal", tmp_path / "journal", "--out", tmp_path / "plan")
    planned = aclog("plan", "--want", rules, *where)
    assert planned.code == 1
    assert APP in planned.out
    refused = aclog("apply", tmp_path / "plan", "--yes")
    assert refused.code == 2
    assert f"{APP} is known after apply only" in refused.complaint
    assert not (tmp_path / "journal").exists() or not (tmp_path / "journal").read_text()


def test_no_symbol_is_written_to_a_log(rules: Path, tmp_path: Path) -> None:
    listed = aclog("acls", "list", "--acls", rules, "--format", "jsonl").ok()
    (tmp_path / "rules.jsonl").write_text(listed.out)
    for flags in ((), ("--keep-odd-rules",)):
        refused = aclog("import", tmp_path / "rules.jsonl", "--log", tmp_path / "log", *flags)
        assert refused.code == 2, refused
        assert f"{APP} is known after apply only" in refused.err
