"""The window of a usage report, and which ACLs were in force in all of it."""

from datetime import UTC, date, datetime, timedelta
from typing import Self

import numpy as np
from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Bools
from aclog.usage.decisions.acl_intervals import ALWAYS, FOREVER, AclIntervals
from aclog.usage.decisions.versions import change_times

MOST_DAYS = 36_600
"""The longest window."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
"""In us."""


@frozen(kw_only=True)
class Window:
    """From `start` to `until`, both included."""

    start: datetime
    until: datetime

    @classmethod
    def ending(cls, until: datetime, days: int) -> Self:
        """Return the window of `days` up to `until`; a naive time is UTC.

        Raises:
            ConfigError: `days` is out of bounds.

        """
        check_days(days)
        end = of_micros(micros_of(until))  # in UTC, whatever zone it was given in
        return cls(start=of_micros(micros_of(end) - days * DAY), until=end)

    def in_force_throughout(self, intervals: AclIntervals) -> Bools:
        """Return by ordinal whether the ACL is known to have been in force in the whole window."""
        start, until = micros_of(self.start), micros_of(self.until)
        # from * 1000 <= start and to * 1000 > until, but compared in ms: FOREVER in us would overflow
        in_force: Bools = (intervals.visible_from <= start // 1000) & (intervals.visible_to > until // 1000)
        return in_force & (max(intervals.known_from, ALWAYS) <= start // 1000)

    @property
    def days(self) -> list[date]:
        """The days (UTC) in the window, in whole or in part."""
        count = (self.until.date() - self.start.date()).days + 1
        return [self.start.date() + timedelta(days=n) for n in range(count)]


@frozen(eq=False, kw_only=True)
class WindowRules:
    """Which ACLs are assessed, by ordinal."""

    throughout: Bools
    """In force in the whole window: assessed."""
    stays: Bools
    """Not assessed but in force at the end of the window, so that it will not be removed."""
    version: int
    """The version at the end of the window; without own time, the last one."""

    @classmethod
    def of(cls, intervals: AclIntervals, window: Window, *, own_time: bool) -> Self:
        """Assess the ACLs for a window."""
        times = change_times(intervals)
        if own_time:
            until = micros_of(window.until) // 1000
            version = int(np.searchsorted(times, until, "right"))
            at_end = (intervals.visible_from <= until) & (intervals.visible_to > until)
        else:
            version, at_end = len(times), intervals.visible_to == FOREVER
        throughout = window.in_force_throughout(intervals) & at_end
        return cls(throughout=throughout, stays=at_end & ~throughout, version=version)


def check_days(days: int) -> None:
    """Check the length of a window. Raises ConfigError: it is out of bounds."""
    if not 1 <= days <= MOST_DAYS:
        raise ConfigError(f"a window of {days} days: expected 1 to {MOST_DAYS}")


def micros_of(time: datetime) -> int:
    """Return us since 1970; a naive time is UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def of_micros(micros: int) -> datetime:
    """Return the time that is so many us after 1970.

    Raises:
        ConfigError: it is beyond the years 1 to 9999.

    """
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise ConfigError(f"a window that begins or ends {micros} us after 1970: expected years 1 to 9999") from None
