"""`aclog grant` and `aclog revoke` on a log: what they show, what they apply, and what they refuse."""

import json

import pytest

from tests.support.cli.command import aclog

KNOWN = "--no-allow-everyone-if-no-acl-found"
A = ("--principal", "User:a")


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def rules_of(log) -> set[str]:
    lines = aclog("acls", "list", "--log", log, "--format", "jsonl").ok().lines
    return {f"{r['permissionType']} {r['principal']} {r['operation']} {r['patternType']} {r['resourceName']}"
            for r in map(json.loads, lines)}  # fmt: skip


CONSUME = (*A, "--intent", "consume", "--topic", "t", "--group", "g")


def test_a_plan_is_shown_and_nothing_is_written(log):
    shown = aclog("grant", "--log", log, *CONSUME, KNOWN)
    assert shown.code == 1
    assert "  GAINED  User:a: READ, DESCRIBE on TOPIC t; READ, DESCRIBE on GROUP g, from any host" in shown.lines
    assert not log.exists()
    steps = [json.loads(line) for line in aclog("grant", "--log", log, *CONSUME, KNOWN, "--format", "jsonl").lines]
    assert [(each["action"], each["rule"]["resourceName"], each["batch"]) for each in steps] == [
        ("ADD", "t", 0), ("ADD", "g", 0)
    ]  # fmt: skip


def test_granted_and_revoked_again(log):
    aclog("grant", "--log", log, *CONSUME, KNOWN, "--yes").ok()
    assert rules_of(log) == {"ALLOW User:a READ LITERAL t", "ALLOW User:a READ LITERAL g"}
    again = aclog("grant", "--log", log, *CONSUME, KNOWN, "--yes").ok()
    assert again.lines[-1] == "nothing to do: User:a may consume already"
    asked = ("--acls", "-", *CONSUME)
    held = aclog(
        "check", "not-granted", *asked, stdin=aclog("acls", "list", "--log", log, "--format", "jsonl").out.encode()
    )
    assert held.code == 1
    assert aclog("revoke", "--log", log, *CONSUME, KNOWN).code == 1
    aclog("revoke", "--log", log, *CONSUME, KNOWN, "--yes").ok()
    assert rules_of(log) == set()
    nothing = aclog("revoke", "--log", log, *CONSUME, KNOWN, "--yes").ok()
    assert nothing.lines == ["nothing to do: no rule grants this to User:a only"]


def test_a_saved_plan_is_applied_by_apply(log, tmp_path):
    plan = tmp_path / "PLAN"
    assert aclog("grant", "--log", log, *CONSUME, KNOWN, "--out", plan).code == 1
    aclog("apply", plan, "--yes").ok()
    assert len(rules_of(log)) == 2
    assert "expected one of them" in aclog("grant", "--log", log, *CONSUME, "--out", plan, "--yes").complaint


def test_what_others_would_lose_is_refused(log):
    refused = aclog("grant", "--log", log, *CONSUME, "--yes")
    assert refused.code == 2
    assert (
        "allow.everyone.if.no.acl.found is unknown; if it is true, other principals would lose access"
        in refused.complaint
    )
    assert not log.exists()
    aclog("grant", "--log", log, *CONSUME, "--yes", "--accept-side-effects").ok()
    # The last rule on a topic keeps it closed.
    opened = aclog("revoke", "--log", log, *CONSUME, "--yes", "--allow-everyone-if-no-acl-found")
    assert (opened.code, len(rules_of(log))) == (2, 2)
    assert "would be open to all: expected --accept-side-effects" in opened.complaint


def test_no_plan_is_written_of_what_others_would_lose(log, tmp_path):
    """Whoever applies it would not be told."""
    plan = tmp_path / "PLAN"
    refused = aclog("grant", "--log", log, *CONSUME, "--out", plan)
    assert (refused.code, plan.exists()) == (2, False)
    assert "other principals would lose access" in refused.complaint
    assert "no plan was written" in refused.complaint
    assert aclog("grant", "--log", log, *CONSUME, "--out", plan, "--accept-side-effects").code == 1
    aclog("apply", plan, "--yes").ok()
    assert len(rules_of(log)) == 2


