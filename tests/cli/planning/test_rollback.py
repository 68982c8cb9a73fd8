"""`aclog rollback`: back to before an apply, whatever came since."""

import random

import pytest

from aclog.planning.journal import read_journal
from tests.cli.planning.test_plan_and_apply import A, B, C, D, Source, add, held
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path)


def roll_back(source: Source, *flags) -> None:
    asked = ("rollback", "--log", source.log, "--journal", source.journal, "--out", source.plan_file, *flags)
    assert aclog(*asked).code == 1
    source.apply().ok()


def entries(source: Source):
    return read_journal(source.journal, lambda: "new", print).entries


def test_the_newest_apply_is_undone_and_then_that(source):
    source.make(A, B)
    source.make(B, C)
    roll_back(source)
    assert held(source.log) == {A, B}
    assert source.owned == 2
    roll_back(source)
    assert held(source.log) == {B, C}


def test_an_older_apply_is_undone_with_all_that_came_after_it(source):
    source.make(A)
    source.make(A, B)
    source.make(C)
    second = entries(source)[2].apply
    roll_back(source, "--apply", second[:8])
    assert held(source.log) == {A}
    roll_back(source, "--apply", entries(source)[0].apply)
    assert held(source.log) == set()
    assert source.owned == 0


def test_what_others_did_stays_and_so_does_what_was_not_owned(source):
    source.make(A, B)
    add(source.log, C)
    source.want(A, C)
    assert source.plan("--adopt").code == 1
    source.apply().ok()
    add(source.log, B)
    add(source.log, D)
    result = aclog("rollback", "--log", source.log, "--journal", source.journal, "--out", source.plan_file)
    assert (result.code, "0 rules to add, 0 to delete, 1 to release" in result.out) == (1, True), result.out
    source.apply().ok()
    assert held(source.log) == {A, B, C, D}
    assert source.owned == 1, "B, which is there again, is whose it is"
    source.want(A)
    assert source.plan().code == 0


def test_what_was_released_and_is_another_sources_now_is_not_owned_again(source, tmp_path):
    source.make(A, B)
    aclog("acls", "remove", "--log", source.log, "--topic", "b", "--force").ok()
    source.make(A)
    other = Source(tmp_path, "other")
    other.make(B)
    back = aclog("rollback", "--log", source.log, "--journal", source.journal)
    assert (back.code, "nothing to do" in back.out) == (0, True), back.out
    assert source.plan().code == 0


def test_a_rule_that_was_removed_though_not_owned_is_not_owned_when_it_is_back(source):
    source.make(A)
    add(source.log, B)
    change = source.home / "change.jsonl"
    source.want(B)
    rule = source.rules.read_text().strip()
    change.write_text(f'{{"action":"REMOVE","rule":{rule}}}\n')
    asked = ("plan", "--log", source.log, "--change", change, "--journal", source.journal, "--adopt")
    assert aclog(*asked, "--out", source.plan_file).code == 1
    source.apply().ok()
    assert held(source.log) == {A}
    roll_back(source)
    assert held(source.log) == {A, B}
    assert source.owned == 1


def test_after_any_history_each_apply_can_be_undone(source):
    numbers = random.Random(7)
    rules = [acl(name=f"t{number}") for number in range(12)]
    before = {}
    for _ in range(8):
        there = held(source.log) if source.log.exists() else set()
        wanted = [rule for rule in rules if numbers.random() < 0.5]
        if numbers.random() < 0.4 and there:
            add(source.log, acl(name=f"foreign{numbers.randrange(99)}"))
            there = held(source.log)
        source.want(*wanted)
        flags = ("--max-deletes", "100%", *(["--adopt"] if numbers.random() < 0.5 else []))
        if source.plan(*flags).code == 1:
            source.apply().ok()
            before[entries(source)[-1].apply] = (there, source.owned)
    foreign = {rule for rule in held(source.log) if rule.resource_name.startswith("foreign")}
    for apply in reversed(before):
        there, _ = before[apply]
        roll_back(source, "--apply", apply)
        assert held(source.log) == there | foreign
        source.plan_file.unlink()
        roll_back(source)  # forth again, so that the next one has more to undo


def test_what_cannot_be_undone_says_so(source):
    asked = ("rollback", "--log", source.log, "--journal", source.journal)
    assert "no such journal" in aclog(*asked).complaint
    source.make(A)
    assert "no apply has the id zzzzzz" in aclog(*asked, "--apply", "zzzzzz").complaint


def test_it_deletes_no_more_than_a_plan_may(source):
    source.make(A)
    source.make(A, *(acl(name=f"t{number}") for number in range(21)))
    asked = ("rollback", "--log", source.log, "--journal", source.journal, "--out", source.plan_file)
    refused = aclog(*asked)
    assert refused.code == 2
    assert "21 deletes of 22 managed ACLs exceed --max-deletes" in refused.complaint
    assert "0 rules to add, 21 to delete" in refused.out
    assert not source.plan_file.exists()
    roll_back(source, "--max-deletes", "21")
    assert held(source.log) == {A}


def test_what_can_no_longer_be_created_is_refused(source):
    """A host that is no range, from before the place took ranges."""
    source.make(A, acl(name="r", host="10.0.0.0/99"))
    source.make(A)
    asked = ("rollback", "--log", source.log, "--journal", source.journal)
    refused = aclog(*asked, "--cidr")
    assert (refused.code, "CreateAcls refuses it" in refused.complaint) == (2, True)
    assert aclog(*asked).code == 1
