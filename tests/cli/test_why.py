"""`aclog why` by its own command line; since when is compared with `authorize` at every state of a log."""

import json
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.records import BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, registration, removal
from tests.support.cli.command import aclog

DENY, ALLOW = 2, 3


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(
        tmp_path / "log",
        [acl(1, name="orders"), acl(2, name="orders", principal="User:bob")],
        [acl(3, name="orders", permission=DENY, principal="User:*")],
        [removal(2)],
        [acl(4, name="g", resource_type=3, principal="User:carol"), acl(5, name="orders", principal="User:carol")],
        [removal(3)],
    )


def answer(log: Path, *words: object) -> dict:
    result = aclog("why", *words, "--log", log, "--format", "json")
    row = json.loads(result.out)
    assert result.code == (row["decision"] == "DENIED"), result
    return row


def test_the_lines_of_a_denial(log):
    result = aclog("why", "bob", "orders", "--log", log)
    assert result.code == 1
    verdict, rule, since, before, fix, command = result.lines
    assert verdict == "DENIED   User:bob: READ TOPIC 'orders' from 127.0.0.1 (assumed: no host given)"
    assert rule == "rule     DefaultDeny"
    assert since.startswith("since    1970-01-01T00:00:02.000Z (")
    assert since.endswith(" days ago), offset 2: added DENY User:* READ on TOPIC LITERAL 'orders' from *")
    assert before == "before   ALLOWED by ALLOW User:bob READ on TOPIC LITERAL 'orders' from *"
    assert fix == "fix      add ALLOW User:bob READ on TOPIC LITERAL 'orders' from *"
    assert command.lstrip().startswith("kafka-acls.sh")


def test_the_fix_for_a_copy_of_kafkas_log_is_for_the_cluster(log):
    fix = aclog("why", "bob", "orders", "--log", log).lines[-1].strip()
    assert fix.startswith("kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:bob")
    own = Path(__file__).parents[1] / "data" / "week" / "log"  # aclog has written it
    fix = aclog("why", "fraud", "payments.eu", "--host", "10.0.0.9", "--log", own).lines[-1].strip()
    assert fix.startswith("aclog acls remove --log")


def test_the_lines_of_what_is_allowed(log):
    result = aclog("why", "User:alice", "orders", "--log", log, "--host", "10.0.0.1").ok()
    assert [line[:9] for line in result.lines] == ["ALLOWED  ", "rule     ", "since    ", "before   "]
    assert result.lines[0].endswith("from 10.0.0.1")
    assert result.lines[2].endswith("offset 6: removed DENY User:* READ on TOPIC LITERAL 'orders' from *")
    assert result.lines[3] == "before   DENIED by DENY User:* READ on TOPIC LITERAL 'orders' from *"


def test_a_verdict_older_than_its_rule_has_the_addition_of_the_rule(tmp_path):
    log = write_log(
        tmp_path / "log",
        [acl(1, name="other")],
        [acl(2, name="orders", permission=DENY, principal="User:eve")],
        [removal(2)],
        [acl(3, name="orders", permission=DENY, principal="User:eve")],
    )
    [since] = [line for line in aclog("why", "eve", "orders", "--log", log).lines if line.startswith("since")]
    assert re.sub(r"[\d,]+ days ago", "N days ago", since) == (
        "since    the beginning of the log (never allowed); by this rule at the earliest "
        "since offset 3, 1970-01-01T00:00:04.000Z (N days ago); before: DefaultDeny"
    )
    row = answer(log, "eve", "orders")
    assert (row["since"]["change"], row["ruleAdded"]["offset"], row["ruleAdded"]["timestamp"]) == (None, 3, 4_000)
    assert row["ruleAdded"]["change"]["rule"]["permissionType"] == "DENY"
    assert answer(log, "eve", "orders", "--as-of", 3)["ruleAdded"] is None  # DefaultDeny


def test_an_earlier_state_has_its_own_change(log):
    assert answer(log, "bob", "orders", "--as-of", 2)["since"]["offset"] == 1
    row = answer(log, "bob", "orders", "--as-of", 3)
    assert (row["since"]["offset"], row["since"]["endOffset"], row["since"]["change"]["action"]) == (2, 3, "ADD")
    assert row["before"]["decision"] == "ALLOWED"


def test_a_log_that_begins_with_the_answer(log):
    row = answer(log, "User:dave", "orders")
    assert (row["since"]["offset"], row["since"]["change"], row["before"]) == (0, None, None)
    lines = aclog("why", "User:dave", "orders", "--log", log).lines
    assert lines[2].endswith("never allowed); the deciding rule may have changed")
    checkpoint = write_checkpoint(recover(log).image, log.parent)
    result = aclog("why", "User:dave", "orders", "--snapshot", checkpoint)
    assert result.code == 1
    [since] = [line for line in result.lines if line.startswith("since")]
    assert since.startswith("since    unknown: the source is a single state")
    row = json.loads(aclog("why", "User:dave", "orders", "--snapshot", checkpoint, "--format", "json").out)
    assert row["since"] is None
    assert row["sinceUnknown"].startswith("unknown: ")


