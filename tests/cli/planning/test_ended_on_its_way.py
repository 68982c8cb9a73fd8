"""What a killed apply left: what the next command takes it for, whichever that is."""

import shutil

import pytest

from aclog.planning.applying import Applying
from aclog.planning.journal import EntryKind, JournalWriter, read_journal
from aclog.targets import log
from aclog.targets.applies import append_applies, read_applies
from aclog.targets.log import LogPlace
from tests.cli.planning.test_plan_and_apply import Source, add, held
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog

A, B, C = (acl(name, "User:a") for name in "abc")


class KilledError(BaseException):
    """The process ends here."""


def kill(*_: object, **__: object) -> None:
    raise KilledError


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path)


def end_on_its_way(source, monkeypatch, owner, name, *flags):
    """Apply, and be killed in this method."""
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, kill)
        with pytest.raises(KilledError):
            source.apply(*flags)


def test_a_new_log_is_never_there_without_the_note_of_its_apply(source, monkeypatch):
    source.want(A)
    assert source.plan().code == 1
    end_on_its_way(source, monkeypatch, log, "fsync_directory")  # it has its name just now
    [begun] = read_applies(source.log).applied
    assert (begun.steps, begun.done) == (1, False)
    source.apply("--resume").ok()
    [done] = read_applies(source.log).applied
    assert done.done
    source.make(A, B)
    assert held(source.log) == {A, B}


def test_an_apply_that_another_command_settled_before_it_was_whole_is_not_done(source, monkeypatch):
    source.make(A)
    source.want(A, B)
    assert source.plan().code == 1
    first = source.plan_file.read_bytes()
    end_on_its_way(source, monkeypatch, LogPlace, "write")
    source.want(A, B, C)
    assert source.plan().code == 1
    end_on_its_way(source, monkeypatch, LogPlace, "write")
    lines = source.journal.read_bytes().splitlines(keepends=True)
    source.journal.write_bytes(b"".join(lines[:-1]))  # without BEGIN, the first one is ended all the same
    assert read_journal(source.journal, lambda: "new", print).entries[-1].kind is EntryKind.DONE
    source.plan_file.write_bytes(first)
    for flags in ((), ("--resume",)):
        refused = source.apply(*flags)
        assert refused.code == 2
        assert "a later command settled it with 0 of its 1 changes: create a new plan" in refused.complaint
    assert held(source.log) == {A}
    source.make(A, B)
    assert held(source.log) == {A, B}


def test_after_all_was_removed_a_new_plan_can_be_made(source, monkeypatch):
    source.make(A, B)
    source.want()
    assert source.plan("--max-deletes", "100%").code == 1
    end_on_its_way(source, monkeypatch, LogPlace, "read_back")
    assert held(source.log) == set()
    assert source.plan().code == 0
    source.make(C)
    assert (held(source.log), source.owned) == ({C}, 1)


def test_what_no_apply_could_write_is_refused_before_there_is_a_journal(source, tmp_path):
    source.want(A)
    source.log = tmp_path / "typo" / "log"
    assert "typo: no such directory" in source.plan().complaint
    source.log = source.rules
    assert f"{source.rules}: not a directory: expected that of a log" in source.plan().complaint
    source.log = tmp_path / "empty"
    source.log.mkdir()
    source.journal = source.log / "journal"
    assert "in the directory of the log" in source.plan().complaint
    assert not list(source.log.iterdir())


def test_a_new_log_that_another_apply_has_made_meanwhile_is_left_to_it(source, tmp_path, monkeypatch):
    """Both plans were made for a log that was not there."""
    other = Source(tmp_path, "other")
    for each, rule in ((source, A), (other, B)):
        each.want(rule)
        assert each.plan().code == 1
    name = log._name

    def late(partial, directory):
        monkeypatch.setattr(log, "_name", name)
        other.apply().ok()
        name(partial, directory)

    monkeypatch.setattr(log, "_name", late)
    stopped = source.apply()
    assert stopped.code == 2
    assert f"{source.log}: it was created by another program meanwhile" in stopped.complaint
    assert "stopped after 0 of 1 steps" in stopped.complaint
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_dir()) == ["log"]
    assert "not the target" in source.apply("--resume").complaint
    source.make(A)
    assert held(source.log) == {A, B}


def test_what_somebody_else_added_after_a_kill_before_the_write_is_his(source, monkeypatch):
    source.make(A)
    source.want(A, B)
    assert source.plan().code == 1
    end_on_its_way(source, monkeypatch, LogPlace, "write")
    add(source.log, B)
    assert "changed since the plan was made" in source.apply("--resume").complaint
    source.want(A)
    assert source.plan().code == 0
    source.want()
    assert source.plan("--max-deletes", "100%").code == 1
    source.apply().ok()
    assert held(source.log) == {B}


def test_the_same_between_the_note_of_the_apply_and_its_records(source, monkeypatch):
    """The log has the note, and then at its offset the same change, by somebody else."""
    source.make(A)
    source.want(A, B)
    assert source.plan().code == 1
    end_on_its_way(source, monkeypatch, log.LogWriter, "append")
    assert not read_applies(source.log).applied[-1].done
    add(source.log, B)
    source.want(A)
    assert source.plan().code == 0


