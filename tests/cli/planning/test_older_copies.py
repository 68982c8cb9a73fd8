"""A log or a journal that was put back to an older copy: the two do not tell the same story, and nothing is planned."""

import shutil

import pytest

from aclog.planning.journal import read_journal
from aclog.targets.applies import read_applies
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import Estate, log_with

A, B, C, THEIRS = (acl(name, "User:shop") for name in ("a", "b", "c", "theirs"))


@pytest.fixture
def estate(tmp_path):
    """After one apply: A and B."""
    found = Estate(tmp_path / "source", log_with(tmp_path / "log", [THEIRS]))
    found.wants(A, B)
    found.bring()
    return found


@pytest.fixture
def later(estate, tmp_path):
    """The same after a second one, C; `old-log` and `old-journal` are from before it."""
    shutil.copytree(tmp_path / "log", tmp_path / "old-log")
    shutil.copy(estate.journal, tmp_path / "old-journal")
    estate.wants(A, B, C)
    estate.bring()
    return estate


def newest(estate):
    return read_journal(estate.journal, str, print).entries[-1].apply


def test_an_older_copy_of_the_log_is_no_base_of_a_plan(later, tmp_path):
    """Else C, which it does not have, would no longer be owned, and stay for ever where it is."""
    shutil.rmtree(tmp_path / "log")
    shutil.copytree(tmp_path / "old-log", tmp_path / "log")
    before = later.journal.read_bytes()
    later.wants(A, B)
    for refused in (
        later.plan().result,
        aclog("rollback", *later.place, "--journal", later.journal),
    ):
        assert refused.code == 2
        assert f"does not have apply {newest(later)}" in refused.complaint
        assert "older copy of the log" in refused.complaint
    assert later.journal.read_bytes() == before


def test_an_older_copy_of_the_journal_owns_too_little(later, tmp_path):
    apply = newest(later)
    shutil.copy(tmp_path / "old-journal", later.journal)
    later.wants(A)
    refused = later.plan().result
    assert refused.code == 2
    assert f"does not have apply {apply}" in refused.complaint
    assert "older copy of the journal" in refused.complaint


def test_older_copies_of_both_fit_each_other(later, tmp_path):
    shutil.rmtree(tmp_path / "log")
    shutil.copytree(tmp_path / "old-log", tmp_path / "log")
    shutil.copy(tmp_path / "old-journal", later.journal)
    later.wants(A)
    assert later.bring().removed() == {B}


def test_an_apply_that_was_killed_before_it_wrote_is_none_that_the_log_lost(later, tmp_path):
    shutil.rmtree(tmp_path / "log")
    shutil.copytree(tmp_path / "old-log", tmp_path / "log")
    lines = later.journal.read_bytes().splitlines(keepends=True)
    later.journal.write_bytes(b"".join(lines[:-1]))  # BEGIN without DONE
    later.wants(A)
    assert later.bring().removed() == {B}
    assert later.rules() == {THEIRS, A}


def test_what_only_adopts_writes_nothing_that_a_log_could_lose(estate):
    estate.wants(A, B, THEIRS)
    estate.plan("--adopt")
    estate.apply().ok()
    estate.wants(A)
    assert estate.bring().removed() == {B, THEIRS}


def test_applies_of_another_source_are_none_of_this_journal(estate, tmp_path):
    other = Estate(tmp_path / "other", estate.place)
    other.wants(C)
    other.bring()
    estate.wants(A)
    assert estate.bring().removed() == {B}
    assert other.plan("--other-journal", estate.journal).result.code == 0


def test_an_older_copy_that_went_on_is_no_base_of_an_apply(later, tmp_path):
    """It ends where the newer one did, or later, and the plan touches nothing that it lacks."""
    later.wants(A, C)
    assert later.plan().removed() == {B}
    apply = newest(later)
    shutil.rmtree(tmp_path / "log")
    shutil.copytree(tmp_path / "old-log", tmp_path / "log")
    for name in ("x", "y", "z"):
        rule = ("--allow-principal", "User:other", "--operation", "READ", "--topic", name)
        aclog("acls", "add", *later.place, *rule).ok()
    refused = later.apply()
    assert refused.code == 2
    assert f"does not have apply {apply}" in refused.complaint
    assert B in later.rules()


def test_a_log_without_an_identity_is_not_taken_for_another_one(tmp_path):
    """Nothing was applied to either: the first apply would give the wrong one its identity."""
    planned = Estate(tmp_path / "source", log_with(tmp_path / "log", [THEIRS]))
    log_with(tmp_path / "another", [THEIRS])
    planned.wants(A)
    planned.plan()
    (tmp_path / "log").rename(tmp_path / "moved")
    (tmp_path / "log").symlink_to(tmp_path / "another")
    refused = planned.apply()
    assert refused.code == 2
    assert "not the target that the plan was made for" in refused.complaint
    assert planned.rules() == {THEIRS}
    (tmp_path / "log").unlink()
    (tmp_path / "moved").rename(tmp_path / "log")
    planned.apply().ok()
    assert planned.rules() == {THEIRS, A}


@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_journal_from_before_an_apply_that_changed_only_who_owns_what_is_an_older_copy(estate, tmp_path, is_adopted):
    """Else B, which somebody else has added again, would be removed; or C, which it owns, would stay for ever."""
    if is_adopted:
        aclog("acls", "add", *estate.place, "--topic", "c", "--allow-principal", "User:shop", "--operation", "Read")
    else:
        aclog("acls", "remove", *estate.place, "--topic", "b", "--force").ok()
    shutil.copy(estate.journal, tmp_path / "old-journal")
    estate.wants(*((A, B, C) if is_adopted else (A,)))
    assert not estate.plan("--adopt").steps
    estate.apply().ok()
    apply = newest(estate)
    [*_, noted] = read_applies(tmp_path / "log").applied
    assert (noted.note.apply, noted.steps, noted.done) == (apply, 0, True)
    shutil.copy(tmp_path / "old-journal", estate.journal)
    refused = estate.plan().result
    assert (refused.code, f"does not have apply {apply}" in refused.complaint) == (2, True)
    history = aclog("acls", "history", *estate.place, "--format", "jsonl").ok()
    assert apply not in history.out
