"""Times for which a broker logged nothing: what happened then, nobody knows."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Int64s


@frozen(kw_only=True)
class Silence:
    """A broker's time without a line, between two lines; times in us since 1970."""

    broker: str | None
    """None for the lines that name none."""
    since: int | None
    """Its last line before; None if there is none."""
    to: int | None
    """Its first line after; None if there is none."""


@frozen(eq=False, kw_only=True)
class HeardHours:
    """The hours in which a broker logged anything, ascending: when each first and last line was, in us since 1970."""

    first: Int64s
    last: Int64s


HOUR = 3_600_000_000
"""In us; a shorter silence may go unseen, since hours are what the index knows."""


def silences(heard: Mapping[str | None, HeardHours], start: int, until: int, *, gap: int) -> Iterator[Silence]:
    """Yield the silences of at least `gap` in the window from `start` to `until` (us since 1970), broker by broker.

    A silence counts as long as it lies in the window. A broker is expected to log all the while, before its first line
    and after its last one, too.
    """
    for broker in sorted(heard, key=lambda name: (name is not None, name or "")):
        hours = heard[broker]
        lasts = np.concatenate(([np.iinfo(np.int64).min], hours.last))
        firsts = np.concatenate((hours.first, [np.iinfo(np.int64).max]))
        begins, ends = np.maximum(lasts, start), np.minimum(firsts, until)
        for at in np.flatnonzero((ends > begins) & (ends - begins >= gap)).tolist():
            yield Silence(
                broker=broker,
                since=None if at == 0 else int(lasts[at]),
                to=None if at == len(hours.first) else int(firsts[at]),
            )


def first_heard(heard: Iterable[HeardHours], start: int) -> int | None:
    """Return the time of the first known line of any broker from `start` on; None if there is none."""
    found = []
    for hours in heard:
        at = int(np.searchsorted(hours.last, start))
        if at < len(hours.first):
            found.append(max(int(hours.first[at]), start))
    return min(found, default=None)
