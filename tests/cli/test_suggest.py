"""`aclog suggest`: what it prints, writes and refuses."""

import json

import pytest

from tests.support.cli.command import aclog


def rule(name, principal="User:p", operation="ALL", **other) -> dict[str, str]:
    return {
        "resourceType": "TOPIC", "resourceName": name, "patternType": "PREFIXED", "principal": principal, "host": "*",
        "operation": operation, "permissionType": "ALLOW",
    } | other  # fmt: skip


RULES = [
    rule("team."),
    rule("team.", "User:*", "READ"),
    rule("team.", "User:*", host="10.0.0.9", permissionType="DENY"),
]


def access(principal, name, day=20) -> dict[str, str]:
    return {
        "principal": principal, "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": name,
        "timestamp": f"2026-11-{day}T10:00:00Z",
    }  # fmt: skip


def written(path, objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


@pytest.fixture
def given(tmp_path):
    accesses = [access("User:p", f"team.in.{n}", 20 + n) for n in range(6)] + [access("User:q", "team.x")]
    accesses.append(access("User:q", "denied"))
    log, acls = written(tmp_path / "log", accesses), written(tmp_path / "acls.jsonl", RULES)
    return "--accesses", log, "--acls", acls


def allowed(*words):
    """(principal, name, pattern, operation, accesses) of the rules that allow."""
    rows = [json.loads(line) for line in aclog("suggest", *words, "--format", "jsonl").ok().lines]
    keys = ("principal", "resourceName", "patternType", "operation", "accesses")
    return {tuple(row[key] for key in keys) for row in rows if row["permissionType"] == "ALLOW"}


def test_the_least_rules(given, tmp_path):
    q = ("User:q", "team.x", "LITERAL", "READ", 1)
    assert allowed(*given) == {("User:p", "team.in.", "PREFIXED", "READ", 6), q}
    assert len(allowed(*given, "--fold", "7")) == len(allowed(*given, "--fold", "none")) == 7
    assert allowed(*given, "--days", "2") == {("User:p", f"team.in.{n}", "LITERAL", "READ", 1) for n in (3, 4, 5)}
    topics = tmp_path / "topics"
    topics.write_text("team.in.more\n")
    assert len(allowed(*given, "--topics", topics)) == 7
    said = aclog("suggest", *given, "--explain", "--topics", topics).ok()
    assert any("1 other existing name under it was not used" in line for line in said.lines)


def test_accesses_outside_the_window_are_counted_in_a_warning(given):
    outside = aclog("suggest", *given, "--days", "2").ok().err
    assert "5 accesses outside the window, " in outside
    assert "the suggestion does not count them (--days, --until)" in outside
    assert "outside the window" not in aclog("suggest", *given, "--days", "30").ok().err


def test_what_is_wanted_is_a_state(given, tmp_path):
    want = tmp_path / "want.jsonl"
    said = aclog("suggest", *given, "--out", want)
    assert said.code == 0
    proved = "under the suggested rules, every logged access of the window is decided as before (7 allowed, 1 denied)"
    assert proved in said.err
    assert "3 rules, the complete suggested set" in said.err
    assert aclog("check", "no-new-access", *given[2:], "--to-acls", want).code == 0
    simulated = aclog("simulate", *given, "--to-acls", want, "--format", "jsonl")
    assert (simulated.code, list(simulated.lines)) == (0, [])


def test_the_rules_of_others_stay(given, tmp_path):
    want = tmp_path / "want.jsonl"
    aclog("suggest", *given, "--principal", "User:p", "--out", want).ok()
    rows = [json.loads(line) for line in want.read_text().splitlines()]
    assert [{key: row[key] for key in RULES[0]} for row in rows] == RULES[1:]  # User:* has all that User:p used


@pytest.mark.parametrize("fold", ["1", "0", "-1", "many", ""])
def test_fold(given, fold):
    said = aclog("suggest", *given, "--fold", fold)
    assert (said.code, said.err) == (2, f"aclog: --fold {fold!r}: expected a number of at least 2, or none\n")


def test_a_log_of_denials_alone_is_refused(tmp_path):
    denials = [access("User:p", "team.in") | {"loggedDecision": "DENIED"}] * 2
    acls = written(tmp_path / "acls.jsonl", RULES)
    words = "--accesses", written(tmp_path / "log", denials), "--acls", acls, "--format", "jsonl"
    assert "all 2 accesses are denials, by which no rule is ever needed" in aclog("suggest", *words).complaint
    written(tmp_path / "log", [*denials, denials[0] | {"loggedDecision": "ALLOWED"}])
    assert aclog("suggest", *words).ok().lines
