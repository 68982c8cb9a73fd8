"""The index of last use: runs go in, each whole and once; what a window used comes out."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from attrs import define
from pyroaring import BitMap

from aclog.authorizer.cluster_settings import SETTLED
from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Int64s
from aclog.usage.coverage import Coverage
from aclog.usage.index import coverage_store, last_use_store, ledger, life_store, set_store, unread_store, used_store
from aclog.usage.index.database import IndexDatabase
from aclog.usage.index.last_use import LastUse
from aclog.usage.index.lives import Lives
from aclog.usage.index.run import GIVEN, Run, RunRecord
from aclog.usage.index.run_adder import RunAdder
from aclog.usage.index.seen_rules import RuleText
from aclog.usage.index.tallies import DayTally
from aclog.usage.index.used import Used
from aclog.usage.index.used_store import Kind
from aclog.usage.unread import UnreadAccesses
from aclog.usage.unused.access_sets import AccessSets

_TABLES: Final = (
    ledger.TABLES
    + life_store.TABLES
    + used_store.TABLES
    + set_store.TABLES
    + last_use_store.TABLES
    + coverage_store.TABLES
    + unread_store.TABLES
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
        return cls(IndexDatabase.create(directory, _TABLES, upgrade=unread_store.begin_unread), True)

    @classmethod
    def open(cls, directory: Path, *, writable: bool = False) -> Self:
        """Open an index.

        Raises:
            ConfigError: there is none, it is of another version, or it cannot be opened.

        """
        return cls(IndexDatabase.open(directory, writable=writable, upgrade=unread_store.begin_unread), writable)

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
            if run.batch is not None and ledger.is_taken(database, run.batch):
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
            unread_store.note_unread(database, unread, read_at)

    @property
    def contents_version(self) -> int:
        """A number that changes when contents are taken (Run.contents_version)."""
        with self._reading() as database:
            return ledger.contents_version(database)

    def known_contents(self) -> set[tuple[int, bytes]]:
        """Return the lengths and digests of what was taken."""
        with self._reading() as database:
            return ledger.known_contents(database)

    # reading

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the index is of; None if no run told."""
        with self._reading() as database:
            return ledger.cluster_id(database)

    def runs(self) -> list[RunRecord]:
        """Return the runs, in order."""
        with self._reading() as database:
            return ledger.read_runs(database)

    def given(self) -> frozenset[str]:
        """Return the properties of brokers whose values all runs were given."""
        given = SETTLED
        for run in self.runs():
            named = run.settings.get(GIVEN)
            given &= frozenset(map(str, named)) if isinstance(named, list) else frozenset()
        return given

    def lives(self) -> Lives:
        """Return the lives of all rules."""
        with self._reading() as database:
            return life_store.read_lives(database)

    def texts(self, numbers: Sequence[int]) -> list[RuleText]:
        """Return the rules of some lives."""
        with self._reading() as database:
            return life_store.read_texts(database, numbers)

    def window(self, first_day: int, last_day: int) -> WindowUse:
        """Return what these days used (since 1970, UTC, both included)."""
        with self._reading() as database:
            matched, needed = used_store.bitmaps(database, Kind.LIVES, first_day, last_day)
            return WindowUse(matched, needed, used_store.bitmaps(database, Kind.SETS, first_day, last_day)[0])

    def used(self, first_day: int, last_day: int) -> Used:
        """Return how often these days used lives: `window` says which with a fraction of the work."""
        with self._reading() as database:
            return used_store.used(database, first_day, last_day)

    def sets(self, numbers: BitMap) -> AccessSets:
        """Return sets by their numbers (WindowUse.sets), as sets of lives."""
        with self._reading() as database:
            return set_store.read_sets(database, np.frombuffer(numbers.to_array(), np.uint32).astype(np.int64))

    def last_use(self, numbers: Int64s) -> LastUse:
        """Return when lives were first and last used, and by whom."""
        with self._reading() as database:
            return last_use_store.read_last_use(database, numbers)

    def days_of(self, number: int) -> tuple[BitMap, BitMap]:
        """Return the days (since 1970) on which a life was matched, and those on which it was needed."""
        with self._reading() as database:
            return used_store.days_of(database, number)

    def coverage(self) -> Coverage:
        """Return which brokers and hours the index holds."""
        with self._reading() as database:
            return coverage_store.read_coverage(database)

    def unread(self, start: int, until: int) -> UnreadAccesses:
        """Return what could not be read or decided and may lie between two times (us since 1970), both included.

        What an index of schema 1 could not read is unknown: one span without a number, for the reason OLDER_INDEX.
        """
        with self._reading() as database:
            return unread_store.read_unread(database, start, until)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self.database.reading() as database:
            yield database
        if self._is_writable:
            self.database.release()

    def check_cluster(self, cluster_id: str | None) -> None:
        """Check that rules are of the index's cluster; None if nobody knows. Raises ConfigError: of another."""
        self._check_cluster(self.cluster_id, cluster_id)

    def _check_cluster(self, known: str | None, cluster_id: str | None) -> None:
        if cluster_id is not None and known not in {None, cluster_id}:
            raise ConfigError(
                f"{self.database.path}: an index of cluster {known}, but these rules are of cluster {cluster_id}: "
                "keep one index for each cluster"
            )

    def _check(self, database: sqlite3.Connection, run: Run) -> None:
        self._check_cluster(ledger.cluster_id(database), run.cluster_id)
        if run.contents_version is not None and run.contents_version != ledger.contents_version(database):
            raise ConfigError(
                f"{self.database.path}: another run has taken files meanwhile: run again, only what is new will be read"
            )
