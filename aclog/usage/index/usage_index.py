"""The index of last use: runs are added atomically and once, with their coverage and unread accesses."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from attrs import field
from pyroaring import BitMap

from aclog.authorizer.standard import SETTLED
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.values import define, frozen
from aclog.usage.index import lives as lives_module
from aclog.usage.index import tallies as tallies_module
from aclog.usage.index import used
from aclog.usage.index import used as used_module
from aclog.usage.index.database import IndexDatabase, packed, unpacked
from aclog.usage.index.lives import AccessTimes, Lives, RuleNumbers, RuleText, SeenRules, lives_after, number_rules
from aclog.usage.index.tallies import DayTally, Kind, UsedWriter, numbered_sets
from aclog.usage.index.used import LastUse, Used
from aclog.usage.window import (
    DAY,
    HOUR,
    OLDER_INDEX,
    AccessSets,
    Coverage,
    UnreadAccesses,
    UnreadCounter,
    UnreadKey,
    UnreadSpan,
)

# Runs: the inputs of the index, as it records them.


class TakenContent(NamedTuple):
    """The content of a file, decompressed; of a file of lines, all complete lines."""

    length: int
    """In bytes."""
    digest: bytes
    """SHA-256."""
    path: str
    start: int
    """The position from which it was new: the bytes before were added from the same file when it was shorter."""


class Batch(NamedTuple):
    """A batch of a stream, whose batches are numbered in ascending order and added once."""

    stream: str
    number: int


class Position(NamedTuple):
    """A position in a stream whose records are added once, such as the next offset of a partition."""

    stream: str
    number: int
    before: int | None
    """The position in the index from which the run has read; None: none."""


class RunRecord(NamedTuple):
    """The record of a run."""

    number: int
    at: int
    """When it was added, in ms since 1970."""
    accesses: int
    """The number of evaluated accesses."""
    first: int | None
    """Its first and last evaluated access, in us since 1970."""
    last: int | None
    source: str
    """The source of its ACLs."""
    settings: Mapping[str, object]
    """The settings that decided, besides the ACLs."""


PROPERTIES_KEY = "given"
"""The key of settings with the broker properties that were given, or read from a running cluster."""

KAFKA, REGISTERED = "kafka", "registered"
"""The key of settings with the generation of Kafka that decided, unless `cidr` has it: that of the source's brokers."""


@frozen(eq=False, kw_only=True)
class Run:
    """A run to add, besides its tallies."""

    rules: SeenRules
    """The ACLs by which the accesses were evaluated; tallies refer to them by ordinal."""
    source: str
    """The source of the ACLs, for people."""
    settings: Mapping[str, object]
    """The settings that decided, besides the ACLs: allow_everyone, super_users and so on."""
    at: int
    """The time of the run, in ms since 1970."""
    coverage: Coverage = field(factory=Coverage.nothing)
    """All lines that the run read, including those that were not evaluated."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Accesses that could not be read, or have no time; undecided ones are in the tallies."""
    contents: Sequence[TakenContent] = ()
    """The files that it read."""
    contents_version: int | None = None
    """UsageIndex.contents_version when the new contents of these files were determined; None without files."""
    batch: Batch | None = None
    """The batch of a stream, which is not added twice."""
    positions: Sequence[Position] = ()
    """The positions in streams after what the run has read."""
    cluster_id: str | None = None
    """None if the source has none."""


# The history of the index: its runs, their file contents, and the position in each stream of batches.


TABLES: Final = """
CREATE TABLE cluster (id TEXT NOT NULL);
CREATE TABLE runs (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, accesses INTEGER NOT NULL, first INTEGER,
    last INTEGER, source TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE contents (length INTEGER, digest BLOB, run INTEGER NOT NULL, path TEXT NOT NULL, start INTEGER NOT NULL,
    PRIMARY KEY (length, digest)) WITHOUT ROWID;
CREATE TABLE streams (name TEXT PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID;
"""


def known_contents(database: sqlite3.Connection) -> set[tuple[int, bytes]]:
    """Return the lengths and digests of the added contents."""
    return set(database.execute("SELECT length, digest FROM contents"))


def contents_version(database: sqlite3.Connection) -> int:
    """Return a number that changes when contents are added."""
    return int(database.execute("SELECT coalesce(max(run), 0) FROM contents").fetchone()[0])


def is_taken(database: sqlite3.Connection, batch: Batch) -> bool:
    """Return whether a batch was added before."""
    last = position(database, batch.stream)
    return last is not None and batch.number <= last