def test_intents_need_all_their_requests(log):
    assert answer(log, "carol", "orders", "--consume", "--group", "g")["decision"] == "ALLOWED"
    row = answer(log, "alice", "orders", "--consume")
    assert (row["decision"], row["rule"][:5], row["missing"], row["intent"]) == ("DENIED", "Match", "GROUP", "consume")
    text = aclog("why", "alice", "orders", "--consume", "--log", log).lines
    assert text[1] == "needs    READ and DESCRIBE on a GROUP: the principal has them on no GROUP"
    assert text[-1].startswith("fix      aclog grant --intent consume")
    assert not any("add DENY" in line for line in text)
    row = answer(log, "alice", "orders", "--consume", "--group", "g")
    assert (row["resourceType"], row["resourceName"], row["missing"]) == ("GROUP", "g", None)
    text = aclog("why", "alice", "orders", "--consume", "--group", "g", "--log", log).lines
    rule = answer(log, "alice", "orders")["rule"]
    [also] = [line for line in text if line.startswith("also ")]
    assert also.startswith("also     ALLOWED READ TOPIC 'orders': ALLOW User:alice")
    assert rule.startswith("MatchingAcl")
    both = aclog("why", "carol", "orders", "--consume", "--group", "g", "--log", log).lines
    assert [line.split(":")[0] for line in both if line.startswith("also ")] == ["also     ALLOWED READ GROUP 'g'"]
    row = answer(log, "alice", "orders", "--produce")
    assert (row["decision"], row["operation"]) == ("DENIED", "WRITE")


def test_the_fix_of_an_intent_is_that_of_all_its_requests(tmp_path):
    log = write_log(
        tmp_path / "log", [acl(1, name="x"), acl(2, name="t", operation=8, permission=DENY, principal="User:bob")]
    )
    lines = aclog("why", "alice", "t", "--consume", "--group", "g", "--log", log).lines
    assert [line.split("ALLOW ")[1] for line in lines if line.startswith(("fix ", "and "))] == [
        "User:alice READ on TOPIC LITERAL 't' from *",
        "User:alice READ on GROUP LITERAL 'g' from *",
    ]
    assert sum(line.startswith("also") for line in lines) == 1
    lines = aclog("why", "alice", "t", "--consume", "--log", log).lines
    of_fix = [line[:15] for line in lines if line.startswith(("fix ", "and "))]
    assert of_fix == ["fix      add AL", "and      aclog "]  # both are needed
    changes = answer(log, "bob", "t", "--produce")["opposite"]["changes"]
    assert [(each["change"], each["rule"]["operation"]) for each in changes] == [
        ("add", "WRITE"),
        ("remove", "DESCRIBE"),
    ]


def test_a_change_inside_a_transaction_that_is_reverted_is_not_named(tmp_path):
    log = write_log(
        tmp_path / "log",
        [BeginTransactionRecord(), acl(1, name="t")],
        [acl(2, name="t", permission=DENY)],
        [removal(2), EndTransactionRecord()],
    )
    row = answer(log, "alice", "t")
    assert (row["since"]["offset"], row["since"]["change"]["rule"]["permissionType"]) == (1, "ALLOW")
    assert row["before"] == {"decision": "DENIED", "rule": "DefaultDeny"}


def test_what_was_before_is_unknown_if_the_authorizer_threw(tmp_path):
    log = write_log(tmp_path / "log", [acl(1, name="t"), acl(2, name="t", principal="nocolon")], [removal(2)])
    row = answer(log, "alice", "t")
    assert (row["decision"], row["since"]["offset"], row["before"]) == ("ALLOWED", 2, None)


def test_hosts_that_no_client_has_are_no_hint(tmp_path):
    log = write_log(tmp_path / "log", [registration(1, 29)], [acl(1, name="t", host="10.0.0.0/8")])
    assert not any(line.startswith("hosts") for line in aclog("why", "alice", "t", "--log", log).lines)
    log = write_log(tmp_path / "other", [registration(1, 29)], [acl(1, name="t", host="10.0.0.9")])
    assert any(
        line.startswith("hosts    1 rule for certain hosts") for line in aclog("why", "alice", "t", "--log", log).lines
    )


def test_other_resources_and_operations(log):
    assert answer(log, "carol", "group:g")["decision"] == "ALLOWED"
    assert answer(log, "carol", "group:g", "--operation", "delete")["operation"] == "DELETE"
    assert answer(log, "carol", "cluster", "--operation", "Alter")["resourceName"] == "kafka-cluster"
    row = answer(log, "alice", "other*")
    assert (row["patternType"], row["since"]) == ("PREFIXED", None)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["bob", "cluster"], "cluster: no operation is assumed on CLUSTER: expected --operation NAME"),
        (["bob", "orders", "--consume", "--produce"], "--consume and --produce: expected one of them"),
        (["bob", "orders", "--produce", "--operation", "Read"], "--produce and --operation: expected one of them"),
        (
            ["bob", "orders", "--group", "g"],
            "--group: expected --consume beside it, or group:NAME as NAME",
        ),
        (["bob", "or*", "--consume"], "or*: with --consume, expected one name and no prefix"),
        (["bob", "nothing:x"], "'nothing:x' is not a resource: expected TYPE:NAME"),
        (["bob", "group:g", "--consume"], "group:g: with --consume, expected a topic"),
    ],
)
def test_what_is_wrong_is_one_line(log, words, problem):
    result = aclog("why", *words, "--log", log)
    assert (result.code, result.out) == (2, "")
    assert result.complaint.startswith(problem)


