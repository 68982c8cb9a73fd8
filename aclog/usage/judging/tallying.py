"""An access log tallied by day in processes, for the index of last use."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attrs import evolve, frozen

from aclog.usage.accesses.access_input import AccessPart
from aclog.usage.day_tally import DayTallies
from aclog.usage.index.tallies import DayTally
from aclog.usage.judging.counted_log import CountedLog
from aclog.usage.judging.counting import HowToCount, PartCounter
from aclog.usage.judging.processes import Each


@frozen(eq=False, kw_only=True)
class TalliedPart:
    """What a piece of a log says."""

    tallies: tuple[DayTally, ...]
    counted: CountedLog
    """Without its accesses."""


def tally_log(parts: Sequence[AccessPart], how: HowToCount, each: Each) -> Iterator[TalliedPart]:
    """Yield what each part says, in any order: memory is bounded by the size of parts and the number of rules.

    `each` does the work, in processes or on Spark.

    Raises:
        ConfigError: a file is damaged, or was replaced meanwhile.
        OSError: a file is gone.

    """
    by_day = evolve(how, by_day=True, with_coverage=True)
    yield from each(parts, partial(_tallying, by_day))


def _tallying(how: HowToCount) -> Callable[[AccessPart], TalliedPart]:
    counter = PartCounter(how)
    tallies = DayTallies.of(how.intervals, how.settings, own_time=how.own_time)

    def tally(part: AccessPart) -> TalliedPart:
        """Tally a part."""
        counted = counter.count(part)
        found = tuple(tallies.tallies(counted.accesses))
        return TalliedPart(tallies=found, counted=evolve(counted, accesses=counted.accesses.slice(0, 0)))

    return tally
