"""The journal of a source: every apply, and the ACLs that the source manages."""

import errno
import fcntl
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import evolve, field

from aclog.authorizer.acl import acl_text, object_of_rule
from aclog.authorizer.acls_image import acl_of_content, content_of_object
from aclog.metalog.batches import crc32c
from aclog.metalog.errors import ConfigError, EncodeError, LockedError, LogError
from aclog.metalog.filelog.files import (
    FILE_MODE,
    NamedFile,
    fsync_directory,
    hole_start,
    log_error,
    read_at,
    truncate_failed,
    write_all,
)
from aclog.metalog.json_object import parse_object
from aclog.metalog.machine import disk
from aclog.metalog.values import define, frozen
from aclog.planning.plan import NOTHING_SENT, Completion, JournalError, RefusedError, Sent, parse_sent, sent_object
from aclog.terminal.columns import json_text

# Entries of a journal.


class EntryKind(StrEnum):
    """The kind of a journal entry."""

    BEGIN = "BEGIN"
    """An apply begins, and may make any of its steps."""
    DONE = "DONE"
    """An apply has ended, and made exactly these steps."""


class JournalAction(StrEnum):
    """The effect of a step on the target, or on the ownership of an ACL."""

    ADD = "ADD"
    REMOVE = "REMOVE"
    ADOPT = "ADOPT"
    """The ACL existed, and the journal manages it from now on."""
    RELEASE = "RELEASE"
    """The journal no longer manages the ACL, which stays as it is."""


@frozen(kw_only=True)
class JournalStep:
    """One step of an apply; `content` as aclog.authorizer.acls_image has it."""

    action: JournalAction
    content: bytes


@frozen(kw_only=True)
class Entry:
    """One line of a journal."""

    kind: EntryKind
    apply: str
    """The id of the apply."""
    at: str
    """ISO 8601, UTC."""
    who: str
    plan: str
    """The digest of the plan."""
    place: str | None
    """The identity of the target; None in the BEGIN of an apply that creates the target."""
    git: str | None
    steps: tuple[JournalStep, ...]
    """In a BEGIN, all steps that may be made; in a DONE, those that were made.

    Those of a BEGIN with a DONE are not read.
    """
    settled: bool = False
    """Whether a later command ended the apply, from the state of the target."""
    at_once: bool = False
    """In a BEGIN: whether its steps are made atomically, so that no line records the progress."""


def entry_object(entry: Entry) -> dict[str, object]:
    """Return the JSON object of an entry."""
    return {
        "kind": entry.kind.value,
        "apply": entry.apply,
        "at": entry.at,
        "who": entry.who,
        "plan": entry.plan,
        "place": entry.place,
        "git": entry.git,
        **({"settled": True} if entry.settled else {}),
        **({"atOnce": True} if entry.at_once else {}),
        "steps": [
            {"action": step.action.value, "rule": object_of_rule(acl_of_content(step.content))} for step in entry.steps
        ],
    }