def test_principals_that_are_close(tmp_path):
    log = write_log(tmp_path / "log", [acl(1, principal="User:Fraud"), acl(2, principal="Team:ops")])
    result = aclog("why", "fraud", "1", "--log", log)
    assert result.code == 1
    assert "is for User:fraud: did you mean User:Fraud? (upper and lower case differ)" in result.err
    assert "did you mean User:Fraud?" in aclog("why", "User:Fruad", "1", "--log", log).err
    assert "did you mean" not in aclog("why", "nobody", "1", "--log", log).err, "only the type is alike"
    assert "no ACL and no SCRAM credential is for User:ops, but Team:ops: expected TYPE:NAME" in (
        aclog("why", "ops", "1", "--log", log).complaint
    )
    assert "no ACL" not in aclog("why", "Team:ops", "2", "--log", log).ok().err


def test_kafkas_that_decide_differently(tmp_path):
    log = write_log(
        tmp_path / "log",
        [registration(1, 30), registration(2, 33)],
        [acl(1, name="t")],
        [acl(2, name="t", principal="User:bob", permission=DENY)],
    )
    assert answer(log, "alice", "t")["since"]["offset"] == 2  # no range: they decide alike


RULES = dict(enumerate(product(("User:a", "User:b", "User:*"), (DENY, ALLOW)), start=1))
STEPS = st.lists(st.lists(st.sampled_from(sorted(RULES)), min_size=1, max_size=3), min_size=1, max_size=8)
"""Batches of numbers of ACLs; each adds the ACL, or removes it if it is there."""


def is_allowed(rules: set[int]) -> bool:
    """Whether User:a may READ: the least that Kafka's decision is."""
    permissions = {permission for who, permission in map(RULES.get, rules) if who in ("User:a", "User:*")}
    return permissions == {ALLOW}


@given(STEPS, st.integers(0, 8))
def test_since_is_the_last_state_that_was_decided_otherwise(tmp_path_factory, steps, transaction):
    """Also where two batches became visible together, by a transaction."""
    rules: set[int] = set()
    batches, states, offset = [], [(0, False)], 0
    for index, step in enumerate(steps):
        records = [BeginTransactionRecord()] if index == transaction and index + 1 < len(steps) else []
        for number in step:
            who, permission = RULES[number]
            added = acl(number, name="t", principal=who, permission=permission)
            records.append(removal(number) if number in rules else added)
            rules ^= {number}
        if index == transaction + 1:
            records.append(EndTransactionRecord())
        batches.append(records)
        offset += len(records)
        if index != transaction or index + 1 == len(steps):
            states.append((offset, is_allowed(rules)))
    row = answer(write_log(tmp_path_factory.mktemp("log"), *batches), "User:a", "t")
    now = states[-1][1]
    changed = [number for number in range(1, len(states)) if states[number][1] is not states[number - 1][1]]
    assert (row["decision"] == "ALLOWED") is now
    assert row["since"]["endOffset"] == (states[changed[-1]][0] if changed else 0)
    assert (row["since"]["change"] is None) is not bool(changed)
    assert (row["before"] or {}).get("decision") == (None if not changed else "DENIED" if now else "ALLOWED")


@pytest.mark.parametrize(
    ("topic", "near"), [("ordres", "orders"), ("orders", None), ("pay-x", None), ("*", None), ("unlike", None)]
)
def test_a_mistyped_topic_is_noted(tmp_path, topic, near):
    """Unless the source has it, an ACL covers it by its prefix, or no name is similar."""
    rules = tmp_path / "rules.csv"
    head = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host"
    rows = ["User:bob,Topic,LITERAL,orders,Read,Allow,*", "User:bob,Topic,PREFIXED,pay-,Read,Allow,*"]
    rules.write_text("\n".join((head, *rows, "User:bob,Topic,LITERAL,pay,Read,Allow,*")) + "\n")
    for words, note in (
        (("why", "bob", topic), f"no ACL has the name {topic!r}: did you mean {near}?"),
        (
            ("who-can", "--operation", "READ", "--topic", topic),
            f"no ACL is on TOPIC {topic}: did you mean TOPIC {near}?",
        ),
    ):
        noted = [line for line in aclog(*words, "--acls", rules).err.splitlines() if "did you mean" in line]
        assert noted == ([f"aclog: note: {note}"] if near else [])
