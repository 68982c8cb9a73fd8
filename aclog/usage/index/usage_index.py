"""The index of last use: runs are added whole and once, with their coverage and unread accesses."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from attrs import define, field, frozen
from pyroaring import BitMap

from aclog.authorizer.premises import SETTLED
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.vectors import Int64s
from aclog.usage.coverage import Coverage
from aclog.usage.index import lives as lives_module
from aclog.usage.index import tallies as tallies_module
from aclog.usage.index import used
from aclog.usage.index import used as used_module
from aclog.usage.index.database import IndexDatabase, packed, unpacked
from aclog.usage.index.lives import AccessTimes, Lives, RuleNumbers, RuleText, SeenRules, lives_after, number_rules
from aclog.usage.index.tallies import DayTally, Kind, UsedWriter, numbered_sets
from aclog.usage.index.used import LastUse, Used
from aclog.usage.window import OLDER_INDEX, AccessSets, UnreadAccesses, UnreadKey, UnreadSpan

# Runs: what one adds to the index, and how the index remembers it.


class TakenContent(NamedTuple):
    """What a file held, decompressed; of a file of lines, all whole lines."""

    length: int
    """In bytes."""
    digest: bytes
    """SHA-256."""
    path: str
    start: int
    """From where on it was new: its first bytes were taken before, from the same file when it was shorter."""


class Batch(NamedTuple):
    """A batch of a stream, whose batches are numbered upwards and taken in order, each once."""

    stream: str
    number: int


class RunRecord(NamedTuple):
    """A run as the ledger has it."""

    number: int
    at: int
    """When it was taken, in ms since 1970."""
    accesses: int
    """How many were judged."""
    first: int | None
    """Its first and last access that was judged, in us since 1970."""
    last: int | None
    source: str
    """Where its rules came from."""
    settings: Mapping[str, object]
    """What decided besides the rules."""


PROPERTIES_KEY = "given"
"""The key of settings with the properties of brokers whose values were given, or answered by a running cluster."""

KAFKA, REGISTERED = "kafka", "registered"
"""The key of settings that says which Kafka decided, if `cidr` does not: that which the brokers of the source ran."""


@frozen(eq=False, kw_only=True)
class Run:
    """What it adds besides its tallies."""

    rules: SeenRules
    """What the accesses were judged by; the tallies name them by ordinal."""
    source: str
    """Where the rules came from, for people."""
    settings: Mapping[str, object]
    """What decided besides the rules: allow_everyone, super_users and so on."""
    at: int
    """When, in ms since 1970."""
    coverage: Coverage = field(factory=Coverage.nothing)
    """The lines that it read, those that were not judged included."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """What could not be read, or has no time; what could not be decided is in the tallies."""
    contents: Sequence[TakenContent] = ()
    """The files that it read."""
    contents_version: int | None = None
    """UsageIndex.contents_version from when it was found out what of these files is new; None without files."""
    batch: Batch | None = None
    """Of a stream: a batch that was taken before is not taken again."""
    cluster_id: str | None = None
    """None if the source does not tell."""


# What the index was made from: runs, the contents they took, and how far each stream of batches has come.


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


# Accesses that could not be read or decided, in the database: by whom, what the log says of them, why, and the day.


UNREAD_TABLES: Final = """
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


def add_unread(database: sqlite3.Connection, unread: UnreadAccesses, read_at: int) -> None:
    """Add those of a run, which read its lines at this time (us since 1970): a day later none of them is unwritten."""
    _write(database, _ADD, unread, read_at)


def note_unread(database: sqlite3.Connection, unread: UnreadAccesses, read_at: int) -> None:
    """Note those of files that are not taken, and may be read again: what is noted twice counts once."""
    _write(database, _NOTE, unread, read_at)


def _write(database: sqlite3.Connection, statement: str, unread: UnreadAccesses, read_at: int) -> None:
    for key, span in unread.until(read_at + _DAY).spans.items():
        row = (key.principal or _UNKNOWN, key.decision or _UNKNOWN, key.reason, _NO_DAY if key.day is None else key.day)
        database.execute(statement, (*row, *span))


