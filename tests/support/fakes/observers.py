"""Observers of a fake quorum: options with short timeouts, and a way to wait for them."""

import time
from collections.abc import Callable

from aclog.nodes.observer.fetch_options import ObserverOptions

QUICK = ObserverOptions(
    retry_backoff=0.005, max_retry_backoff=0.02, refused_backoff=0.02, response_seconds=0.5, max_wait_ms=100
)


def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds, at most 30 s."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
