"""`aclog plan` and `aclog apply` on a log: what is owned, what is refused, and what is left after a kill."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from aclog.authorizer.acl import object_of_rule
from aclog.cli.schema import schema_of
from aclog.planning.journal import read_journal
from aclog.snapshots.publisher import recover
from aclog.targets.applies import read_applies
from tests.support.builders.acls import acl
from tests.support.cli.command import Result, aclog
from tests.support.processes.write_faults import compiled

A, B, C, D = (acl(principal="User:a", name=name) for name in ("a", "b", "c", "d"))


class Source:
    """A source of rules, with the journal of it, and the log that it is for."""

    def __init__(self, home: Path, name: str = "source"):
        self.home, self.log = home, home / "log"
        self.rules, self.journal, self.plan_file = (
            home / f"{name}.jsonl",
            home / f"{name}.journal",
            home / f"{name}.plan",
        )

    def want(self, *acls) -> None:
        self.rules.write_text("".join(f"{json.dumps(object_of_rule(each))}\n" for each in acls))

    def plan(self, *flags) -> Result:
        return aclog(
            "plan", "--log", self.log, "--want", self.rules, "--journal", self.journal, "--out", self.plan_file, *flags
        )

    def apply(self, *flags) -> Result:
        return aclog("apply", self.plan_file, "--yes", *flags)

    def make(self, *acls, flags=()) -> None:
        """Want these, plan it and apply it."""
        self.want(*acls)
        assert self.plan(*flags).code == 1
        self.apply().ok()

    @property
    def owned(self) -> int:
        return len(read_journal(self.journal, lambda: "new", print).owned)


def held(log: Path) -> set:
    return {rule.acl for rule in recover(log).image.acls}


def add(log: Path, each) -> None:
    """Add a rule by hand."""
    aclog("acls", "add", "--log", log, "--allow-principal", each.principal, "--topic", each.resource_name,
          "--operation", "READ").ok()  # fmt: skip


def steps(result: Result) -> list[dict]:
    return [json.loads(line) for line in result.lines]


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path)


def test_a_log_that_is_not_there_is_made(source):
    source.want(A, B)
    result = source.plan("--format", "jsonl")
    assert result.code == 1
    for step in steps(result):
        Draft202012Validator(schema_of("step")).validate(step)
    assert [(step["action"], step["batch"]) for step in steps(result)] == [("ADD", 0)] * 2
    assert not source.log.exists()
    said = source.apply().ok()
    assert "2 rules added, 0 deleted" in said.out
    assert held(source.log) == {A, B}
    assert source.plan().code == 0
    assert "no difference" in source.plan().out


def test_only_what_is_owned_is_deleted(source):
    source.make(A, B)
    add(source.log, C)
    source.want(A)
    result = source.plan("--format", "jsonl")
    assert [(step["action"], step["rule"]["resourceName"]) for step in steps(result)] == [("REMOVE", "b")]
    source.apply().ok()
    assert held(source.log) == {A, C}


def test_a_wanted_rule_that_is_there_is_never_deleted_unless_it_is_adopted(source):
    source.make(A)
    add(source.log, B)
    source.want(A, B)
    assert source.plan().code == 0
    source.want(A)
    assert source.plan().code == 0
    source.want(A, B)
    assert source.plan("--adopt").code == 1
    source.apply().ok()
    assert source.owned == 2
    source.want(A)
    assert source.plan().code == 1
    source.apply().ok()
    assert held(source.log) == {A}


def test_two_sources_do_not_touch_each_others_rules(tmp_path):
    one, other = Source(tmp_path, "one"), Source(tmp_path, "other")
    one.make(A, B)
    other.make(B, C)
    assert held(one.log) == {A, B, C}
    one.want(A)
    assert one.plan().code == 1
    one.apply().ok()
    assert held(one.log) == {A, C}, "the one who had made it deletes it"
    other.make(B, C)
    one.want(B)
    result = one.plan("--adopt", "--format", "jsonl")
    assert [(step["action"], step["rule"]["resourceName"]) for step in steps(result)] == [("REMOVE", "a")]
    one.apply().ok()
    one.want()
    result = one.plan("--other-journal", other.journal, "--max-deletes", "5", "--format", "jsonl")
    assert (result.code, result.lines) == (1, []), "both own it: it is released"
    one.apply().ok()
    assert (one.owned, held(one.log)) == (0, {B, C})


def test_many_deletes_and_an_empty_source_are_refused_unless_they_are_meant(source):
    many = [acl(principal="User:a", name=f"t{number}") for number in range(30)]
    source.make(*many)
    source.want(*many[:9])
    assert "21 deletes of 30 managed ACLs exceed --max-deletes" in source.plan().complaint
    source.want(*many[:10])
    assert source.plan().code == 1
    assert source.plan("--max-deletes", "19").code == 2
    assert source.plan("--max-deletes", "50%").code == 2
    assert source.plan("--max-deletes", "70%").code == 1
    source.plan_file.unlink()
    source.make(*many[:5], flags=("--max-deletes", "25"))
    source.want()
    source.plan_file.unlink()
    assert "has no rules at all, so all 5 that are owned would be deleted" in source.plan().complaint
    assert not source.plan_file.exists()
    assert source.plan("--max-deletes", "100%").code == 1
    assert "expected a number such as 50" in source.plan("--max-deletes", "many").complaint


def test_a_change_removes_what_is_not_owned_only_when_told(source):
    source.make(A)
    add(source.log, B)
    change = source.home / "change.jsonl"
    lines = [{"action": action, "rule": object_of_rule(each)} for action, each in
             (("REMOVE", B), ("ADD", C), ("ADD", A), ("REMOVE", D))]  # fmt: skip
    change.write_text("\n".join(map(json.dumps, lines)))
    asked = ("plan", "--log", source.log, "--change", change, "--journal", source.journal, "--out", source.plan_file)
    assert "1 ACL to remove not managed by the journal" in aclog(*asked).complaint
    assert aclog(*asked, "--adopt").code == 1
    source.apply().ok()
    assert held(source.log) == {A, C}
    assert source.owned == 2
    assert aclog(*asked).code == 0, "it is made already"


def test_a_changed_region_is_refused_and_a_change_elsewhere_is_not(source):
    source.make(A)
    source.want(A, B)
    flags = ("--no-allow-everyone-if-no-acl-found",)
    assert source.plan(*flags).code == 1
    add(source.log, acl(principal="User:z", name="b"))
    source.apply().ok()
    source.want(A, B, C)
    assert source.plan(*flags).code == 1
    add(source.log, acl(principal="User:*", name="c"))
    assert "ACLs that the plan touches have changed" in source.apply().complaint
    assert C not in held(source.log)
    assert source.plan().code == 1, "who is let in where no rule is, nobody tells: it matters to all"
    add(source.log, acl(principal="User:y", name="c"))
    assert source.apply().code == 2


def test_a_plan_is_applied_once(source):
    source.make(A)
    assert "this plan is applied already" in source.apply().ok().err
    source.want(B)
    assert source.plan().code == 1
    shutil.copy(source.plan_file, source.home / "old")
    source.make(C)
    assert "another plan was applied" in aclog("apply", source.home / "old", "--yes").complaint
    assert "no interrupted apply of this plan" in aclog("apply", source.home / "old", "--yes", "--resume").complaint


def test_a_plan_that_was_changed_is_refused(source):
    source.want(A, B)
    source.plan()
    whole = source.plan_file.read_text()
    head, first, second = whole.splitlines()
    cases = {
        f"{head}\n{first}\n": "changed since it was written",
        f"{head}\n{first}\n{second.replace('READ', 'ALL')}\n": "changed since it was written",
        f"{head.replace('User', 'Group')}\n{first}\n{second}\n": "",
        f"{head}\n{first}\n{{}}\n": "line 3: expected a step",
        f"{first}\n{second}\n": "not a plan",
        "": "expected a plan",
        head.replace('"version":1', '"version":2'): "plan version 2",
    }
    for text, said in cases.items():
        source.plan_file.write_text(text)
        result = source.apply()
        if text != whole:
            assert result.code == 2
            assert said in result.complaint
    assert not source.log.exists()
    assert not source.journal.exists()


def test_another_place_an_older_one_and_an_empty_one_are_refused(source, tmp_path):
    source.make(*(acl(name=f"t{number}") for number in range(9)), A)
    older = shutil.copytree(source.log, tmp_path / "older")
    source.make(*(acl(name=f"t{number}") for number in range(9)), A, B)
    source.want(A, C)
    assert source.plan().code == 1
    assert "an older copy" in source.apply("--log", older).complaint
    aclog("import", source.rules, "--log", tmp_path / "other").ok()
    assert "has no identity" in source.apply("--log", tmp_path / "other").complaint
    assert "expected the same target" in source.apply("--log", tmp_path / "none").complaint
    shutil.rmtree(source.log)
    assert source.apply().code == 2
    assert "expected the same target" in source.plan().complaint
    assert not source.log.exists()


def look(source) -> Result:
    """Plan without writing one: the plan that is there stays."""
    return aclog("plan", "--log", source.log, "--want", source.rules, "--journal", source.journal)


def test_a_journal_that_is_gone_or_damaged_or_anothers_is_refused(source, tmp_path):
    source.make(A)
    source.want(B)
    assert source.plan().code == 1
    kept = source.journal.read_bytes()
    source.journal.unlink()
    assert source.apply().code == 2
    assert not source.journal.exists()
    source.journal.write_bytes(kept.replace(b'"ADD"', b'"ADD "', 1))
    assert "damaged or was edited" in source.apply().complaint
    assert "damaged or was edited" in look(source).complaint
    other = Source(tmp_path / "x", "other")
    other.home.mkdir()
    other.make(A)
    assert "not the journal that" in source.apply("--journal", other.journal).complaint
    source.journal.write_bytes(other.journal.read_bytes())
    assert "expected the same target, or a journal of its own" in look(source).complaint
    source.journal.write_bytes(kept + b'{"kind":"BEG')
    result = source.apply().ok()
    assert "an incomplete line" in result.err
    assert held(source.log) == {B}


def test_who_applied_what_stands_in_the_journal_and_beside_the_log(source):
    source.make(A)
    source.make(A, B)
    entries = read_journal(source.journal, lambda: "new", print).entries
    assert [entry.kind for entry in entries] == ["BEGIN", "DONE"] * 2
    noted = read_applies(source.log)
    assert noted is not None
    assert [each.note.apply for each in noted.applied] == [entries[0].apply, entries[2].apply]
    assert [each.done for each in noted.applied] == [True, True]
    last = noted.applied[-1]
    assert (last.offset, last.steps) == (recover(source.log).image.end_offset - 1, 1)
    assert "@" in last.note.who
    assert entries[3].place == noted.id


def test_the_history_tells_which_apply_made_a_change(source):
    source.make(A, B)
    add(source.log, D)
    source.make(A, C)
    add(source.log, acl(name="last"))
    rows = steps(aclog("acls", "history", "--log", source.log, "--format", "jsonl").ok())
    first, second = (entry.apply for entry in read_journal(source.journal, lambda: "new", print).entries[1::2])
    told = [(row["resourceName"], row["apply"], row["who"] is not None) for row in rows]
    assert told == [
        ("a", first, True), ("b", first, True), ("d", None, False), ("c", second, True), ("b", second, True),
        ("last", None, False),
    ]  # fmt: skip
    since = steps(aclog("acls", "history", "--log", source.log, "--since", str(rows[2]["offset"]), "--format", "jsonl"))
    assert [row["apply"] for row in since] == [None, second, second, None]
    table = aclog("acls", "history", "--log", source.log).ok()
    assert table.lines[0].split()[-6:] == ["APPLY", "RUN", "CHANGED", "BY", "GIT", "COMMIT"]
    assert table.err.count("APPLY RUN -: the change was not made by a recorded run of aclog apply") == 1


def test_a_file_is_no_place(source):
    source.want(A)
    asked = ("plan", "--log", source.rules, "--want", source.rules, "--journal", source.journal)
    assert "not a directory: expected that of a log" in aclog(*asked).complaint


def test_nobody_is_asked_without_a_terminal(source):
    source.want(A)
    source.plan()
    assert "expected --yes" in aclog("apply", source.plan_file).complaint
    assert not source.log.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="preloads a library by LD_PRELOAD")
@pytest.mark.slow(6)
@pytest.mark.parametrize(("how", "age"), [("kill", "new"), ("kill", "old"), ("full", "old")])
def test_killed_at_any_write_a_second_apply_ends_as_the_first_would_have(tmp_path, how, age):
    base = tmp_path / "base"
    base.mkdir()
    source = Source(base)
    if age == "old":
        source.make(A, B, C)
    source.want(B, C, D)
    assert source.plan().code == 1
    shutil.move(source.plan_file, base / "PLAN")
    if source.journal.exists():
        shutil.move(source.journal, base / "journal")
    program = [sys.executable, "-m", "tests.support.planning.faulty_applies", str(tmp_path), how]
    found = subprocess.run(
        program, env={**os.environ, "LD_PRELOAD": str(compiled(tmp_path))}, capture_output=True, text=True, check=False
    )
    *tried, last = found.stdout.split("\n")[:-1]
    assert (found.returncode, last) == (0, "done"), found.stderr
    assert {line.strip() for line in tried} == ({"before", "after"} if age == "old" else {"absent", "after"})
    assert len(tried) > (10 if how == "kill" else 6)
