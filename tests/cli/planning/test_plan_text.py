"""What a plan says: its effect, whose rules it touches, and of each delete what it takes away and when it was used."""

import json
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from attrs import evolve

from aclog.authorizer.acl import acl_text
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.installation import install_command
from aclog.ops import extras
from aclog.planning.plan import parse_plan, plan_digest
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import Estate, line_of, log_with

ORDERS, OTHERS = acl("orders", "User:shop"), acl("others", "User:*")
ALL_ORD = acl("ord", "User:shop", pattern_type=PatternType.PREFIXED)
PAY = acl("pay", "User:shop", operation=AclOperation.WRITE)
NO_PAY = evolve(PAY, principal="User:mallory", operation=AclOperation.ALL, permission_type=AclPermissionType.DENY)
CLOSED = "--no-allow-everyone-if-no-acl-found"
ACCESSES = (
    ("2026-11-20T10:00:00Z", "READ", "orders", "10.0.0.1"),
    ("2026-11-21T10:00:00Z", "WRITE", "pay", "10.0.0.2"),
)
WRITTEN = "2026-11-21T10:00:00.000Z by User:shop from 10.0.0.2"
TEXT = """\
Plan: 1 rule to add, 3 to delete, 1 existing rule to adopt (record as managed)
- {log}: 6 rules at offset {offset}; the journal {journal} records 4 rules as managed

Effective change (1 gained, 1 lost):
  GAINED  User:new: READ, DESCRIBE on TOPIC new, from any host
    for example User:new READ on a topic named 'new' from 127.0.0.1; before: DefaultDeny; after: {new}
  LOST  User:shop: WRITE, DESCRIBE on TOPIC pay, from any host
    for example User:shop WRITE on a topic named 'pay' from 127.0.0.1; before: {rule}; after: DefaultDeny

To adopt (1 existing rule, to be recorded as managed):
  ALLOW User:* READ on TOPIC LITERAL 'others' from *

Steps (applied together, atomically):
  + ALLOW User:new READ on TOPIC LITERAL 'new' from *
  - ALLOW User:shop WRITE on TOPIC LITERAL 'pay' from *
    LOST  User:shop: WRITE, DESCRIBE on TOPIC pay, from any host
  - ALLOW User:shop READ on TOPIC LITERAL 'orders' from *
    no effect: still allowed by ALLOW User:shop READ on TOPIC PREFIXED 'ord' from *
  - DENY User:mallory ALL on TOPIC LITERAL 'pay' from *
    no effect: the access it denied is not allowed anyway

Unchanged: 1 other rule (neither desired nor managed)
plan id: {digest}
"""


@pytest.fixture
def estate(tmp_path):
    """A log with two rules of others, and four of a source that now wants one of them, and one of the others'."""
    found = Estate(tmp_path / "source", log_with(tmp_path / "log", [OTHERS, acl("foreign", "User:far")]))
    found.wants(ORDERS, ALL_ORD, PAY, NO_PAY)
    found.bring()
    found.wants(ALL_ORD, OTHERS, acl("new", "User:new"))
    return found


def plan(estate, *flags, command=("plan",)):
    want = ("--want", estate.want) if command == ("plan",) else ()
    return aclog(*command, *estate.place, *want, "--journal", estate.journal, "--out", estate.plan_file, CLOSED, *flags)


