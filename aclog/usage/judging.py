"""Counting, tallying and evaluation of access logs in processes."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from datetime import date, timedelta
from functools import cache, partial
from multiprocessing import resource_tracker
from threading import Thread
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from attrs import Factory, evolve, field

from aclog.authorizer.audit import Reason
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.usage.accesses.access_batch import BROKER, TIME_TYPE, TIMESTAMP
from aclog.usage.accesses.access_log import AccessPart, read_part
from aclog.usage.accesses.lines import LongLine
from aclog.usage.counting import (
    AccessCounter,
    CoverageCounter,
    DayTallies,
    LogCounter,
    RowCounts,
    SeenAccesses,
    Tally,
    rules_to_keep,
)
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer, NecessaryAcls
from aclog.usage.decisions.decisions import ERRORS, REQUEST_COLUMNS, DecisionCode
from aclog.usage.decisions.intervals import ALWAYS, FOREVER, AclIntervals, Rules, change_times
from aclog.usage.index.tallies import DayTally
from aclog.usage.processes import end_with_parent, kill, without_signals
from aclog.usage.rules import WindowRules
from aclog.usage.undecided import undecided, undecided_rows
from aclog.usage.unused import Answer, fewest_kept, keep_clauses
from aclog.usage.window import EPOCH, Counts, Coverage, UnreadAccesses, Window, micros_of

# The usage report: which ACLs an access log needed, and which it did not.


# The usage of each ACL by the accesses of a window, and as a table.


@frozen(eq=False, kw_only=True)
class RuleUsage:
    """The usage of ACLs, by ordinal; times in us since 1970, or null."""

    throughout: Bools
    """In force in the whole window; the others are not assessed."""
    matched: Int64s
    needed: Int64s
    last_matched: Any
    last_needed: Any
    last_needed_by: Any
    removable: Bools
    unread: Int64s
    """Accesses that could not be read or decided and may have needed the ACL."""
    concerned: Bools
    """Whether there may be any: their number may be unknown."""


def rule_table(rules: Rules, usage: RuleUsage) -> pa.Table:
    """Return a row for each ACL, by ordinal."""
    intervals = rules.intervals
    times = {
        "in_force_from": _times(intervals.visible_from * 1000, intervals.visible_from == ALWAYS),
        "in_force_to": _times(intervals.visible_to * 1000, intervals.visible_to == FOREVER),
    }
    return pa.table(
        {
            **{name: rules.table.column(name) for name in rules.table.schema.names},
            **times,
            "answer": _answers(usage),
            "matched": usage.matched,
            "needed": usage.needed,
            "last_matched_at": usage.last_matched.cast(TIME_TYPE),
            "last_needed_at": usage.last_needed.cast(TIME_TYPE),
            "last_needed_by": usage.last_needed_by,
            "removable": usage.removable,
            "unread": usage.unread,
        }
    )


def _times(micros: Int64s, none: Bools) -> Any:
    return pa.array(np.where(none, 0, micros), pa.int64(), mask=none).cast(TIME_TYPE)


def _answers(usage: RuleUsage) -> Any:
    answers = list(Answer)
    number = np.select(
        [~usage.throughout, usage.needed > 0, usage.concerned, usage.matched > 0],
        [answers.index(each) for each in (Answer.NOT_JUDGED, Answer.NEEDED, Answer.NOT_JUDGED, Answer.NEVER_NEEDED)],
        answers.index(Answer.NEVER_MATCHED),
    )
    return pa.array([answer.value for answer in answers]).take(pa.array(number))


# The usage report: needed and unneeded ACLs, and the most frequent denials.
#
# Its input is distinct accesses, each once per version of the ACLs that made a difference to it, from any counter.


DECISION_CODE: Final = "decision_code"
AT_END: Final = "decision_code_at_end"
"""By the newest ACLs, from which those that are removable will be removed: later than the window, if the log is."""

_ROWS = 1 << 16
"""How many distinct accesses are tallied at once."""


@frozen(eq=False, kw_only=True)
class UsageReport:
    """The usage of ACLs by a log.

    `rules`: a row per ACL, by ordinal: RULE_COLUMNS; in_force_from and in_force_to (null if unbounded); `answer`; the
    counts of accesses `matched` and `needed`; last_matched_at, last_needed_at, last_needed_by; `removable`: of the
    present state; all removable ACLs can be removed together without changing a decision on any access in the window,
    neither by the ACLs of its own time nor by the newest ones; `unread`: how many accesses that could not be read or
    decided may have needed it.
    `denied`: the most denied accesses: REQUEST_COLUMNS, `count`, `first_at`, `last_at`, and the `rule` and `rule_id` of
    the last denial.
    `holes`: the days of the window without any access, in the column `day`.
    """

    rules: pa.Table
    denied: pa.Table
    holes: pa.Table
    counts: Counts
    window: Window
    has_times: bool
    """Whether intervals are known; if not, all ACLs count as in force in the whole window."""
    unread: UnreadAccesses
    """Accesses that may lie in the window and could not be read or decided; not those of super users."""
    is_denials_only: bool = False
    """Whether the log has denials alone (RowCounts): no ALLOW counts as unused, and no ACL as removable."""
    known_from: int = ALWAYS
    """The time since which the ACLs are known, in ms since 1970."""
    logged_types: frozenset[str] | None = None
    """The types of resources with a readable access in the window; None if that is unknown."""
    denials: int | None = None
    """The number of denied accesses; None if they were not counted."""

    def without_proof(self) -> "UsageReport":
        """Return the report without claims that require all premises of decisions to be known.

        A resource may be open to everyone without its last ACL, so no ACL is removable, and a DENY may be needed.
        """
        return self._not_judged({("DENY", Answer.NEVER_NEEDED)})

    def of_log(self, rows: RowCounts) -> "UsageReport":
        """Return the report of a log with these rows: of denials alone, it has no use of an ALLOW."""
        if not rows.is_denials_only:
            return self
        unknown = self._not_judged({("ALLOW", Answer.NEVER_MATCHED), ("ALLOW", Answer.NEVER_NEEDED)})
        return evolve(unknown, is_denials_only=True)

    def _not_judged(self, unknown: AbstractSet[tuple[str, Answer]]) -> "UsageReport":
        """Return the report in which ACLs of these types with these answers are not judged, and none is removable."""
        rules = self.rules
        pairs = zip(*(rules.column(name).to_pylist() for name in ("permissionType", "answer")), strict=True)
        answers = [Answer.NOT_JUDGED.value if pair in unknown else pair[1] for pair in pairs]
        for name, values in (("answer", pa.array(answers, pa.string())), ("removable", pa.array([False] * len(rules)))):
            rules = rules.set_column(rules.schema.get_field_index(name), name, values)
        return evolve(self, rules=rules)


@frozen(eq=False, kw_only=True)
class Judged:
    """The ACLs and settings by which the accesses of a window are evaluated."""

    rules: Rules
    settings: Settings
    window: Window
    own_time: bool
    """Whether each access is evaluated by the ACLs of its own time; otherwise by those of the last version."""

    @property
    def known_from(self) -> int | None:
        """The time from which accesses can be evaluated, in us since 1970; None: always."""
        begin = self.rules.intervals.known_from
        return begin * 1000 if self.own_time and begin > ALWAYS else None

    @property
    def newest(self) -> int:
        """A time at which the newest ACLs are in force, in us since 1970."""
        until, times = micros_of(self.window.until), change_times(self.rules.intervals)
        return max(until, int(times[-1]) * 1000) if len(times) else until

    @property
    def has_times(self) -> bool:
        """Whether the intervals of ACLs are known."""
        intervals = self.rules.intervals
        return len(change_times(intervals)) > 0 or intervals.known_from > ALWAYS

    def assessed(self, unread: UnreadAccesses) -> WindowRules:
        """Return which ACLs are assessed; `unread` are the unread accesses of the window."""
        window_rules = WindowRules.of(self.rules.intervals, self.window, own_time=self.own_time)
        if not unread:
            return window_rules
        who: Any = self.rules.table.column("principal").to_pylist()
        denies = np.asarray(self.rules.table.column("permissionType").to_numpy()) != "ALLOW"
        by_presence = self.settings.allow_everyone
        return window_rules.but_for(
            unread.concerned(who, denies, by_presence=by_presence), unread.counts(who, denies, by_presence=by_presence)
        )

    def unread(self, unread: UnreadAccesses) -> UnreadAccesses:
        """Return those of a log's unread accesses that may lie in the window and are not of super users."""
        start, until = micros_of(self.window.start), micros_of(self.window.until)
        return unread.between(start, until).but_of(self.settings.super_users)


