"""Counting, tallying and evaluation of access logs in processes."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from typing import Any, Self, TypeAlias, TypeVar

import pyarrow as pa
from attrs import Factory, define, evolve, field, fields, frozen

from aclog.authorizer.audit import Reason
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_batch import BROKER, TIMESTAMP
from aclog.usage.accesses.access_log import AccessPart, read_part
from aclog.usage.counting import AccessCounter, CoverageCounter, DayTallies, LogCounter, RowCounts, SeenAccesses
from aclog.usage.coverage import Coverage
from aclog.usage.decisions.bulk_authorizer import NecessaryAcls
from aclog.usage.decisions.intervals import AclIntervals, change_times
from aclog.usage.index.tallies import DayTally
from aclog.usage.undecided import undecided_rows
from aclog.usage.window import UnreadAccesses, Window

# The counts of an access log: distinct accesses, rows, and days.


@frozen(eq=False, kw_only=True)
class CountedLog:
    """The counts of one worker, or of all workers."""

    accesses: pa.Table
    """COUNTED or COUNTED_BY_DAY. In a sum, one row per access, version and day."""
    rows: RowCounts
    days: frozenset[int]
    """The days (UTC, since 1970) with any access, in the window or not."""
    earliest: int | None = None
    latest: int | None = None
    """The times of the first and the last of all rows, in us since 1970; None if none has a time."""
    rejects: Counter[Reason] = field(factory=Counter)
    """The number of lines that are not accesses, by reason."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Unreadable accesses among them, and rows without a time that were not counted."""
    coverage: Coverage = field(factory=Coverage.nothing)
    """If requested: all lines with a time, by broker and hour."""
    logged_denials: int = 0
    """With coverage: the number of lines that were logged as DENIED."""

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Return the sum of at least one."""
        logs = list(parts)
        return cls(
            accesses=_added_up(pa.concat_tables([part.accesses for part in logs])),
            rows=_sum([part.rows for part in logs]),
            days=frozenset[int]().union(*(part.days for part in logs)),
            earliest=min((part.earliest for part in logs if part.earliest is not None), default=None),
            latest=max((part.latest for part in logs if part.latest is not None), default=None),
            rejects=sum((part.rejects for part in logs), Counter[Reason]()),
            unread=UnreadAccesses.sum_of(part.unread for part in logs),
            coverage=Coverage.sum(part.coverage for part in logs),
            logged_denials=sum(part.logged_denials for part in logs),
        )


def _added_up(accesses: pa.Table) -> pa.Table:
    sums = {"count": "sum", "first": "min", "last": "max"}
    keys = [name for name in accesses.schema.names if name not in sums]
    how: Any = list(sums.items())
    added = accesses.group_by(keys).aggregate(how)
    named = added.rename_columns({f"{name}_{how}": name for name, how in sums.items()})
    return named.select(accesses.schema.names).cast(accesses.schema)


def _sum(counts: list[RowCounts]) -> RowCounts:
    names = [each.name for each in fields(RowCounts)]
    return RowCounts(**{name: sum(getattr(each, name) for each in counts) for name in names})


# Work in several processes, or in this one if there are few parts.


P = TypeVar("P")
R = TypeVar("R")

Each: TypeAlias = Callable[[Sequence[Any], Callable[[], Callable[[Any], Any]]], Iterator[Any]]
"""Yields the result of each part: `each_in_processes` with a number of workers, or Spark's tasks."""


def each_in_processes(parts: Sequence[P], make: Callable[[], Callable[[P], R]], *, workers: int) -> Iterator[R]:
    """Yield the result of each part, in any order, from so many processes; in this one if `workers` is 1.

    Each process calls the pickled `make` once, and its result for each part. At most two results per process are
    pending.

    Raises:
        ConfigError: a process was killed. Errors of the work are passed on.

    """
    if workers == 1 or len(parts) < 2:
        yield from map(make(), parts)
        return
    # a new process rather than a fork: threads of this one may hold locks
    spawning = multiprocessing.get_context("spawn")
    count = min(workers, len(parts))
    with ProcessPoolExecutor(count, spawning, initializer=_begin, initargs=(make,)) as pool:
        waiting: set[Future[R]] = set()
        try:
            for part in parts:
                waiting.add(pool.submit(_work, part))
                if len(waiting) >= 2 * count:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            raise ConfigError(
                "a worker process was killed, perhaps for lack of memory: run again with fewer --workers"
            ) from None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@define
class _Worker:
    """A process of the pool."""

    work: Callable[[Any], Any] | None = None


@cache
def _worker() -> _Worker:
    return _Worker()


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    # the processes share the cores: one that reads with all of them slows down the others
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _worker().work = make()


def _work(part: Any) -> Any:
    work = _worker().work
    assert work is not None  # noqa: S101 - the pool has begun with it
    return work(part)


# Counting the rows of an access log in processes, each of which reads and counts some of its parts.


@frozen(eq=False, kw_only=True)
class HowToCount:
    """The parameters of counting, without the ACLs: small to pickle."""

    intervals: AclIntervals
    settings: Settings
    own_time: bool
    """Whether each access is evaluated by the ACLs of its own time; otherwise by those of the last version."""
    window: Window | None = None
    """None: all rows with a time are counted."""
    known_from: int | None = None
    """The time from which accesses can be evaluated, in us since 1970; None: always."""
    by_day: bool = False
    with_coverage: bool = False
    timeless: bool = False
    """Whether rows without a time are also counted (LogCounter)."""

    def memory(self) -> SeenAccesses:
        """Return an empty memory of accesses, for one process."""
        if self.own_time:
            return SeenAccesses(NecessaryAcls.of(self.intervals, self.settings))
        return SeenAccesses(None, version=len(change_times(self.intervals)))


