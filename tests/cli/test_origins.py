"""Where a rule stands: every command that names one shows it."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_files_of_rules import rule
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

ROOT = Path(__file__).parents[2]
DENY = {"permissionType": "DENY"}
ASK = ("--principal", "User:a", "--operation", "READ", "--topic", "orders")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    made.commit({"kafka/a.jsonl": rule("pay") + rule("orders"), "kafka/team/b.jsonl": "\n" + rule("orders")})
    made.write({"kafka/a.jsonl": rule("pay") + rule("audit"), "kafka/team/b.jsonl": rule("orders", **DENY)})
    return made


def located(file: str, line: int, name: str, **changed: str) -> dict[str, object]:
    return {**json.loads(rule(name, **changed)), "file": file, "line": line}


def json_of(*words: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in aclog(*words).lines]


def test_a_list_has_them_as_a_column_and_in_json_lines_if_asked(repository: Repository) -> None:
    table = aclog("acls", "list", "--ref", "main:kafka", "--format", "table").ok().lines
    assert [line.split("  ")[-1].strip() for line in table] == [
        "PLACE",
        "main:kafka/a.jsonl:2, main:kafka/team/b.jsonl:2",
        "main:kafka/a.jsonl:1",
    ]
    orders, pay = json_of("acls", "list", "--ref", "main:kafka", "--format", "jsonl", "--origins")
    assert list(orders)[-3:] == ["id", "file", "line"]
    assert (orders["file"], orders["line"], pay["line"]) == ("main:kafka/a.jsonl", 2, 1)
    kafka = aclog("acls", "list", "--ref", "main:kafka").ok().out
    assert "a.jsonl" not in kafka


def test_a_source_that_does_not_know_has_no_column(repository: Repository, tmp_path: Path) -> None:
    aclog("snapshot", "create", "--acls", "kafka", "--out", tmp_path).ok()
    [checkpoint] = tmp_path.glob("*.checkpoint")
    assert "PLACE" not in aclog("acls", "list", "--snapshot", checkpoint, "--format", "table").ok().out
    [first, *_] = json_of("acls", "list", "--snapshot", checkpoint, "--format", "jsonl", "--origins")
    assert list(first)[-1] == "id"


def test_a_decision_has_them_in_a_line_of_its_own(repository: Repository) -> None:
    allowed = aclog("authorize", "--ref", "main:kafka", *ASK).ok()
    assert allowed.lines[0].startswith("ALLOWED MatchingAcl(acl=StandardAcl[")
    assert allowed.lines[1:] == ["  at main:kafka/a.jsonl:2", "  at main:kafka/team/b.jsonl:2"]
    assert aclog("authorize", "--acls", "kafka", *ASK).lines[1:] == ["  at kafka/team/b.jsonl:1"]
    assert len(aclog("authorize", "--acls", "kafka/team/b.jsonl", *ASK).lines) == 1  # JSON lines: as ever


def test_an_explanation_has_them_with_each_rule_and_each_change(repository: Repository) -> None:
    text = aclog("explain", "--acls", "kafka", *ASK).denied().out
    deny = "DENY User:a READ on TOPIC LITERAL 'orders' from * (kafka/team/b.jsonl:1)"
    assert f"decides  {deny}" in text
    assert f"remove {deny}" in text
    [told] = json_of("explain", "--acls", "kafka", *ASK, "--format", "json")
    assert told["rules"][0]["rule"] == {"id": None} | located("kafka/team/b.jsonl", 1, "orders", **DENY)
    assert told["opposite"]["changes"][0]["rule"] == located("kafka/team/b.jsonl", 1, "orders", **DENY)


def test_a_difference_has_those_of_both_sides(repository: Repository) -> None:
    sides = ("--ref", "main:kafka", "--to-acls", "kafka")
    lines = {
        (line["change"], line["witness"]["resourceName"]): line for line in json_of("diff", *sides, "--format", "jsonl")
    }
    assert lines["GAINED", "audit"]["new"] == located("kafka/a.jsonl", 2, "audit")
    lost = lines["LOST", "orders"]
    assert lost["old"] == located("main:kafka/a.jsonl", 2, "orders")
    assert lost["new"] == located("kafka/team/b.jsonl", 1, "orders", **DENY)
    before = "ALLOW User:a READ on TOPIC LITERAL 'orders' from * (main:kafka/a.jsonl:2, main:kafka/team/b.jsonl:2)"
    after = "DENY User:a READ on TOPIC LITERAL 'orders' from * (kafka/team/b.jsonl:1)"
    assert f"; before: {before}; after: {after}\n" in aclog("diff", *sides).out
    assert "(kafka/team/b.jsonl:1)" in aclog("diff", *sides, "--format", "markdown").out.replace("\\", "")
    assert f"; before: {before}; after: {after}\n" in aclog("check", "equal", *sides).out
    head, *refuting = json_of("check", "equal", *sides, "--format", "jsonl")
    assert (head["verdict"], refuting) == ("REFUTED", list(lines.values()))


def places(*words: object) -> dict[str, list[tuple[str, int]]]:
    [run] = json.loads(aclog("diff", *words, "--format", "sarif").out)["runs"]
    return {
        each["locations"][0]["logicalLocations"][0]["name"]: [
            (physical["artifactLocation"]["uri"], physical["region"]["startLine"])
            for location in each["locations"]
            if (physical := location.get("physicalLocation"))
        ]
        for each in run["results"]
    }


def test_code_scanning_finds_the_lines_of_the_changed_rules_in_the_repository(repository: Repository) -> None:
    found = places("--ref", "main:kafka", "--to-acls", "kafka")
    assert [("kafka/a.jsonl", 2)] in found.values()
    assert [("kafka/team/b.jsonl", 1), ("kafka/a.jsonl", 2), ("kafka/team/b.jsonl", 2)] in found.values()
    assert [("kafka/a.jsonl", 2)] in places("--acls", "kafka", "--to-ref", "main:kafka").values()


def test_changes_have_the_lines_of_their_file(repository: Repository) -> None:
    changes = [
        {"action": "REMOVE", "rule": json.loads(rule("pay"))},
        {"action": "ADD", "rule": json.loads(rule("new"))},
    ]
    Path("change.jsonl").write_text("".join(json.dumps(change) + "\n" for change in changes))
    lines = json_of("diff", "--acls", "kafka", "--change", "change.jsonl", "--format", "jsonl")
    rules = {line["change"]: line["new"] if line["change"] == "GAINED" else line["old"] for line in lines}
    assert rules == {"GAINED": located("change.jsonl", 2, "new"), "LOST": located("kafka/a.jsonl", 1, "pay")}
    found = places("--acls", "kafka", "--change", "change.jsonl")
    assert sorted(found.values()) == [[("change.jsonl", 1)], [("change.jsonl", 2)]]
    Path("add.jsonl").write_text("\n" + rule("new"))
    [line] = json_of("diff", "--acls", "kafka", "--add", "add.jsonl", "--format", "jsonl")
    assert line["new"] == located("add.jsonl", 2, "new")


def test_rules_of_a_log_that_a_change_removes_stand_in_its_file(repository: Repository, tmp_path: Path) -> None:
    aclog("snapshot", "create", "--acls", "kafka", "--out", tmp_path).ok()
    [checkpoint] = tmp_path.glob("*.checkpoint")
    Path("remove.jsonl").write_text(rule("pay"))
    text = aclog("diff", "--snapshot", checkpoint, "--remove", "remove.jsonl").out
    assert "ALLOW User:a READ on TOPIC LITERAL 'pay' from * (remove.jsonl:1); after: DefaultDeny" in text


def test_mapped_names_keep_the_lines_of_their_rules(repository: Repository) -> None:
    sides = ("--acls", "kafka", "--to-acls", "empty.jsonl", "--map-names", "au=eu.au", "--format", "jsonl")
    Path("empty.jsonl").write_text("")
    [line] = json_of("diff", *sides)
    assert line["names"] == [{"literal": "eu.audit"}, {"literal": "pay"}]
    assert line["old"] == located("kafka/a.jsonl", 2, "eu.audit")


def test_who_and_what_and_proofs_have_them(repository: Repository) -> None:
    source = ("--acls", "kafka")
    assert (
        "  granted by ALLOW User:a READ on TOPIC LITERAL 'audit' from * (kafka/a.jsonl:2)"
        in aclog("who-can", *source, "--operation", "READ", "--topic", "audit").ok().lines
    )
    what = aclog("what-can", *source, "--principal", "User:a").ok().lines
    assert "denied: DENY User:a READ on TOPIC LITERAL 'orders' from * (kafka/team/b.jsonl:1)" in what
    assert "  granted by ALLOW User:a READ on TOPIC LITERAL 'pay' from * (kafka/a.jsonl:1)" in what
    [found, *_] = json_of("who-can", *source, "--operation", "READ", "--topic", "audit", "--format", "jsonl")
    assert found["rules"] == [located("kafka/a.jsonl", 2, "audit")]
    _, refuting = json_of(
        "check", "not-granted", *source, "--operation", "READ", "--topic", "audit", "--format", "jsonl"
    )
    assert refuting["rule"] == refuting["rules"][0] == located("kafka/a.jsonl", 2, "audit")
    refuted = aclog("check", "not-granted", *source, "--operation", "READ", "--topic", "audit")
    assert refuted.out.count("(kafka/a.jsonl:2)") == 1


def test_the_shell_has_them(repository: Repository) -> None:
    [path] = aclog("shell", "--acls", "kafka", "find", "/acl/resource/TOPIC/LITERAL/audit").ok().lines[1:]
    assert json.loads(aclog("shell", "--acls", "kafka", "cat", path).ok().out) == {
        "id": None,
        **located("kafka/a.jsonl", 2, "audit"),
    }
    why = aclog("shell", "--acls", "kafka", "why", "User:a", "read", "topic:orders").ok().out
    assert "decides  DENY User:a READ on TOPIC LITERAL 'orders' from * (kafka/team/b.jsonl:1)" in why


def test_warnings_and_refusals_have_them(repository: Repository, tmp_path: Path) -> None:
    repository.write({"odd/a.jsonl": rule("x") + rule("y", host="10.0.0.0/8") + rule("z", principal="nobody")})
    assert "odd/a.jsonl:3: " in aclog("snapshot", "create", "--acls", "odd", "--out", tmp_path / "o").complaint
    kept = aclog("snapshot", "create", "--acls", "odd", "--keep-odd-rules", "--out", tmp_path / "o").ok().err
    assert "(odd/a.jsonl:3)" in kept
    assert "operation=READ, permissionType=ALLOW] (odd/a.jsonl:2)" in aclog("acls", "list", "--acls", "odd").ok().err


def test_names_of_files_that_are_no_text_are_shown(repository: Repository) -> None:
    Path("odd").mkdir()
    Path(b"odd/\xff\x1b[31m.jsonl".decode(errors="surrogateescape")).write_text(rule("x"))
    sides = ("--acls", "kafka/a.jsonl", "--to-acls", "odd")
    assert "(odd/\\udcff\\x1b[31m.jsonl:1)" in aclog("diff", *sides).out
    assert [("odd/%FF%1B%5B31m.jsonl", 1)] in places(*sides).values()
    assert "PLACE" in aclog("acls", "list", "--acls", "odd", "--format", "table").ok().out


def test_a_hook_reads_what_is_committed(repository: Repository) -> None:
    hook = repository.path / ".git/hooks/pre-commit"
    hook.parent.mkdir()
    command = f"{sys.executable} -m aclog who-can --ref :kafka --operation READ --topic audit"
    hook.write_text(f"#!/bin/sh\nPYTHONPATH={ROOT} {command} > told\n")
    hook.chmod(0o755)
    repository.git("commit", "-qam", "all")  # with an index of its own
    assert (
        "  granted by ALLOW User:a READ on TOPIC LITERAL 'audit' from * (:kafka/a.jsonl:2)" in Path("told").read_text()
    )
