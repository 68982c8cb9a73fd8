"""Turns: one at a time for each key, and a bounded number that wait."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from attrs import define, field, frozen


class NoTurnError(Exception):
    """Too many of this key wait already; the request can be sent again later."""


@frozen(eq=False)
class _Waiting:
    turn: "asyncio.Future[None]"
    is_lasting: bool


@define(eq=False, kw_only=True)
class Turns:
    """Owned by one event loop."""

    waiting: int
    """How many of one key may wait, besides the one whose turn it is."""
    replaces: bool = False
    """Whether a new one replaces the one that has waited longest; a browser has given that up by then."""
    _lines: dict[Hashable, deque[_Waiting]] = field(factory=dict, init=False)
    """Those that wait, by key, for keys whose turn is taken."""

    @asynccontextmanager
    async def turn(self, key: Hashable, *, is_lasting: bool = False) -> AsyncIterator[None]:
        """Wait for the key's turn, which ends with the `with`. One that `is_lasting` is never replaced.

        Raises:
            NoTurnError: too many wait already, or a new one has replaced it.

        """
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque()
        else:
            await self._wait(key, line, is_lasting=is_lasting)
        try:
            yield
        finally:
            self._pass_on(key)

    async def _wait(self, key: Hashable, line: deque[_Waiting], *, is_lasting: bool) -> None:
        if len(line) >= self.waiting:
            self._make_place(line)
        mine = _Waiting(asyncio.get_running_loop().create_future(), is_lasting)
        line.append(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in line:
                line.remove(mine)
            elif mine.turn.done() and not mine.turn.cancelled() and mine.turn.exception() is None:
                self._pass_on(key)
            raise

    def _make_place(self, line: deque[_Waiting]) -> None:
        """Refuse one that waits. Raises NoTurnError: none may be replaced."""
        oldest = next((each for each in line if not each.is_lasting), None) if self.replaces else None
        if oldest is None:
            raise NoTurnError
        line.remove(oldest)
        if not oldest.turn.done():
            oldest.turn.set_exception(NoTurnError())

    def _pass_on(self, key: Hashable) -> None:
        line = self._lines[key]
        while line:
            turn = line.popleft().turn
            if not turn.done():
                turn.set_result(None)
                return
        del self._lines[key]
