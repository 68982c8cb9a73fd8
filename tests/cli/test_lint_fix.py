"""`aclog lint --fix`: a change that mends findings and no decision."""

import json
from random import Random

import pytest

from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog

WIDE = acl_row("orders.", principal="User:a", operation="READ", patternType="PREFIXED")
NARROW = acl_row("orders.in", principal="User:a", operation="READ")
IMPLIED = acl_row("orders.", principal="User:a", operation="DESCRIBE", patternType="PREFIXED")
NEEDED = acl_row("pay", principal="User:a", operation="READ")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes JSON lines to a file of the working directory, and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, *rows):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return name

    return write


def changes_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def removed(path):
    return [change["rule"] for change in changes_in(path) if change["action"] == "REMOVE"]


def test_what_others_say_goes_and_the_rest_is_counted(write, tmp_path):
    acls = write("acls.jsonl", WIDE, NARROW, IMPLIED, NEEDED)
    result = aclog("lint", "--acls", acls, "--fix", "change.jsonl").ok()
    said = "change.jsonl: written: 2 changes for 2 findings, proved to change no decision; 1 finding left"
    assert said in result.err
    assert sorted(map(str, removed(tmp_path / "change.jsonl"))) == sorted(map(str, (NARROW, IMPLIED)))
    assert aclog("check", "equal", "--acls", acls, "--change", "change.jsonl").code == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("flags", [(), ("--allow-everyone-if-no-acl-found",), ("--super-users", "User:b")])
def test_no_decision_changes_whatever_is_asked(write, seed, flags):
    random = Random(seed)
    rows = {}
    for _ in range(25):
        row = acl_row(
            random.choice(("a", "ab", "abc", "*")),
            principal=random.choice(("User:a", "User:b", "User:*")),
            host=random.choice(("*", "*", "10.0.0.1")),
            operation=random.choice(("READ", "DESCRIBE", "ALL")),
            patternType=random.choice(("LITERAL", "PREFIXED")),
            permissionType=random.choice(("ALLOW", "ALLOW", "DENY")),
        )
        rows[str(row)] = row
    acls = write("acls.jsonl", *rows.values())
    assert "proved to change no decision" in aclog("lint", "--acls", acls, *flags, "--fix", "change.jsonl").err
    assert aclog("check", "equal", "--acls", acls, "--change", "change.jsonl", *flags).code == 0


def test_a_suppressed_finding_and_one_of_another_lint_stay(write, tmp_path):
    acls = write("acls.jsonl", WIDE, NARROW, IMPLIED)
    (tmp_path / "ignore.toml").write_text("[[ignore]]\nlint = '11'\nreason = 'r'\n")
    aclog("lint", "--acls", acls, "--fix", "a.jsonl", "--ignore", "ignore.toml").ok()
    assert [rule["resourceName"] for rule in removed(tmp_path / "a.jsonl")] == ["orders.in"]
    aclog("lint", "--acls", acls, "--fix", "b.jsonl", "--select", "01").ok()
    assert removed(tmp_path / "b.jsonl") == []
    assert aclog("check", "equal", "--acls", acls, "--change", "b.jsonl").code == 0


def test_it_is_for_logs_as_well(write, tmp_path):
    aclog("import", write("acls.jsonl", WIDE, NARROW), "--log", tmp_path / "log").ok()
    aclog("lint", "--log", tmp_path / "log", "--fix", "change.jsonl").ok()
    assert len(removed(tmp_path / "change.jsonl")) == 1
    assert aclog("check", "equal", "--log", tmp_path / "log", "--change", "change.jsonl").code == 0


def test_a_file_is_never_replaced_by_another_change(write, tmp_path):
    flags = ("lint", "--acls", write("acls.jsonl", WIDE, NARROW), "--fix", "change.jsonl")
    assert "change.jsonl: written: 1 change for 1 finding" in aclog(*flags).ok().err
    assert "change.jsonl: already there: 1 change for 1 finding" in aclog(*flags).ok().err
    before = (tmp_path / "change.jsonl").read_bytes()
    other = aclog("lint", "--acls", write("others.jsonl", NEEDED), "--fix", "change.jsonl")
    assert (other.code, other.out) == (2, "")
    assert "change.jsonl: exists already, and is not this change" in other.complaint
    assert (tmp_path / "change.jsonl").read_bytes() == before
    assert "exists already" in aclog(*flags[:-1], tmp_path).complaint
    assert "no such file" in aclog(*flags[:-1], tmp_path / "no/where").complaint
    assert not list(tmp_path.glob("*.part"))
