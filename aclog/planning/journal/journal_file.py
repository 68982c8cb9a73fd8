"""Journals as files: read by anyone, written by one apply at a time."""

import errno
import fcntl
import os
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, evolve, field

from aclog.metalog.errors import LockedError, LogError
from aclog.metalog.filelog.filesystem import FILE_MODE, fsync_directory, log_error, read_at, write_all
from aclog.metalog.filelog.named_file import NamedFile
from aclog.planning.errors import JournalError
from aclog.planning.journal.entry import Entry
from aclog.planning.journal.journal import Journal
from aclog.planning.journal.journal_lines import (
    checksum_of,
    entry_line,
    head_line,
    is_torn_head,
    parse_journal,
    sent_line,
)
from aclog.planning.journal.sent import Sent

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
