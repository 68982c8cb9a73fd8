"""The window of a usage report: which ACLs were in force in all of it, and on which days nothing was logged."""

from datetime import UTC, date, datetime, timedelta
from typing import Self

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Bools
from aclog.pipeline.decisions.acl_intervals import ALWAYS, FOREVER, AclIntervals
from aclog.pipeline.decisions.versions import change_times

MOST_DAYS = 36_600
"""The longest window."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400_000_000
"""In us."""


@frozen(kw_only=True)
class Window:
    """From `start` to `until`, both included."""

    start: datetime
    until: datetime

    @classmethod
    def of(cls, accesses: DataFrame, days: int, until: datetime | None) -> Self:
        """Return the window of `days` up to `until`, by default up to the latest access.

        Raises:
            ConfigError: no access has a timestamp, or `days` is out of bounds.

        """
        if not 1 <= days <= MOST_DAYS:
            raise ConfigError(f"a window of {days} days: expected 1 to {MOST_DAYS}")
        if "timestamp" not in accesses.columns:
            raise ConfigError("no column 'timestamp' in the accesses: expected one, to select those in the window")
        if until is None:
            row = accesses.agg(F.max(F.unix_micros("timestamp")).alias("latest")).first()
            if row is None or row.latest is None:
                raise ConfigError("no access has a timestamp: expected one, or the end of the window")
            until = of_micros(row.latest)
        until = of_micros(micros_of(until))  # in UTC, whatever zone it was given in
        return cls(start=of_micros(micros_of(until) - days * _DAY), until=until)

    def has(self, time: Column) -> Column:
        """Return whether a TIMESTAMP is in the window."""
        micros = F.unix_micros(time)
        return (micros >= micros_of(self.start)) & (micros <= micros_of(self.until))

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

    def holes(self, accesses: DataFrame) -> pa.Table:
        """Return the days without any access, in the column `day`."""
        days = self.days
        micros = F.unix_micros("timestamp")
        first, after = (micros_of(datetime(d.year, d.month, d.day, tzinfo=UTC)) for d in (days[0], days[-1]))
        logged = accesses.where((micros >= first) & (micros < after + _DAY))
        # pmod, not %: days before 1970 must round down as well
        day = ((micros - F.pmod(micros, F.lit(_DAY))) / _DAY).cast("int").alias("day")
        found = {row.day for row in logged.select(day).distinct().collect()}
        holes = [day for day in days if (day - _EPOCH.date()).days not in found]
        return pa.table({"day": pa.array(holes, pa.date32())})


@frozen(eq=False, kw_only=True)
class WindowRules:
    """Which ACLs are assessed, by ordinal; broadcast to workers."""

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


def micros_of(time: datetime) -> int:
    """Return us since 1970; a naive time is UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def of_micros(micros: int) -> datetime:
    """Return the time that is so many us after 1970.

    Raises:
        ConfigError: it is beyond the years 1 to 9999.

    """
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise ConfigError(f"a window that begins or ends {micros} us after 1970: expected years 1 to 9999") from None
