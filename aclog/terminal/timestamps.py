"""Record timestamps as text."""

from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from aclog.terminal.timezone import shown_zone


def time_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as ISO 8601, for people: in the chosen zone, which is UTC unless one is."""
    return _text(timestamp, shown_zone())


def utc_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as ISO 8601 in UTC; the number itself if it is outside the calendar."""
    return _text(timestamp, UTC)


@lru_cache(64)  # the changes of a poll all have the same
def _text(timestamp: int, zone: tzinfo) -> str:
    try:
        time = datetime.fromtimestamp(timestamp / 1000, UTC).astimezone(zone)
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp} ms"
