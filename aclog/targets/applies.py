"""The applies that changed a target: recorded beside its log, and checked before the next plan; who plans, and when."""

import getpass
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from attrs import evolve

from aclog.authorizer.acl import acl_text
from aclog.authorizer.acls_image import content_of
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.filelog.files import (
    FILE_MODE,
    fsync_directory,
    hole_start,
    log_error,
    read_small,
    truncate_failed,
    write_all,
)
from aclog.metalog.json_object import parse_object
from aclog.metalog.machine import clock, disk, sockets
from aclog.metalog.values import frozen
from aclog.planning.applying import Ready
from aclog.planning.journal import Entry, EntryKind, Journal, JournalAction, read_journal, settle
from aclog.planning.plan import ApplyNote, JournalError, JournalMark, Origin, Plan, WritablePlace
from aclog.snapshots.history import Change
from aclog.snapshots.image import StateSource
from aclog.sources.acl_lines import STDIN
from aclog.sources.git import GitPlace, changed_files, commit_id, exists, path_from_top
from aclog.sources.logs import LogSource
from aclog.terminal.columns import json_text

# The file `applies.jsonl` beside a log of ours: which apply made which of its changes, and the log's own identity.
#
# JSON lines, append-only. The first is `{"kind":"LOG","version":1,"id":ID}`. BEGIN is durable before the records of
# an apply are, with the offset at which they can begin, and how many changes they are; DONE once they are committed.
# So the changes of an apply are the first `steps` ones from the offset of its newest BEGIN on.


APPLIES_FILE = "applies.jsonl"
_VERSION = 1
_MOST_BYTES = 256 << 20
_BEGIN = b'{"kind":"BEGIN"'


@frozen(kw_only=True)
class AppliedChange:
    """An apply to a log: its note, and its changes."""

    note: ApplyNote
    offset: int
    """Where its records can begin."""
    steps: int
    done: bool
    """Whether it is known to have ended; if not, it was killed, or is still running."""
    digest: str | None = None
    """The digest of its records, by `records_digest`; None: an earlier version recorded none."""


@frozen(kw_only=True)
class Applies:
    """The content of the file."""

    id: str
    """The identity of the log, if it belongs to no cluster."""
    applied: tuple[AppliedChange, ...]
    """In the order in which they began."""


def read_applies(directory: Path) -> Applies | None:
    """Return the content of the file beside a log; None without one, or without a complete line of an apply.

    An identity alone does not count: no journal and no plan can refer to it.

    Raises:
        DecodeError: it is damaged, or of another version.
        LogError: it cannot be read.

    """
    path = directory / APPLIES_FILE
    data = read_small(path, _MOST_BYTES)
    lines = [] if data is None else data[: _whole(data)].splitlines()
    if not lines:
        return None
    head = _object(lines[0], path, 1)
    if head.get("kind") != "LOG" or head.get("version") != _VERSION or not isinstance(head.get("id"), str):
        raise DecodeError("line 1: not the record of applies of this version", path=str(path))
    return Applies(id=str(head["id"]), applied=tuple(_folded(lines[1:], path))) if lines[1:] else None


def _whole(data: bytes) -> int:
    """Return the size of the whole lines. Each write is a line, or the first two: only the last may be in part."""
    start = hole_start(data)
    later = data[start:].split(b"\n")[1:-1]
    if later and (start or len(later) > 1 or not later[0].startswith(_BEGIN)):  # damage, which its line reports
        start = len(data)
    return data.rfind(b"\n", 0, start) + 1


def append_applies(directory: Path, log_id: str, lines: list[dict[str, object]]) -> None:
    """Append lines durably; a new file gets its first line before them. A torn end is cut. Raises LogError.

    After a power loss only one line is known to be torn: append each by itself.
    """
    path = directory / APPLIES_FILE
    try:
        fd = disk.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, FILE_MODE)
        try:
            data = read_small(path, _MOST_BYTES) or b""
            whole = _whole(data)
            if whole < len(data):
                disk.ftruncate(fd, whole)
            head: list[dict[str, object]] = [] if whole else [{"kind": "LOG", "version": _VERSION, "id": log_id}]
            try:
                write_all(fd, b"".join(json_text(each).encode() + b"\n" for each in [*head, *lines]))
                disk.fsync(fd)
            except OSError:
                truncate_failed(fd, whole)
                raise
        finally:
            disk.close(fd)
        fsync_directory(directory)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def records_digest(values: Iterable[bytes]) -> str:
    """Return the SHA-256 of the values of records, in hexadecimal: ids are random, so no others have it."""
    digest = sha256()
    for value in values:
        digest.update(len(value).to_bytes(4) + value)
    return digest.hexdigest()