def report(
    counted: pa.Table,
    judged: Judged,
    rows: RowCounts,
    days: Collection[int],
    *,
    top: int,
    unread: UnreadAccesses,
) -> UsageReport:
    """Return the report on the distinct accesses of the window (COUNTED, one row per access and version).

    `rows`, `days` and `unread` are those of the whole log (LogCounter); `top` is the number of denied accesses to name.
    """
    authorizer = BulkAuthorizer.of(judged.rules.intervals, judged.settings)
    decided = with_codes(counted, judged, authorizer)
    unknown = UnreadAccesses.sum_of((unread, undecided(decided, np.asarray(decided.column(DECISION_CODE)))))
    unknown = judged.unread(unknown)
    by_code, denied, first_code = _rows_by_code(decided), _is_denied(judged.rules).tolist(), int(min(DecisionCode))
    usage_report = UsageReport(
        rules=rule_table(judged.rules, _usage(decided, judged, judged.assessed(unknown), authorizer)),
        denied=most_denied(decided, judged.rules, top),
        holes=days_without_access(judged.window, days),
        counts=counts_of(rows, by_code),
        window=judged.window,
        has_times=judged.has_times,
        unread=unknown,
        known_from=judged.rules.intervals.known_from,
        logged_types=frozenset(map(str, counted.column("resourceType").unique().to_pylist())),
        denials=sum(count for code, count in by_code.items() if denied[code - first_code]),
    )
    return usage_report.of_log(rows)


