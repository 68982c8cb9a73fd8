"""Waiting for what another process or thread does."""

import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 300.0

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T],
    what: str | Callable[[], object] = "it",
    seconds: float = SECONDS,
    *,
    every: float = 0.01,
) -> T:
    """Ask again and again until the answer is true; return it. An AssertionError says what did not come about."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what() if callable(what) else what}: not within {seconds:g} s"
        time.sleep(every)
    return result
