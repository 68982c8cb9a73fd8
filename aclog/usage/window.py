"""The window of a usage report, and times in us since 1970."""

from datetime import UTC, date, datetime, timedelta
from typing import Self

from attrs import frozen

from aclog.metalog.errors import ConfigError

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

    @property
    def days(self) -> list[date]:
        """The days (UTC) in the window, in whole or in part."""
        count = (self.until.date() - self.start.date()).days + 1
        return [self.start.date() + timedelta(days=n) for n in range(count)]


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
