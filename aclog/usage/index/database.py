"""The database file of the index of last use, and its column format."""

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
from attrs import field
from numpy.typing import NDArray

from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError, DecodeError, os_error_text
from aclog.metalog.filelog.files import fsync_directory
from aclog.metalog.machine import databases, disk
from aclog.metalog.values import define

# The index file: opened only if it is an index, and verified to be the same file at each write.


FILE: Final = "usage.sqlite"
_APPLICATION: Final = 0x61637578
"""SQLite's application_id of an index."""
_VERSION: Final = 3
"""SQLite's user_version: the schema."""
_OLDEST: Final = 1
"""The oldest supported schema: 1 has no table of unread accesses, 2 one without brokers and hours.

Both are read as they are, and upgraded before the first write.
"""
_PATIENCE = 60.0
"""How many seconds a writer waits for another one."""


@define(eq=False)
class IndexDatabase:
    """An open index, in one process and thread."""

    path: Path
    name: str
    """What errors name: the path, or the address of which the file is a copy."""
    connection: sqlite3.Connection = field(repr=False)
    _identity: tuple[int, int]
    """Device and inode."""
    _opened: "_FileState | None"
    """What the file was when it was opened without the locks of SQLite; None: with them."""

    @classmethod
    def create(
        cls,
        directory: Path,
        tables: str,
        *,
        upgrade: Callable[[sqlite3.Connection], None],
        name: str | None = None,
    ) -> Self:
        """Create an index with these tables in a new or empty directory; an existing index is opened.

        `name`: what errors name in place of the path.

        Raises:
            ConfigError: the directory contains other files, or the index cannot be created.

        """
        path = directory / FILE
        try:
            missing = list(takewhile(lambda each: not each.exists(), (directory, *directory.parents)))
            directory.mkdir(parents=True, exist_ok=True)
            if strange := sorted(each.name for each in directory.iterdir() if not each.name.startswith(FILE)):
                raise ConfigError(
                    f"{directory}: contains {strange[0]!r}: expected an index, or a new or empty directory"
                )
            with _errors(name or str(path)):
                _fill(path, tables)
            fsync_directory(directory)
            # A killed process may have left a directory whose own name is not durable.
            for each in missing or [directory]:
                with suppress(PermissionError):
                    fsync_directory(each.parent)
        except OSError as error:
            expected = "expected a directory that can be written" if name is None else "expected room in TMPDIR"
            raise ConfigError(f"{name or path}: cannot be created: {error.strerror or error}: {expected}") from error
        return cls.open(directory, writable=True, upgrade=upgrade, name=name)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        writable: bool,
        upgrade: Callable[[sqlite3.Connection], None],
        name: str | None = None,
    ) -> Self:
        """Open an index; `upgrade` migrates an older schema in a transaction if the index is writable.

        `name`: as of `create`.

        Raises:
            ConfigError: no index, an unsupported schema, or it cannot be opened.

        """
        path = directory / FILE
        try:
            identity, (mode, state) = _identity(path), _mode(path, writable=writable)
        except OSError as error:
            expected = f"expected a directory with {FILE}, which `aclog accesses index` makes"
            raise ConfigError(f"{name or directory}: no index: {os_error_text(error)}: {expected}") from error
        if not path.is_file():
            raise ConfigError(f"{name or path}: not a file: expected an index of last use")
        name = name or str(path)
        with _errors(name):
            connection = _connected(path, mode, writable=writable)
            try:
                with _unchanged(name, path, state):
                    _check(name, connection)
                if writable:
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute("PRAGMA synchronous = FULL")
                    # Makes what this process sees durable. A commit whose fsync failed may have been recovered from the
                    # write-ahead log: its pages are clean, so that no later fsync writes them (Linux since 4.13), and a
                    # power loss would take every commit after it. A checkpoint copies them into the database.
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                    _upgrade(connection, upgrade)
            except BaseException:
                connection.close()
                raise
        opened = cls(path, name, connection, identity, state)
        opened.check_same()
        return opened

    def check_same(self) -> None:
        """Check that the file is still the one that was opened. Raises ConfigError: it was removed or replaced."""
        try:
            same = _identity(self.path) == self._identity
        except OSError:
            same = False
        if not same:
            raise ConfigError(f"{self.name}: was removed or replaced while it was open: writing to it is refused")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, which is rolled back on an error.

        Raises:
            ConfigError: the index cannot be written, was replaced, or is damaged.

        """
        self.check_same()
        with _errors(self.name):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.check_same()
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read from one state, independent of later writes.

        Raises:
            ConfigError: the index cannot be read, is damaged, or a process has written it that has permission while
                this one has not: what was read in the `with` is not to be used.

        """
        with _errors(self.name), _unchanged(self.name, self.path, self._opened):
            if not self.connection.in_transaction:
                self.connection.execute("BEGIN")
            yield self.connection

    def settle(self) -> None:
        """Write all commits from the write-ahead log to the file. Raises ConfigError: it cannot be written."""
        with _errors(self.name):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check_sound(self) -> None:
        """Check the structure of the file. Raises ConfigError: it is damaged, or cannot be read."""
        with _errors(self.name):
            (result,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise ConfigError(f"{self.name}: damaged: {result}")

    def release(self) -> None:
        """End the read transaction of `reading`: the next read sees the newest state."""
        if self.connection.in_transaction:
            with _errors(self.name):
                self.connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        with _errors(self.name):
            self.connection.close()


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


class _FileState(NamedTuple):
    """By what a change of a file is noticed."""

    identity: tuple[int, int]
    size: int
    times: tuple[int, int]
    """Of its content and of its inode, in ns since 1970."""

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the present state. Raises OSError: there is no such file."""
        status = path.stat()
        return cls((status.st_dev, status.st_ino), status.st_size, (status.st_mtime_ns, status.st_ctime_ns))


def _mode(path: Path, *, writable: bool) -> tuple[str, _FileState | None]:
    """Return the mode to open a file in; without the locks of SQLite, also the state of the file before that."""
    if writable or disk.access(path, os.W_OK):
        return "rw", None
    state = _FileState.of(path)
    if path.with_name(f"{FILE}-wal").exists():
        return "ro", None
    # SQLite may be unable to create its -shm file, and so to lock: a writer may come at any time
    return "ro&immutable=1", state


@contextmanager
def _unchanged(name: str, path: Path, state: _FileState | None) -> Iterator[None]:
    """Check after the `with`, also after an error, that a file still has this state; None: SQLite's locks ensure it.

    Raises:
        ConfigError: a process writes to it, or has replaced it.

    """
    try:
        yield
    except Exception:
        _check_unchanged(name, path, state)
        raise
    _check_unchanged(name, path, state)


def _check_unchanged(name: str, path: Path, state: _FileState | None) -> None:
    if state is None:
        return
    try:
        same = _FileState.of(path) == state and not path.with_name(f"{FILE}-wal").exists()
    except OSError:
        same = False
    if not same:
        # not `from` an error of SQLite, such as of a damaged file, which is not true of the file
        raise ConfigError(f"{name}: changed while it was read: run again") from None


def _connected(path: Path, mode: str, *, writable: bool) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection: sqlite3.Connection = databases.connect(uri, uri=True, isolation_level=None, timeout=_PATIENCE)
    if not writable:
        # a reader with write permission only recovers from a killed writer
        connection.execute("PRAGMA query_only = 1")
    return connection


def _fill(path: Path, tables: str) -> None:
    """Create the tables, all or none, if the file is empty; another process may be doing the same."""
    connection = databases.connect(path, isolation_level=None, timeout=_PATIENCE)
    try:
        if not _is_empty(connection):
            return  # `open` checks whether it is an index
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if _is_empty(connection):
            for statement in tables.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether the file is empty, or its creation was killed."""
    has_tables = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    return not has_tables and not _number(connection, "application_id")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _check(name: str, connection: sqlite3.Connection) -> None:
    version = _number(connection, "user_version")
    if _is_empty(connection):
        raise ConfigError(f"{name}: is empty: expected an index of last use, created by `aclog accesses index`")
    if _number(connection, "application_id") != _APPLICATION:
        raise ConfigError(f"{name}: not an index of last use: created by another program")
    if version > _VERSION:
        raise ConfigError(f"{name}: schema version {version} is newer than supported ({_VERSION}): upgrade aclog")
    if version < _OLDEST:
        raise ConfigError(f"{name}: schema version {version} is not supported: create a new index in another directory")


def _upgrade(connection: sqlite3.Connection, upgrade: Callable[[sqlite3.Connection], None]) -> None:
    if _number(connection, "user_version") == _VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _number(connection, "user_version") < _VERSION:  # another process may have done it
            upgrade(connection)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ConfigError(f"{name}: {error}") from error
    except DecodeError as error:
        raise error.at(path=name) from error


# Columns of numbers as one compact blob, verified when it is read.


_HEAD = np.dtype([("rows", "<u4"), ("width", "u1"), ("least", "<i8")])
_BYTES = 8
_LEVEL = 1
"""The zlib level: higher ones take several times as long for a tenth less."""

Numbers: TypeAlias = "NDArray[np.integer] | Sequence[int]"


def packed(*columns: NDArray[np.generic]) -> bytes:
    """Return columns of integers of up to 64 bits, each with its own length, as bytes.

    A column is stored as differences from its minimum, in as few bytes as the largest needs: all low bytes, then all
    second bytes and so on, which compresses best with zlib.
    """
    parts = []
    for column in columns:
        values = column.astype(np.int64)
        least = int(values.min()) if len(values) else 0
        beyond = values.view(np.uint64) - np.uint64(least & 0xFFFFFFFFFFFFFFFF)
        width = (int(beyond.max()).bit_length() + 7) // 8 if len(values) else 0
        planes = beyond.astype("<u8").view(np.uint8).reshape(-1, _BYTES)[:, :width]
        parts += [np.array([(len(values), width, least)], _HEAD).tobytes(), planes.T.tobytes()]
    return zlib.compress(b"".join(parts), _LEVEL)


def unpacked(blob: bytes) -> list[Int64s]:
    """Return the columns.

    Raises:
        DecodeError: the bytes were not returned by `packed`.

    """
    data, at, columns = inflated(blob), 0, list[Int64s]()
    while at < len(data):
        if at + _HEAD.itemsize > len(data):
            raise DecodeError("a column is cut off", position=at)
        rows, width, least = np.frombuffer(data, _HEAD, 1, at)[0].tolist()
        at += _HEAD.itemsize
        if width > _BYTES or at + rows * width > len(data):
            raise DecodeError("a column is cut off", position=at)
        planes = np.frombuffer(data, np.uint8, rows * width, at).reshape(width, rows)
        values = np.zeros((rows, _BYTES), np.uint8)
        values[:, :width] = planes.T
        columns.append((values.view("<u8")[:, 0] + np.uint64(least & 0xFFFFFFFFFFFFFFFF)).view(np.int64))
        at += rows * width
    return columns


def deflated(data: bytes) -> bytes:
    """Return compressed bytes."""
    return zlib.compress(data, _LEVEL)


def inflated(blob: bytes) -> bytes:
    """Return decompressed bytes, with a verified checksum.

    Raises:
        DecodeError: the bytes are damaged.

    """
    try:
        return zlib.decompress(blob)
    except (zlib.error, TypeError) as error:
        raise DecodeError(f"damaged: {error}") from error