def position(database: sqlite3.Connection, stream: str) -> int | None:
    """Return the position in a stream; None if nothing of it was added."""
    row = database.execute("SELECT batch FROM streams WHERE name = ?", (stream,)).fetchone()
    return None if row is None else int(row[0])


def positions(database: sqlite3.Connection, prefix: str) -> dict[str, int]:
    """Return the positions in the streams whose names begin so."""
    rows = database.execute("SELECT name, batch FROM streams WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))
    return {str(name): int(number) for name, number in rows}


def set_positions(database: sqlite3.Connection, numbers: Iterable[tuple[str, int]]) -> None:
    """Record positions in streams, by their names."""
    database.executemany(
        "INSERT INTO streams VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET batch = excluded.batch", numbers
    )


def add_run(database: sqlite3.Connection, number: int, run: Run, accesses: int, times: AccessTimes | None) -> None:
    """Record a run and its contents; `accesses` is the number of evaluated ones."""
    settings = json.dumps(dict(run.settings), sort_keys=True)
    first, last = (None, None) if times is None else times
    database.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", (number, run.at, accesses, first, last, run.source, settings)
    )
    rows = [(each.length, each.digest, number, each.path, each.start) for each in run.contents]
    database.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?, ?)", rows)
    set_positions(database, [*([] if run.batch is None else [run.batch]), *(each[:2] for each in run.positions)])
    if run.cluster_id is not None and cluster_id(database) is None:
        database.execute("INSERT INTO cluster VALUES (?)", (run.cluster_id,))


def cluster_id(database: sqlite3.Connection) -> str | None:
    """Return the cluster of the runs; None if no run had one."""
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
        raise DecodeError(f"invalid settings of runs: {error}") from error


# Coverage in the database, by broker and 32 days.


COVERAGE_TABLES: Final = """
CREATE TABLE coverage (broker TEXT, span INTEGER, columns BLOB NOT NULL);
CREATE INDEX coverage_of ON coverage (broker, span);
"""

_SPAN_HOURS = 32 * 24


def add_coverage(database: sqlite3.Connection, coverage: Coverage) -> None:
    """Add the lines of a run."""
    for name in coverage.brokers:
        of_broker = coverage.of_broker(name)
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
    """Return the coverage: a broker's rows have different hours, so they need no merge."""
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


