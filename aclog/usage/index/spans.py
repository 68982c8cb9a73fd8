"""Spans of days: a window of ten years is some 70 of them, whose contents are added up already.

Level 0 is single days; a span of a level is 16 of the level below, in step with the days since 1970.
"""

from typing import Final, NamedTuple

LEVELS: Final = (0, 4, 8)
"""By the bits of a day's number that a span leaves out: days, 16 days, 256 days."""


class Span(NamedTuple):
    """The days from `number << level` on, as many as 1 << level."""

    level: int
    number: int


def spans(first_day: int, last_day: int) -> list[Span]:
    """Return the fewest spans that make up these days (since 1970, both included), in order."""
    found, day = list[Span](), first_day
    while day <= last_day:
        level = max(each for each in LEVELS if day % (1 << each) == 0 and day + (1 << each) - 1 <= last_day)
        found.append(Span(level, day >> level))
        day += 1 << level
    return found
