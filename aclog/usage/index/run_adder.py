"""Adds one run to the index, inside a transaction, in memory bounded by the number of rules."""

import sqlite3
from typing import Self

from attrs import define, field

from aclog.usage.index import coverage_store, last_use_store, ledger, life_store, set_store, unread_store
from aclog.usage.index.last_use import LastUse
from aclog.usage.index.life_numbers import AccessTimes, RuleNumbers, lives_after, number_rules
from aclog.usage.index.lives import Lives
from aclog.usage.index.run import Run
from aclog.usage.index.tallies import DayTally, numbered_sets
from aclog.usage.index.used_store import Kind, UsedWriter
from aclog.usage.unread import UnreadAccesses

_MOST_LOOSE = 1 << 20
"""First and last uses of single tallies that are held before they are added up; about 100 bytes each."""


@define(eq=False)
class RunAdder:
    """What is known of the run so far."""

    database: sqlite3.Connection
    run: Run
    _lives: Lives
    _found: RuleNumbers
    _used: UsedWriter
    _used_sets: UsedWriter
    _last_uses: list[LastUse] = field(factory=list, init=False)
    _unread: UnreadAccesses = field(factory=UnreadAccesses, init=False)
    _accesses: int = field(default=0, init=False)
    _times: list[int] = field(factory=list, init=False)

    @classmethod
    def of(cls, database: sqlite3.Connection, run: Run) -> Self:
        """Find the lives of the run's rules."""
        lives = life_store.read_lives(database)
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
        rules, numbers = tally.rules, self._found.numbers
        self._used.add(rules._replace(number=numbers[rules.number]))
        of_set = set_store.set_numbers(self.database, numbered_sets(tally.sets, numbers))
        self._used_sets.add(tally.set_rows._replace(number=of_set[tally.set_rows.number]))
        self._last_uses.append(tally.last_use.numbered(numbers))
        # together they are no more than the rules, each of which has its first and last uses once
        if sum(len(each.numbers) for each in self._last_uses[1:]) > _MOST_LOOSE:
            self._last_uses = [LastUse.nothing().plus(*self._last_uses)]

    def finish(self) -> None:
        """Write what is left, and the run itself."""
        self._used.flush()
        self._used_sets.flush()
        last_use_store.add_last_use(self.database, LastUse.nothing().plus(*self._last_uses))
        coverage_store.add_coverage(self.database, self.run.coverage)
        unread = UnreadAccesses.sum_of((self._unread, self.run.unread))
        times = self._access_times()
        # a clock may be behind that of the brokers
        read_at = max(self.run.at * 1000, times.last if times is not None else self.run.at * 1000)
        unread_store.add_unread(self.database, unread, read_at)
        if times is not None:
            self._write_lives(times)
        ledger.add_run(self.database, ledger.next_number(self.database), self.run, self._accesses, times)

    def _access_times(self) -> AccessTimes | None:
        """Return the times of the first and last line: lines that are not judged show as well what time is covered."""
        covered = self.run.coverage
        times = [*self._times, *covered.first.tolist(), *covered.last.tolist()]
        return AccessTimes(min(times), max(times)) if times else None

    def _write_lives(self, run: AccessTimes) -> None:
        rules, before = self.run.rules, ledger.access_times(self.database)
        now = lives_after(self._lives, rules, self._found, run=run, before=before)
        life_store.write_lives(self.database, self._lives, now)
        if len(self._found.new):
            life_store.append_texts(self.database, len(self._lives), rules.texts(self._found.new.tolist()))