def read_unread(database: sqlite3.Connection, start: int, until: int) -> UnreadAccesses:
    """Return those that may lie between two times, in us since 1970, both included."""
    if not has_unread(database):
        unread = _of_older_runs(database)
        return (UnreadAccesses() if unread is None else unread).between(start, until)
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
    unread = _of_older_runs(database)
    database.execute(UNREAD_TABLES)
    if unread is not None:
        ((_, span),) = unread.spans.items()
        database.execute(_ADD, (_UNKNOWN, _UNKNOWN, OLDER_INDEX, _NO_DAY, *span))


def _of_older_runs(database: sqlite3.Connection) -> UnreadAccesses | None:
    last, at = database.execute(_OLDER).fetchone()
    if at is None:
        return None
    latest = max(int(last or 0), int(at) * 1000) + _DAY
    return UnreadAccesses(spans={UnreadKey(None, None, OLDER_INDEX, None): UnreadSpan(0, None, latest)})


# Adds one run to the index, inside a transaction, in memory bounded by the number of rules.


_MOST_LOOSE = 1 << 20
"""First and last uses of single tallies that are held before they are added up; about 100 bytes each."""


@define(eq=False)
class RunAdder:
    """What is known of the run so far."""

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
        """Find the lives of the run's rules."""
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
        # together they are no more than the rules, each of which has its first and last uses once
        if sum(len(each.numbers) for each in self._last_uses[1:]) > _MOST_LOOSE:
            self._last_uses = [LastUse.nothing().plus(*self._last_uses)]

    def finish(self) -> None:
        """Write what is left, and the run itself."""
        self._used.flush()
        self._used_sets.flush()
        used.add_last_use(self.database, LastUse.nothing().plus(*self._last_uses))
        add_coverage(self.database, self.run.coverage)
        unread = UnreadAccesses.sum_of((self._unread, self.run.unread))
        times = self._access_times()
        # a clock may be behind that of the brokers
        read_at = max(self.run.at * 1000, times.last if times is not None else self.run.at * 1000)
        add_unread(self.database, unread, read_at)
        if times is not None:
            self._write_lives(times)
        add_run(self.database, next_number(self.database), self.run, self._accesses, times)

    def _access_times(self) -> AccessTimes | None:
        """Return the times of the first and last line: lines that are not judged show as well what time is covered."""
        covered = self.run.coverage
        times = [*self._times, *covered.first.tolist(), *covered.last.tolist()]
        return AccessTimes(min(times), max(times)) if times else None

    def _write_lives(self, run: AccessTimes) -> None:
        rules, before = self.run.rules, access_times(self.database)
        now = lives_after(self._lives, rules, self._numbering, run=run, before=before)
        lives_module.write_lives(self.database, self._lives, now)
        if len(self._numbering.new):
            lives_module.append_texts(self.database, len(self._lives), rules.texts(self._numbering.new.tolist()))


# The index of last use: runs go in, each whole and once; what a window used comes out.


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
    """What some days used, as numbers."""

    matched: BitMap
    """Lives that matched an access."""
    needed: BitMap
    """Lives without which an access would have been decided otherwise."""
    sets: BitMap
    """Sets of lives that matched an access together."""


