"""What a power loss, or a failed fsync, leaves of the files to which an apply appends."""

import errno
from pathlib import Path

import pytest

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.machine import disk
from aclog.planning.journal import Entry, EntryKind, JournalWriter, open_journal, read_journal
from aclog.planning.plan import NOTHING_SENT, JournalError
from aclog.targets.applies import APPLIES_FILE, append_applies, read_applies


def entry(kind: EntryKind, apply: str) -> Entry:
    return Entry(
        kind=kind, apply=apply, at="2026-01-01T00:00:00.000Z", who="me@host", plan="0", place="x", git=None, steps=()
    )


def written(path: Path, *kinds: EntryKind) -> list[bytes]:
    """A journal with these entries of one apply; its lines."""
    with open_journal(path, "an-id", print, is_new=True) as journal:
        for kind in kinds:
            journal.append(entry(kind, "apply-1"))
    return path.read_bytes().splitlines(keepends=True)


def hole(line: bytes) -> bytes:
    return line[:20] + bytes(len(line) - 40) + line[-20:]


def entries(path: Path) -> list[EntryKind]:
    return [each.kind for each in read_journal(path, lambda: "another", print).entries]


def test_a_last_line_with_a_hole_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    lines = written(path, EntryKind.BEGIN, EntryKind.DONE)
    path.write_bytes(b"".join([*lines[:-1], hole(lines[-1])]))
    assert entries(path) == [EntryKind.BEGIN]
    with open_journal(path, "an-id", print, is_new=False) as journal:
        journal.append(entry(EntryKind.DONE, "apply-1"))
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("torn", [(0,), (1,), (0, 1)])
def test_a_first_write_with_a_hole_is_cut(tmp_path: Path, torn: tuple[int, ...]) -> None:
    path = tmp_path / "journal"
    lines = written(path, EntryKind.BEGIN)
    path.write_bytes(b"".join(hole(line) if at in torn else line for at, line in enumerate(lines)))
    assert entries(path) == []
    with open_journal(path, "an-id", print, is_new=True) as journal:
        journal.append(entry(EntryKind.BEGIN, "apply-1"))
    assert path.read_bytes() == b"".join(lines)


def test_one_write_of_two_entries_is_cut_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    lines = written(path, EntryKind.BEGIN)
    with open_journal(path, "an-id", print, is_new=False) as journal:
        journal.append(entry(EntryKind.DONE, "apply-1"), entry(EntryKind.BEGIN, "apply-2"))
    done, begin = path.read_bytes().splitlines(keepends=True)[-2:]
    path.write_bytes(b"".join([*lines, hole(done), begin]))
    assert entries(path) == [EntryKind.BEGIN]


def test_one_write_of_two_entries_that_ends_early_is_cut_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    lines = written(path, EntryKind.BEGIN)
    with open_journal(path, "an-id", print, is_new=False) as journal:
        journal.append(entry(EntryKind.DONE, "apply-1"), entry(EntryKind.BEGIN, "apply-2"))
    done, begin = path.read_bytes().splitlines(keepends=True)[-2:]
    for size in range(len(begin)):
        path.write_bytes(b"".join([*lines, hole(done), begin[:size]]))
        assert entries(path) == [EntryKind.BEGIN]


def test_a_hole_above_another_write_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    head, begin, done = written(path, EntryKind.BEGIN, EntryKind.DONE)
    for damaged in ([head, hole(begin), done], [hole(head), begin, done]):
        path.write_bytes(b"".join(damaged))
        with pytest.raises(JournalError):
            entries(path)


def test_other_bytes_in_the_last_line_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    lines = written(path, EntryKind.BEGIN)
    path.write_bytes(b"".join([*lines[:-1], lines[-1].replace(b"apply-1", b"apply-2")]))
    with pytest.raises(JournalError, match="checksum mismatch"):
        entries(path)


def failing(_fd: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("write", ["append", "note_sent"])
def test_an_entry_whose_fsync_fails_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str) -> None:
    """The kernel shows it, and may lose it later: nothing may be appended after it."""
    path = tmp_path / "journal"
    lines = written(path, EntryKind.BEGIN)

    def send(journal: JournalWriter) -> None:
        if write == "append":
            journal.append(entry(EntryKind.DONE, "apply-1"))
        else:
            journal.note_sent("apply-1", NOTHING_SENT)

    with open_journal(path, "an-id", print, is_new=False) as journal, monkeypatch.context() as patch:
        patch.setattr(disk, "fsync", failing)
        with pytest.raises(LogError, match="Input/output error"):
            send(journal)
    assert path.read_bytes() == b"".join(lines)


def test_a_torn_record_of_an_apply_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = {"kind": "BEGIN", "apply": "a", "at": "", "who": "", "plan": "", "journal": None, "git": None}
    append_applies(tmp_path, "an-id", [begin | {"offset": 0, "steps": 0, "digest": None}])
    path = tmp_path / APPLIES_FILE
    whole = path.read_bytes()
    append_applies(tmp_path, "an-id", [{"kind": "DONE", "apply": "a"}])
    done = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + done[:5] + bytes(len(done) - 6) + b"\n")
    before = read_applies(tmp_path)
    assert before is not None
    with monkeypatch.context() as patch:
        patch.setattr(disk, "fsync", failing)
        with pytest.raises(LogError):
            append_applies(tmp_path, "an-id", [{"kind": "DONE", "apply": "a"}])
    assert path.read_bytes() == whole
    append_applies(tmp_path, "an-id", [{"kind": "DONE", "apply": "a"}])
    assert path.read_bytes() == whole + done
    path.write_bytes(hole(whole) + done)
    with pytest.raises(DecodeError):
        read_applies(tmp_path)