def count_log(
    parts: Sequence[AccessPart], how: HowToCount, each: Each, *, counted: Callable[[int], None]
) -> CountedLog:
    """Count the rows of all parts.

    `each` does the work, in processes or on Spark; `counted` is called with the number of rows of each counted part.

    Raises:
        ConfigError: a file is damaged, or was replaced meanwhile.
        OSError: a file was removed.

    """
    logs = each(parts, partial(_counting, how))
    return CountedLog.sum_of(_noted(logs, counted) or [PartCounter(how).nothing()])


def _counting(how: HowToCount) -> Callable[[AccessPart], CountedLog]:
    return PartCounter(how).count


def _noted(parts: Iterable[CountedLog], counted: Callable[[int], None]) -> list[CountedLog]:
    logs = []
    for part in parts:
        logs.append(part)
        counted(part.rows.total)
    return logs


@define(eq=False)
class PartCounter:
    """Counts parts, one after another."""

    how: HowToCount
    memory: SeenAccesses = field(init=False, default=Factory(lambda self: self.how.memory(), takes_self=True))

    def count(self, part: AccessPart) -> CountedLog:
        """Return the counts of a part."""
        tables, rejects, unread = [], Counter[Reason](), list[UnreadAccesses]()
        counter = self._counter()
        for read in read_part(part):
            rejects += read.rejects
            unread.append(read.unread)
            if counter.accesses.is_full:
                # take before forgetting: the counts refer to the numbers of the accesses in memory
                tables.append(counter.accesses.table())
                self.memory.forget()
                counter.accesses = AccessCounter(self.memory, by_day=self.how.by_day)
            counter.add(read.rows)
        tables.append(counter.accesses.table())
        return CountedLog(
            accesses=pa.concat_tables(tables),
            rows=counter.rows,
            days=frozenset(counter.days),
            earliest=counter.earliest,
            latest=counter.latest,
            rejects=rejects,
            unread=UnreadAccesses.sum_of((*unread, counter.unread.total)),
            coverage=Coverage.nothing() if counter.coverage is None else counter.coverage.coverage(),
            logged_denials=counter.logged_denials,
        )

    def nothing(self) -> CountedLog:
        """Return the counts of no part."""
        counter = self._counter()
        return CountedLog(accesses=counter.accesses.table(), rows=counter.rows, days=frozenset())

    def _counter(self) -> LogCounter:
        accesses = AccessCounter(self.memory, by_day=self.how.by_day)
        how = self.how
        return LogCounter(
            accesses=accesses,
            window=how.window,
            known_from=how.known_from,
            timeless=how.timeless,
            coverage=CoverageCounter() if how.with_coverage else None,
        )


# The brokers and hours of an access log, counted in processes without any ACLs.


@frozen(eq=False, kw_only=True)
class CoveredPart:
    """The coverage of a piece of a log."""

    coverage: Coverage
    lines: int
    """The number of accesses, including those without a time."""
    rejects: Counter[Reason]
    """The number of other lines, by the reason why they are not accesses."""
    unread: UnreadAccesses
    """Unreadable accesses among them, and accesses that cannot be decided or have no time."""


def cover_log(parts: Sequence[AccessPart], each: Each) -> Iterator[CoveredPart]:
    """Yield the coverage of each part, in any order. Raises as tally_log."""
    yield from each(parts, _covering)


def _covering() -> Callable[[AccessPart], CoveredPart]:
    return _cover


def _cover(part: AccessPart) -> CoveredPart:
    counter, lines, rejects, unread = CoverageCounter(), 0, Counter[Reason](), list[UnreadAccesses]()
    for batch in read_part(part):
        lines += batch.rows.num_rows
        rejects += batch.rejects
        unread += (batch.unread, undecided_rows(batch.rows))
        counter.add_timed(batch.rows.column(TIMESTAMP), batch.rows.column(BROKER))
    return CoveredPart(coverage=counter.coverage(), lines=lines, rejects=rejects, unread=UnreadAccesses.sum_of(unread))


# An access log tallied by day in processes, for the index of last use.


@frozen(eq=False, kw_only=True)
class TalliedPart:
    """The tallies of a piece of a log."""

    tallies: tuple[DayTally, ...]
    counted: CountedLog
    """Without its accesses."""


def tally_log(parts: Sequence[AccessPart], how: HowToCount, each: Each) -> Iterator[TalliedPart]:
    """Yield the tallies of each part, in any order: memory is bounded by the size of parts and the number of ACLs.

    `each` does the work, in processes or on Spark.

    Raises:
        ConfigError: a file is damaged, or was replaced meanwhile.
        OSError: a file was removed.

    """
    by_day = evolve(how, by_day=True, with_coverage=True)
    yield from each(parts, partial(_tallying, by_day))


def _tallying(how: HowToCount) -> Callable[[AccessPart], TalliedPart]:
    counter = PartCounter(how)
    tallies = DayTallies.of(how.intervals, how.settings, own_time=how.own_time)

    def tally(part: AccessPart) -> TalliedPart:
        """Tally a part."""
        counted = counter.count(part)
        day_tallies = tuple(tallies.tallies(counted.accesses))
        return TalliedPart(tallies=day_tallies, counted=evolve(counted, accesses=counted.accesses.slice(0, 0)))

    return tally