def with_codes(counted: pa.Table, judged: Judged, authorizer: BulkAuthorizer) -> pa.Table:
    """Add the columns `decision_code`, and `decision_code_at_end` by the newest ACLs."""
    columns = [counted.column(name) for name in REQUEST_COLUMNS]
    if not judged.own_time:
        codes = authorizer.decide_once(columns)
        at_end = codes
    else:
        # its first time is sufficient: COUNTED has a row per version that makes a difference
        codes = authorizer.decide(columns, np.asarray(counted.column("first")))
        at_end = authorizer.decide(columns, np.full(len(counted), judged.newest))
        # the decision by the newest ACLs counts as well, so the deciding Kafka must also be known then
        codes[at_end == DecisionCode.UNKNOWN_KAFKA] = DecisionCode.UNKNOWN_KAFKA
    return counted.append_column(DECISION_CODE, pa.array(codes)).append_column(AT_END, pa.array(at_end))


def _usage(decided: pa.Table, judged: Judged, assessed: WindowRules, authorizer: BulkAuthorizer) -> RuleUsage:
    acls = NecessaryAcls.of(judged.rules.intervals, judged.settings, like=authorizer)
    tally = Tally(acls, assessed, with_sets=True, with_groups=acls.presence_counts)
    by_acls = decided.filter(pa.array(np.asarray(decided.column(DECISION_CODE)) >= DecisionCode.DEFAULT_ALLOW))
    for start in range(0, len(by_acls), _ROWS):
        tally.add(by_acls.slice(start, _ROWS))
    rows = tally.rules()
    worth = worth_of(rows, tally.window)
    if tally.acls.presence_counts:
        # with allow.everyone, ACLs that do not match also affect decisions: only groups include them
        keep = rules_to_keep(tally.take_groups().column("group").combine_chunks(), worth).tolist()
    else:
        may_go = assessed.throughout & ~assessed.concerned & ~assessed.removed & (worth < np.iinfo(np.int64).max)
        clauses = keep_clauses(tally.matched_sets(), present=~assessed.removed, may_go=may_go)
        keep = sorted(fewest_kept(clauses, lambda ordinal: int(worth[ordinal])))
    return usage_of(rows, keep, tally.window)


def usage_of(rows: pa.Table, keep: Any, window: WindowRules) -> RuleUsage:
    """Return the usage of each ACL from tallies (TALLY), which are added up by ACL already.

    `keep` has the ordinals of ACLs that represent a group of which one must stay (rules_to_keep).
    """
    matched, needed = (_by_ordinal(rows, name, window) for name in ("matched", "needed"))
    removable = window.throughout & ~window.concerned & ~window.removed & (needed == 0)
    removable[keep] = False
    row = np.full(len(window.throughout), -1, np.int64)
    row[np.asarray(rows.column("ordinal"))] = np.arange(len(rows))
    rows_of: Any = pa.array(row, mask=row < 0)
    last_matched, last_needed, by = (
        rows.column(name).combine_chunks().take(rows_of) for name in ("last_matched", "last_needed", "last_needed_by")
    )
    return RuleUsage(
        throughout=window.throughout,
        matched=matched,
        needed=needed,
        last_matched=last_matched,
        last_needed=last_needed,
        last_needed_by=by,
        removable=removable,
        unread=window.unread,
        concerned=window.concerned,
    )


