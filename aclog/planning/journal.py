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

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import acl_text, object_of_rule
from aclog.authorizer.acls_image import acl_of_content, content_of_object
from aclog.metalog.batches import crc32c
from aclog.metalog.errors import ConfigError, EncodeError, LockedError, LogError
from aclog.metalog.filelog.files import FILE_MODE, NamedFile, fsync_directory, log_error, read_at, write_all
from aclog.metalog.json_object import parse_object
from aclog.planning.plan import NOTHING_SENT, Completion, JournalError, RefusedError, Sent, parse_sent, sent_object
from aclog.terminal.columns import json_text

# Entries of a journal.


class EntryKind(StrEnum):
    """What an entry says of an apply."""

    BEGIN = "BEGIN"
    """It begins, and may make any of its steps."""
    DONE = "DONE"
    """It has ended, and made exactly these steps."""


class JournalAction(StrEnum):
    """What a step does: to the place, or to who owns an ACL."""

    ADD = "ADD"
    REMOVE = "REMOVE"
    ADOPT = "ADOPT"
    """It was there, and is owned from now on."""
    RELEASE = "RELEASE"
    """It is owned no more, and stays as it is."""


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
    """The identity of the place; None in the BEGIN of an apply that makes the place."""
    git: str | None
    steps: tuple[JournalStep, ...]
    """All that a BEGIN may make, or that was made when it is DONE; those of a BEGIN that is DONE are not read."""
    settled: bool = False
    """Whether a later command ended it, by reading the place."""
    at_once: bool = False
    """Of a BEGIN: whether its steps are made all at once, and no line says what was sent."""


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
    """Return the entry in a JSON object. Raises ConfigError: it lacks something."""
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
        raise ConfigError(f"not an entry of a journal: {error}") from error


def owned_after(entries: Iterable[Entry]) -> set[bytes]:
    """Return what is owned after these entries: the fold of those that are DONE."""
    owned: set[bytes] = set()
    for entry in entries:
        if entry.kind is EntryKind.DONE:
            fold(owned, entry.steps)
    return owned


def fold(owned: set[bytes], steps: Iterable[JournalStep]) -> None:
    """Change what is owned by the steps of an apply that has ended."""
    for step in steps:
        if step.action in (JournalAction.ADD, JournalAction.ADOPT):
            owned.add(step.content)
        else:
            owned.discard(step.content)


def written_steps(steps: Iterable[JournalStep]) -> int:
    """Return how many steps of an apply change its place; they are the first ones."""
    return sum(step.action in (JournalAction.ADD, JournalAction.REMOVE) for step in steps)


def _steps(values: Sequence[Mapping[str, Any]]) -> tuple[JournalStep, ...]:
    return tuple(
        JournalStep(action=JournalAction(value["action"]), content=content_of_object(value["rule"])) for value in values
    )


# What a journal says: every apply of a source, and what the source owns.


@define(eq=False, slots=False, kw_only=True)
class Journal:
    """The entries of a journal. Immutable by convention."""

    path: str
    id: str
    entries: tuple[Entry, ...] = ()
    sent: Sent = NOTHING_SENT
    """How far the apply has come that has not ended."""
    is_new: bool = False
    """Whether there is no file yet."""
    checksum: int = 0
    """Of all lines of its file."""

    @property
    def open(self) -> Entry | None:
        """The BEGIN of an apply that has not ended, if there is one; it is the last entry."""
        last = self.entries[-1] if self.entries else None
        return last if last is not None and last.kind is EntryKind.BEGIN else None

    @cached_property
    def owned(self) -> AbstractSet[bytes]:
        """What is owned by the applies that have ended."""
        return owned_after(self.entries)

    @property
    def place(self) -> str | None:
        """The identity of the place that it was last applied to; None before that."""
        return next((entry.place for entry in reversed(self.entries) if entry.place is not None), None)

    def check_place(self, identity: str | None, name: str) -> None:
        """Check that a place is the one that the journal is of.

        Raises:
            JournalError: it is another one, or nothing tells that it is the same.

        """
        place = self.place
        if place is None or identity == place:
            return
        state = f"is {identity}" if identity is not None else "has no identity: it is new, or was replaced"
        raise JournalError(
            f"{self.path}: the journal of {place}, and {name} {state}: expected the same place, or a journal of its own"
        )

    def check_rules_there(self, contents: AbstractSet[bytes], name: str) -> None:
        """Check that a place does not answer with nothing, though this journal owns rules there.

        Every apply of the journal has ended: one that was ended on its way may have removed them all.

        Raises:
            RefusedError: it does.

        """
        owned = len(self.owned)
        if owned and not contents:
            raise RefusedError(
                f"{name}: answers that it has no rules at all, and {self.path} owns {owned:,} there: it may not be "
                "ready, or not the same place. If all were really removed, begin a new journal"
            )


