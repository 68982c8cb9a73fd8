"""Watching from an event loop. The log is read in a separate thread, which ends with the watch."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from aclog.snapshots.history import Change, RuleWatch

_POLL_S = 0.05
"""The maximum delay, in seconds, between a change and its event in the loop."""


async def watched(
    start: Callable[[], RuleWatch], step: Callable[[RuleWatch, float], Sequence[Change]], is_closed: Callable[[], bool]
) -> AsyncGenerator[Change, None]:
    """Yield each change; ends when the log is closed.

    May be cancelled at any time: no change is lost, and a new watch after the last change continues with the next.
    """
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, thread_name_prefix="aclog-watch")
    try:
        watch = await loop.run_in_executor(thread, start)
        while not is_closed():
            changes = await loop.run_in_executor(thread, partial(step, watch, 0.0))
            for change in changes:
                yield change
            if not changes:
                await asyncio.sleep(_POLL_S)
    finally:
        # Not awaited: the current read completes, and then the thread ends.
        thread.shutdown(wait=False)
