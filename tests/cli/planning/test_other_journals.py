"""What other sources own for the same place stays, if their journals are given."""

import json
import re
import shutil

import pytest

from aclog.authorizer.acl import acl_text, object_of_rule
from tests.cli.planning.test_plan_and_apply import Source, add, held, steps
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog

A, B = (acl(name, "User:a") for name in "ab")


@pytest.fixture
def source(tmp_path):
    found = Source(tmp_path)
    found.make(A, B)
    found.want(A)
    return found


def test_a_journal_that_is_not_there_or_ones_own_protects_nothing_and_is_refused(source, tmp_path):
    """A mistyped name would let rules of others be deleted; one's own, or a copy, would be owned no more."""
    copy = tmp_path / "copy"
    shutil.copy(source.journal, copy)
    for other, why in ((tmp_path / "typo", "no such journal"), (source.journal, "the same"), (copy, "the same")):
        for command in ("plan", "drift"):
            refused = aclog(command, "--log", source.log, "--want", source.rules, "--journal", source.journal,
                            "--other-journal", other)  # fmt: skip
            assert refused.code == 2
            assert why in refused.complaint


def test_a_rollback_leaves_what_another_source_has_adopted(source, tmp_path):
    other = Source(tmp_path, "other")
    other.make(A, flags=("--adopt",))
    back = aclog("rollback", "--log", source.log, "--journal", source.journal, "--other-journal", other.journal,
                 "--out", source.plan_file, "--format", "jsonl")  # fmt: skip
    assert [(step["action"], step["rule"]["resourceName"]) for step in steps(back)] == [("REMOVE", "b")]
    source.apply().ok()
    assert (held(source.log), source.owned) == ({A}, 0)


def test_a_rule_wanted_by_two_is_shown(source, tmp_path):
    other = Source(tmp_path, "other")
    other.make(A, flags=("--adopt",))
    source.want(A)
    text = source.plan("--other-journal", other.journal).out
    assert "Shared (1 rule, also managed by another journal" in text
    assert f"no longer contains it):\n  {acl_text(A)}\n" in text
    late = Source(tmp_path, "late")
    late.want(A, B)
    text = late.plan("--other-journal", other.journal).out
    sections = dict(re.findall(r"^(\w+) \(.*\):\n  (.*)$", text, re.MULTILINE))
    assert (sections["Unmanaged"], sections["Shared"]) == (acl_text(B), acl_text(A))
    assert "Shared (" not in source.plan().out


def test_a_change_removes_no_rule_that_another_source_owns(source, tmp_path):
    third = Source(tmp_path, "third")
    third.rules.write_text(json.dumps({"action": "REMOVE", "rule": object_of_rule(A)}))
    asked = ("plan", "--log", source.log, "--change", third.rules, "--journal", third.journal, "--adopt")
    refused = aclog(*asked, "--other-journal", source.journal)
    assert refused.complaint == (f"{acl_text(A)}: managed by another journal: remove them with its source")
    assert aclog(*asked).code == 1


def test_a_journal_into_which_another_copy_was_merged_is_refused(source):
    """After the lines of a copy, what was removed meanwhile would be owned again."""
    copied = source.journal.read_bytes().splitlines(keepends=True)[1:]
    source.plan()
    source.apply().ok()
    source.journal.write_bytes(source.journal.read_bytes() + b"".join(copied))
    add(source.log, B)
    refused = source.plan()
    assert refused.code == 2
    assert "line 6: checksum mismatch" in refused.complaint


def test_a_journal_that_lacks_lines_in_the_middle_is_refused(source):
    """Without them it owned again what it had released, and was somebody else's."""
    aclog("acls", "remove", "--log", source.log, "--topic", "b", "--force").ok()
    source.make(A)
    source.make(A, acl("c", "User:a"))
    add(source.log, B)
    lines = source.journal.read_bytes().splitlines(keepends=True)
    assert source.plan().code == 0
    for without in range(1, len(lines) - 2, 2):
        source.journal.write_bytes(b"".join(lines[:without] + lines[without + 2 :]))
        refused = source.plan()
        assert (refused.code, f"line {without + 1}: checksum mismatch" in refused.complaint) == (2, True)


def test_a_file_that_is_no_journal_is_called_that(source):
    for content in (b"hello\n", source.rules.read_bytes(), b"\xef\xbb\xbf" + source.journal.read_bytes()):
        source.journal.write_bytes(content)
        assert "not a journal: expected a file written by `aclog apply`" in source.plan().complaint


def test_what_another_source_has_adopted_since_the_plan_was_made_stays(source, tmp_path):
    other = Source(tmp_path, "other")
    other.make(acl("c", "User:a"))
    assert source.plan("--other-journal", other.journal).code == 1
    other.make(B, acl("c", "User:a"), flags=("--adopt",))
    refused = source.apply()
    assert refused.code == 2
    assert f"{acl_text(B)}: now managed by {other.journal}" in refused.complaint
    assert B in held(source.log)
    assert source.plan("--other-journal", other.journal).code == 1
    source.apply().ok()
    assert B in held(source.log)


def test_another_journal_that_has_gone_on_or_is_gone_is_refused(source, tmp_path):
    other = Source(tmp_path, "other")
    other.make(acl("c", "User:b"))
    assert source.plan("--other-journal", other.journal).code == 1
    moved, kept = tmp_path / "moved", other.journal.read_bytes()
    other.journal.rename(moved)
    assert "no such journal" in source.apply().complaint
    shutil.copy(source.journal, other.journal)
    assert "not the journal that the plan was made with" in source.apply().complaint
    moved.rename(other.journal)
    other.make(acl("d", "User:b"))
    assert "has 4 entries, and had 2 when the plan was made" in source.apply().complaint
    other.journal.unlink()
    moved.write_bytes(kept)
    source.apply("--other-journal", moved).ok()
    assert B not in held(source.log)
