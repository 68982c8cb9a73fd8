"""The wall clock, in the unit that record timestamps have."""

import time


def current_time_ms() -> int:
    """Return the time in ms since 1970 (Kafka's Time.milliseconds)."""
    return time.time_ns() // 1_000_000
