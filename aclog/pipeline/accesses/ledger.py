"""The ledger of a table that is appended to: what was taken, how far each source goes, and which files belong to it.

A SQLite database, `_ledger.db` (Spark skips names that begin with `_`). An append is committed by one transaction,
which names its files while they still stand in a directory of their own. Then they are moved into the table. What is
killed before the transaction leaves nothing in the table; what is killed after it is moved by the next append.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self, TypeAlias

from attrs import define, field, frozen

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.filesystem import fsync_directory
from aclog.metalog.filelog.locks import LOCK_FILE, WriterLock
from aclog.usage.accesses.append_state import LEDGER
from aclog.usage.accesses.contents import Known, Part

Seen: TypeAlias = tuple[int, int, int, int, bytes]
"""A file as it was: device, inode, size, time of its last change in ns, and a digest of its ends."""

STAGING: Final = "_staging"
_APPLICATION, _VERSION = 0x61636C67, 1
_TABLES: Final = """
CREATE TABLE appends (number INTEGER PRIMARY KEY, at INTEGER, accesses INTEGER, rejected INTEGER, late INTEGER,
    placed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE contents (length INTEGER, digest BLOB, append INTEGER, path TEXT, start INTEGER,
    PRIMARY KEY (length, digest)) WITHOUT ROWID;
CREATE TABLE files (append INTEGER, staged TEXT, name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE sources (name TEXT PRIMARY KEY, latest INTEGER) WITHOUT ROWID;
CREATE TABLE seen (device INTEGER, inode INTEGER, size INTEGER, modified INTEGER, ends BLOB,
    PRIMARY KEY (device, inode)) WITHOUT ROWID;
"""


@frozen(kw_only=True)
class Taken:
    """What one append adds to the ledger."""

    parts: Sequence[Part]
    files: Mapping[str, str]
    """Where a file stands, and where it goes, both below the table's directory."""
    latest: Mapping[str, int | None]
    """By source: the latest time that was taken from it, in us since 1970; None if no access had a time."""
    accesses: int
    rejected: int
    late: int
    at: int
    """When, in ms since 1970."""


@define
class Ledger:
    """The open ledger of one directory, which no other process appends to meanwhile."""

    out: Path
    _database: sqlite3.Connection
    _lock: WriterLock = field(repr=False)
    _is_new: bool = False
    """Whether this process has made the directory."""

    @classmethod
    def open(cls, out: Path) -> Self:
        """Open the ledger of a directory, which is created if it does not exist; finish what was killed.

        Raises:
            ConfigError: the directory holds something else, or its parent does not exist.
            LockedError: another process is appending to it.
            LogError: it cannot be locked.

        """
        if not out.absolute().parent.is_dir():
            raise ConfigError(f"{out.parent}: no such directory: expected one to create {out.name} in")
        _check_ours(out)
        is_new = not out.exists()
        out.mkdir(exist_ok=True)
        lock = WriterLock.acquire(out, force=False)
        try:
            opened = cls(out, _connected(out / LEDGER), lock, is_new)
            opened.place()
        except BaseException:
            lock.close()
            raise
        return opened

    def close(self) -> None:
        """Close the ledger, and let others append; a new directory that nothing came into is removed again."""
        unused = self._is_new and self.next_number() == 1 and not (self.out / "accesses").exists()
        self._database.close()
        if unused:
            (self.out / LEDGER).unlink(missing_ok=True)
            (self.out / LOCK_FILE).unlink(missing_ok=True)
        self._lock.close()
        if unused:
            with suppress(OSError):  # another process has begun to use it
                self.out.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def known(self) -> set[Known]:
        """Return what was taken."""
        with self._readable():
            return set(self._database.execute("SELECT length, digest FROM contents"))

    def latest(self) -> dict[str, int | None]:
        """Return the latest time that was taken from each source, in us since 1970; None if no access had a time."""
        with self._readable():
            return dict(self._database.execute("SELECT name, latest FROM sources"))

    def seen(self) -> set[Seen]:
        """Return the files all of which was taken, as they were then: those that still are need not be read again."""
        with self._readable():
            return set(self._database.execute("SELECT device, inode, size, modified, ends FROM seen"))

    def remember(self, seen: Iterable[Seen]) -> None:
        """Keep files for `seen`."""
        with self._readable(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", seen)

    def next_number(self) -> int:
        """Return the number of the next append."""
        with self._readable():
            return int(self._database.execute("SELECT coalesce(max(number), 0) + 1 FROM appends").fetchone()[0])

    def commit(self, taken: Taken) -> int:
        """Commit an append, whose files have been fsynced, and move them into the table; return its number.

        Raises:
            ConfigError: the table has files of an append of this number already; nothing is committed.

        """
        number = self.next_number()
        # a ledger from a backup numbers its appends as those that it does not know of: their files would be replaced
        for pattern in (f"accesses/*/{number:08d}-*", f"rejects/{number:08d}-*"):
            for unknown in self.out.glob(pattern):
                raise ConfigError(
                    f"{self.out / LEDGER}: is older than the table, which has {unknown.relative_to(self.out)} already: "
                    "expected both of one moment: restore both, or ingest into a new directory"
                )
        with self._readable(), self._database:  # one transaction
            self._database.execute(
                "INSERT INTO appends (number, at, accesses, rejected, late) VALUES (?, ?, ?, ?, ?)",
                (number, taken.at, taken.accesses, taken.rejected, taken.late),
            )
            self._database.executemany(
                "INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?, ?)",
                [(*part.content.known, number, part.content.path, part.start) for part in taken.parts],
            )
            self._database.executemany(
                "INSERT INTO files VALUES (?, ?, ?)", [(number, *each) for each in taken.files.items()]
            )
            self._database.executemany(
                "INSERT INTO sources VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET latest = excluded.latest",
                taken.latest.items(),
            )
        self.place()
        return number

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ConfigError(f"{self.out / LEDGER}: {error}: nothing more is taken") from error

    def place(self) -> None:
        """Move the files of committed appends into the table, and delete those that never were committed.

        Raises:
            ConfigError: a file is nowhere.

        """
        with self._readable():
            pending = [row[0] for row in self._database.execute("SELECT number FROM appends WHERE NOT placed")]
            for number in pending:
                rows = self._database.execute("SELECT staged, name FROM files WHERE append = ?", (number,)).fetchall()
                for staged, name in rows:
                    _move(self.out / staged, self.out / name)
                _fsync_parents(self.out, [name for _, name in rows])
                with self._database:
                    self._database.execute("UPDATE appends SET placed = 1 WHERE number = ?", (number,))
        shutil.rmtree(self.out / STAGING, ignore_errors=True)


def _check_ours(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: not a directory: expected one that --append has made, or a new name")
    if out.is_dir() and not (out / LEDGER).exists() and {each.name for each in out.iterdir()} - {LOCK_FILE}:
        raise ConfigError(f"{out}: has no {LEDGER}: expected a directory that --append has made, or a new name")


def _connected(path: Path) -> sqlite3.Connection:
    """Open the database, and create its tables in a transaction.

    Raises:
        ConfigError: not a ledger, one of a newer version, one that cannot be opened, or an empty one beside a table.

    """
    try:
        database = sqlite3.connect(path)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            if (path.parent / "accesses").exists():
                raise ConfigError(f"{path}: is empty, but the table is not: restore it, or ingest into a new directory")
            database.executescript(
                f"BEGIN; {_TABLES} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION}; COMMIT;"
            )
            fsync_directory(path.parent)
            return database
        if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION or version != _VERSION:
            raise ConfigError(f"{path}: not a ledger of version {_VERSION}: a newer aclog, or another program, made it")
    except sqlite3.Error as error:
        raise ConfigError(f"{path}: cannot be opened: {error}") from error
    return database


def _move(staged: Path, name: Path) -> None:
    if staged.exists():
        name.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(name)
    elif not name.exists():
        raise ConfigError(f"{name}: is missing, and so is {staged}: the table is damaged: ingest into a new one")


def _fsync_parents(out: Path, names: Iterable[str]) -> None:
    parents = {parent for name in names for parent in Path(name).parents}
    for parent in sorted(parents):
        fsync_directory(out / parent)


def fsync_file(path: Path) -> None:
    """Make a file that another process has written durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
