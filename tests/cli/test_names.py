r"""`pii-*` on every command line is all names that begin with pii-, `\*` a star in a name; Kafka's commands differ."""

import json

import pytest

from tests.cli.test_diff import write  # noqa: F401  # a fixture
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog

PII = acl_row("pii-", principal="User:audit", operation="READ", patternType="PREFIXED")
CARD = acl_row("pii-card", principal="User:app", operation="READ")
STAR_GROUP = acl_row("a*b", principal="User:app", operation="READ", resourceType="GROUP")
READ = ("--operation", "READ")


@pytest.fixture
def acls(write):  # noqa: F811
    return write("acls", PII, CARD, STAR_GROUP)


def test_who_can_says_on_all_of_a_prefix_or_on_some(acls):
    result = aclog("who-can", "--acls", acls, *READ, "--topic", "pii-*").ok()
    heads = [line for line in result.lines if not line.startswith("  ")]
    assert heads == [
        "User:app: READ on TOPIC pii-card, from any host (some queried topics)",
        "User:audit: READ on TOPIC pii-*, from any host (all queried topics)",
    ]
    rows = [
        json.loads(line)
        for line in aclog("who-can", "--acls", acls, *READ, "--topic", "pii-*", "--format", "jsonl").lines
    ]
    assert {row["principals"]["in"][0]: row["covers"] for row in rows} == {"User:app": "SOME", "User:audit": "ALL"}
    stated = aclog("who-can", "--acls", acls, *READ, "--topic", "pii-", "--resource-pattern-type", "prefixed").ok()
    assert stated.out == result.out
    assert "covers" not in aclog("who-can", "--acls", acls, *READ, "--topic", "pii-card", "--format", "jsonl").out
    table = aclog("who-can", "--acls", acls, *READ, "--topic", "pii-*", "--format", "csv").lines
    assert table[0].split(",")[9] == "covers"


@pytest.mark.parametrize("check", [("not-granted",), ("only", "--principal", "User:audit")])
def test_a_check_on_a_prefix_is_refuted_by_one_name_below_it(acls, write, check):  # noqa: F811
    refuted = aclog("check", check[0], "--acls", acls, *READ, "--topic", "pii-*", *check[1:])
    assert (refuted.code, refuted.lines[0].partition(":")[0]) == (1, "REFUTED")
    assert "pii-card" in refuted.out
    proved = aclog("check", check[0], "--acls", acls, *READ, "--topic", "bill-*", *check[1:])
    assert (proved.code, proved.lines[0].partition(":")[0]) == (0, "PROVED")


def test_authorize_decides_a_prefix_only_if_all_names_are_decided_alike(acls):
    ask = ("authorize", "--acls", acls, *READ)
    allowed = aclog(*ask, "--principal", "User:audit", "--topic", "pii-*")
    assert (allowed.code, allowed.lines[0].split()[0]) == (0, "ALLOWED")
    assert allowed.lines[1] == "  for all names with this prefix; the rule is that of 'pii-'"
    row = json.loads(aclog(*ask, "--principal", "User:audit", "--topic", "pii-*", "--format", "json").out)
    assert (row["decision"], row["resourceName"], row["patternType"], row["example"]) == (
        "ALLOWED",
        "pii-",
        "PREFIXED",
        "pii-",
    )
    denied = aclog(*ask, "--principal", "User:eve", "--topic", "pii-*")
    assert (denied.code, denied.lines[0]) == (1, "DENIED DefaultDeny")
    differs = aclog(*ask, "--principal", "User:app", "--topic", "pii-*")
    assert (differs.code, differs.out) == (2, "")
    assert "ALLOWED on 'pii-card' and DENIED on 'pii-'" in differs.complaint
    literal = json.loads(aclog(*ask, "--principal", "User:app", "--topic", "pii-card", "--format", "json").out)
    assert {"patternType", "example"}.isdisjoint(literal)


def test_explain_advises_a_rule_on_the_prefix_and_never_on_a_name_that_no_topic_can_have(acls):
    ask = ("explain", "--acls", acls, *READ, "--principal", "User:eve", "--topic")
    found = aclog(*ask, "pii-*").denied()
    assert (
        found.lines[0]
        == "DENIED: User:eve READ TOPIC pii-* (all names with this prefix) from 127.0.0.1 (assumed: no host given)"
    )
    assert "2 ACLs whose pattern matches some or all of these names" in found.out
    assert "add ALLOW User:eve READ on TOPIC PREFIXED 'pii-' from *" in found.out
    value = json.loads(aclog(*ask, "pii-*", "--format", "json").out)
    assert (value["patternType"], value["example"]) == ("PREFIXED", value["example"])
    assert aclog("explain", "--acls", acls, *READ, "--principal", "User:app", "--topic", "pii-*").code == 2