def applied_of(source: StateSource) -> Sequence[AppliedChange] | None:
    """Return the record of applies beside a log; None without one. Raises MetadataError: it is damaged."""
    applies = read_applies(source.directory) if isinstance(source, LogSource) else None
    return None if applies is None else applies.applied


def applied_line(note: ApplyNote, *, offset: int, steps: int, digest: str | None = None) -> dict[str, object]:
    """Return the BEGIN line of an apply."""
    return {
        "kind": "BEGIN",
        "apply": note.apply,
        "at": note.at,
        "who": note.who,
        "plan": note.plan,
        "journal": note.journal,
        "git": note.git,
        "offset": offset,
        "steps": steps,
        "records": digest,
    }


def done_line(note: ApplyNote) -> dict[str, object]:
    """Return the DONE line of an apply."""
    return {"kind": "DONE", "apply": note.apply, "at": note.at}


def _folded(lines: list[bytes], path: Path) -> Iterator[AppliedChange]:
    begun: dict[str, AppliedChange] = {}
    done: set[str] = set()
    for number, line in enumerate(lines, 2):
        value = _object(line, path, number)
        apply = value.get("apply")
        if not isinstance(apply, str) or value.get("kind") not in {"BEGIN", "DONE"}:
            raise DecodeError(f"line {number}: expected BEGIN or DONE of an apply", path=str(path))
        if value["kind"] == "DONE":
            done.add(apply)
        else:
            begun[apply] = _begun(value, path, number)
    for apply, each in begun.items():
        yield evolve(each, done=apply in done)


def _begun(value: dict[str, object], path: Path, number: int) -> AppliedChange:
    offset, steps = value.get("offset"), value.get("steps")
    texts = {key: value.get(key) for key in ("apply", "at", "who", "plan")}
    if type(offset) is not int or type(steps) is not int or not all(isinstance(each, str) for each in texts.values()):
        raise DecodeError(f"line {number}: an apply lacks a field", path=str(path))
    journal, git = value.get("journal"), value.get("git")
    note = ApplyNote(
        apply=str(texts["apply"]),
        at=str(texts["at"]),
        who=str(texts["who"]),
        plan=str(texts["plan"]),
        journal=None if journal is None else str(journal),
        git=None if git is None else str(git),
    )
    digest = value.get("records")
    return AppliedChange(
        note=note, offset=offset, steps=steps, done=False, digest=None if digest is None else str(digest)
    )


def _object(line: bytes, path: Path, number: int) -> dict[str, object]:
    try:
        return parse_object(line)
    except ConfigError as error:
        raise DecodeError(f"line {number}: {error}", path=str(path)) from error


# The changes of a log, each with the apply that made it.


def with_applies(
    changes: Iterable[Change], applied: Iterable[AppliedChange], begin: int
) -> Iterator[tuple[Change, ApplyNote | None]]:
    """Yield the changes of a log, in order, each with the apply that made it; None if it is unknown.

    The changes begin with the state at `begin`. The changes of an apply that began before it cannot be identified, as
    the number of earlier ones is unknown. The initial records of the log are not changes, and left out.
    """
    finished = (each for each in applied if each.done and each.offset >= begin)
    waiting = deque(sorted(finished, key=lambda each: each.offset))
    remaining, newest = 0, None
    for change in changes:
        if change.first_seen:
            continue
        while waiting and change.offset >= waiting[0].offset:
            newest = waiting.popleft()
            remaining = newest.steps
        yield change, newest.note if newest is not None and remaining > 0 else None
        remaining -= 1


# Checks that a journal and the record beside a log have the same applies, and neither is an older copy.


_WRITTEN = (JournalAction.ADD, JournalAction.REMOVE)


