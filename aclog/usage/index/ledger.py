"""What the index was made from: runs, the contents they took, and how far each stream of batches has come."""

import json
import sqlite3
from typing import Final

from aclog.metalog.errors import DecodeError
from aclog.usage.index.life_numbers import AccessTimes
from aclog.usage.index.run import Batch, Run, RunRecord

TABLES: Final = """
CREATE TABLE cluster (id TEXT NOT NULL);
CREATE TABLE runs (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, accesses INTEGER NOT NULL, first INTEGER,
    last INTEGER, source TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE contents (length INTEGER, digest BLOB, run INTEGER NOT NULL, path TEXT NOT NULL, start INTEGER NOT NULL,
    PRIMARY KEY (length, digest)) WITHOUT ROWID;
CREATE TABLE streams (name TEXT PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID;
"""


def known_contents(database: sqlite3.Connection) -> set[tuple[int, bytes]]:
    """Return the lengths and digests of what was taken."""
    return set(database.execute("SELECT length, digest FROM contents"))


def contents_version(database: sqlite3.Connection) -> int:
    """Return a number that changes when contents are added."""
    return int(database.execute("SELECT coalesce(max(run), 0) FROM contents").fetchone()[0])


def is_taken(database: sqlite3.Connection, batch: Batch) -> bool:
    """Return whether a batch was taken before."""
    row = database.execute("SELECT batch FROM streams WHERE name = ?", (batch.stream,)).fetchone()
    return row is not None and batch.number <= row[0]


def add_run(database: sqlite3.Connection, number: int, run: Run, accesses: int, times: AccessTimes | None) -> None:
    """Remember a run, and what it took; `accesses` is how many it judged."""
    settings = json.dumps(dict(run.settings), sort_keys=True)
    first, last = (None, None) if times is None else times
    database.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", (number, run.at, accesses, first, last, run.source, settings)
    )
    rows = [(each.length, each.digest, number, each.path, each.start) for each in run.contents]
    database.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?, ?)", rows)
    if run.batch is not None:
        database.execute(
            "INSERT INTO streams VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET batch = excluded.batch", run.batch
        )
    if run.cluster_id is not None and cluster_id(database) is None:
        database.execute("INSERT INTO cluster VALUES (?)", (run.cluster_id,))


def cluster_id(database: sqlite3.Connection) -> str | None:
    """Return the cluster that the runs were of; None if none told."""
    row = database.execute("SELECT id FROM cluster").fetchone()
    return None if row is None else str(row[0])


def next_number(database: sqlite3.Connection) -> int:
    """Return the number of the next run."""
    return int(database.execute("SELECT coalesce(max(number), 0) + 1 FROM runs").fetchone()[0])


def access_times(database: sqlite3.Connection) -> AccessTimes | None:
    """Return the first and last time of all runs, in us since 1970; None if they have none."""
    first, last = database.execute("SELECT min(first), max(last) FROM runs").fetchone()
    return None if first is None else AccessTimes(int(first), int(last))


def read_runs(database: sqlite3.Connection) -> list[RunRecord]:
    """Return all runs, in order."""
    rows = database.execute("SELECT number, at, accesses, first, last, source, settings FROM runs ORDER BY number")
    try:
        return [RunRecord(**dict(zip(RunRecord._fields, (*row[:6], json.loads(row[6])), strict=True))) for row in rows]
    except ValueError as error:
        raise DecodeError(f"settings of runs that are none: {error}") from error