# The lines of a journal: JSON, each with a checksum at the end of all lines so far.
#
# So a line that was changed is known for what it is, and so is one that is missing before others.


_HEAD, _VERSION = "JOURNAL", 2
_HEAD_BEGIN = f'{{"kind":"{_HEAD}"'.encode()
_CHECKSUM = b',"crc":"'
_SENT = b'{"kind":"SENT"'
_BEGIN, _STEPS = f'{{"kind":"{EntryKind.BEGIN}"'.encode(), b',"steps":'
_TAIL = len(_CHECKSUM) + len('00000000"}')
_START = 0
"""The checksum of no lines at all."""


def head_line(journal_id: str) -> bytes:
    """Return the first line of a journal, with its line end."""
    return _line({"kind": _HEAD, "version": _VERSION, "id": journal_id}, _START)


def is_torn_head(data: bytes) -> bool:
    """Return whether a file is empty, or holds a part of the first line only: nothing was applied with it."""
    return b"\n" not in data and (data.startswith(_HEAD_BEGIN) or _HEAD_BEGIN.startswith(data))


def entry_line(entry: Entry, before: int) -> bytes:
    """Return the line of an entry, with its line end; `before` is the checksum of the line above."""
    return _line(entry_object(entry), before)


def sent_line(apply: str, sent: Sent, before: int) -> bytes:
    """Return the line that says how far an apply has come, with its line end; `before` as for `entry_line`."""
    return _line(sent_object(apply, sent), before)


def checksum_of(line: bytes) -> int:
    """Return the checksum that ends a whole line, with or without its line end."""
    return int(line.rstrip(b"\n")[-_TAIL + len(_CHECKSUM) : -len('"}')], 16)


def parse_journal(data: bytes, path: str) -> tuple[Journal, int]:
    """Return the journal in the bytes of a file, and how many of them are whole lines; what follows was torn.

    A last line that lacks but its line end is whole.

    Raises:
        JournalError: not a journal, one of another version, or a damaged line; with its number.

    """
    lines, end = _whole_lines(data)
    if not lines:
        raise JournalError(f"{path}: not a journal: its first line is not whole")
    if not lines[0].startswith(_HEAD_BEGIN):
        raise JournalError(f"{path}: not a journal: expected a file that `aclog apply` wrote")
    checksum = _check_line(lines[0], _START, path, 1)
    head = _parsed(lines[0], path, 1)
    if not isinstance(head.get("id"), str):
        raise JournalError(f"{path}: line 1: a journal without an id: expected a file that `aclog apply` wrote")
    if head.get("version") != _VERSION:
        raise JournalError(f"{path}: a journal of version {head.get('version')}: expected {_VERSION}")
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
    """Return the whole lines, the last one with or without its line end; and where they end."""
    end = data.rfind(b"\n") + 1
    lines, rest = data[:end].splitlines(), data[end:]
    before = _START if not lines else _told_by(lines[-1])
    if rest and before is not None and _is_whole(rest, before):
        return [*lines, rest], len(data)
    return lines, end


def _sent(line: bytes, entries: list[Entry], path: str, number: int) -> Sent:
    """Return how far the apply has come that has not ended."""
    value = _parsed(line, path, number)
    entry = entries[-1] if entries else None
    if entry is None or entry.kind is not EntryKind.BEGIN or value.get("apply") != entry.apply:
        raise JournalError(f"{path}: line {number}: apply {value.get('apply')} sends what did not begin above")
    try:
        return parse_sent(value, written_steps(entry.steps))
    except ConfigError as error:
        raise JournalError(f"{path}: line {number}: {error}") from error