def _part(coverage: Coverage, name: str | None, which: "np.ndarray") -> Coverage:
    return Coverage(
        brokers=(name,),
        broker=coverage.broker[which],
        hour=coverage.hour[which],
        rows=coverage.rows[which],
        first=coverage.first[which],
        last=coverage.last[which],
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


# Accesses that could not be read or decided, in the database: by principal, logged decision, reason, broker and hour.


UNREAD_TABLES: Final = """
CREATE TABLE unread (principal TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT NOT NULL, broker TEXT NOT NULL,
    hour INTEGER NOT NULL, accesses INTEGER NOT NULL, first INTEGER, last INTEGER,
    PRIMARY KEY (principal, decision, reason, broker, hour)) WITHOUT ROWID;
"""

_UNKNOWN: Final = ""
"""A principal, decision or broker that the log does not have."""
_NO_HOUR: Final = -(1 << 31)

_ADD: Final = """
INSERT INTO unread VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET accesses = accesses + excluded.accesses,
    first = min(first, excluded.first), last = max(last, excluded.last)
"""
_NOTE: Final = """
INSERT INTO unread VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    accesses = max(accesses, excluded.accesses), first = min(first, excluded.first), last = max(last, excluded.last)
"""
_BETWEEN: Final = """
SELECT principal, decision, reason, {broker}, accesses, first, last FROM unread
    WHERE (first IS NULL OR first <= ?) AND (last IS NULL OR last >= ?)
"""
_OLDER: Final = "SELECT max(last), max(at) FROM runs WHERE number IN (SELECT run FROM contents)"
"""The times of runs that read files, and did not record unreadable accesses. A node's runs read no files."""


def add_unread(database: sqlite3.Connection, unread: UnreadAccesses, read_at: int) -> None:
    """Add those of a run that read its lines at this time (us since 1970): later lines did not exist."""
    _write(database, _ADD, unread, read_at)


def note_unread(database: sqlite3.Connection, unread: UnreadAccesses, read_at: int) -> None:
    """Record those of files that are not added, and may be read again: repeated records count once."""
    _write(database, _NOTE, unread, read_at)


def _write(database: sqlite3.Connection, statement: str, unread: UnreadAccesses, read_at: int) -> None:
    _insert(database, statement, unread.until(read_at + DAY))


def _insert(database: sqlite3.Connection, statement: str, unread: UnreadAccesses) -> None:
    for key, span in unread.spans.items():
        names = (key.principal or _UNKNOWN, key.decision or _UNKNOWN, key.reason, key.broker or _UNKNOWN)
        database.execute(statement, (*names, _NO_HOUR if key.hour is None else key.hour, *span))


def read_unread(database: sqlite3.Connection, start: int, until: int) -> UnreadAccesses:
    """Return those that may lie between two times, in us since 1970, both included, in bounded memory."""
    columns = _unread_columns(database)
    if not columns:
        unread = _of_older_runs(database)
        return (UnreadAccesses() if unread is None else unread).between(start, until)
    counter = UnreadCounter()
    statement = _BETWEEN.format(broker="broker" if "broker" in columns else f"'{_UNKNOWN}'")
    for principal, decision, reason, broker, *span in database.execute(statement, (until, start)):
        counter.add(principal or None, decision or None, reason, UnreadSpan(*span), broker=broker)
    return counter.total


def _unread_columns(database: sqlite3.Connection) -> set[str]:
    """Return the columns of the table: an index of schema 1 has no table, one of schema 2 no broker and hour."""
    return {str(row[1]) for row in database.execute("PRAGMA table_info(unread)")}


def begin_unread(database: sqlite3.Connection) -> None:
    """Create the table in an index of schema 1 or 2.

    Of schema 1, the unreadable accesses of its runs are unknown; of schema 2, their brokers are, and their hours where
    they have no time.
    """
    if _unread_columns(database):
        database.execute("ALTER TABLE unread RENAME TO unread_by_day")
        database.execute(UNREAD_TABLES)
        columns = "principal, decision, reason, accesses, first, last"
        for *names, accesses, first, last in database.execute(f"SELECT {columns} FROM unread_by_day"):  # noqa: S608
            hour = _NO_HOUR if first is None else first // HOUR
            database.execute(_ADD, (*names, _UNKNOWN, hour, accesses, first, last))
        database.execute("DROP TABLE unread_by_day")
        return
    unread = _of_older_runs(database)
    database.execute(UNREAD_TABLES)
    if unread is not None:
        _insert(database, _ADD, unread)


def _of_older_runs(database: sqlite3.Connection) -> UnreadAccesses | None:
    last, at = database.execute(_OLDER).fetchone()
    if at is None:
        return None
    latest = max(int(last or 0), int(at) * 1000) + DAY
    return UnreadAccesses(spans={UnreadKey(None, None, OLDER_INDEX, None, None): UnreadSpan(0, None, latest)})


# Adding a run to the index, inside a transaction, in memory bounded by the number of ACLs.


_MOST_LOOSE = 1 << 20
"""How many first and last uses of single tallies are held before they are merged; about 100 bytes each."""


@define(eq=False)
class RunAdder:
    """The state of a run that is being added."""

    database: sqlite3.Connection
    run: Run
    _lives: Lives
    _numbering: RuleNumbers
    _used: UsedWriter
    _used_sets: UsedWriter
    _last_uses: list[LastUse] = field(factory=list, init=False)
    _unread: UnreadAccesses = field(factory=UnreadAccesses, init=False)
    _accesses: int = field(default=0, init=False)
    _times: list[int] = field(factory=list, init=False)

    @classmethod
    def of(cls, database: sqlite3.Connection, run: Run) -> Self:
        """Find the lives of the run's ACLs."""
        lives = lives_module.read_lives(database)
        return cls(
            database,
            run,
            lives,
            number_rules(lives, run.rules),
            UsedWriter(database, Kind.LIVES),
            UsedWriter(database, Kind.SETS),
        )

    def add(self, tally: DayTally) -> None:
        """Add the tally of a part; `finish` must follow the last one."""
        if tally.unread:
            self._unread = UnreadAccesses.sum_of((self._unread, tally.unread))
        if not tally.accesses:
            return
        self._accesses += tally.accesses
        self._times += [tally.first, tally.last]
        rules, numbers = tally.rules, self._numbering.numbers
        self._used.add(rules._replace(number=numbers[rules.number]))
        of_set = used.set_numbers(self.database, numbered_sets(tally.sets, numbers))
        self._used_sets.add(tally.set_rows._replace(number=of_set[tally.set_rows.number]))
        self._last_uses.append(tally.last_use.numbered(numbers))
        # together they are at most as many as the ACLs, each with one first and last use
        if sum(len(each.numbers) for each in self._last_uses[1:]) > _MOST_LOOSE:
            self._last_uses = [LastUse.nothing().plus(*self._last_uses)]

    def finish(self) -> int:
        """Write the rest, and the run itself; return its number."""
        self._used.flush()
        self._used_sets.flush()
        used.add_last_use(self.database, LastUse.nothing().plus(*self._last_uses))
        add_coverage(self.database, self.run.coverage)
        unread = UnreadAccesses.sum_of((self._unread, self.run.unread))
        times = self._access_times()
        # this clock may be behind that of the brokers
        read_at = max(self.run.at * 1000, times.last if times is not None else self.run.at * 1000)
        add_unread(self.database, unread, read_at)
        if times is not None:
            self._write_lives(times)
        number = next_number(self.database)
        add_run(self.database, number, self.run, self._accesses, times)
        return number

    def _access_times(self) -> AccessTimes | None:
        """Return the times of the first and last line: lines that are not evaluated also show the covered time."""
        covered = self.run.coverage
        times = [*self._times, *covered.first.tolist(), *covered.last.tolist()]
        return AccessTimes(min(times), max(times)) if times else None

    def _write_lives(self, run: AccessTimes) -> None:
        rules, before = self.run.rules, access_times(self.database)
        now = lives_after(self._lives, rules, self._numbering, run=run, before=before)
        lives_module.write_lives(self.database, self._lives, now)
        if len(self._numbering.new):
            lives_module.append_texts(self.database, len(self._lives), rules.texts(self._numbering.new.tolist()))


# The index of last use: runs are added atomically and once; windows are read.


_TABLES: Final = (
    TABLES
    + lives_module.TABLES
    + tallies_module.TABLES
    + used_module.SET_TABLES
    + used_module.LAST_USE_TABLES
    + COVERAGE_TABLES
    + UNREAD_TABLES
)


class WindowUse(NamedTuple):
    """The lives and sets used on some days, as numbers."""

    matched: BitMap
    """Lives that matched an access."""
    needed: BitMap
    """Lives without which an access would have been decided differently."""
    sets: BitMap
    """Sets of lives that matched an access together."""


@define(eq=False)
class UsageIndex:
    """An open index. A reader sees one state until it is closed; a writer sees the newest."""

    database: IndexDatabase
    _is_writable: bool
    last_run: int = field(default=0, init=False)
    """The number of the run that `take` has added last; 0: none."""

    @classmethod
    def create(cls, directory: Path, *, name: str | None = None) -> Self:
        """Open an index for writing; in a new or empty directory, create one. `name`: of errors, for the path.

        Raises:
            ConfigError: the directory contains other files, the index cannot be created, or as `open`.

        """
        return cls(IndexDatabase.create(directory, _TABLES, upgrade=begin_unread, name=name), True)

    @classmethod
    def open(cls, directory: Path, *, writable: bool = False, name: str | None = None) -> Self:
        """Open an index. `name`: of errors, for the path.

        Raises:
            ConfigError: no index, an unsupported schema, or it cannot be opened.

        """
        return cls(IndexDatabase.open(directory, writable=writable, upgrade=begin_unread, name=name), writable)

    def close(self) -> None:
        """Close the index."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # writing

    def take(self, run: Run, tallies: Iterable[DayTally]) -> bool:
        """Add a run in one transaction; return False if its batch was added before.

        Other writers are blocked meanwhile: tallies that take long to compute are collected in a Spool first.

        Raises:
            ConfigError: another cluster, contents that another run has added meanwhile, or the index cannot be written.

        """
        with self.database.writing() as database:
            if run.batch is not None and is_taken(database, run.batch):
                return False
            self._check(database, run)
            adding = RunAdder.of(database, run)
            for tally in tallies:
                adding.add(tally)
            number = adding.finish()
        self.last_run = number
        return True

    def note_unread(self, unread: UnreadAccesses, read_at: int) -> None:
        """Record accesses that were unreadable at this time (us since 1970) in files that are not added.

        Raises:
            ConfigError: the index cannot be written.

        """
        with self.database.writing() as database:
            note_unread(database, unread, read_at)

    @property
    def contents_version(self) -> int:
        """A number that changes when contents are added (Run.contents_version)."""
        with self._reading() as database:
            return contents_version(database)

    def known_contents(self) -> set[tuple[int, bytes]]:
        """Return the lengths and digests of the added contents."""
        with self._reading() as database:
            return known_contents(database)

    def note_lost(self, lost: UnreadAccesses, positions: Sequence[Position], read_at: int) -> None:
        """Record accesses that can no longer be read from streams, with the positions after them, in one transaction.

        `read_at`: in us since 1970.

        Raises:
            ConfigError: another run has read the streams meanwhile, or the index cannot be written.

        """
        with self.database.writing() as database:
            self._check_positions(database, positions)
            add_unread(database, lost, read_at)
            set_positions(database, [each[:2] for each in positions])

    def positions(self, prefix: str) -> dict[str, int]:
        """Return the positions in the streams whose names begin so."""
        with self._reading() as database:
            return positions(database, prefix)

    # reading

    @property
    def cluster_id(self) -> str | None:
        """The cluster of the index; None if no run had one."""
        with self._reading() as database:
            return cluster_id(database)

    def runs(self) -> list[RunRecord]:
        """Return the runs, in order."""
        with self._reading() as database:
            return read_runs(database)

    def settled_properties(self) -> frozenset[str]:
        """Return the broker properties that were given for all runs."""
        properties = SETTLED
        for run in self.runs():
            named = run.settings.get(PROPERTIES_KEY)
            properties &= frozenset(map(str, named)) if isinstance(named, list) else frozenset()
        return properties

    def lives(self) -> Lives:
        """Return the lives of all ACLs."""
        with self._reading() as database:
            return lives_module.read_lives(database)

    def texts(self, numbers: Sequence[int]) -> list[RuleText]:
        """Return the ACLs of some lives."""
        with self._reading() as database:
            return lives_module.read_texts(database, numbers)

    def window(self, first_day: int, last_day: int) -> WindowUse:
        """Return the lives used on these days (since 1970, UTC, both included)."""
        with self._reading() as database:
            matched, needed = tallies_module.bitmaps(database, Kind.LIVES, first_day, last_day)
            return WindowUse(matched, needed, tallies_module.bitmaps(database, Kind.SETS, first_day, last_day)[0])

    def used(self, first_day: int, last_day: int) -> Used:
        """Return how often lives were used on these days: much slower than `window`."""
        with self._reading() as database:
            return tallies_module.used(database, first_day, last_day)

    def sets(self, numbers: BitMap) -> AccessSets:
        """Return sets by their numbers (WindowUse.sets), as sets of lives."""
        with self._reading() as database:
            return used_module.read_sets(database, np.frombuffer(numbers.to_array(), np.uint32).astype(np.int64))

    def last_use(self, numbers: Int64s) -> LastUse:
        """Return the first and last uses of lives, with their users."""
        with self._reading() as database:
            return used_module.read_last_use(database, numbers)

    def days_of(self, number: int) -> tuple[BitMap, BitMap]:
        """Return the days (since 1970) on which a life was matched, and those on which it was needed."""
        with self._reading() as database:
            return tallies_module.days_of(database, number)

    def coverage(self) -> Coverage:
        """Return the brokers and hours in the index."""
        with self._reading() as database:
            return read_coverage(database)

    def unread(self, start: int, until: int) -> UnreadAccesses:
        """Return unread and undecided accesses that may lie between two times (us since 1970), both included.

        Those of an index of schema 1 are unknown: one span without a number, for the reason OLDER_INDEX.
        """
        with self._reading() as database:
            return read_unread(database, start, until)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self.database.reading() as database:
            yield database
        if self._is_writable:
            self.database.release()

    def check_cluster(self, cluster_id: str | None) -> None:
        """Check that ACLs are of the index's cluster; None if it is unknown. Raises ConfigError: another cluster."""
        self._check_cluster(self.cluster_id, cluster_id)

    def _check_cluster(self, own_id: str | None, cluster_id: str | None) -> None:
        if cluster_id is not None and own_id not in {None, cluster_id}:
            raise ConfigError(
                f"{self.database.name}: an index of cluster {own_id}, but these rules are of cluster {cluster_id}: "
                "keep one index for each cluster"
            )

    def _check(self, database: sqlite3.Connection, run: Run) -> None:
        self._check_cluster(cluster_id(database), run.cluster_id)
        if run.contents_version is not None and run.contents_version != contents_version(database):
            raise ConfigError(
                f"{self.database.name}: another run has added files meanwhile: run again; only new content is read"
            )
        self._check_positions(database, run.positions)

    def _check_positions(self, database: sqlite3.Connection, expected: Sequence[Position]) -> None:
        for each in expected:
            if position(database, each.stream) != each.before:
                raise ConfigError(
                    f"{self.database.name}: another run has read {each.stream} meanwhile: run again; only what is new "
                    "is read"
                )
