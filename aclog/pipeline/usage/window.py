"""The window of a report on a table of accesses: where it ends, what is in it, and on which days nothing was logged."""

from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.usage.window import DAY, EPOCH, Window, check_days, micros_of, of_micros


def window_of(accesses: DataFrame, days: int, until: datetime | None) -> Window:
    """Return the window of `days` up to `until`, by default up to the latest access.

    Raises:
        ConfigError: no access has a timestamp, or `days` is out of bounds.

    """
    check_days(days)
    if "timestamp" not in accesses.columns:
        raise ConfigError("no column 'timestamp' in the accesses: expected one, to select those in the window")
    if until is None:
        row = accesses.agg(F.max(F.unix_micros("timestamp")).alias("latest")).first()
        if row is None or row.latest is None:
            raise ConfigError("no access has a timestamp: expected one, or the end of the window")
        until = of_micros(row.latest)
    return Window.ending(until, days)


def is_in(window: Window, time: Column) -> Column:
    """Return whether a TIMESTAMP is in the window."""
    micros = F.unix_micros(time)
    return (micros >= micros_of(window.start)) & (micros <= micros_of(window.until))


def days_without_access(window: Window, accesses: DataFrame) -> pa.Table:
    """Return the days without any access, in the column `day`."""
    days = window.days
    micros = F.unix_micros("timestamp")
    first, after = (micros_of(datetime(d.year, d.month, d.day, tzinfo=UTC)) for d in (days[0], days[-1]))
    logged = accesses.where((micros >= first) & (micros < after + DAY))
    # pmod, not %: days before 1970 must round down as well
    day = ((micros - F.pmod(micros, F.lit(DAY))) / DAY).cast("int").alias("day")
    found = {row.day for row in logged.select(day).distinct().collect()}
    holes = [day for day in days if (day - EPOCH.date()).days not in found]
    return pa.table({"day": pa.array(holes, pa.date32())})
