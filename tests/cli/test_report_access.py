"""`aclog report` with an access in question: its rows beside those of `aclog who-can`, and what it does not know."""

import json
import shlex

import pytest

from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.standard import AUTHORIZER_CLASS_NAME_CONFIG, KAFKAS_STANDARD_AUTHORIZER
from tests.cli.test_report import commands, tables, written
from tests.support.builders.acls import acl
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker

LOG, RULES = WEEK / "log", WEEK / "rules.jsonl"
PAYMENTS = ("--operation", "READ", "--topic", "payments.*")
UNKNOWN_SUPERS = "super users are not in this source; each is allowed everything (--super-users)"
SUPERS = UNKNOWN_SUPERS[:1].upper() + UNKNOWN_SUPERS[1:]


def plain(page):
    return page.replace("\\", "")


@pytest.mark.parametrize(
    "flags",
    [PAYMENTS, ("--topic", "orders", "--cluster"), ("--intent", "consume", "--topic", "payments.eu"),
     ("--resource-pattern-type", "prefixed", "--topic", "pay", "--group=-x")],
)  # fmt: skip
@pytest.mark.parametrize("as_of", ["40", "36"])
def test_its_rows_are_those_of_who_can(tmp_path, flags, as_of):
    page = written(tmp_path / "a.md", LOG, "--as-of", as_of, *flags, "--super-users", "User:admin")
    assert page.index("## Who can, and since when") < page.index("## ACLs in numbers")
    command = commands(page)[0]
    assert [command[0], "--since" in command, f"--as-of {as_of}" in " ".join(command)] == ["who-can", True, True]
    rows = [json.loads(line) for line in aclog(*command, "--format", "jsonl").ok().lines]
    rows = [row for row in rows if row["rules"] != ["SuperUser"]]
    text = aclog(*command).ok().out
    shown = tables(page)[1] if rows else []
    assert len(shown) == len(rows)
    for row, (who, operations, resource, hosts, reasons, since, change) in zip(rows, shown, strict=True):
        assert who == ", ".join(row["principals"]["in"])
        assert f"{who}: {operations} on {resource.partition(' (all')[0].partition(' (some')[0]}, from {hosts}" in text
        assert all(f"  {reason}\n" in text for reason in reasons.split("; "))
        assert since.endswith(f"offset {row['since']['offset']}")
        assert f"  since offset {row['since']['offset']}, {since.partition(', ')[0]}: {change}\n" in text
    assert "Super users, who may do everything: User:admin." in page


def test_the_access_of_the_week(tmp_path):
    page = plain(written(tmp_path / "a.md", LOG, *PAYMENTS, "--sections", "who-can"))
    assert f"Principals that may READ on some TOPIC payments.*. {SUPERS}." in page
    assert (
        "| User:contractor | READ | TOPIC payments.* (all queried topics) | any host | granted by ALLOW "
        "User:contractor READ on TOPIC PREFIXED 'payments.' from * | 2026-11-19T15:00:00.000Z, offset 36 | added ALLOW "
        "User:contractor READ on TOPIC PREFIXED 'payments.' from * |"
    ) in page
    assert "| any host except 10.0.0.9 |" in page
    assert page.count("\n## ") == 1
    html = written(tmp_path / "a.html", LOG, *PAYMENTS, "--sections", "who-can")
    assert "aclog who-can --operation READ --topic 'payments.*' --since" in html.codes[-1]


def test_a_source_without_history_has_no_times(tmp_path):
    page = written(tmp_path / "a.md", RULES, "--topic", "orders", "--sections", "who-can")
    assert "The source has no history: since when is unknown." in page
    assert "| principals | operations | resource | hosts | by |\n" in page
    assert "--since" not in page


def test_no_principal_is_stated_with_the_reason(tmp_path):
    page = written(tmp_path / "a.md", RULES, "--operation", "READ", "--topic", "paiments", "--sections", "who-can")
    assert "Principals that may READ on TOPIC paiments: none by these rules. No ACL is on TOPIC paiments" in page
    assert "| principals |" not in page


def test_sections_that_are_not_in_question_are_left_out(tmp_path):
    page = written(tmp_path / "a.md", RULES, "--sections", "who-can,drift,tests")
    assert page.count("Not in this report: ") == 3
    assert "no access in question is given" in page
    page = written(tmp_path / "b.md", RULES)
    assert not [title for title in ("Who can", "Drift", "Tests of rules") if f"## {title}" in page]
    flags = ("report", RULES, "--out", tmp_path / "c.md")
    for words, text in (
        (("--topic", "x", "--sections", "numbers"), "of the section who-can: expected it too"),
        (("--operation", "READ"), "no resource is given"),
        (("--topic", "x", "--operation", "READ", "--intent", "consume"), "expected one of them"),
    ):
        assert text in aclog(*flags, *words).complaint


# settings that no source states


OPEN = "closed to all except super users (allow.everyone.if.no.acl.found {})"
ASSUMED = OPEN.format("is assumed false, Kafka's default: no flag and no source states it")


def head(path, *words):
    return dict(tables(written(path, *words, "--sections", "everyone"))[0])["Resources without ACLs"]


def test_the_head_has_what_is_assumed(tmp_path):
    path = tmp_path / "a.md"
    assert head(path, LOG) == ASSUMED
    assert head(path, LOG, "--no-allow-everyone-if-no-acl-found") == OPEN.format("is false")
    assert head(path, LOG, "--allow-everyone-if-no-acl-found").startswith("open to everyone")
    with FakeBroker([acl("orders", "User:a")]) as broker:
        broker.configs = {AUTHORIZER_CLASS_NAME_CONFIG: KAFKAS_STANDARD_AUTHORIZER}
        live = ("--bootstrap-server", str(broker.address))
        assert head(path, *live) == OPEN.format("is false")
        page = written(path, *live, "--topic", "orders", "--sections", "who-can")
        assert "Super users, who may do everything: none." in page
        broker.configs |= {ALLOW_EVERYONE_CONFIG: None, SUPER_USERS_CONFIG: None}
        assert head(path, *live) == OPEN.format("is unknown, and assumed false")
        page = written(path, *live, "--topic", "orders", "--sections", "who-can")
        assert "More have access if the principal is a super user (--super-users USERS) or a resource" in page
        assert "uper users, who" not in page


CHECKS = (
    "who-can --operation READ --topic payments.*",
    "who-can --operation READ --topic none",
    "check no-public",
    "check only --operation WRITE --topic audit --principal User:security",
    "check not-granted --operation WRITE --topic none",
)


@pytest.mark.parametrize("words", CHECKS)
def test_unknown_super_users_are_one_note(words):
    words = shlex.split(words)
    note = f"aclog: note: {UNKNOWN_SUPERS}"
    assert aclog(*words, LOG).err.splitlines().count(note) == 1
    for known in (("--super-users", ""), ("--format", "jsonl"), ("--format", "csv")):
        found = aclog(*words, LOG, *known)
        assert "super users are not" not in found.err + found.out
    with FakeBroker([acl("orders", "User:a")]) as broker:
        broker.configs = {AUTHORIZER_CLASS_NAME_CONFIG: KAFKAS_STANDARD_AUTHORIZER}
        assert "super users are not" not in aclog(*words, "--bootstrap-server", broker.address).err


def test_a_refuted_statement_needs_no_note():
    found = aclog("check", "not-granted", "--operation", "READ", "--topic", "orders", LOG)
    assert found.code == 1
    assert "super users" not in found.err
