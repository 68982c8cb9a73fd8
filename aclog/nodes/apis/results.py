"""What the controller makes of a request: the records to append, and the answer once they are committed."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeAlias, TypeVar

from attrs import frozen

from aclog.metalog.records import MetadataRecord
from aclog.snapshots.image import Image

T = TypeVar("T")


@frozen(kw_only=True)
class ControllerResult(Generic[T]):
    """Records that become one atomic batch, none if nothing changes, and the answer (ControllerResult)."""

    records: Sequence[MetadataRecord]
    response: T


Operation: TypeAlias = Callable[[Image], ControllerResult[T]]
"""Pure: decides on the newest image, committed or not, what a request changes (ControllerWriteOperation)."""


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
