"""First and last uses of lives in the database, in chunks of numbers."""

import json
import sqlite3
from typing import Final

import numpy as np

from aclog.metalog.errors import DecodeError
from aclog.metalog.vectors import Int64s
from aclog.usage.index.last_use import EVENTS, LastUse
from aclog.usage.index.packing import deflated, inflated, packed, unpacked

TABLES: Final = """
CREATE TABLE last_use (chunk INTEGER PRIMARY KEY, columns BLOB NOT NULL, users BLOB NOT NULL);
"""

_CHUNK_BITS = 12


def add_last_use(database: sqlite3.Connection, found: LastUse) -> None:
    """Add uses by the number of lives."""
    of_number = found.numbers >> _CHUNK_BITS
    for chunk in np.unique(of_number).tolist():
        part = _read(database, chunk).plus(found.where(of_number == chunk))
        columns = packed(part.numbers, *part.times, *part.who)
        users = deflated(json.dumps(part.users, ensure_ascii=False).encode())
        database.execute("INSERT OR REPLACE INTO last_use VALUES (?, ?, ?)", (chunk, columns, users))


def read_last_use(database: sqlite3.Connection, numbers: Int64s) -> LastUse:
    """Return the uses of some lives."""
    parts = []
    for chunk in np.unique(numbers >> _CHUNK_BITS).tolist():
        part = _read(database, chunk)
        parts.append(part.where(np.isin(part.numbers, numbers)))
    return LastUse.nothing().plus(*parts)


def _read(database: sqlite3.Connection, chunk: int) -> LastUse:
    row = database.execute("SELECT columns, users FROM last_use WHERE chunk = ?", (chunk,)).fetchone()
    if row is None:
        return LastUse.nothing()
    columns = unpacked(row[0])
    if len(columns) != 1 + 2 * len(EVENTS) or len({len(column) for column in columns}) != 1:
        raise DecodeError("uses of rules that are none: damaged")
    try:
        users = tuple((principal, host) for principal, host in json.loads(inflated(row[1])))
    except (ValueError, TypeError) as error:
        raise DecodeError(f"users of rules that are none: {error}") from error
    numbers, *rest = columns
    return LastUse(numbers=numbers, times=np.stack(rest[: len(EVENTS)]), who=np.stack(rest[len(EVENTS) :]), users=users)
