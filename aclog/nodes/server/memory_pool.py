"""The memory that large requests share (org.apache.kafka.common.memory.SimpleMemoryPool)."""

import asyncio
from collections import deque

from attrs import define, field

UNCHARGED_BYTES = 64 << 10
"""Frames up to this size are not charged to a pool: every connection may buffer that much anyway."""


@define(eq=False)
class MemoryPool:
    """A number of bytes shared by connections, granted in order of request.

    A request larger than the pool is granted once the pool is empty, so that it can be read at all.
    """

    size: int
    used: int = field(default=0, init=False)
    _waiting: deque[tuple[int, "asyncio.Future[None]"]] = field(factory=deque, init=False)

    async def take(self, amount: int) -> None:
        """Wait for `amount` bytes; the caller returns them with `give`."""
        if not self._waiting and self._fits(amount):
            self.used += amount
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        try:
            await turn
        except asyncio.CancelledError:
            # Granted in the same turn of the loop as the cancellation: return it, or it would be lost for good.
            if turn.done() and not turn.cancelled():
                self.give(amount)
            raise

    def give(self, amount: int) -> None:
        """Return bytes to the pool."""
        self.used -= amount
        while self._waiting and (self._waiting[0][1].done() or self._fits(self._waiting[0][0])):
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self.used += wanted
                turn.set_result(None)

    def _fits(self, amount: int) -> bool:
        return self.used == 0 or self.used + amount <= self.size
