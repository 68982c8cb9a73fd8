"""`acls history`, `acls copy` and `tokens list`, on the week of tests/data/week."""

import csv
import json
import shutil

import pytest

from tests.support.builders.week import WEEK, write_week
from tests.support.cli.command import aclog

NIGHT = "2026-11-19 18:00"


@pytest.fixture
def log(tmp_path):
    shutil.copytree(WEEK / "log", tmp_path / "log")
    return tmp_path / "log"


def test_the_week_is_what_its_builder_writes(tmp_path):
    write_week(tmp_path)
    for path in ("log/00000000000000000000.log", "kafka-authorizer.log", "rules.jsonl", "pull-request.jsonl"):
        assert (tmp_path / path).read_bytes() == (WEEK / path).read_bytes()


def test_a_history_since_a_moment_has_what_became_visible_after_it():
    out = aclog("acls", "history", "--log", WEEK / "log", "--since", NIGHT, "--format", "csv").ok().out
    rows = list(csv.DictReader(out.splitlines()))
    assert [(row["offset"], row["change"], row["principal"]) for row in rows] == [
        ("37", "REMOVED", "User:reports"),
        ("38", "ADDED", "User:*"),
        ("39", "REMOVED", "User:*"),
    ]


def test_a_table_without_a_record_of_applies_has_no_columns_for_them():
    asked = "acls", "history", "--log", WEEK / "log"
    done = aclog(*asked).ok()
    assert done.lines[0].split()[-1] == "ID"
    assert "APPLY" not in done.err
    assert aclog(*asked, "--format", "csv").ok().lines[0].endswith(",apply,who,git")
    assert aclog(*asked, "--columns", "offset,apply").ok().lines[0].split() == ["OFFSET", "APPLY", "RUN"]


def test_a_history_ends_at_a_moment_and_may_be_of_one_principal():
    asked = "acls", "history", "--log", WEEK / "log", "--principal", "User:*", "--format", "jsonl"
    [row] = map(json.loads, aclog(*asked, "--as-of", "2026-11-20").ok().lines)
    assert (row["timestamp"], row["change"], row["resourceName"]) == (1795128000000, "ADDED", "orders")
    assert "2026-11-19T22:40:00.000Z" in aclog(*asked[:-2]).ok().out


def test_a_history_since_before_the_log_is_all_of_it_with_a_note():
    whole = aclog("acls", "history", "--log", WEEK / "log").ok()
    early = aclog("acls", "history", "--log", WEEK / "log", "--since", "2026-11-01").ok()
    assert early.out == whole.out
    assert "--since 2026-11-01T00:00:00Z: the log begins later: all of its changes are listed" in early.err
    spoken = aclog("acls", "history", "--log", WEEK / "log", "--since", "9000d").ok()
    assert spoken.out == whole.out
    assert "9000d ago is " in spoken.err


def test_a_history_without_a_change_since_a_moment_has_a_note_on_the_last_one():
    asked = "acls", "history", "--log", WEEK / "log", "--since", "2026-11-25T14:00:00Z"
    empty = aclog(*asked).ok()
    assert empty.out == ""
    last = "no change after 2026-11-25T14:00:00Z; the last one is at 2026-11-20T07:15:00.000Z (offset 39)"
    assert f"note: {last}" in empty.err
    of_one = aclog(*asked, "--principal", "User:contractor").ok()
    assert "the last one is at 2026-11-19T15:00:00.000Z (offset 36)" in of_one.err
    nothing = "no change of ACLs of User:nil after 2026-11-25T14:00:00Z, and no earlier one is in the log"
    assert nothing in aclog(*asked, "--principal", "User:nil").ok().err
    assert "no change" not in aclog(*asked[:-1], NIGHT).ok().err
    rows = aclog(*asked, "--format", "json").ok()
    assert (json.loads(rows.out), rows.err) == ([], "")


def test_a_history_of_resources_has_the_changes_of_the_acls_that_acls_list_selects():
    asked = "acls", "history", "--log", WEEK / "log", "--format", "jsonl"
    whole = [json.loads(line) for line in aclog(*asked).ok().lines]
    topics = {row["resourceName"] for row in whole if row["resourceType"] == "TOPIC"}
    for topic in sorted(topics - {"*"}):
        for compared, expected in (
            ("literal", {(topic, "LITERAL")}),
            ("any", {(topic, "LITERAL"), (topic, "PREFIXED")}),
            ("match", {(topic[:end], "PREFIXED") for end in range(1, len(topic) + 1)}
             | {(topic, "LITERAL"), ("*", "LITERAL")}),
        ):  # fmt: skip
            of_topic = aclog(*asked, "--topic", topic, "--resource-pattern-type", compared).ok().lines
            assert list(map(json.loads, of_topic)) == [
                row
                for row in whole
                if row["resourceType"] == "TOPIC" and (row["resourceName"], row["patternType"]) in expected
            ]
    of_both = aclog(*asked, "--topic", "orders", "--principal", "User:*").ok().lines
    assert of_both == aclog(*asked, "--principal", "User:*").ok().lines != []
    of_one = aclog("acls", "history", "--log", WEEK / "log", "--topic", "payments.eu").ok()
    also = aclog("acls", "history", "--log", WEEK / "log", "--topic", "payments.eu", "--resource-pattern-type", "match")
    more = len(also.ok().lines) - len(of_one.lines)
    assert more > 0
    note = f"{more} changes of other ACLs that affect these names: --resource-pattern-type match"
    assert of_one.err == f"aclog: note: {note}\n"
    assert also.err == ""
    nothing = aclog("acls", "history", "--log", WEEK / "log", "--group", "nil").ok()
    assert (nothing.out, nothing.err) == ("", "aclog: note: no change of ACLs on these resources in the log\n")