@pytest.mark.parametrize("command", ["who-can", "explain", "authorize", "check not-granted", "when"])
def test_a_star_that_can_be_in_no_name_is_an_error(acls, command):
    who = ("--principal", "User:app") if command in ("explain", "authorize", "when") else ()
    for name, said in ((r"pii\*", "a topic name cannot contain *"), ("p*i", "has a * before its end")):
        result = aclog(*command.split(), "--acls", acls, *READ, *who, "--topic", name)
        assert (result.code, result.out) == (2, "")
        assert said in result.complaint


def test_an_escaped_star_is_in_the_name_of_a_group(acls):
    assert aclog("who-can", "--acls", acls, *READ, "--group", r"a\*b").lines[0].startswith("User:app: READ on GROUP")
    assert aclog("who-can", "--acls", acls, *READ, "--group", r"x\*").lines == ["no principal"]
    assert aclog("authorize", "--acls", acls, *READ, "--principal", "User:app", "--group", r"a\*b").code == 0
    assert aclog("authorize", "--acls", acls, *READ, "--principal", "User:app", "--group", r"a\b").code == 1
    cells = aclog("who-can", "--acls", acls, *READ, "--group", "a*", "--format", "markdown").ok().out
    assert r"a\\\*b" in cells or r"a\*b" in cells


@pytest.mark.parametrize("command", ["explain", "authorize", "who-can"])
def test_with_a_pattern_type_a_name_is_as_it_is(acls, command):
    who = () if command == "who-can" else ("--principal", "User:app")
    result = aclog(command, "--acls", acls, *READ, *who, "--topic", "pii-*", "--resource-pattern-type", "literal")
    assert result.code == {"explain": 1, "authorize": 1, "who-can": 0}[command]
    assert "PREFIXED 'pii-'" in result.out if command == "who-can" else "pii-" in result.out or result.code


def test_when_takes_a_prefix(write, tmp_path):  # noqa: F811
    log = tmp_path / "log"
    aclog("import", write("rules", CARD), "--log", log).ok()
    assert aclog("when", "--log", log, *READ, "--principal", "User:app", "--topic", "pii-*").lines
    assert not aclog("when", "--log", log, *READ, "--principal", "User:app", "--topic", "bill-*").ok().lines[1:]


def test_grant_writes_a_prefixed_rule(tmp_path):
    log = tmp_path / "log"
    aclog("import", "-", "--log", log, stdin=json.dumps(CARD).encode()).ok()
    grant = (
        "grant",
        "--log",
        log,
        "--principal",
        "User:a",
        "--intent",
        "consume",
        "--no-allow-everyone-if-no-acl-found",
    )
    aclog(*grant, "--topic", "pay.*", "--group", r"g\*", "--yes").ok()
    rows = [
        json.loads(line)
        for line in aclog("acls", "list", "--log", log, "--principal", "User:a", "--format", "jsonl").lines
    ]
    assert {(row["resourceType"], row["resourceName"], row["patternType"]) for row in rows} == {
        ("TOPIC", "pay.", "PREFIXED"),
        ("GROUP", "g*", "LITERAL"),
    }
    result = aclog(*grant, "--topic-prefix", "pay.*", "--group", "g")
    assert "a prefix is given as it is, without a *: expected 'pay.'" in result.complaint


@pytest.mark.parametrize("command", ["list", "add", "remove"])
def test_kafkas_commands_take_names_as_they_are_and_warn_of_what_no_topic_is_called(tmp_path, command):
    log = tmp_path / "log"
    add = ("--allow-principal", "User:x", "--operation", "READ")
    aclog("import", "-", "--log", log, stdin=json.dumps(CARD).encode()).ok()
    flags = {"list": (), "add": add, "remove": ("--force",)}[command]
    result = aclog("acls", command, "--log", log, *flags, "--topic", "pii-*").ok()
    assert (
        "warning: --topic 'pii-*': no topic can have such a name, which is compared as it is, as by kafka-acls.sh: "
        "for all topics that begin so: --topic pii- --resource-pattern-type prefixed"
    ) in result.err
    if command == "add":
        assert "resourceType=TOPIC, name=pii-*, patternType=LITERAL" in result.out
    for fine in (
        ("--topic", "*"),
        ("--topic", "pii-"),
        ("--group", "g*"),
        ("--topic", "p.", "--resource-pattern-type", "prefixed"),
    ):
        assert "no topic can have" not in aclog("acls", command, "--log", log, *flags, *fine).err


@pytest.mark.parametrize("command", ["who-can", "check not-granted", "authorize", "explain", "when", "grant"])
def test_the_help_names_the_notation(command):
    assert "'pii-*'" in aclog(*command.split(), "--help").ok().out
