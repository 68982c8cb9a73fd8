"""Accesses that could not be read or decided, in the database: by whom, what the log says of them, why, and the day."""

import sqlite3
from typing import Final

from aclog.usage.unread import OLDER_INDEX, UnreadAccesses, UnreadKey, UnreadSpan

TABLES: Final = """
CREATE TABLE unread (principal TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT NOT NULL, day INTEGER NOT NULL,
    accesses INTEGER NOT NULL, first INTEGER, last INTEGER,
    PRIMARY KEY (principal, decision, reason, day)) WITHOUT ROWID;
"""

_UNKNOWN: Final = ""
"""In place of a principal or a decision that the log does not tell."""
_NO_DAY: Final = -(1 << 31)
_DAY: Final = 86_400_000_000

_ADD: Final = """
INSERT INTO unread VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET accesses = accesses + excluded.accesses,
    first = min(first, excluded.first), last = max(last, excluded.last)
"""
_NOTE: Final = """
INSERT INTO unread VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    accesses = max(accesses, excluded.accesses), first = min(first, excluded.first), last = max(last, excluded.last)
"""
_BETWEEN: Final = """
SELECT principal, decision, reason, day, accesses, first, last FROM unread
    WHERE (first IS NULL OR first <= ?) AND (last IS NULL OR last >= ?)
"""
_OLDER: Final = "SELECT max(last), max(at) FROM runs WHERE number IN (SELECT run FROM contents)"
"""The times of the runs that read files, of which what they could not read was not kept. A node's runs read none."""


def add_unread(database: sqlite3.Connection, found: UnreadAccesses, read_at: int) -> None:
    """Add those of a run, which read its lines at this time (us since 1970): a day later none of them is unwritten."""
    _write(database, _ADD, found, read_at)


def note_unread(database: sqlite3.Connection, found: UnreadAccesses, read_at: int) -> None:
    """Note those of files that are not taken, and may be read again: what is noted twice counts once."""
    _write(database, _NOTE, found, read_at)


def _write(database: sqlite3.Connection, statement: str, found: UnreadAccesses, read_at: int) -> None:
    for key, span in found.until(read_at + _DAY).spans.items():
        row = (key.principal or _UNKNOWN, key.decision or _UNKNOWN, key.reason, _NO_DAY if key.day is None else key.day)
        database.execute(statement, (*row, *span))


def read_unread(database: sqlite3.Connection, start: int, until: int) -> UnreadAccesses:
    """Return those that may lie between two times, in us since 1970, both included."""
    if not has_unread(database):
        found = _of_older_runs(database)
        return (UnreadAccesses() if found is None else found).between(start, until)
    spans = {}
    for principal, decision, reason, day, accesses, first, last in database.execute(_BETWEEN, (until, start)):
        key = UnreadKey(principal or None, decision or None, reason, None if day == _NO_DAY else day)
        spans[key] = UnreadSpan(accesses, first, last)
    return UnreadAccesses(spans=spans)


def has_unread(database: sqlite3.Connection) -> bool:
    """Return whether the index keeps them: one of schema 1 does not."""
    row = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'unread'").fetchone()
    return row is not None


def begin_unread(database: sqlite3.Connection) -> None:
    """Make the table in an index of schema 1, and note in it that nobody knows what its runs could not read."""
    found = _of_older_runs(database)
    database.execute(TABLES)
    if found is not None:
        ((_, span),) = found.spans.items()
        database.execute(_ADD, (_UNKNOWN, _UNKNOWN, OLDER_INDEX, _NO_DAY, *span))


def _of_older_runs(database: sqlite3.Connection) -> UnreadAccesses | None:
    last, at = database.execute(_OLDER).fetchone()
    if at is None:
        return None
    latest = max(int(last or 0), int(at) * 1000) + _DAY
    return UnreadAccesses(spans={UnreadKey(None, None, OLDER_INDEX, None): UnreadSpan(0, None, latest)})
