"""`aclog spark when` by its own command line: the same lines as `aclog when`, and what it refuses."""

from contextlib import contextmanager

import pytest

from aclog.metalog.records import BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.cli.command import aclog

ASK = (
    "--operation",
    "READ",
    "--topic",
    "pii-",
    "--resource-pattern-type",
    "prefixed",
    "--except-principal",
    "User:eve",
)


@pytest.fixture
def log(tmp_path):
    return write_log(
        tmp_path / "log",
        [acl(1, name="other")],
        [acl(2, name="pii-a", principal="User:bob"), acl(3, name="pii-b", principal="User:eve")],
        [BeginTransactionRecord(), removal(2)],
        [EndTransactionRecord()],
        [acl(4, name="pii-c")],
    )


@pytest.fixture
def _shared_session(spark, monkeypatch):
    """The command runs in the session of all tests, which it must not stop."""

    @contextmanager
    def session(_master):
        yield spark

    monkeypatch.setattr("aclog.cli.spark.spark_session.spark_session", session)


@pytest.mark.usefixtures("_shared_session")
def test_it_prints_what_aclog_when_prints(log):
    for form in ("text", "jsonl"):
        plain = aclog("when", "--log", log, *ASK, "--format", form).ok()
        assert len(plain.lines) == (4 if form == "text" else 2)
        assert aclog("spark", "when", "--log", log, *ASK, "--format", form).ok().out == plain.out


@pytest.mark.usefixtures("_shared_session")
def test_it_says_that_what_was_before_a_checkpoint_is_unknown(tmp_path):
    short = write_log(tmp_path / "short", [acl(9, name="other")], base=3, times=[9000])
    write_checkpoint(recover(write_log(tmp_path / "whole", [acl(1)], [acl(3)], [removal(3)]), 3).image, short)
    never = aclog("spark", "when", "--log", short, *ASK).ok()
    assert never.lines == ["never since offset 3, with which the history begins"]
    assert "the history begins at offset 3: what was before it is unknown" in never.err


@pytest.mark.usefixtures("_shared_session")
def test_a_contradiction_is_one_line(log):
    write_log(log, [acl(1, name="other")], [removal(7)])
    result = aclog("spark", "when", "--log", log, *ASK)
    assert (result.code, result.out) == (2, "")
    assert "log: offset 1: ACL" in result.complaint
    assert result.complaint.endswith("is removed, but does not exist")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (ASK[:2], "no resource is given"),
        ((*ASK, "--principal", "User:a"), "not both"),
        ((*ASK, "--super-users", "admin"), "admin"),
    ],
)
def test_a_malformed_question_is_refused_before_a_session_starts(log, arguments, complaint):
    result = aclog("spark", "when", "--log", log, *arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.complaint


def test_no_log(tmp_path):
    assert "nowhere: no such file or directory" in aclog("spark", "when", "--log", tmp_path / "nowhere", *ASK).complaint
