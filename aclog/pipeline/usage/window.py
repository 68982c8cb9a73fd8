"""The window of a report on an access log: where it ends."""

from datetime import datetime

from aclog.metalog.errors import ConfigError
from aclog.pipeline.usage.accesses import AccessRows
from aclog.usage.window import Window, check_days, of_micros


def window_of(accesses: AccessRows, days: int, until: datetime | None) -> Window:
    """Return the window of `days` up to `until`, by default up to the latest access.

    Raises:
        ConfigError: no access has a timestamp, or `days` is out of bounds.

    """
    check_days(days)
    if until is None:
        latest = accesses.latest()
        if latest is None:
            raise ConfigError("no access has a timestamp: expected one, or the end of the window")
        until = of_micros(latest)
    return Window.ending(until, days)
