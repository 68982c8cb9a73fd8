"""`aclog diff` by its own command line: exact regions, rows, counts, formats, exit codes, and what it refuses."""

import json
from itertools import product
from random import Random

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.authorizer.acl import acl_text, rule_of_object
from aclog.authorizer.codes import ResourceType
from aclog.cli.schema import schema_of
from tests.support.builders.acls import acl, acl_row
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl as acl_of_number
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker
from tests.support.sources.files_of_rules import ONE_RULE, write_files

PRINCIPALS = ("User:a", "User:b", "Group:g", "User:nobody")
HOSTS = ("10.0.0.1", "10.0.0.9", "0:0:0:0:0:0:0:1")
NAMES = ("a", "ab", "abc", "b", "b.x", "*", "*a")
ORDERS = acl_row("orders", principal="User:app", operation="READ")
WITNESS = "User:app READ on a topic named 'orders' from 127.0.0.1"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes JSON lines to a file and returns its path."""

    def write(name, *rows):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return tmp_path / name

    return write


def random_rows(random):
    rows = {}
    for _ in range(random.randrange(1, 9)):
        row = acl_row(
            random.choice(NAMES),
            principal=random.choice((*PRINCIPALS[:3], "User:*")),
            host=random.choice(("*", "*", "10.0.0.1", "10.0.0.0/30", "h.example")),
            operation=random.choice(("ALL", "READ", "WRITE", "DESCRIBE", "ALTER_CONFIGS")),
            permissionType=random.choice(("ALLOW", "ALLOW", "DENY")),
            resourceType=random.choice(("TOPIC", "TOPIC", "GROUP")),
            patternType=random.choice(("LITERAL", "PREFIXED")),
        )
        rows[json.dumps(row)] = row
    return list(rows.values())


def in_set(value, said):
    return value in said["in"] if "in" in said else value not in said["except"]


def in_names(name, parts):
    return any(
        name == part["literal"]
        if "literal" in part
        else name.startswith(part["prefix"])
        and not name.startswith(tuple(part["exceptPrefixes"]))
        and name not in part["exceptLiterals"]
        for part in parts
    )


def holds(line, principal, host, operation, kind, name):
    return (
        line["resourceType"] == kind
        and operation in line["operations"]
        and in_set(principal, line["principals"])
        and in_set(host, line["hosts"])
        and in_names(name, line["names"])
    )


def decisions(path, requests, flags):
    lines = [
        json.dumps(dict(zip(("principal", "host", "operation", "resourceType", "resourceName"), each, strict=True)))
        for each in requests
    ]
    answers = aclog(
        "authorize", "--acls", path, "--requests", "-", "--no-cidr", *flags, stdin="\n".join(lines).encode()
    ).ok()
    return [json.loads(line)["decision"] == "ALLOWED" for line in answers.lines]


@pytest.mark.parametrize("seed", range(6))
def test_json_lines_are_exactly_the_requests_that_are_decided_otherwise(write, seed):
    random = Random(seed)
    old, new = write("old", *random_rows(random)), write("new", *random_rows(random))
    flags = random.choice([(), ("--super-users", "User:b"), ("--allow-everyone-if-no-acl-found",)])
    more = random.choice([(), ("--to-super-users", "User:a"), ("--to-allow-everyone-if-no-acl-found",)])
    result = aclog("diff", "--acls", old, "--to-acls", new, *flags, *more, "--no-cidr", "--format", "jsonl")
    lines = [json.loads(line) for line in result.lines]
    assert result.code == bool(lines)
    requests = list(product(PRINCIPALS, HOSTS, ("READ", "WRITE", "DESCRIBE"), ("TOPIC", "GROUP"), (*NAMES, "c", "ax")))
    before = decisions(old, requests, flags)
    second = (more[0].replace("--to-", "--"), *more[1:]) if more else flags
    # flags of the first state hold for the second one too, but for the one that is given anew
    after = decisions(
        new,
        requests,
        second
        if more[:1] == ("--to-super-users",) and flags[:1] == ("--super-users",)
        else tuple(dict.fromkeys((*flags, *second))),
    )
    for request, was, now in zip(requests, before, after, strict=True):
        said = {line["change"] for line in lines if holds(line, *request)}
        assert said == ({"LOST"} if was and not now else {"GAINED"} if now and not was else set()), request


def test_rows_give_an_example_and_the_rules_that_decide_it(write):
    old = write("old", ORDERS)
    result = aclog("diff", "--acls", old, "--to-acls", write("new"))
    assert result.code == 1
    assert result.lines[0].startswith("LOST  User:app: READ, DESCRIBE on TOPIC orders")
    rule = f"ALLOW User:app READ on TOPIC LITERAL 'orders' from * ({old}:1)"
    assert f"{WITNESS}; before: {rule}; after: DefaultDeny" in result.lines[1]


def test_what_changes_nothing_is_no_difference(write):
    wider = acl_row("ord", principal="User:*", operation="ALL", patternType="PREFIXED")
    result = aclog("diff", "--acls", write("old", ORDERS, wider), "--to-acls", write("new", wider))
    assert (result.code, result.lines) == (0, ["no difference: every request is decided the same"])
    for form, said in (("markdown", "No difference.\n"), ("jsonl", "")):
        assert (
            aclog("diff", "--acls", write("old", wider), "--remove", write("none"), "--format", form).ok().out == said
        )


def test_a_change_of_settings_alone(write):
    result = aclog("diff", "--acls", write("old", ORDERS), "--to-super-users", "User:root", "--format", "jsonl")
    lines = [json.loads(line) for line in result.lines]
    assert {(line["new"], *line["principals"]["in"]) for line in lines} == {("SuperUser", "User:root")}
    assert {line["resourceType"] for line in lines} == {kind.name for kind in ResourceType if kind > ResourceType.ANY}
    same = aclog("diff", "--acls", write("old", ORDERS), "--super-users", "User:root", "--to-super-users", "")
    assert same.code == 1
    assert same.out.startswith("LOST  User:root")


@pytest.mark.parametrize("format_", ["text", "markdown", "jsonl"])
def test_topics_and_accesses_are_counted(write, tmp_path, format_):
    (tmp_path / "topics").write_text("orders\r\norders.eu\n\npay\n")
    rows = [
        {"principal": "User:app", "host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": name}
        for name in ("orders", "orders", "pay")
    ]
    counted = ("--topics", tmp_path / "topics", "--format", format_)
    sides = ("--acls", write("old", ORDERS), "--to-acls", write("new"))
    result = aclog("diff", *sides, *counted, "--accesses", write("accesses", *rows, rows[0] | {"host": None}))
    assert "accesses: 1 line skipped: no accesses" in result.err
    pq.write_table(pa.Table.from_pylist([*rows, rows[0] | {"host": None}]), tmp_path / "a.parquet")
    assert result.out == aclog("diff", *sides, *counted, "--accesses", tmp_path / "a.parquet").out
    if format_ == "jsonl":
        [line] = map(json.loads, result.lines)
        assert (line["topics"], line["accesses"]) == (1, 2)
    else:
        assert "covers 1 existing topic, 2 accesses are decided differently" in result.out


def test_a_file_in_which_nothing_is_an_access_is_no_count_of_none(write):
    acls = write("acls", ORDERS)
    result = aclog("diff", "--acls", acls, "--to-super-users", "User:root", "--accesses", acls)
    assert (result.code, result.out) == (2, "")
    assert "acls: no line is an access: expected lines as of authorize --requests" in result.complaint


def test_a_summary_does_not_say_that_what_is_denied_is_gained(write):
    old = write("old", *(acl_row("*", principal=f"Group:{n}", operation="WRITE") for n in range(3)))
    opened = acl_row("a", patternType="PREFIXED", principal="User:*")
    barred = [acl_row("*", principal=f"User:{n}", operation="ALL", permissionType="DENY") for n in range(3)]
    lines = aclog("diff", "--acls", old, "--to-acls", write("new", opened, *barred)).lines
    assert any("gain access that was not granted before, unless a DENY applies (" in line for line in lines), lines


def test_the_topics_of_a_log_are_counted():
    log = "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
    result = aclog("diff", "--log", log, "--to-as-of", "0", "--format", "jsonl")
    found = {json.loads(line).get("topics") for line in result.lines}
    assert max(each for each in found if each is not None) == 4  # of its 5 topics, one may be read by nobody


def test_an_older_second_state_is_noted(tmp_path):
    log = write_log(tmp_path / "log", [acl_of_number(1)], [acl_of_number(2)], [acl_of_number(3)])
    text = "the second state is older than the first"
    for moments in (("--to-as-of", 1), ("--as-of", 2, "--to-as-of", 1)):
        result = aclog("diff", "--log", log, *moments).denied()
        assert "LOST" in result.out
        assert text in result.err
        assert "--as-of 1" in result.err
    for moments in (("--as-of", 1), ("--as-of", 1, "--to-as-of", 2), ("--to-as-of", "latest"), ("--to-as-of", 3)):
        assert text not in aclog("diff", "--log", log, *moments).err


def test_what_both_moments_of_a_log_have_to_say_is_said_once(tmp_path):
    log = write_log(tmp_path / "log", [acl_of_number(1)], [acl_of_number(2)])
    notes = aclog("diff", "--log", log, "--to-as-of", 1).err.splitlines()
    assert [note for note in notes if "is treated as committed" in note] == notes[:1]


def test_markdown_is_a_table_with_names_that_mean_nothing_in_it(write):
    odd = acl_row("a|b*", principal="User:<b>", operation="READ")
    lines = aclog("diff", "--acls", write("old", odd), "--to-acls", write("new"), "--format", "markdown").lines
    assert [line.replace("\\|", "").count("|") for line in lines] == [8, 8, 8]
    assert r"User:\<b\>" in lines[2]


def test_sarif_has_a_result_for_each_row(write):
    change = write("change", {"action": "REMOVE", "rule": ORDERS})
    result = aclog("diff", "--acls", write("old", ORDERS), "--change", change, "--format", "sarif")
    [run] = json.loads(result.out)["runs"]
    [found] = run["results"]
    assert found["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert found["message"]["text"].startswith("LOST  User:app")
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == str(change)
    assert found["properties"]["witness"]["resourceName"] == "orders"


def test_json_has_what_was_not_read_of_either_state(tmp_path):
    rule = ONE_RULE
    unread = 'resource "warpstream_acl" "a" {\n  principal = "User:a"\n}\n'
    old = write_files(tmp_path / "old", {"rules.jsonl": rule})
    new = write_files(tmp_path / "new", {"rules.jsonl": rule, "main.tf": unread})
    for form in ("jsonl", "json"):
        result = aclog("diff", "--acls", old, "--to-acls", new, "--format", form)
        objects = json.loads(result.out) if form == "json" else [json.loads(line) for line in result.lines]
        assert result.code == 1
        assert [(each["unread"], each["name"], each["file"], each["line"]) for each in objects] == [
            ("terraform", "warpstream_acl", str(new / "main.tf"), 1)
        ]
        for each in objects:
            jsonschema.validate(each, schema_of("difference"))
    accepted = aclog("diff", "--acls", old, "--to-acls", new, "--format", "jsonl", "--accept-unread", "terraform")
    assert accepted.code == 0


def test_a_name_that_no_topic_can_have_is_said(write):
    odd = acl_row("a b", principal="User:app", operation="READ")
    sides = ("--acls", write("old", odd), "--to-acls", write("new"))
    [line] = map(json.loads, aclog("diff", *sides, "--format", "jsonl").lines)
    assert line["legal"] is False
    assert "(not a legal topic name)" in aclog("diff", *sides).out


def test_names_of_another_cluster(write):
    there = ORDERS | {"resourceName": "eu.orders"}
    sides = ("--acls", write("here", ORDERS), "--to-acls", write("there", there))
    assert aclog("diff", *sides).code == 1
    assert aclog("diff", *sides, "--map-names", "=eu.").code == 0
    assert aclog("diff", *sides, "--map-names", "o=eu.o").code == 0
    refused = aclog(
        "diff",
        "--acls",
        write("here", ORDERS, ORDERS | {"resourceName": "eu.orders"}),
        *sides[2:],
        "--map-names",
        "o=eu.o",
    )
    assert refused.code == 2
    assert "two names become one" in refused.complaint


def test_a_past_moment_of_a_log_alone_is_compared_with_its_newest_state():
    past = ("--log", WEEK / "log", "--as-of", "2026-11-19T14:00:00Z", "--format", "jsonl")
    newest = aclog("diff", *past, "--to-as-of", "latest")
    assert newest.code == 1
    assert "User:contractor" in newest.out
    assert aclog("diff", *past) == newest
    settings = aclog("diff", *past, "--to-super-users", "User:root")
    assert "User:contractor" not in settings.out  # the same moment with other settings
    for words in (past[:2], (*past[:2], "--as-of", "latest"), ("--acls", WEEK / "rules.jsonl", "--as-of", "3")):
        refused = aclog("diff", *words)
        assert (refused.code, "no second state is given" in refused.complaint) == (2, True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--to-acls", "none"], "none: no such file or directory"),
        (["--to-acls", "-"], "--acls - and --to-acls -: only one of them can be stdin"),
        ([], "no second state is given"),
        (["--to-as-of", "7"], "a file of ACLs has one state only"),
        (["--to-super-users", "root"], "super.users: expected a string in format"),
        (["--to-super-users", "", "--topics", "none"], "none: no such file or directory"),
        (["--to-super-users", "", "--accesses", "none"], "none: no such file or directory"),
        (["--to-super-users", "", "--accesses", "none.parquet"], "none.parquet"),
        (["--to-super-users", "", "--map-names", "a"], "--map-names 'a': expected OLD=NEW"),
        (["--to-semantics", "other"], "--to-semantics"),
        (["--format", "html"], "--format"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, said):
    result = aclog("diff", "--acls", "-", *flags, stdin=json.dumps(ORDERS).encode())
    assert result.code == 2
    assert result.out == ""
    assert said in result.complaint


def test_one_acl_is_a_change_as_its_file_is(write, tmp_path):
    state, added = write("state", ORDERS), acl_row("pay ments", principal="User:b c", operation="WRITE")
    text = acl_text(rule_of_object(added).acl)
    by_file = aclog("diff", "--acls", state, "--add", write("added", added), "--format", "jsonl")
    by_text = aclog("diff", "--acls", state, "--add", text, "--format", "jsonl")
    place = {"file": str(tmp_path / "added"), "line": 1}
    assert json.dumps(place)[1:-1].replace(" ", "") in by_file.out.replace(" ", "")
    assert [without_place(json.loads(line)) for line in by_text.lines] == [
        without_place(json.loads(line)) for line in by_file.lines
    ]
    removed = acl_text(rule_of_object(ORDERS).acl)
    assert "LOST  User:app" in aclog("diff", "--acls", state, "--remove", removed).out
    assert aclog("diff", "--acls", state, "--remove", text).complaint == f"--remove: no such ACL: {text}"
    complaint = aclog("diff", "--acls", state, "--add", "ALLOW User:a READ on TOPC t").complaint
    assert complaint.startswith("--add: 'TOPC': expected one of TOPIC, GROUP")


def without_place(value):
    """Return a value of JSON without the locations of rules in it."""
    if isinstance(value, dict):
        return {key: without_place(each) for key, each in value.items() if key not in ("file", "line")}
    return [without_place(each) for each in value] if isinstance(value, list) else value


def test_a_change_that_was_made_for_another_state_is_refused(write):
    change = write("change", {"action": "ADD", "rule": ORDERS})
    result = aclog("diff", "--acls", write("old", ORDERS), "--change", change)
    assert result.code == 2
    assert result.complaint == (
        f"{change}: line 1: the ACL exists already: ALLOW User:app READ on TOPIC LITERAL 'orders' from *"
    )


def test_the_topics_of_a_running_cluster_are_counted(write):
    with FakeBroker([acl("orders")]) as broker:
        broker.topics = ["orders", "pay"]
        sides = ("--bootstrap-server", str(broker.address), "--remove", write("gone", ORDERS))
        assert "covers 1 existing topic" in aclog("diff", *sides).out
        ask = ("--bootstrap-server", str(broker.address), "--operation", "READ", "--topic", "orders")
        assert "  covers 1 of 2 existing topics" in aclog("check", "not-granted", *ask).lines
