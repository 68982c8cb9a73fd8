"""Which brokers and hours an access log holds, counted in processes: no rule is asked."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses.access_batch import BROKER, TIMESTAMP
from aclog.usage.accesses.access_input import AccessPart, read_part
from aclog.usage.coverage import Coverage
from aclog.usage.coverage_counter import CoverageCounter
from aclog.usage.judging.processes import Each
from aclog.usage.undecided import undecided_rows
from aclog.usage.unread import UnreadAccesses


@frozen(eq=False, kw_only=True)
class CoveredPart:
    """What a piece of a log holds."""

    coverage: Coverage
    lines: int
    """All accesses, those without a time included."""
    rejects: Counter[Reason]
    """How many other lines there were, by the reason why they are no accesses."""
    unread: UnreadAccesses
    """Those of them that tell of an access all the same, and accesses that cannot be decided or have no time."""


def cover_log(parts: Sequence[AccessPart], each: Each) -> Iterator[CoveredPart]:
    """Yield what each part holds, in any order. Raises as tallying.tally_log."""
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
