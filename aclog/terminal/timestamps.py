"""Record timestamps as text."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(64)  # the changes of a poll all have the same
def utc_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as ISO 8601 in UTC; the number itself if it is outside the calendar."""
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp} ms"
