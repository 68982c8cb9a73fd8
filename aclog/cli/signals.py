"""Orderly shutdown on SIGTERM and SIGINT, of an event loop or of a plain one."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from attrs import field

from aclog.metalog.values import define

_T = TypeVar("_T")


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets; a second signal has its default action."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def stopped(number: signal.Signals) -> None:
        """Request the stop, and leave the next signal to its default action."""
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped, number)
    return stop


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, _T]) -> _T | None:
    """Return the result of the work; None if `stop` was set first and the work was cancelled."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Sleep, but not longer than until `stop` is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


@define(eq=False)
class Stop:
    """What a plain loop waits for between two rounds, and a signal's handler may set.

    A `threading.Event` has a lock, which the thread may hold that the handler interrupts: setting it would never end.
    """

    _requests: SimpleQueue[None] = field(factory=SimpleQueue, init=False)
    _is_set: bool = field(default=False, init=False)

    def set(self) -> None:
        """Request the end."""
        self._requests.put(None)  # may be called from a handler, at any point

    def wait(self, seconds: float) -> bool:
        """Return whether the end was requested, at the latest after so many seconds; for one thread."""
        if not self._is_set:
            with suppress(Empty):
                self._requests.get(timeout=seconds)
                self._is_set = True
        return self._is_set


@contextmanager
def ending_interrupts() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP as Ctrl-C during the `with`, so that temporary files are removed; in the main thread.

    An ignored SIGHUP (nohup) stays ignored.
    """
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, signal.default_int_handler) for each in numbers}
    try:
        yield
    finally:
        for each, action in before.items():
            signal.signal(each, action)


@contextmanager
def on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at SIGTERM or SIGINT; a second signal has its previous action.

    It is called in the main thread, between two of its instructions: it must take no lock that this thread may hold.
    """

    def stopped(number: int, _frame: FrameType | None) -> None:
        """Pass the signal on, and restore its previous action for the next one."""
        stop()
        signal.signal(number, before[number])

    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, stopped)
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)