def worth_of(rows: pa.Table, window: WindowRules) -> Int64s:
    """Return by ordinal how much an ACL is worth keeping for a group, from the same tallies as `usage_of`.

    Each group keeps the ACL that matched most accesses, but prefers a needed one: it stays anyway, and fewer ACLs are
    kept
    if it also represents its other groups. One that was removed since is kept for no group that has another.
    """
    needed = _by_ordinal(rows, "needed", window)
    worth = np.where(needed > 0, np.iinfo(np.int64).max, _by_ordinal(rows, "matched", window))
    return np.where(window.removed, -1, worth)


def _by_ordinal(rows: pa.Table, name: str, window: WindowRules) -> Int64s:
    numbers = np.zeros(len(window.throughout), np.int64)
    numbers[np.asarray(rows.column("ordinal"))] = rows.column(name)
    return numbers


def counts_of(rows: RowCounts, by_code: Mapping[int, int]) -> Counts:
    """Return the counts of all rows of a log; `by_code` has those in the window, by decision code."""
    return Counts(
        total=rows.total,
        without_time=rows.without_time,
        outside=rows.outside,
        before_log=rows.before_log,
        super_users=by_code.get(int(DecisionCode.SUPER_USER), 0),
        errors={text: by_code[int(code)] for code, text in ERRORS.items() if int(code) in by_code},
        decided=sum(count for code, count in by_code.items() if code >= DecisionCode.DEFAULT_ALLOW),
    )


def _rows_by_code(decided: pa.Table) -> dict[int, int]:
    codes = np.asarray(decided.column(DECISION_CODE))
    kinds, of = np.unique(np.maximum(codes, np.iinfo(np.int32).min), return_inverse=True)
    sums = np.zeros(len(kinds), np.int64)
    np.add.at(sums, of, np.asarray(decided.column("count")))
    return dict(zip(kinds.tolist(), sums.tolist(), strict=True))


def _is_denied(rules: Rules) -> Bools:
    """Return whether a decision is a denial, by its code, from the least code on."""
    denied: Bools = np.asarray(rules.texts.table.column("decision")) == "DENIED"
    return denied


def most_denied(decided: pa.Table, rules: Rules, top: int) -> pa.Table:
    """Return the most denied of distinct accesses (COUNTED with `decision_code`), at most `top`; ties by columns."""
    texts = rules.texts
    first = int(min(DecisionCode))
    rows = decided.filter(pa.array(_is_denied(rules)[np.asarray(decided.column(DECISION_CODE)) - first]))
    # the latest denial determines the ACL
    rows = rows.sort_by([("last", "ascending")])
    by = rows.group_by(list(REQUEST_COLUMNS), use_threads=False).aggregate(
        [("count", "sum"), ("first", "min"), ("last", "max"), (DECISION_CODE, "last")]
    )
    order: Any = [("count_sum", "descending"), *((name, "ascending") for name in REQUEST_COLUMNS)]
    most = by.sort_by(order).slice(0, top)
    named = texts.of_codes(most.column(f"{DECISION_CODE}_last").combine_chunks())
    return pa.table(
        {
            **{name: most.column(name) for name in REQUEST_COLUMNS},
            "count": most.column("count_sum"),
            "first_at": most.column("first_min").cast(TIME_TYPE),
            "last_at": most.column("last_max").cast(TIME_TYPE),
            "rule": named[1],
            "rule_id": named[2],
        }
    )


