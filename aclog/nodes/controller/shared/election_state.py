"""Whether this controller should lead, according to the election and the node's lifecycle."""

import asyncio
from contextlib import suppress
from typing import Any

from attrs import define, field


@define(eq=False)
class ElectionState:
    """Read and awaited on one event loop; `elect`, `depose` and `wake` may be called from any thread."""

    loop: asyncio.AbstractEventLoop
    elected: bool = field(default=False, init=False)
    stopping: bool = field(default=False, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)

    @property
    def should_lead(self) -> bool:
        """Whether this node is elected and not stopping."""
        return self.elected and not self.stopping

    def elect(self) -> None:
        """Record that this node is elected."""
        self.loop.call_soon_threadsafe(self._set_elected, True)

    def depose(self) -> None:
        """Record that this node is not, or no longer, elected."""
        self.loop.call_soon_threadsafe(self._set_elected, False)

    def wake(self) -> None:
        """Wake the waiting task without a change of election."""
        self.loop.call_soon_threadsafe(self._changed.set)

    def stop(self) -> None:
        """Record that the node is stopping."""
        self.stopping = True
        self._changed.set()

    async def wait(self, seconds: float, work: "asyncio.Future[None] | None" = None) -> None:
        """Wait for a change or for `work` to complete, at most `seconds`."""
        changed = asyncio.ensure_future(self._changed.wait())
        waiting: set[asyncio.Future[Any]] = {changed} if work is None else {changed, work}
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            with suppress(asyncio.CancelledError):
                await changed
        self._changed.clear()

    async def still_elected(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether this node is still elected."""
        deadline = self.loop.time() + seconds
        while self.should_lead and (left := deadline - self.loop.time()) > 0:
            await self.wait(left)
        return self.elected

    def _set_elected(self, elected: bool) -> None:
        self.elected = elected
        self._changed.set()
