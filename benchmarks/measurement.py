"""Timing of calls (thread CPU time, best of seven rounds after a warm-up, as in Rival.java), and of processes."""

import gc
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROUNDS = 7


def best_ns(call: Callable[[], object], *, round_ms: int = 200, calls_per_check: int = 64) -> float:
    """Return nanoseconds per call: the best of seven rounds after a warm-up, without garbage collection."""
    budget = round_ms * 1_000_000
    _round(call, budget, calls_per_check)
    gc.collect()
    gc.disable()
    try:
        return min(_round(call, budget, calls_per_check) for _ in range(ROUNDS))
    finally:
        gc.enable()


def _round(call: Callable[[], object], budget: int, calls_per_check: int) -> float:
    """Return the mean over one round, including the loop's own cost of about 15 ns per call."""
    clock, steps = time.thread_time_ns, range(calls_per_check)
    start = now = clock()
    done = 0
    while now - start < budget:
        for _ in steps:
            call()
        done += calls_per_check
        now = clock()
    return (now - start) / done


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return what a process has used of all processors so far, the system's part included."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
