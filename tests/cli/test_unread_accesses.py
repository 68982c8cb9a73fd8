"""What could not be read or decided is never "never": every command, with each spelling that no command can read."""

import gzip
import json
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.sources.accesses import read_accesses
from aclog.usage.index.database import FILE
from tests.support.cli.command import aclog

RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip
PAY = RULE | {"principal": "User:b", "resourceName": "pay"}
DENY = RULE | {"principal": "User:d", "permissionType": "DENY"}
RULES = [RULE, PAY, DENY]
ACCESS = {
    "principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "orders",
    "timestamp": "2026-03-01T10:00:00Z",
}  # fmt: skip
BOB = ACCESS | {"principal": "User:b", "resourceName": "pay"}


def line(time="[2026-03-01 10:00:00,123]", principal="User:b", host="10.0.0.7", decision="Allowed", name="pay") -> str:
    """A line of kafka-authorizer.log, as Kafka 4 writes it."""
    return (
        f"{time} DEBUG Principal = {principal} is {decision} operation = READ from host = {host} on resource = "
        f"Topic:LITERAL:{name} for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny "
        "(kafka.authorizer.logger)"
    )


READ = {
    "slash": BOB | {"host": "/10.0.0.1"},
    "name and slash": BOB | {"host": "app/10.0.0.1"},
    "port": BOB | {"host": "10.0.0.1:54321"},
    "slash and port": BOB | {"host": "/10.0.0.1:54321"},
    "IPv6 and port": BOB | {"host": "app/[2001:db8::1]:54321"},
    "operation": BOB | {"operation": "Read"},
    "lower case": BOB | {"operation": "read"},
    "type": BOB | {"resourceType": "topic"},
    "Kafka's type": BOB | {"resourceType": "Topic"},
    "dot": line("[2026-03-01 10:00:00.123]"),
    "T": line("[2026-03-01T10:00:00,123]"),
    "T and dot": line("[2026-03-01T10:00:00.123]"),
    "no brackets": line("2026-03-01 10:00:00,123"),
    "zone": line("[2026-03-01 10:00:00,123+0000]"),
    "no millis": line("[2026-03-01 10:00:00]"),
    "JSON layout": {"@timestamp": "2026-03-01T10:00:00Z", "log.logger": "other", "message": line()},
}
"""Spellings of an access by User:b that have one meaning."""

UNREAD = {
    "name": BOB | {"host": "app1.example.org"},
    "range": BOB | {"host": "10.0.0.0/8"},
    "network": BOB | {"host": "10.0.0.0/255.0.0.0"},
    "no such operation": BOB | {"operation": "READS"},
    "no such type": BOB | {"resourceType": "TOPICS"},
    "no name": {key: value for key, value in BOB.items() if key != "resourceName"},
    "bad time": BOB | {"timestamp": "soon"},
    "no time": BOB | {"timestamp": None},
    "bad decision": BOB | {"loggedDecision": "MAYBE"},
    "logged name": line(host="app1"),
    "no such day": line("[2026-03-41 10:00:00,123]"),
    "other logger": line().replace("(kafka.authorizer.logger)", "(other)"),
    "torn": line()[:100],
    "other operation": line().replace("READ", "FLY"),
    "other layout": line().replace("from host", "by host"),
}
"""Ways to say that User:b has read pay that tell no more than who it was."""

