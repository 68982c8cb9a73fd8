"""Coverage in the database, by broker and 32 days."""

import sqlite3
from typing import Final

import numpy as np

from aclog.metalog.errors import DecodeError
from aclog.usage.coverage import Coverage
from aclog.usage.index.packing import packed, unpacked

TABLES: Final = """
CREATE TABLE coverage (broker TEXT, span INTEGER, columns BLOB NOT NULL);
CREATE INDEX coverage_of ON coverage (broker, span);
"""

_SPAN_HOURS = 32 * 24


def add_coverage(database: sqlite3.Connection, found: Coverage) -> None:
    """Add the lines of a run."""
    for name in found.brokers:
        of_broker = found.of_broker(name)
        span = of_broker.hour // _SPAN_HOURS
        for number in np.unique(span).tolist():
            part = _part(of_broker, name, span == number)
            place = (name, number)
            row = database.execute("SELECT columns FROM coverage WHERE broker IS ? AND span = ?", place).fetchone()
            if row is not None:
                part = Coverage.sum((_coverage(name, row[0]), part))
                database.execute("DELETE FROM coverage WHERE broker IS ? AND span = ?", place)
            columns = packed(part.hour, part.rows, part.first, part.last - part.first)
            database.execute("INSERT INTO coverage VALUES (?, ?, ?)", (*place, columns))


def read_coverage(database: sqlite3.Connection) -> Coverage:
    """Return all of it: a broker's rows are of different hours, and need no adding up."""
    rows = database.execute("SELECT broker, columns FROM coverage ORDER BY broker, span").fetchall()  # null first
    parts = [_coverage(*row) for row in rows]
    if not parts:
        return Coverage.nothing()
    brokers = tuple(dict.fromkeys(broker for broker, _ in rows))
    place = {name: at for at, name in enumerate(brokers)}
    return Coverage(
        brokers=brokers,
        broker=np.concatenate([part.broker + place[broker] for part, (broker, _) in zip(parts, rows, strict=True)]),
        hour=np.concatenate([part.hour for part in parts]),
        rows=np.concatenate([part.rows for part in parts]),
        first=np.concatenate([part.first for part in parts]),
        last=np.concatenate([part.last for part in parts]),
    )


def _part(found: Coverage, name: str | None, chosen: "np.ndarray") -> Coverage:
    return Coverage(
        brokers=(name,),
        broker=found.broker[chosen],
        hour=found.hour[chosen],
        rows=found.rows[chosen],
        first=found.first[chosen],
        last=found.last[chosen],
    )


def _coverage(broker: str | None, blob: bytes) -> Coverage:
    columns = unpacked(blob)
    if len(columns) != 4 or len({len(column) for column in columns}) != 1:
        raise DecodeError("hours without their lines: damaged")
    hour, rows, first, length = columns
    return Coverage(
        brokers=(broker,),
        broker=np.zeros(len(hour), np.int64),
        hour=hour,
        rows=rows,
        first=first,
        last=first + length,
    )
