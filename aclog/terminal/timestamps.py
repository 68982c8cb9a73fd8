"""Times of records as text."""

from datetime import UTC, datetime


def utc_text(timestamp: int) -> str:
    """A time in ms since 1970 in UTC, to the millisecond; the number itself where it is no time of the calendar."""
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp} ms"