@define(eq=False)
class UsageIndex:
    """An open index. One that was opened to read sees one state until it is closed; a writer sees the newest."""

    database: IndexDatabase
    _is_writable: bool

    @classmethod
    def create(cls, directory: Path) -> Self:
        """Open an index to write; in a new or empty directory, one is made.

        Raises:
            ConfigError: the directory holds something else, it cannot be made, or as `open`.

        """
        return cls(IndexDatabase.create(directory, _TABLES, upgrade=begin_unread), True)

    @classmethod
    def open(cls, directory: Path, *, writable: bool = False) -> Self:
        """Open an index.

        Raises:
            ConfigError: there is none, it is of another version, or it cannot be opened.

        """
        return cls(IndexDatabase.open(directory, writable=writable, upgrade=begin_unread), writable)

    def close(self) -> None:
        """Close it."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # writing

    def take(self, run: Run, tallies: Iterable[DayTally]) -> bool:
        """Add a run in one transaction: all of it, or nothing; return False if its batch was taken before.

        No other writer gets in meanwhile: tallies that take long to come wait in a Spool first.

        Raises:
            ConfigError: it is of another cluster, another run has taken contents meanwhile, or it cannot be written.

        """
        with self.database.writing() as database:
            if run.batch is not None and is_taken(database, run.batch):
                return False
            self._check(database, run)
            adding = RunAdder.of(database, run)
            for tally in tallies:
                adding.add(tally)
            adding.finish()
        return True

    def note_unread(self, unread: UnreadAccesses, read_at: int) -> None:
        """Note what could not be read at this time (us since 1970) in files that are not taken.

        Raises:
            ConfigError: it cannot be written.

        """
        with self.database.writing() as database:
            note_unread(database, unread, read_at)

    @property
    def contents_version(self) -> int:
        """A number that changes when contents are taken (Run.contents_version)."""
        with self._reading() as database:
            return contents_version(database)

    def known_contents(self) -> set[tuple[int, bytes]]:
        """Return the lengths and digests of what was taken."""
        with self._reading() as database:
            return known_contents(database)

    # reading

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the index is of; None if no run told."""
        with self._reading() as database:
            return cluster_id(database)

    def runs(self) -> list[RunRecord]:
        """Return the runs, in order."""
        with self._reading() as database:
            return read_runs(database)

    def settled_properties(self) -> frozenset[str]:
        """Return the properties of brokers whose values all runs were given."""
        properties = SETTLED
        for run in self.runs():
            named = run.settings.get(PROPERTIES_KEY)
            properties &= frozenset(map(str, named)) if isinstance(named, list) else frozenset()
        return properties

    def lives(self) -> Lives:
        """Return the lives of all rules."""
        with self._reading() as database:
            return lives_module.read_lives(database)

    def texts(self, numbers: Sequence[int]) -> list[RuleText]:
        """Return the rules of some lives."""
        with self._reading() as database:
            return lives_module.read_texts(database, numbers)

    def window(self, first_day: int, last_day: int) -> WindowUse:
        """Return what these days used (since 1970, UTC, both included)."""
        with self._reading() as database:
            matched, needed = tallies_module.bitmaps(database, Kind.LIVES, first_day, last_day)
            return WindowUse(matched, needed, tallies_module.bitmaps(database, Kind.SETS, first_day, last_day)[0])

    def used(self, first_day: int, last_day: int) -> Used:
        """Return how often these days used lives: `window` says which with a fraction of the work."""
        with self._reading() as database:
            return tallies_module.used(database, first_day, last_day)

    def sets(self, numbers: BitMap) -> AccessSets:
        """Return sets by their numbers (WindowUse.sets), as sets of lives."""
        with self._reading() as database:
            return used_module.read_sets(database, np.frombuffer(numbers.to_array(), np.uint32).astype(np.int64))

    def last_use(self, numbers: Int64s) -> LastUse:
        """Return when lives were first and last used, and by whom."""
        with self._reading() as database:
            return used_module.read_last_use(database, numbers)

    def days_of(self, number: int) -> tuple[BitMap, BitMap]:
        """Return the days (since 1970) on which a life was matched, and those on which it was needed."""
        with self._reading() as database:
            return tallies_module.days_of(database, number)

    def coverage(self) -> Coverage:
        """Return which brokers and hours the index holds."""
        with self._reading() as database:
            return read_coverage(database)

    def unread(self, start: int, until: int) -> UnreadAccesses:
        """Return what could not be read or decided and may lie between two times (us since 1970), both included.

        What an index of schema 1 could not read is unknown: one span without a number, for the reason OLDER_INDEX.
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
        """Check that rules are of the index's cluster; None if nobody knows. Raises ConfigError: of another."""
        self._check_cluster(self.cluster_id, cluster_id)

    def _check_cluster(self, own_id: str | None, cluster_id: str | None) -> None:
        if cluster_id is not None and own_id not in {None, cluster_id}:
            raise ConfigError(
                f"{self.database.path}: an index of cluster {own_id}, but these rules are of cluster {cluster_id}: "
                "keep one index for each cluster"
            )

    def _check(self, database: sqlite3.Connection, run: Run) -> None:
        self._check_cluster(cluster_id(database), run.cluster_id)
        if run.contents_version is not None and run.contents_version != contents_version(database):
            raise ConfigError(
                f"{self.database.path}: another run has taken files meanwhile: run again, only what is new will be read"
            )
