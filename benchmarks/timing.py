"""How a call is timed: thread CPU time, best of seven rounds after a warm-up, as the rival's side does it."""

import gc
import time
from collections.abc import Callable, Sequence

ROUNDS = 7


def best_ns(call: Callable[[], object], *, round_ms: int = 200, calls_per_check: int = 64) -> float:
    """Nanoseconds a call: the best of seven rounds, after as long a warm-up as one round; the collector is off."""
    budget = round_ms * 1_000_000
    _round(call, budget, calls_per_check)
    gc.collect()
    gc.disable()
    try:
        return min(_round(call, budget, calls_per_check) for _ in range(ROUNDS))
    finally:
        gc.enable()


def _round(call: Callable[[], object], budget: int, calls_per_check: int) -> float:
    """Mean over one round; the loop's own cost (about 15 ns a call) is part of the figure."""
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
    """The value below which this share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