def test_what_is_open_to_all_needs_no_rule(log):
    found = aclog("grant", "--log", log, *CONSUME, "--allow-everyone-if-no-acl-found", "--yes").ok()
    assert "already granted: no rule covers it, and allow.everyone.if.no.acl.found opens it" in found.lines
    assert not log.exists()


def test_what_still_allows_it_is_told_by_the_exit_code_too(log):
    aclog("grant", "--log", log, *CONSUME, KNOWN, "--yes").ok()
    everyone = ("--principal", "User:*", "--intent", "consume", "--topic-prefix", "t", "--group", "g")
    shown = aclog("grant", "--log", log, *everyone, KNOWN, "--yes").ok()
    assert "User:* is everyone: every principal is granted this" in shown.lines
    assert "shared: User:a also has rules under TOPIC PREFIXED 't': LITERAL 't'" in shown.lines
    revoked = aclog("revoke", "--log", log, *CONSUME, KNOWN, "--yes", "--format", "jsonl")
    assert revoked.code == 1
    assert [json.loads(line)["action"] for line in revoked.lines] == ["REMOVE", "REMOVE"]
    assert "still allowed: User:a: READ on TOPIC t, from any host" in revoked.err
    assert "User:a" not in "".join(rules_of(log))
    left = aclog("revoke", "--log", log, *CONSUME, KNOWN, "--yes")
    assert (left.code, left.lines[-1]) == (1, "nothing to do: no rule grants this to User:a only")


def test_a_journal_owns_what_is_granted_and_nothing_else_is_revoked(log, tmp_path):
    journal = tmp_path / "journal"
    aclog(
        "acls", "add", "--log", _made(log), "--allow-principal", "User:a", "--operation", "WRITE", "--topic", "t"
    ).ok()
    aclog("grant", "--log", log, *CONSUME, KNOWN, "--journal", journal, "--yes").ok()
    produce = (*A, "--intent", "produce", "--topic", "t", KNOWN, "--journal", journal)
    refused = aclog("revoke", "--log", log, *produce, "--yes")
    assert refused.code == 2
    assert "not managed by the journal" in refused.complaint
    aclog("revoke", "--log", log, *CONSUME, KNOWN, "--journal", journal, "--yes").ok()
    assert rules_of(log) == {"ALLOW User:a WRITE LITERAL t"}
    aclog("revoke", "--log", log, *produce, "--adopt", "--yes").ok()
    assert rules_of(log) == set()


def _made(log):
    """A log with nothing in it."""
    aclog("grant", "--log", log, "--principal", "User:x", "--intent", "produce", "--topic", "x", KNOWN, "--yes").ok()
    aclog("revoke", "--log", log, "--principal", "User:x", "--intent", "produce", "--topic", "x", KNOWN, "--yes").ok()
    return log


def test_what_else_stops_is_told(log):
    aclog("grant", "--log", log, *CONSUME, "--topic", "u", KNOWN, "--yes").ok()
    shown = aclog("revoke", "--log", log, *CONSUME, KNOWN)
    assert shown.lines[-1] == "side effect: clients that use GROUP LITERAL 'g' to READ TOPIC LITERAL 'u' lose access"
    topic = aclog("revoke", "--log", log, *A, "--intent", "consume", "--topic", "t", KNOWN)
    assert "side effect" not in topic.out


def test_many_deletes_are_refused(log):
    names = [word for number in range(21) for word in ("--topic", f"t{number}")]
    many = ("--log", log, *A, "--intent", "produce", *names, KNOWN, "--yes")
    aclog("grant", *many).ok()
    refused = aclog("revoke", *many)
    assert (refused.code, len(rules_of(log))) == (2, 21)
    assert "--max-deletes 21" in refused.complaint
    assert "- ALLOW User:a" in refused.out, "people look at what is refused"
    assert aclog("revoke", *many, "--format", "jsonl").out == "", "programs would do it"
    aclog("revoke", *many, "--max-deletes", "21").ok()
    assert rules_of(log) == set()