def _check_order(entries: list[Entry], path: str, number: int) -> None:
    """Check that each apply begins before it is done, and is done before the next one begins."""
    last, before = entries[-1], entries[-2] if len(entries) > 1 else None
    is_open = before is not None and before.kind is EntryKind.BEGIN
    if last.kind is EntryKind.DONE and not (is_open and before is not None and before.apply == last.apply):
        raise JournalError(f"{path}: line {number}: apply {last.apply} is done, and did not begin on the line before")
    if last.kind is EntryKind.BEGIN and is_open:
        raise JournalError(f"{path}: line {number}: apply {last.apply} begins before the one on the line above is done")


def _check_once(entry: Entry, begun: set[str], path: str, number: int) -> None:
    """Check that no apply begins twice: a merge of two copies would own again what was removed since."""
    if entry.kind is EntryKind.BEGIN:
        if entry.apply in begun:
            raise JournalError(f"{path}: line {number}: apply {entry.apply} begins a second time: was it merged?")
        begun.add(entry.apply)


def _line(value: Mapping[str, object], before: int) -> bytes:
    text = json_text(value).encode()[:-1]
    return text + _tail(text, before) + b"\n"


def _tail(text: bytes, before: int) -> bytes:
    return _CHECKSUM + f'{crc32c(text, before):08x}"}}'.encode()


def _check_line(line: bytes, before: int, path: str, number: int) -> int:
    """Return the checksum of a line that fits to that of the line above. Raises JournalError: it does not."""
    if not _is_whole(line, before):
        raise JournalError(
            f"{path}: line {number}: its checksum does not fit: it is damaged or was changed by hand, or lines before "
            "it are missing or were added; nobody knows what is owned"
        )
    return checksum_of(line)


def _is_whole(line: bytes, before: int) -> bool:
    return line[-_TAIL:] == _tail(line[:-_TAIL], before)


def _told_by(line: bytes) -> int | None:
    """Return the checksum that ends a line; None if none does."""
    try:
        return checksum_of(line)
    except ValueError:
        return None


def _parsed(line: bytes, path: str, number: int, *, without_steps: bool = False) -> dict[str, Any]:
    text = line[:-_TAIL]
    if without_steps:  # the next line, DONE, has those that count
        line = text[: text.find(_STEPS)] + _STEPS + b"[]}"
    try:
        return parse_object(line)
    except ConfigError as error:
        raise JournalError(f"{path}: line {number}: {error}") from error


# Journals as files: read by anyone, written by one apply at a time.


_FLOCK = "hhqqi4x"
"""Linux's struct flock: type, whence, start, length, process."""