def deletes(text: str) -> dict[str, list[str]]:
    """By the text of the rule: what is told of each delete."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("  - "):
            found[line.removeprefix("  - ")] = told = []
        elif line.startswith("    ") and found:
            told.append(line.strip())
    return found


def test_the_text_of_a_plan(estate):
    result = plan(estate, "--adopt")
    assert result.code == 1
    made = parse_plan(estate.plan_file.read_bytes().splitlines(), "plan")
    log = estate.place[1]
    assert result.out == TEXT.format(
        new="ALLOW User:new READ on TOPIC LITERAL 'new' from *",
        log=log,
        journal=estate.journal,
        offset=made.base.end_offset,
        digest=plan_digest(made)[:16],
        rule=acl_text(PAY),
    )


def test_what_is_present_stays_and_nobody_knows_whether_names_are_open(estate):
    place = ("plan", *estate.place, "--want", estate.want, "--journal", estate.journal)
    text = aclog(*place).out
    assert (
        "Unmanaged (1 desired rule already in the target, but not managed; no plan deletes such a rule unless you "
        "first make it managed with --adopt):" in text
    )
    assert "- allow.everyone.if.no.acl.found is unknown" in text
    assert deletes(text)[acl_text(PAY)][0].startswith("GAINED  everyone")
    estate.wants(ALL_ORD)
    assert estate.bring("--max-deletes", "9").removed() == {ORDERS, PAY, NO_PAY}
    assert aclog(*place).out.startswith("Plan: nothing to do\n")


def test_many_adds_hide_no_delete_and_what_is_left_out_is_counted(estate):
    old = [acl(f"old{number:02}", "User:shop") for number in range(23)]
    estate.wants(*old)
    estate.bring()
    estate.wants(*(acl(f"new{number:02}", "User:shop") for number in range(31)))
    short, full = (plan(estate, "--max-deletes", "100%", *flags).out for flags in ((), ("--full",)))
    lines = short.splitlines()
    assert sum(line.startswith("  + ") for line in lines) == 20
    assert list(deletes(short)) == list(map(acl_text, reversed(old[3:])))
    middle = lines.index("  and 11 more to add: --full shows all")
    assert lines[middle + 1].startswith("  - ")
    assert "  and 3 more to delete: --full shows all" in lines[middle:]
    assert len(deletes(full)) == 23
    assert "--full" not in full
    assert full.count("\n  + ") == 31


def test_markdown_is_one_comment_that_names_steer_nothing_in(estate):
    estate.wants(ALL_ORD, *(acl(f"<b>|{number}" + "x" * 900, "User:@all") for number in range(200)))
    text = plan(estate, "--format", "markdown", "--full").out
    assert text.startswith("### Plan: 200 rules to add, 3 to delete\n")
    assert len(text) < 61_000
    assert text.endswith("The rest does not fit into a comment: `aclog plan` shows it.\n<!-- aclog plan -->\n")
    assert "\n- \\+ ALLOW" in text
    assert "<b>|" not in text
    assert "@all" not in text


@pytest.fixture
def log_of_accesses(tmp_path):
    path = tmp_path / "accesses.jsonl"
    rows = (
        {"timestamp": at, "principal": "User:shop", "host": host, "operation": operation, "resourceType": "TOPIC",
         "resourceName": name}
        for at, operation, name, host in ACCESSES
    )  # fmt: skip
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def index(tmp_path, estate, log_of_accesses):
    rules = tmp_path / "rules.jsonl"
    rules.write_text("".join(map(line_of, estate.rules())))
    aclog("usage-index", "--accesses", log_of_accesses, "--acls", rules, "--index", tmp_path / "index").ok()
    return tmp_path / "index"


@pytest.mark.parametrize("source", ["index", "log"])
def test_each_delete_tells_when_it_was_last_used(estate, log_of_accesses, index, source):
    path = index if source == "index" else log_of_accesses
    text = plan(estate, "--accesses", path).out
    assert {rule: told[-1] for rule, told in deletes(text).items()} == {
        acl_text(PAY): f"last needed {WRITTEN}",
        acl_text(ORDERS): "never needed: every access would have been decided the same without it; "
        "last matched 2026-11-20T10:00:00.000Z by User:shop from 10.0.0.1",
        acl_text(NO_PAY): "never used: no access matched it",
    }
    covered = "2026-11-20T10:00:00.000Z to 2026-11-21T10:00:00.000Z"
    assert f"Times of last use according to {str(path)!r}, which covers {covered}" in text
    back = plan(estate, "--accesses", path, command=("rollback",))
    assert back.code == 1
    assert f"last needed {WRITTEN}" in back.out


def test_an_index_does_not_call_unused_what_it_has_hardly_seen(tmp_path, estate, log_of_accesses):
    aclog("usage-index", "--accesses", log_of_accesses, *estate.place, "--index", tmp_path / "young").ok()
    told = deletes(plan(estate, "--accesses", tmp_path / "young").out)
    assert told[acl_text(ORDERS)][-1].startswith("last use unknown: known to be in force only since 20")
    late = acl("late", "User:shop")
    estate.wants(ALL_ORD, late)
    estate.bring()
    estate.wants(ALL_ORD)
    told = deletes(plan(estate, "--accesses", tmp_path / "young").out)
    assert told[acl_text(late)][-1] == "last use unknown: the index has not seen it in force"


def test_accesses_that_tell_nothing_are_refused(tmp_path, estate, log_of_accesses, index, monkeypatch):
    denied = tmp_path / "denied.jsonl"
    denied.write_text("\n".join(
        json.dumps(json.loads(line) | {"loggedDecision": "DENIED"}) for line in log_of_accesses.read_text().splitlines()
    ))  # fmt: skip
    none = tmp_path / "none.jsonl"
    none.write_text(json.dumps({"principal": "User:a"}))
    for paths, said in (
        ((denied,), f"--accesses {denied}: all 2 accesses are denials"),
        ((none,), f"--accesses {none}: holds no access with a time"),
        ((index, log_of_accesses), "an index of last use: expected it alone, or access logs"),
        ((tmp_path / "gone",), f"{tmp_path / 'gone'}: no such file"),
    ):
        result = plan(estate, *(flag for path in paths for flag in ("--accesses", path)))
        assert said in result.complaint
        assert result.out == ""
    said = plan(estate, "--accesses", index, "--format", "jsonl").complaint
    assert said.startswith("--accesses: the steps as JSON lines have no last use")
    missing = SimpleNamespace(find_spec=lambda name: None if name == "pyroaring" else find_spec(name))
    monkeypatch.setattr(extras, "find_spec", missing.find_spec)
    assert install_command("usage") in plan(estate, "--accesses", index).complaint