NOBODYS = {
    "no type of principal": BOB | {"principal": "b"},
    "everybody": BOB | {"principal": "User:*"},
    "no principal": {key: value for key, value in BOB.items() if key != "principal"},
    "torn object": json.dumps(BOB)[:60],
    "end of an object": json.dumps(BOB)[60:],
    "twice": line() + line(),
    "torn head": line()[60:],
    "torn principal": line()[:50],
}
"""Ways that do not tell who it was."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written("acls", RULES)
    return tmp_path


def written(name, found):
    """Write a log; each of its lines is an object or a text."""
    texts = (each if isinstance(each, str) else json.dumps(each) for each in found)
    with open(name, "w") as file:  # noqa: PTH123 - in the place
        file.write("".join(f"{text}\n" for text in texts))
    return name


def log_of(planted):
    """Write a log with an access of User:a before and one after."""
    text = planted if isinstance(planted, str) else json.dumps(planted)
    is_kafkas = isinstance(planted, str) and not text.startswith("{") and '"' not in text
    around = line(principal="User:a", name="orders") if is_kafkas else ACCESS
    return written("log", [around, planted, around])


def usage(*arguments):
    rows = [json.loads(each) for each in aclog("usage", *arguments, "--format", "jsonl").ok().lines]
    return {row["principal"]: (row["answer"], row["removable"], row.get("unread", 0)) for row in rows}


def unused(*, until="2026-03-01T12:00:00Z", gap="3d"):
    command = ("unused", "--acls", "acls", "--index", "index", "--days", 1, "--until", until, "--gap", gap)
    rows = [json.loads(each) for each in aclog(*command, "--format", "jsonl").lines]
    return {row["principal"]: (row["answer"], row["removable"], row.get("unread", 0)) for row in rows}


def said(result):
    return result.out + result.err


LOG = ("--acls", "acls", "--accesses", "log")


@pytest.mark.parametrize("planted", READ.values(), ids=READ)
def test_a_spelling_with_one_meaning_is_read(place, planted):
    log_of(planted)
    assert usage(*LOG)["User:b"] == ("NEEDED", False, 0)
    assert usage(*LOG)["User:d"][0] == "NEVER_MATCHED"
    aclog("usage-index", *LOG, "--index", "index").ok()
    assert unused()["User:b"] == ("NEEDED", False, 0)
    suggested = aclog("suggest", *LOG).ok()
    assert "every logged access of the window is decided as before (3 allowed, 0 denied)" in suggested.err
    written("fewer", [RULE, DENY])
    result = aclog("simulate", *LOG, "--to-acls", "fewer", "--format", "jsonl")
    assert [json.loads(each)["change"] for each in result.lines] == ["LOST"]
    assert "1 of the accesses flips" in aclog("diff", "--acls", "acls", "--to-acls", "fewer", "--accesses", "log").out


@pytest.mark.parametrize("planted", [*UNREAD.values(), *NOBODYS.values()], ids=[*UNREAD, *NOBODYS])
def test_no_command_says_never_of_what_it_could_not_read(place, planted):
    log_of(planted)
    expected = {"User:a": "NEEDED", "User:b": "NOT_JUDGED"}
    found = usage(*LOG)
    assert {who: answer for who, (answer, *_) in found.items() if who != "User:d"} == expected
    assert not found["User:b"][1]
    assert found["User:b"][2] >= 1
    text = said(aclog("usage", *LOG).ok())
    assert "could not be read or decided" in text
    listed = [line.strip() for line in text.splitlines() if "on TOPIC LITERAL 'pay'" in line]
    assert all(line.startswith("NOT_JUDGED ") for line in listed)  # and none is removable

    added = aclog("usage-index", *LOG, "--index", "index", "--format", "jsonl").ok()
    assert json.loads(added.out)["unread"] == 1
    assert "no rule that they may need is reported as unused" in added.err
    found = unused()
    assert {who: answer for who, (answer, *_) in found.items() if who != "User:d"} == expected
    assert found["User:b"][1:] == (False, 1)
    report = aclog("unused", "--acls", "acls", "--index", "index", "--days", 1, "--gap", "3d")
    assert "it may apply to 1 access that could not be read or decided" in report.out

    suggested = aclog("suggest", *LOG, "--out", "want").ok()
    assert "proved" not in said(suggested)
    assert "not judged" in suggested.err
    with open("want") as file:  # noqa: PTH123 - in the place
        wanted = [json.loads(each) for each in file]
    assert PAY in [{key: each[key] for key in PAY} for each in wanted]

    written("fewer", [RULE, DENY])
    simulated = aclog("simulate", *LOG, "--to-acls", "fewer")
    assert simulated.code == 1
    # it needs no times
    assert ("LOST" if planted == UNREAD["no time"] else "NOT_JUDGED") in simulated.out

    seen = read_accesses("log")  # as diff reads it, which needs no times
    assert sum(seen.counts.values()) + seen.unread == 3
    if seen.unread:
        assert (
            "more accesses may flip" in aclog("diff", "--acls", "acls", "--to-acls", "fewer", "--accesses", "log").err
        )

    for where in (("--accesses", "log"), ("--index", "index")):
        covered = aclog("coverage", *where, "--gap", "3d", "--format", "jsonl")
        rows = [row for row in map(json.loads, covered.lines) if row["kind"] == "UNREAD"]
        assert (covered.code, [row["lines"] for row in rows]) == (1, [1])
        assert [row["principal"] for row in rows] == [None if planted in NOBODYS.values() else "User:b"]


@pytest.mark.parametrize("planted", UNREAD.values(), ids=UNREAD)
def test_only_the_rules_of_that_principal_are_not_judged(place, planted):
    written("acls", [*RULES, RULE | {"principal": "User:c"}, RULE | {"principal": "User:*", "resourceName": "x"}])
    log_of(planted)
    aclog("usage-index", *LOG, "--index", "index").ok()
    for found in (usage(*LOG), unused()):
        assert {who: answer for who, (answer, *_) in found.items()} == {
            "User:a": "NEEDED", "User:b": "NOT_JUDGED", "User:c": "NEVER_MATCHED", "User:d": "NEVER_MATCHED",
            "User:*": "NOT_JUDGED",
        }  # fmt: skip
    # an access of a super user needs no rule
    assert usage(*LOG, "--super-users", "User:b")["User:b"] == ("NEVER_MATCHED", True, 0)


@pytest.mark.parametrize("planted", NOBODYS.values(), ids=NOBODYS)
def test_where_nobody_is_named_no_rule_is_judged(place, planted):
    log_of(planted)
    aclog("usage-index", *LOG, "--index", "index").ok()
    for found in (usage(*LOG), unused()):
        assert {answer for answer, *_ in found.values()} == {"NEEDED", "NOT_JUDGED"}


def test_a_denied_access_may_be_what_a_deny_refused(place):
    log_of(line(time="2026-03-01", principal="User:d", decision="Denied", name="orders"))
    assert usage(*LOG)["User:d"] == ("NOT_JUDGED", False, 1)
    written("acls", [*RULES, RULE | {"principal": "User:d"}])
    rows = [json.loads(each) for each in aclog("usage", *LOG, "--format", "jsonl").ok().lines]
    assert {row["permissionType"]: row["answer"] for row in rows if row["principal"] == "User:d"} == {
        "ALLOW": "NEVER_MATCHED", "DENY": "NOT_JUDGED",
    }  # fmt: skip
    written("acls", [RULE])
    result = aclog("denied", *LOG)
    assert (result.code, "more requests may be denied" in result.err) == (1, True)
    assert aclog("denied", *LOG, "--principal", "User:c").code == 0


def test_with_allow_everyone_any_rule_may_have_been_needed(place):
    log_of(UNREAD["name"])
    allow = ("--allow-everyone-if-no-acl-found",)
    assert usage(*LOG, *allow)["User:d"][0] == "NOT_JUDGED"
    aclog("usage-index", *LOG, *allow, "--index", "index").ok()
    assert unused()["User:d"][0] == "NOT_JUDGED"


def test_a_change_that_it_cannot_need_is_no_difference(place):
    log_of(UNREAD["name"])
    written("other", [RULE, PAY])
    result = aclog("simulate", *LOG, "--to-acls", "other")
    assert (result.code, "NOT_JUDGED" in result.out) == (0, False)
    assert aclog("simulate", *LOG, "--to-super-users", "User:b").code == 1


def test_what_is_outside_the_window_does_not_count(place):
    written("log", [BOB | {"host": "app1", "timestamp": "2026-01-01T10:00:00Z"}, ACCESS])
    assert usage(*LOG, "--days", 10)["User:b"][0] == "NEVER_MATCHED"
    assert usage(*LOG, "--days", 90)["User:b"][0] == "NOT_JUDGED"
    aclog("usage-index", *LOG, "--index", "index").ok()
    assert unused()["User:b"][0] == "NEVER_MATCHED"
    assert unused(until="2026-01-01T12:00:00Z", gap="900d")["User:b"][0] == "NOT_JUDGED"


def test_the_window_ends_after_the_latest_that_could_not_be_read(place):
    written("log", [ACCESS, BOB | {"resourceName": 5, "timestamp": "2026-03-04T10:00:00Z"}])
    assert usage(*LOG, "--days", 2)["User:b"][0] == "NOT_JUDGED"
    assert usage(*LOG, "--until", "2026-03-02T10:00:00Z")["User:b"][0] == "NEVER_MATCHED"
    aclog("usage-index", *LOG, "--index", "index").ok()
    command = ("unused", "--acls", "acls", "--index", "index", "--gap", "900d", "--days")
    assert "to 2026-03-04T10:00:00.000Z; the log lines name no broker" in aclog(*command, 5).out
    rows = [json.loads(each) for each in aclog(*command, 5, "--format", "jsonl").lines]
    assert {row["principal"]: row["answer"] for row in rows}["User:b"] == "NOT_JUDGED"


def test_a_line_without_a_time_is_between_its_neighbours(place):
    alice = [line(f"[2026-0{month}-01 10:00:00,123]", "User:a", name="orders") for month in (1, 2, 3)]
    written("log", [alice[0], line("2026-01-02"), alice[1], alice[2]])
    assert usage(*LOG, "--days", 20)["User:b"][0] == "NEVER_MATCHED"
    assert usage(*LOG, "--days", 90)["User:b"][0] == "NOT_JUDGED"
    written("log", [alice[2], line("2026-01-02"), alice[0], alice[1]])  # two logs that were joined
    assert usage(*LOG, "--days", 20)["User:b"][0] == "NOT_JUDGED"


def test_the_broker_and_the_hours_of_a_gap_are_named(place):
    (place / "kafka-1").mkdir()
    hours = [line(f"[2026-03-01 {hour:02}:00:00,123]", "User:a", name="orders") for hour in range(10, 16)]
    written("kafka-1/kafka-authorizer.log", [*hours[:3], hours[3][60:], *hours[3:5], hours[4][:90], hours[5]])
    log = ("--accesses", "kafka-1")
    aclog("usage-index", *log, "--acls", "acls", "--index", "index").ok()
    for source in (log, ("--index", "index")):
        rows = [json.loads(each) for each in aclog("coverage", *source, "--format", "jsonl").lines]
        unread = {row["principal"]: row for row in rows if row["kind"] == "UNREAD"}
        assert {who: (row["broker"], row["hours"], row["lines"]) for who, row in unread.items()} == {
            None: ("kafka-1/kafka-authorizer.log", 1, 1),
            "User:a": ("kafka-1/kafka-authorizer.log", 1, 1),
        }
        ten = 1_772_359_200_123
        times = {who: ((row["from"] - ten) // 3_600_000, (row["to"] - ten) // 3_600_000) for who, row in unread.items()}
        assert times == {None: (2, 3), "User:a": (4, 4)}
    text = "(NO_HEAD 1, TORN 1; kafka-1/kafka-authorizer.log 2026-03-01 12:00 to 2026-03-01 14:00)"
    assert text in aclog("coverage", *log).out


def test_a_proof_over_a_log_names_what_it_could_not_read(place):
    log_of(UNREAD["name"])
    written("plain", [ACCESS])
    aclog("usage-index", "--acls", "acls", "--accesses", "plain", "--index", "index").ok()
    command = ("unused", "--acls", "acls", "--index", "index", "--days", 1, "--gap", "3d", "--accesses", "log")
    assert "may need rules that are removable by the index" in aclog(*command).complaint
    written("other", [ACCESS, BOB | {"host": "app1", "principal": "User:x"}])
    result = aclog(*command[:-1], "other")
    unread = "1 access could not be read or decided (NO_HOST 1; unknown broker 2026-03-01 10:00)"
    assert f"{unread}, and need none of these rules" in result.err


def test_an_index_knows_of_files_that_it_did_not_take(place):
    """Of two brokers one writes another layout, and each has its own run."""
    written("log", [ACCESS])
    aclog("usage-index", *LOG, "--index", "index").ok()
    written("other.log", [line(time="2026-03-01 10:00"), line(time="2026-03-01 10:00")])
    command = ("usage-index", "--acls", "acls", "--accesses", "other.log", "--index", "index")
    for _ in range(2):  # as from cron
        result = aclog(*command)
        assert (result.code, "nothing was taken, but the index notes that 2 accesses" in result.complaint) == (2, True)
        assert unused()["User:b"] == ("NOT_JUDGED", False, 2)
        assert unused()["User:d"][0] == "NEVER_MATCHED"


def test_files_in_a_format_that_was_given_are_not_noted(place):
    written("log", [line(principal="User:a", name="orders")])
    result = aclog("usage-index", *LOG, "--accesses-format", "jsonl", "--index", "index")
    assert result.complaint.endswith("nothing was taken")
    aclog("usage-index", *LOG, "--index", "index").ok()
    assert unused()["User:b"] == ("NEVER_MATCHED", True, 0)


def test_an_older_index_is_read_and_judges_nothing_that_it_may_have_missed(place):
    written("log", [ACCESS])
    aclog("usage-index", *LOG, "--index", "index").ok()
    assert unused()["User:b"] == ("NEVER_MATCHED", True, 0)
    with sqlite3.connect(place / "index" / FILE) as database:
        database.execute("DROP TABLE unread")
        database.execute("PRAGMA user_version = 1")
        database.execute("UPDATE runs SET at = ?", (1_772_362_800_000,))  # an hour after the access
    database.close()
    older = {"User:a": ("NEEDED", False, 0), "User:b": ("NOT_JUDGED", False, 0), "User:d": ("NOT_JUDGED", False, 0)}
    assert unused() == older
    result = aclog("unused", "--acls", "acls", "--index", "index", "--days", 1, "--gap", "3d")
    assert "an older aclog made this index, and what it could not read is not known" in result.out
    written("log", [ACCESS, ACCESS | {"timestamp": "2026-03-09T10:00:00Z"}])
    aclog("usage-index", *LOG, "--index", "index").ok()  # brings it up to date
    assert unused() == older
    assert unused(until="2026-03-09T12:00:00Z", gap="900d")["User:b"] == ("NEVER_MATCHED", True, 0)


def test_a_directory_of_logs_may_hold_others(place):
    (place / "logs").mkdir()
    alice, denied = line(principal="User:a", name="orders"), line(decision="Denied", name="other")
    written("logs/kafka-authorizer.log", [alice, denied])
    written("logs/server.log", ["[2026-03-01 10:00:00,123] INFO started (kafka.server.KafkaServer)"])
    written("logs/kafkaServer-gc.log", ["[0.012s][info][gc] Using G1", "[0.1s][info][gc,init] Version: 17"])
    written("logs/kafkaServer.out", ["OpenJDK 64-Bit Server VM warning: ..."])
    written("logs/ecs.json", [{"@timestamp": "2026-03-01T10:00:00Z", "message": "started", "host": {"name": "b"}}])
    logs = ("--acls", "acls", "--accesses", "logs")
    written("acls", [RULE])
    result = aclog("denied", *logs, "--format", "jsonl")
    assert (result.code, [json.loads(each)["principal"] for each in result.lines]) == (1, ["User:b"])
    assert usage(*logs)["User:a"] == ("NEEDED", False, 0)
    assert "4 files have no accesses, and were skipped: logs/ecs.json, logs/kafkaServer-gc.log" in result.err
    assert "lines are not accesses" not in result.err
    alone = ("--acls", "acls", "--accesses", "logs/kafkaServer.out")
    assert "not an access log" in aclog("usage", *alone).complaint
    # a log of another name that tells of accesses is not skipped
    written("acls", RULES)
    written("logs/kafkaServer.out", ["OpenJDK 64-Bit Server VM warning: ...", line("2026-03-01 10:00")])
    assert usage(*logs)["User:b"] == ("NOT_JUDGED", False, 1)
    assert "no access has a timestamp" in aclog("usage", *alone).complaint
    assert usage(*alone, "--until", "2026-03-01T12:00:00Z")["User:b"] == ("NOT_JUDGED", False, 1)
    (place / "logs" / "heap.hprof").write_bytes(b"JAVA PROFILE 1.0.2\0\0")
    assert usage(*logs)["User:a"] == ("NEEDED", False, 0)
    (place / "logs" / "heap.hprof").write_bytes(b"JAVA PROFILE 1.0.2\0\1\2Principal = ")
    assert "heap.hprof: not an access log" in aclog("usage", *logs).complaint
    (place / "logs" / "heap.hprof").unlink()
    (place / "logs" / "gc.log.0.gz").write_bytes(gzip.compress(b"[0.012s][info][gc] Using G1\n"))
    assert usage(*logs)["User:a"] == ("NEEDED", False, 0)


def test_rejects_of_an_ingestion_count(place):
    (place / "out" / "accesses").mkdir(parents=True)
    (place / "out" / "rejects").mkdir()
    pq.write_table(pa.Table.from_pylist([ACCESS]), place / "out" / "accesses" / "1.parquet")
    rejects = [{"file": "f", "line": line("2026-03-01"), "reason": "NO_HEAD", "detail": ""}]
    rejects += [{"file": "f", "line": "java.lang.Error", "reason": "NO_HEAD", "detail": ""}]
    rejects += [{"file": "f", "line": json.dumps(BOB | {"operation": "FLY"}), "reason": "BAD_OPERATION", "detail": ""}]
    pq.write_table(pa.Table.from_pylist(rejects), place / "out" / "rejects" / "1.parquet")
    for given in ("out", "out/accesses"):
        assert usage("--acls", "acls", "--accesses", given)["User:b"] == ("NOT_JUDGED", False, 2)
    assert usage("--acls", "acls", "--accesses", "out/accesses/1.parquet")["User:b"][0] == "NEVER_MATCHED"


def test_a_plan_does_not_call_a_rule_unused(place):
    from tests.support.builders.state_logs import write_log
    from tests.support.builders.state_records import acl

    log = write_log(place / "metadata", [acl(1)])
    (rule,) = [json.loads(each) for each in aclog("acls", "list", "--log", log, "--format", "jsonl").lines]
    access = BOB | {"principal": rule["principal"], "host": "app1"}
    written("log", [ACCESS, access])
    written("change", [{"action": "REMOVE", "rule": {key: value for key, value in rule.items() if key != "id"}}])
    command = ("plan", "--log", log, "--change", "change", "--journal", "journal", "--adopt", "--max-deletes", "100%")
    result = aclog(*command, "--accesses", "log")
    assert "last use unknown: it may apply to 1 access that could not be read or decided" in said(result)
    assert "never used" not in said(result)