def test_a_history_since_the_future_is_refused_and_so_is_one_of_a_state():
    late = aclog("acls", "history", "--log", WEEK / "log", "--since", "2099-01-01")
    assert (late.code, late.out) == (2, "")
    assert "'2099-01-01' is in the future: it is 20" in late.complaint
    assert "has no history" in aclog("acls", "history", "--acls", WEEK / "rules.jsonl").err


def test_a_log_that_begins_with_a_checkpoint_says_since_when_it_knows(tmp_path):
    from aclog.metalog.batches import iter_batches
    from aclog.metalog.filelog import open_reader

    aclog("snapshot", "create", "--log", WEEK / "log", "--as-of", NIGHT, "--out", tmp_path).ok()
    with open_reader(WEEK / "log") as reader:
        data = reader.read(0)
    rest = b"".join(data[at : at + header.size] for at, header in iter_batches(data) if header.base_offset >= 37)
    (tmp_path / "00000000000000000037.log").write_bytes(rest)
    whole = aclog("acls", "history", "--log", tmp_path, "--format", "jsonl").ok()
    assert len(whole.lines) == 3
    assert "begins with the state at offset 37" in whole.err
    early = aclog("acls", "history", "--log", tmp_path, "--since", "20")
    assert early.ok().out == aclog("acls", "history", "--log", tmp_path).out
    assert "--since 20: the log begins with the state at offset 37: all of its changes are listed" in early.err


QUESTION = ("--operation", "READ", "--topic", "orders")


@pytest.mark.parametrize(
    "words",
    [
        ("acls", "list"),
        ("acls", "history"),
        ("what-can",),
        ("when", *QUESTION),
        ("authorize", *QUESTION),
        ("explain", *QUESTION),
        ("explain", "--intent", "consume", "--topic", "orders", "--group", "g"),
    ],
)
def test_a_question_takes_a_principal_without_a_type_for_a_user(words):
    short = aclog(*words, "--log", WEEK / "log", "--principal", "reports")
    full = aclog(*words, "--log", WEEK / "log", "--principal", "User:reports")
    assert full.code in {0, 1}
    assert full.out
    assert (short.code, short.out) == (full.code, full.out)
    assert short.err.count("note: --principal reports: taken as User:reports\n") == 1
    assert "taken as" not in full.err


@pytest.mark.parametrize("command", ["list", "history"])
@pytest.mark.parametrize("name", ["", "--topic"])
def test_an_empty_principal_is_refused_and_so_is_a_flag(command, name):
    refused = aclog("acls", command, "--log", WEEK / "log", "--principal", name)
    assert (refused.code, "principalType:principalName" in refused.complaint) == (2, True)


@pytest.mark.parametrize("command", ["add", "remove"])
def test_a_change_takes_no_principal_without_a_type(command, log):
    rule = ("--allow-principal", "reports", "--operation", "READ", "--topic", "t")
    refused = aclog("acls", command, "--log", log, *rule, "--force")
    assert (refused.code, "principalType:principalName but got reports" in refused.complaint) == (2, True)


def test_a_copy_has_the_rules_of_the_other_principal_those_that_deny_included(log):
    asked = "acls", "copy", "--log", log, "--from-principal", "User:fraud", "--to-principal", "User:fraud-eu"
    assert aclog(*asked).ok().out.count("Adding ACLs") == 3

    def rules(principal):
        columns = "resourceType,resourceName,patternType,host,operation,permissionType"
        listed = aclog("acls", "list", "--log", log, "--principal", principal, "--format", "csv", "--columns", columns)
        return sorted(listed.ok().lines)

    assert rules("User:fraud-eu") == rules("User:fraud")
    assert len(rules("User:fraud")) == 4
    assert aclog(*asked).ok().out.count("already exists") == 3


@pytest.mark.parametrize(
    ("original", "other", "what"),
    [
        ("User:nobody", "User:a", "no ACL is of this principal"),
        ("User:fraud", "User:fraud", "expected another principal"),
        ("fraud", "User:a", "principalType:principalName"),
    ],
)
def test_a_copy_that_is_hardly_meant_is_refused(log, original, other, what):
    refused = aclog("acls", "copy", "--log", log, "--from-principal", original, "--to-principal", other)
    assert refused.code == 2
    assert what in refused.complaint


def test_tokens_are_listed_by_when_they_expire():
    asked = "tokens", "list", "--log", WEEK / "log", "--format", "jsonl"
    tokens = [json.loads(line)["tokenId"] for line in aclog(*asked).ok().lines]
    assert tokens == ["token-of-reports", "token-of-fraud"]
    [soon] = map(json.loads, aclog(*asked, "--expires-before", "2026-11-23").ok().lines)
    assert soon["owner"] == "User:reports"
    assert aclog(*asked, "--owner-principal", "User:nobody").ok().lines == []


def test_tokens_are_in_no_file_of_rules_and_at_no_broker_without_a_login():
    assert "tokens are in a log" in aclog("tokens", "list", "--acls", WEEK / "rules.jsonl").complaint
    assert "expected a time" in aclog("tokens", "list", "--log", WEEK / "log", "--expires-before", "7").complaint
