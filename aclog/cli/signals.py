"""Work in an event loop that a signal ends in good order."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_T = TypeVar("_T")


def stop_on_signals() -> asyncio.Event:
    """What SIGTERM or an interrupt sets; a second signal ends the process as if nobody handled it."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def stopped(number: signal.Signals) -> None:
        """Told of the signal by the loop."""
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped, number)
    return stop


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, _T]) -> _T | None:
    """What the work gives; None if it was given up because `stop` was set first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait for a time, or until `stop` is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
