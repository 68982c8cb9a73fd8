"""The window that usage is told for: which rules stood in all of it, and on which days nothing was logged."""

from datetime import UTC, date, datetime, timedelta
from typing import Self

import pyarrow as pa
from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Bools
from aclog.pipeline.decisions.acl_intervals import ALWAYS, AclIntervals

MOST_DAYS = 36_600
"""The longest window."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400_000_000
"""In us."""


@frozen(kw_only=True)
class Window:
    """From `start` to `until`, both of them in it."""

    start: datetime
    until: datetime

    @classmethod
    def of(cls, accesses: DataFrame, days: int, until: datetime | None) -> Self:
        """That many days up to `until`, or to the latest access.

        Raises:
            ConfigError: no access has a time, or `days` is out of bounds.

        """
        if not 1 <= days <= MOST_DAYS:
            raise ConfigError(f"a window of {days} days: expected 1 to {MOST_DAYS}")
        if "timestamp" not in accesses.columns:
            raise ConfigError("the accesses have no timestamp: expected one, to tell which of them are in the window")
        if until is None:
            row = accesses.agg(F.max(F.unix_micros("timestamp")).alias("latest")).first()
            if row is None or row.latest is None:
                raise ConfigError("no access has a timestamp: expected one, or the time at which the window ends")
            until = of_micros(row.latest)
        until = of_micros(micros_of(until))
        return cls(start=of_micros(micros_of(until) - days * _DAY), until=until)

    def has(self, time: Column) -> Column:
        """Whether a TIMESTAMP is in it."""
        micros = F.unix_micros(time)
        return (micros >= micros_of(self.start)) & (micros <= micros_of(self.until))

    def stood(self, intervals: AclIntervals) -> Bools:
        """By ordinal: whether the rule was in force in all of it, as far as is known."""
        start, until = micros_of(self.start), micros_of(self.until)
        # in ms, so that FOREVER stays in bounds: from * 1000 <= start, and to * 1000 > until
        there: Bools = (intervals.visible_from <= start // 1000) & (intervals.visible_to > until // 1000)
        return there & (max(intervals.known_from, ALWAYS) <= start // 1000)

    @property
    def days(self) -> list[date]:
        """The days (UTC) that it touches."""
        count = (self.until.date() - self.start.date()).days + 1
        return [self.start.date() + timedelta(days=n) for n in range(count)]

    def holes(self, accesses: DataFrame) -> pa.Table:
        """The days without any access: column `day`."""
        days = self.days
        micros = F.unix_micros("timestamp")
        first, after = (micros_of(datetime(d.year, d.month, d.day, tzinfo=UTC)) for d in (days[0], days[-1]))
        logged = accesses.where((micros >= first) & (micros < after + _DAY))
        day = ((micros - F.pmod(micros, F.lit(_DAY))) / _DAY).cast("int").alias("day")
        found = {row.day for row in logged.select(day).distinct().collect()}
        holes = [day for day in days if (day - _EPOCH.date()).days not in found]
        return pa.table({"day": pa.array(holes, pa.date32())})


def micros_of(time: datetime) -> int:
    """Us since 1970; a time without a zone is UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def of_micros(micros: int) -> datetime:
    """The time so many us after 1970.

    Raises:
        ConfigError: no calendar has it.

    """
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise ConfigError(f"a window that begins or ends {micros} us after 1970: expected years 1 to 9999") from None
