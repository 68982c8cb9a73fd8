"""The memory that large requests share (org.apache.kafka.common.memory.SimpleMemoryPool)."""

import asyncio
from collections import deque

from attrs import define, field

UNCHARGED_BYTES = 64 << 10
"""A frame up to this size is not charged to a pool: it fits into what each connection may hold anyway."""


@define(eq=False)
class MemoryPool:
    """Bytes that many share. Who asks waits in line until there is room; a piece larger than all has it alone."""

    size: int
    used: int = field(default=0, init=False)
    _waiting: deque[tuple[int, "asyncio.Future[None]"]] = field(factory=deque, init=False)

    async def take(self, amount: int) -> None:
        """Wait until `amount` bytes are this caller's; it gives them back by `give`."""
        if not self._waiting and self._fits(amount):
            self.used += amount
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(amount)
            raise

    def give(self, amount: int) -> None:
        """Give back what was taken."""
        self.used -= amount
        while self._waiting and (self._waiting[0][1].done() or self._fits(self._waiting[0][0])):
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self.used += wanted
                turn.set_result(None)

    def _fits(self, amount: int) -> bool:
        return self.used == 0 or self.used + amount <= self.size
