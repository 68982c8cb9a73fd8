"""The wall clock, in the unit that record timestamps have, and a clock for ages."""

import sys
import time


def current_time_ms() -> int:
    """Return the time in ms since 1970 (Kafka's Time.milliseconds)."""
    return time.time_ns() // 1_000_000


def elapsed_seconds() -> float:
    """Return seconds since an arbitrary moment; never goes back, and counts suspension where the system does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
