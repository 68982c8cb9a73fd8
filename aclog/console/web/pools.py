"""Threads that make pages: pages of the newest state never wait for costly ones, nor one viewer for another."""

import asyncio
from collections.abc import Callable, Hashable
from typing import TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from attrs import define, field

from aclog.console.pages import changes, draft, draft_plan, when
from aclog.console.pages.asked import Asked
from aclog.console.precedence import Precedence
from aclog.console.refusals import Refusals
from aclog.console.turns import NoTurnError, Turns

_Args = TypeVarTuple("_Args")
_R = TypeVar("_R")

_AT_ONCE = 2
"""Pages of each kind that are made at the same time: one that takes long does not hold up the others, and more of them
would only wait for each other."""
_COSTLY = frozenset((changes.PATH, when.PATH, draft.PATH, draft_plan.PATH, draft_plan.APPLY))
"""Paths of what compares states, or makes one of a draft."""


def is_costly(path: str, asked: Asked) -> bool:
    """Return whether a page may need a state of the past, a difference or a draft."""
    return path in _COSTLY or bool(asked.word("as_of"))


@define(eq=False, kw_only=True)
class Pools:
    """The threads; owned by the event loop."""

    precedence: Precedence
    """Of pages of the newest state over all other work in this process."""
    refusals: Refusals
    _newest: CapacityLimiter | None = field(default=None, init=False)
    _costly: CapacityLimiter | None = field(default=None, init=False)
    _own: "WeakValueDictionary[Hashable, asyncio.Semaphore]" = field(factory=WeakValueDictionary, init=False)
    """By viewer: each has one thread for pages of the newest state."""
    _turns: Turns = field(factory=lambda: Turns(waiting=1, replaces=True), init=False)
    """By viewer, for costly pages."""

    async def newest(self, viewer: Hashable | None, function: Callable[[*_Args], _R], *args: *_Args) -> _R:
        """Call a function in a thread, before all work that no viewer waits for; None: any viewer."""

        def called() -> _R:
            with self.precedence.page():
                return function(*args)

        self._newest = self._newest or CapacityLimiter(_AT_ONCE)
        if viewer is None:
            return await run_sync(called, limiter=self._newest)
        own = self._own.get(viewer)
        if own is None:
            own = self._own[viewer] = asyncio.Semaphore(1)
        async with own:
            return await run_sync(called, limiter=self._newest)

    async def costly(
        self, viewer: Hashable, function: Callable[[*_Args], _R], *args: *_Args, is_lasting: bool = False
    ) -> _R:
        """Call a costly function in a thread of their own pool, one at a time for each viewer.

        The next one of the same viewer waits until a newer one replaces it; one that `is_lasting` is never replaced.

        Raises:
            NoTurnError: it was replaced, or cannot wait; and what the function raises.

        """
        try:
            async with self._turns.turn(viewer, is_lasting=is_lasting):
                self._costly = self._costly or CapacityLimiter(_AT_ONCE)
                return await run_sync(function, *args, limiter=self._costly)
        except NoTurnError:
            self.refusals.request("past")
            raise
