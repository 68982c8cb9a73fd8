"""An empty answer says on stderr why it is empty and what is near, in text only."""

import json
from pathlib import Path

import pytest

from tests.support.builders.acls import acl_row
from tests.support.cli.command import Result, aclog

READ = ("--operation", "READ")
NO_SUPERS = ("--super-users", "")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    rows = [
        acl_row("orders", principal="User:nobody-svc", operation="READ"),
        acl_row("pii-", principal="User:audit", operation="READ", patternType="PREFIXED"),
        acl_row("closed", principal="User:audit", operation="READ", permissionType="DENY"),
        acl_row("g", principal="User:Fraud", operation="READ", resourceType="GROUP"),
        acl_row("payments.eu", principal="User:*", operation="WRITE", host="10.0.0.1"),
    ]
    path = tmp_path / "rules.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def notes(result: Result) -> list[str]:
    lines = result.ok().err.splitlines()
    assert all(line.startswith("aclog: note: ") for line in lines)
    return [line.removeprefix("aclog: note: ") for line in lines]


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        ("User:nobody", "no ACL names User:nobody: did you mean User:nobody-svc?"),
        ("User:fraud", "no ACL names User:fraud: did you mean User:Fraud?"),
        ("Group:audit", "no ACL names Group:audit: did you mean User:audit?"),
        ("User:zzz", "no ACL names User:zzz"),
    ],
)
def test_a_principal_that_no_acl_names(rules: Path, principal: str, expected: str) -> None:
    can = aclog("what-can", "--acls", rules, "--principal", principal, "--host", "127.0.0.1")
    assert (can.out, notes(can)) == ("nothing\n", [expected])
    for form in ("table", "kafka"):
        listed = aclog("acls", "list", "--acls", rules, "--principal", principal, "--format", form)
        assert notes(listed) == [expected]
    for form in ("json", "jsonl", "csv"):
        assert aclog("what-can", "--acls", rules, "--principal", principal, "--host", "::1", "--format", form).err == ""
        assert aclog("acls", "list", "--acls", rules, "--principal", principal, "--format", form).err == ""


def test_a_principal_whose_acls_grant_nothing(rules: Path) -> None:
    can = aclog("what-can", "--acls", rules, "--principal", "User:audit", "--host", "127.0.0.1").ok()
    assert can.err == ""
    deny = rules.with_name("deny.jsonl")
    deny.write_text(json.dumps(acl_row("a", principal="User:a", operation="READ", permissionType="DENY")) + "\n")
    only = aclog("what-can", "--acls", deny, "--principal", "User:a")
    assert notes(only) == ["1 ACL of User:a and those of User:* grant nothing from the hosts in question"]
    assert aclog("what-can", "--acls", deny, "--principal", "User:b", "--super-users", "User:b").ok().err == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--topic", "order"), "no ACL is on TOPIC order: did you mean TOPIC orders?"),
        (("--topic", "Orders"), "no ACL is on TOPIC Orders: did you mean TOPIC orders?"),
        (("--group", "orders"), "no ACL is on GROUP orders"),
        (("--topic", "pay*"), "1 ACL on TOPIC pay*: no principal has the access in question"),
        (("--topic", "closed"), "1 ACL on TOPIC closed: no principal has the access in question"),
    ],
)
def test_a_resource_to_which_no_principal_has_access(rules: Path, words: tuple[str, ...], expected: str) -> None:
    result = aclog("who-can", "--acls", rules, *READ, *words, *NO_SUPERS)
    assert (result.out, notes(result)) == ("no principal\n", [expected])
    assert aclog("who-can", "--acls", rules, *READ, *words, "--format", "jsonl").ok().err == ""


def test_a_list_of_resources_without_acls(rules: Path) -> None:
    listed = ("acls", "list", "--acls", rules, "--format", "table")
    assert notes(aclog(*listed, "--topic", "paymnts.eu")) == [
        "no ACL is on TOPIC paymnts.eu: did you mean TOPIC payments.eu?"
    ]
    assert notes(aclog(*listed, "--topic", "orders", "--principal", "User:audit")) == [
        "the principals and the resources have ACLs, but none together"
    ]
    match = ("--topic", "pii-eu", "--resource-pattern-type", "match", "--principal", "User:nobody-svc")
    assert notes(aclog(*listed, *match)) == ["the principals and the resources have ACLs, but none together"]
    empty = rules.with_name("empty.jsonl")
    empty.touch()
    assert aclog("acls", "list", "--acls", empty, "--format", "table").ok().err == ""