def days_without_access(window: Window, days: Collection[int]) -> pa.Table:
    """Return the days (UTC) of the window that are not among these (since 1970), in the column `day`."""
    with_access = frozenset(days)
    holes: list[date] = [day for day in window.days if (day - EPOCH.date()) // timedelta(days=1) not in with_access]
    return pa.table({"day": pa.array(holes, pa.date32())})


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
    long_lines: tuple[LongLine, ...] = ()
    """Lines that were not read for their length, which `unread` has."""

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Return the sum of at least one."""
        logs = list(parts)
        return cls(
            accesses=_added_up(pa.concat_tables([part.accesses for part in logs])),
            rows=RowCounts.sum_of(part.rows for part in logs),
            days=frozenset[int]().union(*(part.days for part in logs)),
            earliest=min((part.earliest for part in logs if part.earliest is not None), default=None),
            latest=max((part.latest for part in logs if part.latest is not None), default=None),
            rejects=sum((part.rejects for part in logs), Counter[Reason]()),
            unread=UnreadAccesses.sum_of(part.unread for part in logs),
            coverage=Coverage.sum(part.coverage for part in logs),
            long_lines=tuple(sorted({line for part in logs for line in part.long_lines})),
        )


def _added_up(accesses: pa.Table) -> pa.Table:
    sums = {"count": "sum", "first": "min", "last": "max"}
    keys = [name for name in accesses.schema.names if name not in sums]
    how: Any = list(sums.items())
    added = accesses.group_by(keys).aggregate(how)
    named = added.rename_columns({f"{name}_{how}": name for name, how in sums.items()})
    return named.select(accesses.schema.names).cast(accesses.schema)


# Work in several processes, or in this one if there are few parts.


P = TypeVar("P")
R = TypeVar("R")

Each: TypeAlias = Callable[[Sequence[Any], Callable[[], Callable[[Any], Any]]], Iterator[Any]]
"""Yields the result of each part: `each_in_processes` with a number of workers, or Spark's tasks."""


def each_in_processes(parts: Sequence[P], make: Callable[[], Callable[[P], R]], *, workers: int) -> Iterator[R]:
    """Yield the result of each part, in any order, from so many processes; in this one if `workers` is 1.

    Each process calls the pickled `make` once, and its result for each part. At most two results per process are
    pending. Signals to the whole process group, such as Ctrl-C, are this process's to handle: the others block SIGINT,
    and SIGTERM if this one has a handler, and end with this one.

    Raises:
        ConfigError: a process was killed. Errors of the work are passed on.

    """
    if workers == 1 or len(parts) < 2:
        yield from map(make(), parts)
        return
    # a new process rather than a fork: threads of this one may hold locks
    spawning = multiprocessing.get_context("spawn")
    count = min(workers, len(parts))
    resource_tracker.ensure_running()  # it would unblock the signals when the first process starts
    with ProcessPoolExecutor(count, spawning, initializer=_begin, initargs=(make,)) as pool:
        waiting: set[Future[R]] = set()
        try:
            for part in parts:
                with without_signals():  # it may start a process, which keeps them blocked
                    waiting.add(pool.submit(_work, part))
                if len(waiting) >= 2 * count:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            kill(pool)
            raise ConfigError(
                "a worker process was killed, perhaps for lack of memory: run again with fewer --workers"
            ) from None
        except BaseException:
            kill(pool)  # such as at Ctrl-C: no result is needed any more
            raise


@define
class _Worker:
    """A process of the pool."""

    work: Callable[[Any], Any] | None = None


@cache
def _worker() -> _Worker:
    return _Worker()


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    Thread(target=end_with_parent, daemon=True).start()
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
        tables, rejects, unread, long_lines = [], Counter[Reason](), list[UnreadAccesses](), list[LongLine]()
        counter = self._counter()
        for read in read_part(part):
            rejects += read.rejects
            unread.append(read.unread)
            long_lines += read.long_lines
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
            long_lines=tuple(long_lines),
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
    long_lines: tuple[LongLine, ...] = ()
    """Lines that were not read for their length, which `unread` has."""


def cover_log(parts: Sequence[AccessPart], each: Each) -> Iterator[CoveredPart]:
    """Yield the coverage of each part, in any order. Raises as tally_log."""
    yield from each(parts, _covering)


def _covering() -> Callable[[AccessPart], CoveredPart]:
    return _cover


def _cover(part: AccessPart) -> CoveredPart:
    counter, lines, rejects, unread = CoverageCounter(), 0, Counter[Reason](), list[UnreadAccesses]()
    long_lines = list[LongLine]()
    for batch in read_part(part):
        long_lines += batch.long_lines
        lines += batch.rows.num_rows
        rejects += batch.rejects
        unread += (batch.unread, undecided_rows(batch.rows))
        counter.add_timed(batch.rows.column(TIMESTAMP), batch.rows.column(BROKER))
    return CoveredPart(
        coverage=counter.coverage(),
        lines=lines,
        rejects=rejects,
        unread=UnreadAccesses.sum_of(unread),
        long_lines=tuple(long_lines),
    )


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