@pytest.mark.parametrize("at", ["read_back", "note_done", "_append"])
def test_what_was_removed_and_is_there_again_by_somebody_else_stays(source, monkeypatch, at):
    source.make(A, B)
    source.want(A)
    assert source.plan().code == 1
    if at == "_append":  # of DONE
        append = Applying._append

        def begin_only(applying, kind, *more):
            return kill() if kind is EntryKind.DONE else append(applying, kind, *more)

        monkeypatch.setattr(Applying, "_append", begin_only)
        with pytest.raises(KilledError):
            source.apply()
        monkeypatch.undo()
    else:
        end_on_its_way(source, monkeypatch, LogPlace, at)
    add(source.log, B)
    back = aclog("rollback", "--log", source.log, "--journal", source.journal)
    assert "Plan: nothing to do" in back.out
    assert source.apply().ok().code == 0
    assert (held(source.log), source.owned) == ({A, B}, 1)
    assert read_applies(source.log).applied[-1].done
    assert source.plan().code == 0


@pytest.mark.parametrize("at", ["note_done", "_append"])
def test_an_apply_that_only_adopts_is_ended_by_a_second_one(source, monkeypatch, at):
    """The first gave the log its identity."""
    source.want(A)
    aclog("import", source.rules, "--log", source.log).ok()
    assert source.plan("--adopt").code == 1
    if at == "note_done":
        end_on_its_way(source, monkeypatch, LogPlace, at)
    else:
        append = Applying._append
        with monkeypatch.context() as patched:
            patched.setattr(
                Applying,
                "_append",
                lambda applying, kind, *more: kill() if kind is EntryKind.DONE else append(applying, kind, *more),
            )
            with pytest.raises(KilledError):
                source.apply()
    source.apply().ok()
    assert (held(source.log), source.owned) == ({A}, 1)
    assert source.plan().code == 0


def test_an_identity_without_a_note_is_none_yet(source, monkeypatch):
    """The write of both was torn."""
    source.want(A)
    aclog("import", source.rules, "--log", source.log).ok()
    assert source.plan("--adopt").code == 1
    end_on_its_way(source, monkeypatch, LogPlace, "note_done")
    append_applies(source.log, "an-identity", [])
    assert read_applies(source.log) is None
    source.apply().ok()
    found = read_applies(source.log)
    assert found is not None
    assert (found.id, source.owned) == ("an-identity", 1)


GRANT = ("--principal", "User:b", "--intent", "produce", "--topic", "t", "--no-allow-everyone-if-no-acl-found")


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(
    ("owner", "at", "made"),
    [(log.LogWriter, "append", 0), (LogPlace, "read_back", 1), (LogPlace, "note_done", 1)],
)
def test_an_apply_without_a_journal_is_ended_too(source, monkeypatch, owner, at, made, is_new):
    """On a log that had no identity before it."""
    if not is_new:
        source.want(A)
        aclog("import", source.rules, "--log", source.log).ok()
    assert aclog("grant", "--log", source.log, *GRANT, "--out", source.plan_file).code == 1
    end_on_its_way(source, monkeypatch, owner, at)
    if made and not is_new:
        assert "changed since the plan was made" in source.apply().complaint, "without --resume nobody asks who"
    source.apply("--resume").ok()
    assert len(held(source.log)) == (1 if is_new else 2)
    again = source.apply("--resume").ok()
    assert len(held(source.log)) == (1 if is_new else 2), again


def test_what_was_done_is_not_done_in_another_place(source, tmp_path):
    source.make(A)
    kept = source.log.rename(tmp_path / "kept")
    nowhere = source.apply()
    source.log.mkdir()
    empty = source.apply()
    source.log.rmdir()
    aclog("import", source.rules, "--log", source.log).ok()
    other = source.apply()
    elsewhere = source.apply("--log", tmp_path / "nowhere")
    for refused in (nowhere, empty, other, elsewhere):
        assert refused.code == 2
        assert "of this plan was made to" in refused.complaint
    shutil.rmtree(source.log)
    kept.rename(source.log)
    assert "is applied already" in source.apply().ok().err


def test_a_plan_that_ends_the_apply_of_another_is_not_hindered_by_that(source, monkeypatch):
    """Killed in between, its journal would have gone on since it was made."""
    source.make(A)
    source.want(A, B)
    assert source.plan().code == 1
    end_on_its_way(source, monkeypatch, LogPlace, "write")
    source.want(A, C)
    assert source.plan().code == 1
    writes = list[bytes]()
    with monkeypatch.context() as patched:
        patched.setattr(JournalWriter, "_write", lambda _, *lines: writes.append(b"".join(lines)) or kill())
        with pytest.raises(KilledError):
            source.apply()
    [written] = writes
    assert [line.split(b'"')[3] for line in written.splitlines()] == [b"DONE", b"BEGIN"]
    source.apply().ok()
    assert held(source.log) == {A, C}


def test_another_source_that_adopts_gives_the_log_an_identity_and_hinders_nobody(source, tmp_path, monkeypatch):
    other = Source(tmp_path, "other")
    source.want(A)
    aclog("import", source.rules, "--log", source.log).ok()
    source.want(B)
    assert source.plan().code == 1
    kept = source.plan_file.read_bytes()
    end_on_its_way(source, monkeypatch, LogPlace, "write")
    other.make(A, flags=("--adopt",))
    source.apply("--resume").ok()
    assert held(source.log) == {A, B}
    assert (source.owned, other.owned) == (1, 1)
    assert source.plan_file.read_bytes() == kept


def test_an_apply_that_is_refused_leaves_no_journal(source, tmp_path):
    source.want(A)
    assert source.plan().code == 1
    second = tmp_path / "second.plan"
    assert aclog(
        "plan", "--log", source.log, "--want", source.rules, "--journal", source.journal, "--out", second
    ).code == 1  # fmt: skip
    assert source.apply("--resume").code == 2
    assert not source.journal.exists()
    aclog("apply", second, "--yes").ok()
    assert (held(source.log), source.owned) == ({A}, 1)
