"""Whether a controller is to lead, as far as the election and the node say."""

import asyncio
from contextlib import suppress
from typing import Any

from attrs import define, field


@define(eq=False)
class Leadership:
    """Owned by an event loop: read and awaited there; `elect`, `depose` and `wake` may come from any thread."""

    loop: asyncio.AbstractEventLoop
    elected: bool = field(default=False, init=False)
    stopping: bool = field(default=False, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)

    @property
    def should_lead(self) -> bool:
        """Whether this node is to lead."""
        return self.elected and not self.stopping

    def elect(self) -> None:
        """The election says that this node is to lead."""
        self.loop.call_soon_threadsafe(self._take, True)

    def depose(self) -> None:
        """The election says that it is not."""
        self.loop.call_soon_threadsafe(self._take, False)

    def wake(self) -> None:
        """Something else is to be looked at by whoever waits."""
        self.loop.call_soon_threadsafe(self._changed.set)

    def stop(self) -> None:
        """The node stops."""
        self.stopping = True
        self._changed.set()

    async def wait(self, seconds: float, work: "asyncio.Future[None] | None" = None) -> None:
        """Until something has changed or the work is done, at most so long."""
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
        """Whether the election says the same after so long, or until the node stops."""
        deadline = self.loop.time() + seconds
        while self.should_lead and (left := deadline - self.loop.time()) > 0:
            await self.wait(left)
        return self.elected

    def _take(self, elected: bool) -> None:
        self.elected = elected
        self._changed.set()
