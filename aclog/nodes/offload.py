"""Work beside the event loop: what takes long is done in a thread, so that other clients are served meanwhile."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MANY = 256
"""A request of more entries than this is worked on beside the loop: one entry takes some ten microseconds."""


async def offload_if(large: bool, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives; in a thread if it is much. Raises what it raises."""
    if large:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


async def committed(future: "Future[T]") -> T:
    """Wait, on an event loop, for what a controller or another AclMutator has promised.

    Where the future is done by the loop's own thread, as QuorumController's are, nothing is sent between threads.
    Raises what the future holds.
    """
    if not future.done():
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
