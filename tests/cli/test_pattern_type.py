"""`--resource-pattern-type` of `aclog acls`: literal unless given, and what any and match take (KIP-290)."""

import json

import pytest

from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog

PATTERNS = [("foobar", "LITERAL"), ("foobar", "PREFIXED"), ("foo", "PREFIXED"), ("*", "LITERAL"), ("foo", "LITERAL")]


@pytest.fixture
def log(tmp_path):
    lines = "".join(json.dumps(acl_row(name, patternType=pattern)) + "\n" for name, pattern in PATTERNS)
    aclog("import", "-", "--log", tmp_path / "log", stdin=lines.encode()).ok()
    return tmp_path / "log"


def listed(log, *flags):
    rows = map(json.loads, aclog("acls", "list", "--log", log, "--format", "jsonl", *flags).ok().lines)
    return {(row["resourceName"], row["patternType"]) for row in rows}


TAKEN = [
    ((), {("foobar", "LITERAL")}),
    (("--resource-pattern-type", "literal"), {("foobar", "LITERAL")}),
    (("--resource-pattern-type", "prefixed"), {("foobar", "PREFIXED")}),
    (("--resource-pattern-type", "any"), {("foobar", "LITERAL"), ("foobar", "PREFIXED")}),
    (("--resource-pattern-type", "match"), set(PATTERNS) - {("foo", "LITERAL")}),
]


@pytest.mark.parametrize(("flags", "taken"), TAKEN)
def test_list_and_remove_take_the_same(log, flags, taken):
    assert listed(log, "--topic", "foobar", *flags) == taken
    aclog("acls", "remove", "--log", log, "--force", "--topic", "foobar", *flags).ok()
    assert listed(log) == set(PATTERNS) - taken


@pytest.mark.parametrize(("given", "made"), [(None, "LITERAL"), ("literal", "LITERAL"), ("prefixed", "PREFIXED")])
def test_add_makes_a_literal_acl_unless_told(log, given, made):
    flags = () if given is None else ("--resource-pattern-type", given)
    new = ("--group", "my-app-", "--allow-principal", "User:Bob", "--operation", "Read")
    aclog("acls", "add", "--log", log, *new, *flags).ok()
    assert listed(log, "--group", "my-app-", "--resource-pattern-type", "any") == {("my-app-", made)}


@pytest.mark.parametrize("pattern", ["any", "match"])
def test_add_refuses_what_only_a_filter_may_be(log, pattern):
    refused = aclog(
        "acls", "add", "--log", log, "--topic", "t", "--allow-principal", "User:Bob", "--resource-pattern-type", pattern
    )
    assert refused.code == 2
    assert "is not valid when adding acls" in refused.complaint
    assert listed(log) == set(PATTERNS)