def read_journal(path: Path, new_id: Callable[[], str], notify: Callable[[str], None]) -> Journal:
    """Return the journal in a file; if there is none, a new one that owns nothing, with an id from `new_id`.

    Raises:
        JournalError: it is not a journal, or is damaged.
        LogError: it cannot be read.

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
    """The first line of a new journal, which is written with the first entry: an apply that is refused leaves none."""
    _failed: bool = field(default=False, init=False)

    def append(self, *entries: Entry) -> None:
        """Write entries, at once, and wait until they are durable.

        Raises:
            LogError: they cannot be written; or the file was removed or replaced.

        """
        lines, checksum = list[bytes](), self.journal.checksum
        for entry in entries:
            lines.append(entry_line(entry, checksum))
            checksum = checksum_of(lines[-1])
        self._write(*lines)
        self.journal = evolve(self.journal, entries=(*self.journal.entries, *entries), sent=Sent(), is_new=False)

    def note_sent(self, apply: str, sent: Sent) -> None:
        """Write how far the apply has come that has begun, and wait until it is durable. Raises as `append`."""
        self._write(sent_line(apply, sent, self.journal.checksum))
        self.journal = evolve(self.journal, sent=sent)

    def _write(self, *lines: bytes) -> None:
        path = Path(self._file.path)
        if self._failed:
            raise LogError(f"{path}: an entry failed to be written: open the journal again")
        self._failed = True
        try:
            if self._head:
                os.ftruncate(self._fd, 0)  # a part of such a line may be there
            write_all(self._fd, self._head + b"".join(lines))
            os.fsync(self._fd)
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
    """Lock a journal for one apply. With `is_new` a file that is not there is made, with this id. A torn end is cut.

    Raises:
        LockedError: another apply has it.
        JournalError: it is damaged, another one, or gone. LogError: it cannot be opened.

    """
    is_made = is_new and not path.exists()
    fd = _opened(path, create=is_new)
    try:
        _lock(fd, path)
        file = NamedFile.of(fd, path)
        file.check()
        data = read_at(fd, 0, os.fstat(fd).st_size)
        if is_torn_head(data):
            if not is_new:
                raise JournalError(f"{path}: the journal is gone, or empty: nobody knows what is owned; put it back")
            head = head_line(journal_id)
            new = Journal(path=str(path), id=journal_id, is_new=True, checksum=checksum_of(head))
            try:
                yield JournalWriter(journal=new, fd=fd, file=file, head=head)
            finally:
                if is_made and os.fstat(fd).st_size == 0:  # nothing was begun
                    path.resolve().unlink(missing_ok=True)
            return
        journal, end = parse_journal(data, str(path))
        if end < len(data) or not data.endswith(b"\n"):
            _tell_torn(path, len(data) - end, notify)
            _mend(fd, path, data, end)
        if journal.id != journal_id:
            raise JournalError(f"{path}: another journal than the one that the plan was made with: make the plan again")
        yield JournalWriter(journal=journal, fd=fd, file=file)
    finally:
        os.close(fd)


def _opened(path: Path, *, create: bool) -> int:
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
    try:
        _check_file(path)
        # A journal may be a link into a repository: links are followed.
        return os.open(path, flags, FILE_MODE)
    except OSError as error:
        raise log_error(error, path, "cannot open the journal") from error


def _check_file(path: Path) -> None:
    """Raise JournalError if something is there that is no regular file: a pipe would be waited for."""
    if path.exists() and not path.is_file():
        raise JournalError(f"{path}: not a regular file: expected a journal, or the path of a new one")


def _mend(fd: int, path: Path, data: bytes, end: int) -> None:
    """Cut what follows the last whole line, or end that line if it lacks only its end. Raises LogError."""
    try:
        if end < len(data):
            os.ftruncate(fd, end)
            os.fsync(fd)
        else:
            write_all(fd, b"\n")
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def _lock(fd: int, path: Path) -> None:
    """Lock a journal: against other processes, and on Linux against this one's other threads, too.

    A lock of the process would be lost as soon as any thread of it reads the journal and closes it again.
    """
    try:
        if sys.platform == "linux":
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        else:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN}:
            raise LockedError(f"{path}: another apply is using this journal") from error
        raise log_error(error, path, "cannot lock") from error


def _tell_torn(path: Path, size: int, notify: Callable[[str], None]) -> None:
    if size:
        notify(f"{path}: its last {size} bytes are not a whole line: an apply was killed while it wrote them")


# Ending an apply that was killed, in its journal: by what it had noted, what the place knows, and what is there.
#
# What is there tells nothing by itself: somebody else may have added a rule that the apply was to add, or added again
# one that it had removed. So it only decides on steps that were sent and not read back.


_MOST_RULES = 20
"""How many rules are named; the rest is counted."""


@frozen(eq=False, kw_only=True)
class Settled:
    """A journal in which every apply has ended, in memory only."""

    journal: Journal
    unsure: tuple[JournalStep, ...] = ()
    """Steps whose rules are there, and nobody knows who added them: the apply, or somebody else."""


def settle(journal: Journal, contents: AbstractSet[bytes], completion: Callable[[str], Completion | None]) -> Settled:
    """Return a journal with the apply that has not ended settled.

    `completion` is WritablePlace.completion. Raises as that.
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
    """Return how far the apply has come that has not ended. Raises as WritablePlace.completion."""
    entry = journal.open
    if entry is None:
        return NOTHING_SENT
    steps = written_steps(entry.steps)
    noted = Sent(unsure=frozenset(range(steps))) if entry.at_once else journal.sent
    return noted.of(completion(entry.apply), steps)


def unsure_texts(journal: Journal, unsure: tuple[JournalStep, ...]) -> Iterator[str]:
    """Yield what to tell of rules of which nobody knows who added them."""
    for step in unsure[:_MOST_RULES]:
        if step.action is JournalAction.ADD:
            what = "is there, and it was ended while it added this: counted as its own; somebody else may have added it"
        else:
            what = "is there, and it was ended while it deleted this: its own; somebody else may have added it again"
        yield f"{journal.path}: {_apply_of(journal)}: {acl_text(acl_of_content(step.content))} {what}"
    if len(unsure) > _MOST_RULES:
        yield f"{journal.path}: {_apply_of(journal)}: so are {len(unsure) - _MOST_RULES:,} more rules"


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