def parse_entry(value: Mapping[str, Any]) -> Entry:
    """Return the entry in a JSON object. Raises ConfigError: a field is missing or invalid."""
    try:
        return Entry(
            kind=EntryKind(value["kind"]),
            apply=value["apply"],
            at=value["at"],
            who=value["who"],
            plan=value["plan"],
            place=value["place"],
            git=value["git"],
            settled=value.get("settled", False),
            at_once=value.get("atOnce", False),
            steps=_steps(value["steps"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not a journal entry: {error}") from error


def owned_after(entries: Iterable[Entry]) -> set[bytes]:
    """Return the ACLs that are managed after these entries: the fold of the DONE entries."""
    owned: set[bytes] = set()
    for entry in entries:
        if entry.kind is EntryKind.DONE:
            fold(owned, entry.steps)
    return owned


def fold(owned: set[bytes], steps: Iterable[JournalStep]) -> None:
    """Update the managed ACLs by the steps of an apply that has ended."""
    for step in steps:
        if step.action in (JournalAction.ADD, JournalAction.ADOPT):
            owned.add(step.content)
        else:
            owned.discard(step.content)


def written_steps(steps: Iterable[JournalStep]) -> int:
    """Return how many steps of an apply change its target; they come first."""
    return sum(step.action in (JournalAction.ADD, JournalAction.REMOVE) for step in steps)


def _steps(values: Sequence[Mapping[str, Any]]) -> tuple[JournalStep, ...]:
    return tuple(
        JournalStep(action=JournalAction(value["action"]), content=content_of_object(value["rule"])) for value in values
    )


# The state of a journal: every apply of a source, and the ACLs that the source manages.


@define(eq=False, slots=False, kw_only=True)
class Journal:
    """The entries of a journal. Immutable by convention."""

    path: str
    id: str
    entries: tuple[Entry, ...] = ()
    sent: Sent = NOTHING_SENT
    """The progress of the apply that has not ended."""
    is_new: bool = False
    """Whether there is no file yet."""
    checksum: int = 0
    """Of all lines of its file."""

    @property
    def open(self) -> Entry | None:
        """The BEGIN of the apply that has not ended, which is the last entry; None if every apply has ended."""
        last = self.entries[-1] if self.entries else None
        return last if last is not None and last.kind is EntryKind.BEGIN else None

    @cached_property
    def owned(self) -> AbstractSet[bytes]:
        """The ACLs that are managed after the applies that have ended."""
        return owned_after(self.entries)

    @property
    def place(self) -> str | None:
        """The identity of the target of the newest apply; None without one."""
        return next((entry.place for entry in reversed(self.entries) if entry.place is not None), None)

    def check_place(self, identity: str | None, name: str) -> None:
        """Check that a target is the one that the journal belongs to.

        Raises:
            JournalError: it is another target, or its identity is unknown.

        """
        place = self.place
        if place is None or identity == place:
            return
        state = f"is {identity}" if identity is not None else "has no identity (new, or replaced)"
        raise JournalError(
            f"{self.path}: the journal of {place}, but {name} {state}: expected the same target, or a journal of its "
            "own"
        )

    def check_rules_there(self, contents: AbstractSet[bytes], name: str) -> None:
        """Check that a target returns some ACL if this journal manages any there.

        Every apply of the journal must have ended: an interrupted one may have removed them all.

        Raises:
            RefusedError: it returned no ACLs.

        """
        owned = len(self.owned)
        if owned and not contents:
            raise RefusedError(
                f"{name}: returned no ACLs, but {self.path} manages {owned:,} there: it may not be ready, or is "
                "another target. If all were really removed, begin a new journal"
            )


# The lines of a journal: JSON, each with a checksum over all lines so far at its end.
#
# The checksum detects a changed line, and a missing line before others.


_HEAD, _VERSION = "JOURNAL", 2
_HEAD_BEGIN = f'{{"kind":"{_HEAD}"'.encode()
_CHECKSUM = b',"crc":"'
_SENT = b'{"kind":"SENT"'
_BEGIN, _STEPS = f'{{"kind":"{EntryKind.BEGIN}"'.encode(), b',"steps":'
_TAIL = len(_CHECKSUM) + len('00000000"}')
_START = 0
"""The checksum of an empty journal."""


def head_line(journal_id: str) -> bytes:
    """Return the first line of a journal, with its line end."""
    return _line({"kind": _HEAD, "version": _VERSION, "id": journal_id}, _START)


def is_torn_head(data: bytes) -> bool:
    """Return whether a file is empty or has only parts of the first write: no plan was applied with it."""
    written = data.partition(b"\0")[0] if data and not _torn_start(data) else data
    return b"\n" not in written and (written.startswith(_HEAD_BEGIN) or _HEAD_BEGIN.startswith(written))


def _torn_start(data: bytes) -> int:
    """Return where a write begins that a power loss left with holes; the size of the data without one.

    Each write is durable before the next one begins, so only the last one can have holes: a line, or the DONE of one
    apply with the BEGIN of the next (also if they were two writes: a damaged disk can look so). Other holes are damage.
    """
    start = hole_start(data)
    first, _, second = data[start:].partition(b"\n")
    rest = second.partition(b"\n")[2]
    is_begin = b"\0" in second or second.startswith(_BEGIN) or _BEGIN.startswith(second)
    is_one_write = not second or (is_begin and not rest)
    return start if b"\0" in first and is_one_write else len(data)


def entry_line(entry: Entry, before: int) -> bytes:
    """Return the line of an entry, with its line end; `before` is the checksum of the line above."""
    return _line(entry_object(entry), before)


def sent_line(apply: str, sent: Sent, before: int) -> bytes:
    """Return the line with the progress of an apply, with its line end; `before` as for `entry_line`."""
    return _line(sent_object(apply, sent), before)


def checksum_of(line: bytes) -> int:
    """Return the checksum at the end of a whole line, with or without its line end."""
    return int(line.rstrip(b"\n")[-_TAIL + len(_CHECKSUM) : -len('"}')], 16)


def parse_journal(data: bytes, path: str) -> tuple[Journal, int]:
    """Return the journal in the bytes of a file, and the size of its whole lines; a torn line may follow.

    A last line that lacks only its line end is whole; one with zero bytes is torn.

    Raises:
        JournalError: not a journal, an unsupported version, or a damaged line; with its number.

    """
    lines, end = _whole_lines(data[: _torn_start(data)])
    if not lines:
        raise JournalError(f"{path}: not a journal: its first line is incomplete")
    if not lines[0].startswith(_HEAD_BEGIN):
        raise JournalError(f"{path}: not a journal: expected a file written by `aclog apply`")
    checksum = _check_line(lines[0], _START, path, 1)
    head = _parsed(lines[0], path, 1)
    if not isinstance(head.get("id"), str):
        raise JournalError(f"{path}: line 1: a journal without an id: expected a file written by `aclog apply`")
    if head.get("version") != _VERSION:
        raise JournalError(f"{path}: journal version {head.get('version')}: expected {_VERSION}")
    entries: list[Entry] = []
    begun: set[str] = set()
    sent, last = Sent(), max((number for number, line in enumerate(lines, 1) if not line.startswith(_SENT)), default=1)
    for number, line in enumerate(lines[1:], 2):
        checksum = _check_line(line, checksum, path, number)
        if line.startswith(_SENT):
            sent = _sent(line, entries, path, number) if number > last else sent
            continue
        value = _parsed(line, path, number, without_steps=number < last and line.startswith(_BEGIN))
        try:
            entries.append(parse_entry(value))
        except (ConfigError, EncodeError) as error:
            raise JournalError(f"{path}: line {number}: {error}") from error
        _check_order(entries, path, number)
        _check_once(entries[-1], begun, path, number)
    return Journal(path=path, id=head["id"], entries=tuple(entries), sent=sent, checksum=checksum), end


def _whole_lines(data: bytes) -> tuple[list[bytes], int]:
    """Return the whole lines, the last one with or without its line end, and the position of their end."""
    end = data.rfind(b"\n") + 1
    lines, rest = data[:end].splitlines(), data[end:]
    before = _START if not lines else _told_by(lines[-1])
    if rest and before is not None and _is_whole(rest, before):
        return [*lines, rest], len(data)
    return lines, end


def _sent(line: bytes, entries: list[Entry], path: str, number: int) -> Sent:
    """Return the progress of the apply that has not ended."""
    value = _parsed(line, path, number)
    entry = entries[-1] if entries else None
    if entry is None or entry.kind is not EntryKind.BEGIN or value.get("apply") != entry.apply:
        raise JournalError(f"{path}: line {number}: progress of apply {value.get('apply')}, which has not begun above")
    try:
        return parse_sent(value, written_steps(entry.steps))
    except ConfigError as error:
        raise JournalError(f"{path}: line {number}: {error}") from error


def _check_order(entries: list[Entry], path: str, number: int) -> None:
    """Check that each apply begins before it is done, and is done before the next one begins."""
    last, before = entries[-1], entries[-2] if len(entries) > 1 else None
    is_open = before is not None and before.kind is EntryKind.BEGIN
    if last.kind is EntryKind.DONE and not (is_open and before is not None and before.apply == last.apply):
        raise JournalError(f"{path}: line {number}: apply {last.apply} is done, but does not begin on the line before")
    if last.kind is EntryKind.BEGIN and is_open:
        raise JournalError(f"{path}: line {number}: apply {last.apply} begins before the previous one is done")


def _check_once(entry: Entry, begun: set[str], path: str, number: int) -> None:
    """Check that no apply begins twice: a merge of two copies would take over ACLs again that were removed since."""
    if entry.kind is EntryKind.BEGIN:
        if entry.apply in begun:
            raise JournalError(
                f"{path}: line {number}: apply {entry.apply} begins a second time: were two copies merged?"
            )
        begun.add(entry.apply)


def _line(value: Mapping[str, object], before: int) -> bytes:
    text = json_text(value).encode()[:-1]
    return text + _tail(text, before) + b"\n"


def _tail(text: bytes, before: int) -> bytes:
    return _CHECKSUM + f'{crc32c(text, before):08x}"}}'.encode()


def _check_line(line: bytes, before: int, path: str, number: int) -> int:
    """Return the checksum of a line, which must continue that of the line above. Raises JournalError: it does not."""
    if not _is_whole(line, before):
        raise JournalError(
            f"{path}: line {number}: checksum mismatch: the journal is damaged or was edited, or lines above are "
            "missing or were added; the managed ACLs are unknown"
        )
    return checksum_of(line)


def _is_whole(line: bytes, before: int) -> bool:
    return line[-_TAIL:] == _tail(line[:-_TAIL], before)


def _told_by(line: bytes) -> int | None:
    """Return the checksum at the end of a line; None without one."""
    try:
        return checksum_of(line)
    except ValueError:
        return None


def _parsed(line: bytes, path: str, number: int, *, without_steps: bool = False) -> dict[str, Any]:
    text = line[:-_TAIL]
    if without_steps:  # the DONE on the next line has the steps
        line = text[: text.find(_STEPS)] + _STEPS + b"[]}"
    try:
        return parse_object(line)
    except ConfigError as error:
        raise JournalError(f"{path}: line {number}: {error}") from error


# Journal files: any process may read one, and one apply at a time writes it.


_FLOCK = "hhqqi4x"
"""Linux's struct flock: type, whence, start, length, process."""


def read_journal(path: Path, new_id: Callable[[], str], notify: Callable[[str], None]) -> Journal:
    """Return the journal in a file; if there is no file, a new and empty one with an id from `new_id`.

    Raises:
        JournalError: not a journal, or a damaged one.
        LogError: the file cannot be read.

    """
    try:
        _check_file(path)
        data = path.read_bytes()
    except FileNotFoundError:
        return Journal(path=str(path), id=new_id(), is_new=True)
    except OSError as error:
        raise log_error(error, path, "cannot read") from error
    if is_torn_head(data):
        return Journal(path=str(path), id=new_id(), is_new=True)
    journal, end = parse_journal(data, str(path))
    _tell_torn(path, len(data) - end, notify)
    return journal


@define(eq=False, kw_only=True)
class JournalWriter:
    """A journal that is locked for one apply; owned by the command."""

    journal: Journal
    _fd: int
    _file: NamedFile
    _head: bytes = b""
    """The first line of a new journal. It is written with the first entry, so a refused apply creates no file."""
    _failed: bool = field(default=False, init=False)

    def append(self, *entries: Entry) -> None:
        """Write entries in one write, and wait until they are durable.

        Raises:
            LogError: the write failed, or the file was removed or replaced.

        """
        lines, checksum = list[bytes](), self.journal.checksum
        for entry in entries:
            lines.append(entry_line(entry, checksum))
            checksum = checksum_of(lines[-1])
        self._write(*lines)
        self.journal = evolve(self.journal, entries=(*self.journal.entries, *entries), sent=Sent(), is_new=False)

    def note_sent(self, apply: str, sent: Sent) -> None:
        """Write the progress of the apply that has begun, and wait until it is durable. Raises as `append`."""
        self._write(sent_line(apply, sent, self.journal.checksum))
        self.journal = evolve(self.journal, sent=sent)

    def _write(self, *lines: bytes) -> None:
        path = Path(self._file.path)
        if self._failed:
            raise LogError(f"{path}: an earlier write failed: open the journal again")
        self._failed = True
        try:
            size = 0 if self._head else disk.fstat(self._fd).st_size
            if self._head:
                disk.ftruncate(self._fd, 0)  # a failed write may have left a part of the line
            try:
                write_all(self._fd, self._head + b"".join(lines))
                disk.fsync(self._fd)
            except OSError:
                truncate_failed(self._fd, size)
                raise
            if self._head:
                fsync_directory(path.resolve().parent)
        except OSError as error:
            raise log_error(error, path, "cannot write") from error
        self._head = b""
        self._file.check()
        self.journal = evolve(self.journal, checksum=checksum_of(lines[-1]))
        self._failed = False


@contextmanager
def open_journal(
    path: Path, journal_id: str, notify: Callable[[str], None], *, is_new: bool
) -> Iterator[JournalWriter]:
    """Lock a journal for one apply, and cut its torn end. With `is_new`, create a missing file with this id.

    Raises:
        LockedError: another apply holds the lock.
        JournalError: it is damaged, missing, or another journal. LogError: it cannot be opened.

    """
    is_made = is_new and not path.exists()
    fd = _opened(path, create=is_new)
    try:
        _lock(fd, path)
        file = NamedFile.of(fd, path)
        file.check()
        data = read_at(fd, 0, disk.fstat(fd).st_size)
        if is_torn_head(data):
            if not is_new:
                raise JournalError(
                    f"{path}: the journal is missing or empty, so the managed ACLs are unknown: restore it"
                )
            head = head_line(journal_id)
            new = Journal(path=str(path), id=journal_id, is_new=True, checksum=checksum_of(head))
            try:
                yield JournalWriter(journal=new, fd=fd, file=file, head=head)
            finally:
                if is_made and disk.fstat(fd).st_size == 0:  # no apply began
                    path.resolve().unlink(missing_ok=True)
            return
        journal, end = parse_journal(data, str(path))
        if end < len(data) or not data.endswith(b"\n"):
            _tell_torn(path, len(data) - end, notify)
            _mend(fd, path, data, end)
        if journal.id != journal_id:
            raise JournalError(f"{path}: not the journal that the plan was made with: create a new plan")
        yield JournalWriter(journal=journal, fd=fd, file=file)
    finally:
        disk.close(fd)


def _opened(path: Path, *, create: bool) -> int:
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
    try:
        _check_file(path)
        # A journal may be a link into a repository: links are followed.
        return disk.open(path, flags, FILE_MODE)
    except OSError as error:
        raise log_error(error, path, "cannot open the journal") from error


def _check_file(path: Path) -> None:
    """Raise JournalError if the path is not a regular file: reading a pipe would block."""
    if path.exists() and not path.is_file():
        raise JournalError(f"{path}: not a regular file: expected a journal, or the path of a new one")


def _mend(fd: int, path: Path, data: bytes, end: int) -> None:
    """Cut the bytes after the last whole line, or add its missing line end. Raises LogError."""
    try:
        if end < len(data):
            disk.ftruncate(fd, end)
            disk.fsync(fd)
        else:
            write_all(fd, b"\n")
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def _lock(fd: int, path: Path) -> None:
    """Lock a journal against other processes, and on Linux against other threads of this process.

    A lock of the process would be lost as soon as any of its threads reads the journal and closes it again.
    """
    try:
        if sys.platform == "linux":
            disk.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        else:
            disk.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN}:
            raise LockedError(f"{path}: another apply is using this journal") from error
        raise log_error(error, path, "cannot lock") from error


def _tell_torn(path: Path, size: int, notify: Callable[[str], None]) -> None:
    if size:
        notify(f"{path}: its last {size} bytes are an incomplete line: an apply was killed while it wrote them")


# Settling a killed apply in its journal, from its recorded progress, the target's own record, and the target's state.
#
# The target's state alone proves nothing: another writer may have added an ACL that the apply was to add, or added
# again one that it had removed. So it decides only on steps that were sent and not read back.


_MOST_RULES = 20
"""How many ACLs are listed; the others are counted."""


@frozen(eq=False, kw_only=True)
class Settled:
    """A journal in which every apply has ended; in memory only."""

    journal: Journal
    unsure: tuple[JournalStep, ...] = ()
    """Steps whose ACLs exist, added either by the apply or by another writer."""


def settle(journal: Journal, contents: AbstractSet[bytes], completion: Callable[[str], Completion | None]) -> Settled:
    """Return the journal with its unfinished apply, if any, settled.

    `completion` is WritablePlace.completion, and the same errors are raised.
    """
    entry = journal.open
    if entry is None:
        return Settled(journal=journal)
    sent = sent_of(journal, completion)
    steps = tuple(step for number, step in enumerate(entry.steps) if _is_made(number, step, sent, contents))
    done = evolve(entry, kind=EntryKind.DONE, settled=True, at_once=False, steps=steps)
    return Settled(
        journal=evolve(journal, entries=(*journal.entries, done), sent=NOTHING_SENT),
        unsure=tuple(entry.steps[number] for number in sorted(sent.unsure) if entry.steps[number].content in contents),
    )


def sent_of(journal: Journal, completion: Callable[[str], Completion | None]) -> Sent:
    """Return the progress of the apply that has not ended. Raises as WritablePlace.completion."""
    entry = journal.open
    if entry is None:
        return NOTHING_SENT
    steps = written_steps(entry.steps)
    noted = Sent(unsure=frozenset(range(steps))) if entry.at_once else journal.sent
    return noted.of(completion(entry.apply), steps)


def unsure_texts(journal: Journal, unsure: tuple[JournalStep, ...]) -> Iterator[str]:
    """Yield warnings about ACLs that either the apply or another writer added."""
    for step in unsure[:_MOST_RULES]:
        if step.action is JournalAction.ADD:
            what = (
                "exists, and the apply was interrupted while it added it: counted as managed; another writer may have "
                "added it"
            )
        else:
            what = (
                "exists, and the apply was interrupted while it deleted it: managed; another writer may have added it "
                "again"
            )
        yield f"{journal.path}: {_apply_of(journal)}: {acl_text(acl_of_content(step.content))} {what}"
    if len(unsure) > _MOST_RULES:
        yield f"{journal.path}: {_apply_of(journal)}: the same for {len(unsure) - _MOST_RULES:,} more ACLs"


def _apply_of(journal: Journal) -> str:
    return f"apply {journal.entries[-1].apply}"


def _is_made(number: int, step: JournalStep, sent: Sent, contents: AbstractSet[bytes]) -> bool:
    is_there = step.content in contents
    match step.action:
        case JournalAction.RELEASE:
            return True
        case JournalAction.ADOPT:
            return is_there
        case action:
            return number in sent.completed or (number in sent.unsure and is_there is (action is JournalAction.ADD))
