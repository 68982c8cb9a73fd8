"""Simulated SQLite: what its documentation promises, on the simulated disk.

A commit is whole or not there at all. It is durable when COMMIT returns, if `synchronous` is FULL; otherwise a power
loss takes a drawn number of the last commits. After a failed COMMIT the transaction is rolled back for this connection,
but its frames may be in the write-ahead log, and count for the next process that opens the file. They are in the page
cache alone then: a power loss takes them, and all commits after them, unless a checkpoint was between.
"""

import errno
import os
import sqlite3
from random import Random
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.simulation.disk import File, SimDisk
from tests.simulation.scheduler import ProcessDeathError

_FULL = "FULL"


class DatabaseFile(File):
    """The file of a database: `journal` has whole commits."""

    def __init__(self, inode: int, mode: int) -> None:
        super().__init__(inode, mode)
        self.writer: Any = None
        """The connection with the transaction that writes."""
        self.readers = 0
        self.perhaps: bytes | None = None
        """A commit that has failed, and may be in the write-ahead log."""
        self.is_hollow = False
        """Whether such a commit counts: its frames are clean pages that no fsync writes, and what follows needs them.

        A checkpoint copies them into the database, whose pages are dirty then.
        """

    def commit(self, image: bytes) -> None:
        """Write a commit into the page cache."""
        self.data = bytearray(image)
        self.journal.append((0, image))

    def sync(self) -> None:
        """See File."""
        if self.journal and not self.is_hollow:
            self.durable = bytearray(self.journal[-1][1] or b"")
            self.journal.clear()

    def lose(self, random: Random) -> bool:
        """See File: keep some of the commits, in order."""
        kept = random.randint(0, len(self.journal))
        if self.is_hollow and random.random() < 0.5:
            kept = 0
        if kept:
            self.durable = bytearray(self.journal[kept - 1][1] or b"")
        self.journal.clear()
        self.data, self.perhaps, self.is_hollow = bytearray(self.durable), None, False
        return False


class SimDatabase(sqlite3.Connection):
    """A connection: the database is in memory, and its commits are in a DatabaseFile."""

    def begin(self, process: Any, path: str) -> "SimDatabase":
        """Open the file of a path for a process, which exists."""
        file = process.disk.find(path)
        assert isinstance(file, DatabaseFile)
        self._process, self._path, self._file = process, path, file
        self._synchronous, self._seen = _FULL, b""
        random = process.scheduler.random
        if file.perhaps is not None and file.writer is None:
            if random.random() < 0.5:
                file.commit(file.perhaps)
                file.is_hollow = True
                process.scheduler.cover("commit that had failed")
            file.perhaps = None
        self._refresh()
        return self

    def _refresh(self) -> None:
        image = bytes(self._file.data)
        if image != self._seen:
            self.deserialize(image)
            self._seen = image

    def execute(self, statement: str, *parameters: Any) -> Any:  # type: ignore[override]
        """See sqlite3."""
        if self._process.dead:
            raise ProcessDeathError
        words = statement.upper().split() or [""]
        if words[0] == "COMMIT" and self._file.writer is self:
            return self._commit(statement)
        if statement.startswith("PRAGMA wal_checkpoint"):
            self._checkpoint()
        elif words[0] == "BEGIN":
            if "IMMEDIATE" in words:
                self._process.system_call("begin", self._path)
                if self._file.writer is not None and not self._file.writer._process.dead:
                    raise sqlite3.OperationalError("database is locked")
                self._file.writer = self
            self._refresh()
        elif words[0] == "ROLLBACK" and self._file.writer is self:
            self._file.writer = None
        elif words[:2] == ["PRAGMA", "SYNCHRONOUS"] and len(words) > 3:
            self._synchronous = words[3]
        elif not self.in_transaction:
            self._refresh()
        return super().execute(statement, *parameters)

    def _commit(self, statement: str) -> Any:
        process, file, disk = self._process, self._file, self._process.disk
        process.system_call("commit", self._path)
        if disk.is_full:
            raise sqlite3.OperationalError("database or disk is full")
        before, result = self._seen, super().execute(statement)
        file.writer, self._seen = None, self.serialize()
        random = process.scheduler.random
        if process.crashes_now("commit", self._path):
            if random.random() < 0.5:
                file.commit(self._seen)
            process.crash()
        if disk.fail_fsyncs and self._synchronous == _FULL:
            disk.fail_fsyncs -= 1
            process.scheduler.cover("fsync EIO")
            file.perhaps, self._seen = self._seen, before
            self.deserialize(before)
            raise sqlite3.OperationalError("disk I/O error")
        file.commit(self._seen)
        file.mtime = process.wall_clock()
        if self._synchronous == _FULL:
            process.scheduler.sleep((0.001 + 0.004 * random.random()) * disk.slow)
            process.system_call("committed", self._path)
            file.sync()
        return result

    def _checkpoint(self) -> None:
        """Copy the write-ahead log into the database, if no other connection writes."""
        process, file, disk = self._process, self._file, self._process.disk
        process.system_call("checkpoint", self._path)
        if file.writer is not None and not file.writer._process.dead:
            return
        if disk.is_full:
            raise sqlite3.OperationalError("database or disk is full")
        if disk.fail_fsyncs:
            disk.fail_fsyncs -= 1
            process.scheduler.cover("fsync EIO")
            raise sqlite3.OperationalError("disk I/O error")
        file.is_hollow = False
        process.scheduler.sleep((0.001 + 0.004 * process.scheduler.random.random()) * disk.slow)
        process.system_call("checkpointed", self._path)
        file.sync()

    def close(self) -> None:
        """See sqlite3."""
        if self._file.writer is self:
            self._file.writer = None
        super().close()


def connect(process: Any, database: Any, *_: Any, **__: Any) -> SimDatabase:
    """Return a connection to a database on the disk of a process: sqlite3.connect, with or without `uri`."""
    path, creates = str(database), True
    if path.startswith("file:"):
        parts = urlsplit(path)
        path, creates = unquote(parts.path), "mode=" not in parts.query
    process.system_call("connect", path)
    disk: SimDisk = process.disk
    try:
        disk.find(path)
    except FileNotFoundError:
        if not creates:
            raise sqlite3.OperationalError("unable to open database file") from None
        if disk.is_full:
            raise sqlite3.OperationalError(os.strerror(errno.ENOSPC)) from None
        disk.create(path, 0o644, DatabaseFile)
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=SimDatabase, check_same_thread=False)
    return connection.begin(process, path)
