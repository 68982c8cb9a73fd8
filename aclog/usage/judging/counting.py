"""Counting the rows of an access log in processes, each of which reads and counts some of its parts."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
from attrs import Factory, define, field, frozen

from aclog.authorizer.access_reject import Reason
from aclog.authorizer.settings import Settings
from aclog.usage.access_counter import AccessCounter, SeenAccesses
from aclog.usage.accesses.access_input import AccessPart, read_part
from aclog.usage.coverage import Coverage
from aclog.usage.coverage_counter import CoverageCounter
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.necessary_acls import NecessaryAcls
from aclog.usage.decisions.versions import change_times
from aclog.usage.judging.counted_log import CountedLog
from aclog.usage.judging.processes import Each
from aclog.usage.log_counter import LogCounter
from aclog.usage.unread import UnreadAccesses
from aclog.usage.window import Window


@frozen(eq=False, kw_only=True)
class HowToCount:
    """By what the rows of a log are counted: small to pickle, apart from the ACLs."""

    intervals: AclIntervals
    settings: Settings
    own_time: bool
    """Whether each access is judged by the ACLs of its own time; if not, by those of the last version."""
    window: Window | None = None
    """None: all rows with a time are counted."""
    known_from: int | None = None
    """The time from which accesses can be judged, in us since 1970; None for at all times."""
    by_day: bool = False
    with_coverage: bool = False
    timeless: bool = False
    """Whether rows without a time are counted, too (LogCounter)."""

    def seen(self) -> SeenAccesses:
        """Return a memory of accesses that were seen, of one process."""
        if self.own_time:
            return SeenAccesses(NecessaryAcls.of(self.intervals, self.settings))
        return SeenAccesses(None, version=len(change_times(self.intervals)))


def count_log(
    parts: Sequence[AccessPart], how: HowToCount, each: Each, *, counted: Callable[[int], None]
) -> CountedLog:
    """Count the rows of all parts.

    `each` does the work, in processes or on Spark; `counted` is called with the number of rows of each part once they
    are counted.

    Raises:
        ConfigError: a file is damaged, or was replaced meanwhile.
        OSError: a file is gone.

    """
    found = each(parts, partial(_counting, how))
    return CountedLog.sum_of(_noted(found, counted) or [PartCounter(how).nothing()])


def _counting(how: HowToCount) -> Callable[[AccessPart], CountedLog]:
    return PartCounter(how).count


def _noted(parts: Iterable[CountedLog], counted: Callable[[int], None]) -> list[CountedLog]:
    found = []
    for part in parts:
        found.append(part)
        counted(part.rows.total)
    return found


@define(eq=False)
class PartCounter:
    """Counts parts, one after another."""

    how: HowToCount
    seen: SeenAccesses = field(init=False, default=Factory(lambda self: self.how.seen(), takes_self=True))

    def count(self, part: AccessPart) -> CountedLog:
        """Return what is in a part."""
        found, rejects, unread = [], Counter[Reason](), list[UnreadAccesses]()
        counter = self._counter()
        for read in read_part(part):
            rejects += read.rejects
            unread.append(read.unread)
            if counter.accesses.is_full:
                # take before forgetting: the counter holds counts by the numbers of the accesses seen
                found.append(counter.accesses.table())
                self.seen.forget()
                counter.accesses = AccessCounter(self.seen, by_day=self.how.by_day)
            counter.add(read.rows)
        found.append(counter.accesses.table())
        return CountedLog(
            accesses=pa.concat_tables(found),
            rows=counter.rows,
            days=frozenset(counter.days),
            earliest=counter.earliest,
            latest=counter.latest,
            rejects=rejects,
            unread=UnreadAccesses.sum_of((*unread, counter.unread.found)),
            coverage=Coverage.nothing() if counter.coverage is None else counter.coverage.coverage(),
            logged_denials=counter.logged_denials,
        )

    def nothing(self) -> CountedLog:
        """Return what is in no part."""
        counter = self._counter()
        return CountedLog(accesses=counter.accesses.table(), rows=counter.rows, days=frozenset())

    def _counter(self) -> LogCounter:
        accesses = AccessCounter(self.seen, by_day=self.how.by_day)
        how = self.how
        return LogCounter(
            accesses=accesses,
            window=how.window,
            known_from=how.known_from,
            timeless=how.timeless,
            coverage=CoverageCounter() if how.with_coverage else None,
        )