def check_applied(directory: Path, identity: str | None, journal: Journal) -> None:
    """Check that the log has the applies of the journal, and the journal those of the log that were made with it.

    An older copy of the log would seem to have lost rules, which would then be unmanaged; an older copy of the journal
    manages too little. To the log of a cluster, changes also come through its nodes, which keep no record of applies.

    Raises:
        JournalError: one of them lacks an apply. DecodeError, LogError: as read_applies.

    """
    applies = read_applies(directory)
    if applies is None:
        return
    begun = {entry.apply for entry in journal.entries}
    for each in reversed(applies.applied):
        if each.note.journal == journal.id and each.note.apply not in begun:
            raise JournalError(
                f"{journal.path}: does not have apply {each.note.apply} of {each.note.at}, which {directory} has: an "
                "older copy of the journal: expected the newest one"
            )
    noted = {each.note.apply for each in applies.applied}
    lost = next((each for each in reversed(journal.entries) if _wrote(each) and each.apply not in noted), None)
    if lost is not None and identity == applies.id:
        raise JournalError(
            f"{directory / APPLIES_FILE}: does not have apply {lost.apply} of {lost.at}, which {journal.path} has: an "
            "older copy of the log: expected the newest one. If it was put back on purpose, begin a new journal, with "
            "--adopt"
        )


def _wrote(entry: Entry) -> bool:
    """Return whether an apply ended after it wrote to the target; a settled one may have been killed before."""
    return entry.kind is EntryKind.DONE and not entry.settled and any(step.action in _WRITTEN for step in entry.steps)


# The journals of other sources when a plan is applied: their ACLs stay, and none may have new entries.


def check_others(
    plan: Plan, ready: Ready, place: WritablePlace, journals: Sequence[Path], notify: Callable[[str], None]
) -> None:
    """Check that other sources manage none of the rules that are still to be removed, and applied nothing meanwhile.

    A resumed apply checks only the managed ACLs: a later plan would have to end it. `journals` are their journals, if
    they are not where they were when the plan was made.

    Raises:
        JournalError: one has new entries, manages such a rule, is missing, or is another one.
        LogError: one cannot be read.

    """
    if ready.is_done:
        return
    elsewhere = {journal.id: journal for journal in (_read(path, notify) for path in journals)}
    removed = {content_of(step.acl): step.acl for step in ready.remaining.steps if not step.adds}
    for mark in plan.others:
        journal = _journal_of(mark, elsewhere, notify)
        owned = settle(journal, ready.state.contents, place.completion).journal.owned
        for content in sorted(removed.keys() & owned):
            raise JournalError(
                f"{acl_text(removed[content])}: now managed by {journal.path}: nothing was changed; make the plan again"
            )
        if (len(journal.entries), journal.checksum) != (mark.entries, mark.checksum) and ready.begun is None:
            raise JournalError(
                f"{journal.path}: has {len(journal.entries):,} entries, and had {mark.entries:,} when the plan was "
                "made, or others: its source has applied something, or it is another copy: make the plan again"
            )


def _journal_of(mark: JournalMark, elsewhere: Mapping[str, Journal], notify: Callable[[str], None]) -> Journal:
    journal = elsewhere.get(mark.id)
    if journal is None:
        journal = _read(Path(mark.path), notify)
    if journal.is_new or journal.id != mark.id:
        what = "no such journal" if journal.is_new else "not the journal that the plan was made with"
        raise JournalError(
            f"{journal.path}: {what}: expected that of another source: pass its path with --other-journal"
        )
    return journal


def _read(path: Path, notify: Callable[[str], None]) -> Journal:
    return read_journal(path, str, notify)


# The user, the time and the commit of a command.


def origin_now(path: str | None = None) -> Origin:
    """Return the user of this command, and the time; with the commit of the repository that `path` is in, if any."""
    return Origin(at=time_now(), who=who(), git=None if path is None else _commit_of(path))


def time_now() -> str:
    """Return the time as ISO 8601, UTC, to the millisecond."""
    return datetime.fromtimestamp(clock.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def who() -> str:
    """Return the user and the host of this process, `user@host`; bytes that are not UTF-8 are escaped."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{sockets.gethostname()}".encode(errors="backslashreplace").decode()


def _commit_of(path: str) -> str | None:
    """Return the id of the commit that is checked out, with `-dirty` if `path` is not as it is there."""
    if path == STDIN:
        return None
    try:
        inside = path_from_top(path)
        commit = commit_id("HEAD")
        if commit is None:
            return None
        changed = changed_files("HEAD", None)
    except ConfigError:  # no git, no repository, or a file outside the repository
        return None
    is_changed = any(not inside or each == inside or each.startswith(f"{inside}/") for each in changed)
    # An ignored file is in no list of changes.
    is_clean = not is_changed and exists(GitPlace(ref="HEAD", path=inside))
    return commit if is_clean else f"{commit}-dirty"
