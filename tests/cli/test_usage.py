"""`aclog usage` and `aclog simulate`: what they print, and what they refuse."""

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from aclog.cli.schema import schema_of
from aclog.ops.tables import rule_text
from aclog.usage.decisions.intervals import ALWAYS
from aclog.usage.evidence import Youth
from aclog.usage.window import Window, of_micros
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.cli.command import aclog
from tests.support.spark.access_logs import audit_text

WEEK = Path(__file__).parents[1] / "data" / "week"
RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip
RULES = [RULE, RULE | {"principal": "User:*"}, RULE | {"resourceName": "never"}, RULE | {"principal": "User:b"}]
ACCESS = {
    "principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "orders",
    "timestamp": "2026-11-21T10:00:00Z",
}  # fmt: skip


def written(path, objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


@pytest.fixture
def acls(tmp_path):
    return written(tmp_path / "acls.jsonl", RULES)


def answers(*arguments):
    """(answer, matched, needed, removable) by principal and name."""
    rows = [json.loads(line) for line in aclog("usage", *arguments, "--format", "jsonl").ok().lines]
    keys = {*RULE, "id", "answer", "matched", "needed", "removable"}
    assert all(set(row) - {"premises"} == keys for row in rows)
    return {
        (row["principal"], row["resourceName"]): (row["answer"], row["matched"], row["needed"], row["removable"])
        for row in rows
    }


def test_answers(tmp_path, acls):
    log = written(tmp_path / "log", [ACCESS] * 3 + [ACCESS | {"principal": "User:c"}])
    assert answers("--accesses", log, "--acls", acls) == {
        ("User:a", "orders"): ("NEVER_NEEDED", 3, 0, True),
        ("User:*", "orders"): ("NEEDED", 4, 1, False),
        ("User:a", "never"): ("NEVER_MATCHED", 0, 0, True),
        ("User:b", "orders"): ("NEVER_MATCHED", 0, 0, True),
    }


def test_the_window_ends_at_the_latest_access(tmp_path, acls):
    old = [ACCESS | {"principal": "User:c", "timestamp": f"2026-11-{day:02}T10:00:00Z"} for day in (11, 18, 20)]
    log = written(tmp_path / "log", [*old, ACCESS])
    assert answers("--accesses", log, "--acls", acls, "--days", 2)["User:*", "orders"][1:3] == (2, 1)
    assert answers("--accesses", log, "--acls", acls, "--days", 3)["User:*", "orders"][1:3] == (3, 2)
    until = ("--until", "2026-11-20T10:00:00Z")
    assert answers("--accesses", log, "--acls", acls, "--days", 2, *until)["User:*", "orders"][1:3] == (2, 2)


@pytest.mark.process
def test_files_in_several_forms_and_processes(tmp_path, acls):
    (tmp_path / "logs.d").mkdir()
    for number in range(3):
        written(tmp_path / "logs.d" / f"{number}.jsonl", [ACCESS | {"host": f"10.0.0.{number}"}])  # no copies
    line = audit_text(name="orders").replace("is Denied", "is Allowed") + "\n"
    (tmp_path / "logs.d" / "kafka-authorizer.log.1.gz").write_bytes(gzip.compress(line.encode()))
    found = answers("--accesses", tmp_path / "logs.d", "--acls", acls, "--workers", 2)
    assert found["User:a", "orders"][1] == 4


def test_each_access_is_judged_by_the_acls_of_its_own_time(tmp_path):
    log = write_log(tmp_path / "metadata", [acl(1), acl(2)], [removal(2)], [acl(3)])  # at 1, 2 and 3 s
    accesses = [ACCESS | {"resourceName": str(name), "timestamp": time} for name, time in
                ((2, 1500), (2, 2500), (3, 2500), (3, 3500), (1, 3600))]  # fmt: skip
    rules = [json.loads(line) for line in aclog("acls", "list", "--log", log, "--as-of", 2, "--format", "jsonl").lines]
    for access in accesses:
        access |= {"principal": rules[0]["principal"], "operation": rules[0]["operation"]}
    path = written(tmp_path / "accesses", accesses)
    result = aclog("usage", "--accesses", path, "--log", log, "--format", "jsonl", "--days", 1)
    rows = {row["resourceName"]: row for row in map(json.loads, result.ok().lines)}
    assert {name: (row["matched"], row["answer"]) for name, row in rows.items()} == {
        "1": (1, "NOT_JUDGED"), "2": (1, "NOT_JUDGED"), "3": (1, "NOT_JUDGED"),
    }  # fmt: skip
    assert "not judged: the log does not reach back" not in aclog("usage", "--accesses", path, "--log", log).out


def test_denials_by_rules_without_ids_have_the_text_of_their_own_rule(tmp_path):
    denies = [RULE | {"permissionType": "DENY", "host": host} for host in ("10.0.0.1", "10.0.0.2")]
    acls = written(tmp_path / "acls.jsonl", [*denies, RULE])
    hosts = ["10.0.0.1"] * 3 + ["10.0.0.2"] * 2
    unknown = ACCESS | {"principal": "User:c"}
    log = written(tmp_path / "log", [*(ACCESS | {"host": host} for host in hosts), unknown])
    lines = aclog("usage", "--accesses", log, "--acls", acls).ok().lines
    start = next(at for at, line in enumerate(lines) if line.startswith("denied  last"))
    column = lines[start].index("rule")
    assert [line[column:] for line in lines[start + 1 :]] == [
        "DENY User:a READ on TOPIC LITERAL 'orders' from 10.0.0.1",
        "DENY User:a READ on TOPIC LITERAL 'orders' from 10.0.0.2",
        "DefaultDeny",
    ]


DAY_MS = 86_400_000


def removable_by(directory, batches, accesses):
    """The principals, hosts and permission types of removable ACLs, given batches by day and (day, principal)."""
    log = write_log(directory / "metadata", *batches.values(), times=[day * DAY_MS for day in batches])
    rows = [ACCESS | {"principal": who, "timestamp": day * DAY_MS} for day, who in accesses]
    path = written(directory / "accesses", rows)
    result = aclog("usage", "--accesses", path, "--log", log, "--days", 5, "--format", "jsonl").ok()
    rows = map(json.loads, result.lines)
    return {(row["principal"], row["host"], row["permissionType"]) for row in rows if row["removable"]}


@pytest.mark.parametrize("day", [11_007, 11_009, 11_020])
def test_a_deny_that_overrules_an_allow_younger_than_the_access_is_not_removable(tmp_path, day):
    deny, other = acl(1, name="orders", permission=2), acl(2, name="orders", host="10.0.0.9")
    batches = {11_000: [deny, other], day: [acl(3, name="orders")]}
    accesses = [(11_006, "User:alice"), (11_010, "User:bob")]
    assert removable_by(tmp_path, batches, accesses) == {("User:alice", "10.0.0.9", "ALLOW")}


def test_what_an_acl_covers_that_was_removed_after_the_window_is_no_longer_covered(tmp_path):
    batches = {11_000: [acl(1, name="orders"), acl(2, name="orders", host="10.0.0.1")], 11_020: [removal(1)]}
    assert removable_by(tmp_path, batches, [(day, "User:alice") for day in (11_006, 11_010)]) == set()


def test_what_is_said_for_people(tmp_path, acls):
    log = written(tmp_path / "log", [ACCESS, ACCESS | {"operation": "WRITE"}])
    with log.open("a") as file:
        file.write("no access\n")
    result = aclog("usage", "--accesses", log, "--acls", acls, "--days", 2).ok()
    assert result.lines[:12] == [
        "window of 2 days: 2026-11-19T10:00:00Z to 2026-11-21T10:00:00Z",
        "",
        "accesses  status",
        "2         evaluated against the ACLs, for the verdicts below",
        "2         read in total",
        "",
        "ACLs  removable  verdict        meaning",
        "2     2          NEVER_MATCHED  no access matched the ACL",
        "2     1          NEVER_NEEDED   every access would be decided the same without it",
        "0     0          NEEDED         an access would be decided differently without it",
        "0     0          NOT_JUDGED     not in force for the entire window, or its use is unknown",
        "",
    ]
    condition = "if the log is complete (no accesses on 2 of the 3 UTC dates of the window, partial ones included)"
    assert f"3 ACLs can be removed together {condition}:" in result.lines
    assert result.err.splitlines() == [
        "aclog: note: the source has no history: all of its ACLs are assumed to be in force in the whole window",
        (
            "aclog: warning: no accesses on 2026-11-19 to 2026-11-20 (2 of the 3 UTC dates of the window, partial ones "
            "included): the cluster was idle, or the log is incomplete"
        ),
        "aclog: warning: 1 line skipped: MALFORMED 1",
    ]


def test_rules_that_are_not_judged_have_a_reason_and_denials_the_text_of_their_rule():
    week = Path(__file__).parents[1] / "data" / "week"
    accesses = week / "kafka-authorizer.log"
    lines = aclog("usage", "--log", week / "log", "--accesses", accesses, "--days", 4).ok().lines
    unjudged = [line for line in lines if line.startswith("  NOT_JUDGED")]
    assert len(unjudged) == 3
    assert lines[lines.index(unjudged[0]) - 1] == "3 ACLs are not judged:"
    assert (
        "  NOT_JUDGED      ALLOW User:contractor READ on TOPIC PREFIXED 'payments.' from *: in force only since "
        "2026-11-19T15:00:00Z, after the window began"
    ) in unjudged
    assert any(
        line.endswith("(removed 2026-11-19T22:40:00Z): not in force at the end of the window") for line in unjudged
    )
    assert any(line.endswith("DENY User:fraud READ on TOPIC LITERAL 'payments.eu' from 10.0.0.9") for line in lines)


def test_refusals(tmp_path, acls):
    log = written(tmp_path / "log", [{**ACCESS, "timestamp": None}])
    for arguments, complaint in (
        (("--accesses", log), f"{log}: no access has a timestamp"),
        (("--accesses", tmp_path / "nothing"), "no such file"),
        (("--accesses", log, "--accesses-format", "xml"), "expected parquet, orc, jsonl, kafka-log"),
        (("--accesses", log, "--accesses-timezone", "Mars"), "zone"),
        (("--accesses", log, "--until", "17"), "expected a time"),
        (("--accesses", log, "--days", "99999"), "a window of 99999 days"),
    ):
        result = aclog("usage", *arguments, "--acls", acls)
        assert result.code == 2
        assert complaint in result.complaint


NO_TIME = {**ACCESS, "timestamp": None}


def flips(*arguments):
    """The rows of `simulate`."""
    return [json.loads(line) for line in aclog("simulate", *arguments, "--format", "jsonl").lines]


def counts(*arguments):
    """The exit code, and the accesses by change."""
    result = aclog("simulate", *arguments)
    first = result.out.split("\n\n", maxsplit=1)[0].splitlines()[1:]
    return result.code, {line.split()[-1]: int(line.split()[0]) for line in first}


def test_simulate(tmp_path, acls):
    accesses = [ACCESS, NO_TIME, ACCESS | {"principal": "User:c"}, ACCESS | {"host": "x"}]
    before = ("--accesses", written(tmp_path / "log", accesses), "--acls", acls)
    assert counts(*before, "--to-acls", acls) == (0, {"GAINED": 0, "LOST": 0, "SAME": 4})
    assert aclog("simulate", *before, "--to-acls", acls).lines[-1] == "no logged access would be decided differently"
    change = written(tmp_path / "change", [{"action": "REMOVE", "rule": RULES[1]}])
    assert "no logged access" not in aclog("simulate", *before, "--change", change).out
    assert aclog("simulate", *before, "--change", change).lines[-1].endswith(f"  {rule_text(RULES[1])}  DefaultDeny")
    (row,) = flips(*before, "--change", change)
    assert (row["change"], row["principal"], row["count"]) == ("LOST", "User:c", 1)
    assert (row["decisionBefore"], row["decisionAfter"], row["ruleAfter"]) == ("ALLOWED", "DENIED", "DefaultDeny")
    closed = written(tmp_path / "closed", [RULE | {"resourceName": "other"}])
    assert counts(*before, "--to-acls", closed) == (1, {"GAINED": 0, "LOST": 3, "SAME": 0, "NOT_JUDGED": 1})
    assert [(row["count"], row["firstAt"]) for row in flips(*before, "--to-acls", closed)] == [
        (2, "2026-11-21T10:00:00Z"),
        (1, "2026-11-21T10:00:00Z"),
    ]


@pytest.mark.parametrize("text", ["", "{}\n"])
def test_simulate_refuses_a_log_without_accesses(tmp_path, acls, text):
    (tmp_path / "log").write_text(text)
    result = aclog("simulate", "--accesses", tmp_path / "log", "--acls", acls, "--to-acls", acls)
    assert (result.code, result.out) == (2, "")
    assert result.complaint.endswith("no line is an access: expected one at least")


def test_simulate_needs_no_times(tmp_path, acls):
    log, closed = written(tmp_path / "log", [NO_TIME]), written(tmp_path / "closed", [])
    (row,) = flips("--accesses", log, "--acls", acls, "--to-acls", closed)
    assert (row["firstAt"], row["lastAt"], row["count"]) == (None, None, 1)


def test_a_log_of_denials_alone_has_no_use_of_an_allow(tmp_path, acls):
    denial = audit_text(name="orders") + "\n"
    (tmp_path / "log").write_text(denial)
    found = aclog("usage", "--accesses", tmp_path / "log", "--acls", acls, "--format", "jsonl").ok()
    rows = [json.loads(line) for line in found.lines]
    assert {(row["answer"], row["removable"]) for row in rows if row["permissionType"] == "ALLOW"} <= {
        ("NOT_JUDGED", False),
        ("NEEDED", False),
    }
    assert "no ALLOW is judged, and no ACL counts as removable" in found.err
    (tmp_path / "log").write_text(denial + denial.replace("is Denied", "is Allowed"))
    rows = [
        json.loads(line)
        for line in aclog("usage", "--accesses", tmp_path / "log", "--acls", acls, "--format", "jsonl").ok().lines
    ]
    assert any(row["removable"] for row in rows)


def premises(*arguments) -> dict[str, list[str] | None]:
    """By principal and name."""
    rows = [json.loads(line) for line in aclog("usage", *arguments, "--format", "jsonl").ok().lines]
    return {row["principal"] + row["resourceName"]: row.get("premises") for row in rows}


def test_rows_have_what_is_unknown_of_their_answers(tmp_path, acls):
    log = written(tmp_path / "log", [ACCESS | {"principal": "User:c"}])
    always = ["history"]
    expected = {"User:aorders": always, "User:*orders": [], "User:anever": always, "User:borders": always}
    assert premises("--accesses", log, "--acls", acls, "--days", 1, "--until", "2026-11-21T23:59:59Z") == {
        name: each and [*each, "days"] for name, each in expected.items()
    }
    written(
        tmp_path / "log",
        [ACCESS | {"principal": "User:c", "timestamp": f"2026-11-{day}T10:00:00Z"} for day in (20, 21)],
    )
    assert premises("--accesses", log, "--acls", acls, "--days", 1) == expected
    history = tmp_path / "history"
    write_log(history, [acl(1)], [acl(2)])
    assert set(map(str, premises("--accesses", log, "--log", history, "--days", 1).values())) == {"None"}


def test_acls_that_were_removed_are_marked_and_counted_apart(tmp_path):
    log = write_log(tmp_path / "metadata", [acl(1), acl(2)], [removal(2)])
    accesses = written(tmp_path / "log", [ACCESS | {"timestamp": 2500}])
    text = aclog("usage", "--accesses", accesses, "--log", log, "--days", 1).ok()
    assert "2 ACLs in the metadata log: 1 exists at its end, 1 was removed before" in text.lines
    found = aclog("usage", "--accesses", accesses, "--log", log, "--days", 1, "--format", "jsonl").ok()
    rows = [json.loads(line) for line in found.lines]
    assert {row["resourceName"]: row["removedAt"] for row in rows} == {"1": None, "2": "1970-01-01T00:00:02Z"}
    removed = aclog("usage", "--accesses", accesses, "--log", log, "--as-of", 2, "--format", "jsonl").ok()
    assert all("removedAt" not in json.loads(line) for line in removed.lines)


def test_if_all_acls_are_younger_than_the_window_a_shorter_one_is_named():
    week = ("--log", WEEK / "log", "--accesses", WEEK / "kafka-authorizer.log")
    expected = (
        "no ACL can be judged: each ACL was first seen after the window began (the oldest at 2026-11-16T09:10:00Z). "
        "16 of the 17 ACLs in force at the end of the window can be judged with --days 4"
    )
    assert expected in aclog("usage", *week, "--days", 90).ok().lines
    found = aclog("usage", *week, "--days", 90, "--format", "jsonl").ok()
    assert expected in found.err
    rows = [json.loads(line) for line in found.lines]
    assert {row["answer"] for row in rows} == {"NOT_JUDGED"}
    assert {(row["knownSince"], row["judgedByDays"]) for row in rows if row["removedAt"] is None} == {
        ("2026-11-16T09:10:00Z", 4),
        ("2026-11-19T15:00:00Z", None),
    }
    shorter = [json.loads(line) for line in aclog("usage", *week, "--days", 4, "--format", "jsonl").ok().lines]
    judged = [row for row in shorter if row["answer"] != "NOT_JUDGED"]
    assert (len(judged), any("knownSince" in row for row in shorter)) == (16, False)
    assert (
        "No window of whole days is short enough to judge one"
        in aclog("usage", *week, "--until", "2026-11-17T09:00:00Z").ok().out
    )


def test_types_of_resources_that_the_log_has_no_access_to_are_named():
    week = ("--log", WEEK / "log", "--accesses", WEEK / "kafka-authorizer.log", "--days", 4)
    expected = (
        "no request on a CLUSTER or a GROUP is in the access log: before you remove the 6 removable ACLs on "
        "such resources, check that such requests are logged"
    )
    assert expected in aclog("usage", *week).ok().lines
    found = aclog("usage", *week, "--format", "jsonl").ok()
    assert expected in found.err
    removable = [row for row in map(json.loads, found.lines) if row["removable"]]
    assert {row["resourceType"]: row["premises"] for row in removable} == {
        "TOPIC": [],
        "GROUP": ["requests"],
        "CLUSTER": ["requests"],
    }


WEEK_OF_NOVEMBER = 1_795_132_800_000  # 2026-11-20, in ms since 1970
DAY_MS = 86_400_000


def changed_after(directory):
    """A log with ACLs 1 to 3 before the week, whose last change is after it: 2 and 3 are removed, and 4 is added."""
    times = [WEEK_OF_NOVEMBER - 9 * DAY_MS, WEEK_OF_NOVEMBER + 5 * DAY_MS]
    return write_log(directory, [acl(1), acl(2), acl(3)], [removal(2), removal(3), acl(4)], times=times)


def test_acls_that_were_removed_after_the_window_are_judged_but_not_removable(tmp_path):
    log = changed_after(tmp_path / "metadata")
    accesses = written(tmp_path / "log", [ACCESS | {"timestamp": WEEK_OF_NOVEMBER + day * DAY_MS} for day in (-1, 0)])
    asked = ("usage", "--accesses", accesses, "--log", log, "--days", 2)
    text = aclog(*asked).ok()
    condition = "if the log is complete (no accesses on 1 of the 3 UTC dates of the window, partial ones included)"
    assert f"1 ACL can be removed together {condition}:" in text.lines
    rows = [json.loads(line) for line in aclog(*asked, "--format", "jsonl").ok().lines]
    assert {row["resourceName"]: (row["answer"], row["removable"]) for row in rows} == {
        "1": ("NEVER_MATCHED", True), "2": ("NEVER_MATCHED", False), "3": ("NEVER_MATCHED", False),
        "4": ("NOT_JUDGED", False),
    }  # fmt: skip


def test_no_acl_is_removable_for_one_that_was_removed_since(tmp_path):
    times = [WEEK_OF_NOVEMBER - 9 * DAY_MS, WEEK_OF_NOVEMBER + 5 * DAY_MS]
    whose = enumerate(("User:a", "User:*", "User:z"), 1)  # of the last one, so that the topic keeps an ACL
    alike = [acl(number, name="orders", principal=who, host="*") for number, who in whose]
    log = write_log(tmp_path / "metadata", alike, [removal(2)], times=times)
    other = {"principal": "User:c"}
    accesses = written(tmp_path / "log", [ACCESS | more | {"timestamp": WEEK_OF_NOVEMBER} for more in ({}, other)])
    for flags in ((), ("--allow-everyone-if-no-acl-found",)):
        found = answers_and_more("--accesses", accesses, "--log", log, "--days", 1, *flags)
        assert found["User:a"] == ("NEVER_NEEDED", False)


def answers_and_more(*arguments):
    rows = [json.loads(line) for line in aclog("usage", *arguments, "--format", "jsonl").ok().lines]
    return {row["principal"]: (row["answer"], row["removable"]) for row in rows}


def test_the_oldest_time_is_that_of_the_acls_in_force(tmp_path):
    hour = DAY_MS // 24
    times = [WEEK_OF_NOVEMBER + each * hour for each in (0, 1, 2, 3)]
    log = write_log(tmp_path / "metadata", [acl(1)], [removal(1)], [acl(3)], [acl(2)], times=times)
    accesses = written(tmp_path / "log", [ACCESS | {"timestamp": WEEK_OF_NOVEMBER + 12 * hour}])
    found = aclog("usage", "--accesses", accesses, "--log", log, "--days", 30).ok()
    assert "(the oldest at 2026-11-20T02:00:00Z). No window of whole days is short enough to judge one" in found.out


def test_the_oldest_time_is_the_earliest_of_equal_days_and_one_removed_long_ago_may_be_known_since_always():
    micros, later = pa.timestamp("us", tz="UTC"), WEEK_OF_NOVEMBER + DAY_MS // 24
    rules = pa.table({
        "in_force_from": pa.array([None, later * 1000, WEEK_OF_NOVEMBER * 1000], micros),
        "in_force_to": pa.array([WEEK_OF_NOVEMBER * 1000, None, None], micros),
    })  # fmt: skip
    window = Window.ending(of_micros((later + 2 * DAY_MS) * 1000), 30)
    youth = Youth.of(SimpleNamespace(rules=rules, window=window, known_from=ALWAYS))
    assert youth.days.tolist() == [0, 2, 2]
    assert (youth.time(0), youth.oldest) == (None, WEEK_OF_NOVEMBER)


def test_acls_of_which_all_were_removed_after_the_window_are_judged(tmp_path):
    times = [WEEK_OF_NOVEMBER - 9 * DAY_MS, WEEK_OF_NOVEMBER + 5 * DAY_MS]
    removals = [removal(number) for number in (1, 2, 3)]
    log = write_log(tmp_path / "metadata", [acl(1), acl(2), acl(3)], [*removals, acl(4)], times=times)
    accesses = written(tmp_path / "log", [ACCESS | {"timestamp": WEEK_OF_NOVEMBER}])
    asked = ("usage", "--accesses", accesses, "--log", log, "--days", 2)
    text = aclog(*asked).ok()
    assert "no ACL can be judged" not in text.out
    assert "no ACL is known to be removable" in text.lines
    rows = [json.loads(line) for line in aclog(*asked, "--format", "jsonl").ok().lines]
    assert [row["answer"] for row in rows].count("NEVER_MATCHED") == 3
    assert not any(row["removable"] or "knownSince" in row for row in rows)


def test_rows_with_all_that_is_there_at_times_are_as_the_schema_says(tmp_path):
    validator = Draft202012Validator(schema_of("rule-usage"))
    week = ("usage", "--log", WEEK / "log", "--accesses", WEEK / "kafka-authorizer.log", "--format", "jsonl")
    keys, premises = set(), set()
    for flags in (("--days", 90), ("--days", 4)):
        for row in map(json.loads, aclog(*week, *flags).ok().lines):
            validator.validate(row)
            keys |= row.keys()
            premises |= {*row.get("premises", ())}
    assert keys >= {"removedAt", "knownSince", "judgedByDays"}
    assert "requests" in premises
