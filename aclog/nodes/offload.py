"""Bridges between the event loop and threads: offloading long work, awaiting commits."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from aclog.nodes.loop_future import LoopFuture

P = ParamSpec("P")
T = TypeVar("T")

MANY = 256
"""Requests with more entries than this are processed in an executor thread; one entry takes about 10 us."""

MANY_BYTES = 4 << 10
"""Larger requests are decoded in a thread: these bytes may take 3 ms."""

MANY_ENTRIES_BYTES = 1 << 10
"""Larger requests are answered with errors in a thread: an entry may take 3 bytes, and its error 20 us."""


async def offload_if(large: bool, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` and return its result, in a thread if it is `large`. Raises what `work` raises."""
    # Small work stays on the loop: a thread hop costs more than the work itself.
    if large:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


async def committed(future: "Future[T]") -> T:
    """Await the future of a QuorumController or another AclMutator on the event loop.

    Unlike asyncio.wrap_future, a future completed on the loop's own thread (QuorumController's are) needs no
    cross-thread wake-up. Raises the future's exception.
    """
    if isinstance(future, LoopFuture):
        if not future.done():
            await future.waiter()
    elif not future.done():
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def done(_: "Future[T]") -> None:
            if asyncio._get_running_loop() is loop:
                wake()
            else:
                loop.call_soon_threadsafe(wake)

        future.add_done_callback(done)
        await waiter
    return future.result()
